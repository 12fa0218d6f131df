"""What an OceanBase server is: version, settings, durability, counters."""

from __future__ import annotations

from dataclasses import replace

import pymysql

from dbdyno.targets.family import Connection, Facts, Version
from dbdyno.targets.mysql import facts as _mysql
from dbdyno.targets.settings import kept
from dbdyno.targets.url import Address

#: Statement kinds of ``__all_virtual_sqlstat.sql_type``.
_SQL_TYPES = {1: "select", 2: "insert", 3: "replace", 4: "delete", 5: "update"}
#: Statistics of GV$SYSSTAT in a cluster's tenant (manual, "GV$SYSSTAT").
_SYSSTAT = {
    "sql select count": "select",
    "sql insert count": "insert",
    "sql replace count": "replace",
    "sql update count": "update",
    "sql delete count": "delete",
    "trans commit count": "commit",
    "trans rollback count": "rollback",
}


def identify(connection: Connection) -> Version:
    """Ask the server what it is. What is no OceanBase keeps its own flavour."""
    return replace(_mysql.identify(connection), family="oceanbase")


def facts(connection: Connection, address: Address) -> Facts:
    """Variables and parameters, durability, size.

    COMMIT is answered after the redo log is on disk, on a majority of the replicas where there are several; no
    setting changes that (manual, "Redo log"; seekdb opens its log with O_DSYNC).
    """
    version = identify(connection)
    found = _mysql.variables(connection)
    named = {f"parameter {name}": value for name, value in parameters(connection)}
    settings = kept([*found.items(), *named.items()], address)
    real = version.flavour in ("oceanbase", "seekdb")
    cipher = getattr(connection, "tls", "")
    return Facts(
        version=version,
        settings=settings,
        durability={"redo log": "synced before COMMIT is answered"} if real else {},
        durable_commit=True if real else None,
        database_bytes=database_bytes(connection),
        isolation=(found.get("transaction_isolation") or found.get("tx_isolation", "")).lower().replace("-", " "),
        extra={"tls": cipher} if cipher else {},
    )


def parameters(connection: Connection) -> list[tuple[str, str]]:
    """Names and values of SHOW PARAMETERS."""
    try:
        rows = connection.fetch("SHOW PARAMETERS")
    except pymysql.err.Error:  # not granted to this user
        return []
    # A cluster's rows begin with zone, svr_type, svr_ip, svr_port; seekdb's with svr_type alone.
    name = 1 if rows and len(rows[0]) < 12 else 4
    return [(str(row[name]), str(row[name + 2])) for row in rows]


def database_bytes(connection: Connection) -> int | None:
    """Bytes on disk, as the server reports them; rows still in memory only are not among them."""
    try:
        rows = connection.fetch(
            "SELECT SUM(occupy_size) FROM oceanbase.DBA_OB_TABLE_SPACE_USAGE WHERE database_name = DATABASE()"
        )
    except pymysql.err.Error:  # before 4.2.2, or not granted
        return _mysql.estimated_bytes(connection) or None
    return int(rows[0][0]) if rows and rows[0][0] else None


def counters(connection: Connection, address: Address) -> dict[str, int]:
    """Statements executed, by kind; {} where this user may not read them.

    seekdb counts ``select``, ``insert``, ``update``, ``delete``, ``replace`` of this database, but no BEGIN, COMMIT or
    ROLLBACK. The counts live in its plan cache: a plan that is evicted, which changing a table or its statistics
    brings about at the next execution, takes its count along, so readings compare only once the statements have run
    since. A cluster counts those of the whole tenant, COMMIT and ROLLBACK with them. Statements that the caller runs
    on ``connection`` count.
    """
    try:
        rows = connection.fetch(  # reading is not counted
            "SELECT sql_type, SUM(executions_total) FROM oceanbase.__all_virtual_sqlstat"
            " WHERE parsing_db_name = DATABASE() AND query_sql NOT LIKE '%all_virtual_sqlstat%' GROUP BY sql_type"
        )
    except pymysql.err.Error:
        return _tenant_counters(connection)
    found = dict.fromkeys(_SQL_TYPES.values(), 0)
    for kind, count in rows:
        if int(kind) in _SQL_TYPES:
            found[_SQL_TYPES[int(kind)]] += int(count)
    return found


def _tenant_counters(connection: Connection) -> dict[str, int]:
    try:
        rows = connection.fetch("SELECT name, SUM(value) FROM oceanbase.GV$SYSSTAT GROUP BY name")
    except pymysql.err.Error:
        return {}
    return {_SYSSTAT[str(name)]: int(value) for name, value in rows if str(name) in _SYSSTAT}
