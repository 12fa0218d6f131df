"""OceanBase's own error numbers, over those of MySQL that it shares (its manual's "Error codes", MySQL mode).

From 4000 on the numbers are its own, whatever MySQL or MariaDB mean by them.
"""

from __future__ import annotations

from dbdyno.targets.family import DbError, ErrorClass
from dbdyno.targets.mysql import errors as _mysql

RETRYABLE, LOST = ErrorClass.RETRYABLE, ErrorClass.LOST

CODES: dict[int, ErrorClass] = {
    **{number: kind for number, kind in _mysql.CODES.items() if number < 4000},
    4012: RETRYABLE,  # time-out of a query, a transaction or an RPC: mostly behind a lock or a moving leader
    4023: RETRYABLE,  # OB_EAGAIN
    4030: RETRYABLE,  # OB_TENANT_OUT_OF_MEM: until the memtable is dumped
    4036: RETRYABLE,  # OB_NEED_RETRY
    4038: RETRYABLE,  # OB_NOT_MASTER: the leader is moving
    4064: LOST,  # OB_SESSION_KILLED
    4138: RETRYABLE,  # OB_SNAPSHOT_DISCARDED: the read point was recycled
    6001: RETRYABLE,  # the row changed between reading and updating it
    6002: RETRYABLE,  # the transaction was killed, idle too long, lost its context, or needs a rollback
    6003: RETRYABLE,  # exclusive lock conflict
    6004: RETRYABLE,  # shared lock conflict
    6005: RETRYABLE,  # OB_TRY_LOCK_ROW_CONFLICT
    6235: RETRYABLE,  # OB_TRANS_CANNOT_SERIALIZE
    6241: RETRYABLE,  # OB_TRANS_STMT_NEED_RETRY
    # Fatal like everything unknown: 4184 server, 6330 user: no disk space left.
}

#: 8000 to 8999: the session is no more.
SESSION_GONE = {f"8{digit}": LOST for digit in range(10)}

SENTENCES = {
    "4012": "ob_query_timeout or ob_trx_timeout ran out",
    "4184": "the server's disk is full",
    "6330": "the server's disk is full",
}


def classify(error: BaseException) -> DbError:
    """Understand an exception of PyMySQL. 8000 to 8999 mean that the session is no more; anything unknown is FATAL."""
    found = _mysql.classify(error, CODES)
    if found.code.isdecimal() and 8000 <= int(found.code) < 9000:
        return DbError(found.code, LOST, found.message)
    sentence = SENTENCES.get(found.code)
    return DbError(found.code, found.kind, f"{sentence}: {found.message}") if sentence else found
