"""prepare, inspect, check and cleanup on every database."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.load.data import SMALL, make_foreign, rows, run, tables_of

from dbdyno import load
from dbdyno.model.errors import RunError
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import INT, Column, Table, Workload, char, option, transaction
from dbdyno.workload.source import load_workload


@pytest.fixture
def small_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """pgbench's tables with 1,000 accounts: their number is nothing that these tests are about."""
    monkeypatch.setattr("dbdyno.workloads.pgbench.ACCOUNTS", 1_000)


@pytest.fixture
def target(target_url: str) -> Target:
    return open_target(target_url, label="here")


def test_prepare_loads_every_row_as_the_row_function_makes_it(target: Target) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    report = load.prepare(target, workload, seed=7)
    assert report.loaded == ("sbtest1", "sbtest2")
    assert report.rows == 2_400
    for table in workload.schema():
        assert table.rows is not None
        stream = workload.stream(7, f"table:{table.name}", 0, 1)
        expected = []
        for unit in range(1, 1_201):
            stream.reseat(0, unit)
            expected += table.rows(stream, unit)
        found = rows(target, f"SELECT id, k, c, pad FROM {table.name} ORDER BY id")
        assert [tuple(row) for row in found] == expected


def test_the_number_of_workers_does_not_change_the_rows(target: Target) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    left = []
    for workers in (1, 3):
        load.prepare(target, workload, workers=workers)
        left.append(
            rows(target, "SELECT * FROM sbtest1 ORDER BY id") + rows(target, "SELECT * FROM sbtest2 ORDER BY id")
        )
        load.cleanup(target, workload)
    assert left[0] == left[1]


def test_a_second_prepare_of_the_same_data_does_nothing_and_says_so(target: Target) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    load.prepare(target, workload)
    run(target, "UPDATE sbtest1 SET k = -5 WHERE id = 1")
    for again in (load.prepare(target, workload), load.ensure(target, workload, seed=99)):
        assert again.already_there
        assert "complete already" in again.sentence
    assert rows(target, "SELECT k FROM sbtest1 WHERE id = 1") == [(-5,)]


def test_tables_of_another_program_are_accepted_when_they_have_enough_rows(target: Target) -> None:
    make_foreign(target, 30)
    workload = load_workload("oltp_read_write", {"table_size": 30})
    state = load.require(target, workload)
    assert state.foreign
    assert "another program" in load.prepare(target, workload).sentence
    assert rows(target, "SELECT COUNT(*) FROM sbtest1") == [(30,)]


def test_a_table_with_other_columns_is_never_touched(target: Target) -> None:
    run(target, "CREATE TABLE sbtest1 (id INTEGER, secret INTEGER)", "INSERT INTO sbtest1 VALUES (1, 2)")
    workload = load_workload("oltp_read_write", {"tables": 2})
    for refuses in (load.require, load.prepare, load.ensure, load.check, load.cleanup):
        with pytest.raises(RunError, match="the columns id, secret"):
            refuses(target, workload)
    assert rows(target, "SELECT * FROM sbtest1") == [(1, 2)]
    assert tables_of(target) & {"sbtest2", "dbdyno_load"} == set()


def test_cleanup_drops_the_workloads_tables_and_nothing_else(target: Target, small_branches: None) -> None:
    run(target, "CREATE TABLE load_keep (a INTEGER)")
    workload = load_workload("oltp_read_write", SMALL)
    load.prepare(target, workload)
    load.prepare(target, load_workload("tpcb_like", {}), workers=2)
    assert load.cleanup(target, workload) == ["sbtest1", "sbtest2"]
    left = tables_of(target)
    assert {"load_keep", "pgbench_accounts", "dbdyno_load"} <= left
    assert not {"sbtest1", "sbtest2"} & left
    assert len(load.cleanup(target, load_workload("tpcb_like", {}))) == 4
    assert tables_of(target) & {"load_keep", "pgbench_accounts", "dbdyno_load"} == {"load_keep"}
    assert load.cleanup(target, workload) == []


def test_checks_hold_after_prepare_and_find_what_is_spoilt(target: Target) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    load.prepare(target, workload)
    assert all(result.holds for result in load.check(target, workload))
    run(target, "UPDATE sbtest2 SET pad = 'short' WHERE id BETWEEN 5 AND 30", "DELETE FROM sbtest1 WHERE id = 9")
    results = {result.name: result for result in load.check(target, workload)}
    assert not results["data"].holds
    assert [tuple(row) for row in results["row count"].violations] == [("sbtest1", 1_199)]
    assert results["unique ids"].holds
    assert len(results["shape"].violations) == 10
    assert results["shape"].more
    assert {row[0] for row in results["shape"].violations} == {"sbtest2"}


def test_pgbenchs_checks_find_a_lost_update(target: Target, small_branches: None) -> None:
    workload = load_workload("tpcb_like", {})
    report = load.prepare(target, workload, workers=2)
    assert report.rows == 1_011
    assert all(result.holds for result in load.check(target, workload))
    run(target, "UPDATE pgbench_accounts SET abalance = abalance + 5 WHERE aid = 7")
    broken = {result.name for result in load.check(target, workload) if not result.holds}
    assert broken == {"accounts = history", "branches = accounts"}


def test_new_rows_are_numbered_after_the_loaded_ones(target: Target) -> None:
    load.prepare(target, load_workload("oltp_read_write", SMALL))
    run(target, "INSERT INTO sbtest1 (k, c, pad) VALUES (1, 'c', 'pad')")
    assert rows(target, "SELECT MAX(id) FROM sbtest1") == [(1_201,)]


class Failing(Workload):
    """Its row function stops in the middle of the second table."""

    data_options = ("broken",)
    broken: bool = option(True, "fail")
    gives: str = option("error", "how", choices=("error", "width", "null"))

    def schema(self) -> list[Table]:
        columns = (Column("id", INT), Column("name", char(8)))
        return [
            Table("load_first", columns, key=("id",), units=3_000, rows=self.good),
            Table("load_second", columns, key=("id",), units=3_000, rows=self.second),
        ]

    def good(self, rand: Any, i: int) -> list[tuple[Any, ...]]:
        return [(i, f"n{i}")]

    def second(self, rand: Any, i: int) -> list[tuple[Any, ...]]:
        if not self.broken or i != 2_345:
            return [(i, f"n{i}")]
        if self.gives == "error":
            raise ZeroDivisionError("division by zero")
        return [(i,)] if self.gives == "width" else [(i, None)]

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.row("SELECT 1")


@pytest.mark.parametrize(
    ("gives", "says"),
    [
        ("error", "row function of table load_second failed: ZeroDivisionError: division by zero"),
        ("width", "load_second gave 1 values for unit 2345; the columns id, name need 2"),
        ("null", "cannot load units 2,001 to 3,000 of table load_second on here"),
    ],
)
def test_a_load_that_fails_is_one_sentence_and_the_next_begins_anew(target: Target, gives: str, says: str) -> None:
    with pytest.raises(RunError) as failed:
        load.prepare(target, Failing({"gives": gives}))
    assert says in str(failed.value)
    assert "\n" not in str(failed.value)
    good = Failing({"broken": "off"})
    assert load.inspect(target, good).kind == "partial"
    with pytest.raises(RunError, match="did not finish"):
        load.require(target, good)
    report = load.prepare(target, good)
    assert report.loaded == ("load_first", "load_second")
    assert rows(target, "SELECT COUNT(*) FROM load_second") == [(3_000,)]
    assert load.require(target, good).kind == "complete"
    assert load.cleanup(target, good) == ["load_first", "load_second"]


def test_an_interrupted_load_stops_its_workers_and_can_be_cleaned_up(target: Target) -> None:
    workload = load_workload("oltp_read_write", {"tables": 2, "table_size": 20_000})
    before = threading.active_count()

    def interrupt(progress: load.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load.prepare(target, workload, workers=2, progress=interrupt)
    assert threading.active_count() == before
    assert load.inspect(target, workload).kind == "partial"
    assert load.cleanup(target, workload) == ["sbtest1", "sbtest2"]
    assert load.inspect(target, workload).kind == "absent"


def test_bulk_inserts_tables_are_made_empty_and_those_of_runs_dropped_too(target: Target) -> None:
    workload = load_workload("bulk_insert", {"threads": 2})
    load.prepare(target, workload)
    run(
        target,
        "CREATE TABLE sbtest3 (id INTEGER NOT NULL, k INTEGER, PRIMARY KEY (id))",
        "INSERT INTO sbtest1 VALUES (1, 1)",
    )
    assert load.require(target, workload).kind == "complete"
    assert load.cleanup(target, workload) == ["sbtest1", "sbtest2", "sbtest3"]


def test_a_plain_index_can_stand_in_for_the_primary_key(target: Target) -> None:
    options = {**SMALL, "secondary": "on", "auto_inc": "off"}
    load.prepare(target, load_workload("oltp_read_write", options))
    assert load.require(target, load_workload("oltp_point_select", options)).kind == "complete"
    run(target, "INSERT INTO sbtest1 (id, k, c, pad) VALUES (1, 1, 'c', 'pad')")  # no uniqueness any more
    results = {result.name: result for result in load.check(target, load_workload("oltp_read_write", options))}
    assert [tuple(row) for row in results["unique ids"].violations] == [("sbtest1", 1, 2)]
