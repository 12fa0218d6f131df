"""sysbench's writing scripts: oltp_read_write, _write_only, _update_index, _update_non_index, _insert, _delete."""

from __future__ import annotations

from dbdyno.workload import Db, Stream, marks, state, transaction
from dbdyno.workloads.sysbench_read import Reads
from dbdyno.workloads.sysbench_schema import C_TEMPLATE, PAD_TEMPLATE, FixedRows, Sysbench


class Writes(Sysbench):
    """The changing statements. Each kind picks its table once, as the SELECTs do."""

    def update_indexed(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.index_updates):
            db.execute(f"UPDATE sbtest{table} SET k=k+1 WHERE id=?", rand.pick(1, self.table_size))

    def update_non_indexed(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.non_index_updates):
            c = rand.template(C_TEMPLATE)
            db.execute(f"UPDATE sbtest{table} SET c=? WHERE id=?", c, rand.pick(1, self.table_size))

    def delete_and_insert(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        for _ in range(self.delete_inserts):
            id = rand.pick(1, self.table_size)
            k = rand.pick(1, self.table_size)
            c = rand.template(C_TEMPLATE)
            pad = rand.template(PAD_TEMPLATE)
            db.execute(f"DELETE FROM sbtest{table} WHERE id=?", id)
            db.execute(f"INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)", id, k, c, pad)

    def write(self, db: Db, rand: Stream) -> None:
        self.update_indexed(db, rand)
        self.update_non_indexed(db, rand)
        self.delete_and_insert(db, rand)


class ReadWrite(Reads, Writes, FixedRows):
    """Fourteen SELECTs, two UPDATEs, a DELETE and an INSERT in a transaction (sysbench oltp_read_write)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        if not self.skip_trx:
            db.begin()
        self.read_points(db, rand)
        if self.range_selects:
            self.read_ranges(db, rand)
        self.write(db, rand)
        if not self.skip_trx:
            db.commit()


class WriteOnly(Writes, FixedRows):
    """The writing half of oltp_read_write (sysbench oltp_write_only)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        if not self.skip_trx:
            db.begin()
        self.write(db, rand)
        if not self.skip_trx:
            db.commit()


class UpdateIndex(Writes, FixedRows):
    """UPDATE of an indexed column by primary key (sysbench oltp_update_index)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        self.update_indexed(db, rand)


class UpdateNonIndex(Writes, FixedRows):
    """UPDATE of a column without index by primary key (sysbench oltp_update_non_index)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        self.update_non_indexed(db, rand)


class Delete(Sysbench):
    """DELETE by primary key (sysbench oltp_delete). Most ids are gone after a while, as with sysbench."""

    def needed_rows(self) -> int:
        """None: an earlier run has deleted some."""
        return 0

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        db.execute(f"DELETE FROM sbtest{table} WHERE id=?", rand.pick(1, self.table_size))


#: Client-made ids: how many there are, how many one run takes before it uses those of the next, and how many
#: of a run's first ids are looked up to see whether the run took place.
_IDS = 4_294_967_296
_RUN_IDS = 4_194_304
_LOOK_UP = 16
_LOWEST_ID = -2_147_483_648


class Insert(Writes):
    """INSERT of one row (sysbench oltp_insert).

    With ``auto_inc`` the server numbers the row. Without it the tables begin empty and ids are a permutation
    of all 32-bit numbers, never repeated, not even by later runs with the same seed.
    """

    run = state(-1)
    inserted = state(0)

    def loaded_rows(self) -> int:
        """None without ``auto_inc``: loaded ids would collide with those of the run."""
        return self.table_size if self.auto_inc else 0

    def needed_rows(self) -> int:
        """None: it only adds rows."""
        return 0

    def start(self, db: Db, rand: Stream) -> None:
        """Without ``auto_inc``: find the first run whose ids no table has."""
        if not self.auto_inc:
            ids = rand.at("insert", 0)
            run = -1
            found = True
            while found:
                run = run + 1
                first = [ids.permute(_IDS, run * _RUN_IDS + i) + _LOWEST_ID for i in range(_LOOK_UP)]
                found = False
                for table in range(1, self.tables + 1):
                    if db.query(f"SELECT id FROM sbtest{table} WHERE id IN ({marks(_LOOK_UP)})", *first):
                        found = True
            db.state.run = run

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        table = rand.uniform(1, self.tables)
        k = rand.pick(1, self.table_size)
        c = rand.template(C_TEMPLATE)
        pad = rand.template(PAD_TEMPLATE)
        if not self.auto_inc:
            number = db.state.run * _RUN_IDS + db.state.inserted * db.terminals + db.terminal - 1
            db.state.inserted = db.state.inserted + 1
            id = rand.at("insert", 0).permute(_IDS, number % _IDS) + _LOWEST_ID
            db.execute(f"INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)", id, k, c, pad)
        elif db.has.null_for_auto:
            db.execute(f"INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)", 0, k, c, pad)
        else:
            db.execute(f"INSERT INTO sbtest{table} (k, c, pad) VALUES (?, ?, ?)", k, c, pad)
