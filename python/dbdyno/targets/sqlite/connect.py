"""Connections to SQLite files through Python's sqlite3."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from dbdyno.model.errors import RunError, UsageError, nearest
from dbdyno.targets.family import Wire
from dbdyno.targets.rendering import utc_text
from dbdyno.targets.sqlite.capabilities import ISOLATION
from dbdyno.targets.sqlite.errors import SENTENCES, primary
from dbdyno.targets.url import Address, check_params, split_scheme

SYNCHRONOUS = ("off", "normal", "full", "extra")
JOURNAL_MODES = ("wal", "delete", "truncate", "persist", "memory", "off")
PARAMS = ("synchronous", "journal_mode", "busy_timeout")
#: Milliseconds that a statement waits for another connection's lock before SQLITE_BUSY.
BUSY_TIMEOUT_MS = 5_000
#: It is waited in slices of this length, between which ``cancel`` is heard. SQLite's pauses grow from 1 ms to 100 ms
#: within 228 ms, so a slice looks like the beginning of a longer time-out.
BUSY_SLICE_MS = 250
#: Prepared statements kept by a connection; the language allows 4,096 texts in a program.
CACHED_STATEMENTS = 4_096

# SQLite has neither decimals nor moments: both are bound as text, which a DECIMAL column's numeric affinity turns
# into a number where that loses nothing. Registered for the process; SQLAlchemy binds texts of its own making.
sqlite3.register_adapter(Decimal, str)
sqlite3.register_adapter(datetime, utc_text)


def parse(url: str) -> Address:
    """``sqlite:///relative.db`` or ``sqlite:////absolute.db``, as SQLAlchemy writes them.

    Parameters: ``synchronous`` = off, normal, full (default) or extra; ``journal_mode`` (default wal);
    ``busy_timeout`` in milliseconds.

    Raises:
        UsageError: a host, no file, an in-memory database, an unknown parameter or value.
    """
    scheme, rest = split_scheme(url) or ("sqlite", "")
    location, _, query = rest.partition("?")
    params = dict(parse_qsl(query, keep_blank_values=True))
    path = unquote(location)
    if not path.startswith("/"):
        raise UsageError(
            "SQLite has no host: write sqlite:///file.db (three slashes) for a file in this folder,"
            " sqlite:////folder/file.db (four) for an absolute path"
        )
    path = path[1:]
    if not path:
        raise UsageError("the SQLite URL names no file; write sqlite:///file.db")
    if ":memory:" in path:
        raise UsageError("an in-memory SQLite database is seen by one connection only; write sqlite:///file.db")
    check_params(params, PARAMS)
    _choice(params, "synchronous", SYNCHRONOUS)
    _choice(params, "journal_mode", JOURNAL_MODES)
    if not params.get("busy_timeout", "0").isdecimal():
        raise UsageError("busy_timeout is a whole number of milliseconds, for example busy_timeout=5000")
    return Address(scheme, "", None, (), path, params)


def _choice(params: dict[str, str], name: str, allowed: tuple[str, ...]) -> None:
    value = params.get(name)
    if value is not None and value not in allowed:
        raise UsageError(f"{name}={value} is unknown{nearest(value, allowed)}")


class SqliteConnection:
    """One connection; ``?`` is the driver's own mark. Values come as SQLite keeps them: decimals as int or float,
    moments as text."""

    __slots__ = ("_again", "_cancelled", "_cursor", "_execute", "_patience_s", "raw")

    def __init__(self, raw: sqlite3.Connection, busy_timeout_ms: int) -> None:
        self.raw = raw
        self._cursor = raw.cursor()
        self._execute = self._cursor.execute
        self._patience_s = (busy_timeout_ms - BUSY_SLICE_MS) / 1000
        self._cancelled = False
        self._again = False

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._execute(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            self._wait(error, sql, params)
            return self._cursor.fetchall()

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        try:
            count = self._execute(sql, params).rowcount
        except sqlite3.OperationalError as error:
            count = self._wait(error, sql, params).rowcount
        if count >= 0:
            return count
        self._cursor.fetchall()  # PRAGMA and the like give rows; an unread row would hold a read lock
        return 0

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return max(0, self._cursor.executemany(sql, rows).rowcount)

    def begin(self, write: bool) -> None:
        """``BEGIN IMMEDIATE`` takes the write lock at once: a read lock cannot always be raised to one later
        (SQLITE_BUSY_SNAPSHOT), however long one waits."""
        self._cancelled = False
        self.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        """Nothing to do where SQLite rolled back by itself (disk full, I/O error)."""
        if self.raw.in_transaction:
            self._execute("ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        return self.raw.in_transaction

    def pipeline(self) -> AbstractContextManager[None]:
        return nullcontext()

    def cancel(self) -> None:
        self._cancelled = True
        self.raw.interrupt()

    def close(self) -> None:
        self.raw.close()

    def _wait(self, error: sqlite3.OperationalError, sql: str, params: Sequence[Any]) -> sqlite3.Cursor:
        """Another slice of the busy time-out, until it is over or ``cancel`` ends it (interrupt() does not reach
        SQLite's own waiting). Within a transaction waiting cannot help: SQLite waits there where it can."""
        deadline = time.monotonic() + self._patience_s
        while primary(getattr(error, "sqlite_errorname", "")) == "SQLITE_BUSY" and not self.raw.in_transaction:
            if self._cancelled or time.monotonic() >= deadline:
                break
            self._again = True
            try:
                return self._execute(sql, params)
            except sqlite3.OperationalError as again:
                error = again
            finally:
                self._again = False
        raise error

    def trace(self, seen: Callable[[str], object] | None) -> None:
        """Call ``seen`` with the text of each statement as SQLite runs it: the witness where no server counts. The
        slices of one wait are one statement."""
        self.raw.set_trace_callback(None if seen is None else lambda text: None if self._again else seen(text))


def wire(address: Address, isolation: str | None) -> Wire | None:
    """None: a library, not a server."""
    return None


def connect(
    address: Address,
    endpoint: int = 0,
    *,
    isolation: str | None = None,
    timeout_s: float = 10.0,
    control: bool = False,
) -> SqliteConnection:
    """Open the file, made if missing. ``timeout_s`` bounds the wait for the lock while WAL is switched on.

    Raises:
        UsageError: another isolation level than serializable.
        RunError: no such folder, no database, no permission.
    """
    if isolation is not None and isolation not in ISOLATION:
        raise UsageError(f"SQLite runs every transaction serializable; isolation {isolation!r} cannot be asked of it")
    path = Path(address.database)
    if path.is_dir():
        raise RunError(f"{path} is a folder; the SQLite URL needs a file in it")
    if not path.absolute().parent.is_dir():
        raise RunError(f"the folder {path.absolute().parent} does not exist; make it first, SQLite makes only the file")
    busy_timeout_ms = int(address.params.get("busy_timeout", BUSY_TIMEOUT_MS))
    try:
        raw = sqlite3.connect(
            path,
            timeout=timeout_s,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=CACHED_STATEMENTS,
        )
        try:
            _set_up(raw, address, timeout_s)
            raw.execute(f"PRAGMA busy_timeout={min(busy_timeout_ms, BUSY_SLICE_MS)}")
        except BaseException:
            raw.close()
            raise
    except sqlite3.Error as error:
        name = primary(getattr(error, "sqlite_errorname", ""))
        problem = f"{path} cannot be opened: {SENTENCES.get(name, error)}"
    else:
        return SqliteConnection(raw, busy_timeout_ms)
    raise RunError(problem)


def _set_up(raw: sqlite3.Connection, address: Address, timeout_s: float) -> None:
    wanted = address.params.get("journal_mode", "wal")
    deadline = time.monotonic() + timeout_s
    # Asking first: setting it, even to what it is, needs a lock that connections opened together fight for; and it is
    # a read lock raised to a write lock, for which SQLite does not wait.
    while (found := raw.execute("PRAGMA journal_mode").fetchone()[0]) != wanted:
        try:
            found = raw.execute(f"PRAGMA journal_mode={wanted}").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            if primary(error.sqlite_errorname) != "SQLITE_BUSY" or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)
    if found != wanted:
        raise sqlite3.OperationalError(f"journal_mode stayed {found} instead of {wanted}; is its folder on a network?")
    raw.execute(f"PRAGMA synchronous={address.params.get('synchronous', 'full')}")
    raw.execute("PRAGMA foreign_keys=ON")
