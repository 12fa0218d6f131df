"""The reporter: takes the tally's figures at every interval and hands them on as samples.

Runs in a thread of its own; a slow receiver delays the next sample (which then covers more time), never a terminal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dbdyno.drive.emitter import Emitter
from dbdyno.drive.pacing import Clock
from dbdyno.drive.tally import Figures, Tally


class Reporter:
    """Emits samples from ``start`` to ``finish``; the emitter's ``total`` is complete then."""

    def __init__(
        self, clock: Clock, tally: Tally, emitter: Emitter, *, interval_s: float, connected: Callable[[], int]
    ) -> None:
        self._clock = clock
        self._tally = tally
        self._emitter = emitter
        self._interval_ns = max(1, int(interval_s * 1e9))
        self._connected = connected
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._body, name="reporter", daemon=True)
        self._last_ns = 0
        self._measuring = False

    def start(self) -> None:
        """Begin; the clock is set."""
        self._last_ns = self._clock.begin_ns
        self._thread.start()

    def finish(self) -> None:
        """All terminals have ended: emit what is left."""
        self._end.set()
        self._thread.join()

    def _body(self) -> None:
        clock = self._clock
        while not self._end.is_set():
            due = self._last_ns + self._interval_ns
            if not self._measuring and due > clock.measure_ns:
                due = max(clock.measure_ns, clock.now_ns())
            self._end.wait(max(0.0, (due - clock.now_ns()) / 1e9))
            if self._end.is_set():
                break
            now = clock.now_ns()
            if not self._measuring and now >= clock.measure_ns:
                self._begin_measuring()
            elif clock.end_ns is None or now < clock.end_ns:
                self._emit(self._tally.take() if self._measuring else self._tally.take_warmup(False), now)
        if not self._measuring:
            self._begin_measuring()
        self._emit(self._tally.take(), clock.now_ns(), last=True)

    def _begin_measuring(self) -> None:
        """The warm-up ends. Its boundary is the clock's, whenever this thread woke."""
        figures = self._tally.take_warmup(True)
        if self._clock.measure_ns > self._clock.begin_ns:
            self._emit(figures, min(self._clock.measure_ns, self._clock.now_ns()))
        self._measuring = True
        self._last_ns = self._clock.measure_ns
        self._emitter.begin_measuring()

    def _emit(self, figures: Figures, now: int, *, last: bool = False) -> None:
        begin_ns, self._last_ns = self._last_ns, now
        self._emitter.emit(
            figures,
            begin_s=(begin_ns - self._clock.measure_ns) / 1e9,
            seconds=(now - begin_ns) / 1e9,
            warm=not self._measuring,
            connected=self._connected(),
            last=last,
        )
