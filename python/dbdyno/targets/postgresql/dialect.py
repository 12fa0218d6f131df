"""SQL as PostgreSQL writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from dbdyno.targets.rendering import PARTITIONS, StandardDialect
from dbdyno.workload.table import Column, Table


class PostgresqlDialect(StandardDialect):
    """SERIAL for numbered columns, as sysbench makes them."""

    binary_collation = 'COLLATE "C"'
    types: ClassVar[dict[str, str]] = {
        "int": "INTEGER",
        "bigint": "BIGINT",
        "smallint": "SMALLINT",
        "float": "DOUBLE PRECISION",
        "decimal": "NUMERIC({precision},{scale})",
        "char": "CHAR({length})",
        "varchar": "VARCHAR({length})",
        "text": "TEXT",
        "timestamp": "TIMESTAMP(6)",
    }
    serial: ClassVar[dict[str, str]] = {"int": "SERIAL", "bigint": "BIGSERIAL", "smallint": "SMALLSERIAL"}

    def text_literal(self, value: str) -> str:
        # Right whatever standard_conforming_strings says: a backslash only ever stands in an E'' text.
        quoted = value.replace("'", "''")
        return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in value else f"'{quoted}'"

    def bytes_literal(self, value: bytes) -> str:
        return f"'\\x{value.hex()}'::bytea"

    def auto_type(self, column: Column) -> str:
        return self.serial.get(column.type.name, "BIGSERIAL")

    def table_options(self, table: Table) -> list[str]:
        return [f"PARTITION BY HASH ({self.quote(table.partition)})"] if table.partition else []

    def after_create(self, table: Table) -> list[str]:
        if not table.partition:
            return super().after_create(table)
        name = self.quote(table.name)
        parts = [
            f"CREATE TABLE {self.quote(f'{table.name}_p{i}')} PARTITION OF {name}"
            f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {i})"
            for i in range(PARTITIONS)
        ]
        return [*parts, *super().after_create(table)]

    def after_load(self, tables: Iterable[Table]) -> list[str]:
        """Each sequence is set so that the next number is the highest loaded plus one."""
        statements = []
        for table in tables:
            name = self.quote(table.name)
            for column in table.columns:
                if column.auto:
                    field = self.quote(column.name)
                    sequence = f"pg_get_serial_sequence({self.literal(name)}, {self.literal(column.name)})"
                    highest = f"COALESCE((SELECT MAX({field}) FROM {name}), 0) + 1"
                    statements.append(f"SELECT setval({sequence}, {highest}, false)")
            statements.append(f"ANALYZE {name}")
        return statements
