"""A ``db`` that answers by a function and writes down what was asked: one event of a workload without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from dbdyno.targets.family import Capabilities
from dbdyno.workload import Workload, states, transactions

Statement = tuple[str, tuple[Any, ...]]  # text and parameter values; BEGIN and COMMIT have none


@dataclass
class RecordingDb:
    """Answers ``answer(sql, params)`` (rows) to reads and 1 to writes."""

    terminal: int = 1
    terminals: int = 1
    has: Any = field(default_factory=Capabilities)
    for_update: str = "FOR UPDATE"
    answer: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]] = lambda sql, params: []
    state: Any = field(default_factory=SimpleNamespace)
    statements: list[Statement] = field(default_factory=list)
    acks: list[tuple[Any, ...]] = field(default_factory=list)

    def row(self, sql: str, *params: Any) -> tuple[Any, ...] | None:
        rows = self.query(sql, *params)
        assert len(rows) <= 1, f"db.row got {len(rows)} rows"
        return rows[0] if rows else None

    def query(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        self.statements.append((sql, params))
        return self.answer(sql, params)

    def execute(self, sql: str, *params: Any) -> int:
        self.statements.append((sql, params))
        return 1

    def batch(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        listed = [tuple(row) for row in rows]
        self.statements.extend((sql, row) for row in listed)
        return len(listed)

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield

    def begin(self) -> None:
        self.statements.append(("BEGIN", ()))

    def commit(self) -> None:
        self.statements.append(("COMMIT", ()))

    def now(self) -> datetime:
        return datetime(2020, 1, 1, tzinfo=UTC)

    def ack(self, *values: Any) -> None:
        self.acks.append(values)

    @property
    def texts(self) -> list[str]:
        """The statements without their values."""
        return [sql for sql, _ in self.statements]


def record(workload: Workload, *, events: int = 1, seed: int = 1, db: RecordingDb | None = None) -> list[Statement]:
    """What ``events`` transactions of the workload's only kind send, terminal state kept between them."""
    db = db or RecordingDb()
    db.state = SimpleNamespace(**states(workload))
    (kind,) = transactions(workload)
    if workload.has_start:
        workload.start(db, workload.stream(seed, "start", db.terminal, 0))  # type: ignore[attr-defined]
        db.statements.clear()
    for number in range(1, events + 1):
        getattr(workload, kind.method)(db, workload.stream(seed, kind.name, db.terminal, number))
    return db.statements
