"""One terminal: the loop that runs transactions on one connection, with retries and reconnects.

Retryable error: ROLLBACK, then the same function again with the same random values, the same ``now()`` and
restored state, up to ``max_tries``. Connection lost before COMMIT was sent: reopened with back-off and retried;
after it: ``unknown``, never retried. Times cover all attempts.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dbdyno._engine import Stream
from dbdyno.drive.job import Job
from dbdyno.drive.pacing import Clock, Pacing
from dbdyno.drive.session import DatabaseFailure, Session, WrongUse
from dbdyno.drive.tally import COMMITTED, FAILED, ROLLED_BACK, UNFINISHED, UNKNOWN, Booking, Tally
from dbdyno.model.errors import DbdynoError, RunError
from dbdyno.model.sample import Outage
from dbdyno.targets.family import Connection, ErrorClass
from dbdyno.workload.language import Rollback, Transaction

_FIRST_BACKOFF_S, _LONGEST_BACKOFF_S = 0.01, 1.0


@dataclass(frozen=True)
class Kind:
    """A transaction kind as the terminal calls it."""

    transaction: Transaction
    function: Callable[[Any, Any], Any]
    writes: bool
    upto: float  # cumulative weight, in (0, 1]


class Fatal(Exception):
    """The run makes no sense any more; the text is the reason."""


class Terminal:
    """Number ``number`` (from 1) of the run. ``run`` is the body of its thread."""

    def __init__(
        self, job: Job, number: int, kinds: list[Kind], declared: dict[str, Any], clock: Clock, tally: Tally
    ) -> None:
        self._job = job
        self._load = job.load
        self._number = number
        self._kinds = kinds
        self._clock = clock
        self._tally = tally
        self._stateful = bool(declared)
        workload, seed = job.workload, job.load.seed
        self._stream: Stream = workload.stream(seed, "transaction", number, 0)
        self._mix: Stream = workload.stream(seed, "mix", number, 0)
        self._every = job.load.reconnect_every or workload.reconnect_every
        self._since_reconnect = 0
        self.session = Session(
            job.target.family,
            job.capabilities,
            terminal=number,
            terminals=job.load.connections,
            declared=declared,
            replay=job.replay,
        )
        self.cancelled = False  # set by the drive when the draining time is over
        self.in_flight = 0  # intended start (ns) of the transaction that runs now, 0 = none
        self.outages: list[Outage] = []
        self._away: tuple[int, str] | None = None  # since when (ns), and the code it was lost with
        self.acknowledge: Callable[[str], None] | None = None

    # --- connections --------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open this terminal's connection and run the workload's set-up statements on it.

        Raises:
            RunError: with one sentence.
        """
        connection = self._open_connection()
        try:
            for sql in self._job.workload.session_setup(self.session):
                connection.execute(sql)
        except BaseException as error:
            connection.close()
            if isinstance(error, Exception) and not isinstance(error, DbdynoError):
                raise RunError(self._job.target.family.classify(error).message) from None
            raise
        self.session.attach(connection)

    def _open_connection(self) -> Connection:
        return self._job.target.connect(self._number - 1, isolation=self._load.isolation)

    def close(self) -> None:
        """Close the connection; errors on the way out are of no interest."""
        connection = self.session.connection
        if connection is not None:
            self.session.attach(None)
            _quietly(connection.close)

    def _reconnect(self, code: str) -> bool:
        """Reopen with back-off until it works or the run is over; the time away is on the record."""
        self._away = (self._clock.now_ns(), code)
        self.close()
        pause_s = _FIRST_BACKOFF_S
        while not self.cancelled and not self._clock.stop.immediate:
            try:
                self.connect()
            except RunError:
                if self._clock.ending.wait(pause_s):
                    self._clock.stop.wait(pause_s)  # draining: go on trying, but never spin
                pause_s = min(2 * pause_s, _LONGEST_BACKOFF_S)
                continue
            self.end_outage()
            return True
        self.end_outage()
        return False

    def end_outage(self) -> None:
        """The time without a connection is over, or the run is: it goes on the record."""
        away, self._away = self._away, None
        if away is not None and away[1]:
            zero = self._clock.measure_ns
            begin_s, end_s = (away[0] - zero) / 1e9, (self._clock.now_ns() - zero) / 1e9
            self.outages.append(Outage(self._number, begin_s, end_s, away[1]))

    # --- the loop -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """The workload's ``start(self, db, rand)``, once, before anything is measured."""
        if not self._job.workload.has_start:
            return
        rand = self._job.workload.stream(self._load.seed, "start", self._number, 0)
        self.session.begin_transaction(0, True)
        self.session.begin_attempt()
        try:
            self._job.workload.start(self.session, rand)  # type: ignore[attr-defined]
        except DatabaseFailure as failure:
            raise RunError(f"the workload's start failed: {failure.error.message}") from None

    def run(self, pacing: Pacing) -> None:
        """Run transactions until the pacing has no more.

        Raises:
            Fatal: the whole run is to end.
        """
        last = 0
        while not self.cancelled:
            kind_wait = self._keying(last)
            if kind_wait and not self._clock.sleep_until(self._clock.now_ns() + int(kind_wait * 1e9)):
                return
            due = pacing.next(self._number, last)
            if due is None:
                return
            seat, number, intended_ns = due
            kind = self._pick(seat, number)
            self._transaction(kind, seat, number, intended_ns)
            last = last + 1
            think_s = kind.transaction.think_s
            if think_s and not self._clock.sleep_until(self._clock.now_ns() + int(think_s * 1e9)):
                return
            self._since_reconnect += 1
            if self._every and self._since_reconnect >= self._every and not self._clock.ending.is_set():
                self._since_reconnect = 0
                if self._reconnect(""):
                    self._tally.reconnected(self._clock.now_ns())

    def _keying(self, last: int) -> float:
        if self._load.rate is not None or not any(kind.transaction.keying_s for kind in self._kinds):
            return 0.0
        return self._pick(self._number, last + 1).transaction.keying_s

    def _pick(self, seat: int, number: int) -> Kind:
        if len(self._kinds) == 1:
            return self._kinds[0]
        self._mix.reseat(seat, number)
        drawn = self._mix.real()
        return next((kind for kind in self._kinds if drawn < kind.upto), self._kinds[-1])

    def _transaction(self, kind: Kind, seat: int, number: int, intended_ns: int) -> None:
        session, stream = self.session, self._stream
        stream.reseat(seat, number)
        begun_ns = self._clock.now_ns()
        if intended_ns > begun_ns:  # the clock was read before the wait ended: never a negative lag
            intended_ns = begun_ns
        self.in_flight = intended_ns
        session.begin_transaction(number, kind.writes)
        saved = session.state.save() if self._stateful else None
        errors: list[str] = []
        tries = reconnects = 0
        result = UNFINISHED
        while True:
            tries += 1
            session.begin_attempt()
            try:
                if session.connection is None:
                    break  # could not be reopened before the end
                kind.function(session, stream)
                if session.transaction_open:
                    raise WrongUse(
                        f"{kind.transaction.name} returned with an open transaction; end it with db.commit()"
                    )
                result = COMMITTED
                break
            except Rollback:
                result = ROLLED_BACK
                if (failure := self._roll_back()) is not None:
                    errors.append(failure.error.code)
                    # what cannot be rolled back is cut: the server rolls back then
                    if self._reconnect(failure.error.code):
                        reconnects += 1
                break
            except DatabaseFailure as failure:
                error = failure.error
                errors.append(error.code)
                rollback_failure = None
                if error.kind is not ErrorClass.LOST:
                    rollback_failure = self._roll_back()
                    if rollback_failure is not None:
                        errors.append(rollback_failure.error.code)
                lost = error.kind is ErrorClass.LOST or rollback_failure is not None
                if self.cancelled or self._clock.stop.immediate:
                    break
                code = rollback_failure.error.code if rollback_failure is not None else error.code
                if lost and self._reconnect(code):
                    reconnects += 1
                if failure.outcome_unknown:
                    result = UNKNOWN
                    break
                again = error.kind in (ErrorClass.RETRYABLE, ErrorClass.LOST)
                if again and session.connection is None:
                    break
                if again and tries < self._load.max_tries and not self._ignored(error.code):
                    if self._load.retry_values == "same":
                        stream.rewind()
                    else:
                        stream = self._job.workload.stream(self._load.seed, f"transaction, try {tries}", seat, number)
                    if saved is not None:
                        session.state.restore(saved)
                    continue
                result = FAILED
                if error.kind is ErrorClass.FATAL and not self._ignored(error.code):
                    self._book(kind, result, intended_ns, begun_ns, tries, reconnects, errors)
                    raise Fatal(f"{error.code}: {error.message}") from None
                break
            except WrongUse as error:
                raise self._fatal(kind, error, intended_ns, begun_ns, tries, reconnects, errors) from error
            except Exception as error:
                raise self._fatal(kind, error, intended_ns, begun_ns, tries, reconnects, errors) from error
        if result == COMMITTED and session.acks and self.acknowledge is not None:
            self.acknowledge(session.acknowledged())
        if result != COMMITTED and saved is not None:
            session.state.restore(saved)
        self._book(kind, result, intended_ns, begun_ns, tries, reconnects, errors)

    def _roll_back(self) -> DatabaseFailure | None:
        try:
            self.session.rollback()
        except DatabaseFailure as failure:
            return failure
        return None

    def _ignored(self, code: str) -> bool:
        return "all" in self._load.ignore_errors or code in self._load.ignore_errors

    def _fatal(
        self,
        kind: Kind,
        error: Exception,
        intended_ns: int,
        begun_ns: int,
        tries: int,
        reconnects: int,
        errors: list[str],
    ) -> Fatal:
        self._roll_back()
        errors.append(type(error).__name__)
        self._book(kind, FAILED, intended_ns, begun_ns, tries, reconnects, errors)
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if "/dbdyno/drive/" not in frame.filename
        ]
        where = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
        name = "" if isinstance(error, WrongUse) else f"{type(error).__name__}: "
        return Fatal(f"{where}in {kind.transaction.name}: {name}{error}")

    def _book(
        self,
        kind: Kind,
        result: str,
        intended_ns: int,
        begun_ns: int,
        tries: int,
        reconnects: int,
        errors: list[str],
    ) -> None:
        session = self.session
        self._tally.book(
            Booking(
                kind=kind.transaction.name,
                result=result,
                intended_ns=intended_ns,
                begun_ns=begun_ns,
                ended_ns=self._clock.now_ns(),
                retries=tries - 1,
                reconnects=reconnects,
                reads=session.reads,
                writes=session.writes,
                others=session.others,
                rows=session.rows,
                errors=tuple(errors),
            )
        )
        self.in_flight = 0


def _quietly(function: Callable[[], None]) -> None:
    try:
        function()
    except Exception:
        return
