"""dbdyno and sysbench are interchangeable: tables, rows, ids."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from scipy import stats
from tests.drive.driving import drive
from tests.interchange.peers import Peer, as_options

from dbdyno import load
from dbdyno.workload.source import load_workload

pytestmark = [
    pytest.mark.needs("sysbench"),
    pytest.mark.skipif(shutil.which("sysbench") is None, reason="no sysbench on PATH"),
]

SMALL = {"tables": 2, "table_size": 500}
SCRIPTS = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
    "oltp_update_non_index", "oltp_insert", "oltp_delete",
]  # fmt: skip


def test_tables_that_sysbench_prepared_are_driven(peer: Peer) -> None:
    words = [f"--{name}={value}" for name, value in SMALL.items()]
    peer.sysbench("oltp_read_write", "prepare", *words)
    for script in SCRIPTS:
        workload = load_workload(script, SMALL)
        if script != "oltp_delete":
            assert load.require(peer.target, workload).foreign
        outcome, _ = drive(workload, peer.target, transactions=20)
        assert outcome.state == "done", outcome.reason
        assert outcome.counts.committed == 20, outcome.errors
        if script == "oltp_write_only":
            broken = [result.name for result in load.check(peer.target, workload) if not result.holds]
            assert broken == []
    peer.sysbench("oltp_read_write", "run", "--events=20", "--time=0", *words)
    assert load.cleanup(peer.target, load_workload("oltp_read_write", SMALL)) == ["sbtest1", "sbtest2"]


def test_tables_that_dbdyno_prepared_are_driven_by_sysbench(peer: Peer) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    load.prepare(peer.target, workload)
    words = [f"--{name}={value}" for name, value in SMALL.items()]
    for script in SCRIPTS:
        output = peer.sysbench(script, "run", "--events=20", "--time=0", *words)
        assert "total number of events:              20" in output
        if script == "oltp_write_only":
            assert all(result.holds for result in load.check(peer.target, workload))
    peer.sysbench("oltp_read_write", "cleanup", *words)
    assert load.inspect(peer.target, workload).kind == "absent"
    assert load.prepare(peer.target, workload).loaded == ("sbtest1", "sbtest2")


@pytest.mark.parametrize("options", [[], ["--auto-inc=off"], ["--create-secondary=off"]], ids="".join)
def test_both_make_the_same_tables(peer: Peer, options: list[str]) -> None:
    words = [f"--{name}={value}" for name, value in SMALL.items()]
    peer.sysbench("oltp_read_write", "prepare", *words, *options)
    theirs = peer.described("sbtest2")
    peer.clear()
    load.prepare(peer.target, load_workload("oltp_read_write", {**SMALL, **as_options(options)}))
    assert peer.described("sbtest2") == theirs


def test_a_plain_index_in_place_of_the_key_is_sysbenchs(peer: Peer) -> None:
    if peer.kind == "postgresql":
        pytest.skip("sysbench's KEY xid is no PostgreSQL syntax")
    words = [f"--{name}={value}" for name, value in SMALL.items()]
    peer.sysbench("oltp_read_write", "prepare", *words, "--secondary=on")
    theirs = peer.described("sbtest2")
    peer.clear()
    load.prepare(peer.target, load_workload("oltp_read_write", {**SMALL, "secondary": "on"}))
    assert peer.described("sbtest2") == theirs


def test_rows_are_alike_to_look_at(peer: Peer) -> None:
    words = [f"--{name}={value}" for name, value in SMALL.items()]
    question = (
        "SELECT COUNT(*), COUNT(DISTINCT c), COUNT(DISTINCT pad), MIN(id), MAX(id), MIN(LENGTH(c)), MAX(LENGTH(c)),"
        " MIN(LENGTH(pad)), MAX(LENGTH(pad)) FROM sbtest1"
    )
    peer.sysbench("oltp_read_write", "prepare", *words)
    theirs = peer.fetch(question)
    peer.clear()
    load.prepare(peer.target, load_workload("oltp_read_write", SMALL))
    assert peer.fetch(question) == theirs
    assert tuple(theirs[0]) == (500, 500, 500, 1, 500, 119, 119, 59, 59)


DRAWS = 3_000


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)  # ids do not depend on the server
@pytest.mark.parametrize("kind", ["uniform", "special", "gaussian", "pareto"])
def test_a_run_hits_the_same_ids_equally_often(peer: Peer, kind: str) -> None:
    """Two-sample chi-squared over 40 classes of ids; both seeds are fixed, so a pass is a pass for good."""
    words = ["--table-size=1000", f"--rand-type={kind}"]
    peer.sysbench("oltp_point_select", "prepare", *words)
    with peer.witness.watching() as theirs:
        peer.sysbench("oltp_point_select", "run", f"--events={DRAWS}", "--time=0", "--rand-seed=11", *words)
    workload = load_workload("oltp_point_select", {"table_size": 1_000, "rand_type": kind})
    with peer.witness.watching() as ours:
        drive(workload, peer.target, transactions=DRAWS, seed=3)
    assert len(theirs.ids) == len(ours.ids) == DRAWS
    edges = sorted(theirs.ids + ours.ids)
    bounds = [edges[len(edges) * step // 40] for step in range(1, 40)]
    classes = [Counter(sum(id > bound for bound in bounds) for id in side.ids) for side in (theirs, ours)]
    used = sorted(set(classes[0]) | set(classes[1]))
    table = [[side[number] for number in used] for side in classes]
    assert stats.chi2_contingency(table).pvalue > 0.001
