"""PostgreSQL, through psycopg 3 and libpq."""

from __future__ import annotations

from pathlib import Path

import psycopg

from dbdyno.targets.family import Dialect
from dbdyno.targets.folder import FolderFamily
from dbdyno.targets.postgresql import capabilities, connect, doctor, errors, facts, passwords
from dbdyno.targets.postgresql.dialect import PostgresqlDialect
from dbdyno.targets.url import Address


class PostgresqlFamily(FolderFamily):
    """The family."""

    name = "postgresql"
    schemes: tuple[str, ...] = ("postgresql", "postgres")
    default_port = 5432
    dialect: Dialect = PostgresqlDialect()
    driver = f"psycopg {psycopg.__version__}"
    connecting = connect
    errors = errors
    asking = facts
    describing = capabilities
    doctor = doctor
    inventory = facts

    def password_from_file(self, address: Address, home: Path) -> str | None:
        return passwords.find(address, home)

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        return connect.refused(address, address.endpoints[endpoint], message, timeout_s)


FAMILY = PostgresqlFamily()
