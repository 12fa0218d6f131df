"""Random programs of the workload language do the same compiled as called: statements, values, errors and their
lines, state; also with a retryable error at any statement."""

from __future__ import annotations

import hashlib
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.language.lives import Answer, Told, assert_same, first_life, second_life
from tests.language.writer import program

from dbdyno.model.errors import UsageError
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


def _parted_by_design(one: Told, other: Told) -> bool:
    """Whether the machine refused something that Python does."""
    own = any(end[0] == "error" and (end[1] in BY_DESIGN or _own_rule(end)) for end in other.ends)
    return own and [end[:3] for end in one.ends] != [end[:3] for end in other.ends]


def _own_rule(end: tuple[Any, ...]) -> bool:
    """Whether the machine refused what Python would do: it says what to write instead."""
    sentence = end[3]
    refusals = (" here", "decimals have no", "as the value of a parameter", "db.state keeps")
    return any(refusal in sentence for refusal in refusals)


CAPABILITIES = [
    Capabilities(),
    Capabilities(multi_row_insert=False, pipeline=True, for_update=False),
    Capabilities(max_parameters=4),
]


def live_twice(workload: Any, seed: int, fail_at: int | None) -> int:
    """Compare both lives of a program; how many statements it sent."""
    capabilities = CAPABILITIES[seed % len(CAPABILITIES)]
    one = first_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed, fail_at=fail_at)
    try:
        other = second_life(workload, capabilities, answers(seed), transactions_each=3, seed=seed, fail_at=fail_at)
    except UsageError as refused:
        if " in an f-string: " not in str(refused):
            raise
        return 0  # a constant in a format that does not take it: told before the run, not in it
    print(f"error at {fail_at}: {one.ends}\n{other.ends}")
    if not _parted_by_design(one, other):
        assert_same(one, other)
    return len(one.sent)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(draw=st.randoms(use_true_random=False), seed=st.integers(0, 5), where=st.integers(0, 30))
def test_random_program_lives_twice(folder: Path, draw: random.Random, seed: int, where: int) -> None:
    source = program(draw)
    print(source)
    workload = written(folder, source)
    sent = live_twice(workload, seed, None)
    if sent:
        live_twice(workload, seed, where % sent)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_same_programs_live_twice_everywhere(folder: Path) -> None:
    sent = 0
    for seed in range(300):
        workload = written(folder, program(random.Random(seed)))
        sent += live_twice(workload, seed, None)
        sent += live_twice(workload, seed, random.Random(seed).randint(1, 12))
    assert sent > 3000
