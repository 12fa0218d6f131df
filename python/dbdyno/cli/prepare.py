"""``dbdyno prepare``: make and fill a workload's tables."""

from __future__ import annotations

import click

from dbdyno.cli.output import say
from dbdyno.cli.progress import LoadTeller, drawn
from dbdyno.cli.target_words import opened, workload_and_target
from dbdyno.cli.words import seed
from dbdyno.load import prepare
from dbdyno.model.units import format_duration


@click.command(short_help="Make and fill a workload's tables.")
@workload_and_target
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Connections that insert at once.",
)
@seed
def command(
    workload: str, target: str, opts: tuple[tuple[str, str], ...], ask_password: bool, workers: int, seed: int
) -> None:
    """Make and fill the tables of WORKLOAD in the database TARGET.

    Tables that are there with the same data are kept; a load that was broken off is begun anew; tables that are
    not ours are never touched.

    \b
    dbdyno prepare oltp_read_write sqlite:///bench.db --opt tables=4 --opt table_size=100000
    """
    program, database = opened(workload, target, opts, ask_password)
    teller = LoadTeller(f"loading {program.label} into {database.label}")
    with drawn(teller.drawing):
        report = prepare(database, program, seed=seed, workers=workers, progress=teller)
    took = "" if report.already_there else f" in {format_duration(report.seconds)}"
    say(f"{report.sentence}{took}")
