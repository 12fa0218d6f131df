"""The workload language: what a workload module imports.

from dbdyno.workload import Workload, option, transaction, Table, Column, INT
"""

from dbdyno._engine import Distribution, Stream
from dbdyno.workload.db import Db, Row
from dbdyno.workload.language import (
    Check,
    Rollback,
    Transaction,
    Workload,
    check,
    checks,
    state,
    states,
    transaction,
    transactions,
)
from dbdyno.workload.options import Option, option
from dbdyno.workload.sql import marks
from dbdyno.workload.table import (
    BIGINT,
    FLOAT,
    INT,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    Column,
    ForeignKey,
    Index,
    Table,
    char,
    decimal,
    varchar,
)

__all__ = [
    "BIGINT", "FLOAT", "INT", "SMALLINT", "TEXT", "TIMESTAMP", "Check", "Column", "Db", "Distribution",
    "ForeignKey", "Index", "Option", "Rollback", "Row", "Stream", "Table", "Transaction", "Workload", "char",
    "check", "checks", "decimal", "marks", "option", "state", "states", "transaction", "transactions",
    "varchar",
]  # fmt: skip
