"""SQL as SQLite writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dbdyno.model.errors import UsageError
from dbdyno.targets.rendering import StandardDialect
from dbdyno.workload.table import Column, Table


class SqliteDialect(StandardDialect):
    """Types by affinity (sqlite.org/datatype3.html): DECIMAL is kept as integer or binary floating point, moments
    as text. Texts compare by their bytes (collation BINARY) everywhere."""

    for_update = ""
    types: ClassVar[dict[str, str]] = {
        "int": "INTEGER",
        "bigint": "INTEGER",
        "smallint": "INTEGER",
        "float": "REAL",
        "decimal": "DECIMAL({precision},{scale})",
        "char": "CHAR({length})",
        "varchar": "VARCHAR({length})",
        "text": "TEXT",
        "timestamp": "TEXT",
    }

    def literal(self, value: Any) -> str:
        if isinstance(value, bool):
            return "1" if value else "0"
        return super().literal(value)

    def column_text(self, table: Table, column: Column) -> str:
        # A single INTEGER primary key is the row id itself, which SQLite numbers; nothing else is numbered.
        if column.auto and (table.key != (column.name,) or table.key_index):
            raise UsageError(
                f"SQLite numbers only a primary key, and {table.name}.{column.name} is none; give the ids in the rows"
            )
        return super().column_text(table, column)

    def auto_type(self, column: Column) -> str:
        return "INTEGER"

    def extra_lines(self, table: Table) -> list[str]:
        # ALTER TABLE cannot add them later.
        return [
            f"CONSTRAINT {self.quote(key.name)} FOREIGN KEY ({self.names(key.columns)})"
            f" REFERENCES {self.quote(key.references)} ({self.names(key.referenced)})"
            for key in table.foreign
        ]

    def add_foreign_keys(self, table: Table) -> list[str]:
        return []

    def after_load(self, tables: Iterable[Table]) -> list[str]:
        return [*super().after_load(tables), "PRAGMA wal_checkpoint(TRUNCATE)"]
