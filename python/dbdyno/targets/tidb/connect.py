"""Connections to TiDB, by the MySQL protocol."""

from __future__ import annotations

from dbdyno.targets.family import Wire
from dbdyno.targets.mysql import connect as _mysql
from dbdyno.targets.tidb.capabilities import ISOLATION
from dbdyno.targets.tidb.errors import CODES
from dbdyno.targets.url import Address, parse_address


def parse(url: str) -> Address:
    """``tidb://user@host:port/database``, several hosts separated by commas."""
    return parse_address(url, 4000)


def wire(address: Address, isolation: str | None) -> Wire:
    """How the engine speaks to it; see :func:`dbdyno.targets.mysql.connect.wire`."""
    return _mysql.wire(
        address, isolation, codes=CODES, cancel="KILL TIDB QUERY", product="TiDB", allowed_isolation=ISOLATION
    )


def connect(
    address: Address,
    endpoint: int = 0,
    *,
    isolation: str | None = None,
    timeout_s: float = 10.0,
    control: bool = False,
) -> _mysql.MysqlConnection:
    """Open a connection.

    A plain KILL may reach another server's connection behind a load balancer, so TiDB has a word of its own.

    Raises:
        UsageError: an isolation level that TiDB does not have.
        RunError: refused, in one sentence.
    """
    return _mysql.connect(
        address,
        endpoint,
        isolation=isolation,
        timeout_s=timeout_s,
        control=control,
        kill="KILL TIDB QUERY",
        product="TiDB",
        allowed_isolation=ISOLATION,
    )
