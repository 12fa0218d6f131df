"""Connections to OceanBase, by the MySQL protocol; users are ``user@tenant#cluster``, taken as typed."""

from __future__ import annotations

from dbdyno.targets.family import Wire
from dbdyno.targets.mysql import connect as _mysql
from dbdyno.targets.oceanbase.capabilities import ISOLATION
from dbdyno.targets.oceanbase.errors import CODES, SENTENCES, SESSION_GONE
from dbdyno.targets.url import Address, parse_address

#: Control connections load data and build indexes, for which ob_query_timeout's ten seconds are too short.
_CONTROL_SETUP = ("SET ob_query_timeout = 86400000000", "SET ob_trx_timeout = 86400000000")


def parse(url: str) -> Address:
    """``oceanbase://user@tenant#cluster@host:port/database``; 2881 is an observer's port, 2883 a proxy's."""
    return parse_address(url, 2881)


def wire(address: Address, isolation: str | None) -> Wire:
    """How the engine speaks to it; see :func:`dbdyno.targets.mysql.connect.wire`."""
    return _mysql.wire(
        address,
        isolation,
        codes=CODES,
        prefixes=SESSION_GONE,
        sentences=SENTENCES,
        product="OceanBase",
        allowed_isolation=ISOLATION,
    )


def connect(
    address: Address,
    endpoint: int = 0,
    *,
    isolation: str | None = None,
    timeout_s: float = 10.0,
    control: bool = False,
) -> _mysql.MysqlConnection:
    """Open a connection. The load's keep the server's time-outs, which are part of what is measured.

    Raises:
        UsageError: an isolation level that OceanBase does not have.
        RunError: refused, in one sentence.
    """
    return _mysql.connect(
        address,
        endpoint,
        isolation=isolation,
        timeout_s=timeout_s,
        control=control,
        setup=_CONTROL_SETUP if control else (),
        product="OceanBase",
        allowed_isolation=ISOLATION,
    )
