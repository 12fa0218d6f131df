"""``dbdyno bench``: one workload on one database, figures at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dbdyno.campaign.oneoff import oneoff_plan
from dbdyno.campaign.runner import run_campaign
from dbdyno.campaign.trials import trial_s
from dbdyno.cli.figures import trial_remarks, trial_table
from dbdyno.cli.output import say, tell, tell_json
from dbdyno.cli.running import STATUS, watched
from dbdyno.cli.target_words import opened, workload_and_target
from dbdyno.cli.words import ConnectionCounts, Duration, Isolation, as_json, pairs, password_asker, seed
from dbdyno.cli.workloads import option_rows
from dbdyno.load import require
from dbdyno.model.errors import UsageError
from dbdyno.model.plan import Plan
from dbdyno.model.units import format_duration
from dbdyno.record.entries import TrialEntry
from dbdyno.record.store import Store
from dbdyno.targets.target import Target
from dbdyno.workload.language import Workload
from dbdyno.workload.source import workload_class

DEFAULT_WARMUP_S = 1.0


class BenchCommand(click.Command):
    """Its help ends with the options of the workload, when one is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["dbdyno.words"] = tuple(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        name = next((word for word in ctx.meta.get("dbdyno.words", ()) if not word.startswith("-")), None)
        if name is None:
            super().format_epilog(ctx, formatter)
            return
        rows = [
            (option, f"{meaning} [default: {default}]")
            for option, default, meaning in option_rows(workload_class(name))
        ]
        if rows:
            with formatter.section(f"Options of {name} (--opt KEY=VALUE)"):
                formatter.write_dl(rows)


@click.command(
    cls=BenchCommand,
    short_help="Run a workload on a database; throughput and latency.",
    epilog="'dbdyno bench WORKLOAD --help' adds the options of that workload.",
)
@workload_and_target
@click.option(
    "-c",
    "--connections",
    type=ConnectionCounts(),
    default="1",
    show_default=True,
    help="Connection counts, one trial each.",
)
@click.option("-d", "--duration", type=Duration(), help="Length of a trial. [default: 10s]")
@click.option(
    "-n",
    "--transactions",
    type=click.IntRange(min=1),
    metavar="N",
    help="End each trial after that many instead, all connections together.",
)
@click.option("--warmup", type=Duration(), help="Run that long before measuring. [default: 1s; with -n none]")
@click.option(
    "--rounds", type=click.IntRange(min=1), metavar="N", default=1, show_default=True, help="Trials of each count."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Open loop: arrivals per second over all connections. [default: closed loop]",
)
@click.option(
    "--arrivals", type=click.Choice(["poisson", "even"]), default="poisson", show_default=True, help="With --rate."
)
@click.option("--isolation", type=Isolation(), help="Isolation level. [default: the server's]")
@click.option(
    "--max-tries",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    show_default=True,
    help="Of one transaction, then it failed.",
)
@click.option("--ignore-errors", metavar="CODE,…", help="Errors that do not end the run; or 'all'.")
@click.option("--interval", type=Duration(), default="1s", show_default=True, help="Of the samples.")
@seed
@click.option(
    "--prepare/--no-prepare",
    "prepare",
    default=True,
    show_default=True,
    help="Make the tables when they are absent.",
)
@click.option("--store", metavar="FILE|URL", help="Keep the results there. [default: they are only printed]")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    /,
    workload: str,
    target: str,
    opts: tuple[tuple[str, str], ...],
    ask_password: bool,
    prepare: bool,
    store: str | None,
    as_json: bool,
    **load: Any,
) -> None:
    """Run WORKLOAD on TARGET and print throughput and latency for each connection count.

    Latency is the response time in milliseconds; 'client' is the load generator's own share of a core, 'bound'
    when it was the bottleneck.

    \b
    dbdyno bench oltp_read_write sqlite:///bench.db -c 1,4 -d 5s
    dbdyno bench oltp_point_select SERVER -c 1,8,64 --rounds 3 --opt table_size=100000 --json
    dbdyno bench ./mine.py SERVER -c 16 --rate 500
    """
    program, database = opened(workload, target, opts, ask_password)
    if load["duration"] is not None and load["transactions"] is not None:
        raise UsageError("a trial ends by --duration or by --transactions; leave one of the two out")
    if load["warmup"] is None and load["transactions"] is None:
        load["warmup"] = DEFAULT_WARMUP_S
    plan, text = oneoff_plan(workload, target, options=pairs(opts, "--opt"), **load)
    if not prepare:
        require(database, program)
    asker = _known_password(database) or password_asker(ask_password)
    with _store(store) as kept:
        entry = watched(
            lambda observer, stop: run_campaign(kept, plan, text, observer=observer, stop=stop, ask_password=asker),
            trial_s(plan),
        )
        entries = [each for each in kept.trials(entry.id) if each.outcome is not None]
    if as_json:
        from dbdyno.report.jsonfile import campaign_json  # late: it loads the statistics

        tell_json(campaign_json(None, entries))
    else:
        _tell(program, entries, plan)
    if store is not None:
        say(f"kept as {entry.id} in {kept}")
    ctx.exit(STATUS.get(entry.state, 1))


def _known_password(database: Target) -> Any:
    """The password that the target was opened with, so that it is asked for once."""
    password = database.address.password
    return (lambda _prompt: password.reveal()) if password is not None else None


@contextmanager
def _store(given: str | None) -> Iterator[Store]:
    """The store to keep results in; without one a file that is gone afterwards."""
    if given is not None:
        with Store.open(given, write=True) as kept:
            yield kept
        return
    with (
        tempfile.TemporaryDirectory(prefix="dbdyno-") as folder,
        Store.open(str(Path(folder) / "bench.db"), write=True) as kept,
    ):
        yield kept


def _tell(program: Workload, entries: Sequence[TrialEntry], plan: Plan) -> None:
    if not entries:
        return
    environment = entries[0].environment
    server = environment.get("server", {})
    words = [f"{program.label} on {server.get('flavour', plan.target[0].name)} {server.get('version', '')}".strip()]
    words.append(f"isolation {server['isolation']}" if server.get("isolation") else "")
    if plan.duration_s is not None:
        words.append(f"{format_duration(plan.duration_s)} each")
    else:
        words.append(f"{plan.transactions:,} transactions each")
    words.append(f"{plan.rate:g} arrivals/s" if plan.rate is not None else "closed loop")
    outcome = entries[-1].outcome
    words.append(outcome.drive if outcome is not None else "")
    tell(", ".join(word for word in words if word))
    tell()
    for line in trial_table(entries, ("c", "round") if plan.rounds > 1 else ("c",)):
        tell(line)
    remarks = trial_remarks(entries)
    if remarks:
        tell()
    for remark in remarks:
        tell(remark)
