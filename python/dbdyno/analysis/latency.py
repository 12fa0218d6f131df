"""Percentiles of latencies from encoded histograms, merged where several trials or intervals are one population."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dbdyno._engine import Histogram
from dbdyno.model.units import ms


@dataclass(frozen=True, slots=True)
class Latency:
    """Figures of a latency distribution, in milliseconds. ``count`` is the number of values."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


def merged(encoded: Iterable[bytes]) -> Histogram:
    """One histogram of all the values in these (HdrHistogram V2, ns). Empty ones count as nothing.

    Merging keeps counts, so a percentile of the whole is exact to the histogram's resolution; percentiles of parts are
    never averaged.
    """
    whole = Histogram()
    for data in encoded:
        if data:
            whole.merge(Histogram.decode(data))
    return whole


def latency(histogram: Histogram) -> Latency | None:
    """The usual figures of a histogram; None when it holds no value."""
    if histogram.count == 0:
        return None
    p50, p95, p99, p999 = (ms(histogram.percentile(p)) for p in (50.0, 95.0, 99.0, 99.9))
    return Latency(histogram.count, ms(histogram.mean), p50, p95, p99, p999, ms(histogram.max))


def latency_of(*encoded: bytes) -> Latency | None:
    """:func:`latency` of encoded histograms taken together."""
    return latency(merged(encoded))
