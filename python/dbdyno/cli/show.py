"""``dbdyno show``: one campaign or one trial on the terminal."""

from __future__ import annotations

import click

from dbdyno.analysis.latency import Latency, latency_of
from dbdyno.analysis.series import thinned
from dbdyno.analysis.summary import cells
from dbdyno.cli.figures import cell_table, ms_words, trial_remarks, trial_table
from dbdyno.cli.output import plural, table, tell, tell_json
from dbdyno.cli.words import as_json, store, words_of
from dbdyno.model.units import format_duration, format_rate
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.store import Store
from dbdyno.report.jsonfile import campaign_json, trial_json

_COURSE_LINES = 12


@click.command(short_help="Show the figures of a campaign or of one trial.")
@click.argument("name", metavar="CAMPAIGN|TRIAL")
@click.option("--trials", "every", is_flag=True, help="A line for every trial instead of one for its rounds.")
@store
@as_json
def command(name: str, every: bool, store: str | None, as_json: bool) -> None:
    """Show a campaign's figures, or everything about one trial.

    \b
    dbdyno show quickstart-1
    dbdyno show quickstart-1 --trials
    dbdyno show quickstart-1/oltp_read_write/sqlite/c4/r2
    """
    with Store.open(store) as opened:
        if "/" in name:
            entry = opened.trial(name)
            if as_json:
                tell_json(trial_json(entry))
            else:
                _show_trial(opened, entry)
            return
        campaign = opened.campaign(name)
        entries = opened.trials(campaign.id)
    if as_json:
        tell_json(campaign_json(campaign, entries))
        return
    _show_campaign(campaign, entries, every)


def _show_campaign(campaign: CampaignEntry, entries: list[TrialEntry], every: bool) -> None:
    done = sum(entry.finished_itself for entry in entries)
    begun = campaign.created.astimezone().strftime("%Y-%m-%d %H:%M")
    tell(f"{campaign.id}: {campaign.state}, {done} of {plural(len(entries), 'trial')} done, begun {begun}")
    plan = campaign.plan
    length = format_duration(plan.duration_s) if plan.duration_s is not None else f"{plan.transactions:,} transactions"
    words = [plural(plan.rounds, "round"), f"{length} a trial"]
    words += [plan.isolation] if plan.isolation else []
    words += [f"{plan.rate:g} arrivals/s"] if plan.rate is not None else []
    tell(", ".join(words))
    tell()
    if every:
        lines = trial_table(entries, ("workload", "target", "c", "round"))
    else:
        lines = cell_table(cells(entries), plan.rounds)
    for line in lines:
        tell(line)
    remarks = trial_remarks(entries)
    if remarks:
        tell()
    for remark in remarks:
        tell(remark)


def _show_trial(opened: Store, entry: TrialEntry) -> None:
    trial, outcome = entry.trial, entry.outcome
    tell(f"{entry.id}: {entry.state}" + (f", {outcome.reason}" if outcome is not None and outcome.reason else ""))
    facts: list[tuple[str, str]] = [
        ("workload", f"{trial.workload_name} {words_of(trial.options)}".strip()),
        ("target", f"{trial.target} {entry.environment.get('address', '')}".strip()),
        ("server", _server_words(entry)),
        ("load", _load_words(entry)),
    ]
    if entry.started is not None:
        facts.append(("begun", entry.started.astimezone().strftime("%Y-%m-%d %H:%M:%S")))
    if outcome is not None:
        counts = outcome.counts
        facts += [
            ("measured", format_duration(outcome.seconds)),
            ("driver", outcome.drive),
            (
                "transactions",
                f"{counts.committed:,} committed, {counts.rolled_back:,} rolled back, {counts.failed:,} failed, "
                f"{counts.unknown:,} unknown, {counts.skipped:,} skipped, {counts.unfinished:,} unfinished",
            ),
            ("statements", f"{counts.reads:,} reads, {counts.writes:,} writes, {counts.others:,} others"),
            ("retries", f"{counts.retries:,}, reconnects {counts.reconnects:,}"),
            ("throughput", f"{format_rate(outcome.tps)} tps, {format_rate(outcome.qps)} qps"),
            (
                "client",
                f"{outcome.health.cpu_share * 100:.0f} % of a core, "
                f"{outcome.health.cpu_us_per_query:.1f} µs a statement"
                + (f", bound: {outcome.health.why}" if outcome.health.bound else ""),
            ),
        ]
    for line in table(["", ""], [(name, value) for name, value in facts if value], left=(0, 1))[1:]:
        tell(line)
    if outcome is None:
        return
    tell()
    kinds = [
        ("response, from the intended start", outcome.response),
        ("service, from the actual start", outcome.service),
    ]
    kinds += [("lag between the starts", outcome.lag)]
    rows = [(name, latency_of(data)) for name, data in kinds]
    head = ["ms", "mean", "p50", "p95", "p99", "p99.9", "max"]
    for line in table(head, [(name, *_latency_cells(found)) for name, found in rows]):
        tell(line)
    for remark in trial_remarks([entry]):
        tell(remark)
    points = thinned(opened.samples(entry.id), _COURSE_LINES)
    if points:
        tell()
        body = [
            (
                f"{point.begin:.1f}",
                format_rate(point.tps),
                ms_words(point.response, "p95"),
                f"{point.errors * point.seconds:.0f}",
                str(point.connected),
            )
            for point in points
        ]
        for line in table(["second", "tps", "p95", "errors", "connected"], body, left=()):
            tell(line)


def _latency_cells(found: Latency | None) -> list[str]:
    return [ms_words(found, name) for name in ("mean", "p50", "p95", "p99", "p999", "max")]


def _server_words(entry: TrialEntry) -> str:
    server = entry.environment.get("server") or {}
    words = [str(server.get("version", ""))]
    words += [f"isolation {server['isolation']}"] if server.get("isolation") else []
    if server.get("durable_commit") is not None:
        words.append("durable commit" if server["durable_commit"] else "commit NOT durable")
    return ", ".join(word for word in words if word)


def _load_words(entry: TrialEntry) -> str:
    load = entry.trial.load
    words = [plural(load.connections, "connection")]
    words.append(f"{load.rate:g} arrivals/s, {load.arrivals}" if load.rate is not None else "closed loop")
    words += [load.isolation] if load.isolation else []
    words += [f"seed {load.seed}"]
    return ", ".join(words)
