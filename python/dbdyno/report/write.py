"""Writing a campaign's report to a folder, in any of the formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from dbdyno.model.errors import RunError, UsageError, nearest
from dbdyno.model.sample import Sample
from dbdyno.record.entries import TrialEntry
from dbdyno.record.store import Store
from dbdyno.report.build import build_document
from dbdyno.report.csvfile import samples_csv, trials_csv
from dbdyno.report.html import render_html
from dbdyno.report.jsonfile import campaign_json
from dbdyno.report.markdown import render_markdown
from dbdyno.report.material import Material
from dbdyno.report.words import LANGUAGES, Words

__all__ = ["FORMATS", "LANGUAGES", "write_report"]

FORMATS = ("html", "md", "csv", "json")


def write_report(
    store: Store,
    campaign_id: str,
    out_dir: str | Path,
    formats: Iterable[str] = FORMATS,
    lang: str = "en",
) -> dict[str, Path]:
    """Write ``report.html``, ``report.md``, ``trials.csv`` with ``samples.csv``, ``report.json``.

    Returns the file of each format (``csv``: that of the trials). The folder is made when missing; files of an
    earlier report are replaced.

    Raises:
        UsageError: unknown campaign, format or language.
        RunError: the folder cannot be written.
    """
    asked = list(dict.fromkeys(formats))
    for name in asked:
        if name not in FORMATS:
            raise UsageError(f"there is no report format {name!r}{nearest(name, FORMATS)}")
    material = load_material(store, campaign_id, lang)
    folder = Path(out_dir)
    written: dict[str, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in asked:
            for file_name, text in _files(name, material):
                path = folder / file_name
                path.write_text(text, encoding="utf-8")
                written.setdefault(name, path)
    except OSError as error:
        raise RunError(f"the report cannot be written to {folder}: {error.strerror or error}") from error
    return written


def load_material(store: Store, campaign_id: str, lang: str = "en") -> Material:
    """A campaign out of the store, ready for reports."""
    words = Words(lang)
    campaign = store.campaign(campaign_id)
    return Material(campaign, tuple(store.trials(campaign_id)), store.samples, words)


def _files(name: str, material: Material) -> list[tuple[str, str]]:
    if name == "html":
        return [("report.html", render_html(build_document(material), material.words))]
    if name == "md":
        return [("report.md", render_markdown(build_document(material)))]
    if name == "json":
        document = campaign_json(material.campaign, material.trials, material.comparisons)
        return [("report.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")]
    return [("trials.csv", trials_csv(material.trials)), ("samples.csv", samples_csv(_series(material)))]


def _series(material: Material) -> Iterable[tuple[TrialEntry, Sequence[Sample]]]:
    return ((entry, material.samples(entry.id)) for entry in material.trials)
