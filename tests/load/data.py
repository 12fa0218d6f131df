"""Looking at and changing a target's tables in the tests of loading."""

from __future__ import annotations

from typing import Any

from dbdyno.targets.target import Target

#: More than one range of rows in each of two tables.
SMALL = {"table_size": 1_200, "tables": 2}


def rows(target: Target, sql: str) -> list[tuple[Any, ...]]:
    connection = target.connect()
    try:
        return connection.fetch(sql)
    finally:
        connection.close()


def run(target: Target, *statements: str) -> None:
    connection = target.connect()
    try:
        for sql in statements:
            connection.execute(sql)
    finally:
        connection.close()


def tables_of(target: Target) -> set[str]:
    connection = target.connect()
    try:
        return set(target.family.existing_tables(connection))
    finally:
        connection.close()


def make_foreign(target: Target, count: int) -> None:
    run(
        target,
        "CREATE TABLE sbtest1 (id INTEGER NOT NULL PRIMARY KEY, k INTEGER, c CHAR(120), pad CHAR(60))",
        *(f"INSERT INTO sbtest1 VALUES ({id}, {id}, 'c', 'pad')" for id in range(1, count + 1)),
    )
