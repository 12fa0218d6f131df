"""TiDB: the MySQL protocol, with conflicts found at COMMIT and errors of its own."""

from __future__ import annotations

from dbdyno.targets.family import Dialect
from dbdyno.targets.mysql.family import MysqlFamily
from dbdyno.targets.tidb import capabilities, connect, doctor, errors, facts
from dbdyno.targets.tidb.dialect import TidbDialect


class TidbFamily(MysqlFamily):
    """The family; passwords, tables and limits are read as MySQL's."""

    name: str = "tidb"
    schemes: tuple[str, ...] = ("tidb",)
    default_port: int = 4000
    dialect: Dialect = TidbDialect()
    connecting = connect
    errors = errors
    asking = facts
    describing = capabilities
    doctor = doctor


FAMILY = TidbFamily()
