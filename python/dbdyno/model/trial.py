"""A trial: one cell of the plan's matrix, run once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """How hard and how long to drive. Durations in seconds.

    ``duration_s`` or ``transactions`` ends the run, whichever is set; ``transactions`` is the total over all
    connections and is dealt evenly (connection 1 first), so that a run by count is the same every time.
    """

    connections: int
    duration_s: float | None = None
    transactions: int | None = None
    warmup_s: float = 0.0
    interval_s: float = 1.0
    rate: float | None = None  # arrivals per second; None = closed loop
    arrivals: str = "poisson"  # or "even"
    max_tries: int = 10
    retry_values: str = "same"  # or "new": sysbench's way
    ignore_errors: tuple[str, ...] = ()  # codes; "all"
    isolation: str | None = None  # read uncommitted | read committed | repeatable read | serializable
    reconnect_every: int = 0  # close and reopen the connection after that many transactions; 0 = never
    drain_s: float = 5.0
    seed: int = 1
    loops: int = 1  # event loops of the engine, each with its share of the connections
    spin: bool = False  # the engine's loops never sleep: for one or two connections


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell: workload × target × connections × round. ``id`` is stable over resumes."""

    campaign: str
    number: int  # position in the order of running, from 1
    workload: str  # label in the plan
    workload_name: str  # shipped name or ./file.py
    options: Mapping[str, Any]
    target: str  # label in the plan
    load: Load
    round: int  # from 1

    @property
    def connections(self) -> int:
        """Connection count of the cell."""
        return self.load.connections

    @property
    def id(self) -> str:
        """``campaign/workload/target/c4/r2``: the same whenever the same plan is expanded."""
        return f"{self.campaign}/{self.workload}/{self.target}/c{self.connections}/r{self.round}"
