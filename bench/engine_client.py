"""One whole run of driver.py, and its histograms."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from window import Lines, Missing

from dbdyno._engine import Histogram

DRIVER = Path(__file__).parent / "driver.py"
WORDS = ("--opt", "tables=4", "--opt", "table_size=20000")


@dataclass(frozen=True)
class Ended:
    """The outcome of a run: its figures, its histograms (ns)."""

    figures: dict[str, Any]
    response: Histogram
    service: Histogram
    lag: Histogram


def run(url: str, *words: str, watch: Callable[[int, dict[str, Any]], None] | None = None) -> Ended:
    """A run of oltp_point_select to its end; ``watch`` gets the process and every line before the outcome.

    Raises:
        Missing: it ended without an outcome.
    """
    command = [sys.executable, str(DRIVER), "oltp_point_select", url, *WORDS, *words]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines, last = Lines(process), ""
    try:
        while (line := lines.next(time.monotonic() + 120)) is not None:
            last = line
            entry = json.loads(line) if line.startswith("{") else {}
            if "state" in entry:
                return Ended(entry, *(_histogram(entry[name]) for name in ("response", "service", "lag")))
            if watch is not None and entry:
                watch(process.pid, entry)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    raise Missing(f"dbdyno ended without an outcome: {last}")


def _histogram(text: str) -> Histogram:
    return Histogram.decode(base64.b64decode(text))


def above(histogram: Histogram, ns: float) -> int:
    """How many durations are longer than that."""
    return sum(count for bound, count in histogram.buckets() if bound > ns)


def capacity(url: str, connections: int, seconds: float = 2.0) -> float:
    """Queries a second of a closed loop."""
    ended = run(url, "--connections", str(connections), "--seconds", str(seconds))
    return float(ended.figures["queries"]) / float(ended.figures["seconds"])
