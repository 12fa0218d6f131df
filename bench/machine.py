"""How quiet the machine was: a virtual machine's processors are taken away now and then, and nobody says so.

A program that does nothing but read the clock sees it: every gap between two readings in which it did not run.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context

#: Two readings of the clock in a row take well under a microsecond; an interrupt some ten.
GAP_NS = 100_000


@dataclass(frozen=True)
class Quiet:
    """Share of the time that a spinning program did not run, and its longest gap."""

    away: float
    longest_ms: float


def spin(seconds: float = 0.5) -> Quiet:
    """One spinning process a processor, each on its own."""
    cores = sorted(os.sched_getaffinity(0))
    with ProcessPoolExecutor(len(cores), mp_context=get_context("fork")) as pool:
        found = list(pool.map(_spin, cores, [seconds] * len(cores)))
    return Quiet(sum(away for away, _ in found) / len(found), max(longest for _, longest in found) * 1e3)


def _spin(core: int, seconds: float) -> tuple[float, float]:
    os.sched_setaffinity(0, {core})
    clock = time.perf_counter_ns
    begin = last = clock()
    end = begin + int(seconds * 1e9)
    away = longest = 0
    while last < end:
        now = clock()
        gap = now - last
        if gap > GAP_NS:
            away += gap
            longest = max(longest, gap)
        last = now
    return away / (last - begin), longest / 1e9


class StallWatch:
    """Notices while something else runs that the processors were taken away: a real-time process on each of them
    sleeps 2 ms again and again and tells by how much it overslept at most."""

    def __init__(self) -> None:
        context = get_context("fork")
        self._stop = context.Event()
        self._worst = [context.Value("d", 0.0) for _ in os.sched_getaffinity(0)]
        self._processes = [
            context.Process(target=_doze, args=(core, self._stop, worst), daemon=True)
            for core, worst in zip(sorted(os.sched_getaffinity(0)), self._worst, strict=True)
        ]
        for process in self._processes:
            process.start()

    def reset(self) -> None:
        """Forget what was seen so far."""
        for worst in self._worst:
            worst.value = 0.0

    @property
    def worst_ms(self) -> float:
        """Longest time by which one overslept since the last reset."""
        return float(max(worst.value for worst in self._worst)) * 1e3

    def close(self) -> None:
        """End the watchers."""
        self._stop.set()
        for process in self._processes:
            process.join(5)


def _doze(core: int, stop, worst) -> None:  # type: ignore[no-untyped-def]
    os.sched_setaffinity(0, {core})
    with suppress(PermissionError):  # without the right to it, it notices other programs, too
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    while not stop.is_set():
        begin = time.perf_counter()
        time.sleep(0.002)
        worst.value = max(worst.value, time.perf_counter() - begin - 0.002)
