"""sysbench's reading scripts: oltp_point_select and oltp_read_only."""

from __future__ import annotations

from dbdyno.workload import Db, Stream, transaction
from dbdyno.workloads.sysbench_schema import FixedRows, Sysbench


class Reads(Sysbench):
    """The SELECTs. Each kind picks its table once (uniformly) and then as many ids as its option says."""

    def read_points(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.point_selects):
            db.query(f"SELECT c FROM sbtest{table} WHERE id=?", rand.pick(1, self.table_size))

    def read_simple_ranges(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.simple_ranges):
            low = rand.pick(1, self.table_size)
            high = low + self.range_size - 1
            db.query(f"SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?", low, high)

    def read_sum_ranges(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.sum_ranges):
            low = rand.pick(1, self.table_size)
            high = low + self.range_size - 1
            db.query(f"SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?", low, high)

    def read_order_ranges(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.order_ranges):
            low = rand.pick(1, self.table_size)
            high = low + self.range_size - 1
            db.query(f"SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c", low, high)

    def read_distinct_ranges(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.distinct_ranges):
            low = rand.pick(1, self.table_size)
            high = low + self.range_size - 1
            db.query(f"SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c", low, high)

    def read_ranges(self, db: Db, rand: Stream) -> None:
        self.read_simple_ranges(db, rand)
        self.read_sum_ranges(db, rand)
        self.read_order_ranges(db, rand)
        self.read_distinct_ranges(db, rand)


class PointSelect(Reads, FixedRows):
    """Read one row by primary key (sysbench oltp_point_select)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        # One SELECT whatever point_selects says, as sysbench does.
        table = rand.uniform(1, self.tables)
        db.query(f"SELECT c FROM sbtest{table} WHERE id=?", rand.pick(1, self.table_size))


class ReadOnly(Reads, FixedRows):
    """Ten point SELECTs and four range SELECTs in a transaction (sysbench oltp_read_only)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        if not self.skip_trx:
            db.begin()
        self.read_points(db, rand)
        if self.range_selects:
            self.read_ranges(db, rand)
        if not self.skip_trx:
            db.commit()
