"""OceanBase in MySQL mode, and seekdb: the MySQL protocol with tenants, time-outs and errors of its own."""

from __future__ import annotations

from dbdyno.targets.family import Dialect
from dbdyno.targets.mysql.family import MysqlFamily
from dbdyno.targets.oceanbase import capabilities, connect, doctor, errors, facts
from dbdyno.targets.oceanbase.dialect import OceanbaseDialect


class OceanbaseFamily(MysqlFamily):
    """The family; passwords, tables and limits are read as MySQL's."""

    name: str = "oceanbase"
    schemes: tuple[str, ...] = ("oceanbase", "seekdb")
    default_port: int = 2881
    dialect: Dialect = OceanbaseDialect()
    connecting = connect
    errors = errors
    asking = facts
    describing = capabilities
    doctor = doctor


FAMILY = OceanbaseFamily()
