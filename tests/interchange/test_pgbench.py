"""dbdyno and pgbench are interchangeable on PostgreSQL: statements, tables, rows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.drive.driving import drive
from tests.interchange.peers import Peer

from dbdyno import load
from dbdyno.targets.managed import KINDS
from dbdyno.workload.source import load_workload

TABLES = ("pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history")
SCRIPTS = {"tpcb_like": "tpcb-like", "simple_update": "simple-update", "select_only": "select-only"}


pytestmark = pytest.mark.parametrize("server", ["postgresql"], indirect=True)


@pytest.fixture(scope="module")
def program() -> Path:
    """The pgbench that came with the server."""
    found = KINDS["postgresql"].locate().folder / "pgbench"
    assert found.is_file(), f"{found} is missing"
    return found


def pgbench(program: Path, peer: Peer, *words: str) -> str:
    address = peer.target.address
    where = ["-h", address.endpoints[0].host, "-p", str(address.endpoints[0].port), "-U", address.user]
    command = [str(program), *where, *words, address.database]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_one_transaction_sends_the_same_statements_in_the_same_order(peer: Peer, program: Path, name: str) -> None:
    pgbench(program, peer, "-i", "-q")
    workload = load_workload(name, {})
    assert load.require(peer.target, workload).foreign
    for mode in ("simple", "prepared"):
        with peer.witness.watching() as theirs:
            pgbench(program, peer, "-n", "-t", "1", "-M", mode, "-b", SCRIPTS[name])
        with peer.witness.watching() as ours:
            drive(workload, peer.target, transactions=1)
        # pgbench first asks how the tables were made.
        asked = [one for one in theirs.statements if not one[0].startswith("select ")]
        assert asked
        assert ours.statements == asked
    assert {result.name for result in load.check(peer.target, workload) if not result.holds} == set()


def test_both_make_the_same_tables_and_rows(peer: Peer, program: Path) -> None:
    pgbench(program, peer, "-i", "-q", "-s", "2")
    questions = [f"SELECT * FROM {table} ORDER BY 1 LIMIT 50" for table in TABLES]
    questions += [f"SELECT COUNT(*), COUNT(filler), MAX(LENGTH(filler)) FROM {table}" for table in TABLES]
    questions += [
        "SELECT bid, COUNT(*), MIN(aid), MAX(aid), SUM(abalance) FROM pgbench_accounts GROUP BY bid ORDER BY bid"
    ]
    described = [peer.described(table) for table in TABLES]
    rows = [peer.fetch(question) for question in questions]
    peer.clear()
    load.prepare(peer.target, load_workload("tpcb_like", {"scale": 2}))
    assert [peer.described(table) for table in TABLES] == described
    assert [peer.fetch(question) for question in questions] == rows


def test_tables_that_dbdyno_prepared_are_driven_by_pgbench(peer: Peer, program: Path) -> None:
    workload = load_workload("tpcb_like", {})
    load.prepare(peer.target, workload)
    output = pgbench(program, peer, "-n", "-c", "2", "-t", "20", "-b", "tpcb-like")
    assert "number of transactions actually processed: 40/40" in output
    drive(workload, peer.target, connections=2, transactions=40)
    assert peer.fetch("SELECT COUNT(*) FROM pgbench_history") == [(80,)]
    assert all(result.holds for result in load.check(peer.target, workload))
