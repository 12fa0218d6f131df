"""Random programs of the workload language do the same compiled as called: statements, values, errors and their
lines, state; also with a retryable error at any statement."""

from __future__ import annotations

import hashlib
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from tests.language.lives import Answer, Told, assert_same, first_life, second_life

from dbdyno.targets.family import Capabilities
from dbdyno.workload.source import workload_class

#: Where the lives differ by design (language.md): beyond 64 bits, limits of size, and what has no order here.
BY_DESIGN = ("LimitError", "OverflowError")


def answers(seed: int) -> Answer:
    def answer(sql: str, params: tuple[Any, ...], position: int) -> Any:
        draw = random.Random(f"{seed} {sql} {position}")
        if not sql.startswith("SELECT"):
            return draw.randint(0, 3)
        columns = sql.partition(" FROM ")[0].count(",") + 1
        kinds: list[Any] = [draw.randint(-5, 5), "text", Decimal("12.50"), None, 1.5, "é", b"\x00\xff", True]
        rows = draw.choice([0, 1, 1, 1, 2]) if "b, c FROM t WHERE" in sql else draw.choice([0, 1, 1, 1, 1, 2])
        return [(draw.randint(0, 9), *(draw.choice(kinds) for _ in range(columns - 1)))[:columns] for _ in range(rows)]

    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


def written(folder: Path, source: str) -> Any:
    """An instance of the workload in ``source``."""
    path = folder / f"written_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"
    path.write_text(source, encoding="utf-8")
    return workload_class(f"{path}:Written")({})


def compared(one: Told, other: Told) -> None:
    differs = [end for end in other.ends if end[0] == "error" and (end[1] in BY_DESIGN or _own_rule(end))]
    if differs and [end[:3] for end in one.ends] != [end[:3] for end in other.ends]:
        assume(False)
    assert_same(one, other)


def _own_rule(end: tuple[Any, ...]) -> bool:
    """Whether the machine refused what Python would do: it says what to write instead."""
    sentence = end[3]
    return " here" in sentence or "decimals have no" in sentence or "as the value of a parameter" in sentence


CAPABILITIES = st.sampled_from(
    [
        Capabilities(),
        Capabilities(multi_row_insert=False, pipeline=True, for_update=False),
        Capabilities(max_parameters=4),
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False), seed=st.integers(0, 5), capabilities=CAPABILITIES, data=st.data())
def test_random_program_lives_twice(
    folder: Path, source: str, seed: int, capabilities: Capabilities, data: st.DataObject
) -> None:
    note(source)
    workload = written(folder, source)
    one = first_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed)
    other = second_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed)
    note(f"{one.ends}\n{other.ends}")
    compared(one, other)
    position = data.draw(st.integers(1, max(1, len(one.sent) - 1)))
    one = first_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed, fail_at=position)
    other = second_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed, fail_at=position)
    note(f"error at {position}: {one.ends}\n{other.ends}")
    compared(one, other)
