"""Generator health: was the client the bottleneck?

``bound`` (architecture.md): the client was over 85 % busy, or in an open loop transactions began later than a
tenth of the median service time. Python runs one thread at a time, so one core is all that the DB-API drive has.
"""

from __future__ import annotations

import time

from dbdyno._engine import Histogram
from dbdyno.model.sample import Health

BUSY_SHARE = 0.85
LAG_SHARE = 0.1


class HealthMeter:
    """Measures this process between two calls of :meth:`lap`."""

    def __init__(self, *, open_loop: bool, in_process: bool) -> None:
        self.open_loop = open_loop
        self.in_process = in_process
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def lap(self, queries: int, lag: Histogram, service: Histogram, busy: float | None = None) -> Health:
        """Health since the last lap; ``queries`` answered meanwhile, ``busy`` the event loop's share of work."""
        wall, cpu = time.perf_counter(), time.process_time()
        elapsed, cpu_s = wall - self._wall, cpu - self._cpu
        self._wall, self._cpu = wall, cpu
        return judge(
            cpu_s,
            elapsed,
            queries,
            lag,
            service,
            open_loop=self.open_loop,
            in_process=self.in_process,
            busy=busy,
        )


def judge(
    cpu_s: float,
    elapsed_s: float,
    queries: int,
    lag: Histogram,
    service: Histogram,
    *,
    open_loop: bool,
    in_process: bool,
    busy: float | None = None,
) -> Health:
    """Decide ``bound`` from CPU seconds, elapsed seconds, the histograms of lag and service time (ns) and, where
    there is an event loop, its share of work."""
    share = cpu_s / elapsed_s if elapsed_s > 0 else 0.0
    lag_p99 = lag.percentile(99.0) if lag.count else 0
    bound, why = False, ""
    if in_process:
        why = "the database shares the process"
    elif busy is not None:
        bound = busy > BUSY_SHARE
        why = f"the event loop was busy {busy * 100:.0f} % of the time" if bound else ""
    elif share > BUSY_SHARE:
        bound, why = True, f"the client used {share * 100:.0f} % of a core"
    if open_loop and service.count and lag_p99 > LAG_SHARE * service.percentile(50.0):
        bound = True
        why = f"1 % of the transactions began {lag_p99 / 1e6:.2f} ms late or later"
    return Health(
        cpu_s=cpu_s,
        cpu_share=share,
        cpu_us_per_query=cpu_s * 1e6 / queries if queries else 0.0,
        loop_busy=busy,
        lag_p99_ns=lag_p99,
        bound=bound,
        why=why,
    )
