"""Counting: one tally for all terminals of the process, swapped at every interval.

A terminal books a transaction once, at its end, under the tally's lock; the reporter takes the interval's
figures out and adds them to the totals. The sum of all measured samples is the outcome.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dbdyno._engine import Histogram
from dbdyno.model.sample import Counts, KindFigures

COMMITTED, ROLLED_BACK, FAILED, UNKNOWN, SKIPPED, UNFINISHED = (
    "committed", "rolled_back", "failed", "unknown", "skipped", "unfinished",
)  # fmt: skip


@dataclass(slots=True)
class Booking:
    """Everything about one ended transaction; times in ns on the monotonic clock."""

    kind: str
    result: str
    intended_ns: int
    begun_ns: int
    ended_ns: int
    retries: int = 0
    reconnects: int = 0
    reads: int = 0
    writes: int = 0
    others: int = 0
    rows: int = 0
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class KindTally:
    """Counts and response times of one transaction kind."""

    counts: dict[str, int] = field(default_factory=dict)
    response: Histogram = field(default_factory=Histogram)

    def figures(self) -> KindFigures:
        """Frozen, for a sample."""
        return KindFigures(Counts(**self.counts), self.response.encode())

    def merge(self, other: KindTally) -> None:
        """Add another tally of the same kind."""
        for name, value in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + value
        self.response.merge(other.response)


class Figures:
    """Counts, errors and histograms of a span of time."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(Counts.__slots__, 0)
        self.errors: Counter[str] = Counter()
        self.response = Histogram()
        self.service = Histogram()
        self.lag = Histogram()
        self.kinds: dict[str, KindTally] = {}

    def book(self, booking: Booking) -> None:
        """Add one transaction. Only committed ones enter the histograms of times."""
        counts = self.counts
        counts["scheduled"] += 1
        counts[booking.result] += 1
        counts["retries"] += booking.retries
        counts["reconnects"] += booking.reconnects
        counts["reads"] += booking.reads
        counts["writes"] += booking.writes
        counts["others"] += booking.others
        counts["rows"] += booking.rows
        if booking.errors:
            self.errors.update(booking.errors)
        self.lag.record(booking.begun_ns - booking.intended_ns)
        response_ns = booking.ended_ns - booking.intended_ns
        if booking.result == COMMITTED:
            self.response.record(response_ns)
            self.service.record(booking.ended_ns - booking.begun_ns)
        kind = self.kinds.setdefault(booking.kind, KindTally())
        for name, value in (
            ("scheduled", 1),
            (booking.result, 1),
            ("retries", booking.retries),
            ("reads", booking.reads),
            ("writes", booking.writes),
            ("others", booking.others),
            ("rows", booking.rows),
        ):
            if value:
                kind.counts[name] = kind.counts.get(name, 0) + value
        if booking.result == COMMITTED:
            kind.response.record(response_ns)

    def merge(self, other: Figures) -> None:
        """Add another span."""
        for name, value in other.counts.items():
            self.counts[name] += value
        self.errors.update(other.errors)
        self.response.merge(other.response)
        self.service.merge(other.service)
        self.lag.merge(other.lag)
        for name, kind in other.kinds.items():
            self.kinds.setdefault(name, KindTally()).merge(kind)

    def clear(self) -> None:
        """Back to nothing, keeping the buffers."""
        self.counts = dict.fromkeys(Counts.__slots__, 0)
        self.errors.clear()
        self.response.reset()
        self.service.reset()
        self.lag.reset()
        self.kinds.clear()

    def frozen_counts(self) -> Counts:
        """The counts as a value."""
        return Counts(**self.counts)

    def frozen_kinds(self) -> Mapping[str, KindFigures]:
        """The kinds as values."""
        return {name: kind.figures() for name, kind in self.kinds.items()}


class Tally:
    """The terminals' side (``book``, ``extra``) and the reporter's (``take``)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = Figures()
        self._spare = Figures()
        self._warmup: Figures | None = Figures()
        self.measured_from_ns = 0  # transactions intended earlier belong to the warm-up

    def book(self, booking: Booking) -> None:
        """Count one ended transaction."""
        with self._lock:
            if booking.intended_ns >= self.measured_from_ns:
                self._current.book(booking)
            elif self._warmup is not None:
                self._warmup.book(booking)
            # begun in the warm-up, ended after it: in no figure (as many begin inside and end after)

    def extra(self, *, skipped: int = 0, unfinished: int = 0) -> None:
        """Measured transactions that were due but never begun or never ended."""
        with self._lock:
            self._current.counts["scheduled"] += skipped + unfinished
            self._current.counts["skipped"] += skipped
            self._current.counts["unfinished"] += unfinished

    def reconnected(self, now_ns: int) -> None:
        """A connection was reopened outside of a transaction."""
        with self._lock:
            figures = self._current if now_ns >= self.measured_from_ns else self._warmup
            if figures is not None:
                figures.counts["reconnects"] += 1

    def take_warmup(self, last: bool) -> Figures:
        """The warm-up's figures since the last call; none are kept after the ``last``."""
        with self._lock:
            figures = self._warmup
            assert figures is not None
            self._warmup = None if last else Figures()
            return figures

    def take(self) -> Figures:
        """The measured figures since the last call. Valid until the next call."""
        with self._lock:
            self._spare.clear()
            self._current, self._spare = self._spare, self._current
            return self._spare
