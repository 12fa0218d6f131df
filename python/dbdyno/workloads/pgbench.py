"""pgbench's three built-in scripts on pgbench's tables: tpcb_like, simple_update, select_only.

Statements, tables and rows are those of ``pgbench -i`` and ``pgbench -b`` (version 18, its manual);
tables that pgbench made can be driven and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dbdyno.workload import (
    BIGINT,
    INT,
    TIMESTAMP,
    Column,
    Db,
    Stream,
    Table,
    Workload,
    char,
    check,
    option,
    transaction,
)

ACCOUNTS, TELLERS = 100_000, 10  # of one branch
#: From this scale on pgbench declares aid as bigint.
BIGINT_SCALE = 20_000


class Pgbench(Workload):
    """Tables pgbench_branches, _tellers, _accounts, _history; the rows are all zero, as pgbench makes them."""

    data_options: ClassVar[tuple[str, ...]] = ("scale",)

    scale: int = option(1, "branches; each has 10 tellers and 100,000 accounts", ge=1, le=1_000_000)

    def validate(self) -> None:
        """Sizes that follow from the scale."""
        self.accounts = ACCOUNTS * self.scale
        self.tellers = TELLERS * self.scale

    def schema(self) -> Iterable[Table]:
        """The four tables; history begins empty."""
        account = BIGINT if self.scale >= BIGINT_SCALE else INT
        return [
            Table(
                "pgbench_branches",
                (Column("bid", INT), _balance("bbalance"), _filler(88)),
                key=("bid",),
                units=self.scale,
                rows=self.branch,
            ),
            Table(
                "pgbench_tellers",
                (Column("tid", INT), Column("bid", INT, null=True), _balance("tbalance"), _filler(84)),
                key=("tid",),
                units=self.tellers,
                rows=self.teller,
            ),
            Table(
                "pgbench_accounts",
                (Column("aid", account), Column("bid", INT, null=True), _balance("abalance"), _filler(84)),
                key=("aid",),
                units=self.accounts,
                rows=self.account,
            ),
            Table(
                "pgbench_history",
                (
                    Column("tid", INT, null=True),
                    Column("bid", INT, null=True),
                    Column("aid", account, null=True),
                    Column("delta", INT, null=True),
                    Column("mtime", TIMESTAMP, null=True),
                    _filler(22),
                ),
            ),
        ]

    def branch(self, rand: Stream, i: int) -> list[tuple[Any, ...]]:
        """Branch ``i``; its filler is NULL."""
        return [(i, 0, None)]

    def teller(self, rand: Stream, i: int) -> list[tuple[Any, ...]]:
        """Teller ``i`` of branch (i − 1) / 10 + 1; its filler is NULL."""
        return [(i, (i - 1) // TELLERS + 1, 0, None)]

    def account(self, rand: Stream, i: int) -> list[tuple[Any, ...]]:
        """Account ``i`` of branch (i − 1) / 100,000 + 1; its filler is blank."""
        return [(i, (i - 1) // ACCOUNTS + 1, 0, "")]

    @check("row counts")
    def rows_are_complete(self, db: Db) -> str:
        """No branch, teller or account is missing."""
        return " UNION ALL ".join(
            f"SELECT * FROM (SELECT '{table}' AS name, COUNT(*) AS n FROM {table}) counted WHERE n < {rows}"
            for table, rows in (
                ("pgbench_branches", self.scale),
                ("pgbench_tellers", self.tellers),
                ("pgbench_accounts", self.accounts),
            )
        )

    @check("accounts = history")
    def accounts_agree_with_history(self, db: Db) -> str:
        """The accounts' balances are the sum of the history's deltas (unless a run of pgbench emptied it)."""
        return _unequal("pgbench_accounts", "abalance", "pgbench_history", "delta")

    @check("branches = tellers")
    def branches_agree_with_tellers(self, db: Db) -> str:
        """The branches' balances and the tellers' have the same sum."""
        return _unequal("pgbench_branches", "bbalance", "pgbench_tellers", "tbalance")


class TpcbLike(Pgbench):
    """Three UPDATEs, a SELECT and an INSERT in a transaction (pgbench -b tpcb-like)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        aid = rand.uniform(1, self.accounts)
        bid = rand.uniform(1, self.scale)
        tid = rand.uniform(1, self.tellers)
        delta = rand.uniform(-5000, 5000)
        db.begin()
        db.execute("UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?", delta, aid)
        db.row("SELECT abalance FROM pgbench_accounts WHERE aid = ?", aid)
        db.execute("UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?", delta, tid)
        db.execute("UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?", delta, bid)
        db.execute(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
            tid, bid, aid, delta,
        )  # fmt: skip
        db.commit()

    @check("branches = accounts")
    def branches_agree_with_accounts(self, db: Db) -> str:
        """The branches' balances and the accounts' have the same sum (unless simple_update ran here too,
        which leaves the branches alone)."""
        return _unequal("pgbench_branches", "bbalance", "pgbench_accounts", "abalance")


class SimpleUpdate(Pgbench):
    """tpcb_like without the contended tellers and branches (pgbench -b simple-update)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        aid = rand.uniform(1, self.accounts)
        bid = rand.uniform(1, self.scale)
        tid = rand.uniform(1, self.tellers)
        delta = rand.uniform(-5000, 5000)
        db.begin()
        db.execute("UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?", delta, aid)
        db.row("SELECT abalance FROM pgbench_accounts WHERE aid = ?", aid)
        db.execute(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
            tid, bid, aid, delta,
        )  # fmt: skip
        db.commit()


class SelectOnly(Pgbench):
    """Read one account's balance (pgbench -b select-only)."""

    @transaction
    def event(self, db: Db, rand: Stream) -> None:
        db.row("SELECT abalance FROM pgbench_accounts WHERE aid = ?", rand.uniform(1, self.accounts))


def _balance(name: str) -> Column:
    return Column(name, INT, null=True)


def _filler(length: int) -> Column:
    return Column("filler", char(length), null=True)


def _unequal(one: str, one_column: str, other: str, other_column: str) -> str:
    """SQL that gives both sums when they differ; an empty table sums to 0."""
    return (
        f"SELECT * FROM (SELECT (SELECT COALESCE(SUM({one_column}), 0) FROM {one}) AS {one_column},"
        f" (SELECT COALESCE(SUM({other_column}), 0) FROM {other}) AS {other_column}) sums"
        f" WHERE {one_column} <> {other_column}"
    )
