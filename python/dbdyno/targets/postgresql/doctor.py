"""What of a PostgreSQL server would spoil a run: its limits, its logs, vacuum and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbdyno.model.finding import Finding, Mend, Need, Verdict, counted, limit
from dbdyno.model.units import format_bytes
from dbdyno.targets.family import Connection
from dbdyno.targets.postgresql import facts as _facts
from dbdyno.targets.url import Address

#: Connections beside the load's: one to look at the server, one to cancel what hangs.
SPARE = 2
#: Files of a small table: the table, its free space map, its primary key, another index.
_FILES_PER_TABLE = 4
_MIB = 1 << 20
#: The default of max_wal_size. A pgbench run on a small machine fills it within a minute.
_USUAL_WAL_BYTES = 1024 * _MIB
#: A statement of a run may take that long under load; a shorter time-out would cancel it.
_SHORT_TIMEOUT_MS = 10_000
_UNIT_BYTES = {"B": 1, "kB": 1024, "8kB": 8192, "MB": _MIB, "16MB": 16 * _MIB}


@dataclass(frozen=True)
class _Setting:
    """A row of pg_settings."""

    name: str
    value: str
    unit: str
    context: str
    source: str

    @property
    def number(self) -> int:
        return int(self.value)

    @property
    def bytes(self) -> int:
        return self.number * _UNIT_BYTES.get(self.unit, 1)


def examine(connection: Connection, address: Address, need: Need) -> list[Finding]:
    """All findings of this family; see :meth:`dbdyno.targets.family.Family.examine`."""
    rows = connection.fetch("SELECT name, setting, COALESCE(unit, ''), context, source FROM pg_settings")
    settings = {str(row[0]): _Setting(*map(str, row)) for row in rows}
    where = _Where(*map(str, connection.fetch("SELECT current_database(), current_user")[0]))
    return [
        *_connections(connection, settings, need, where),
        *_files(settings, need, where),
        *_logs(settings, where),
        *_read_only(connection, settings, need, where),
        *_timeouts(settings, where),
        *_vacuum(settings, need, where),
        *_checkpoints(settings, need, where),
        *_memory(connection, settings),
    ]


@dataclass(frozen=True)
class _Where:
    database: str
    user: str


def _mend(setting: _Setting, value: object, where: _Where) -> Mend:
    """The command that reaches a setting where it was made: a database's or role's own value goes before the
    server's, and the command line's before that of ALTER SYSTEM (manual, 19.1)."""
    quoted = "'" + str(value).replace("'", "''") + "'"
    database, user = _identifier(where.database), _identifier(where.user)
    if setting.source == "database":
        return Mend(f"ALTER DATABASE {database} SET {setting.name} = {quoted};", "SQL")
    if setting.source == "user":
        return Mend(f"ALTER ROLE {user} SET {setting.name} = {quoted};", "SQL")
    if setting.source == "database user":
        return Mend(f"ALTER ROLE {user} IN DATABASE {database} SET {setting.name} = {quoted};", "SQL")
    if setting.source == "command line":
        command = f"-c {setting.name}={value}"
        place = "the words that the server is started with"
        return Mend(command, place, {setting.name: str(value)}, restart=True)
    if setting.context == "postmaster":
        command = f"ALTER SYSTEM SET {setting.name} = {quoted};"
        return Mend(command, "SQL, then restart the server", {setting.name: str(value)}, restart=True)
    return Mend(f"ALTER SYSTEM SET {setting.name} = {quoted}; SELECT pg_reload_conf();", "SQL")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _connections(
    connection: Connection, settings: Mapping[str, _Setting], need: Need, where: _Where
) -> Iterator[Finding]:
    """max_connections less what is reserved; the limits of database and role."""
    allowed = _facts.max_connections(connection) or 0
    maximum = settings["max_connections"]
    used = int(connection.fetch("SELECT COALESCE(sum(numbackends), 1) FROM pg_stat_database")[0][0]) - 1
    used = max(0, used)
    wanted = need.connections + SPARE
    free = allowed - used
    reserved = maximum.number - allowed
    held = f" ({reserved:,} reserved)" if reserved else ""
    yield limit(
        "connections",
        found=f"max_connections = {maximum.number:,}{held}, {used:,} in use",
        needed=f"{wanted:,} free: {need.connections:,} for the load, {SPARE} to watch and cancel",
        enough=free >= wanted,
        otherwise=Verdict.BAD if free < need.connections else Verdict.WARN,
        mend=_mend(maximum, used + wanted + reserved + max(10, wanted // 10), where),
        why="the run cannot open its connections: sorry, too many clients already"
        if free < need.connections
        else "while the run lasts nobody else can log in, to look at the server or to cancel a statement",
    )
    database, role = connection.fetch(
        "SELECT (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),"
        " (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)"
    )[0]
    superuser = connection.fetch("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")[0][0]
    for name, number, kind, owner in (
        ("database's connections", database, "DATABASE", where.database),
        ("role's connections", role, "ROLE", where.user),
    ):
        if number is not None and int(number) >= 0 and not superuser:  # superusers are not counted
            yield limit(
                name,
                found=f"connection limit = {number:,}",
                needed=f"{wanted:,}, or -1 for no limit",
                enough=int(number) >= wanted,
                otherwise=Verdict.BAD,
                mend=Mend(f"ALTER {kind} {_identifier(owner)} CONNECTION LIMIT -1;", "SQL"),
                why=f"the run cannot open its connections: too many connections for this {kind.lower()}",
            )


def _files(settings: Mapping[str, _Setting], need: Need, where: _Where) -> Iterator[Finding]:
    if not need.tables or "max_files_per_process" not in settings:
        return
    setting = settings["max_files_per_process"]
    wanted = need.tables * _FILES_PER_TABLE + 50
    yield limit(
        "server's open files",
        found=f"max_files_per_process = {setting.number:,}",
        needed=f"{wanted:,}: {counted(need.tables, 'table')} with indexes",
        enough=setting.number >= wanted,
        otherwise=Verdict.WARN,
        mend=_mend(setting, wanted * 2, where),
        why="each backend closes and opens files of tables while the run lasts",
    )


def _logs(settings: Mapping[str, _Setting], where: _Where) -> Iterator[Finding]:
    """Logs of every statement (manual, 19.8)."""
    innocent = {
        "log_statement": ("none", "ddl"),
        "log_duration": ("off",),
        "log_min_duration_statement": None,
        "log_statement_stats": ("off",),
    }
    loud = [
        settings[name]
        for name, values in innocent.items()
        if name in settings and (settings[name].value == "0" if values is None else settings[name].value not in values)
    ]
    if not loud:
        yield Finding("statement logs", Verdict.OK, "no log of every statement", "none of every statement")
    quiet = {"log_statement": "none", "log_min_duration_statement": "-1"}
    for setting in loud:
        yield Finding(
            "statement logs",
            Verdict.BAD,
            f"{setting.name} = {setting.value}",
            "none of every statement",
            _mend(setting, quiet.get(setting.name, "off"), where),
            "the server writes every statement into its log: the run measures that",
        )


def _read_only(
    connection: Connection, settings: Mapping[str, _Setting], need: Need, where: _Where
) -> Iterator[Finding]:
    if connection.fetch("SELECT pg_is_in_recovery()")[0][0]:
        yield Finding(
            "read-only server",
            Verdict.INFO if need.writes is False else Verdict.BAD,
            "a standby, in recovery",
            "" if need.writes is False else "a server that takes writes",
            None if need.writes is False else Mend("SELECT pg_promote();", "SQL, or measure its primary instead"),
            "" if need.writes is False else "loading and writing transactions fail: a standby is read-only",
        )
    setting = settings.get("default_transaction_read_only")
    if setting is not None and setting.value == "on":
        yield Finding(
            "read-only sessions",
            Verdict.BAD,
            "default_transaction_read_only = on",
            "off",
            _mend(setting, "off", where),
            "loading and writing transactions fail with error 25006",
        )


def _timeouts(settings: Mapping[str, _Setting], where: _Where) -> Iterator[Finding]:
    for name in ("statement_timeout", "transaction_timeout"):
        setting = settings.get(name)
        if setting is not None and 0 < setting.number < _SHORT_TIMEOUT_MS:
            yield Finding(
                "time-outs",
                Verdict.WARN,
                f"{name} = {setting.number:,} ms",
                f"0, or {_SHORT_TIMEOUT_MS:,} ms and more",
                _mend(setting, 0, where),
                "slow transactions, the interesting ones, are cancelled and missing from the latency",
            )


def _vacuum(settings: Mapping[str, _Setting], need: Need, where: _Where) -> Iterator[Finding]:
    setting = settings.get("autovacuum")
    if setting is None:
        return
    yield limit(
        "autovacuum",
        found=f"autovacuum = {setting.value}",
        needed="on for a run that writes",
        enough=setting.value == "on" or need.writes is False,
        otherwise=Verdict.WARN,
        mend=_mend(setting, "on", where),
        why="dead rows pile up from trial to trial, and plans rest on statistics that nobody renews",
    )


def _checkpoints(settings: Mapping[str, _Setting], need: Need, where: _Where) -> Iterator[Finding]:
    size, timeout = settings.get("max_wal_size"), settings.get("checkpoint_timeout")
    if size is None or timeout is None:
        return
    usual = "; the default is for small servers" if size.bytes == _USUAL_WAL_BYTES else ""
    small = size.bytes < _USUAL_WAL_BYTES
    yield limit(
        "checkpoints",
        found=f"max_wal_size = {format_bytes(size.bytes)}, checkpoint_timeout = {timeout.number:,} s",
        needed="4.0 GiB or more for a run that writes much",
        enough=size.bytes >= 4 * _USUAL_WAL_BYTES or need.writes is False,
        otherwise=Verdict.WARN if small and need.writes else Verdict.INFO,
        mend=_mend(size, "8GB", where),
        why=f"checkpoints come whenever that much log was written, and throughput falls after each{usual}",
    )


def _memory(connection: Connection, settings: Mapping[str, _Setting]) -> Iterator[Finding]:
    setting = settings.get("shared_buffers")
    if setting is None:
        return
    data = int(connection.fetch("SELECT pg_database_size(current_database())")[0][0])
    found = f"shared_buffers = {format_bytes(setting.bytes)}, data {format_bytes(data)}"
    if data > setting.bytes:
        why = "the data do not fit: the run measures reads from the system's cache or the disk, too"
        yield Finding("shared buffers", Verdict.INFO, found, "", None, why)
    else:
        yield Finding("shared buffers", Verdict.OK, found)
