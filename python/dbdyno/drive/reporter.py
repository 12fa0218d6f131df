"""The reporter: takes the tally's figures at every interval and hands them on as samples.

Runs in a thread of its own; a slow receiver delays the next sample (which then covers more time), never a terminal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dbdyno.drive.health import HealthMeter, judge
from dbdyno.drive.pacing import Clock
from dbdyno.drive.tally import Figures, Tally
from dbdyno.model.sample import Health, KindFigures, Sample

KINDS_EVERY_S = 10.0


class Reporter:
    """Emits samples from ``start`` to ``finish``; ``total`` is the measured interval's figures."""

    def __init__(
        self,
        clock: Clock,
        tally: Tally,
        on_sample: Callable[[Sample], None],
        meter: HealthMeter,
        *,
        interval_s: float,
        several_kinds: bool,
        connected: Callable[[], int],
    ) -> None:
        self._clock = clock
        self._tally = tally
        self._on_sample = on_sample
        self._meter = meter
        self._interval_ns = max(1, int(interval_s * 1e9))
        self._several_kinds = several_kinds
        self._connected = connected
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._body, name="reporter", daemon=True)
        self._last_ns = 0
        self._measuring = False
        self._kinds = Figures()  # of the samples since kinds were last reported
        self._kinds_ns = 0
        self._cpu_begin = 0.0
        self._cpu_end = 0.0
        self._open_loop = meter.open_loop
        self._in_process = meter.in_process
        self.total = Figures()
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin; the clock is set."""
        self._last_ns = self._clock.begin_ns
        self._cpu_begin = time.process_time()
        self._thread.start()

    def finish(self) -> None:
        """All terminals have ended: emit what is left. ``total`` is complete afterwards."""
        self._end.set()
        self._thread.join()

    def total_health(self, seconds: float) -> Health:
        """Health over the measured interval."""
        counts = self.total.frozen_counts()
        return judge(
            self._cpu_end - self._cpu_begin,
            max(seconds, (self._last_ns - self._clock.measure_ns) / 1e9),
            counts.queries,
            self.total.lag,
            self.total.service,
            open_loop=self._open_loop,
            in_process=self._in_process,
        )

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
        self._emit(self._tally.take(), clock.now_ns())

    def _begin_measuring(self) -> None:
        """The warm-up ends. Its boundary is the clock's, whenever this thread woke."""
        figures = self._tally.take_warmup(True)
        if self._clock.measure_ns > self._clock.begin_ns:
            self._emit(figures, min(self._clock.measure_ns, self._clock.now_ns()))
        self._measuring = True
        self._last_ns = self._clock.measure_ns
        self._kinds_ns = self._last_ns
        self._cpu_begin = time.process_time()

    def _emit(self, figures: Figures, now: int) -> None:
        seconds = (now - self._last_ns) / 1e9
        counts = figures.frozen_counts()
        if self._measuring:
            self.total.merge(figures)
        self._cpu_end = time.process_time()
        sample = Sample(
            second=(self._last_ns - self._clock.measure_ns) / 1e9,
            seconds=seconds,
            counts=counts,
            errors=dict(figures.errors),
            response=figures.response.encode(),
            service=figures.service.encode(),
            health=self._meter.lap(counts.queries, figures.lag, figures.service),
            connected=self._connected(),
            kinds=self._kinds_if_due(figures, now),
        )
        self._last_ns = now
        try:
            if self.failure is None:
                self._on_sample(sample)
        except BaseException as error:  # the run ends with this error; nothing of it is lost silently
            self.failure = error

    def _kinds_if_due(self, figures: Figures, now: int) -> dict[str, KindFigures]:
        if not self._several_kinds or not self._measuring:
            return {}
        self._kinds.merge(figures)
        if (now - self._kinds_ns) / 1e9 < KINDS_EVERY_S and not self._end.is_set():
            return {}
        frozen = dict(self._kinds.frozen_kinds())
        self._kinds.clear()
        self._kinds_ns = now
        return frozen
