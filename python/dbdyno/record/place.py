"""Where a store is: a SQLite file (the default) or any SQLAlchemy URL, and the engine for it."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from dbdyno.model.errors import RunError, UsageError

DEFAULT = "dbdyno.db"
VARIABLE = "DBDYNO_STORE"
BUSY_S = 30.0

#: Drivers that come with dbdyno, for URLs that name no driver.
_OUR_DRIVERS = ("psycopg", "pymysql")


@dataclass(frozen=True, slots=True)
class Place:
    """A store's place. ``shown`` is fit for sentences: it never holds a password."""

    shown: str
    path: Path | None  # of the SQLite file; None for a database server
    url: sa.URL | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """What opens the same store again; may hold the password."""
        return str(self.path) if self.url is None else self.url.render_as_string(hide_password=False)


def find_place(url_or_path: str | None) -> Place:
    """The place that a ``--store`` value, or $DBDYNO_STORE, or nothing names.

    Raises:
        UsageError: not a URL of a database SQLAlchemy knows.
    """
    text = url_or_path or os.environ.get(VARIABLE) or DEFAULT
    if "://" not in text:
        return _file(text)
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError("--store is neither a path nor a URL like scheme://user@host:port/database") from None
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise UsageError("a store in memory would be lost; give a file, like sqlite:///dbdyno.db")
        return _file(url.database)
    return Place(url.render_as_string(hide_password=True), None, _with_driver(url))


def _file(text: str) -> Place:
    path = Path(text).expanduser()
    return Place(str(path), path.absolute())


def _with_driver(url: sa.URL) -> sa.URL:
    names = [url.drivername]
    if "+" not in url.drivername:
        names = [*(f"{url.drivername}+{driver}" for driver in _OUR_DRIVERS), url.drivername]
    for name in names:
        candidate = url.set(drivername=name)
        try:
            candidate.get_dialect().import_dbapi()
        except NoSuchModuleError:
            continue
        except ImportError as error:
            raise UsageError(f"the store's driver is not installed: {error}") from error
        return candidate
    raise UsageError(f"--store: {url.drivername!r} is not a kind of database that SQLAlchemy knows")


def engine_for(place: Place, *, write: bool) -> sa.Engine:
    """An engine; connects to nothing yet but looks whether a file is there."""
    if place.path is None:
        assert place.url is not None
        return sa.create_engine(place.url, pool_pre_ping=True)
    return _sqlite_engine(place, place.path, write=write)


def _sqlite_engine(place: Place, path: Path, *, write: bool) -> sa.Engine:
    if not write and not path.exists():
        raise UsageError(f"there is no store at {place.shown}; run something first, or name one with --store")
    if not path.parent.is_dir():
        raise RunError(f"the folder {path.parent} of the store {place.shown} does not exist; create it")
    if path.is_dir():
        raise UsageError(f"the store {place.shown} is a folder; name a file in it")
    if write and (not os.access(path, os.W_OK) if path.exists() else not os.access(path.parent, os.W_OK | os.X_OK)):
        raise RunError(f"the store {place.shown} is read-only; make it writable or choose another with --store")
    mode = "rwc" if write else _reading_mode(path)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?{mode if '=' in mode else 'mode=' + mode}",
            uri=True,
            timeout=BUSY_S,
            isolation_level=None,  # BEGIN is ours, so that schema changes are transactions as well
            check_same_thread=False,
        )
        if write:
            # A commit in WAL survives the death of the process without waiting for the disk; waiting each
            # interval would disturb what is being measured on that disk. Trials are synced at their end.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)
    begin = "BEGIN IMMEDIATE" if write else "BEGIN"

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _reading_mode(path: Path) -> str:
    """A reader in a folder that it cannot write to cannot make WAL's shared memory; a cleanly closed file
    (no ``-wal`` beside it) needs none."""
    if not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists():
        return "mode=ro&immutable=1"
    return "ro"


def use_wal(engine: sa.Engine, place: Place) -> None:
    """Turn write-ahead logging on, which the file remembers; only for what is known to be a store."""
    _run(engine, place, "PRAGMA journal_mode = WAL")


def sync(engine: sa.Engine, place: Place) -> None:
    """Bring what is committed safely to the disk and shorten the log; nothing to do for a server."""
    _run(engine, place, "PRAGMA wal_checkpoint(TRUNCATE)")


def _run(engine: sa.Engine, place: Place, pragma: str) -> None:
    if place.path is not None:
        raw = engine.raw_connection()
        try:
            raw.cursor().execute(pragma)
        finally:
            raw.close()
