"""``dbdyno quickstart``: two databases compared, with nothing installed and nothing configured."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.campaign.planfile import read_plan, shipped_plan
from dbdyno.campaign.trials import estimate_s
from dbdyno.cli.output import say
from dbdyno.cli.run import run_plan
from dbdyno.cli.running import Closing
from dbdyno.cli.words import as_json, closing, store
from dbdyno.model.units import format_duration


@click.command(short_help="Compare two embedded databases: no server, about a minute.")
@closing
@store
@as_json
@click.pass_context
def command(ctx: click.Context, folder: str | None, report: bool, lang: str, store: str | None, as_json: bool) -> None:
    """Compare two embedded databases and write a report: no server, no plan, about a minute.

    The plan that is run is plans/quickstart.toml; 'dbdyno run' runs one of your own.
    """
    plan, text = read_plan(shipped_plan("quickstart"))
    names = " and ".join(target.name for target in plan.target)
    seconds = estimate_s(plan)
    about = f", about {format_duration(seconds)}" if seconds is not None else ""
    say(f"comparing {names} on {', '.join(workload.label for workload in plan.workload)}{about}")
    closing = Closing(Path(folder or "") if report else None, lang, as_json, store)
    ctx.exit(run_plan(plan, text, closing, servers_stay=False))
