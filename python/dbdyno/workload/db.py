"""What a transaction may do with the database: the ``db`` of language.md, as a type.

The DB-API drive's session implements it; the engine compiles calls of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Db(Protocol):
    """Statements of one terminal. SQL parameters are written ``?``."""

    terminal: int  # from 1, over all generators
    terminals: int
    state: Any  # declared per-terminal values; a retry gets them back as they were
    has: Any  # capabilities by name, e.g. ``db.has.pipeline``
    for_update: str  # "FOR UPDATE" where rows can be locked, else ""

    def row(self, sql: str, *params: Any) -> Row | None:
        """The row, or None; two rows are an error."""

    def query(self, sql: str, *params: Any) -> list[Row]:
        """All rows, fetched."""

    def execute(self, sql: str, *params: Any) -> int:
        """Rows matched (not: rows changed)."""

    def batch(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Many rows through one text; an ``INSERT … VALUES (?, …)`` becomes multi-row, split at 512 KiB."""

    def pipeline(self) -> AbstractContextManager[None]:
        """Statements inside are sent without waiting where the family can."""

    def begin(self) -> None:
        """Open a transaction (connections are in autocommit)."""

    def commit(self) -> None:
        """Commit it."""

    def now(self) -> Any:
        """The transaction's first start, UTC; under a replay a seeded clock."""

    def ack(self, *values: Any) -> None:
        """Written to the trial's acknowledgement file only after COMMIT was answered."""
