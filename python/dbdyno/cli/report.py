"""``dbdyno report``: the report of a campaign, as files."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import tell
from dbdyno.cli.words import store
from dbdyno.model.errors import UsageError, nearest
from dbdyno.record.store import Store
from dbdyno.report import FORMATS, write_report

DEFAULT_FORMATS = "html,md,csv,json"


@click.command(short_help="Write the report of a campaign.")
@click.argument("campaign")
@click.option("--format", "formats", default=DEFAULT_FORMATS, show_default=True, metavar="F,F,…", help="Which files.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of the report.")
@click.option("-o", "--output", "folder", metavar="DIR", help="Folder of the files. [default: reports/CAMPAIGN]")
@store
def command(campaign: str, formats: str, lang: str, folder: str | None, store: str | None) -> None:
    """Write the report of a campaign and print the files' paths.

    html is one file that needs no network; csv and json hold every trial's figures.

    \b
    dbdyno report quickstart-1
    dbdyno report quickstart-1 --format html --lang zh -o /srv/reports
    """
    chosen = formats_of(formats)
    with Store.open(store) as opened:
        entry = opened.campaign(campaign)
        written = write_report(opened, entry.id, report_folder(entry.id, folder), formats=chosen, lang=lang)
    for path in written.values():
        tell(str(path))


def report_folder(campaign: str, given: str | None) -> Path:
    """Where a campaign's report goes."""
    return Path(given) if given else Path("reports") / campaign


def formats_of(text: str) -> tuple[str, ...]:
    """``html,md`` as names of formats."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in FORMATS:
            raise UsageError(f"unknown report format {name!r}{nearest(name, FORMATS)}")
    if not names:
        raise UsageError(f"--format is empty; formats: {', '.join(FORMATS)}")
    return names
