"""One job in, samples and one outcome out: the interface of every drive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Load
from dbdyno.targets.family import Capabilities
from dbdyno.targets.target import Target
from dbdyno.workload.language import Workload


@dataclass(frozen=True)
class Job:
    """What to run. ``ack_path``: file that ``db.ack`` appends JSON lines to. ``replay``: ``db.now()`` is a seeded
    clock (epoch + transaction number × 1 ms), so that two runs leave the same rows."""

    target: Target
    workload: Workload
    load: Load
    capabilities: Capabilities
    ack_path: Path | None = None
    replay: bool = False


class Stop:
    """How a run is ended early, from any thread or a signal handler."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._immediate = threading.Event()

    def request(self) -> None:
        """Begin no further transaction, let the open ones finish (five seconds), keep everything."""
        self._requested.set()

    def now(self) -> None:
        """Cancel what is open at once; results so far are kept."""
        self._immediate.set()
        self._requested.set()

    @property
    def requested(self) -> bool:
        """Whether the run is to end early."""
        return self._requested.is_set()

    @property
    def immediate(self) -> bool:
        """Whether open transactions are to be cancelled."""
        return self._immediate.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a request; False when the time is over."""
        return self._requested.wait(timeout_s)


class Drive(Protocol):
    """Runs one job."""

    name: str

    def run(self, job: Job, on_sample: Callable[[Sample], None], stop: Stop) -> Outcome:
        """Run to the end of the load (or ``stop``). ``on_sample`` is called from another thread, in order.

        Raises:
            RunError: the run cannot begin (no connection, …). Once begun there is always an outcome.
        """
