"""Cells: all rounds of one workload on one target at one connection count, summed up.

Only trials that are ``done`` are evidence: their rounds give the mean and the verdicts. A failed or interrupted
trial's figures stay visible with its round, marked, and its errors count.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dbdyno.analysis.latency import Latency, latency_of
from dbdyno.model.sample import Counts, Outcome
from dbdyno.record.entries import TrialEntry


@dataclass(frozen=True, slots=True)
class Round:
    """One trial of a cell. Latencies in ms; None without an outcome (or without any committed transaction)."""

    number: int
    state: str
    tps: float | None
    response: Latency | None
    lag: Latency | None
    bound: bool

    @property
    def counts(self) -> bool:
        """Whether this round is evidence."""
        return self.state == "done" and self.tps is not None


@dataclass(frozen=True, slots=True)
class Cell:
    """Workload × target × connections. Throughput in transactions per second, latencies in ms."""

    workload: str
    target: str
    connections: int
    rounds: tuple[Round, ...]  # by number; failed and pending ones too
    mean_tps: float | None  # plain mean of the rounds that count
    low_tps: float | None
    high_tps: float | None
    sd_tps: float | None  # sample standard deviation; None with fewer than two rounds
    counts: Counts  # sum over all outcomes
    errors: Mapping[str, int]
    response: Latency | None  # of the rounds that count, histograms merged
    service: Latency | None
    lag: Latency | None
    cpu_us_per_query: float | None  # mean over the rounds that count
    cpu_share: float | None  # largest
    bound_rounds: int  # rounds in which the client was (or may have been) the bottleneck
    bound_reasons: tuple[str, ...]
    drives: tuple[str, ...]
    rate: float | None  # asked arrivals per second
    outages: int

    @property
    def tps_by_round(self) -> dict[int, float]:
        """The evidence for comparisons of throughput: round to tps."""
        return {entry.number: entry.tps for entry in self.rounds if entry.counts and entry.tps is not None}

    @property
    def p95_by_round(self) -> dict[int, float]:
        """The evidence for comparisons of latency: round to p95 of the response time, ms."""
        return {entry.number: entry.response.p95 for entry in self.rounds if entry.counts and entry.response}


def cells(trials: Iterable[TrialEntry]) -> list[Cell]:
    """Sum up trials by workload, target and connections, in order of first appearance; connections ascending."""
    groups: dict[tuple[str, str, int], list[TrialEntry]] = {}
    for entry in trials:
        trial = entry.trial
        groups.setdefault((trial.workload, trial.target, trial.connections), []).append(entry)
    workloads = list(dict.fromkeys(key[0] for key in groups))
    targets = list(dict.fromkeys(key[1] for key in groups))
    ordered = sorted(groups, key=lambda key: (workloads.index(key[0]), key[2], targets.index(key[1])))
    return [_cell(*key, groups[key]) for key in ordered]


def _cell(workload: str, target: str, connections: int, entries: list[TrialEntry]) -> Cell:
    entries = sorted(entries, key=lambda entry: entry.trial.round)
    rounds = tuple(_round(entry) for entry in entries)
    outcomes = [entry.outcome for entry in entries if entry.outcome is not None]
    evidence = [
        entry.outcome
        for entry, number in zip(entries, rounds, strict=True)
        if number.counts and entry.outcome is not None
    ]
    tps = [outcome.tps for outcome in evidence]
    errors: Counter[str] = Counter()
    for outcome in outcomes:
        errors.update(outcome.errors)
    return Cell(
        workload=workload,
        target=target,
        connections=connections,
        rounds=rounds,
        mean_tps=statistics.fmean(tps) if tps else None,
        low_tps=min(tps, default=None),
        high_tps=max(tps, default=None),
        sd_tps=statistics.stdev(tps) if len(tps) > 1 else None,
        counts=sum((outcome.counts for outcome in outcomes), Counts()),
        errors=dict(sorted(errors.items())),
        response=latency_of(*(outcome.response for outcome in evidence)),
        service=latency_of(*(outcome.service for outcome in evidence)),
        lag=latency_of(*(outcome.lag for outcome in evidence)),
        cpu_us_per_query=_mean(evidence),
        cpu_share=max((outcome.health.cpu_share for outcome in evidence), default=None),
        bound_rounds=sum(outcome.health.bound for outcome in evidence),
        bound_reasons=tuple(
            dict.fromkeys(outcome.health.why for outcome in evidence if outcome.health.bound and outcome.health.why)
        ),
        drives=tuple(dict.fromkeys(outcome.drive for outcome in outcomes if outcome.drive)),
        rate=next((outcome.rate for outcome in outcomes if outcome.rate is not None), None),
        outages=sum(len(outcome.outages) for outcome in outcomes),
    )


def _mean(evidence: list[Outcome]) -> float | None:
    return statistics.fmean(outcome.health.cpu_us_per_query for outcome in evidence) if evidence else None


def _round(entry: TrialEntry) -> Round:
    outcome = entry.outcome
    if outcome is None:
        return Round(entry.trial.round, entry.state, None, None, None, False)
    return Round(
        entry.trial.round,
        entry.state,
        outcome.tps,
        latency_of(outcome.response),
        latency_of(outcome.lag),
        outcome.health.bound,
    )
