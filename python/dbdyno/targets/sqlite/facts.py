"""What an SQLite database is: version, settings, durability."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from dbdyno.targets.family import Connection, Facts, Version
from dbdyno.targets.sqlite.capabilities import ISOLATION
from dbdyno.targets.sqlite.connect import BUSY_TIMEOUT_MS
from dbdyno.targets.url import Address

#: Pragmas that describe the database or the connection (sqlite.org/pragma.html).
PRAGMAS = (
    "application_id", "auto_vacuum", "automatic_index", "busy_timeout", "cache_size", "cache_spill",
    "cell_size_check", "checkpoint_fullfsync", "encoding", "foreign_keys", "freelist_count", "fullfsync",
    "hard_heap_limit", "ignore_check_constraints", "journal_mode", "journal_size_limit", "legacy_alter_table",
    "locking_mode", "max_page_count", "mmap_size", "page_count", "page_size", "query_only", "read_uncommitted",
    "recursive_triggers", "reverse_unordered_selects", "secure_delete", "soft_heap_limit", "synchronous",
    "temp_store", "threads", "trusted_schema", "user_version", "wal_autocheckpoint",
)  # fmt: skip
DURABILITY = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "wal_autocheckpoint", "locking_mode")
_LEVELS = {"0": "off", "1": "normal", "2": "full", "3": "extra"}


def identify(connection: Connection) -> Version:
    """The library's version; there is one flavour."""
    text = str(connection.fetch("SELECT sqlite_version()")[0][0])
    number = tuple(int(part) for part in text.split("."))
    return Version("sqlite", "sqlite", number, text, f"in Python {platform.python_version()}")


def durable(settings: Mapping[str, str]) -> bool:
    """Whether COMMIT waits for stable storage (sqlite.org/pragma.html#pragma_synchronous, sqlite.org/wal.html).

    WAL: FULL and above sync the log at every commit. DELETE: the commit is the journal's removal, and only EXTRA
    syncs its folder. TRUNCATE and PERSIST change the journal's contents, which FULL syncs.
    """
    level, mode = settings["synchronous"], settings["journal_mode"]
    if mode == "delete":
        return level == "extra"
    return mode in ("wal", "truncate", "persist") and level in ("full", "extra")


def facts(connection: Connection, address: Address) -> Facts:
    """Settings, durability and size (the file and its log)."""
    settings: dict[str, str] = {}
    for name in PRAGMAS:
        rows = connection.fetch(f"PRAGMA {name}")
        if rows:
            settings[name] = str(rows[0][0])
    settings["synchronous"] = _LEVELS.get(settings["synchronous"], settings["synchronous"])
    settings["busy_timeout"] = address.params.get("busy_timeout", str(BUSY_TIMEOUT_MS))  # waited in slices
    settings["compile_options"] = " ".join(str(row[0]) for row in connection.fetch("PRAGMA compile_options"))
    path = Path(address.database)
    files = [path, path.with_name(path.name + "-wal")]
    return Facts(
        version=identify(connection),
        settings=settings,
        durability={name: settings[name] for name in DURABILITY if name in settings},
        durable_commit=durable(settings),
        database_bytes=sum(file.stat().st_size for file in files if file.exists()),
        isolation=ISOLATION[0],
        extra={"threadsafe": str(sqlite3.threadsafety)},
    )


def existing_tables(connection: Connection) -> dict[str, list[str]]:
    """Tables of the database: name to column names, lower case."""
    found: dict[str, list[str]] = {}
    rows = connection.fetch(
        "SELECT m.name, c.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid"
    )
    for table, column in rows:
        found.setdefault(table.lower(), []).append(column.lower())
    return found


def counters(connection: Connection, address: Address) -> dict[str, int]:
    """No server counts; ``SqliteConnection.trace`` is a witness within the process."""
    return {}


def max_connections(connection: Connection) -> int | None:
    """A file has no limit."""
    return None
