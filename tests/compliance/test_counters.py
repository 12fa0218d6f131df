"""Our counts against the server's own: what a run says it did is what the server says it was asked to do.

Control connections are left out by the families' counters. SQLite has none: its witness is the trace of every
statement that its connections ran.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.drive.driving import Add, Mixed, Read, drive, make_table

from dbdyno.load import prepare
from dbdyno.model.sample import Outcome
from dbdyno.targets.family import Connection
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import Workload
from dbdyno.workload.source import load_workload


class TracedFamily:
    """A family whose connections note the first word of each statement they run."""

    def __init__(self, family: object, seen: Counter[str]) -> None:
        self._family = family
        self._seen = seen

    def __getattr__(self, name: str) -> object:
        return getattr(self._family, name)

    def connect(self, *args: object, **kwargs: object) -> Connection:
        connection: Connection = self._family.connect(*args, **kwargs)  # type: ignore[attr-defined]
        if not kwargs.get("control"):
            connection.trace(lambda sql: self._seen.update([sql.split()[0].lower()]))  # type: ignore[attr-defined]
        return connection


def witnessed(target: Target, workload: Workload, **load: Any) -> tuple[Outcome, dict[str, int]]:
    """Run it; the outcome and the growth of the server's counters."""
    has = target.capabilities()  # asked before the first reading: asking sends statements
    if not has.server_counters:
        seen: Counter[str] = Counter()
        traced = replace(target, family=TracedFamily(target.family, seen))  # type: ignore[arg-type]
        outcome, _ = drive(workload, traced, capabilities=has, **load)
        return outcome, dict(seen)
    control = target.control()  # one for both readings: the family leaves out what this connection asked
    try:
        before = target.family.counters(control, target.address)
        outcome, _ = drive(workload, target, capabilities=has, **load)
        after = target.family.counters(control, target.address)
    finally:
        control.close()
    return outcome, {name: after[name] - before.get(name, 0) for name in after}


@pytest.fixture
def target(target_url: str) -> Target:
    opened = open_target(target_url)
    make_table(opened)
    return opened


@pytest.mark.parametrize("workload", [Read(), Add(), Mixed()], ids=lambda workload: type(workload).__name__)
def test_our_counts_are_the_servers(target: Target, workload: Workload) -> None:
    drive(workload, target, connections=2, transactions=20)  # where plans carry the counts, they are made now
    outcome, server = witnessed(target, workload, connections=3, transactions=200)
    check(outcome, server)


def test_sysbenchs_transaction_is_counted_as_the_server_counts_it(target: Target) -> None:
    workload = load_workload("oltp_read_write", {"table_size": 1000})
    prepare(target, workload)
    drive(workload, target, connections=1, transactions=3)
    outcome, server = witnessed(target, workload, connections=2, transactions=40)
    if not outcome.errors:
        assert (outcome.counts.reads, outcome.counts.writes, outcome.counts.others) == (14 * 40, 4 * 40, 2 * 40)
    check(outcome, server)


def check(outcome: Outcome, server: dict[str, int]) -> None:
    """Compare whatever the server counts; every server counts something."""
    assert outcome.state == "done", outcome.reason
    counts = outcome.counts
    compared = 0
    if "select" in server:
        assert server["select"] == counts.reads
        compared += 1
    if "insert" in server or "update" in server:
        assert sum(server.get(name, 0) for name in ("insert", "update", "delete", "replace")) == counts.writes
        compared += 1
    if "begin" in server:
        assert server["begin"] + server.get("commit", 0) + server.get("rollback", 0) == counts.others
        assert server.get("rollback", 0) == counts.rolled_back + counts.retries + counts.failed
        compared += 1
    elif "commit" in server:  # transactions: a statement in autocommit is one, a rolled back one is none
        explicit = counts.others // 2
        alone = counts.reads + counts.writes if explicit == 0 else counts.scheduled - explicit
        assert server["commit"] == alone + explicit - counts.rolled_back - counts.failed
        assert server["rollback"] == counts.rolled_back + counts.retries + counts.failed
        compared += 1
    assert compared
