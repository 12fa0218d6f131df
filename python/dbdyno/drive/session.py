"""One terminal's ``db``: the statements of language.md over one DB-API connection.

This is the meaning of the workload language; the engine's compiled programs are tested against it.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities, Connection, DbError, ErrorClass, Family
from dbdyno.workload.batch import multi_row, packets, row_group
from dbdyno.workload.sql import READ, WRITE, statement_kind

REPLAY_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


class DatabaseFailure(BaseException):
    """A database error on its way from a statement to the drive.

    Not an ``Exception``: a workload cannot catch it (language.md).
    """

    def __init__(self, error: DbError, outcome_unknown: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.outcome_unknown = outcome_unknown


class WrongUse(Exception):
    """The workload used ``db`` against the rules; fatal."""


class TerminalState:
    """``db.state``: only declared names can be set."""

    __slots__ = ("__dict__", "_declared")
    _declared: frozenset[str]

    def __init__(self, declared: dict[str, Any]) -> None:
        object.__setattr__(self, "_declared", frozenset(declared))
        self.__dict__.update(copy.deepcopy(declared))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._declared:
            raise WrongUse(f"db.state.{name} is not declared; write {name} = state(DEFAULT) in the workload class")
        self.__dict__[name] = value

    def save(self) -> dict[str, Any]:
        """A copy to come back to."""
        return copy.deepcopy(self.__dict__)

    def restore(self, saved: dict[str, Any]) -> None:
        """Back to a saved copy (which stays valid)."""
        self.__dict__.clear()
        self.__dict__.update(copy.deepcopy(saved))


class Session:
    """``db`` of one terminal. Counts statements as they are answered."""

    def __init__(
        self,
        family: Family,
        capabilities: Capabilities,
        *,
        terminal: int,
        terminals: int,
        declared: dict[str, Any],
        replay: bool = False,
    ) -> None:
        self.terminal = terminal
        self.terminals = terminals
        self.has = capabilities
        self.for_update = family.dialect.for_update if capabilities.for_update else ""
        self.state = TerminalState(declared)
        self._family = family
        self._replay = replay
        self._connection: Connection | None = None
        self._writes = False
        self._open = False
        self._in_pipeline = False
        self._now = REPLAY_EPOCH
        self.outcome_unknown = False  # a COMMIT or an autocommitted write has been sent in this attempt
        self.acks: list[tuple[Any, ...]] = []
        self.reads = self.writes = self.others = self.rows = 0

    # --- the drive's side ---------------------------------------------------------------------------------

    def attach(self, connection: Connection | None) -> None:
        """Use that connection from now on (None: it is lost)."""
        self._connection = connection
        self._open = False

    @property
    def connection(self) -> Connection | None:
        """The connection in use."""
        return self._connection

    def begin_transaction(self, number: int, writes: bool) -> None:
        """A new transaction of this terminal; its attempts share ``now()``."""
        self._writes = writes
        if self._replay:
            self._now = REPLAY_EPOCH + timedelta(milliseconds=number)
        else:
            self._now = datetime.fromtimestamp(time.time(), UTC)
        self.reads = self.writes = self.others = self.rows = 0

    def begin_attempt(self) -> None:
        """A new attempt of the current transaction."""
        self.outcome_unknown = False
        self.acks.clear()

    @property
    def transaction_open(self) -> bool:
        """Whether ``begin()`` was called without a ``commit()``."""
        return self._open

    def rollback(self) -> None:
        """ROLLBACK, if a transaction is open on our side or the server's."""
        connection = self._connection
        if connection is not None and (self._open or connection.in_transaction):
            self._open = False
            try:
                connection.rollback()
            except BaseException as error:
                raise self._failure("ROLLBACK", error) from None
            self.others += 1

    # --- the workload's side ------------------------------------------------------------------------------

    def row(self, sql: str, *params: Any) -> tuple[Any, ...] | None:
        """See :class:`dbdyno.workload.db.Db`."""
        rows = self.query(sql, *params)
        if len(rows) > 1:
            raise WrongUse(f"db.row got {len(rows)} rows from {sql!r}; use db.query for several")
        return rows[0] if rows else None

    def query(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """See :class:`dbdyno.workload.db.Db`."""
        try:
            rows = self._connection.fetch(sql, params)  # type: ignore[union-attr]
        except BaseException as error:
            raise self._failure(sql, error) from None
        self._count(sql)
        self.rows += len(rows)
        return rows

    def execute(self, sql: str, *params: Any) -> int:
        """See :class:`dbdyno.workload.db.Db`."""
        if not self._open:
            self.outcome_unknown = True
        try:
            matched = self._connection.execute(sql, params)  # type: ignore[union-attr]
        except BaseException as error:
            raise self._failure(sql, error) from None
        self._count(sql)
        return matched

    def batch(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """See :class:`dbdyno.workload.db.Db`."""
        connection = self._connection
        assert connection is not None
        if not self._open:
            self.outcome_unknown = True
        matched = 0
        if row_group(sql) is not None and self.has.multi_row_insert:
            for packet in packets(rows, self.has.max_parameters):
                text = multi_row(sql, len(packet))
                try:
                    matched += connection.execute(text, [value for row in packet for value in row])
                except BaseException as error:
                    raise self._failure(sql, error) from None
                self._count(sql)
            return matched
        listed = [tuple(row) for row in rows]
        if not listed:
            return 0
        try:
            matched = connection.execute_many(sql, listed)
        except BaseException as error:
            raise self._failure(sql, error) from None
        self._count(sql, len(listed))
        return matched

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """See :class:`dbdyno.workload.db.Db`. Sequential here: a driver's pipeline cannot give row counts back
        one by one, and the meaning is the same."""
        if self._in_pipeline:
            raise WrongUse("db.pipeline() inside db.pipeline()")
        self._in_pipeline = True
        try:
            yield
        finally:
            self._in_pipeline = False

    def begin(self) -> None:
        """See :class:`dbdyno.workload.db.Db`."""
        if self._open:
            raise WrongUse("db.begin() in an open transaction")
        try:
            self._connection.begin(self._writes)  # type: ignore[union-attr]
        except BaseException as error:
            raise self._failure("BEGIN", error) from None
        self._open = True
        self.others += 1

    def commit(self) -> None:
        """See :class:`dbdyno.workload.db.Db`."""
        if not self._open:
            raise WrongUse("db.commit() without db.begin()")
        self.outcome_unknown = True
        try:
            self._connection.commit()  # type: ignore[union-attr]
        except BaseException as error:
            raise self._failure("COMMIT", error) from None
        self._open = False
        self.others += 1

    def now(self) -> datetime:
        """See :class:`dbdyno.workload.db.Db`."""
        return self._now

    def ack(self, *values: Any) -> None:
        """See :class:`dbdyno.workload.db.Db`."""
        self.acks.append(copy.deepcopy(values))  # as they are now, whatever the lists become

    def acknowledged(self) -> str:
        """The transaction's acknowledgements as JSON lines, once it is committed."""
        lines = "".join(json.dumps(values, default=str) + "\n" for values in self.acks)
        self.acks.clear()
        return lines

    # ------------------------------------------------------------------------------------------------------

    def _count(self, sql: str, times: int = 1) -> None:
        kind = statement_kind(sql)
        if kind is READ:
            self.reads += times
        elif kind is WRITE:
            self.writes += times
        else:
            self.others += times

    def _failure(self, sql: str, error: BaseException) -> BaseException:
        if not isinstance(error, Exception):  # KeyboardInterrupt, SystemExit
            return error
        if self._connection is None:
            raise AssertionError("a statement without a connection") from error
        if isinstance(error, (UsageError, WrongUse)):
            return error
        understood = self._family.classify(error)
        unknown = self.outcome_unknown and understood.kind is ErrorClass.LOST
        if understood.kind is not ErrorClass.LOST:
            if sql in ("BEGIN", "COMMIT", "ROLLBACK"):
                self.others += 1
            else:
                self._count(sql)
            # an answered error settles what became of the statement
            self.outcome_unknown = False
        return DatabaseFailure(understood, unknown)
