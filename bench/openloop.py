"""Open loops: what a stall of the server does to response times, and whether every arrival is begun in time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from engine_client import above, capacity, run
from table import Result
from window import Missing

from dbdyno._engine import Arrivals
from fake import fake

CONNECTIONS = 64
SEED = 1  # of model.trial.Load
STALL_S = 1.0
STALL_AT_S = 4.0
P999_TOLERANCE = 0.05
RATES = (1, 10, 100, 1_000, 10_000, 50_000)
STARTED_TOLERANCE = 0.005
LATE_SHARE = 0.01


def measure(folder: Path, seconds: float = 12.0, rate_seconds: float = 10.0) -> list[Result]:
    """Both rows."""
    results = []
    for row, length in ((stall, seconds), (rates, rate_seconds)):
        try:
            results.append(row(folder, length))
        except Missing as error:
            results.append(Result("an open loop", "", "–", None, str(error)))
    return results


def stall(folder: Path, seconds: float) -> Result:
    """The server's process is stopped for a second in the middle of a run at half of capacity."""
    held: list[float] = []
    with fake(folder) as server:
        most = capacity(server.url, CONNECTIONS)
        rate = most / 2

        def freeze() -> None:
            time.sleep(STALL_AT_S)
            begin = time.monotonic()
            os.kill(server.pid, signal.SIGSTOP)
            time.sleep(STALL_S)
            os.kill(server.pid, signal.SIGCONT)
            held.append(time.monotonic() - begin)

        def watch(_pid: int, entry: dict[str, Any]) -> None:
            if entry.get("ready"):
                threading.Thread(target=freeze, daemon=True).start()

        ended = run(
            server.url, "--connections", str(CONNECTIONS), "--seconds", str(seconds), "--rate", f"{rate:.0f}",
            watch=watch,
        )  # fmt: skip
    response_s = ended.response.percentile(99.9) / 1e9
    expected_s = predicted(round(rate), most, seconds, held[0])
    slow = above(ended.service, 0.8e9 * held[0])
    met = abs(response_s / expected_s - 1) <= P999_TOLERANCE and slow == CONNECTIONS
    return Result(
        f"open loop at half of capacity, the server stands still for {held[0]:.2f} s",
        f"response-time p99.9 within {P999_TOLERANCE:.0%} of what queueing says; one slow request a connection",
        f"p99.9 {response_s:.3f} s, predicted {expected_s:.3f} s; {slow} slow requests on {CONNECTIONS} connections",
        met,
        f"{rate:,.0f}/s; service time p99.9 {ended.service.percentile(99.9) / 1e6:.1f} ms",
    )


def predicted(rate: int, most: float, seconds: float, held_s: float) -> float:
    """Response time p99.9, s: the run's own arrivals through one queue that serves ``most`` a second and nothing
    while the server is stopped (a work-conserving queue with an interruption)."""
    schedule = Arrivals(SEED, rate)
    stall_begin, stall_end = STALL_AT_S, STALL_AT_S + held_s
    times = []
    free = 0.0
    while (due := schedule.next_ns() / 1e9) < seconds:
        begin = max(due, free)
        free = begin + 1 / most
        if begin < stall_end and free > stall_begin:
            free = max(free, stall_end + 1 / most)
        times.append(free - due)
    return float(np.percentile(times, 99.9))


def arrivals(rate: int, seconds: float) -> int:
    """How many the seeded schedule has in that time."""
    schedule = Arrivals(SEED, rate)
    number = 0
    while schedule.next_ns() < seconds * 1e9:
        number += 1
    return number


def rates(folder: Path, seconds: float) -> Result:
    """Every arrival of the seeded schedule is begun, in time, or the run says that it failed."""
    worst, said, met = 0.0, [], True
    for rate in RATES:
        with fake(folder) as server:
            ended = run(server.url, "--connections", str(CONNECTIONS), "--seconds", str(seconds), "--rate", str(rate))
        due = arrivals(rate, seconds)
        started = ended.figures["scheduled"] - ended.figures["unfinished"]
        off = abs(started / due - 1)
        late_s = ended.lag.max / 1e9
        kept = off <= STARTED_TOLERANCE and late_s <= LATE_SHARE * seconds
        failed = ended.figures["state"] == "failed"
        met = met and kept != failed
        if kept:
            worst = max(worst, off)
        said.append(
            f"{rate:,}/s {'failed, and says so' if failed else f'{started:,} of {due:,}, latest {late_s * 1e3:.1f} ms'}"
        )
        print(f"  open loop: {said[-1]}", file=sys.stderr, flush=True)
    return Result(
        f"open loop, {RATES[0]} to {RATES[-1]:,} a second, {seconds:g} s each",
        "started ÷ arrivals within 0.5 %, no start later than 1 % of the run, or the run says failed",
        f"{worst:.2%} off at most",
        met,
        "; ".join(said),
    )
