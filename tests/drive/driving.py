"""Running one job in a test: small workloads over one table, and a function that drives them by either drive."""

from __future__ import annotations

from typing import Any, Literal

from dbdyno.drive import DbApiDrive, Drive, EngineDrive, Job, Stop, drive_for
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Load
from dbdyno.targets.family import Capabilities
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import INT, Column, Rollback, Table, Workload, option, state, transaction, varchar

ACCOUNTS = Table(
    "drive_accounts",
    (Column("id", INT), Column("balance", INT, default=0), Column("note", varchar(40), default="")),
    key=("id",),
)


DriveName = Literal["engine", "dbapi"]

#: Each server with each drive that speaks to it; one server of the engine's own two protocols with both is enough.
PAIRS: tuple[tuple[str, DriveName], ...] = (
    ("sqlite", "dbapi"),
    ("postgresql", "dbapi"),
    ("postgresql", "engine"),
    ("mariadb", "dbapi"),
    ("mariadb", "engine"),
    ("mysql", "engine"),
    ("seekdb", "engine"),
)


def make_table(target: Target, rows: int = 100) -> None:
    """The table of these tests, with ids 1 … rows and balance 0."""
    connection = target.control()
    try:
        connection.execute(target.family.dialect.drop_table(ACCOUNTS.name))
        for sql in target.family.dialect.create_table(ACCOUNTS):
            connection.execute(sql)
        for number in range(1, rows + 1):
            connection.execute("INSERT INTO drive_accounts (id, balance, note) VALUES (?, 0, '')", (number,))
    finally:
        connection.close()


def fetch(target: Target, sql: str) -> list[tuple[Any, ...]]:
    """Rows, over a connection of its own."""
    connection = target.control()
    try:
        return connection.fetch(sql)
    finally:
        connection.close()


def drive_named(name: DriveName | None, target: Target) -> Drive:
    """That drive, or the one that users get."""
    if name is None:
        return drive_for(target)
    return EngineDrive() if name == "engine" else DbApiDrive()


def drive(
    workload: Workload,
    target: Target | str,
    *,
    by: DriveName | None = None,
    stop: Stop | None = None,
    replay: bool = False,
    ack_path: Any = None,
    capabilities: Capabilities | None = None,
    **load: Any,
) -> tuple[Outcome, list[Sample]]:
    """Run a job; its outcome and all its samples. ``by``: the drive; None: the one that users get."""
    opened = open_target(target) if isinstance(target, str) else target
    samples: list[Sample] = []
    job = Job(
        opened,
        workload,
        Load(**{"connections": 1, "interval_s": 0.1, **load}),
        capabilities or opened.capabilities(),
        ack_path=ack_path,
        replay=replay,
    )
    outcome = drive_named(by, opened).run(job, samples.append, stop or Stop())
    return outcome, samples


class Add(Workload):
    """Adds 1 to a drawn account, in a transaction: begin, select, update, commit."""

    data_options = ()
    accounts: int = option(100, "accounts", ge=1)

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        account = rand.uniform(1, self.accounts)
        db.begin()
        db.row("SELECT balance FROM drive_accounts WHERE id = ?", account)
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = ?", account)
        db.commit()


class Read(Workload):
    """One SELECT by key."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.row("SELECT balance FROM drive_accounts WHERE id = ?", rand.uniform(1, 100))


class Mixed(Workload):
    """Three kinds by weight; one rolls back by its own wish."""

    data_options = ()

    @transaction(weight=70)
    def read(self, db: Any, rand: Any) -> None:
        db.row("SELECT balance FROM drive_accounts WHERE id = ?", rand.uniform(1, 100))

    @transaction(weight=20)
    def write(self, db: Any, rand: Any) -> None:
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = ?", rand.uniform(1, 100))

    @transaction(weight=10)
    def give_up(self, db: Any, rand: Any) -> None:
        db.begin()
        db.execute("UPDATE drive_accounts SET balance = balance + 1000 WHERE id = ?", rand.uniform(1, 100))
        raise Rollback


class Counting(Workload):
    """Keeps a number per terminal and writes it down: what ``db.state`` is for."""

    data_options = ()
    seen = state(0)

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.state.seen = db.state.seen + 1
        db.begin()
        db.execute(
            "UPDATE drive_accounts SET balance = ?, note = ? WHERE id = ?",
            db.state.seen,
            f"t{db.terminal}",
            db.terminal,
        )
        db.commit()
        db.ack(db.terminal, db.state.seen)


class ReturnsOpen(Workload):
    """Forgets its COMMIT."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.begin()
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = ?", 1)


class Swallows(Workload):
    """Tries to catch a database error, which no workload can."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        try:
            db.row("SELECT nothing FROM no_such_table WHERE id = ?", 1)
        except Exception:
            return


class Buggy(Workload):
    """Raises an ordinary Python error."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.row("SELECT balance FROM drive_accounts WHERE id = ?", 1)[7]
