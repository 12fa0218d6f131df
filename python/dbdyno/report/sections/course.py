"""Section 4: the course of any trial over time."""

from __future__ import annotations

from typing import Any

from dbdyno.analysis.series import Point, thinned
from dbdyno.record.entries import TrialEntry
from dbdyno.report.document import Block, Chart, Paragraph, Section
from dbdyno.report.material import Material

# All trials of a campaign share this many points, so that a campaign of days stays a page that opens at once.
ALL_POINTS = 24_000
MOST_POINTS = 600  # of one trial: a chart is about that many pixels wide


def section(material: Material) -> Section:
    """The course over time."""
    words = material.words
    limit = max(50, min(MOST_POINTS, ALL_POINTS // max(1, len(material.trials))))
    trials = [found for entry in material.trials if (found := _trial(material, entry, limit))]
    blocks: list[Block] = [Paragraph(words("course.nothing"))]
    if trials:
        chosen = _first_choice(material, trials)
        data = {"trials": trials, "chosen": chosen}
        blocks = [Chart("timeline", words("chart.course"), data)]
    return Section("course", words("heading.course"), tuple(blocks))


def _trial(material: Material, entry: TrialEntry, limit: int) -> dict[str, Any] | None:
    points = thinned(material.samples(entry.id), limit)
    if not points:
        return None
    trial = entry.trial
    outages = entry.outcome.outages if entry.outcome else ()
    return {
        "workload": trial.workload,
        "target": trial.target,
        "connections": trial.connections,
        "round": trial.round,
        "state": entry.state,
        "label": _label(material, entry),
        "begin": [round(point.begin, 3) for point in points],
        "seconds": _lengths(points),
        "tps": [float(f"{point.tps:.5g}") for point in points],
        "p50": [_figure(point, "p50") for point in points],
        "p95": [_figure(point, "p95") for point in points],
        "errors": [float(f"{point.errors:.4g}") for point in points],
        "outages": [
            [round(outage.begin, 3), round(outage.end, 3), outage.connection, outage.code] for outage in outages[:100]
        ],
    }


def _lengths(points: list[Point]) -> float | list[float]:
    """One figure when all points are equally long, as most are."""
    lengths = [round(point.seconds, 3) for point in points]
    return lengths[0] if len(set(lengths)) == 1 else lengths


def _figure(point: Point, name: str) -> float | None:
    return float(f"{getattr(point.response, name):.4g}") if point.response else None


def _label(material: Material, entry: TrialEntry) -> str:
    trial, words = entry.trial, material.words
    parts = [
        trial.target,
        words.count("connections", trial.connections),
        words("round", number=trial.round),
    ]
    if entry.state != "done":
        parts.append(words(f"state.{entry.state}"))
    return " · ".join(parts)


def _first_choice(material: Material, trials: list[dict[str, Any]]) -> list[int | None]:
    """The trials shown at first: the baseline and another target in the same cell, at the most connections."""

    def find(target: str) -> int | None:
        candidates = [
            (each["workload"] == material.workloads[0], each["connections"], -each["round"], -index)
            for index, each in enumerate(trials)
            if each["target"] == target
        ]
        return -max(candidates)[3] if candidates else None

    first = find(material.targets[0])
    second = find(material.targets[1]) if len(material.targets) > 1 else None
    return [second, None] if first is None else [first, second]
