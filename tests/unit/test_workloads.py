"""What the shipped workloads send and load, without a server."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from tests.recording import RecordingDb, record

from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities
from dbdyno.workload import Workload, checks
from dbdyno.workload.source import load_workload, program_hash, shipped, writes
from dbdyno.workload.sql import parameter_positions, statement_kind

SYSBENCH = [
    "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_update_index",
    "oltp_update_non_index", "oltp_insert", "oltp_delete", "bulk_insert", "select_random_points",
    "select_random_ranges",
]  # fmt: skip
OLTP = [name for name in SYSBENCH if name.startswith(("oltp", "select"))]
PGBENCH = ["tpcb_like", "simple_update", "select_only"]


def texts(name: str, **options: Any) -> list[str]:
    return [sql for sql, _ in record(load_workload(name, options))]


def test_every_workload_of_sysbench_and_pgbench_is_installed() -> None:
    assert set(SYSBENCH + PGBENCH) <= set(shipped())


@pytest.mark.parametrize("name", SYSBENCH + PGBENCH)
def test_each_text_takes_as_many_values_as_it_has_marks(name: str) -> None:
    for sql, params in record(load_workload(name, {}), events=3):
        assert len(parameter_positions(sql)) == len(params), sql


@pytest.mark.parametrize("name", SYSBENCH + PGBENCH)
def test_the_same_seed_sends_the_same_and_another_seed_something_else(name: str) -> None:
    workload = load_workload(name, {})
    first = record(workload, events=5)
    assert first == record(workload, events=5)
    if name != "bulk_insert":
        assert first != record(workload, events=5, seed=2)


def test_a_read_write_event_is_sysbenchs_twenty_queries() -> None:
    sent = texts("oltp_read_write")
    kinds = Counter(statement_kind(sql) for sql in sent)
    assert len(sent) == 20
    assert kinds == {"read": 14, "write": 4, "other": 2}
    assert [re.sub(r"sbtest\d+", "sbtest", sql) for sql in sent] == [
        "BEGIN",
        *["SELECT c FROM sbtest WHERE id=?"] * 10,
        "SELECT c FROM sbtest WHERE id BETWEEN ? AND ?",
        "SELECT SUM(k) FROM sbtest WHERE id BETWEEN ? AND ?",
        "SELECT c FROM sbtest WHERE id BETWEEN ? AND ? ORDER BY c",
        "SELECT DISTINCT c FROM sbtest WHERE id BETWEEN ? AND ? ORDER BY c",
        "UPDATE sbtest SET k=k+1 WHERE id=?",
        "UPDATE sbtest SET c=? WHERE id=?",
        "DELETE FROM sbtest WHERE id=?",
        "INSERT INTO sbtest (id, k, c, pad) VALUES (?, ?, ?, ?)",
        "COMMIT",
    ]


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("oltp_point_select", 1), ("oltp_read_only", 16), ("oltp_write_only", 6), ("oltp_update_index", 1),
        ("oltp_update_non_index", 1), ("oltp_insert", 1), ("oltp_delete", 1), ("select_random_points", 1),
        ("select_random_ranges", 1), ("tpcb_like", 7), ("simple_update", 5), ("select_only", 1),
    ],
)  # fmt: skip
def test_an_event_sends_as_many_statements_as_the_peers(name: str, length: int) -> None:
    assert len(texts(name)) == length


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({"skip_trx": True}, {"oltp_read_write": 18, "oltp_read_only": 14, "oltp_write_only": 4}),
        ({"range_selects": "off"}, {"oltp_read_write": 16, "oltp_read_only": 12}),
        ({"point_selects": 3}, {"oltp_read_write": 13, "oltp_point_select": 1}),
        ({"sum_ranges": 4, "order_ranges": 0}, {"oltp_read_write": 22}),
        ({"index_updates": 5}, {"oltp_update_index": 5, "oltp_write_only": 10}),
        ({"non_index_updates": 2}, {"oltp_update_non_index": 2}),
        ({"delete_inserts": 3}, {"oltp_write_only": 10}),
        ({"pgsql_variant": "redshift"}, {"oltp_write_only": 4}),
    ],
)
def test_counting_options_change_what_is_sent(options: dict[str, Any], lengths: dict[str, int]) -> None:
    for name, length in lengths.items():
        assert len(texts(name, **options)) == length, name


def test_each_kind_of_query_stays_in_one_table_and_all_tables_are_used() -> None:
    workload = load_workload("oltp_read_write", {"tables": 7})
    used = Counter()
    for number in range(200):
        sent = [sql for sql, _ in record(workload, seed=number) if "sbtest" in sql]
        tables = [re.search(r"sbtest(\d+)", sql)[1] for sql in sent]  # type: ignore[index]
        assert len(set(tables[:10])) == 1
        assert tables[-1] == tables[-2]  # INSERT goes where DELETE went
        used.update(tables[9:])
    assert set(used) == {str(number) for number in range(1, 8)}


def test_ranges_have_range_size_ids() -> None:
    for sql, params in record(load_workload("oltp_read_only", {"range_size": 30}), events=20):
        if "BETWEEN" in sql:
            assert params[1] - params[0] == 29


@pytest.mark.parametrize("kind", ["uniform", "special", "gaussian", "pareto", "zipfian"])
def test_ids_stay_inside_the_table_for_every_rand_type(kind: str) -> None:
    workload = load_workload("oltp_point_select", {"rand_type": kind, "table_size": 50})
    ids = [params[0] for _, params in record(workload, events=2_000)]
    assert min(ids) >= 1
    assert max(ids) <= 50
    spread = Counter(ids)
    if kind == "uniform":
        assert len(spread) == 50
    else:
        assert max(spread.values()) > 1.5 * len(ids) / 50


def test_insert_writes_id_0_only_where_that_means_number_it() -> None:
    workload = load_workload("oltp_insert", {})
    numbered = record(workload, db=RecordingDb(has=Capabilities(null_for_auto=True)))
    assert numbered[0][0].endswith("(id, k, c, pad) VALUES (?, ?, ?, ?)")
    assert numbered[0][1][0] == 0
    left_out = record(workload, db=RecordingDb(has=Capabilities(null_for_auto=False)))
    assert left_out[0][0].endswith("(k, c, pad) VALUES (?, ?, ?)")


def test_client_made_ids_repeat_neither_between_terminals_nor_between_runs() -> None:
    workload = load_workload("oltp_insert", {"auto_inc": "off"})
    seen: set[int] = set()

    def answer(sql: str, params: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [(id,) for id in params if id in seen] if sql.startswith("SELECT") else []

    count = 0
    for terminals in (1, 3, 2):  # three runs with the same seed on the same table
        made: set[int] = set()
        for terminal in range(1, terminals + 1):
            db = RecordingDb(terminal=terminal, terminals=terminals, answer=answer)
            for _, params in record(workload, events=40, db=db):
                assert -(2**31) <= params[0] < 2**31
                made.add(params[0])
                count += 1
        seen |= made
    assert len(seen) == count == 240
    assert next(iter(workload.schema())).units == 0


def test_terminals_of_random_points_work_in_their_own_segments() -> None:
    workload = load_workload("select_random_points", {"table_size": 1_000})
    for terminal in (1, 2, 4):
        db = RecordingDb(terminal=terminal, terminals=4)
        values = [value for _, params in record(workload, events=50, db=db) for value in params]
        assert min(values) >= 250 * (terminal - 1)
        assert max(values) <= 250 * terminal


def test_random_ranges_are_delta_wide() -> None:
    workload = load_workload("select_random_ranges", {"number_of_ranges": 3, "delta": 8})
    ((sql, params),) = record(workload)
    assert sql.count("k BETWEEN ? AND ?") == 3
    assert [high - low for low, high in zip(params[::2], params[1::2], strict=True)] == [8, 8, 8]


@pytest.mark.parametrize("name", ["select_random_points", "select_random_ranges"])
def test_the_random_scripts_refuse_several_tables_as_sysbench_does(name: str) -> None:
    with pytest.raises(UsageError, match="works on one table"):
        load_workload(name, {"tables": 2})


def test_bulk_insert_fills_the_terminals_own_table_and_goes_on_after_the_last_row() -> None:
    workload = load_workload("bulk_insert", {"rows_per_insert": 3})
    db = RecordingDb(terminal=5, terminals=8, answer=lambda sql, params: [(40,)] if "MAX" in sql else [])
    sent = record(workload, events=2, db=db)
    assert {sql for sql, _ in sent} == {"INSERT INTO sbtest5 VALUES (?, ?)"}
    assert [row for _, row in sent] == [(n, n) for n in range(41, 47)]


def test_bulk_inserts_clean_up_knows_tables_that_runs_made_and_no_others() -> None:
    workload = load_workload("bulk_insert", {"threads": 2})
    existing = {
        "sbtest1": ["id", "k"], "sbtest3": ["id", "k"], "sbtest4": ["id", "k", "c", "pad"], "mine": ["id", "k"],
    }  # fmt: skip
    assert [table.name for table in workload.tables_of_runs(existing)] == ["sbtest3"]


def test_rows_have_sysbenchs_shape() -> None:
    workload = load_workload("oltp_read_write", {"table_size": 500})
    (table,) = workload.schema()
    assert table.rows is not None
    stream = workload.stream(1, "table:sbtest1", 0, 1)
    for unit in range(1, 501):
        stream.reseat(0, unit)
        ((id, k, c, pad),) = table.rows(stream, unit)
        assert id == unit
        assert 1 <= k <= 500
        assert re.fullmatch(r"(\d{11}-){9}\d{11}", c)
        assert re.fullmatch(r"(\d{11}-){4}\d{11}", pad)


def test_schema_options_reach_the_tables() -> None:
    (plain,) = load_workload("oltp_read_write", {}).schema()
    assert plain.columns[0].auto
    assert plain.key == ("id",)
    assert [(index.name, index.columns) for index in plain.indexes] == [("k_1", ("k",))]
    options = {"auto_inc": 0, "secondary": 1, "create_secondary": 0, "create_table_options": "X", "tables": 2}
    _, other = load_workload("oltp_read_write", {**options, "mysql_storage_engine": "myisam"}).schema()
    assert (other.name, other.key_index, other.indexes, other.suffix, other.engine) == (
        "sbtest2", "xid", (), "X", "myisam",
    )  # fmt: skip
    assert not other.columns[0].auto


def test_reconnect_is_passed_to_the_drive() -> None:
    assert load_workload("oltp_read_only", {"reconnect": 7}).reconnect_every == 7
    assert load_workload("oltp_read_only", {}).reconnect_every == 0
    assert load_workload("tpcb_like", {}).reconnect_every == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rand_pareto_h": 1}, "pareto_h"),
        ({"rand_type": "zipf"}, "zipfian"),
        ({"table_sise": 5}, "did you mean 'table_size'"),
        ({"tables": 0}, "at least 1"),
        ({"range_selects": "maybe"}, "on or off"),
        ({"pgsql_variant": "greenplum"}, "redshift"),
    ],
)
def test_wrong_options_are_refused_with_the_right_word(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_workload("oltp_read_write", options)


@pytest.mark.parametrize("name", OLTP)
def test_every_sysbench_script_takes_all_common_options_in_either_spelling(name: str) -> None:
    workload = load_workload(name, {"table-size": "20_000", "range-size": 5, "rand-type": "special"})
    assert (workload.options["table_size"], workload.options["range_size"]) == (20_000, 5)


def test_pgbench_rows_belong_to_their_branch() -> None:
    tables = {table.name: table for table in load_workload("tpcb_like", {"scale": 3}).schema()}
    assert [tables[f"pgbench_{name}"].units for name in ("branches", "tellers", "accounts", "history")] == [
        3, 30, 300_000, 0,
    ]  # fmt: skip
    accounts, tellers = tables["pgbench_accounts"], tables["pgbench_tellers"]
    assert accounts.rows is not None
    assert tellers.rows is not None
    assert [accounts.rows(None, i)[0][:3] for i in (1, 100_000, 100_001, 300_000)] == [  # type: ignore[index]
        (1, 1, 0), (100_000, 1, 0), (100_001, 2, 0), (300_000, 3, 0),
    ]  # fmt: skip
    assert [tellers.rows(None, i)[0][:3] for i in (10, 11, 30)] == [(10, 1, 0), (11, 2, 0), (30, 3, 0)]  # type: ignore[index]


def test_tpcb_like_books_the_same_delta_everywhere() -> None:
    sent = record(load_workload("tpcb_like", {"scale": 2}), events=20)
    for begin in range(0, len(sent), 7):
        event = sent[begin : begin + 7]
        (delta, aid), (read_aid,), (delta_2, tid), (delta_3, bid), booked = (params for _, params in event[1:6])
        assert delta == delta_2 == delta_3
        assert aid == read_aid
        assert booked == (tid, bid, aid, delta)
        assert -5_000 <= delta <= 5_000
        assert 1 <= aid <= 200_000
        assert 1 <= tid <= 20
        assert 1 <= bid <= 2


def test_only_reading_workloads_are_known_not_to_write() -> None:
    reading = {"oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges", "select_only"}
    for name in SYSBENCH + PGBENCH:
        assert writes(load_workload(name, {}), "event") == (name not in reading), name


def test_program_hashes_differ_between_workloads_and_options() -> None:
    programs = [load_workload(name, {}) for name in SYSBENCH + PGBENCH]
    programs.append(load_workload("oltp_read_write", {"range_size": 99}))
    assert len({program_hash(workload) for workload in programs}) == len(programs)
    assert program_hash(load_workload("oltp_delete", {})) == program_hash(load_workload("oltp_delete", {}))


@pytest.mark.parametrize("name", SYSBENCH + PGBENCH)
def test_every_workload_has_checks_with_an_explanation(name: str) -> None:
    workload: Workload = load_workload(name, {})
    assert checks(workload)
    for one in checks(workload):
        assert one.doc
        assert getattr(workload, one.method)(RecordingDb()).lstrip().startswith("SELECT")
