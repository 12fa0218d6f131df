"""Every shipped workload does the same compiled as called, whatever its options and the target."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from tests.language.lives import Answer, assert_same, first_life, second_life

from dbdyno.targets.family import Capabilities
from dbdyno.workload.source import load_workload, shipped

#: Option sets tried beside the defaults, for workloads that have these options.
OPTIONS: list[dict[str, Any]] = [
    {},
    {"tables": 7, "table_size": 1000, "range_size": 5, "rand_type": "special"},
    {"skip_trx": True, "range_selects": False, "auto_inc": False},
    {"tables": 3, "rand_type": "zipfian", "delete_inserts": 2, "simple_ranges": 0, "pgsql_variant": "redshift"},
    {"rows_per_insert": 7, "scale": 3, "random_points": 1, "number_of_ranges": 40, "delta": 0},
]
TARGETS = {
    "plain": Capabilities(),
    "one row at a time": Capabilities(multi_row_insert=False, for_update=False),
    "pipelined": Capabilities(multi_row_insert=False, pipeline=True, null_for_auto=True),
    "few parameters": Capabilities(max_parameters=6, returning=True, skip_locked=True),
}


def answers(seed: int) -> Answer:
    """Rows of many types, a function of the statement's place; queries become empty in the end."""

    def answer(sql: str, params: tuple[Any, ...], position: int) -> Any:
        draw = random.Random(f"{seed} {sql} {params} {position}")
        if sql.lstrip()[:6].upper() != "SELECT":
            return draw.randint(0, 3)
        columns = sql.partition(" FROM ")[0].count(",") + 1
        rows = draw.choice([0, 1, 1, 3]) if position % 7 else 0
        if "MAX(" in sql or "SUM(" in sql:
            rows = 1
        kinds: list[Any] = [draw.randint(-5, 5), "text", Decimal("12.50"), None, 1.5]
        return [tuple(draw.choice(kinds[:1] if "id" in sql else kinds) for _ in range(columns)) for _ in range(rows)]

    return answer


def with_options(name: str, options: dict[str, Any]) -> Any:
    """The workload with those of the options that it has."""
    known = load_workload(name, {}).options
    wanted = {key: value for key, value in options.items() if key in known}
    if wanted.get("tables", 1) != 1 and name.startswith("select_random"):
        wanted["tables"] = 1
    return load_workload(name, wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", shipped())
def test_compiled_workload_sends_what_its_functions_send(name: str, target: str) -> None:
    for number, options in enumerate(OPTIONS):
        workload = with_options(name, options)
        many = getattr(workload, "rows_per_insert", 0) > 100
        times = 1 if many else 15 if number else 60
        one = first_life(workload, TARGETS[target], answers(number), transactions_each=times)
        other = second_life(workload, TARGETS[target], answers(number), transactions_each=times)
        assert_same(one, other)
        assert one.sent


@pytest.mark.parametrize("name", shipped())
def test_a_retry_after_an_error_at_any_statement_sends_the_same(name: str) -> None:
    workload = with_options(name, {"rows_per_insert": 5, "auto_inc": False, "tables": 3})
    capabilities = Capabilities(max_parameters=4)
    statements = len(first_life(workload, capabilities, answers(1), transactions_each=2).sent)
    begun = 0 if not workload.has_start else len(_start_only(workload, capabilities))
    for position in range(begun, statements):
        one = first_life(workload, capabilities, answers(1), transactions_each=2, fail_at=position)
        other = second_life(workload, capabilities, answers(1), transactions_each=2, fail_at=position)
        assert_same(one, other)
        assert len(one.sent) > statements


def _start_only(workload: Any, capabilities: Capabilities) -> list[Any]:
    return first_life(workload, capabilities, answers(1), transactions_each=0).sent
