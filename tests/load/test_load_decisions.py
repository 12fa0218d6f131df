"""What prepare and inspect decide; nothing here depends on the database, so SQLite alone is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.load.data import SMALL, make_foreign, rows

from dbdyno import load
from dbdyno.load import ledger
from dbdyno.model.errors import RunError
from dbdyno.targets.target import Target, open_target
from dbdyno.workload.source import load_workload


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return open_target(f"sqlite:///{tmp_path}/data.db", label="here")


def test_workloads_on_the_same_tables_share_them(target: Target) -> None:
    load.prepare(target, load_workload("oltp_read_write", SMALL))
    other = load_workload("oltp_point_select", {**SMALL, "rand_type": "zipfian", "range_size": 7})
    assert load.inspect(target, other).kind == "complete"
    assert load.prepare(target, other).already_there


def test_more_tables_are_added_to_those_that_are_there(target: Target) -> None:
    load.prepare(target, load_workload("oltp_read_write", {**SMALL, "tables": 1}))
    report = load.prepare(target, load_workload("oltp_read_write", {**SMALL, "tables": 3}))
    assert report.loaded == ("sbtest2", "sbtest3")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"table_size": 3_000}, r"table_size = 1200 \(asked: 3000\)"),
        ({"table_size": 2_000}, r"table_size = 1200 \(asked: 2000\)"),
        ({"create_secondary": "off"}, r"create_secondary = on \(asked: off\)"),
    ],
)
def test_other_data_are_refused_with_what_was_found(target: Target, asked: dict[str, Any], says: str) -> None:
    load.prepare(target, load_workload("oltp_read_write", SMALL))
    workload = load_workload("oltp_read_only", {**SMALL, **asked})
    assert load.inspect(target, workload).kind == "other"
    for refuses in (load.prepare, load.ensure, load.require):
        with pytest.raises(RunError, match=says):
            refuses(target, workload)
    assert rows(target, "SELECT COUNT(*) FROM sbtest1") == [(1_200,)]


def test_another_seed_is_other_data_for_prepare_but_not_for_a_run(target: Target) -> None:
    workload = load_workload("oltp_read_write", SMALL)
    load.prepare(target, workload, seed=3)
    with pytest.raises(RunError, match=r"seed = 3 \(asked: 4\)"):
        load.prepare(target, workload, seed=4)
    assert load.require(target, workload).kind == "complete"


def test_a_missing_table_is_told_with_the_command_that_makes_it(target: Target) -> None:
    workload = load_workload("oltp_read_write", {**SMALL, "auto_inc": "off"})
    with pytest.raises(RunError) as refused:
        load.require(target, workload)
    text = str(refused.value)
    assert "sbtest1, sbtest2 do not exist" in text
    assert f"dbdyno prepare oltp_read_write {target.address}" in text.replace("'", "")
    assert "--opt tables=2 --opt table_size=1200 --opt auto_inc=off" in text


def test_too_few_rows_are_told_with_both_numbers(target: Target) -> None:
    make_foreign(target, 12)
    workload = load_workload("oltp_read_write", {"table_size": 30})
    for refuses in (load.require, load.prepare, load.ensure):
        with pytest.raises(RunError, match="sbtest1 has 12 rows, 30 are needed"):
            refuses(target, workload)
    assert load.inspect(target, load_workload("oltp_insert", {"table_size": 30})).kind == "complete"


def test_progress_counts_units_up_to_all_of_them(target: Target) -> None:
    seen: list[load.Progress] = []
    load.prepare(target, load_workload("oltp_read_write", SMALL), workers=2, progress=seen.append)
    units = [step.units for step in seen]
    assert units == sorted(units)
    assert (seen[-1].units, seen[-1].total_units, seen[-1].rows, seen[-1].share) == (2_400, 2_400, 2_400, 1.0)
    assert [step.phase for step in seen if step.phase == "indexes"] == ["indexes"] * 2
    assert seen[-1].phase == "statistics"


def test_the_ledger_says_what_was_loaded(target: Target) -> None:
    load.prepare(target, load_workload("oltp_read_write", SMALL), seed=5)
    connection = target.connect()
    try:
        entries = ledger.read(connection)
    finally:
        connection.close()
    entry = entries["sbtest2"]
    assert (entry.workload, entry.seed, entry.rows, entry.finished) == ("oltp_read_write", 5, 1_200, True)
    assert entry.options["table_size"] == 1_200
