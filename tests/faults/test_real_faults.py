"""The faults of real servers during a run: exact counters, the outage on the record, no hang, nothing lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil
import pytest
from tests.drive.driving import PAIRS, Add, DriveName, drive, fetch, make_table
from tests.faults.running import Running, administer, is_postgresql, kill_sessions, sessions, wait_for
from tests.servers.pool import Pool

from dbdyno.model.errors import RunError
from dbdyno.model.sample import Outcome
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import Workload, transaction

PLACES = [pair for pair in PAIRS if pair[0] in ("postgresql", "mariadb", "mysql")]
pytestmark = pytest.mark.parametrize(
    ("server", "by"), PLACES, indirect=True, ids=[f"{server}-{by}" for server, by in PLACES]
)
SUM = "SELECT SUM(balance) FROM drive_accounts"
FEW = "few"  # a user without privileges beyond the database


@pytest.fixture
def by(request: pytest.FixtureRequest) -> DriveName:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def target(target_url: str) -> Target:
    opened = open_target(target_url)
    make_table(opened)
    return opened


@pytest.fixture
def few(target: Target) -> Iterator[Target]:
    """The target as a user who may have two connections."""
    limit(target, 2, create=True)
    yield replace(target, address=replace(target.address, user=FEW))
    if is_postgresql(target):
        administer(target, f"REASSIGN OWNED BY {FEW} TO CURRENT_USER", f"DROP OWNED BY {FEW}", f"DROP ROLE {FEW}")
    else:
        administer(target, f"DROP USER {FEW}@'%', {FEW}@localhost")


def limit(target: Target, connections: int, *, create: bool = False) -> None:
    """How many connections that user may have."""
    word = "CREATE" if create else "ALTER"
    if is_postgresql(target):
        administer(target, f"{word} ROLE {FEW} LOGIN CONNECTION LIMIT {connections}")
        if create:
            administer(target, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {FEW}")
        return
    administer(target, f"{word} USER {FEW}@'%', {FEW}@localhost WITH MAX_USER_CONNECTIONS {connections}")
    if create:
        administer(target, *(f"GRANT ALL ON dbdyno.* TO {FEW}@{host}" for host in ("'%'", "localhost")))


def nothing_lost(target: Target, outcome: Outcome) -> None:
    """Each committed transaction added 1; one whose COMMIT was not answered may have."""
    counts = outcome.counts
    assert counts.committed <= fetch(target, SUM)[0][0] <= counts.committed + counts.unknown


def each_lost_once(outcome: Outcome, connections: int) -> None:
    """Every connection was lost once and came back; in the middle of a transaction, or just between two."""
    counts = outcome.counts
    assert counts.reconnects == connections
    assert sorted(outage.connection for outage in outcome.outages) == list(range(1, connections + 1))
    assert all(outage.begin < outage.end for outage in outcome.outages)
    assert sum(outcome.errors.values()) == connections >= counts.retries + counts.unknown
    assert counts.failed == 0


def test_a_server_that_is_killed_and_comes_back(target: Target, by: DriveName, server: str, pool: Pool) -> None:
    if server == "mysql" and "DBDYNO_SOAK" not in os.environ:
        pytest.skip("it takes its time to come back: make soak")
    with Running(Add(), target, by, connections=4) as run:
        process = psutil.Process(pool.server(server).pid)
        for one in [process, *process.children(recursive=True)]:
            one.kill()
        run.wait_away()
        gone = time.monotonic()
        time.sleep(0.5)
        pool.server(server)
        away_s = time.monotonic() - gone
        run.wait(lambda counts: counts.reconnects == 4, "the connections")
    outcome = run.outcome
    each_lost_once(outcome, 4)
    nothing_lost(target, outcome)
    assert all(0.4 < outage.end - outage.begin < away_s + 5 for outage in outcome.outages)
    assert run.idle_cpu_share() < 0.5


def test_a_connection_that_an_administrator_kills(target: Target, by: DriveName) -> None:
    with Running(Add(), target, by, connections=3) as run:
        victims = sessions(target)
        assert len(victims) == 3
        kill_sessions(target, victims)
        run.wait(lambda counts: counts.reconnects == 3, "the connections")
        before = run.counts.committed
        run.wait(lambda counts: counts.committed > before, "more transactions")
    each_lost_once(run.outcome, 3)
    nothing_lost(target, run.outcome)


class Crossing(Workload):
    """Two rows, in an order that depends on the terminal."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        first = 1 + db.terminal % 2
        db.begin()
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = ?", first)
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = ?", 3 - first)
        db.commit()


@contextmanager
def quick(target: Target, postgresql: str, value: str, mysql: str = "") -> Iterator[None]:
    """A setting of new sessions meanwhile."""
    if is_postgresql(target):
        administer(target, f"ALTER DATABASE dbdyno SET {postgresql} = '{value}'")
        yield
        administer(target, f"ALTER DATABASE dbdyno RESET {postgresql}")
    elif mysql:
        before = fetch(target, f"SELECT @@GLOBAL.{mysql}")[0][0]
        administer(target, f"SET GLOBAL {mysql} = 1")
        yield
        administer(target, f"SET GLOBAL {mysql} = {before}")
    else:
        yield


def deadlocks(target: Target) -> int:
    """As the server counts them."""
    if is_postgresql(target):
        return int(fetch(target, "SELECT deadlocks FROM pg_stat_database WHERE datname = 'dbdyno'")[0][0])
    return int(fetch(target, "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")[0][0])


def test_deadlocks_are_as_many_as_the_server_counts(target: Target, by: DriveName) -> None:
    before = deadlocks(target)
    with quick(target, "deadlock_timeout", "10ms"):
        outcome, _ = drive(Crossing(), target, by=by, connections=4, transactions=160, max_tries=1000)
    code = "40P01" if is_postgresql(target) else "1213"
    counts = outcome.counts
    assert outcome.state == "done", outcome.reason
    assert (counts.committed, counts.failed, counts.unknown) == (160, 0, 0)
    assert outcome.errors == {code: counts.retries}
    assert counts.retries > 0
    assert fetch(target, SUM)[0][0] == 320
    wait_for(lambda: deadlocks(target) - before == counts.retries, f"the server to count {counts.retries}", 5)


class One(Workload):
    """Adds 1 to the first account."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.begin()
        db.execute("UPDATE drive_accounts SET balance = balance + 1 WHERE id = 1")
        db.commit()


def test_a_lock_that_is_not_had_in_time(target: Target, by: DriveName) -> None:
    holder = target.control()
    try:
        holder.begin(True)
        holder.execute("UPDATE drive_accounts SET balance = balance + 100 WHERE id = 1")
        with quick(target, "lock_timeout", "100ms", "innodb_lock_wait_timeout"):
            outcome, _ = drive(One(), target, by=by, transactions=1, max_tries=2)
        holder.rollback()
    finally:
        holder.close()
    code = "55P03" if is_postgresql(target) else "1205"
    assert (outcome.state, outcome.errors) == ("failed", {code: 2})
    assert code in outcome.reason
    assert (outcome.counts.failed, outcome.counts.retries, outcome.counts.committed) == (1, 1, 0)
    # BEGIN, UPDATE, ROLLBACK, twice
    assert (outcome.counts.writes, outcome.counts.others) == (2, 4)
    assert fetch(target, SUM)[0][0] == 0


class ReadThenWrite(Workload):
    """Adds 1 to the first account by reading it first: right only if nobody comes between."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.begin()
        balance = db.row("SELECT balance FROM drive_accounts WHERE id = 1")[0]
        db.execute("UPDATE drive_accounts SET balance = ? WHERE id = 1", balance + 1)
        db.commit()


def test_serialization_failures_are_retried_until_no_update_is_lost(target: Target, by: DriveName) -> None:
    outcome, _ = drive(
        ReadThenWrite(), target, by=by, connections=4, transactions=120, max_tries=1000, isolation="serializable"
    )
    assert outcome.state == "done", outcome.reason
    assert (outcome.counts.committed, outcome.counts.failed) == (120, 0)
    assert outcome.errors == {"40001" if is_postgresql(target) else "1213": outcome.counts.retries}
    assert outcome.counts.retries > 0
    assert fetch(target, SUM)[0][0] == 120


def test_too_many_connections_at_the_start(few: Target, by: DriveName) -> None:
    with pytest.raises(RunError, match=r"has no connection left; raise"):
        drive(Add(), few, by=by, connections=3, transactions=3)


def test_too_many_connections_when_one_is_reopened(target: Target, few: Target, by: DriveName) -> None:
    with Running(Add(), few, by, connections=2) as run:
        limit(target, 1)
        kill_sessions(target, sessions(target, FEW)[:1])
        run.wait_away(1)
        before = run.counts.committed
        time.sleep(0.4)
        run.wait(lambda counts: counts.committed > before, "the other connection's transactions")
        limit(target, 2)
        run.wait(lambda counts: counts.reconnects == 1, "the connection")
    outcome = run.outcome
    assert len(outcome.outages) == sum(outcome.errors.values()) == outcome.counts.reconnects == 1
    assert outcome.outages[0].end - outcome.outages[0].begin > 0.4
    assert outcome.counts.retries + outcome.counts.unknown <= 1
    nothing_lost(target, outcome)


class ReadAll(Workload):
    """Every column of an account."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.row("SELECT * FROM drive_accounts WHERE id = ?", rand.uniform(1, 100))


def test_a_table_altered_under_prepared_statements(target: Target, by: DriveName) -> None:
    with Running(ReadAll(), target, by, connections=2) as run:
        administer(target, "ALTER TABLE drive_accounts ADD COLUMN more INT")
        before = run.counts.committed
        run.wait(lambda counts: counts.committed > before + 20, "more transactions")
        time.sleep(0.2)
    outcome = run.outcome
    assert outcome.errors == ({"0A000": 2} if is_postgresql(target) else {})
    assert outcome.counts.retries == sum(outcome.errors.values())
    assert outcome.counts.failed == outcome.counts.reconnects == 0
    assert outcome.counts.rows == outcome.counts.committed


def test_a_server_that_becomes_read_only_ends_the_run_and_says_so(target: Target, few: Target, by: DriveName) -> None:
    with Running(Add(), few, by, connections=2) as run:
        try:
            if is_postgresql(target):
                administer(target, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
            else:
                administer(target, "SET GLOBAL read_only = 1")
            run.ended_by_itself()
        finally:
            if is_postgresql(target):
                administer(target, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
            else:
                administer(target, "SET GLOBAL read_only = 0")
    outcome = run.outcome
    assert outcome.state == "failed"
    assert "read-only" in outcome.reason
    assert set(outcome.errors) == {"25006" if is_postgresql(target) else "1290"}
    assert sum(outcome.errors.values()) == outcome.counts.failed in (1, 2)
    assert outcome.counts.unknown == outcome.counts.retries == 0
    nothing_lost(target, outcome)
