"""Campaigns and trials as JSON: what ``--json`` prints and ``report.json`` holds.

One object a trial. Latencies are milliseconds, rates per second, CPU microseconds per query. Figures that do not
exist (a trial without an outcome, a percentile without a value) are null; ``state`` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.comparison import Comparison
from dbdyno.analysis.latency import latency_of
from dbdyno.analysis.verdict import Verdict
from dbdyno.model.sample import Outcome
from dbdyno.record.entries import CampaignEntry, TrialEntry

LATENCY_FIELDS = ("mean", "p50", "p95", "p99", "p999", "max")
COUNT_FIELDS = (
    "scheduled",
    "committed",
    "rolled_back",
    "failed",
    "unknown",
    "skipped",
    "unfinished",
    "retries",
    "reconnects",
)


def trial_json(entry: TrialEntry) -> dict[str, Any]:
    """One trial as a JSON object; the fields are always the same, whatever its state."""
    trial, outcome = entry.trial, entry.outcome
    counts = outcome.counts if outcome else None
    return {
        "id": entry.id,
        "workload": trial.workload,
        "target": trial.target,
        "connections": trial.connections,
        "round": trial.round,
        "state": entry.state,
        "reason": outcome.reason if outcome else "",
        "started": entry.started.isoformat() if entry.started else None,
        "seconds": outcome.seconds if outcome else None,
        **{name: getattr(counts, name) if counts else None for name in COUNT_FIELDS},
        "tps": round(outcome.tps, 3) if outcome else None,
        "qps": round(outcome.qps, 3) if outcome else None,
        "latency_ms": _latency(outcome.response if outcome else b""),
        "service_ms": _latency(outcome.service if outcome else b""),
        "lag_ms": _latency(outcome.lag if outcome else b""),
        "errors": dict(outcome.errors) if outcome else {},
        "statements": {
            "read": counts.reads if counts else None,
            "write": counts.writes if counts else None,
            "other": counts.others if counts else None,
        },
        "generator": _generator(outcome),
        "rate": trial.load.rate,
        "drive": outcome.drive if outcome else "",
        "program": outcome.program if outcome else "",
        "outages": [asdict(outage) for outage in outcome.outages] if outcome else [],
        "notes": list(outcome.notes) if outcome else [],
    }


def campaign_json(
    campaign: CampaignEntry | None, trials: Iterable[TrialEntry], comparisons: Iterable[Comparison] = ()
) -> dict[str, Any]:
    """A campaign as a JSON object: ``{"trials": […], …}``; without a campaign just the trials."""
    entries = list(trials)
    document: dict[str, Any] = {"trials": [trial_json(entry) for entry in entries]}
    if campaign is None:
        return document
    document["campaign"] = {
        "id": campaign.id,
        "name": campaign.name,
        "created": campaign.created.isoformat(),
        "state": campaign.state,
        "dbdyno": campaign.version,
        "baseline": campaign.plan.baseline_name,
        "plan": campaign.plan_text,
    }
    document["comparisons"] = [comparison_json(comparison) for comparison in comparisons]
    document["environments"] = _environments(entries)
    return document


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as a JSON object; ratios are other/baseline of the metric."""
    return {
        "workload": comparison.workload,
        "baseline": comparison.baseline,
        "other": comparison.other,
        "metric": comparison.metric,
        **_verdict(comparison.overall),
        "mixed": comparison.mixed,
        "by_connections": {str(count): _verdict(verdict) for count, verdict in comparison.cells.items()},
        "left_out": list(comparison.left_out),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "answer": verdict.answer.value,
        "reason": verdict.reason.value,
        "ratio": verdict.ratio,
        "low": verdict.low,
        "high": verdict.high,
        "no_difference_larger_than": verdict.limit,
        "confidence": verdict.confidence,
        "rounds": verdict.rounds,
        "paired": verdict.paired,
    }


def _latency(encoded: bytes) -> dict[str, float | None]:
    figures = latency_of(encoded)
    return {name: getattr(figures, name) if figures else None for name in LATENCY_FIELDS}


def _generator(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"cpu_us_per_query": None, "cpu_share": None, "bound": None, "why": ""}
    health = outcome.health
    return {
        "cpu_us_per_query": round(health.cpu_us_per_query, 3),
        "cpu_share": round(health.cpu_share, 4),
        "bound": health.bound,
        "why": health.why,
    }


def _environments(entries: list[TrialEntry]) -> dict[str, Mapping[str, Any]]:
    """Target to the environment of its first trial that has one; every trial's own is in the store."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        if entry.environment:
            found.setdefault(entry.trial.target, entry.environment)
    return found
