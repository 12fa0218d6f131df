"""SQLite's result codes (sqlite.org/rescode.html) as error classes."""

from __future__ import annotations

import sqlite3

from dbdyno.targets.family import DbError, ErrorClass

#: Primary result codes; extended ones (SQLITE_BUSY_SNAPSHOT …) follow their primary code.
PRIMARY: dict[str, ErrorClass] = {
    "SQLITE_BUSY": ErrorClass.RETRYABLE,  # another connection writes; also _SNAPSHOT: what we read is stale
    "SQLITE_LOCKED": ErrorClass.RETRYABLE,  # the same within one shared cache
    "SQLITE_PROTOCOL": ErrorClass.RETRYABLE,  # lost the race for the WAL's locks too many times
    "SQLITE_SCHEMA": ErrorClass.RETRYABLE,  # the schema changed under the statement once too often
    "SQLITE_CONSTRAINT": ErrorClass.IGNORABLE,  # duplicate key, foreign key, CHECK, NOT NULL
    "SQLITE_INTERRUPT": ErrorClass.IGNORABLE,  # cancelled by ourselves
    "SQLITE_ABORT": ErrorClass.RETRYABLE,  # a ROLLBACK elsewhere ended the statement
    "SQLITE_FULL": ErrorClass.FATAL,
    "SQLITE_IOERR": ErrorClass.FATAL,
    "SQLITE_READONLY": ErrorClass.FATAL,
    "SQLITE_CORRUPT": ErrorClass.FATAL,
    "SQLITE_NOTADB": ErrorClass.FATAL,
    "SQLITE_CANTOPEN": ErrorClass.FATAL,
    "SQLITE_PERM": ErrorClass.FATAL,
    "SQLITE_NOMEM": ErrorClass.FATAL,
    "SQLITE_ERROR": ErrorClass.FATAL,  # syntax, no such table
}

#: What the user should be told, where SQLite's own words leave it open.
SENTENCES = {
    "SQLITE_FULL": "the disk is full: the database file cannot grow",
    "SQLITE_IOERR": "the disk failed (I/O error)",
    "SQLITE_READONLY": "the database file cannot be written; check its permissions and those of its folder",
    "SQLITE_CORRUPT": "the database file is damaged",
    "SQLITE_NOTADB": "the file is no SQLite database",
}

CLOSED = "SQLITE_CLOSED"  # not SQLite's own: the connection object was closed


def primary(name: str) -> str:
    """``SQLITE_BUSY`` of ``SQLITE_BUSY_SNAPSHOT``."""
    return "_".join(name.split("_")[:2])


def classify(error: BaseException) -> DbError:
    """Understand an exception of the sqlite3 module; anything unknown is FATAL."""
    text = " ".join(str(error).split())
    name = getattr(error, "sqlite_errorname", "")
    if name:
        base = primary(name)
        sentence = SENTENCES.get(base)
        message = f"{sentence} ({name}: {text})" if sentence else text
        return DbError(name, PRIMARY.get(base, ErrorClass.FATAL), message)
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in text:
        return DbError(CLOSED, ErrorClass.LOST, text)
    return DbError(type(error).__name__, ErrorClass.FATAL, text)
