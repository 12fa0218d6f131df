"""Loading: prepare, check, cleanup, and what is in the database already."""

from dbdyno.load.checking import CheckResult, check
from dbdyno.load.clearing import cleanup
from dbdyno.load.inspection import DataState, TableState, command, inspect, require
from dbdyno.load.preparation import LoadReport, Progress, ensure, prepare

__all__ = [
    "CheckResult", "DataState", "LoadReport", "Progress", "TableState", "check", "cleanup", "command", "ensure",
    "inspect", "prepare", "require",
]  # fmt: skip
