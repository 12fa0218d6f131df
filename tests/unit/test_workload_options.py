"""Options of workloads: what is taken, what is refused and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.model.errors import UsageError
from dbdyno.workload import Workload, option
from dbdyno.workload.language import option_help


class Base(Workload):
    size: int = option(10, "size of it", ge=1, le=100)
    ratio: float = option(0.5, "ratio of it", ge=0)
    fast: bool = option(False, "speed")


class Derived(Base):
    mode: str = option("plain", "mode of it", choices=("plain", "fancy"))
    size: int = option(20, "another size", ge=1)


def test_a_derived_class_has_its_bases_options_and_may_replace_them() -> None:
    workload = Derived()
    assert workload.options == {"size": 20, "ratio": 0.5, "fast": False, "mode": "plain"}
    assert (workload.size, workload.mode) == (20, "plain")
    assert Base().size == 10


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"size": "7"}, "size", 7),
        ({"size": "1_0"}, "size", 10),
        ({"size": 7.0}, "size", 7),
        ({"ratio": "1e-3"}, "ratio", 0.001),
        ({"ratio": 2}, "ratio", 2.0),
        ({"fast": "on"}, "fast", True),
        ({"fast": "OFF"}, "fast", False),
        ({"fast": 1}, "fast", True),
        ({"fast": True}, "fast", True),
        ({"mode": "fancy"}, "mode", "fancy"),
    ],
)
def test_texts_and_plan_values_become_the_declared_type(given: dict[str, Any], name: str, value: Any) -> None:
    got = getattr(Derived(given), name)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"size": "many"}, "size = 'many' is not a whole number"),
        ({"size": 1.5}, "not a whole number"),
        ({"size": True}, "not a whole number"),
        ({"size": None}, "not a whole number"),
        ({"size": 0}, "size = 0 is too small; it must be at least 1"),
        ({"size": "101"}, "size = 101 is too large; it must be at most 100"),
        ({"ratio": "-1"}, "too small"),
        ({"ratio": "nan"}, "not a number"),
        ({"ratio": "inf"}, "not a number"),
        ({"fast": "perhaps"}, "fast = 'perhaps' is not on or off"),
        ({"fats": "on"}, "has no option 'fats'; did you mean 'fast'"),
        ({"zzz": 1}, "allowed: fast, ratio, size"),
    ],
)
def test_a_wrong_value_is_one_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        Base(given)
    assert "\n" not in str(refused.value)


def test_a_wrong_choice_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'fancy'"):
        Derived({"mode": "fanzy"})


def test_the_same_option_in_both_spellings_is_refused() -> None:
    class Long(Workload):
        table_size: int = option(1, "rows")

    with pytest.raises(UsageError, match="given twice"):
        Long({"table-size": 1, "table_size": 2})


def test_help_lists_every_option_with_type_and_default() -> None:
    assert option_help(Derived)[0] == ("size", "int", 20, "another size")
    assert [row[0] for row in option_help(Derived)] == ["size", "ratio", "fast", "mode"]
