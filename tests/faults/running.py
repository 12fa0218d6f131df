"""A run in the background, so that a test can hurt its server meanwhile; and what is the same in every database."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.drive.driving import DriveName, drive_named

from dbdyno.drive import Job, Stop
from dbdyno.model.sample import Counts, Outcome, Sample
from dbdyno.model.trial import Load
from dbdyno.targets.target import Target
from dbdyno.workload import Workload

PATIENCE_S = 30.0


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> None:
    """Look again until it holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(0.02)


class Running:
    """A run of a minute that the test ends: ``with Running(…) as run: …``, then ``run.outcome``."""

    def __init__(self, workload: Workload, target: Target, by: DriveName, **load: Any) -> None:
        self.stop = Stop()
        self.samples: list[Sample] = []
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        wanted = {"duration_s": 60.0, "interval_s": 0.1, "drain_s": 1.0, **load}
        self._job = Job(target, workload, Load(**wanted), target.capabilities())
        self._drive = drive_named(by, target)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._outcome = self._drive.run(self._job, self.samples.append, self.stop)
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait(lambda counts: counts.committed > 0, "the first transactions")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.request()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the run hangs"

    def ended_by_itself(self) -> None:
        """Wait for its end, without asking for it."""
        wait_for(lambda: not self._thread.is_alive(), "the run's end")

    @property
    def counts(self) -> Counts:
        """The samples' counts so far."""
        return sum((sample.counts for sample in list(self.samples) if sample.second >= 0), Counts())

    def wait(self, condition: Callable[[Counts], bool], what: str) -> None:
        """Wait until the counts so far fulfil that."""
        wait_for(lambda: condition(self.counts) or not self._thread.is_alive(), what)
        assert condition(self.counts), self._error or f"the run ended before {what}: {self._outcome}"

    def wait_away(self, connected: int = 0) -> None:
        """Wait until only so many connections are left."""
        wait_for(lambda: self.samples[-1].connected == connected, f"{connected} connections")

    @property
    def outcome(self) -> Outcome:
        """What it came to; the identity holds, and the samples say the same as the whole."""
        if self._error is not None:
            raise self._error
        assert self._outcome is not None
        counts = self._outcome.counts
        assert counts.scheduled == counts.ended
        assert self.counts == counts
        return self._outcome

    def idle_cpu_share(self) -> float:
        """The process's CPU while no connection was there, as a share of a core."""
        away = [sample for sample in self.samples if sample.connected == 0][1:]
        assert away, "no sample without connections"
        return sum(sample.health.cpu_s for sample in away) / sum(sample.seconds for sample in away)


def is_postgresql(target: Target) -> bool:
    return target.family.name == "postgresql"


def administer(target: Target, *statements: str) -> None:
    """Statements of the administrator, each for itself."""
    connection = target.control()
    try:
        for sql in statements:
            connection.fetch(sql) if sql.startswith("SELECT") else connection.execute(sql)
    finally:
        connection.close()


def sessions(target: Target, user: str | None = None) -> list[int]:
    """Numbers of the run's connections."""
    if is_postgresql(target):
        sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'dbdyno' AND datname = 'dbdyno'"
        who = "usename"
    else:
        sql = "SELECT id FROM information_schema.processlist WHERE db = 'dbdyno' AND id <> CONNECTION_ID()"
        who = "user"
    connection = target.control()
    try:
        return [int(row[0]) for row in connection.fetch(f"{sql} AND {who} = '{user}'" if user else sql)]
    finally:
        connection.close()


def kill_sessions(target: Target, numbers: list[int]) -> None:
    """As an administrator does."""
    form = "SELECT pg_terminate_backend({})" if is_postgresql(target) else "KILL {}"
    administer(target, *(form.format(number) for number in numbers))
