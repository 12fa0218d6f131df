"""MySQL 5.7 to 9, MariaDB, Percona, GreatSQL, TDSQL: one protocol, told apart by what each alone has.

A server of another family that is addressed as mysql is cancelled in the way that all of them know.
"""

from __future__ import annotations

from pathlib import Path

import pymysql

from dbdyno.targets.family import Dialect
from dbdyno.targets.folder import Asking, Classifying, Connecting, Describing, Examining, FolderFamily
from dbdyno.targets.mysql import capabilities, connect, doctor, errors, facts, passwords
from dbdyno.targets.mysql.dialect import MysqlDialect
from dbdyno.targets.url import Address


class MysqlFamily(FolderFamily):
    """The family; those that share the protocol build on it."""

    name: str = "mysql"
    schemes: tuple[str, ...] = ("mysql", "mariadb")
    default_port: int = 3306
    dialect: Dialect = MysqlDialect()
    driver: str = f"PyMySQL {pymysql.__version__}"
    connecting: Connecting = connect
    errors: Classifying = errors
    asking: Asking = facts
    describing: Describing = capabilities
    doctor: Examining = doctor
    inventory = facts

    def password_from_file(self, address: Address, home: Path) -> str | None:
        return passwords.find(address, home)

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        error = pymysql.err.OperationalError(int(code), message)
        return connect.refused(address, address.endpoints[endpoint], error, timeout_s, self.name)


FAMILY = MysqlFamily()
