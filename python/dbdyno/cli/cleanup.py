"""``dbdyno cleanup``: drop a workload's tables."""

from __future__ import annotations

import click

from dbdyno.cli.output import plural, say
from dbdyno.cli.target_words import opened, workload_and_target
from dbdyno.load import cleanup


@click.command(short_help="Drop a workload's tables.")
@workload_and_target
def command(workload: str, target: str, opts: tuple[tuple[str, str], ...], ask_password: bool) -> None:
    """Drop the tables of WORKLOAD in TARGET, and nothing else.

    A table of the same name with other columns is somebody else's: then nothing is dropped.

    \b
    dbdyno cleanup oltp_read_write sqlite:///bench.db --opt tables=4
    """
    program, database = opened(workload, target, opts, ask_password)
    dropped = cleanup(database, program)
    if dropped:
        say(f"dropped {plural(len(dropped), 'table')} of {program.label} on {database.label}: {', '.join(dropped)}")
    else:
        say(f"no tables of {program.label} on {database.label}; nothing to do")
