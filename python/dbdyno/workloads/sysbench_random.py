"""sysbench's select_random_points and select_random_ranges: many points or ranges of k in one SELECT.

Each terminal works in its own segment of the ids, as sysbench's threads do, so that their rows do not overlap.
"""

from __future__ import annotations

from dbdyno.model.errors import UsageError
from dbdyno.workload import Db, Stream, marks, option, transaction
from dbdyno.workloads.sysbench_schema import FixedRows


class Segmented(FixedRows):
    """One table, a segment of it for each terminal."""

    def validate(self) -> None:
        """Only one table."""
        super().validate()
        if self.tables != 1:
            raise UsageError(f"workload {self.label} works on one table; tables = {self.tables} must be 1")

    def first_of(self, db: Db) -> int:
        """Lower end of the terminal's segment; the first one begins at 0, as sysbench's does."""
        return self.table_size * (db.terminal - 1) // db.terminals

    def last_of(self, db: Db) -> int:
        """Upper end of the terminal's segment: the next one's lower end."""
        return self.table_size * db.terminal // db.terminals


class RandomPoints(Segmented):
    """Rows whose k is one of ten values, in one SELECT (sysbench select_random_points)."""

    random_points: int = option(10, "points in the IN list", ge=1, le=10_000)

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        low = self.first_of(db)
        high = self.last_of(db)
        points = [rand.pick(low, high) for _ in range(self.random_points)]
        db.query(f"SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({marks(self.random_points)})", *points)


class RandomRanges(Segmented):
    """How many rows lie in any of ten ranges of k, in one SELECT (sysbench select_random_ranges)."""

    number_of_ranges: int = option(10, "ranges joined by OR", ge=1, le=5_000)
    delta: int = option(5, "width of a range", ge=0)

    def validate(self) -> None:
        """Make the condition, which is the same for every event."""
        super().validate()
        self.condition = " OR ".join(["k BETWEEN ? AND ?"] * self.number_of_ranges)

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        low = self.first_of(db)
        high = self.last_of(db)
        ends = [0] * (2 * self.number_of_ranges)
        for i in range(self.number_of_ranges):
            ends[2 * i] = rand.pick(low, high)
            ends[2 * i + 1] = ends[2 * i] + self.delta
        db.query(f"SELECT count(k) FROM sbtest1 WHERE {self.condition}", *ends)
