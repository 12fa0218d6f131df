"""sysbench's bulk_insert: each terminal fills a table of its own with multi-row INSERTs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from dbdyno.workload import INT, Column, Db, Stream, Table, Workload, check, option, state, transaction

_NAME = re.compile(r"sbtest(\d+)")


class BulkInsert(Workload):
    """Rows (n, n) into sbtest1, sbtest2, …: one table for each terminal (sysbench bulk_insert).

    A transaction is one INSERT of ``rows_per_insert`` rows. sysbench counts each row as an event, also those
    that it still holds back when the time is up: multiply transactions by rows_per_insert to compare.
    A terminal whose table is missing makes it; one that finds rows goes on after the last.
    """

    data_options: ClassVar[tuple[str, ...]] = ("threads",)

    threads: int = option(1, "tables made by prepare; a run makes what it lacks", ge=1)
    rows_per_insert: int = option(10_000, "rows in one INSERT", ge=1, le=10_000)

    last = state(0)

    def schema(self) -> Iterable[Table]:
        """sbtest1 … sbtestN, empty."""
        return [_table(f"sbtest{number}") for number in range(1, self.threads + 1)]

    def tables_of_runs(self, existing: Mapping[str, Iterable[str]]) -> Iterable[Table]:
        """Those that terminals beyond ``threads`` made."""
        beyond = [
            name
            for name, columns in existing.items()
            if (match := _NAME.fullmatch(name)) and int(match[1]) > self.threads and set(columns) == {"id", "k"}
        ]
        return [_table(name) for name in sorted(beyond)]

    def start(self, db: Db, rand: Stream) -> None:
        """Make the terminal's table if need be and find its last row."""
        table = db.terminal
        db.execute(
            f"CREATE TABLE IF NOT EXISTS sbtest{table}"
            " (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))"
        )
        row = db.row(f"SELECT MAX(id) FROM sbtest{table}")
        if row is not None and row[0] is not None:
            db.state.last = row[0]

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        table = db.terminal
        first = db.state.last + 1
        # Set before the INSERT: if its outcome stays unknown, its ids are not used again.
        db.state.last = db.state.last + self.rows_per_insert
        db.batch(
            f"INSERT INTO sbtest{table} VALUES (?, ?)",
            [(first + i, first + i) for i in range(self.rows_per_insert)],
        )

    @check("rows as inserted")
    def rows_are_as_inserted(self, db: Db) -> str:
        """k equals id in every row."""
        return " UNION ALL ".join(
            f"SELECT 'sbtest{number}' AS name, id, k FROM sbtest{number} WHERE id <> k"
            for number in range(1, self.threads + 1)
        )


def _table(name: str) -> Table:
    return Table(name, (Column("id", INT), Column("k", INT, default=0)), key=("id",))
