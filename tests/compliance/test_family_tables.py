"""Tables, keys, indexes and foreign keys as each family's dialect makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities, Connection, ErrorClass
from dbdyno.targets.target import Target
from dbdyno.workload.table import INT, Column, ForeignKey, Index, Table, char, decimal, varchar

SBTEST = Table(
    "sbtest1",
    (
        Column("id", INT, auto=True),
        Column("k", INT, default=0),
        Column("c", char(120), default=""),
        Column("pad", char(60), default=""),
    ),
    key=("id",),
    indexes=(Index("k_1", ("k",)),),
    engine="innodb",
    fill=("k", "c", "pad"),
)
PARENT = Table("parent", (Column("w", INT), Column("d", INT), Column("name", varchar(10), null=True)), ("w", "d"))
CHILD = Table(
    "child",
    (Column("id", INT), Column("w", INT), Column("d", INT), Column("amount", decimal(6, 2), default=1)),
    ("id",),
    foreign=(ForeignKey("child_parent", ("w", "d"), "parent", ("w", "d")),),
)


def kind_of_failure(target: Target, call: Callable[[], Any]) -> ErrorClass:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the driver's own
        call()
    return target.family.classify(caught.value).kind


@pytest.fixture
def finish(target: Target, control: Connection) -> Iterator[Callable[[Table], None]]:
    """What the loader does after the rows: indexes, foreign keys, statistics."""

    def run(table: Table) -> None:
        dialect = target.family.dialect
        for index in table.indexes:
            control.execute(dialect.create_index(table, index))
        for statement in [*dialect.add_foreign_keys(table), *dialect.after_load([table])]:
            control.execute(statement)

    return run


def test_the_server_numbers_rows_also_after_loaded_ids(
    target: Target, make: Callable[[Table], None], finish: Callable[[Table], None], connection: Connection
) -> None:
    make(SBTEST)
    connection.execute("INSERT INTO sbtest1 (k) VALUES (?), (?)", (1, 2))
    assert connection.fetch("SELECT id, k, c, pad FROM sbtest1 ORDER BY id") == [(1, 1, "", ""), (2, 2, "", "")]
    connection.execute("INSERT INTO sbtest1 (id, k) VALUES (?, ?)", (1000, 3))
    finish(SBTEST)
    connection.execute("INSERT INTO sbtest1 (k) VALUES (?)", (4,))
    assert connection.fetch("SELECT id FROM sbtest1 WHERE k = 4") == [(1001,)]


def test_an_id_of_zero_is_numbered_where_the_capability_says_so(
    make: Callable[[Table], None], connection: Connection, has: Capabilities
) -> None:
    make(SBTEST)
    connection.execute("INSERT INTO sbtest1 (id, k) VALUES (?, ?)", (0, 1))
    assert connection.fetch("SELECT id FROM sbtest1") == [(1 if has.null_for_auto else 0,)]


def test_existing_tables_names_tables_and_columns(
    target: Target, make: Callable[[Table], None], connection: Connection
) -> None:
    assert "sbtest1" not in target.family.existing_tables(connection)
    make(SBTEST)
    make(PARENT)
    found = target.family.existing_tables(connection)
    assert found["sbtest1"] == ["id", "k", "c", "pad"]
    assert found["parent"] == ["w", "d", "name"]


def test_dropping_a_table_that_is_not_there_is_no_error(target: Target, control: Connection) -> None:
    for _ in range(2):
        control.execute(target.family.dialect.drop_table("never_made"))


def test_a_unique_index_refuses_a_second_row(
    target: Target, make: Callable[[Table], None], finish: Callable[[Table], None], connection: Connection
) -> None:
    table = replace(PARENT, indexes=(Index("parent_name", ("name", "d"), unique=True),))
    make(table)
    finish(table)
    connection.execute("INSERT INTO parent VALUES (1, 1, 'a')")
    again = kind_of_failure(target, lambda: connection.execute("INSERT INTO parent VALUES (2, 1, 'a')"))
    assert again is ErrorClass.IGNORABLE


def test_foreign_keys_are_enforced(
    target: Target,
    make: Callable[[Table], None],
    finish: Callable[[Table], None],
    connection: Connection,
    has: Capabilities,
) -> None:
    assert has.foreign_keys
    make(PARENT)
    make(CHILD)
    finish(CHILD)
    connection.execute("INSERT INTO parent (w, d) VALUES (1, 1)")
    connection.execute("INSERT INTO child (id, w, d) VALUES (1, 1, 1)")
    orphan = kind_of_failure(target, lambda: connection.execute("INSERT INTO child (id, w, d) VALUES (2, 1, 2)"))
    assert orphan is ErrorClass.IGNORABLE
    assert kind_of_failure(target, lambda: connection.execute("DELETE FROM parent")) is ErrorClass.IGNORABLE


def test_a_plain_index_instead_of_the_primary_key_allows_equal_ids(
    target: Target, make: Callable[[Table], None], connection: Connection
) -> None:
    """Two such tables, as sysbench --secondary --tables=2 makes them: the index's name is the same in both."""
    columns = (Column("id", INT), *SBTEST.columns[1:])
    for name in ("sbtest1", "sbtest2"):
        make(replace(SBTEST, name=name, columns=columns, key_index="xid"))
        assert connection.execute(f"INSERT INTO {name} (id) VALUES (?), (?)", (1, 1)) == 2


def test_a_numbered_column_with_a_plain_index_works_or_is_refused_in_words(
    target: Target, make: Callable[[Table], None], connection: Connection
) -> None:
    try:
        make(replace(SBTEST, key_index="xid"))
    except UsageError as error:
        assert "sbtest1.id" in str(error)  # noqa: PT017 - only some families refuse
        return
    connection.execute("INSERT INTO sbtest1 (k) VALUES (5), (6)")
    assert connection.fetch("SELECT id FROM sbtest1 ORDER BY id") == [(1,), (2,)]


def test_hash_partitions_where_the_capability_says_so(
    target: Target, make: Callable[[Table], None], connection: Connection, has: Capabilities
) -> None:
    if not has.partitions:
        pytest.skip("no partitions")
    make(replace(PARENT, partition="w"))
    rows = [(w, 1, "x") for w in range(1, 101)]
    assert connection.execute_many("INSERT INTO parent VALUES (?, ?, ?)", rows) == 100
    assert connection.fetch("SELECT COUNT(*), SUM(w) FROM parent")[0] == (100, 5050)
    assert [name for name in target.family.existing_tables(connection) if name.startswith("parent")] == ["parent"]


def test_returning_and_skip_locked_where_the_capability_says_so(
    target: Target, connect: Callable[..., Connection], accounts: str, has: Capabilities
) -> None:
    one, other = connect(), connect()
    if has.returning:
        assert one.fetch("UPDATE accounts SET balance = 3 WHERE id = ? RETURNING id, balance", (3,)) == [(3, 3)]
        assert one.fetch("INSERT INTO accounts (id) VALUES (?) RETURNING balance", (50,)) == [(0,)]
        assert one.fetch("DELETE FROM accounts WHERE id = ? RETURNING id", (50,)) == [(50,)]
    if has.skip_locked:
        lock = f"SELECT id FROM accounts WHERE id <= 2 ORDER BY id LIMIT 1 {target.family.dialect.for_update}"
        one.begin(True)
        assert one.fetch(lock) == [(1,)]
        other.begin(True)
        assert other.fetch(f"{lock} SKIP LOCKED") == [(2,)]
        other.rollback()
        one.rollback()


def test_words_of_sql_and_odd_characters_can_be_names(
    target: Target, make: Callable[[Table], None], connection: Connection
) -> None:
    quote = target.family.dialect.quote
    table = Table("order", (Column("group", INT), Column("to-do list", INT, default=4), Column("key", INT)), ("group",))
    make(replace(table, indexes=(Index("select", ("key",)),)))
    connection.execute(f"INSERT INTO {quote('order')} ({quote('group')}, {quote('key')}) VALUES (?, ?)", (1, 2))
    assert connection.fetch(f"SELECT {quote('to-do list')} FROM {quote('order')}") == [(4,)]
    assert target.family.existing_tables(connection)["order"] == ["group", "to-do list", "key"]


def test_a_workloads_own_suffix_ends_the_statement(target: Target) -> None:
    text = target.family.dialect.create_table(replace(SBTEST, suffix="/* as given */"))[0]
    assert text.endswith("/* as given */")
    assert ("ENGINE = innodb" in text) == target.capabilities().storage_engines
