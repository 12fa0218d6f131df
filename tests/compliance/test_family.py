"""Every family keeps the same promises on a real server: values, transactions, locks, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.compliance import speech

from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities, Connection, DbError, ErrorClass
from dbdyno.targets.target import Target, open_target
from dbdyno.workload.table import (
    BIGINT,
    FLOAT,
    INT,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    Column,
    Table,
    Type,
    char,
    decimal,
    varchar,
)

Connect = Callable[..., Connection]
TRICKY = 'it\'s 100 % "so", a `tick`, a back\\slash, a ? mark, -- no comment,\n a line; ünï 数据库 🚀'


def error_of(target: Target, call: Callable[[], Any]) -> DbError:
    """The error that a call ends in, understood by the family."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the driver's own, which is the point
        call()
    return target.family.classify(caught.value)


# -- what the server says of itself


def test_the_server_is_named_as_what_it_is(target: Target, server: str, control: Connection) -> None:
    version = target.family.identify(control)
    assert version.flavour == speech.FLAVOURS[server]
    assert version.family == target.family.name
    assert len(version.number) >= 2
    assert str(version.number[0]) in version.text


def test_facts_tell_settings_durability_size_and_isolation(
    target: Target, control: Connection, has: Capabilities, accounts: str
) -> None:
    facts = target.family.facts(control, target.address)
    assert len(facts.settings) > 30
    assert all(isinstance(value, str) for value in facts.settings.values())
    assert not [name for name in facts.settings if "password" in name.lower()]
    assert facts.durability
    assert facts.durable_commit is True  # managed servers run with what is the default everywhere
    assert facts.database_bytes is None or facts.database_bytes > 0
    assert facts.isolation in has.isolation


def test_the_default_isolation_is_what_facts_say(
    target: Target, server: str, control: Connection, connection: Connection
) -> None:
    if server == "sqlite":
        pytest.skip("SQLite has one level")
    assert target.family.facts(control, target.address).isolation == speech.isolation_of(server, connection)


def test_max_connections_is_a_usable_number_or_unknown(target: Target, control: Connection) -> None:
    limit = target.family.max_connections(control)
    assert limit is None or 10 <= limit < 1_000_000


# -- values


VALUES: list[tuple[str, Type, Any]] = [
    ("int", INT, 2**31 - 1),
    ("int_min", INT, -(2**31)),
    ("bigint", BIGINT, 2**63 - 1),
    ("bigint_min", BIGINT, -(2**63)),
    ("smallint", SMALLINT, -(2**15)),
    ("float", FLOAT, 0.1),
    ("float_small", FLOAT, 5e-300),
    ("decimal", decimal(12, 2), Decimal("-9876543210.99")),
    ("decimal_whole", decimal(12, 2), Decimal("100.00")),
    ("char", char(120), "68487932199-96439406143-93774651418-41631865787-96406072701"),
    ("varchar", varchar(200), TRICKY),
    ("empty", varchar(10), ""),
    ("text", TEXT, TRICKY * 50),
    ("timestamp", TIMESTAMP, datetime(2024, 2, 29, 23, 59, 59, 123456)),
    ("timestamp_whole", TIMESTAMP, datetime(1970, 1, 2)),
]


def comparable(value: Any, like: Any) -> Any:
    """SQLite gives decimals as numbers and moments as text; a workload makes them what it needs."""
    if isinstance(like, Decimal):
        return Decimal(str(value)).quantize(like)
    if isinstance(like, datetime) and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


@pytest.mark.parametrize(("kind", "value"), [pytest.param(kind, value, id=name) for name, kind, value in VALUES])
def test_a_value_comes_back_as_it_was_stored(
    make: Callable[[Table], None], connection: Connection, kind: Type, value: Any
) -> None:
    make(Table("vals", (Column("id", INT), Column("v", kind, null=True, binary=isinstance(value, str))), ("id",)))
    assert connection.execute("INSERT INTO vals (id, v) VALUES (?, ?), (?, ?)", (1, value, 2, None)) == 2
    rows = connection.fetch("SELECT id, v FROM vals ORDER BY id")
    assert [(row[0], comparable(row[1], value) if row[0] == 1 else row[1]) for row in rows] == [(1, value), (2, None)]
    assert connection.fetch("SELECT id FROM vals WHERE v = ?", (value,)) == [(1,)]


def test_a_literal_means_the_same_as_a_parameter(
    target: Target, make: Callable[[Table], None], connection: Connection
) -> None:
    columns = [
        Column(f"c{i}", kind, null=True, binary=isinstance(value, str)) for i, (_, kind, value) in enumerate(VALUES)
    ]
    make(Table("vals", (Column("id", INT), *columns), ("id",)))
    values = [value for _, _, value in VALUES]
    literals = ", ".join(target.family.dialect.literal(value) for value in (1, *values))
    connection.execute(f"INSERT INTO vals VALUES ({literals})")
    connection.execute(f"INSERT INTO vals VALUES ({', '.join('?' * (len(values) + 1))})", (2, *values))
    first, second = connection.fetch("SELECT * FROM vals ORDER BY id")
    assert first[1:] == second[1:]
    assert [comparable(got, like) for got, like in zip(first[1:], values, strict=True)] == values


def test_moments_are_kept_in_utc(make: Callable[[Table], None], connection: Connection) -> None:
    make(Table("vals", (Column("id", INT), Column("v", TIMESTAMP)), ("id",)))
    moment = datetime.fromisoformat("2024-07-01T02:00:00+02:00")
    connection.execute("INSERT INTO vals VALUES (?, ?)", (1, moment))
    got = comparable(connection.fetch("SELECT v FROM vals")[0][0], moment)
    assert got.replace(tzinfo=UTC) == moment


def test_char_comes_without_trailing_blanks(connection: Connection, accounts: str) -> None:
    connection.execute("UPDATE accounts SET name = ? WHERE id = ?", ("short", 1))
    connection.execute("UPDATE accounts SET name = ? WHERE id = ?", ("  inner blank", 2))
    rows = connection.fetch("SELECT name FROM accounts WHERE id <= 3 ORDER BY id")
    assert rows == [("short",), ("  inner blank",), ("",)]


def test_binary_columns_are_ordered_by_code_point(connection: Connection, accounts: str) -> None:
    for number, name in enumerate(("a", "B", "ä", "Z", "z"), start=1):
        connection.execute("UPDATE accounts SET name = ? WHERE id = ?", (name, number))
    rows = connection.fetch("SELECT name FROM accounts WHERE id <= 5 ORDER BY name")
    assert [row[0] for row in rows] == ["B", "Z", "a", "z", "ä"]


def test_a_statement_without_parameters_may_hold_percent_and_question_marks(connection: Connection) -> None:
    assert connection.fetch("SELECT '%s ? %d' -- why?\n") == [("%s ? %d",)]
    assert connection.fetch("SELECT '?', id FROM (SELECT 1 AS id) AS x WHERE id = ? /* ? */", (1,)) == [("?", 1)]


# -- counting rows


def test_rows_matched_are_counted_not_rows_changed(connection: Connection, accounts: str) -> None:
    assert connection.execute("UPDATE accounts SET balance = ? WHERE id IN (?, ?, ?)", (100, 1, 2, 99)) == 2
    assert connection.execute("UPDATE accounts SET balance = balance WHERE id = ?", (77,)) == 0
    assert connection.execute("DELETE FROM accounts WHERE id > ?", (8,)) == 2


def test_execute_many_runs_each_row_and_adds_up(connection: Connection, accounts: str) -> None:
    matched = connection.execute_many(
        "UPDATE accounts SET balance = balance + ? WHERE id = ?", [(1, i) for i in range(2100)]
    )
    assert matched == 10
    assert connection.fetch("SELECT SUM(balance) FROM accounts")[0][0] == 1010
    assert connection.execute_many("DELETE FROM accounts WHERE id = ?", []) == 0


def test_a_multi_row_insert_of_half_a_mebibyte_goes_through(
    target: Target, make: Callable[[Table], None], connection: Connection, has: Capabilities
) -> None:
    make(Table("bulk", (Column("id", INT), Column("c", char(120)), Column("pad", char(60))), ("id",)))
    rows = min(2700, has.max_parameters // 3)
    sql = "INSERT INTO bulk (id, c, pad) VALUES " + ", ".join(["(?, ?, ?)"] * rows)
    values = [value for i in range(rows) for value in (i, f"{i:0119d}", "p" * 59)]
    assert connection.execute(sql, values) == rows
    assert connection.fetch("SELECT COUNT(*), MAX(c) FROM bulk") == [(rows, f"{rows - 1:0119d}")]


# -- transactions


def test_autocommit_shows_a_write_to_everybody_at_once(connect: Connect, accounts: str) -> None:
    one, other = connect(), connect()
    one.execute("UPDATE accounts SET balance = 5 WHERE id = 1")
    assert other.fetch("SELECT balance FROM accounts WHERE id = 1") == [(5,)]
    assert not one.in_transaction


def test_commit_keeps_and_rollback_undoes(connect: Connect, accounts: str) -> None:
    one, other = connect(), connect()
    for ending, kept in ((one.rollback, 100), (one.commit, 7)):
        one.begin(True)
        assert one.in_transaction
        one.execute("UPDATE accounts SET balance = ? WHERE id = ?", (7, 1))
        assert one.fetch("SELECT balance FROM accounts WHERE id = 1") == [(7,)]
        assert other.fetch("SELECT balance FROM accounts WHERE id = 1") == [(100,)]
        ending()
        assert not one.in_transaction
        assert other.fetch("SELECT balance FROM accounts WHERE id = 1") == [(kept,)]


def test_a_failed_transaction_can_be_rolled_back_and_the_connection_used_again(
    target: Target, connection: Connection, accounts: str
) -> None:
    connection.begin(True)
    connection.execute("UPDATE accounts SET balance = 1 WHERE id = 1")
    error_of(target, lambda: connection.execute("INSERT INTO accounts (id) VALUES (?)", (2,)))
    connection.rollback()
    assert not connection.in_transaction
    assert connection.fetch("SELECT balance FROM accounts WHERE id = 1") == [(100,)]
    connection.begin(True)
    connection.execute("UPDATE accounts SET balance = 2 WHERE id = 1")
    connection.commit()
    assert connection.fetch("SELECT balance FROM accounts WHERE id = 1") == [(2,)]


def test_statements_in_a_pipeline_all_take_effect(connection: Connection, accounts: str) -> None:
    connection.begin(True)
    with connection.pipeline():
        connection.execute("UPDATE accounts SET balance = ? WHERE id = ?", (1, 1))
        connection.fetch("SELECT balance FROM accounts WHERE id = ?", (1,))
        connection.execute("UPDATE accounts SET balance = ? WHERE id = ?", (2, 2))
    connection.commit()
    assert connection.fetch("SELECT balance FROM accounts WHERE id <= 2 ORDER BY id") == [(1,), (2,)]


def test_an_error_in_a_pipeline_is_that_statements_error(target: Target, connection: Connection, accounts: str) -> None:
    def run() -> None:
        with connection.pipeline():
            connection.execute("UPDATE accounts SET balance = ? WHERE id = ?", (1, 1))
            connection.execute("INSERT INTO accounts (id) VALUES (?)", (2,))
            connection.execute("UPDATE accounts SET balance = ? WHERE id = ?", (2, 2))

    connection.begin(True)
    assert error_of(target, run).kind is ErrorClass.IGNORABLE
    connection.rollback()
    assert connection.fetch("SELECT balance FROM accounts WHERE id <= 2 ORDER BY id") == [(100,), (100,)]


# -- isolation


def test_each_isolation_level_is_really_set(server: str, connect: Connect, has: Capabilities, accounts: str) -> None:
    for level in has.isolation:
        connection = connect(isolation=level)
        if server != "sqlite":
            connection.begin(False)
            assert speech.isolation_of(server, connection) == level
            connection.rollback()
        if level in ("read uncommitted", "serializable") and has.concurrent_writers:
            continue  # a reader may block the writer below
        other = connect()
        before = connection.fetch("SELECT balance FROM accounts WHERE id = 1")[0][0]
        connection.begin(False)
        connection.fetch("SELECT balance FROM accounts WHERE id = 1")
        other.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
        again = connection.fetch("SELECT balance FROM accounts WHERE id = 1")[0][0]
        connection.commit()
        assert again == (before + 1 if level == "read committed" else before)


def test_an_isolation_level_that_there_is_not_is_refused(target: Target) -> None:
    with pytest.raises(UsageError, match="snapshot"):
        target.connect(isolation="snapshot")


# -- locks


def test_for_update_makes_the_second_wait_until_the_first_commits(
    target: Target, connect: Connect, has: Capabilities, accounts: str
) -> None:
    if not has.for_update:
        assert target.family.dialect.for_update == ""
        return
    sql = f"SELECT balance FROM accounts WHERE id = ? {target.family.dialect.for_update}"
    one, other = connect(), connect()
    one.begin(True)
    one.fetch(sql, (1,))
    with ThreadPoolExecutor(1) as pool:
        other.begin(True)
        waiting = pool.submit(other.fetch, sql, (1,))
        time.sleep(0.3)
        assert not waiting.done()
        one.execute("UPDATE accounts SET balance = 42 WHERE id = 1")
        one.commit()
        assert waiting.result(timeout=10) == [(42,)] or has.isolation[-1] == "snapshot"
    other.commit()


def test_a_real_deadlock_is_retryable_and_loses_nothing(
    target: Target, connect: Connect, has: Capabilities, accounts: str, server_url: str
) -> None:
    update = "UPDATE accounts SET balance = balance + 1 WHERE id = ?"
    if not has.concurrent_writers:
        patient = open_target(f"{server_url}?busy_timeout=50").connect()
        one = connect()
        one.begin(True)
        assert error_of(target, lambda: patient.begin(True)).kind is ErrorClass.RETRYABLE
        one.commit()
        patient.begin(True)
        patient.rollback()
        patient.close()
        return
    sides = [(connect(), 1, 2), (connect(), 2, 1)]
    meet = threading.Barrier(2)

    def side(connection: Connection, first: int, second: int) -> DbError | None:
        connection.begin(True)
        connection.execute(update, (first,))
        meet.wait(10)
        try:
            connection.execute(update, (second,))
            connection.commit()
        except Exception as error:
            connection.rollback()
            return target.family.classify(error)
        return None

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda arguments: side(*arguments), sides))
    errors = [outcome for outcome in outcomes if outcome is not None]
    # One victim is enough for a server, and most choose one; a slow machine may make it two.
    assert {error.kind for error in errors} == {ErrorClass.RETRYABLE}
    done = len(sides) - len(errors)
    assert connect().fetch("SELECT SUM(balance) FROM accounts WHERE id <= 2")[0][0] == 200 + 2 * done


# -- errors


def test_a_duplicate_key_is_ignorable(target: Target, connection: Connection, accounts: str) -> None:
    error = error_of(target, lambda: connection.execute("INSERT INTO accounts (id) VALUES (?)", (1,)))
    assert error.kind is ErrorClass.IGNORABLE
    assert error.code
    assert "\n" not in error.message


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM no_such_table", "SELECT no_such_column FROM accounts", "SELEKT 1", "DELETE FROM no_such_table"],
)
def test_a_mistake_in_the_workload_is_fatal_and_named(
    target: Target, connection: Connection, accounts: str, sql: str
) -> None:
    error = error_of(target, lambda: connection.execute(sql, ()))
    assert error.kind is ErrorClass.FATAL
    assert any(word in error.message for word in ("no_such_table", "no_such_column", "SELEKT"))
    assert connection.fetch("SELECT 1") == [(1,)]


def test_an_exception_that_is_no_database_error_is_fatal(target: Target) -> None:
    assert target.family.classify(ZeroDivisionError("division by zero")).kind is ErrorClass.FATAL


def test_a_session_that_the_server_ended_is_lost(
    target: Target, server: str, connect: Connect, control: Connection, accounts: str
) -> None:
    idle, busy = connect(), connect()
    busy.begin(True)
    busy.execute("UPDATE accounts SET balance = 0 WHERE id = 1")
    for connection in (idle, busy):
        speech.end_session(server, connection, control)
        time.sleep(0.2)
        assert error_of(target, lambda c=connection: c.fetch("SELECT 1")).kind is ErrorClass.LOST  # type: ignore[misc]
        # and stays so, whatever is tried on it
        assert error_of(target, lambda c=connection: c.execute("SELECT 1")).kind is ErrorClass.LOST  # type: ignore[misc]
        assert error_of(target, lambda c=connection: c.begin(True)).kind is ErrorClass.LOST  # type: ignore[misc]
        connection.close()
    if server != "sqlite":
        assert control.fetch("SELECT balance FROM accounts WHERE id = 1") == [(100,)]


def test_cancel_ends_a_running_statement_within_seconds(
    target: Target, connect: Connect, control: Connection, make: Callable[[Table], None]
) -> None:
    make(Table("numbers", (Column("n", INT),), ("n",)))
    control.execute_many("INSERT INTO numbers VALUES (?)", [(i,) for i in range(1000)])
    connection = connect()
    slow = "SELECT COUNT(*) FROM numbers a, numbers b, numbers c, numbers d WHERE a.n + b.n + c.n + d.n = -1"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(error_of, target, lambda: connection.fetch(slow))
        time.sleep(0.5)
        assert not running.done()
        started = time.monotonic()
        connection.cancel()
        error = running.result(timeout=30)
    assert time.monotonic() - started < 5
    assert error.kind in (ErrorClass.IGNORABLE, ErrorClass.LOST)
    if error.kind is ErrorClass.IGNORABLE:
        assert connection.fetch("SELECT COUNT(*) FROM numbers") == [(1000,)]
    connection.cancel()  # with nothing running: harmless
    control.fetch("SELECT 1")
