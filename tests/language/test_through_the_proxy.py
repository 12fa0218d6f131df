"""Both drives send a real server the same statements and values, as a recording proxy between sees them, and leave
the same rows when a statement fails, wherever it stands."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from tests.drive.driving import DriveName, drive
from tests.fake import DEADLOCK, DEADLOCK_POSTGRESQL, FakeServer, Recorded
from tests.language.test_rows_left import rows, without_times
from tests.language.test_shipped import with_options
from tests.servers.pool import Pool

from dbdyno import load
from dbdyno.targets.mysql.values import ENCODERS, bind
from dbdyno.targets.target import open_target
from dbdyno.workload.source import shipped

SMALL: dict[str, Any] = {
    "tables": 2,
    "table_size": 400,
    "rand_type": "uniform",
    "rows_per_insert": 20,
    "scale": 1,
    "auto_inc": False,
}
#: Those of pgbench have 100,000 rows at their smallest scale. What is not here is run by make soak.
QUICK = {
    "postgresql": {name for name in shipped() if name.startswith(("oltp_", "bulk_", "select_random_"))},
    "mysql": {"oltp_read_write", "oltp_insert", "bulk_insert", "select_random_ranges"},
    "seekdb": {"oltp_read_write", "bulk_insert"},
}
TERMINALS, EACH = 2, 6
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK")

pytestmark = pytest.mark.parametrize("server", ["postgresql", "mysql", "seekdb"], indirect=True)


def canonical(statement: Recorded, mysql: bool) -> str:
    """The text with its values, as one driver writes it that has no parameters; numbers without quotes."""
    text = statement.sql
    if mysql and statement.values:
        text = bind(text, statement.values, ENCODERS).decode()
    elif statement.values:
        text = f"{text} {statement.values}"
    return re.sub(r"'(-?\d+(?:\.\d+)?)'", r"\1", text)


def sent(proxy: FakeServer, mysql: bool) -> list[list[str]]:
    """What each connection sent after its settings, in an order that does not depend on who came first."""
    by_connection: dict[int, list[str]] = defaultdict(list)
    for statement in proxy.recorded():
        if not re.match(r"SET |SELECT @@|ROLLBACK$", statement.sql) or by_connection[statement.conn]:
            by_connection[statement.conn].append(canonical(statement, mysql))
    return sorted(statements for statements in by_connection.values() if statements)


class Through:
    """One workload on one server, by either drive, through a proxy."""

    def __init__(self, name: str, url: str) -> None:
        self.target = open_target(url)
        self.workload = with_options(name, SMALL)
        self.inserts = "insert" in name
        self.protocol: Literal["mysql", "postgresql"] = (
            "postgresql" if self.target.family.name == "postgresql" else "mysql"
        )

    def prepare(self) -> None:
        load.cleanup(self.target, self.workload)
        load.prepare(self.target, self.workload, seed=3)

    def run(
        self, by: DriveName, *, terminals: int, transactions: int, fail_at: Sequence[int] = ()
    ) -> tuple[list[list[str]], dict[str, int]]:
        """Statements by connection, and errors by code. ``fail_at``: places of statements that fail, from 1."""
        deadlock = DEADLOCK_POSTGRESQL if self.protocol == "postgresql" else DEADLOCK
        rules = [{"match": "^(?:[^S]|S[^E]|SE[^T])", "nth": place, "error": deadlock} for place in fail_at]
        (where,) = self.target.address.endpoints
        host = where.host if not where.socket else "127.0.0.1"
        with FakeServer(self.protocol, proxy=f"{host}:{where.port}", rules=rules) as proxy:
            endpoint = replace(where, host="127.0.0.1", port=proxy.port, socket="")
            target = replace(self.target, address=replace(self.target.address, endpoints=(endpoint,)))
            outcome, _ = drive(
                self.workload,
                target,
                by=by,
                replay=True,
                connections=terminals,
                transactions=transactions,
                seed=11,
                max_tries=3,
                capabilities=self.target.capabilities(),
            )
            recorded = sent(proxy, self.protocol == "mysql")
        assert outcome.state == "done", outcome.reason
        assert outcome.counts.committed + outcome.counts.rolled_back == transactions
        return recorded, dict(outcome.errors)

    def length(self, transactions: int) -> int:
        """How many statements one terminal sends for that many, `start` included (which may look at the rows)."""
        if transactions == 1 or self.inserts:
            self.prepare()
        return len(self.run("dbapi", terminals=1, transactions=transactions)[0][0])

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        return without_times(rows(self.target))


@pytest.fixture(params=shipped())
def through(request: pytest.FixtureRequest, server: str, pool: Pool) -> Iterator[Through]:
    name = str(request.param)
    if name not in QUICK[server] and "DBDYNO_SOAK" not in os.environ:
        pytest.skip("make soak")
    one = Through(name, pool.url(server))
    yield one
    load.cleanup(one.target, one.workload)


def test_both_drives_send_the_same(through: Through) -> None:
    results = []
    for by in ("dbapi", "engine"):
        if by == "dbapi" or through.inserts:
            through.prepare()
        statements, errors = through.run(by, terminals=TERMINALS, transactions=TERMINALS * EACH)
        assert errors == {}
        results.append(statements)
    assert len(results[0]) == TERMINALS
    assert results[1] == results[0]


def test_both_drives_leave_the_same_rows_after_an_error_at_every_statement(through: Through) -> None:
    one, two = through.length(1), through.length(2)
    length = two - one
    # one transaction after the other fails once, each a statement later, the last one at its end
    fail_at, begin = [], one - length
    for place in range(1, length + 1):
        fail_at.append(begin + place)
        begin += place + (length > 1) + length  # up to the error, ROLLBACK, once more
    results = []
    for by in ("dbapi", "engine"):
        through.prepare()
        statements, errors = through.run(by, terminals=1, transactions=length, fail_at=fail_at)
        assert sum(errors.values()) == length
        results.append((statements, through.rows()))
    assert results[1][0] == results[0][0]
    assert results[1][1] == results[0][1]
