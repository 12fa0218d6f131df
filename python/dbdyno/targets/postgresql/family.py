"""PostgreSQL, through psycopg 3 and libpq."""

from __future__ import annotations

from pathlib import Path

import psycopg

from dbdyno.model.finding import Finding, Need
from dbdyno.targets.family import Capabilities, Connection, DbError, Dialect, Facts, Version, Wire
from dbdyno.targets.postgresql import connect as _connect
from dbdyno.targets.postgresql import doctor as _doctor
from dbdyno.targets.postgresql import errors as _errors
from dbdyno.targets.postgresql import facts as _facts
from dbdyno.targets.postgresql import passwords as _passwords
from dbdyno.targets.postgresql.capabilities import capabilities as _capabilities
from dbdyno.targets.postgresql.dialect import PostgresqlDialect
from dbdyno.targets.url import Address


class PostgresqlFamily:
    """The family; see :class:`dbdyno.targets.family.Family` for what each member means."""

    name = "postgresql"
    schemes: tuple[str, ...] = ("postgresql", "postgres")
    default_port = 5432
    dialect: Dialect = PostgresqlDialect()
    driver = f"psycopg {psycopg.__version__}"

    def parse(self, url: str) -> Address:
        return _connect.parse(url)

    def password_from_file(self, address: Address, home: Path) -> str | None:
        return _passwords.find(address, home)

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
        return _connect.wire(address, isolation)

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        return _connect.refused(address, address.endpoints[endpoint], message, timeout_s)

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
        return _facts.counters(connection, address)

    def max_connections(self, connection: Connection) -> int | None:
        return _facts.max_connections(connection)

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]:
        return _doctor.examine(connection, address, need)


FAMILY = PostgresqlFamily()
