"""A long transaction with decimals, lines and a rollback does the same compiled as called."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.language.lives import assert_same, first_life, second_life

from dbdyno.targets.family import Capabilities
from dbdyno.workload.source import workload_class

FILE = Path(__file__).with_name("order_entry.py")
ITEMS = 1000


def answer(sql: str, params: tuple[Any, ...], position: int) -> Any:
    draw = random.Random(f"{sql} {params} {position}")
    if not sql.startswith("SELECT"):
        return 1
    if "FROM item" in sql:
        price = Decimal(draw.randint(100, 10_000)).scaleb(-2)
        return [] if params[0] > ITEMS else [(price, "name", draw.choice(["an ORIGINAL item", "item"]))]
    if "FROM stock WHERE" in sql:
        return [(draw.randint(10, 100), draw.choice(["ORIGINAL", "stock"]), "district")]
    if "FROM stock" in sql:
        return [(draw.randint(1, 20),) for _ in range(draw.randint(0, 30))]
    if "customer WHERE c_w" in sql:
        return [(Decimal("0.1234"), "LAST", "GC")]
    if "FROM customer" in sql:
        return [(draw.randint(1, 3000), "first") for _ in range(draw.randint(0, 4))]
    if "w_tax" in sql:
        return [(Decimal("0.0512"),)]
    if "FROM district" in sql:
        return [(draw.randint(1, 3000), Decimal("0.0899"))]
    return [(1,)]


@pytest.mark.parametrize("fail_at", [None, 1, 5, 20, 33])
@pytest.mark.parametrize("capabilities", [Capabilities(), Capabilities(pipeline=True, max_parameters=50)])
def test_order_entry_lives_twice(capabilities: Capabilities, fail_at: int | None) -> None:
    workload = workload_class(str(FILE))({"items": ITEMS})
    one = first_life(workload, capabilities, answer, transactions_each=200, fail_at=fail_at)
    other = second_life(workload, capabilities, answer, transactions_each=200, fail_at=fail_at)
    assert_same(one, other)
    assert ("rolled back",) in one.ends
    assert any("s_dist_10" in sent[1] for sent in one.sent if len(sent) > 1)
