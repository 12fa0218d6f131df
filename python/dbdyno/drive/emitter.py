"""Figures of a span of time become a sample; the measured ones are summed for the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable

from dbdyno.drive.health import HealthMeter, judge
from dbdyno.drive.tally import Figures
from dbdyno.model.sample import Health, KindFigures, Sample

KINDS_EVERY_S = 10.0


class Emitter:
    """Hands samples on, in order. ``total`` is the sum of the measured spans."""

    def __init__(self, on_sample: Callable[[Sample], None], meter: HealthMeter, *, several_kinds: bool) -> None:
        self._on_sample = on_sample
        self._meter = meter
        self._several_kinds = several_kinds
        self._kinds = Figures()  # of the samples since kinds were last reported
        self._kinds_s = 0.0
        self._cpu_begin = self._cpu_end = time.process_time()
        self._elapsed_s = self._busy_s = 0.0
        self.total = Figures()
        self.failure: BaseException | None = None

    def begin_measuring(self) -> None:
        """The warm-up is over."""
        self._cpu_begin = self._cpu_end = time.process_time()

    def emit(
        self,
        figures: Figures,
        *,
        begin_s: float,
        seconds: float,
        warm: bool,
        connected: int,
        last: bool = False,
        busy: float | None = None,
    ) -> None:
        """One span: ``begin_s`` after measuring began (negative: before), ``busy`` the event loop's share of work."""
        counts = figures.frozen_counts()
        if not warm:
            self.total.merge(figures)
            self._cpu_end = time.process_time()
            self._elapsed_s = begin_s + seconds
            self._busy_s += (busy or 0.0) * seconds
        sample = Sample(
            second=begin_s,
            seconds=seconds,
            counts=counts,
            errors=dict(figures.errors),
            response=figures.response.encode(),
            service=figures.service.encode(),
            health=self._meter.lap(counts.queries, figures.lag, figures.service, busy),
            connected=connected,
            kinds={} if warm else self._kinds_if_due(figures, begin_s + seconds, last),
        )
        try:
            if self.failure is None:
                self._on_sample(sample)
        except BaseException as error:  # the run ends with this error; nothing of it is lost silently
            self.failure = error

    def total_health(self, seconds: float, *, has_loop: bool = False) -> Health:
        """Health over the measured interval of that length."""
        elapsed = max(seconds, self._elapsed_s)
        return judge(
            self._cpu_end - self._cpu_begin,
            elapsed,
            self.total.frozen_counts().queries,
            self.total.lag,
            self.total.service,
            open_loop=self._meter.open_loop,
            in_process=self._meter.in_process,
            busy=self._busy_s / elapsed if has_loop and elapsed > 0 else None,
        )

    def _kinds_if_due(self, figures: Figures, at_s: float, last: bool) -> dict[str, KindFigures]:
        if not self._several_kinds:
            return {}
        self._kinds.merge(figures)
        if at_s - self._kinds_s < KINDS_EVERY_S and not last:
            return {}
        frozen = dict(self._kinds.frozen_kinds())
        self._kinds.clear()
        self._kinds_s = at_s
        return frozen
