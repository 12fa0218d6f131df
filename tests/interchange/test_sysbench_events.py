"""One event of each script: dbdyno sends the statements that sysbench sends, in its order (the server's log says)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from tests.drive.driving import drive
from tests.interchange.peers import Peer, Sent, as_options
from tests.servers.pool import Pool

from dbdyno import load
from dbdyno.targets.target import open_target
from dbdyno.workload.source import load_workload

pytestmark = [
    pytest.mark.needs("sysbench"),
    pytest.mark.skipif(shutil.which("sysbench") is None, reason="no sysbench on PATH"),
]

SCRIPTS = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
    "oltp_update_non_index", "oltp_insert", "oltp_delete",
]  # fmt: skip
RANDOM = ["select_random_points", "select_random_ranges"]
VARIANTS = {
    "oltp_read_write": [
        ["--skip-trx=on"],
        ["--range-selects=off", "--delete-inserts=2", "--index-updates=3", "--non-index-updates=0"],
        ["--point-selects=2", "--simple-ranges=2", "--sum-ranges=0", "--order-ranges=3", "--distinct-ranges=2"],
    ],
    "oltp_read_only": [["--skip-trx=on", "--range-size=7"]],
    "oltp_insert": [["--auto-inc=off"]],
    "select_random_points": [["--random-points=3"]],
    "select_random_ranges": [["--number-of-ranges=2", "--delta=9"]],
}
EVENTS = [(script, []) for script in SCRIPTS + RANDOM] + [
    (script, options) for script, variants in VARIANTS.items() for options in variants
]


@pytest.fixture(scope="module")
def peer(server: str, pool: Pool) -> Iterator[Peer]:
    """A server with two tables that sysbench prepared, for all events of this module."""
    made = Peer(server, open_target(pool.url(server)))
    made.clear()
    made.sysbench("oltp_read_write", "prepare", "--tables=2", "--table-size=500")
    yield made
    made.clear()


def one_table(sent: list[Sent]) -> list[Sent]:
    """Tables are drawn at random: all under one name."""
    return [(sql.replace("sbtest2", "sbtest1"), shapes) for sql, shapes in sent]


@pytest.mark.parametrize(("script", "options"), EVENTS, ids=lambda value: value if isinstance(value, str) else "")
def test_one_event_sends_the_same_statements_in_the_same_order(peer: Peer, script: str, options: list[str]) -> None:
    size = {"table_size": 500, "tables": 1 if script in RANDOM else 2}
    words = [f"--{name}={value}" for name, value in size.items()] + options
    with peer.witness.watching() as theirs:
        peer.sysbench(script, "run", "--events=1", "--time=0", "--rand-seed=7", *words)
    workload = load_workload(script, {**size, **as_options(options)})
    with peer.witness.watching() as ours:
        outcome, _ = drive(workload, peer.target, transactions=1)
    assert outcome.counts.committed == 1, outcome.errors
    sent = ours.statements
    if script == "oltp_insert":
        sent = [one for one in sent if not one[0].startswith("SELECT")]  # auto_inc=off looks for free ids first
    assert theirs.statements
    assert one_table(sent) == one_table(theirs.statements)


def test_bulk_inserts_statement_is_sysbenchs(peer: Peer) -> None:  # the last: it needs other tables
    peer.clear()
    peer.sysbench("bulk_insert", "prepare", "--threads=1")
    with peer.witness.watching() as theirs:
        peer.sysbench("bulk_insert", "run", "--events=3", "--time=0", "--threads=1")
    peer.clear()
    workload = load_workload("bulk_insert", {"rows_per_insert": 3})
    load.prepare(peer.target, workload)
    with peer.witness.watching() as ours:
        drive(workload, peer.target, transactions=1)

    def inserts(sent: list[Sent]) -> list[Sent]:
        return [(sql, shapes) for sql, shapes in sent if sql.startswith("INSERT")]

    assert inserts(theirs.statements) == [("INSERT INTO sbtest1 VALUES(?,?),(?,?),(?,?)", ("int",) * 6)]
    assert inserts(ours.statements) == inserts(theirs.statements)
    assert peer.fetch("SELECT id, k FROM sbtest1 ORDER BY id") == [(1, 1), (2, 2), (3, 3)]
