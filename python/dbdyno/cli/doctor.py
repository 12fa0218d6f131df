"""``dbdyno doctor``: before a run, what would spoil it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import click

from dbdyno.campaign.doctor import Examination, examine
from dbdyno.cli.output import pad, plural, say, tell, tell_json, tell_table
from dbdyno.cli.words import ConnectionCounts, as_json, ask_password, opt, pairs, password_asker
from dbdyno.model.errors import UsageError
from dbdyno.model.finding import Finding, Verdict
from dbdyno.targets.target import open_target
from dbdyno.workload.language import Workload
from dbdyno.workload.source import load_workload

_WIDTH = 100
_ORDER = (Verdict.BAD, Verdict.WARN, Verdict.INFO)


@click.command(short_help="What would spoil a run on a database, and how to mend it.")
@click.argument("target")
@click.option("-w", "--workload", metavar="WORKLOAD", help="The workload of the run: its tables and statements count.")
@opt
@click.option(
    "-c",
    "--connections",
    type=ConnectionCounts(),
    default="1",
    show_default=True,
    help="Connection counts of the run; the highest matters.",
)
@ask_password
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    workload: str | None,
    opts: tuple[tuple[str, str], ...],
    connections: tuple[int, ...],
    ask_password: bool,
    as_json: bool,
) -> None:
    """Look at TARGET and at this machine before a run: limits, logs and caches, load and clock.

    No setting and no row is changed. 'bad' spoils the run or its figures, 'warn' may do so, 'info' is what a reader
    of the figures should know; below the table is why, and the command that mends it. Exit status 1 when something
    is bad.

    \b
    dbdyno doctor SERVER -c 1,64
    dbdyno doctor SERVER -w oltp_read_write --opt tables=16 -c 1024 --json
    """
    if opts and workload is None:
        raise UsageError("--opt is an option of a workload; name it with --workload")
    program = load_workload(workload, pairs(opts, "--opt")) if workload is not None else None
    opened = open_target(target, ask_password=password_asker(ask_password))
    found = examine(opened, program, max(connections))
    if as_json:
        tell_json(_described(found, program, max(connections), opened.label, str(opened.address)))
    else:
        _tell(found, program, max(connections), str(opened.address))
    say(_summary(found.findings))
    if found.verdict is Verdict.BAD:
        ctx.exit(1)


def _tell(found: Examination, program: Workload | None, connections: int, address: str) -> None:
    what = program.label if program is not None else "any workload"
    tell(f"{found.facts.version} at {address}, for {what} with {plural(connections, 'connection')}")
    tell()
    rows = [(each.verdict.value, each.name, each.found, each.needed) for each in found.findings]
    tell_table(("", "what", "found", "needed"), rows, left=(0, 1, 2, 3))
    for verdict in _ORDER:
        for finding in (each for each in found.findings if each.verdict is verdict):
            tell()
            for line in _explained(finding):
                tell(line)


def _explained(finding: Finding) -> Iterator[str]:
    head = pad(finding.verdict.value, 6)
    yield from textwrap.wrap(
        f"{finding.name}: {finding.why}", _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
    )
    if finding.mend is not None:
        yield f"{' ' * len(head)}mend, in {finding.mend.where}:"
        yield f"{' ' * len(head)}  {finding.mend.command}"


def _summary(findings: Sequence[Finding]) -> str:
    number = Counter(each.verdict for each in findings)
    bad, warn = number[Verdict.BAD], number[Verdict.WARN]
    if not bad and not warn:
        return f"nothing here would spoil the run; {plural(len(findings), 'thing')} looked at"
    return f"{bad:,} bad, {plural(warn, 'warning')}; {plural(len(findings), 'thing')} looked at"


def _described(
    found: Examination, program: Workload | None, connections: int, label: str, address: str
) -> dict[str, Any]:
    return {
        "target": label,
        "address": address,
        "server": str(found.facts.version),
        "workload": program.label if program is not None else None,
        "connections": connections,
        "verdict": found.verdict.value,
        "findings": [
            {
                "what": each.name,
                "verdict": each.verdict.value,
                "found": each.found,
                "needed": each.needed or None,
                "why": each.why or None,
                "mend": each.mend.command if each.mend is not None else None,
                "mend_in": each.mend.where if each.mend is not None else None,
            }
            for each in found.findings
        ],
    }
