"""What is wrong with a plan's values, in sentences: pydantic's errors, with what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from dbdyno.model.errors import nearest
from dbdyno.model.plan import Plan, PlanHooks, PlanTarget, PlanWorkload


class Problem(NamedTuple):
    """One thing that is wrong: ``target.0.url`` and a sentence about it."""

    key: str
    sentence: str


_TABLES: Mapping[str, type[BaseModel]] = {"target": PlanTarget, "workload": PlanWorkload, "hooks": PlanHooks}
_EXAMPLES = {
    "name": 'write name = "…"',
    "connections": "write for example connections = [1, 4, 16]",
    "target": "add a [[target]] with a name and a url",
    "workload": "add a [[workload]] with a name",
    "ignore_errors": 'write for example ignore_errors = ["1062"]',
}
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number of at most 18 digits",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "dict_type": "a table of KEY = VALUE",
    "model_type": "a table",
}


_DURATIONS = ("duration", "warmup", "interval", "pause")


def toml_keys(model: type[BaseModel]) -> list[str]:
    """The keys of a table of the plan, as the file has them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def value_problems(error: ValidationError) -> list[Problem]:
    """Every wrong value, once for each key. What contradicts something else is not among them."""
    found: dict[str, Problem] = {}
    for entry in error.errors(include_url=False):
        where = _key_path(entry["loc"])
        if where:
            key = ".".join(map(str, where))
            found.setdefault(key, Problem(key, _sentence(where, entry)))
    return list(found.values())


def _key_path(location: Sequence[int | str]) -> tuple[int | str, ...]:
    """The location without what pydantic adds for members of a union, and without positions in plain lists."""
    if not location:
        return ()
    if location[0] in ("target", "workload"):
        depth = 4 if len(location) > 2 and location[2] == "options" else 3
    else:
        depth = 2 if location[0] == "hooks" else 1
    return tuple(location[:depth])


def _sentence(where: tuple[int | str, ...], entry: Any) -> str:
    kind, value, context = entry["type"], entry["input"], entry.get("ctx", {})
    last = str(where[-1])
    if kind == "missing":
        return f"missing; {_EXAMPLES.get(last, 'it must be there')}"
    if kind == "extra_forbidden":
        return f"unknown key{nearest(last, toml_keys(_table_of(where)))}"
    if len(where) == 4:  # an option's value, whatever member of the union refused it
        return f"{_shown(value)} is not a text, a number, true or false"
    if last in ("target", "workload") and kind in ("tuple_type", "list_type"):
        return f"must be a list of tables; write [[{last}]]"
    if kind in ("too_short", "tuple_type", "list_type"):
        return f"{'is empty' if kind == 'too_short' else _shown(value) + ' is not a list'}; {_EXAMPLES[last]}"
    if kind == "string_too_short":
        return f"is empty; {_EXAMPLES.get(last, 'write a name')}"
    if kind == "string_pattern_mismatch":
        return f"{_shown(value)} is not a name; letters, digits and _ . + @ # : - are allowed, at most 64, no blanks"
    if kind == "literal_error":
        return f"{_shown(value)} is unknown{nearest(str(value), _literals(where))}"
    if kind == "value_error":
        return str(context["error"])
    bound = _bound(last, kind, value, context)
    return bound or f"{_shown(value)} is not {_KINDS.get(kind, 'right: ' + entry['msg'])}"


def _bound(last: str, kind: str, value: Any, context: Mapping[str, Any]) -> str:
    words = {
        "greater_than_equal": ("small", "at least", "ge"),
        "greater_than": ("small", "more than", "gt"),
        "less_than_equal": ("large", "at most", "le"),
        "less_than": ("large", "less than", "lt"),
    }.get(kind)
    if words is None:
        return ""
    unit = " s" if last in _DURATIONS else ""
    return f"{_shown(value)} is too {words[0]}; it must be {words[1]} {_number(context[words[2]])}{unit}"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _table_of(where: tuple[int | str, ...]) -> type[BaseModel]:
    return _TABLES.get(str(where[0]), Plan) if len(where) > 1 else Plan


def _literals(where: tuple[int | str, ...]) -> list[str]:
    """The words that a field of the plan takes."""
    name = str(where[-1])
    field = next(field for key, field in _table_of(where).model_fields.items() if name in (key, field.alias))
    members = get_args(field.annotation)
    words = [word for member in members for word in (get_args(member) or (member,))]
    return [word for word in words if isinstance(word, str)]


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else re.sub(r"\s+", " ", repr(value))
    return text if len(text) <= 60 else f"{text[:57]}…"
