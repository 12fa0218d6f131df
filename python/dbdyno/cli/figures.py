"""Figures of trials as rows of text, the same in ``bench``, ``run`` and ``show``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from dbdyno.analysis.latency import Latency, latency_of
from dbdyno.analysis.summary import Cell
from dbdyno.cli.output import plural, table
from dbdyno.model.units import format_duration, format_ms, format_rate
from dbdyno.record.entries import TrialEntry

TRIAL_HEAD = ("tps", "qps", "mean", "p50", "p95", "p99", "max", "errors", "retries", "client")


def trial_figures(entry: TrialEntry) -> list[str]:
    """The cells of ``TRIAL_HEAD``: rates per second, response times in ms, the client's share of a core."""
    outcome = entry.outcome
    if outcome is None or outcome.state == "failed":
        return [entry.state, *[""] * (len(TRIAL_HEAD) - 1)]
    response = latency_of(outcome.response)
    share = f"{outcome.health.cpu_share * 100:.0f} %"
    return [
        format_rate(outcome.tps),
        format_rate(outcome.qps),
        *_latencies(response),
        f"{sum(outcome.errors.values()):,}",
        f"{outcome.counts.retries:,}",
        f"bound {share}" if outcome.health.bound else share,
    ]


def _latencies(response: Latency | None) -> list[str]:
    if response is None:
        return ["–"] * 5
    return [format_ms(value) for value in (response.mean, response.p50, response.p95, response.p99, response.max)]


def trial_table(entries: Sequence[TrialEntry], keys: Sequence[str]) -> list[str]:
    """A table of trials. ``keys`` names the leading columns: of workload, target, c, round."""
    values: dict[str, Callable[[TrialEntry], str]] = {
        "workload": lambda entry: entry.trial.workload,
        "target": lambda entry: entry.trial.target,
        "c": lambda entry: str(entry.trial.connections),
        "round": lambda entry: str(entry.trial.round),
    }
    rows = [[*(values[key](entry) for key in keys), *trial_figures(entry)] for entry in entries]
    return table([*keys, *TRIAL_HEAD], rows, left=[i for i, key in enumerate(keys) if key in ("workload", "target")])


def cell_table(found: Iterable[Cell], rounds: int) -> list[str]:
    """A table of cells: the rounds of each workload, target and connection count as one line."""
    head = ["workload", "target", "c", "rounds", "tps", "from", "to", "p95", "p99", "errors", "client"]
    rows = []
    for cell in found:
        counted = sum(each.counts for each in cell.rounds)
        share = f"{cell.cpu_share * 100:.0f} %" if cell.cpu_share is not None else ""
        rows.append(
            [
                cell.workload,
                cell.target,
                str(cell.connections),
                f"{counted}/{rounds}",
                *(_rate(value) for value in (cell.mean_tps, cell.low_tps, cell.high_tps)),
                *(ms_words(cell.response, name) for name in ("p95", "p99")),
                f"{sum(cell.errors.values()):,}",
                f"bound {share}" if cell.bound_rounds else share,
            ]
        )
    return table(head, rows, left=(0, 1))


def _rate(value: float | None) -> str:
    return format_rate(value) if value is not None else "–"


def ms_words(latency: Latency | None, name: str) -> str:
    """One figure of a latency, in ms; a dash when there is none."""
    return format_ms(getattr(latency, name)) if latency is not None else "–"


def trial_remarks(entries: Sequence[TrialEntry], notes: bool = True) -> list[str]:
    """What the figures do not say: failures, errors by code, outages, a client that was the bottleneck."""
    found: list[str] = []
    errors: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    away: list[str] = []
    bound: list[str] = []
    reasons: list[str] = []
    said: list[str] = []
    for entry in entries:
        outcome = entry.outcome
        if outcome is None:
            continue
        where = short_name(entry)
        if outcome.state == "failed":
            found.append(f"{where} failed: {outcome.reason}")
        elif outcome.state == "interrupted":
            found.append(f"{where} was interrupted after {format_duration(outcome.seconds)}")
        errors.update(outcome.errors)
        endings.update({what: getattr(outcome.counts, what) for what in _ENDINGS})
        if outcome.outages:
            away.append(where)
        if outcome.health.bound:
            bound.append(where)
            reasons.append(outcome.health.why)
        said += [f"{where}: {note}" for note in outcome.notes]
    if errors:
        found.append("errors: " + ", ".join(f"{code} × {count:,}" for code, count in errors.most_common()))
    ended = [f"{count:,} {what}" for what, count in endings.items() if count]
    if ended:
        found.append(f"transactions not committed: {', '.join(ended)}")
    if away:
        found.append(f"connections were lost: {_some(away)}")
    if bound:
        why = f" ({reasons[0]})" if reasons[0] else ""
        found.append(f"the client was the bottleneck, so the figure is a lower bound: {_some(bound)}{why}")
    return [*found, *(said if notes else [])]


_ENDINGS = ("failed", "unknown", "skipped", "unfinished")


def _some(names: Sequence[str]) -> str:
    return "; ".join(names) if len(names) <= 2 else f"{names[0]} and {plural(len(names) - 1, 'more trial')}"


def short_name(entry: TrialEntry) -> str:
    """Which trial, in words."""
    trial = entry.trial
    return f"{trial.workload} on {trial.target} at c={trial.connections}, round {trial.round}"
