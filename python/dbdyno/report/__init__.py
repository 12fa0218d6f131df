"""Publishers of a campaign: one document as HTML and Markdown; the figures behind it as CSV and JSON."""

from __future__ import annotations

from dbdyno.report.write import FORMATS, LANGUAGES, write_report

__all__ = ["FORMATS", "LANGUAGES", "write_report"]
