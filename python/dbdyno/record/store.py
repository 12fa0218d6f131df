"""The store: what a campaign writes into while it runs, and what every report is read from.

    with Store.open("dbdyno.db", write=True) as store:
        entry = store.new_campaign(plan, plan_text)

Every method is its own transaction. What a method has returned from survives the death of the process;
a finished trial survives the loss of power as well.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from dbdyno.model.errors import RunError
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record import migrations, reading, rows, writing
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.faults import understood
from dbdyno.record.lock import WriterLock
from dbdyno.record.place import Place, engine_for, find_place, sync, use_wal

R = TypeVar("R")

#: On a shared database: how often a running campaign says that it is alive, and when it counts as dead.
BEAT_S = 10.0
DEAD_S = 60.0


class Store:
    """An open store. Safe to use from several threads. Readers are always welcome, also while one writes."""

    def __init__(self, place: Place, engine: sa.Engine, lock: WriterLock | None) -> None:
        self._place = place
        self._engine = engine
        self._lock = lock
        self._numbers: dict[str, int] = {}  # trial id: number of its next sample
        self._numbers_guard = threading.Lock()
        self._beaten_at = 0.0

    @classmethod
    def open(cls, url_or_path: str | None = None, *, write: bool = False) -> Self:
        """Open a store: a path, a SQLAlchemy URL, or None for $DBDYNO_STORE or ``./dbdyno.db``.

        A missing store is made when ``write``. An older one is migrated (also for a reader, if it may).

        Raises:
            UsageError: there is none to read; the path is something else.
            RunError: read-only, damaged, written by a newer dbdyno, or another process writes to it.
        """
        place = find_place(url_or_path)
        engine = engine_for(place, write=write)
        lock = WriterLock(place.path) if write and place.path is not None else None
        try:
            with understood(place.shown):
                _bring_up(place, engine, write=write)
        except BaseException:
            engine.dispose()
            if lock is not None:
                lock.release()
            raise
        return cls(place, engine, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and let the next writer in."""
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def __str__(self) -> str:
        return self._place.shown

    @property
    def path(self) -> Path | None:
        """The store's file; None for a database server."""
        return self._place.path

    # Writing

    def new_campaign(self, plan: Plan, plan_text: str) -> CampaignEntry:
        """Add a campaign, state running. Passwords in plan and text are left out, whatever is given."""
        for attempt in range(5):
            try:
                with self._transaction() as connection:
                    campaign_id = writing.new_campaign(connection, plan, plan_text, _ourselves())
                    return reading.campaign(connection, campaign_id)
            except RunError as error:
                # On a shared database another process may have taken the number between our look and our insert.
                if attempt == 4 or not isinstance(error.__cause__, IntegrityError):
                    raise
        raise AssertionError("unreachable")

    def add_trials(self, campaign_id: str, trials: Sequence[Trial]) -> None:
        """Add a campaign's trials, all pending."""
        with self._transaction() as connection:
            writing.add_trials(connection, campaign_id, trials)

    def begin_trial(self, trial_id: str, environment: Mapping[str, Any], source: str) -> None:
        """Set a trial running with what was captured. Samples of an unfinished earlier attempt are dropped.

        Raises:
            UsageError: unknown, or finished already.
        """
        with self._transaction() as connection:
            writing.begin_trial(connection, trial_id, environment, source)
        with self._numbers_guard:
            self._numbers[trial_id] = 0

    def add_sample(self, trial_id: str, sample: Sample) -> None:
        """Add the sample of one interval."""
        with self._numbers_guard:
            number = self._numbers[trial_id]
            self._numbers[trial_id] = number + 1
        with self._transaction() as connection:
            writing.add_sample(connection, trial_id, number, sample)
            if self._place.path is None and time.monotonic() - self._beaten_at > BEAT_S:
                writing.beat(connection, trial_id.partition("/")[0])
                self._beaten_at = time.monotonic()

    def finish_trial(self, trial_id: str, outcome: Outcome, environment_after: Mapping[str, Any] | None = None) -> None:
        """Add a running trial's outcome; ``environment_after`` is merged into what was captured before."""
        with self._transaction() as connection:
            writing.finish_trial(connection, trial_id, outcome, environment_after or {})
        self.sync()

    def break_off_trial(self, trial_id: str) -> None:
        """Mark a running trial whose process died as interrupted; its samples stay until it is run again."""
        with self._transaction() as connection:
            writing.break_off_trial(connection, trial_id)

    def set_state(self, campaign_id: str, state: str) -> None:
        """Set a campaign's state: running (by this process), done, interrupted or failed."""
        with self._transaction() as connection:
            writing.set_state(connection, campaign_id, state, _ourselves() if state == "running" else None)
        self.sync()

    def take_over(self, campaign_id: str) -> None:
        """Become the process that runs the campaign; trials left running by a dead one become interrupted.

        Raises:
            UsageError: there is no such campaign.
            RunError: another process on another machine is running it (on a shared database).
        """
        with self._transaction() as connection:
            reading.campaign(connection, campaign_id)
            writer, last = reading.writer(connection, campaign_id)
            if self._place.path is None and writer not in (None, _ourselves()) and _recent(last):
                raise RunError(f"campaign {campaign_id} is being run by another dbdyno ({writer}); wait until it ends")
            for trial_id, state in reading.states(connection, campaign_id).items():
                if state == "running":
                    writing.break_off_trial(connection, trial_id)
            writing.set_state(connection, campaign_id, "running", _ourselves())

    def sync(self) -> None:
        """Bring everything to the disk (SQLite; a server does so at each commit)."""
        with understood(self._place.shown):
            sync(self._engine, self._place)

    # Reading

    def campaigns(self) -> list[CampaignEntry]:
        """All campaigns, oldest first."""
        return self._read(reading.campaigns)

    def campaign(self, campaign_id: str) -> CampaignEntry:
        """One campaign; an unknown id is a UsageError with the nearest one."""
        return self._read(lambda connection: reading.campaign(connection, campaign_id))

    def trials(self, campaign_id: str) -> list[TrialEntry]:
        """All trials of a campaign, in the order of running."""
        return self._read(lambda connection: reading.trials(connection, campaign_id))

    def trial(self, trial_id: str) -> TrialEntry:
        """One trial; an unknown id is a UsageError."""
        return self._read(lambda connection: reading.trial(connection, trial_id))

    def samples(self, trial_id: str) -> list[Sample]:
        """A trial's samples, warm-up included, in the order they came."""
        return self._read(lambda connection: list(reading.samples(connection, trial_id)))

    def states(self, campaign_id: str) -> dict[str, str]:
        """Trial id to state, in the order of running: cheaper than :meth:`trials`."""
        return self._read(lambda connection: reading.states(connection, campaign_id))

    def _read(self, ask: Callable[[sa.Connection], R]) -> R:
        with understood(self._place.shown), self._engine.connect() as connection:
            return ask(connection)

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        with understood(self._place.shown), self._engine.begin() as connection:
            yield connection


def _bring_up(place: Place, engine: sa.Engine, *, write: bool) -> None:
    with engine.connect() as connection:
        version = migrations.stored_version(connection, place.shown)
        if version is None:
            if not write:
                raise RunError(f"the store {place.shown} is empty; run something first")
            migrations.create(connection)
            connection.commit()
            version = migrations.CURRENT
    migrations.check_not_newer(version, place.shown)
    if write:
        use_wal(engine, place)
        migrations.migrate(engine, version)
    elif version < migrations.CURRENT:  # its reader becomes its writer for a moment
        with Store.open(place.text, write=True):
            pass


def _ourselves() -> str:
    return f"{socket.gethostname()} {os.getpid()}"


def _recent(stamp: str | None) -> bool:
    last = rows.to_time(stamp)
    return last is not None and (datetime.now(UTC) - last).total_seconds() < DEAD_S
