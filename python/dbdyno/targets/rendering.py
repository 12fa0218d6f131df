"""Standard SQL for table descriptions; a family's dialect overrides what it writes differently."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from dbdyno.workload.table import Column, Index, Table, Type

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: Words that some family reserves; quoting one that a server would take unquoted does no harm.
_RESERVED_TEXT = """
    add all alter analyze and any array as asc between both by case cast change character check collate column
    condition constraint convert create cross cube current_date current_time current_timestamp current_user cursor
    database default deferrable delayed delete desc describe distinct div drop dual each else end except exists
    explain false fetch float for force foreign from full fulltext function glob grant group grouping groups having
    if ignore in index initially inner insert int integer intersect interval into is isnull join key keys kill
    lateral leading left like limit lines load localtime lock long match mod natural not notnull null numeric of
    offset on only optimize option or order outer over overlaps partition placing precision primary procedure range
    rank read recursive references regexp rename repeat replace require restrict returning right row row_number
    rows schema select session_user set show signal similar some sql ssl symmetric system table tablesample then to
    trailing transaction trigger true undo union unique unlock unsigned update usage use user using values varchar
    verbose virtual when where while window with write xor zerofill
"""
_RESERVED = frozenset(_RESERVED_TEXT.split())
#: How many hash partitions a partitioned table gets.
PARTITIONS = 16


def utc_text(value: datetime) -> str:
    """A moment as databases without zones keep it: UTC, microseconds, ``2024-01-31 23:59:59.000000``."""
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return value.isoformat(" ", "microseconds")


class StandardDialect:
    """What PostgreSQL, SQLite and the MySQL protocol's families write alike. Stateless."""

    for_update: str = "FOR UPDATE"
    quote_mark: ClassVar[str] = '"'
    types: ClassVar[dict[str, str]] = {}
    binary_collation: ClassVar[str] = ""

    def quote(self, name: str) -> str:
        """An identifier, quoted if it must be."""
        if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED:
            return name
        mark = self.quote_mark
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def names(self, names: Iterable[str]) -> str:
        """``a, b, c``, each quoted if it must be."""
        return ", ".join(self.quote(name) for name in names)

    def literal(self, value: Any) -> str:
        """A Python value as SQL text.

        Raises:
            TypeError: not a value of the workload language.
        """
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, (int, float, Decimal)):
            return repr(value) if isinstance(value, float) else str(value)
        if isinstance(value, str):
            return self.text_literal(value)
        if isinstance(value, bytes):
            return self.bytes_literal(value)
        if isinstance(value, datetime):
            return f"'{utc_text(value)}'"
        if isinstance(value, date):
            return f"'{value.isoformat()}'"
        raise TypeError(f"{type(value).__name__} is not a value that SQL can be given")

    def text_literal(self, value: str) -> str:
        """A text in single quotes."""
        return "'" + value.replace("'", "''") + "'"

    def bytes_literal(self, value: bytes) -> str:
        """Bytes in hexadecimal."""
        return f"X'{value.hex()}'"

    def type_text(self, kind: Type) -> str:
        """An abstract type as this family names it."""
        return self.types[kind.name].format(length=kind.length, precision=kind.precision, scale=kind.scale)

    def column_text(self, table: Table, column: Column) -> str:
        """One column's line in CREATE TABLE."""
        parts = [self.quote(column.name), self.auto_type(column) if column.auto else self.type_text(column.type)]
        if column.binary and self.binary_collation:
            parts.append(self.binary_collation)
        if column.default is not None:
            parts.append(f"DEFAULT {self.literal(column.default)}")
        if not column.null:
            parts.append("NOT NULL")
        if column.auto and (suffix := self.auto_suffix(table, column)):
            parts.append(suffix)
        return " ".join(parts)

    def auto_type(self, column: Column) -> str:
        """The type of a column that the server numbers."""
        return self.type_text(column.type)

    def auto_suffix(self, table: Table, column: Column) -> str:
        """What follows the column's constraints when the server numbers it."""
        return ""

    def key_lines(self, table: Table) -> list[str]:
        """The key inside CREATE TABLE."""
        return [f"PRIMARY KEY ({self.names(table.key)})"] if table.key and not table.key_index else []

    def extra_lines(self, table: Table) -> list[str]:
        """More lines inside CREATE TABLE."""
        return []

    def table_options(self, table: Table) -> list[str]:
        """What follows the closing bracket, before the workload's own suffix."""
        return []

    def after_create(self, table: Table) -> list[str]:
        """Statements after CREATE TABLE. Index names are unique in a schema here, so a key's index, which many
        tables name alike, carries the table's name too."""
        if not table.key_index or not table.key:
            return []
        name = self.quote(f"{table.key_index}_{table.name}")
        return [f"CREATE INDEX {name} ON {self.quote(table.name)} ({self.names(table.key)})"]

    def create_table(self, table: Table) -> list[str]:
        """Statements that make the table with its primary key, without secondary indexes."""
        lines = [self.column_text(table, column) for column in table.columns]
        lines += self.key_lines(table) + self.extra_lines(table)
        options = [*self.table_options(table), *([table.suffix] if table.suffix else [])]
        text = f"CREATE TABLE {self.quote(table.name)} (\n  " + ",\n  ".join(lines) + "\n)"
        return [" ".join([text, *options]), *self.after_create(table)]

    def create_index(self, table: Table, index: Index) -> str:
        """CREATE INDEX."""
        unique = "UNIQUE " if index.unique else ""
        return (
            f"CREATE {unique}INDEX {self.quote(index.name)} ON {self.quote(table.name)} ({self.names(index.columns)})"
        )

    def add_foreign_keys(self, table: Table) -> list[str]:
        """ALTER TABLE … ADD CONSTRAINT, one for each."""
        return [
            f"ALTER TABLE {self.quote(table.name)} ADD CONSTRAINT {self.quote(key.name)}"
            f" FOREIGN KEY ({self.names(key.columns)})"
            f" REFERENCES {self.quote(key.references)} ({self.names(key.referenced)})"
            for key in table.foreign
        ]

    def drop_table(self, name: str) -> str:
        """Drop if it exists."""
        return f"DROP TABLE IF EXISTS {self.quote(name)}"

    def after_load(self, tables: Iterable[Table]) -> list[str]:
        """Statistics for the optimiser."""
        return [f"ANALYZE {self.quote(table.name)}" for table in tables]
