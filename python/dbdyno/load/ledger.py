"""The table ``dbdyno_load``: which tables of the database dbdyno made, from what, and whether it finished.

One row a table, so that workloads on the same tables share them and others stand beside each other. A table
without a row was made by somebody else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dbdyno.targets.family import Connection
from dbdyno.targets.target import Target
from dbdyno.workload import BIGINT, SMALLINT, TEXT, Column, Table, Workload, char, varchar

NAME = "dbdyno_load"
TABLE = Table(
    NAME,
    (
        Column("table_name", varchar(128)),
        Column("workload", varchar(200)),
        Column("data_options", TEXT),
        Column("fingerprint", char(64)),
        Column("seed", BIGINT),
        Column("loaded_rows", BIGINT),
        Column("finished", SMALLINT),
        Column("begun_at", varchar(32)),
    ),
    key=("table_name",),
)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What dbdyno put into one table."""

    table: str
    workload: str  # label of the workload that prepared it
    options: Mapping[str, Any]  # its data options
    fingerprint: str
    seed: int
    rows: int
    finished: bool
    begun_at: str  # ISO 8601, UTC


def fingerprint(table: Table, seed: int) -> str:
    """sha256 over the table's description and a sample of its rows as the row function makes them.

    The rows are drawn uniformly whatever ``rand_type`` says: it shapes a run, not the identity of the data.
    """
    digest = hashlib.sha256()
    described = (
        table.name, table.columns, table.key, table.key_index, table.indexes, table.foreign, table.units,
        table.filled, table.partition, table.suffix, table.engine,
    )  # fmt: skip
    digest.update(repr(described).encode())
    if table.rows is not None and table.units > 0:
        stream = Workload().stream(seed, f"table:{table.name}", 0, 1)
        spread = {1 + (table.units - 1) * step // 16 for step in range(17)}
        for unit in sorted(spread):
            stream.reseat(0, unit)
            for _, row in zip(range(64), table.rows(stream, unit), strict=False):
                digest.update(repr(tuple(row)).encode())
    return digest.hexdigest()


def data_options(workload: Workload) -> dict[str, Any]:
    """Values of those options that decide what is loaded."""
    return {name: workload.options[name] for name in workload.data_options if name in workload.options}


def read(connection: Connection) -> dict[str, LedgerEntry]:
    """All entries by table; the ledger must exist."""
    rows = connection.fetch(
        f"SELECT table_name, workload, data_options, fingerprint, seed, loaded_rows, finished, begun_at FROM {NAME}"
    )
    return {
        name: LedgerEntry(name, workload, json.loads(options), mark, int(seed), int(count), int(finished) == 1, begun)
        for name, workload, options, mark, seed, count, finished, begun in rows
    }


def begin(
    target: Target, connection: Connection, workload: Workload, tables: Iterable[Table], seed: int, exists: bool
) -> None:
    """Write down that these tables are about to be made by us (before they are)."""
    if not exists:
        for statement in target.family.dialect.create_table(TABLE):
            connection.execute(statement)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    options = json.dumps(data_options(workload), sort_keys=True)
    for table in tables:
        connection.execute(f"DELETE FROM {NAME} WHERE table_name = ?", (table.name,))
        connection.execute(
            f"INSERT INTO {NAME} (table_name, workload, data_options, fingerprint, seed, loaded_rows,"
            " finished, begun_at) VALUES (?, ?, ?, ?, ?, 0, 0, ?)",
            (table.name, workload.label, options, fingerprint(table, seed), seed, now),
        )


def finish(connection: Connection, rows: Mapping[str, int]) -> None:
    """Write down that these tables (name to rows loaded) are complete."""
    for name, count in rows.items():
        connection.execute(f"UPDATE {NAME} SET finished = 1, loaded_rows = ? WHERE table_name = ?", (count, name))


def forget(target: Target, connection: Connection, tables: Iterable[str]) -> None:
    """Take these tables off the ledger, and drop it when it is empty."""
    for name in tables:
        connection.execute(f"DELETE FROM {NAME} WHERE table_name = ?", (name,))
    if connection.fetch(f"SELECT COUNT(*) FROM {NAME}")[0][0] == 0:
        connection.execute(target.family.dialect.drop_table(NAME))
