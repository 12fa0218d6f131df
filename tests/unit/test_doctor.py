"""What ``doctor`` says of servers that cannot be had here, from their documented variables; statements counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.fake import FakeServer

from dbdyno._engine import Program
from dbdyno.campaign.doctor import spoilers
from dbdyno.drive.statements import Texts, count_texts
from dbdyno.model.finding import Finding, Need, Verdict
from dbdyno.targets.family import Capabilities
from dbdyno.targets.registry import family_of_scheme
from dbdyno.targets.target import open_target
from dbdyno.workload.compiler import compile_workload
from dbdyno.workload.source import load_workload


class Answers:
    """A server's variables and status, as SHOW has them."""

    def __init__(self, variables: dict[str, str], status: dict[str, str]) -> None:
        self._variables, self._status = variables, status

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if sql == "SHOW GLOBAL VARIABLES":
            return list(self._variables.items())
        if sql.startswith("SHOW GLOBAL STATUS LIKE"):
            name = sql.split("'")[1]
            return [(name, self._status[name])] if name in self._status else []
        return []


def findings(scheme: str, variables: dict[str, str], need: Need, status: dict[str, str] | None = None) -> list[Finding]:
    family = family_of_scheme(scheme)
    address = family.parse(f"{scheme}://u@127.0.0.1/db")
    return family.examine(Answers(variables, status or {}), address, need)  # type: ignore[arg-type]


MYSQL_5_7 = {
    "version": "5.7.44-log",
    "version_comment": "MySQL Community Server (GPL)",
    "max_connections": "151",
    "max_prepared_stmt_count": "16382",
    "query_cache_type": "ON",
    "query_cache_size": "1048576",
    "open_files_limit": "5000",
    "table_open_cache": "2000",
    "table_open_cache_instances": "16",
    "table_definition_cache": "1400",
    "innodb_buffer_pool_size": "134217728",
    "innodb_log_file_size": "50331648",
    "innodb_log_files_in_group": "2",
    "super_read_only": "ON",
    "read_only": "ON",
}


def test_a_query_cache_of_mysql_5_7_and_a_replica_are_found() -> None:
    found = {each.name: each for each in findings("mysql", MYSQL_5_7, Need(64, 4, 36, writes=True))}
    bad = {name for name, each in found.items() if each.verdict is Verdict.BAD}
    assert bad == {"query cache", "read-only server"}
    assert found["redo log"].found == "innodb_log_file_size = 96.0 MiB"
    assert found["redo log"].verdict is Verdict.WARN
    reading = {each.name: each for each in findings("mysql", MYSQL_5_7, Need(64, 4, 36, writes=False))}
    assert reading["read-only server"].verdict is Verdict.INFO
    assert reading["redo log"].verdict is Verdict.OK


def test_more_statements_than_a_server_can_ever_hold_have_no_command() -> None:
    need = Need(1_000, 400, 3_600)
    found = {each.name: each for each in findings("mysql", MYSQL_5_7, need, {"Prepared_stmt_count": "10"})}
    assert found["prepared statements"].verdict is Verdict.BAD
    assert found["prepared statements"].mend is None
    assert "fewer tables or connections" in found["prepared statements"].why
    newer = {**MYSQL_5_7, "version": "8.0.36"}
    mend = {each.name: each for each in findings("mysql", newer, need)}["prepared statements"].mend
    assert mend is not None
    assert mend.command == "SET GLOBAL max_prepared_stmt_count = 3960000;"


def test_connections_of_others_count() -> None:
    for used, verdict in ((1, Verdict.OK), (87, Verdict.WARN), (100, Verdict.BAD)):
        found = findings("mysql", MYSQL_5_7, Need(64), {"Threads_connected": str(used)})
        assert found[0].verdict is verdict, found[0]


def test_a_small_table_cache_is_told_with_its_parts() -> None:
    found = {each.name: each for each in findings("mysql", MYSQL_5_7, Need(64, 200, 1_800))}
    assert found["table cache"].verdict is Verdict.WARN
    assert found["table cache"].needed == "3,264: 200 tables, 64 connections"


def test_tidb_has_no_statement_limit_by_default_but_a_log_and_a_plan_cache() -> None:
    variables = {
        "version": "8.0.11-TiDB-v7.5.1",
        "max_connections": "0",
        "max_prepared_stmt_count": "-1",
        "tidb_general_log": "ON",
        "tidb_enable_prepared_plan_cache": "OFF",
    }
    found = {each.name: each for each in findings("tidb", variables, Need(64, 4, 36))}
    assert {name: each.verdict.value for name, each in found.items()} == {
        "connections": "ok",
        "statement logs": "bad",
        "plan cache": "warn",
    }
    assert found["statement logs"].mend is not None
    assert found["statement logs"].mend.command == "SET GLOBAL tidb_general_log = OFF;"


def test_a_server_whose_answers_are_not_understood_is_run_all_the_same() -> None:
    rules = [
        {
            "match": "SHOW GLOBAL STATUS",
            "columns": [{"name": "Variable_name", "type": "text"}, {"name": "Value", "type": "text"}],
            "rows": [["Threads_connected", "many"]],
        }
    ]
    with FakeServer("mysql", rules=rules) as server:
        target = open_target(f"mysql://u@127.0.0.1:{server.port}/db")
        notes = spoilers(target, Capabilities(), [load_workload("oltp_point_select", {})], 4)
    assert notes == ["not examined before the run, as an answer was not understood (ValueError)"]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("oltp_read_write", {"tables": 1}, Texts(9, exact=True)),
        ("oltp_read_write", {"tables": 4}, Texts(36, exact=True)),
        # Too many for a short look: an upper bound from the names of the tables.
        ("oltp_read_write", {"tables": 250}, Texts(2_250, exact=False)),
        ("tpcb_like", {}, Texts(5, exact=True)),
    ],
)
def test_the_statements_of_a_connection_are_counted_without_a_server(
    name: str, options: dict[str, Any], expected: Texts
) -> None:
    workload = load_workload(name, options)
    program = Program(compile_workload(workload, Capabilities(), "FOR UPDATE", 64).data)
    assert count_texts(program, [table.name for table in workload.schema()]) == expected
