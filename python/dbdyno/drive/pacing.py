"""When transactions are due: closed loop (as soon as the last one ended) or open loop (a seeded schedule).

The open loop neither drops nor delays silently: an arrival that finds every terminal busy waits, its response
time counts from when it was due, and one that was never begun is counted as unfinished.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from dbdyno._engine import Arrivals
from dbdyno.drive.job import Stop
from dbdyno.model.trial import Load

_FINE_NS = 500_000  # below this, sleep exactly instead of waiting on an event


class Clock:
    """The run's time on the monotonic clock, in ns; ``end_ns`` may move nearer when the run is stopped."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.begin_ns = 0
        self.measure_ns = 0
        self.end_ns: int | None = None  # None: by count
        self.ending = threading.Event()  # no transaction begins any more

    @staticmethod
    def now_ns() -> int:
        """Monotonic ns."""
        return time.perf_counter_ns()

    def over(self, at_ns: int) -> bool:
        """Whether a transaction due at ``at_ns`` is outside of the run."""
        return self.ending.is_set() or (self.end_ns is not None and at_ns >= self.end_ns)

    def sleep_until(self, due_ns: int) -> bool:
        """Wait for ``due_ns``; False when the run ended first."""
        while True:
            left = due_ns - self.now_ns()
            if left <= 0:
                return not self.ending.is_set()
            if left > 2 * _FINE_NS:
                if self.ending.wait((left - _FINE_NS) / 1e9):
                    return False
            else:
                time.sleep(left / 1e9)


class Pacing(Protocol):
    """Deals transactions to terminals."""

    def next(self, terminal: int, last: int) -> tuple[int, int, int] | None:
        """(stream's terminal, transaction number, intended start ns) of the next transaction, or None at the end.

        Blocks until it is due. ``last`` is the number that this terminal had before, 0 at first.
        """

    def never_begun(self) -> int:
        """Arrivals that were due before the end and that no terminal began."""

    def arrived(self) -> int:
        """Arrivals that were due in the measured interval (open loop), else 0."""


class ClosedLoop:
    """Every terminal begins its next transaction when the last one ended; a run by count deals them evenly."""

    def __init__(self, load: Load, clock: Clock) -> None:
        self._clock = clock
        self._quota = None
        if load.transactions is not None:
            share, rest = divmod(load.transactions, load.connections)
            self._quota = [share + (1 if number < rest else 0) for number in range(load.connections)]

    def next(self, terminal: int, last: int) -> tuple[int, int, int] | None:
        """See :class:`Pacing`."""
        if self._quota is not None and last >= self._quota[terminal - 1]:
            return None
        now = self._clock.now_ns()
        return None if self._clock.over(now) else (terminal, last + 1, now)

    def never_begun(self) -> int:
        """See :class:`Pacing`."""
        return 0

    def arrived(self) -> int:
        """See :class:`Pacing`."""
        return 0


class OpenLoop:
    """Arrivals of a seeded schedule, taken by whichever terminal is free.

    Values are keyed by the arrival's number (stream terminal 0), so that none depends on who took it.
    """

    def __init__(self, load: Load, clock: Clock) -> None:
        assert load.rate is not None
        self._clock = clock
        self._schedule = Arrivals(load.seed, load.rate, "even" if load.arrivals == "even" else "poisson")
        self._limit = load.transactions
        self._lock = threading.Lock()
        self._number = 0
        self._due_ns: int | None = None
        self._measured = 0

    def _advance(self) -> tuple[int, int] | None:
        """The next arrival inside the run, or None (lock held)."""
        if self._limit is not None and self._number >= self._limit:
            return None
        if self._due_ns is None:
            self._due_ns = self._clock.begin_ns + self._schedule.next_ns()
        if self._clock.end_ns is not None and self._due_ns >= self._clock.end_ns:
            return None  # kept: it is not due inside the run
        due, self._due_ns = self._due_ns, None
        self._number += 1
        self._measured += due >= self._clock.measure_ns
        return self._number, due

    def next(self, terminal: int, last: int) -> tuple[int, int, int] | None:
        """See :class:`Pacing`."""
        if self._clock.ending.is_set():
            return None
        with self._lock:
            arrival = self._advance()
        if arrival is None:
            return None
        number, due = arrival
        if not self._clock.sleep_until(due) and due > self._clock.now_ns():
            with self._lock:  # the run was stopped before it was due: it never arrived
                self._measured -= due >= self._clock.measure_ns
            return None
        return 0, number, due

    def never_begun(self) -> int:
        """See :class:`Pacing`. Called once, when all terminals have ended."""
        count, now = 0, self._clock.now_ns()
        end = now if self._clock.end_ns is None else min(self._clock.end_ns, now)
        self._clock.end_ns = end
        with self._lock:
            while (arrival := self._advance()) is not None:
                count += arrival[1] >= self._clock.measure_ns
        return count

    def arrived(self) -> int:
        """See :class:`Pacing`."""
        return self._measured
