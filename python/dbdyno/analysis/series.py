"""The course of one trial over time, thinned to what a chart can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analysis.latency import Latency, latency_of
from dbdyno.model.sample import Sample


@dataclass(frozen=True, slots=True)
class Point:
    """Some neighbouring samples as one. Times in seconds since measuring began, rates per second."""

    begin: float
    seconds: float
    tps: float
    qps: float
    errors: float  # failed attempts per second
    response: Latency | None
    connected: int  # fewest connections open at an end of these intervals
    bound: bool


def thinned(samples: Sequence[Sample], limit: int) -> list[Point]:
    """At most ``limit`` points, each of equally many samples (the last of the rest).

    Counts are added and histograms merged, so nothing is lost but resolution in time: a percentile of a point is
    one of all its transactions. Samples of length zero are left out.
    """
    useful = [sample for sample in samples if sample.seconds > 0]
    step = max(1, math.ceil(len(useful) / limit))
    # Warm-up and measured interval never share a point.
    cold = [sample for sample in useful if sample.second < 0]
    warm = [sample for sample in useful if sample.second >= 0]
    return [_point(part[start : start + step]) for part in (cold, warm) for start in range(0, len(part), step)]


def _point(samples: Sequence[Sample]) -> Point:
    seconds = sum(sample.seconds for sample in samples)
    return Point(
        begin=samples[0].second,
        seconds=seconds,
        tps=sum(sample.counts.committed for sample in samples) / seconds,
        qps=sum(sample.counts.queries for sample in samples) / seconds,
        errors=sum(sum(sample.errors.values()) for sample in samples) / seconds,
        response=latency_of(*(sample.response for sample in samples)),
        connected=min(sample.connected for sample in samples),
        bound=any(sample.health.bound for sample in samples),
    )
