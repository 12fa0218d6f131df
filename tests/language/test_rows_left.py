"""Both lives leave the same rows in a real database, with retries on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dbdyno import _engine, load
from dbdyno.drive.session import DatabaseFailure, Session
from dbdyno.targets.family import DbError, ErrorClass
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import Rollback, Workload, states, transactions
from dbdyno.workload.compiler import compile_workload
from dbdyno.workload.source import load_workload

WORKLOADS: dict[str, dict[str, Any]] = {
    "oltp_read_write": {"tables": 2, "table_size": 200},
    "oltp_write_only": {"tables": 2, "table_size": 200, "rand_type": "zipfian", "delete_inserts": 3},
    "oltp_insert": {"tables": 2, "table_size": 50, "auto_inc": False},
    "oltp_delete": {"tables": 1, "table_size": 100},
    "oltp_update_non_index": {"tables": 1, "table_size": 100, "rand_type": "special"},
    "bulk_insert": {"threads": 2, "rows_per_insert": 30},
    "tpcb_like": {"scale": 1},
}
TRANSACTIONS, TERMINALS, SEED = 25, 2, 5


class Stumbling:
    """A connection whose every n-th statement fails before it is sent, once."""

    def __init__(self, connection: Any, every: int) -> None:
        self._connection = connection
        self._every = every
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def _stumble(self) -> None:
        self._count += 1
        if self._count % self._every == 0:
            raise Stumbled

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        self._stumble()
        return int(self._connection.execute(sql, params))

    def commit(self) -> None:
        self._stumble()
        self._connection.commit()


class Stumbled(Exception):
    """What the connection says then; retryable."""


class StumblingFamily:
    """The target's family, which knows that error."""

    def __init__(self, family: Any) -> None:
        self._family = family
        self.dialect = family.dialect

    def classify(self, error: BaseException) -> DbError:
        if isinstance(error, Stumbled):
            return DbError("stumbled", ErrorClass.RETRYABLE, "stumbled")
        found: DbError = self._family.classify(error)
        return found


def run(target: Target, workload: Workload, *, compiled: bool) -> None:
    capabilities = target.capabilities()
    for number in range(1, TERMINALS + 1):
        session = Session(
            StumblingFamily(target.family),  # type: ignore[arg-type]
            capabilities,
            terminal=number,
            terminals=TERMINALS,
            declared=states(workload),
            replay=True,
        )
        connection = target.connect(number - 1, isolation=None)
        session.attach(connection)
        life = Second(workload, session, number) if compiled else First(workload, session, number)
        session.begin_transaction(0, True)
        life.start()
        session.attach(Stumbling(connection, 17))  # type: ignore[arg-type]
        for transaction in range(1, TRANSACTIONS + 1):
            for kind in transactions(workload):
                session.begin_transaction(transaction, True)
                session.begin_attempt()
                try:
                    life.run(kind.method, transaction)
                except DatabaseFailure as failure:
                    if failure.error.code != "stumbled":
                        raise
                    session.rollback()
                    session.begin_attempt()
                    life.again(kind.method)
        connection.close()


class First:
    """The functions themselves."""

    def __init__(self, workload: Workload, session: Session, terminal: int) -> None:
        self.workload, self.session, self.terminal = workload, session, terminal
        self.stream = workload.stream(SEED, "transaction", terminal, 0)
        self.saved: dict[str, Any] = {}

    def start(self) -> None:
        if self.workload.has_start:
            stream = self.workload.stream(SEED, "start", self.terminal, 0)
            self.workload.start(self.session, stream)  # type: ignore[attr-defined]

    def run(self, method: str, number: int) -> None:
        self.stream.reseat(self.terminal, number)
        self.saved = self.session.state.save()
        self._call(method)

    def again(self, method: str) -> None:
        self.stream.rewind()
        self.session.state.restore(self.saved)
        self._call(method)

    def _call(self, method: str) -> None:
        try:
            getattr(self.workload, method)(self.session, self.stream)
        except Rollback:
            self.session.rollback()


class Second:
    """The compiled program."""

    def __init__(self, workload: Workload, session: Session, terminal: int) -> None:
        self.session = session
        compiled = compile_workload(workload, session.has, session.for_update, TERMINALS)
        self.machine = _engine.Program(compiled.data).terminal(SEED, terminal)

    def start(self) -> None:
        self.machine.start(self.session)

    def run(self, method: str, number: int) -> None:
        if self.machine.run(method, number, self.session) != "committed":
            self.session.rollback()

    def again(self, method: str) -> None:
        if self.machine.retry(self.session) != "committed":
            self.session.rollback()


def rows(target: Target) -> dict[str, list[tuple[Any, ...]]]:
    connection = target.control()
    try:
        names = sorted(set(target.family.existing_tables(connection)) - {"dbdyno_load"})
        return {name: sorted(connection.fetch(f"SELECT * FROM {name}"), key=repr) for name in names}
    finally:
        connection.close()


def without_times(found: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """pgbench's history has the server's time in it."""
    return {name: [row[:4] for row in table] if name == "pgbench_history" else table for name, table in found.items()}


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_lives_leave_the_same_rows(name: str, target_url: str) -> None:
    target = open_target(target_url)
    if name == "tpcb_like" and target.family.name != "sqlite":
        pytest.skip("pgbench's smallest scale has 100,000 rows; once is enough")
    left = []
    for compiled in (False, True):
        workload = load_workload(name, WORKLOADS[name])
        load.cleanup(target, workload)
        load.prepare(target, workload, seed=3)
        before = without_times(rows(target))
        run(target, workload, compiled=compiled)
        left.append(without_times(rows(target)))
        load.cleanup(target, workload)
        assert left[-1] != before, "the workload changed nothing"
    assert left[0] == left[1]
