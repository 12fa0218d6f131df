"""What a PostgreSQL server is: version, settings, durability, counters."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import cast

from dbdyno.model.errors import RunError
from dbdyno.targets.family import Connection, Facts, Version
from dbdyno.targets.postgresql import connect as _connect
from dbdyno.targets.settings import kept
from dbdyno.targets.url import Address

DURABILITY = (
    "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "wal_level", "commit_delay",
    "synchronous_standby_names", "data_checksums", "wal_log_hints", "wal_compression",
)  # fmt: skip
#: Products that speak the protocol and name themselves in version(); anything else is plain PostgreSQL.
FLAVOURS = (
    ("cockroachdb", "CockroachDB"),
    ("yugabytedb", "-YB-"),
    ("opengauss", "openGauss"),
    ("greenplum", "Greenplum"),
    ("redshift", "Redshift"),
    ("kingbase", "KingbaseES"),
    ("polardb", "PolarDB"),
    ("edb", "EnterpriseDB"),
    ("fakeserver", "-fakeserver"),
)
#: How long the counters wait for backends of ours that are still closing.
_CLOSING_S = 5.0


def tell_apart(server_version: str, banner: str) -> Version:
    """The version from ``server_version`` and ``version()``."""
    flavour = next((name for name, mark in FLAVOURS if mark in banner), "postgresql")
    match = re.match(r"\d+(?:\.\d+)*", server_version)
    number = tuple(int(part) for part in match[0].split(".")) if match else ()
    return Version("postgresql", flavour, number, server_version, banner)


def identify(connection: Connection) -> Version:
    """Ask the server what it is."""
    row = connection.fetch("SELECT current_setting('server_version'), version()")[0]
    return tell_apart(str(row[0]), str(row[1]))


def durable(settings: Mapping[str, str]) -> bool | None:
    """Whether COMMIT waits until the log is on stable storage (manual, 19.5 and 28.3)."""
    if "fsync" not in settings or "synchronous_commit" not in settings:
        return None
    return settings["fsync"] == "on" and settings["synchronous_commit"] != "off"


def facts(connection: Connection, address: Address) -> Facts:
    """Settings (with their units), durability, size."""
    rows = connection.fetch("SELECT name, setting, unit FROM pg_settings ORDER BY name")
    settings = kept(((name, f"{value} {unit}" if unit else value) for name, value, unit in rows), address)
    size = connection.fetch("SELECT pg_database_size(current_database())")[0][0]
    return Facts(
        version=identify(connection),
        settings=settings,
        durability={name: settings[name] for name in DURABILITY if name in settings},
        durable_commit=durable(settings),
        database_bytes=int(size),
        isolation=settings.get("default_transaction_isolation", ""),
        extra={"tls": cipher} if (cipher := getattr(connection, "tls", "")) else {},
    )


def existing_tables(connection: Connection) -> dict[str, list[str]]:
    """Tables that a bare name reaches: name to column names, lower case. Partitions are not listed."""
    found: dict[str, list[str]] = {}
    rows = connection.fetch(
        "SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
        " WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND pg_table_is_visible(c.oid)"
        " AND c.relnamespace NOT IN (SELECT oid FROM pg_namespace"
        " WHERE nspname IN ('pg_catalog', 'information_schema')) AND a.attnum > 0 AND NOT a.attisdropped"
        " ORDER BY c.relname, a.attnum"
    )
    for table, column in rows:
        found.setdefault(table.lower(), []).append(column.lower())
    return found


def max_connections(connection: Connection) -> int | None:
    """Connections that this user can open: a superuser may use the reserved ones."""
    row = connection.fetch(
        "SELECT current_setting('max_connections')::int, current_setting('superuser_reserved_connections')::int,"
        " COALESCE(current_setting('reserved_connections', true), '0')::int,"
        " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
    )[0]
    return int(row[0]) if row[3] else int(row[0]) - int(row[1]) - int(row[2])


def counters(connection: Connection, address: Address) -> dict[str, int]:
    """``commit``, ``rollback`` (transactions of this database, a statement in autocommit being one), and rows.

    Exact between two readings when every load connection was closed before the second, no other client used the
    database, and autovacuum did not visit it meanwhile (its transactions count too). A backend reports when it
    ends, or up to ten seconds later while idle, so we wait for those of ours that are closing, and read from
    another database, where reading changes nothing. Statements that the caller runs on ``connection`` count;
    those of this function do not. A session's start is a transaction as well; it is taken off.
    """
    control = cast(_connect.PostgresqlConnection, connection)
    version, pid, database = control.fetch(
        "SELECT current_setting('server_version_num')::int, pg_backend_pid(), current_database()"
    )[0]
    if version >= 150_000:
        # It must touch a table: a backend without table statistics to report keeps its transaction count, too.
        control.fetch("SELECT pg_stat_force_next_flush() FROM pg_class LIMIT 1")
        control.counter_transactions += 2
    else:  # reported at the end of a transaction, when the last report is half a second old
        time.sleep(0.6)
        control.fetch("SELECT 1")
        time.sleep(0.6)
        control.counter_transactions += 2
    reader = _elsewhere(address, database)
    try:
        deadline = time.monotonic() + _CLOSING_S
        while time.monotonic() < deadline:
            open_now = reader.fetch(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = ? AND pid <> ? AND backend_type = 'client backend'",
                (database, pid),
            )[0][0]
            if open_now == 0:
                break
            time.sleep(0.02)
        row = reader.fetch(
            "SELECT xact_commit, xact_rollback, tup_inserted, tup_updated, tup_deleted, deadlocks,"
            + (" sessions" if version >= 140_000 else " 0")
            + " FROM pg_stat_database WHERE datname = ?",
            (database,),
        )[0]
    finally:
        reader.close()
    return {
        "commit": row[0] - row[6] - control.counter_transactions,
        "rollback": row[1],
        "rows_inserted": row[2],
        "rows_updated": row[3],
        "rows_deleted": row[4],
        "deadlocks": row[5],
    }


def _elsewhere(address: Address, database: str) -> _connect.PostgresqlConnection:
    problem: RunError | None = None
    for other in ("postgres", "template1"):
        if other != database:
            try:
                return _connect.connect(address.with_database(other), control=True)
            except RunError as error:
                problem = error
    assert problem is not None
    raise problem
