"""Error numbers of the MySQL protocol's servers as error classes.

Sources: MySQL's "Error Message Reference" (server and client), MariaDB's "Error Codes". Families that speak the
same protocol pass a table of their own, which wins.
"""

from __future__ import annotations

from collections.abc import Mapping

import pymysql

from dbdyno.targets.family import DbError, ErrorClass

RETRYABLE, IGNORABLE, LOST, FATAL = (
    ErrorClass.RETRYABLE,
    ErrorClass.IGNORABLE,
    ErrorClass.LOST,
    ErrorClass.FATAL,
)

CODES: dict[int, ErrorClass] = {
    1213: RETRYABLE,  # ER_LOCK_DEADLOCK; the whole transaction is rolled back
    1205: RETRYABLE,  # ER_LOCK_WAIT_TIMEOUT; only the statement is: ROLLBACK must follow
    1020: RETRYABLE,  # ER_CHECKREAD: "Record has changed since last read" (MariaDB innodb_snapshot_isolation)
    1412: RETRYABLE,  # ER_TABLE_DEF_CHANGED: the server's own text says to retry the transaction
    1615: RETRYABLE,  # ER_NEED_REPREPARE
    1637: RETRYABLE,  # ER_TOO_MANY_CONCURRENT_TRXS: undo slots used up for the moment
    3101: RETRYABLE,  # ER_TRANSACTION_ROLLBACK_DURING_COMMIT: certification conflict (group replication)
    3572: RETRYABLE,  # ER_LOCK_NOWAIT
    1022: IGNORABLE,  # ER_DUP_KEY
    1048: IGNORABLE,  # ER_BAD_NULL_ERROR
    1062: IGNORABLE,  # ER_DUP_ENTRY
    1586: IGNORABLE,  # ER_DUP_ENTRY_WITH_KEY_NAME
    1216: IGNORABLE,  # ER_NO_REFERENCED_ROW
    1217: IGNORABLE,  # ER_ROW_IS_REFERENCED
    1451: IGNORABLE,  # ER_ROW_IS_REFERENCED_2
    1452: IGNORABLE,  # ER_NO_REFERENCED_ROW_2
    3819: IGNORABLE,  # ER_CHECK_CONSTRAINT_VIOLATED
    4025: IGNORABLE,  # ER_CONSTRAINT_FAILED (MariaDB)
    1644: IGNORABLE,  # ER_SIGNAL_EXCEPTION: the application's own refusal in a trigger or procedure
    1317: IGNORABLE,  # ER_QUERY_INTERRUPTED: KILL QUERY, ours at the end of a run
    3024: IGNORABLE,  # ER_QUERY_TIMEOUT: max_execution_time
    1969: IGNORABLE,  # ER_STATEMENT_TIMEOUT: max_statement_time (MariaDB)
    0: LOST,  # PyMySQL: the socket was closed on our side
    2002: LOST,  # CR_CONNECTION_ERROR (unix socket), met when reopening
    2003: LOST,  # CR_CONN_HOST_ERROR, met when reopening
    2006: LOST,  # CR_SERVER_GONE_ERROR
    2013: LOST,  # CR_SERVER_LOST
    2027: LOST,  # CR_MALFORMED_PACKET: whatever came, the next answer cannot be found
    2055: LOST,  # CR_SERVER_LOST_EXTENDED
    1040: LOST,  # ER_CON_COUNT_ERROR: too many connections, met when reopening
    1053: LOST,  # ER_SERVER_SHUTDOWN
    1152: LOST,  # ER_ABORTING_CONNECTION
    1158: LOST,  # ER_NET_READ_ERROR
    1159: LOST,  # ER_NET_READ_INTERRUPTED
    1160: LOST,  # ER_NET_ERROR_ON_WRITE
    1161: LOST,  # ER_NET_WRITE_INTERRUPTED
    1184: LOST,  # ER_NEW_ABORTING_CONNECTION
    1927: LOST,  # ER_CONNECTION_KILLED (MariaDB)
    3032: LOST,  # ER_SERVER_OFFLINE_MODE: sessions are ended
    3169: LOST,  # ER_SESSION_WAS_KILLED
    4031: LOST,  # ER_CLIENT_INTERACTION_TIMEOUT: wait_timeout, since 8.0.24
    # A server that takes no writes makes the run pointless, and trying again would hide that.
    1290: FATAL,  # ER_OPTION_PREVENTS_STATEMENT: --read-only, --super-read-only
    1836: FATAL,  # ER_READ_ONLY_MODE
    1792: FATAL,  # ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
    1021: FATAL,  # ER_DISK_FULL
    1114: FATAL,  # ER_RECORD_FILE_FULL
    1030: FATAL,  # ER_GET_ERRNO: the storage engine's error, 28 being a full disk
}

SENTENCES = {
    1021: "the server's disk is full",
    1114: "the table cannot grow (disk or tablespace full)",
    1290: "the server is read-only",
    1836: "the server is read-only",
}


#: What PyMySQL calls a connection that broke during a statement, and so the engine.
LOST_CODE = "2013"


def by_text(codes: Mapping[int, ErrorClass]) -> dict[str, ErrorClass]:
    """A table by code as text, as the engine takes it; the numbers of PyMySQL's own are left out."""
    return {str(number): kind for number, kind in codes.items() if number}


def classify(error: BaseException, codes: Mapping[int, ErrorClass] = CODES) -> DbError:
    """Understand an exception of PyMySQL; anything unknown is FATAL."""
    if not isinstance(error, pymysql.err.Error):
        return DbError(type(error).__name__, FATAL, " ".join(str(error).split()))
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    if number is None:
        return DbError(type(error).__name__, FATAL, text)
    sentence = SENTENCES.get(number) or ("the connection was closed" if number == 0 else "")
    message = f"{sentence}: {text}" if sentence and text else sentence or text
    return DbError(str(number), codes.get(number, FATAL), message)
