"""How much of a latency is ours: service times beside the kernel's own stamps of the same requests."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from capture import Capture
from engine_client import capacity, run
from machine import StallWatch
from table import Result
from window import Missing

from fake import fake

CONNECTIONS = 64
DELAY_MS = 1
WINDOWS = 5
TRIES_EACH = 4
#: A window in which the processors were away for longer than that says nothing about us.
STALL_MS = 3.0
P50_SHARE, P99_SHARE, P99_US = 0.05, 0.10, 100.0


@dataclass(frozen=True)
class Compared:
    """A window: percentiles in µs as we measured them and as the wire had them."""

    p50: float
    p99: float
    wire_p50: float
    wire_p99: float
    stall_ms: float

    @property
    def p50_share(self) -> float:
        """How far our p50 is off."""
        return abs(self.p50 / self.wire_p50 - 1)

    @property
    def p99_off(self) -> float:
        """How far our p99 is off, as a share of what is allowed."""
        return abs(self.p99 - self.wire_p99) / max(P99_SHARE * self.wire_p99, P99_US)


def measure(folder: Path, seconds: float = 2.0, wanted: int = WINDOWS) -> list[Result]:
    """The row."""
    bar = f"p50 within {P50_SHARE:.0%}, p99 within max({P99_SHARE:.0%}, {P99_US:.0f} µs) of a capture"
    name = f"added latency, answers after {DELAY_MS} ms, {CONNECTIONS} connections at half of saturation"
    watch = StallWatch()
    try:
        windows, tries, rate = _windows(folder, seconds, wanted, watch)
    except Missing as error:
        return [Result(name, bar, "–", None, str(error))]
    finally:
        watch.close()
    calm = [window for window in windows if window.stall_ms <= STALL_MS]
    chosen = calm or windows
    p50 = statistics.median(window.p50_share for window in chosen)
    p99 = statistics.median(window.p99_off for window in chosen)
    said = [
        statistics.median(getattr(window, key) for window in chosen) for key in ("p50", "wire_p50", "p99", "wire_p99")
    ]
    note = (
        f"{rate:,.0f}/s; p50 {said[0]:,.0f} against {said[1]:,.0f} µs, p99 {said[2]:,.0f} against {said[3]:,.0f} µs;"
        f" {len(calm)} of {tries} windows of {seconds:g} s without a stall over {STALL_MS:g} ms"
    )
    enough = len(calm) >= wanted
    met = p50 <= P50_SHARE and p99 <= 1.0
    return [
        Result(
            name,
            bar,
            f"p50 {p50:.1%} off, p99 {p99:.2f} of what is allowed",
            met if enough else None,
            note if enough else f"{note}: the machine is too restless to say",
        )
    ]


def _windows(folder: Path, seconds: float, wanted: int, watch: StallWatch) -> tuple[list[Compared], int, float]:
    windows: list[Compared] = []
    with fake(folder, delay_ms=DELAY_MS) as server:
        rate = capacity(server.url, CONNECTIONS) / 2
        tries = 0
        while tries < wanted * TRIES_EACH and sum(window.stall_ms <= STALL_MS for window in windows) < wanted:
            tries += 1
            watch.reset()
            with Capture(int(server.where), int(rate * seconds * 5) + 10_000) as capture:
                ended = run(
                    server.url, "--connections", str(CONNECTIONS), "--seconds", str(seconds), "--rate", f"{rate:.0f}"
                )
                stall_ms = watch.worst_ms
                wire = capture.service_ns() / 1e3
            if abs(len(wire) - ended.service.count) > 0.01 * len(wire):
                raise Missing(f"the capture paired {len(wire)} requests, {ended.service.count} were made")
            window = Compared(
                ended.service.percentile(50) / 1e3,
                ended.service.percentile(99) / 1e3,
                float(np.percentile(wire, 50)),
                float(np.percentile(wire, 99)),
                stall_ms,
            )
            print(f"  latency: {window}", file=sys.stderr, flush=True)
            windows.append(window)
    return windows, tries, rate
