"""The table that most tests write to, and what a test must say differently to each server."""

from __future__ import annotations

from dbdyno.targets.family import Connection
from dbdyno.workload.table import INT, Column, Table, char

#: A small table that most tests write to.
ACCOUNTS = Table(
    "accounts",
    (Column("id", INT), Column("balance", INT, default=0), Column("name", char(20), default="", binary=True)),
    key=("id",),
    engine="innodb",
)

FLAVOURS = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mysql",
    "seekdb": "seekdb",
}
_SESSION = {"postgresql": "SELECT pg_backend_pid()", "": "SELECT connection_id()"}
_END = {"postgresql": "SELECT pg_terminate_backend({})", "": "KILL {}"}
_ISOLATION = {
    "postgresql": "SELECT current_setting('transaction_isolation')",
    "mariadb": "SELECT @@tx_isolation",
    "": "SELECT @@transaction_isolation",
}


def of(table: dict[str, str], server: str) -> str:
    return table.get(server, table[""])


def end_session(server: str, connection: Connection, control: Connection) -> None:
    """Have the server end the session of ``connection``; SQLite has none, its connection is closed."""
    if server == "sqlite":
        connection.close()
        return
    number = connection.fetch(of(_SESSION, server))[0][0]
    control.fetch(of(_END, server).format(number))


def isolation_of(server: str, connection: Connection) -> str:
    """The session's isolation level in the server's own words, made ours."""
    return str(connection.fetch(of(_ISOLATION, server))[0][0]).lower().replace("-", " ")
