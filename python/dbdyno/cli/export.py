"""``dbdyno export``: every trial's figures of a campaign, for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dbdyno.cli.output import say, tell
from dbdyno.cli.words import store
from dbdyno.model.errors import RunError
from dbdyno.record.store import Store
from dbdyno.report.csvfile import samples_csv, trials_csv
from dbdyno.report.jsonfile import campaign_json


@click.command(short_help="The figures of a campaign as CSV or JSON.")
@click.argument("campaign")
@click.option(
    "--format", "form", type=click.Choice(["csv", "json"]), default="json", show_default=True, help="Of the figures."
)
@click.option("--samples", is_flag=True, help="Every interval instead of every trial (CSV only).")
@click.option("-o", "--output", "path", metavar="FILE", help="Write there instead of to stdout.")
@store
def command(campaign: str, form: str, samples: bool, path: str | None, store: str | None) -> None:
    """Print a campaign's trials as CSV or JSON, one row or object a trial.

    Latencies are in milliseconds, rates per second.

    \b
    dbdyno export quickstart-1 --format csv -o trials.csv
    dbdyno export quickstart-1 | jq '.trials[].tps'
    """
    if samples and form != "csv":
        raise click.UsageError("--samples are exported as CSV only; add --format csv", click.get_current_context())
    with Store.open(store) as opened:
        entry = opened.campaign(campaign)
        entries = opened.trials(entry.id)
        if samples:
            content = samples_csv([(each, opened.samples(each.id)) for each in entries])
        elif form == "csv":
            content = trials_csv(entries)
        else:
            content = json.dumps(campaign_json(entry, entries), indent=2, ensure_ascii=False)
    if path is None:
        tell(content.rstrip("\n"))
        return
    try:
        Path(path).write_text(content.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
    say(f"{form} written to {path}")
