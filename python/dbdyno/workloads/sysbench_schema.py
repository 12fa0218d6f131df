"""What sysbench's OLTP scripts have in common: options, tables, distribution of ids.

Names, defaults and meaning of the options are those of sysbench 1.1's ``oltp_common.lua``; those of 1.0 that
1.1 dropped (``rand_type=special`` and its three parameters) are here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dbdyno.model.errors import UsageError
from dbdyno.workload import (
    INT,
    Column,
    Db,
    Distribution,
    Index,
    Stream,
    Table,
    Workload,
    char,
    check,
    option,
)

#: Ten and five groups of eleven digits: 119 and 59 characters.
C_TEMPLATE = "-".join(["###########"] * 10)
PAD_TEMPLATE = "-".join(["###########"] * 5)
MAX_ID = 2_147_483_647
KINDS = ("uniform", "special", "gaussian", "pareto", "zipfian")


class Sysbench(Workload):
    """Tables sbtest1 … sbtestN and the options of sysbench's OLTP scripts."""

    data_options: ClassVar[tuple[str, ...]] = (
        "tables", "table_size", "auto_inc", "secondary", "create_secondary", "mysql_storage_engine",
        "create_table_options", "pgsql_variant",
    )  # fmt: skip

    tables: int = option(1, "number of tables", ge=1)
    table_size: int = option(10_000, "rows per table", ge=1, le=MAX_ID)
    range_size: int = option(100, "rows of a range SELECT", ge=1)
    range_selects: bool = option(True, "whether range SELECTs are sent at all")
    point_selects: int = option(10, "point SELECTs per transaction", ge=0)
    simple_ranges: int = option(1, "simple range SELECTs per transaction", ge=0)
    sum_ranges: int = option(1, "SELECT SUM() per transaction", ge=0)
    order_ranges: int = option(1, "SELECT … ORDER BY per transaction", ge=0)
    distinct_ranges: int = option(1, "SELECT DISTINCT … ORDER BY per transaction", ge=0)
    index_updates: int = option(1, "UPDATEs of the indexed column per transaction", ge=0)
    non_index_updates: int = option(1, "UPDATEs of a column without index per transaction", ge=0)
    delete_inserts: int = option(1, "pairs of DELETE and INSERT per transaction", ge=0)
    skip_trx: bool = option(False, "no BEGIN and COMMIT: every statement commits by itself")
    auto_inc: bool = option(True, "the server numbers new rows; off = ids come from the client")
    secondary: bool = option(False, "a plain index on id in place of the primary key")
    create_secondary: bool = option(True, "a secondary index on k")
    create_table_options: str = option("", "text appended to CREATE TABLE")
    mysql_storage_engine: str = option("innodb", "storage engine, where the server has a choice")
    pgsql_variant: str = option(
        "", "redshift = no secondary index and no DELETE/INSERT pairs", choices=("", "redshift")
    )
    reconnect: int = option(0, "reopen the connection after that many transactions; 0 = never", ge=0)
    rand_type: str = option("uniform", "how ids are drawn (sysbench 1.0's default is special)", choices=KINDS)
    rand_spec_iter: int = option(12, "gaussian and special: how many draws are averaged", ge=1)
    rand_spec_pct: int = option(1, "special: width of the band, percent of the ids", ge=0, le=100)
    rand_spec_res: int = option(75, "special: percent of draws that fall into the band", ge=0, le=100)
    rand_pareto_h: float = option(0.2, "pareto: skew, between 0 and 1")
    rand_zipfian_exp: float = option(0.8, "zipfian: exponent", ge=0)

    def validate(self) -> None:
        """Settle what depends on several options."""
        try:
            self._distribution = Distribution(
                self.rand_type,
                spec_iter=self.rand_spec_iter,
                spec_pct=self.rand_spec_pct,
                spec_res=self.rand_spec_res,
                pareto_h=self.rand_pareto_h,
                zipfian_exp=self.rand_zipfian_exp,
            )
        except ValueError as error:
            raise UsageError(f"option rand_{error}") from None
        if self.pgsql_variant:
            self.create_secondary = False
            self.delete_inserts = 0
        self.reconnect_every = self.reconnect

    def distribution(self) -> Distribution:
        """``rand.pick`` draws as ``rand_type`` says."""
        return self._distribution

    def loaded_rows(self) -> int:
        """Rows of each table after ``prepare``."""
        return self.table_size

    def needed_rows(self) -> int:
        """Rows that each table must have for a run."""
        return self.table_size

    def schema(self) -> Iterable[Table]:
        """sbtest1 … sbtestN."""
        return [self._table(number) for number in range(1, self.tables + 1)]

    def _table(self, number: int) -> Table:
        return Table(
            name=f"sbtest{number}",
            columns=(
                Column("id", INT, auto=self.auto_inc),
                Column("k", INT, default=0),
                Column("c", char(120), default=""),
                Column("pad", char(60), default=""),
            ),
            key=("id",),
            key_index="xid" if self.secondary else "",
            indexes=(Index(f"k_{number}", ("k",)),) if self.create_secondary else (),
            units=self.loaded_rows(),
            needed=self.needed_rows(),
            rows=self.row,
            engine=self.mysql_storage_engine,
            suffix=self.create_table_options,
        )

    def row(self, rand: Stream, i: int) -> list[tuple[Any, ...]]:
        """Row ``i`` of a table: k drawn like an id, digits for the rest."""
        return [(i, rand.pick(1, self.table_size), rand.template(C_TEMPLATE), rand.template(PAD_TEMPLATE))]

    def of_each_table(self, query: str) -> str:
        """``query`` (with ``{table}`` and ``{name}``) for every table, as one UNION ALL."""
        return " UNION ALL ".join(
            query.format(table=f"sbtest{number}", name=f"'sbtest{number}'") for number in range(1, self.tables + 1)
        )

    @check("shape")
    def rows_keep_their_shape(self, db: Db) -> str:
        """Every row has 119 characters in c and 59 in pad, whatever was updated or inserted."""
        return self.of_each_table("SELECT {name} AS name, id FROM {table} WHERE LENGTH(c) <> 119 OR LENGTH(pad) <> 59")

    @check("unique ids")
    def ids_are_unique(self, db: Db) -> str:
        """No id stands in a table twice."""
        return self.of_each_table(
            "SELECT {name} AS name, id, COUNT(*) AS n FROM {table} GROUP BY id HAVING COUNT(*) > 1"
        )


class FixedRows(Sysbench):
    """Workloads whose transactions leave the number of rows as it is."""

    @check("row count")
    def rows_are_complete(self, db: Db) -> str:
        """Every table has at least table_size rows."""
        return self.of_each_table(
            f"SELECT * FROM (SELECT {{name}} AS name, COUNT(*) AS n FROM {{table}}) counted WHERE n < {self.table_size}"
        )
