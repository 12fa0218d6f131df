"""OceanBase in MySQL mode, and seekdb: the MySQL protocol with tenants, time-outs and errors of its own."""

from __future__ import annotations

from dbdyno.model.finding import Finding, Need
from dbdyno.targets.family import Capabilities, Connection, DbError, Dialect, Facts, Version, Wire
from dbdyno.targets.mysql.family import MysqlFamily
from dbdyno.targets.oceanbase import connect as _connect
from dbdyno.targets.oceanbase import doctor as _doctor
from dbdyno.targets.oceanbase import errors as _errors
from dbdyno.targets.oceanbase import facts as _facts
from dbdyno.targets.oceanbase.capabilities import capabilities as _capabilities
from dbdyno.targets.oceanbase.dialect import OceanbaseDialect
from dbdyno.targets.url import Address


class OceanbaseFamily(MysqlFamily):
    """The family; passwords, tables and limits are read as MySQL's."""

    name: str = "oceanbase"
    schemes: tuple[str, ...] = ("oceanbase", "seekdb")
    default_port: int = 2881
    dialect: Dialect = OceanbaseDialect()

    def parse(self, url: str) -> Address:
        return _connect.parse(url)

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

    def classify(self, error: BaseException) -> DbError:
        return _errors.classify(error)

    def identify(self, connection: Connection) -> Version:
        return _facts.identify(connection)

    def capabilities(self, version: Version) -> Capabilities:
        return _capabilities(version)

    def facts(self, connection: Connection, address: Address) -> Facts:
        return _facts.facts(connection, address)

    def counters(self, connection: Connection, address: Address) -> dict[str, int]:
        return _facts.counters(connection)

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]:
        return _doctor.examine(connection, address, need)


FAMILY = OceanbaseFamily()
