"""Every shipped workload prepared, run and checked on every database, through the drive."""

from __future__ import annotations

from typing import Any

import pytest
from tests.drive.driving import drive, fetch

from dbdyno import load
from dbdyno.targets.target import Target, open_target
from dbdyno.workload.source import load_workload

SMALL = {"table_size": 400, "tables": 2}
#: All of them can run on the tables of the first.
ON_THE_SAME_TABLES = [
    ("oltp_read_write", SMALL),
    ("oltp_read_write", {**SMALL, "skip_trx": "on", "rand_type": "special", "reconnect": 7}),
    ("oltp_point_select", SMALL),
    ("oltp_read_only", {**SMALL, "rand_type": "pareto"}),
    ("oltp_write_only", {**SMALL, "delete_inserts": 2}),
    ("oltp_update_index", {**SMALL, "rand_type": "gaussian"}),
    ("oltp_update_non_index", {**SMALL, "rand_type": "zipfian"}),
    ("select_random_points", {"table_size": 400}),
    ("select_random_ranges", {"table_size": 400}),
    ("oltp_insert", SMALL),
    ("oltp_delete", SMALL),
]
#: Two terminals that delete and insert the same id can meet a duplicate key, which is no fault of anybody.
ALONE = ("oltp_read_write", "oltp_write_only")


@pytest.fixture
def target(target_url: str) -> Target:
    return open_target(target_url)


def run(target: Target, name: str, options: dict[str, Any], **load_: Any) -> set[str]:
    """Drive 60 transactions; names of the checks that do not hold afterwards."""
    workload = load_workload(name, options)
    load.prepare(target, workload, workers=2)
    load.require(target, workload)
    outcome, _ = drive(workload, target, transactions=60, **load_)
    assert outcome.state == "done", outcome.reason
    assert outcome.counts.committed == 60, outcome.errors
    return {result.name for result in load.check(target, workload) if not result.holds}


def test_sysbenchs_workloads_run_on_the_same_tables_and_their_checks_hold(target: Target) -> None:
    for name, options in ON_THE_SAME_TABLES:
        assert run(target, name, options, connections=1 if name in ALONE else 3) == set(), name
        if name == "oltp_insert":
            assert count(target) == 860
    assert 800 <= count(target) < 860


def test_a_plain_index_instead_of_the_key_serves_too(target: Target) -> None:
    assert run(target, "oltp_read_write", {**SMALL, "secondary": "on", "auto_inc": "off"}, connections=1) == set()


def test_client_made_ids_stay_unique_over_several_runs_with_one_seed(target: Target) -> None:
    for connections in (1, 4, 2):
        run(target, "oltp_insert", {**SMALL, "auto_inc": "off"}, connections=connections)
    assert count(target) == 180


def test_bulk_insert_makes_the_tables_it_lacks_and_goes_on_after_the_last_row(target: Target) -> None:
    for connections in (2, 3):
        run(target, "bulk_insert", {"rows_per_insert": 50}, connections=connections)
    assert [fetch(target, f"SELECT COUNT(*), MAX(id) FROM sbtest{n}")[0] for n in (1, 2, 3)] == [
        (2_500, 2_500), (2_500, 2_500), (1_000, 1_000),
    ]  # fmt: skip
    assert load.cleanup(target, load_workload("bulk_insert", {})) == ["sbtest1", "sbtest2", "sbtest3"]


def test_pgbenchs_workloads_share_their_tables_and_keep_the_books(
    target: Target, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if server not in ("sqlite", "postgresql"):  # 100,000 rows once for each way of inserting
        monkeypatch.setattr("dbdyno.workloads.pgbench.ACCOUNTS", 1_000)
    assert run(target, "tpcb_like", {}, connections=3) == set()
    assert run(target, "simple_update", {}, connections=3) == set()
    assert run(target, "select_only", {}, connections=3) == set()
    assert fetch(target, "SELECT COUNT(*) FROM pgbench_history")[0][0] == 120


def count(target: Target) -> int:
    """Rows of sbtest1 and sbtest2."""
    return sum(int(fetch(target, f"SELECT COUNT(*) FROM sbtest{n}")[0][0]) for n in (1, 2))
