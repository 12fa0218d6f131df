"""``dbdyno run``: a plan, from its first trial to the report."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.campaign.planfile import read_plan
from dbdyno.campaign.runner import run_campaign
from dbdyno.campaign.trials import estimate_s, expand, trial_s
from dbdyno.cli.output import plural, say, tell, tell_json, tell_table
from dbdyno.cli.running import Closing, close, watched
from dbdyno.cli.words import as_json, ask_password, closing, password_asker, store, words_of
from dbdyno.model.plan import Plan
from dbdyno.model.units import format_duration
from dbdyno.record.store import Store
from dbdyno.targets import managed

_MOST_ROUNDS = 6  # of which the dry run names each trial's place


@click.command(short_help="Run a plan, say who is faster, write the report.")
@click.argument("plan", metavar="PLAN.toml")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a value of the plan. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Show the matrix and how long it takes; connect to nothing.")
@ask_password
@closing
@store
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    plan: str,
    overrides: tuple[str, ...],
    dry_run: bool,
    ask_password: bool,
    folder: str | None,
    report: bool,
    lang: str,
    store: str | None,
    as_json: bool,
) -> None:
    """Run a plan: targets x workloads x connections x rounds, then say who is faster and write the report.

    Exit status 1 when a trial failed; 130 when interrupted (dbdyno resume goes on).

    \b
    dbdyno run plan.toml --dry-run
    dbdyno run plan.toml --set rounds=5 --set duration=60s
    dbdyno run plan.toml --set workload.oltp_read_write.options.table_size=1000000
    """
    read, text = read_plan(plan, overrides)
    if dry_run:
        _tell_dry(read, as_json)
        return
    ctx.exit(run_plan(read, text, Closing(_folder(folder, report), lang, as_json, store), ask_password))


def _folder(given: str | None, report: bool) -> Path | None:
    return Path(given or "") if report else None


def run_plan(plan: Plan, text: str, closing: Closing, ask: bool = False, servers_stay: bool = True) -> int:
    """Run a plan that was read and tell how it ended; the exit status.

    Managed servers that it started run on (their next start would be a cold one), or are stopped unless
    ``servers_stay``.
    """
    asker = password_asker(ask)
    startable = _startable(plan)
    try:
        with Store.open(closing.store, write=True) as opened:
            entry = watched(
                lambda observer, stop: run_campaign(
                    opened, plan, text, observer=observer, stop=stop, ask_password=asker
                ),
                trial_s(plan),
            )
            return close(opened, entry, closing.in_folder_of(entry.id))
    finally:
        for name in startable:
            if (server := managed.find(name)) is None or not server.running:
                continue
            if servers_stay:
                say(f"server {name} was started and runs on; end it with: dbdyno server stop {name}")
            else:
                managed.stop(name)


def _startable(plan: Plan) -> list[str]:
    """Names of the managed servers that this plan may start: those that do not run yet."""
    running = {server.name for server in managed.listing() if server.running}
    names = {target.server for target in plan.target if target.server} | {
        target.name for target in plan.target if target.server
    }
    return sorted(names - running)


def _tell_dry(plan: Plan, as_json: bool) -> None:
    trials = expand(plan, f"{plan.name}-N")
    seconds = estimate_s(plan)
    if as_json:
        tell_json(
            {
                "plan": plan.name,
                "seconds": seconds,
                "trials": [
                    {
                        "number": trial.number,
                        "workload": trial.workload,
                        "target": trial.target,
                        "connections": trial.connections,
                        "round": trial.round,
                    }
                    for trial in trials
                ],
            }
        )
        return
    shown = plan.without_passwords()
    sizes = (
        plural(len(plan.workload), "workload"),
        plural(len(plan.target), "target"),
        plural(len(plan.connections), "connection count"),
        plural(plan.rounds, "round"),
    )
    tell(f"{plan.name}: {plural(len(trials), 'trial')} = {' × '.join(sizes)}, {plan.order}")
    tell()
    for target in shown.target:
        where = target.url or f"managed server {target.server} {words_of(target.options)}".rstrip()
        tell(f"target    {target.name}: {where}" + (" (baseline)" if target.name == plan.baseline_name else ""))
    for workload in shown.workload:
        options = words_of(workload.options)
        tell(f"workload  {workload.label}: {workload.name}" + (f" with {options}" if options else ""))
    tell()
    rows = []
    for label in (workload.label for workload in plan.workload):
        for name in (target.name for target in plan.target):
            places = [
                [t.number for t in trials if (t.workload, t.target, t.connections) == (label, name, count)]
                for count in plan.connections
            ]
            rows.append((label, name, *(_places(numbers) for numbers in places)))
    tell_table(["order of running", "", *(f"c={count}" for count in plan.connections)], rows, left=(0, 1))
    tell()
    length = "" if plan.duration_s is None else f", {format_duration(plan.duration_s)} each"
    if plan.transactions is not None:
        length = f", {plan.transactions:,} transactions each"
    about = f"about {format_duration(seconds)}" if seconds is not None else "as long as the transactions take"
    tell(f"{plural(len(trials), 'trial')}{length}: {about}, and the time to load the data where they are not there")


def _places(numbers: list[int]) -> str:
    if len(numbers) <= _MOST_ROUNDS:
        return " ".join(map(str, numbers))
    return f"{numbers[0]} {numbers[1]} … {numbers[-1]}"
