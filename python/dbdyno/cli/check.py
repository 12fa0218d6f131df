"""``dbdyno check``: do the data agree with what the workload says about them."""

from __future__ import annotations

import click

from dbdyno.cli.output import plural, say, tell, tell_json
from dbdyno.cli.target_words import opened, workload_and_target
from dbdyno.cli.words import as_json
from dbdyno.load import CheckResult, check


@click.command(short_help="Check a workload's data.")
@workload_and_target
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    workload: str,
    target: str,
    opts: tuple[tuple[str, str], ...],
    ask_password: bool,
    as_json: bool,
) -> None:
    """Check the data of WORKLOAD in TARGET: every statement of the workload about them.

    Exit status 1 when one does not hold; its first violations are shown.

    \b
    dbdyno check oltp_read_write sqlite:///bench.db --opt tables=4
    """
    program, database = opened(workload, target, opts, ask_password)
    results = check(database, program)
    broken = [result for result in results if not result.holds]
    if as_json:
        tell_json({"workload": program.label, "target": database.label, "checks": [_described(r) for r in results]})
    else:
        for result in results:
            tell(f"{'ok' if result.holds else 'BROKEN':<6}  {result.name}  {result.doc.splitlines()[0]}".rstrip())
            for violation in result.violations:
                tell("          " + ", ".join(str(value) for value in violation))
            if result.more:
                tell("          … and more")
        if not results:
            say(f"{program.label} has no checks of its own; its tables on {database.label} are complete")
    if broken:
        say(f"{plural(len(broken), 'check')} of {len(results)} failed on {database.label}")
        ctx.exit(1)


def _described(result: CheckResult) -> dict[str, object]:
    return {
        "check": result.name,
        "meaning": result.doc,
        "holds": result.holds,
        "violations": [[str(value) for value in row] for row in result.violations],
        "more": result.more,
        "seconds": round(result.seconds, 3),
    }
