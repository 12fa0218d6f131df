"""SQLite: a file in this process, through Python's sqlite3."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dbdyno.model.finding import Finding, Need
from dbdyno.targets.family import Capabilities, Connection, DbError, Dialect, Facts, Version, Wire
from dbdyno.targets.sqlite import connect as _connect
from dbdyno.targets.sqlite import doctor as _doctor
from dbdyno.targets.sqlite import errors as _errors
from dbdyno.targets.sqlite import facts as _facts
from dbdyno.targets.sqlite.capabilities import capabilities as _capabilities
from dbdyno.targets.sqlite.dialect import SqliteDialect
from dbdyno.targets.url import Address


class SqliteFamily:
    """The family; see :class:`dbdyno.targets.family.Family` for what each member means."""

    name = "sqlite"
    schemes: tuple[str, ...] = ("sqlite",)
    default_port = 0
    dialect: Dialect = SqliteDialect()
    driver = f"sqlite3 {sqlite3.sqlite_version}"

    def parse(self, url: str) -> Address:
        return _connect.parse(url)

    def password_from_file(self, address: Address, home: Path) -> str | None:
        """A file has no password."""
        return None

    def connect(
        self,
        address: Address,
        endpoint: int = 0,
        *,
        isolation: str | None = None,
        timeout_s: float = 10.0,
        control: bool = False,
    ) -> Connection:
        return _connect.connect(address, endpoint, isolation=isolation, timeout_s=timeout_s, control=control)

    def wire(self, address: Address, isolation: str | None) -> Wire | None:
        return None  # a library, not a server

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        return message

    def classify(self, error: BaseException) -> DbError:
        return _errors.classify(error)

    def identify(self, connection: Connection) -> Version:
        return _facts.identify(connection)

    def capabilities(self, version: Version) -> Capabilities:
        return _capabilities(version)

    def facts(self, connection: Connection, address: Address) -> Facts:
        return _facts.facts(connection, address)

    def existing_tables(self, connection: Connection) -> dict[str, list[str]]:
        return _facts.existing_tables(connection)

    def counters(self, connection: Connection, address: Address) -> dict[str, int]:
        """No server counts; ``SqliteConnection.trace`` is a witness within the process."""
        return {}

    def max_connections(self, connection: Connection) -> int | None:
        return None

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]:
        return _doctor.examine(connection, address, need)


FAMILY = SqliteFamily()
