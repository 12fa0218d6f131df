"""What went wrong with the store, in one sentence and without its password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dbdyno.model.errors import RunError
from dbdyno.model.masking import mask_passwords

_SENTENCES = {
    sqlite3.SQLITE_FULL: "is full: there is no room left on its disk; make room and resume, nothing finished is lost",
    sqlite3.SQLITE_READONLY: "is read-only; make it writable or choose another one with --store",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database; choose another path with --store",
    sqlite3.SQLITE_CORRUPT: "is damaged (its database file is malformed); restore it from a copy",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; look whether its file and folder may be read",
    sqlite3.SQLITE_BUSY: "is kept locked by another program for more than 30 s; close that program",
    sqlite3.SQLITE_LOCKED: "is kept locked by another program; close that program",
    sqlite3.SQLITE_IOERR: "cannot be read or written (disk I/O error); look at its disk and at this process's limits",
}


def sentence(store: str, error: BaseException) -> str:
    """One sentence about a driver's or SQLAlchemy's error. ``store`` is shown as given."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    code = getattr(original, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in _SENTENCES:
        return f"the store {store} {_SENTENCES[code & 0xFF]}"
    lines = [line.strip() for line in str(original).splitlines() if line.strip()]
    return f"the store {store} answered: {mask_passwords(lines[0]) if lines else type(original).__name__}"


@contextmanager
def understood(store: str) -> Iterator[None]:
    """Turn database errors inside into :class:`RunError`."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise RunError(sentence(store, error)) from error
