"""What of a server of the MySQL family would spoil a run: its limits, its caches, its logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pymysql

from dbdyno.model.finding import Finding, Mend, Need, Verdict, counted, limit
from dbdyno.model.units import format_bytes
from dbdyno.targets.family import Connection
from dbdyno.targets.mysql import facts as _facts
from dbdyno.targets.url import Address

#: Connections beside the load's: one to look at the server, one to cancel what hangs.
SPARE = 2
#: Upper ends of max_prepared_stmt_count (manuals): MySQL to 8.0.17, since; MariaDB.
_MOST_STATEMENTS = {"old": 1_048_576, "new": 4_194_304, "mariadb": 4_294_967_295}
#: Above this max_connections is no limit.
_BOUNDLESS = 1_000_000
#: Descriptors of a server beside its connections and tables: logs, system tablespaces, temporary files.
_OTHER_FILES = 100
#: Room for the server's own tables in the definition cache.
_SYSTEM_TABLES = 400
_MIB = 1 << 20
#: A redo log of less than this makes a writing run wait for pages to be flushed.
_SMALL_REDO_BYTES = 512 * _MIB


def examine(connection: Connection, address: Address, need: Need) -> list[Finding]:
    """All findings of this family; see :meth:`dbdyno.targets.family.Family.examine`."""
    variables = _facts.variables(connection)
    flavour = _facts.tell_apart(variables)
    if flavour.flavour in _facts.OTHER_FAMILIES:
        return [*connections(connection, variables, need), *logs(variables)]
    mariadb = flavour.flavour == "mariadb"
    most = _MOST_STATEMENTS["mariadb" if mariadb else "new" if flavour.number >= (8, 0, 18) else "old"]
    return [
        *connections(connection, variables, need),
        *statements(connection, variables, need, most),
        *_files(variables, need),
        *_table_cache(variables, need),
        *_query_cache(variables),
        *logs(variables),
        *_read_only(variables, need),
        *_memory(connection, variables),
        *_redo_log(variables, need),
    ]


def set_global(*pairs: tuple[str, object]) -> Mend:
    """``SET GLOBAL``, in force at once (for new sessions, where a variable has a session's value, too)."""
    command = " ".join(f"SET GLOBAL {name} = {value};" for name, value in pairs)
    return Mend(command, "SQL", {name: str(value) for name, value in pairs})


def with_restart(name: str, value: object) -> Mend:
    """A variable that is read at the server's start only."""
    where = "the server's option file below [mysqld], then restart it"
    return Mend(f"{name} = {value}", where, {name: str(value)}, restart=True)


def status(connection: Connection, name: str) -> int:
    """A counter of SHOW GLOBAL STATUS; 0 where there is none."""
    rows = connection.fetch(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(rows[0][1]) if rows else 0


def _number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else None


def connections(connection: Connection, variables: Mapping[str, str], need: Need) -> Iterator[Finding]:
    """max_connections and the limits of a user against the load's connections."""
    used = max(0, status(connection, "Threads_connected") - 1)
    allowed = _number(variables, "max_connections") or 0
    wanted = need.connections + SPARE
    needed = f"{wanted:,} free: {need.connections:,} for the load, {SPARE} to watch and cancel"
    if not 0 < allowed < _BOUNDLESS:
        yield Finding("connections", Verdict.OK, f"no limit, {used:,} in use", needed)
    else:
        free = allowed - used
        yield limit(
            "connections",
            found=f"max_connections = {allowed:,}, {used:,} in use",
            needed=needed,
            enough=free >= wanted,
            otherwise=Verdict.BAD if free < need.connections else Verdict.WARN,
            mend=set_global(("max_connections", used + wanted + max(10, wanted // 10))),
            why="the run cannot open its connections: error 1040, too many connections"
            if free < need.connections
            else "while the run lasts nobody else can log in, to look at the server or to cancel a statement",
        )
    # The session's value is the account's own limit, where it has one.
    mine = connection.fetch("SHOW SESSION VARIABLES LIKE 'max_user_connections'")
    per_user = int(mine[0][1]) if mine and str(mine[0][1]).isdigit() else 0
    if per_user:
        yield limit(
            "user's connections",
            found=f"max_user_connections = {per_user:,}",
            needed=f"{wanted:,}, or 0 for no limit",
            enough=per_user >= wanted,
            otherwise=Verdict.BAD,
            mend=_user_limit(connection, variables),
            why="the run cannot open its connections: error 1226 or 1203 for this user",
        )


def _user_limit(connection: Connection, variables: Mapping[str, str]) -> Mend:
    if _number(variables, "max_user_connections"):
        return set_global(("max_user_connections", 0))
    account = str(connection.fetch("SELECT CURRENT_USER()")[0][0])
    user, _, host = account.rpartition("@")
    return Mend(f"ALTER USER `{user}`@`{host}` WITH MAX_USER_CONNECTIONS 0;", "SQL")


def statements(connection: Connection, variables: Mapping[str, str], need: Need, most: int) -> Iterator[Finding]:
    """max_prepared_stmt_count, which is the whole server's, against connections × texts.

    ``most`` is the highest value that it can be set to.
    """
    allowed = _number(variables, "max_prepared_stmt_count")
    if allowed is None or allowed < 0:
        return
    used = status(connection, "Prepared_stmt_count")
    found = f"max_prepared_stmt_count = {allowed:,}, {used:,} in use"
    if need.texts is None:
        yield Finding("prepared statements", Verdict.OK, found, "name a workload (-w) to have them counted")
        return
    wanted = need.connections * need.texts
    up_to = "" if need.texts_exact else "up to "
    enough = allowed - used >= wanted
    if not enough and used + wanted > most:
        yield Finding(
            "prepared statements",
            Verdict.BAD,
            found,
            f"{up_to}{wanted:,}: {counted(need.connections, 'connection')} × {up_to}{counted(need.texts, 'text')}",
            None,
            f"no server of this version allows more than {most:,}: ask for fewer tables or connections",
        )
        return
    yield limit(
        "prepared statements",
        found=found,
        needed=f"{up_to}{wanted:,}: {counted(need.connections, 'connection')} × {up_to}{counted(need.texts, 'text')}",
        enough=enough,
        otherwise=Verdict.BAD,
        mend=set_global(("max_prepared_stmt_count", min(most, used + wanted + max(100, wanted // 10)))),
        why="statements beyond the limit (error 1461) go as text and are parsed each time: the run measures a mixture,"
        " and other clients of the server can prepare nothing meanwhile",
    )


def _files(variables: Mapping[str, str], need: Need) -> Iterator[Finding]:
    allowed = _number(variables, "open_files_limit")
    if not allowed:  # 0: the server cannot tell
        return
    tables = need.tables or 0
    wanted = need.connections + tables + _OTHER_FILES
    loaded = f"{counted(need.connections, 'connection')}, {counted(tables, 'table')}"
    yield limit(
        "server's open files",
        found=f"open_files_limit = {allowed:,}",
        needed=f"{wanted:,}: {loaded}, {_OTHER_FILES} others",
        enough=allowed >= wanted,
        otherwise=Verdict.BAD,
        mend=with_restart("open_files_limit", wanted * 2),
        why="the server runs out of file descriptors: error 24, too many open files; where the service manager limits"
        " them lower (LimitNOFILE=), raise that, too",
    )


def _table_cache(variables: Mapping[str, str], need: Need) -> Iterator[Finding]:
    """Open tables. A connection takes an open instance of a table from the cache's part that it belongs to and gives
    it back after the statement, so each part must hold every table once and one more for each connection."""
    size = _number(variables, "table_open_cache")
    if size is None or not need.tables:
        return
    parts = _number(variables, "table_open_cache_instances") or 1
    wanted = min(need.connections * need.tables, need.tables * parts + need.connections)
    yield limit(
        "table cache",
        found=f"table_open_cache = {size:,} in {parts} parts",
        needed=f"{wanted:,}: {counted(need.tables, 'table')}, {counted(need.connections, 'connection')}",
        enough=size >= wanted,
        otherwise=Verdict.WARN,
        mend=set_global(("table_open_cache", wanted + max(100, wanted // 10))),
        why="tables are closed and opened again while the run lasts (status Table_open_cache_overflows grows)",
    )
    definitions = _number(variables, "table_definition_cache")
    if definitions is not None:
        yield limit(
            "table definitions",
            found=f"table_definition_cache = {definitions:,}",
            needed=counted(need.tables, "table"),
            enough=definitions >= need.tables,
            otherwise=Verdict.WARN,
            mend=set_global(("table_definition_cache", need.tables + _SYSTEM_TABLES)),
            why="definitions are read again and again while the run lasts",
        )
    files = _number(variables, "innodb_open_files")
    if files is not None and files < need.tables and variables.get("innodb_file_per_table", "ON").upper() == "ON":
        yield Finding(
            "tables' files",
            Verdict.WARN,
            f"innodb_open_files = {files:,}",
            f"{need.tables + _OTHER_FILES:,}: {counted(need.tables, 'table')}, {_OTHER_FILES} others",
            with_restart("innodb_open_files", need.tables + _OTHER_FILES),
            "files of tables are closed and opened again while the run lasts",
        )


def _query_cache(variables: Mapping[str, str]) -> Iterator[Finding]:
    """MySQL to 5.7 and MariaDB."""
    kind = variables.get("query_cache_type")
    if kind is None:
        return
    size = _number(variables, "query_cache_size") or 0
    on = {"1": "ON", "0": "OFF", "2": "DEMAND"}.get(kind, kind).upper() == "ON" and size > 0
    yield limit(
        "query cache",
        found=f"query_cache_type = {kind}, query_cache_size = {format_bytes(size)}",
        needed="off",
        enough=not on,
        otherwise=Verdict.BAD,
        mend=set_global(("query_cache_type", "OFF"), ("query_cache_size", 0)),
        why="repeated SELECTs are answered from the cache without being executed, and every write waits for its lock",
    )


def logs(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Logs that write every statement."""
    general = variables.get("general_log", "OFF").upper() in ("ON", "1")
    slow = variables.get("slow_query_log", "OFF").upper() in ("ON", "1")
    threshold = variables.get("long_query_time", "10")
    every = slow and _seconds(threshold) == 0
    what = [name for name, on in (("general_log", general), ("slow_query_log with long_query_time = 0", every)) if on]
    turned_off = [(name, "OFF") for name, on in (("general_log", general), ("slow_query_log", every)) if on]
    yield limit(
        "statement logs",
        found=f"{' and '.join(what)} on" if what else "no log of every statement",
        needed="none of every statement",
        enough=not what,
        otherwise=Verdict.BAD,
        mend=set_global(*turned_off),
        why="the server writes every statement into a log: the run measures that",
    )


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 10.0


def _read_only(variables: Mapping[str, str], need: Need) -> Iterator[Finding]:
    """A user with SUPER or READ_ONLY ADMIN writes to a server that is read_only, nobody to one super_read_only."""
    super_too = variables.get("super_read_only", "OFF").upper() in ("ON", "1")
    plain = variables.get("read_only", "OFF").upper() in ("ON", "1")
    # MariaDB 12 and newer have words for how far it goes.
    if not super_too and not plain:
        return
    verdict = (Verdict.BAD if super_too else Verdict.WARN) if need.writes is not False else Verdict.INFO
    yield Finding(
        "read-only server",
        verdict,
        "super_read_only" if super_too else "read_only",
        "a server that takes writes" if need.writes is not False else "",
        set_global(("read_only", "OFF")) if verdict is not Verdict.INFO else None,
        "loading and writing transactions fail with error 1290; if it is a replica, measure its source instead"
        if verdict is not Verdict.INFO
        else "",
    )


def _memory(connection: Connection, variables: Mapping[str, str]) -> Iterator[Finding]:
    pool = _number(variables, "innodb_buffer_pool_size")
    if pool is None:
        return
    try:
        data = _facts.estimated_bytes(connection)
    except pymysql.err.Error:
        data = None
    found = f"innodb_buffer_pool_size = {format_bytes(pool)}"
    if data is not None and data > pool:
        why = "the data do not fit: the run measures the disk, too"
        yield Finding("buffer pool", Verdict.INFO, f"{found}, data {format_bytes(data)}", "", None, why)
    else:
        yield Finding("buffer pool", Verdict.OK, f"{found}, data {format_bytes(data or 0)}")


def _redo_log(variables: Mapping[str, str], need: Need) -> Iterator[Finding]:
    """Its size: innodb_redo_log_capacity since 8.0.30, files × size before (MariaDB 10.5 and newer: one file)."""
    capacity = _number(variables, "innodb_redo_log_capacity")
    mend: Mend
    if capacity is not None:
        name, mend = "innodb_redo_log_capacity", set_global(("innodb_redo_log_capacity", 1 << 30))
    else:
        size = _number(variables, "innodb_log_file_size")
        if size is None:
            return
        capacity = size * (_number(variables, "innodb_log_files_in_group") or 1)
        name, mend = "innodb_log_file_size", with_restart("innodb_log_file_size", 1 << 30)
    yield limit(
        "redo log",
        found=f"{name} = {format_bytes(capacity)}",
        needed=f"{format_bytes(_SMALL_REDO_BYTES)} or more for a run that writes",
        enough=capacity >= _SMALL_REDO_BYTES or need.writes is False,
        otherwise=Verdict.WARN if need.writes else Verdict.INFO,
        mend=mend,
        why="when it is full, writes wait until pages are flushed: throughput falls in waves",
    )
