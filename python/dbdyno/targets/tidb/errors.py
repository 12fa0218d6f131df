"""TiDB's own error numbers, over MySQL's (its manual, "Error Codes and Troubleshooting")."""

from __future__ import annotations

from dbdyno.targets.family import DbError, ErrorClass
from dbdyno.targets.mysql import errors as _mysql

RETRYABLE, IGNORABLE = ErrorClass.RETRYABLE, ErrorClass.IGNORABLE

CODES: dict[int, ErrorClass] = {
    **_mysql.CODES,
    8002: RETRYABLE,  # commit conflict of a transaction with SELECT FOR UPDATE, rolled back
    8005: RETRYABLE,  # write conflict: the transaction's start is stale
    8022: RETRYABLE,  # COMMIT failed and was rolled back
    8027: RETRYABLE,  # the schema known to this server is out of date
    8028: RETRYABLE,  # the schema changed during the transaction
    9001: RETRYABLE,  # PD did not answer in time
    9002: RETRYABLE,  # TiKV did not answer in time
    9003: RETRYABLE,  # TiKV is busy
    9004: RETRYABLE,  # resolving a lock took too long
    9005: RETRYABLE,  # a region is unavailable
    9007: RETRYABLE,  # write conflict in TiKV
    9012: RETRYABLE,  # TiFlash did not answer in time
    9013: RETRYABLE,  # TiFlash is busy
    8175: IGNORABLE,  # this statement used more than tidb_mem_quota_query
    8176: IGNORABLE,  # this statement was cancelled by the server's memory limit
}


def classify(error: BaseException) -> DbError:
    """Understand an exception of PyMySQL; anything unknown is FATAL."""
    return _mysql.classify(error, CODES)
