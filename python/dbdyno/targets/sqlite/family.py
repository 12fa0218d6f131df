"""SQLite: a file in this process, through Python's sqlite3."""

from __future__ import annotations

import sqlite3

from dbdyno.targets.family import Dialect
from dbdyno.targets.folder import FolderFamily
from dbdyno.targets.sqlite import capabilities, connect, doctor, errors, facts
from dbdyno.targets.sqlite.dialect import SqliteDialect
from dbdyno.targets.url import Address


class SqliteFamily(FolderFamily):
    """The family."""

    name = "sqlite"
    schemes: tuple[str, ...] = ("sqlite",)
    default_port = 0
    dialect: Dialect = SqliteDialect()
    driver = f"sqlite3 {sqlite3.sqlite_version}"
    connecting = connect
    errors = errors
    asking = facts
    describing = capabilities
    doctor = doctor
    inventory = facts

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        return message  # a library refuses nobody: the sentence as it came


FAMILY = SqliteFamily()
