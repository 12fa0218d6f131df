"""Both lives of a workload over one recording connection: what they sent, and how they ended.

The first life is the function itself over the DB-API drive's session, the second the compiled program over the
same session. The connection answers from a function of statement, values and position, so that equal sequences
get equal answers.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbdyno import _engine
from dbdyno.drive.session import DatabaseFailure, Session, WrongUse
from dbdyno.targets.family import Capabilities, DbError, ErrorClass
from dbdyno.workload import Rollback, Workload, states, transactions
from dbdyno.workload.compiler import compile_workload

#: (statement, values, position) → rows of a query, or rows matched
Answer = Callable[[str, tuple[Any, ...], int], Any]
TERMINALS = 3


class Injected(Exception):
    """A retryable database error, raised on request."""


class Recorder:
    """A connection that keeps what it is asked and answers from a function."""

    def __init__(self, answer: Answer, fail_at: int | None = None) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.in_transaction = False
        self._answer = answer
        self._fail_at = fail_at

    def _note(self, *what: Any) -> int:
        self.sent.append(what)
        position = len(self.sent) - 1
        if position == self._fail_at:
            raise Injected
        return position

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        position = self._note("fetch", sql, *map(typed, params))
        return [tuple(row) for row in self._answer(sql, tuple(params), position)]

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        position = self._note("execute", sql, *map(typed, params))
        return int(self._answer(sql, tuple(params), position))

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return sum(self.execute(sql, row) for row in rows)

    def begin(self, write: bool) -> None:
        self._note("BEGIN")
        self.in_transaction = True

    def commit(self) -> None:
        self._note("COMMIT")
        self.in_transaction = False

    def rollback(self) -> None:
        self.sent.append(("ROLLBACK",))  # never fails here: what follows would be a reconnect
        self.in_transaction = False

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield

    def cancel(self) -> None: ...

    def close(self) -> None: ...


def typed(value: Any) -> tuple[str, Any]:
    """A value that differs from an equal one of another type (1, True, 1.0), with NaN equal to itself."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [typed(item) for item in value]
    return type(value).__name__, repr(value) if isinstance(value, float) else value


class _Dialect:
    for_update = "FOR UPDATE"


class _Family:
    """As much of a database family as a session asks for."""

    dialect = _Dialect()

    def classify(self, error: BaseException) -> DbError:
        if isinstance(error, Injected):
            return DbError("injected", ErrorClass.RETRYABLE, "injected")
        raise error


@dataclass
class Told:
    """What one life did."""

    sent: list[tuple[Any, ...]]
    ends: list[tuple[Any, ...]] = field(default_factory=list)
    acks: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)


def _session(workload: Workload, capabilities: Capabilities, terminal: int, connection: Recorder) -> Session:
    session = Session(
        _Family(),  # type: ignore[arg-type]
        capabilities,
        terminal=terminal,
        terminals=TERMINALS,
        declared=states(workload),
        replay=True,
    )
    session.attach(connection)  # type: ignore[arg-type]
    return session


def first_life(
    workload: Workload,
    capabilities: Capabilities,
    answer: Answer,
    *,
    transactions_each: int = 1,
    terminal: int = 2,
    seed: int = 7,
    fail_at: int | None = None,
) -> Told:
    """Run the workload's functions as the DB-API drive does."""
    connection = Recorder(answer, fail_at)
    session = _session(workload, capabilities, terminal, connection)
    told = Told(connection.sent)
    if workload.has_start:
        session.begin_transaction(0, True)
        session.begin_attempt()
        stream = workload.stream(seed, "start", terminal, 0)
        told.ends.append(_ended(lambda: workload.start(session, stream), session))  # type: ignore[attr-defined]
    stream = workload.stream(seed, "transaction", terminal, 0)
    for number in range(1, transactions_each + 1):
        for kind in transactions(workload):
            stream.reseat(terminal, number)
            session.begin_transaction(number, True)
            saved = session.state.save()
            function = getattr(workload, kind.method)
            for _ in range(2):
                session.begin_attempt()
                end = _ended(lambda: _body(function, session, stream, kind.name), session)  # noqa: B023
                if end[0] != "failed":
                    break
                session.rollback()
                stream.rewind()
                session.state.restore(saved)
            told.ends.append(end)
            if end[0] == "committed":
                told.acks.append(session.acknowledged())
            else:
                session.rollback()
                session.state.restore(saved)
    told.state = {name: typed(getattr(session.state, name)) for name in states(workload)}
    return told


def _body(function: Callable[..., Any], session: Session, stream: _engine.Stream, name: str) -> None:
    function(session, stream)
    if session.transaction_open:
        raise WrongUse(f"{name} returned with an open transaction")


def _ended(run: Callable[[], Any], session: Session) -> tuple[Any, ...]:
    try:
        run()
    except Rollback:
        return ("rolled back",)
    except DatabaseFailure as failure:
        return ("failed", failure.error.code)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if _of_workload(frame.filename)]
        return ("error", type(error).__name__, lines[-1] if lines else 0)
    return ("committed",)


def _of_workload(path: str) -> bool:
    return "/workloads/" in path or "/written_" in path


def second_life(
    workload: Workload,
    capabilities: Capabilities,
    answer: Answer,
    *,
    transactions_each: int = 1,
    terminal: int = 2,
    seed: int = 7,
    fail_at: int | None = None,
) -> Told:
    """Run the workload's program."""
    connection = Recorder(answer, fail_at)
    session = _session(workload, capabilities, terminal, connection)
    compiled = compile_workload(workload, capabilities, session.for_update, TERMINALS)
    program = _engine.Program(compiled.data)
    machine = program.terminal(seed, terminal)
    told = Told(connection.sent)
    if program.has_start:
        session.begin_transaction(0, True)
        session.begin_attempt()
        told.ends.append(_machine_ended(lambda: machine.start(session)))
    for number in range(1, transactions_each + 1):
        for kind in program.transactions:
            session.begin_transaction(number, True)
            session.begin_attempt()
            end = _machine_ended(lambda: machine.run(kind["name"], number, session))  # noqa: B023
            if end[0] == "failed":
                session.rollback()
                session.begin_attempt()
                end = _machine_ended(lambda: machine.retry(session))
                if end[0] == "failed":
                    session.rollback()
            told.ends.append(end)
            if end[0] == "committed":
                told.acks.append(machine.acks)
            else:
                session.rollback()
                machine.restore_state()
    told.state = {name: typed(value) for name, value in machine.state.items()}
    return told


def _machine_ended(run: Callable[[], str]) -> tuple[Any, ...]:
    try:
        return (run(),)
    except DatabaseFailure as failure:
        return ("failed", failure.error.code)
    except _engine.ProgramError as error:
        return ("error", error.kind, error.line, error.sentence)


def assert_same(one: Told, other: Told) -> None:
    """Both lives sent the same, ended alike at the same line, and left the same state."""
    assert other.sent == one.sent
    assert [_place(end) for end in other.ends] == [_place(end) for end in one.ends]
    assert other.acks == one.acks
    assert other.state == one.state


def _place(end: tuple[Any, ...]) -> tuple[Any, ...]:
    """An end without its sentence; that of a transaction left open has no line in the first life."""
    return end[:2] if end[0] == "error" and end[1] == "WrongUse" else end[:3]
