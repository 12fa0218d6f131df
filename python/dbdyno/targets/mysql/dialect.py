"""SQL as the MySQL family writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from dbdyno.targets.rendering import PARTITIONS, StandardDialect
from dbdyno.workload.table import Column, Table


class MysqlDialect(StandardDialect):
    """``id INTEGER NOT NULL AUTO_INCREMENT``, ``ENGINE = innodb``, keys inside CREATE TABLE, as sysbench does."""

    quote_mark = "`"
    #: Named in full: the server's default character set may be latin1 (5.7, MariaDB).
    binary_collation = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    engines: ClassVar[bool] = True
    types: ClassVar[dict[str, str]] = {
        "int": "INTEGER",
        "bigint": "BIGINT",
        "smallint": "SMALLINT",
        "float": "DOUBLE",
        "decimal": "DECIMAL({precision},{scale})",
        "char": "CHAR({length})",
        "varchar": "VARCHAR({length})",
        "text": "TEXT",
        "timestamp": "DATETIME(6)",
    }

    def text_literal(self, value: str) -> str:
        # Doubled quotes are right in every sql_mode; a backslash means itself only in hexadecimal.
        if "\\" in value or "\0" in value:
            return f"_utf8mb4 X'{value.encode().hex()}'"
        return super().text_literal(value)

    def auto_suffix(self, table: Table, column: Column) -> str:
        return "AUTO_INCREMENT"

    def key_lines(self, table: Table) -> list[str]:
        if table.key and table.key_index:
            return [f"KEY {self.quote(table.key_index)} ({self.names(table.key)})"]
        return super().key_lines(table)

    def after_create(self, table: Table) -> list[str]:
        return []

    def table_options(self, table: Table) -> list[str]:
        options = [f"ENGINE = {table.engine}"] if table.engine and self.engines else []
        if table.partition:
            options.append(f"PARTITION BY HASH ({self.quote(table.partition)}) PARTITIONS {PARTITIONS}")
        return options

    def after_load(self, tables: Iterable[Table]) -> list[str]:
        return [f"ANALYZE TABLE {self.quote(table.name)}" for table in tables]
