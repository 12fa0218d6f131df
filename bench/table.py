"""The table of results: each measure beside its bar."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from machine import Quiet


@dataclass(frozen=True)
class Result:
    """One row. ``met`` is None where nothing could be measured here."""

    measure: str
    bar: str
    found: str
    met: bool | None
    note: str = ""

    def line(self) -> str:
        """As a row of the table."""
        verdict = {True: "met", False: "**not met**", None: "not here"}[self.met]
        return f"| {self.measure} | {self.bar} | {self.found} | {verdict} | {self.note} |"


@dataclass
class Ratio:
    """A row that is a ratio of each round; ``at_most`` or ``at_least`` is its bar, for the median."""

    measure: str
    peer: str
    at_most: float | None = None
    at_least: float | None = None
    ratios: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    unit: str = "µs"
    form: str = ".1f"
    notes: list[str] = field(default_factory=list)

    def add(self, mine: float, other: float) -> None:
        """One round."""
        self.ours.append(mine)
        self.theirs.append(other)
        self.ratios.append(mine / other)

    def result(self) -> Result:
        """The row."""
        bar = f"≤ {self.at_most:.2f} × {self.peer}" if self.at_most else f"≥ {self.at_least:g} × {self.peer}"
        notes = "; ".join(dict.fromkeys(self.notes))
        if not self.ratios:
            return Result(self.measure, bar, "–", None, notes)
        median = statistics.median(self.ratios)
        met = median <= self.at_most if self.at_most is not None else median >= (self.at_least or 0.0)
        figures = (
            f"{statistics.median(self.ours):{self.form}} against"
            f" {statistics.median(self.theirs):{self.form}} {self.unit}"
        )
        return Result(self.measure, bar, spread(self.ratios, ".2f"), met, "; ".join(filter(None, [figures, notes])))


def spread(values: Sequence[float], form: str) -> str:
    """``median (least–most)``."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def document(results: Sequence[Result], noise: Sequence[Quiet], rounds: int, seconds: int, minutes: float) -> str:
    """The whole file."""
    away = [100 * quiet.away for quiet in noise]
    lines = [
        "# How fast, how exact",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}, {os.cpu_count()} cores,"
        f" Linux {platform.release()}, Python {platform.python_version()}; `make bench`, {minutes:.0f} minutes.",
        "",
        f"{rounds} rounds of {seconds} s, peer and dbdyno in turn in every round on the same machine: median",
        "(least–most) of the rounds; a ratio is dbdyno ÷ peer of the same round. Client CPU is user and system",
        "time of all threads of the client's process over the measured seconds alone. sysbench with 512 connections or",
        "more is measured after 20 s of warming up. *Server-bound*: the fake server used over 90 % of its core.",
        "",
    ]
    if noise:
        lines += [
            f"Noise: between the rounds a spinning program was kept from running {spread(away, '.1f')} % of the time,",
            f"{max(quiet.longest_ms for quiet in noise):.0f} ms at the longest.",
            "",
        ]
    lines += ["| measure | bar | found | verdict | figures |", "|---|---|---|---|---|"]
    lines += [result.line() for result in results]
    return "\n".join(lines) + "\n"


def commit() -> str:
    """The commit measured."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return done.stdout.strip() or "unknown"
