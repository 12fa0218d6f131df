"""What a server of the MySQL family is: product, settings, durability, counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pymysql

from dbdyno.targets.family import Connection, Facts, Version
from dbdyno.targets.settings import kept
from dbdyno.targets.url import Address

DURABILITY = (
    "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_flush_method",
    "innodb_flush_log_at_timeout", "innodb_use_fdatasync", "innodb_log_file_mmap", "gtid_mode",
    "binlog_format", "binlog_group_commit_sync_delay", "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_enabled", "rpl_semi_sync_source_wait_point",
    "rpl_semi_sync_source_wait_for_replica_count", "group_replication_group_name", "wsrep_on",
)  # fmt: skip

#: Flavours whose own family is another one, though they answer here.
OTHER_FAMILIES = ("tidb", "oceanbase", "seekdb")

#: Counters and the status variables that make them up. A hit of the query cache (5.7, MariaDB) is a SELECT that
#: Com_select leaves out; statements over several tables have numbers of their own.
COUNTERS: dict[str, tuple[str, ...]] = {
    "begin": ("com_begin",),
    "commit": ("com_commit",),
    "rollback": ("com_rollback",),
    "select": ("com_select", "qcache_hits"),
    "insert": ("com_insert", "com_insert_select"),
    "update": ("com_update", "com_update_multi"),
    "delete": ("com_delete", "com_delete_multi"),
    "replace": ("com_replace", "com_replace_select"),
    "call": ("com_call_procedure",),
    "stmt_prepare": ("com_stmt_prepare",),
    "stmt_execute": ("com_stmt_execute",),
}


def tell_apart(variables: Mapping[str, str]) -> Version:
    """The product, from variables by lower-case name. Only what a single product has counts; else plain mysql.

    A server of another family that is reached by a mysql:// URL is named in ``flavour``, so that the record
    does not call it MySQL.
    """
    text, comment = variables.get("version", ""), variables.get("version_comment", "")
    both = f"{text} {comment}"
    tidb = re.search(r"-TiDB-v?([\d.]+)", text)
    if tidb:
        return Version("mysql", "tidb", _number(tidb[1]), text, comment)
    ocean = re.search(r"(OceanBase|seekdb)", both, re.IGNORECASE)
    if ocean or "ob_query_timeout" in variables:
        own = re.search(r"-v([\d.]+)", text)
        flavour = "seekdb" if "seekdb" in both.lower() else "oceanbase"
        return Version("mysql", flavour, _number(own[1] if own else comment), text, comment)
    if "MariaDB" in both or "aria_block_size" in variables:
        return Version("mysql", "mariadb", _number(text.removeprefix("5.5.5-")), text, comment)
    return Version("mysql", _flavour(both, variables), _number(text), text, comment)


def _flavour(both: str, variables: Mapping[str, str]) -> str:
    lowered = both.lower()
    if "fakeserver" in lowered:
        return "fakeserver"
    if "greatsql" in lowered:
        return "greatsql"
    if "percona" in lowered:
        return "percona"
    if "tdstore" in lowered or any(name.startswith("tdstore_") for name in variables):
        return "tdstore"
    if "txsql" in lowered or "tdsql" in lowered or any(name.startswith(("txsql_", "tdsql_")) for name in variables):
        return "tdsql"
    if "aurora_version" in variables:
        return "aurora"
    if "polardb" in lowered:
        return "polardb"
    return "mysql"


def _number(text: str) -> tuple[int, ...]:
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def variables(connection: Connection) -> dict[str, str]:
    """All global variables, names in lower case."""
    return {
        str(name).lower(): value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
        for name, value in connection.fetch("SHOW GLOBAL VARIABLES")
    }


def identify(connection: Connection) -> Version:
    """Ask the server what it is, without a SELECT: those are counted (see :func:`counters`)."""
    return tell_apart(variables(connection))


def durable(settings: Mapping[str, str]) -> bool | None:
    """Whether COMMIT waits for stable storage (manuals, "innodb_flush_log_at_trx_commit", "sync_binlog").

    With a binary log, recovery rolls back what InnoDB prepared and the log lacks, so the log must be synced, too.
    MariaDB's 3 syncs like 1.
    """
    flush = settings.get("innodb_flush_log_at_trx_commit")
    if flush is None:
        return None
    if settings.get("innodb_flush_method", "").lower() in ("nosync", "littlesync"):
        return False
    logged = settings.get("log_bin", "OFF").upper() in ("ON", "1")
    return flush in ("1", "3") and (not logged or settings.get("sync_binlog") == "1")


def facts(connection: Connection, address: Address) -> Facts:
    """Settings, durability, size; ``extra`` names the cipher when the connection uses TLS."""
    found = variables(connection)
    settings = kept(found.items(), address)
    isolation = found.get("transaction_isolation") or found.get("tx_isolation", "")
    cipher = getattr(connection, "tls", "")
    version = tell_apart(found)
    # Other families show InnoDB's settings for the sake of tools; they decide nothing there.
    deciding = () if version.flavour in OTHER_FAMILIES else DURABILITY
    return Facts(
        version=version,
        settings=settings,
        durability={name: settings[name] for name in deciding if name in settings},
        durable_commit=durable(settings) if deciding else None,
        database_bytes=database_bytes(connection),
        isolation=isolation.lower().replace("-", " "),
        extra={"tls": cipher} if cipher else {},
    )


def database_bytes(connection: Connection) -> int | None:
    """Bytes of the database's files; where one may not see them, what the optimiser's statistics estimate."""
    rows = connection.fetch("SELECT DATABASE()")
    database = str(rows[0][0] or "")
    prefix = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"@{ord(c):04x}" for c in database) + "/"
    for table in ("innodb_tablespaces", "innodb_sys_tablespaces"):
        try:
            rows = connection.fetch(
                f"SELECT SUM(file_size) FROM information_schema.{table} WHERE LEFT(name, ?) = ?",
                (len(prefix), prefix),
            )
        except pymysql.err.Error:  # unknown table, or no PROCESS privilege
            continue
        if rows and rows[0][0] is not None:
            return int(rows[0][0])
    return estimated_bytes(connection)


def estimated_bytes(connection: Connection) -> int | None:
    """What the optimiser's statistics say."""
    rows = connection.fetch(
        "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()"
    )
    return int(rows[0][0]) if rows and rows[0][0] is not None else None


def existing_tables(connection: Connection) -> dict[str, list[str]]:
    """Tables of the database: name to column names, lower case."""
    found: dict[str, list[str]] = {}
    rows = connection.fetch(
        "SELECT c.table_name, c.column_name FROM information_schema.columns AS c"
        " JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name"
        " WHERE c.table_schema = DATABASE() AND t.table_type = 'BASE TABLE'"
        " ORDER BY c.table_name, c.ordinal_position"
    )
    for table, column in rows:
        found.setdefault(str(table).lower(), []).append(str(column).lower())
    return found


def counters(connection: Connection, address: Address) -> dict[str, int]:
    """The server's own statement counts since its start, this connection's left out.

    Exact whenever the other connections are ours: a session's counts are in the global ones while it lives and
    after. All databases of the server count, so another client's statements do, too.
    """
    own, all_ = _status(connection, "SESSION"), _status(connection, "GLOBAL")
    return {
        name: sum(all_.get(part, 0) - (own.get(part, 0) if part.startswith("com_") else 0) for part in parts)
        for name, parts in COUNTERS.items()
        if any(part in all_ for part in parts)
    }


def _status(connection: Connection, scope: str) -> dict[str, int]:
    wanted = {part for parts in COUNTERS.values() for part in parts}
    rows: list[tuple[Any, ...]] = connection.fetch(f"SHOW {scope} STATUS")
    return {str(name).lower(): int(value) for name, value in rows if str(name).lower() in wanted}


def max_connections(connection: Connection) -> int | None:
    """The server's limit, None where it has none worth the name."""
    rows = connection.fetch("SHOW GLOBAL VARIABLES LIKE 'max_connections'")
    limit = int(rows[0][1]) if rows else 0
    return limit if 0 < limit < 1_000_000 else None
