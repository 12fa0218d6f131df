"""PostgreSQL's SQLSTATE codes (manual, appendix A) as error classes."""

from __future__ import annotations

import psycopg

from dbdyno.targets.family import DbError, ErrorClass

#: Single codes; they win over their class.
CODES: dict[str, ErrorClass] = {
    "40001": ErrorClass.RETRYABLE,  # serialization_failure
    "40P01": ErrorClass.RETRYABLE,  # deadlock_detected
    "55P03": ErrorClass.RETRYABLE,  # lock_not_available: lock_timeout, NOWAIT
    "26000": ErrorClass.RETRYABLE,  # invalid_sql_statement_name: a pooler gave us another session; prepared anew
    "40002": ErrorClass.IGNORABLE,  # a deferred constraint failed at COMMIT
    "40003": ErrorClass.LOST,  # statement_completion_unknown
    "57014": ErrorClass.IGNORABLE,  # query_canceled: by us, or statement_timeout
    "57P01": ErrorClass.LOST,  # admin_shutdown, pg_terminate_backend
    "57P02": ErrorClass.LOST,  # crash_shutdown: another backend died
    "57P03": ErrorClass.LOST,  # cannot_connect_now: starting up or shutting down
    "57P05": ErrorClass.LOST,  # idle_session_timeout
    "25P03": ErrorClass.LOST,  # idle_in_transaction_session_timeout ends the session
    "25P04": ErrorClass.LOST,  # transaction_timeout does, too
    "53300": ErrorClass.LOST,  # too_many_connections: met when reopening
    "53100": ErrorClass.FATAL,  # disk_full
    "P0001": ErrorClass.IGNORABLE,  # RAISE in a function or trigger: the application's own refusal
}

#: Classes, the first two characters.
CLASSES: dict[str, ErrorClass] = {
    "08": ErrorClass.LOST,  # connection exceptions
    "23": ErrorClass.IGNORABLE,  # integrity constraints: duplicate key, foreign key, NOT NULL, CHECK
}

SENTENCES = {
    "53100": "the server's disk is full",
    "25006": "the server is read-only (a standby, or default_transaction_read_only)",
}

CONNECTION_FAILURE = "08006"  # what libpq has no SQLSTATE for
CONNECTION_CLOSED = "08003"
#: A statement prepared earlier whose table was made anew; our connection forgets it, so a retry goes through.
STALE_PLAN_CODE = "0A000"
STALE_PLAN = "cached plan must not change result type"
#: The server does not know the prepared statement (any more).
FORGOTTEN_CODE = "26000"


def classify(error: BaseException) -> DbError:
    """Understand an exception of psycopg; anything unknown is FATAL."""
    if not isinstance(error, psycopg.Error):
        return DbError(type(error).__name__, ErrorClass.FATAL, " ".join(str(error).split()))
    text = " ".join((error.diag.message_primary or str(error)).split())
    code = error.sqlstate
    if code is None:
        if isinstance(error, psycopg.InterfaceError):
            return DbError(CONNECTION_CLOSED, ErrorClass.LOST, text)
        if isinstance(error, psycopg.OperationalError):
            return DbError(CONNECTION_FAILURE, ErrorClass.LOST, text)
        return DbError(type(error).__name__, ErrorClass.FATAL, text)
    if code == STALE_PLAN_CODE and STALE_PLAN in text:
        return DbError(code, ErrorClass.RETRYABLE, text)
    kind = CODES.get(code) or CLASSES.get(code[:2], ErrorClass.FATAL)
    sentence = SENTENCES.get(code)
    return DbError(code, kind, f"{sentence}: {text}" if sentence else text)
