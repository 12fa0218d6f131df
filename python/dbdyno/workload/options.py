"""Options of a workload: typed class attributes with bounds and help.

    tables: int = option(1, "number of tables", ge=1)

The value on the instance is a plain Python value of the annotated type (bool, int, float or str).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from dbdyno.model.errors import UsageError, nearest

_TRUE = {"on", "true", "yes", "1"}
_FALSE = {"off", "false", "no", "0"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: default, help, bounds (inclusive) or the allowed words."""

    default: Any
    help: str
    ge: float | None = None
    le: float | None = None
    choices: tuple[str, ...] = ()

    def parse(self, name: str, kind: type, value: Any) -> Any:
        """``value`` (text from a command line, or a typed value from a plan) as ``kind``, checked.

        Raises:
            UsageError: wrong type, outside the bounds, not among the choices.
        """
        parsed = _convert(name, kind, value)
        if self.choices and parsed not in self.choices:
            raise UsageError(f"option {name} = {value!r} is unknown{nearest(str(value), self.choices)}")
        if self.ge is not None and parsed < self.ge:
            raise UsageError(f"option {name} = {value} is too small; it must be at least {self.ge}")
        if self.le is not None and parsed > self.le:
            raise UsageError(f"option {name} = {value} is too large; it must be at most {self.le}")
        return parsed


def option(
    default: Any,
    help: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare an option of a workload class; the annotation gives its type."""
    return Option(default, help, ge, le, choices)


def _convert(name: str, kind: type, value: Any) -> Any:
    wrong = UsageError(f"option {name} = {value!r} is not {_words(kind)}")
    if kind is bool:
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise wrong
    if kind is str:
        if isinstance(value, (bool, float, int)):
            return str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, str):
            return value
        raise wrong
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong
    try:
        if kind is int:
            if isinstance(value, float) and not value.is_integer():
                raise wrong
            return int(str(value).replace("_", "")) if isinstance(value, str) else int(value)
        number = kind(value)
        if not math.isfinite(number):
            raise wrong
        return number
    except ValueError:
        raise wrong from None


def _words(kind: type) -> str:
    words = {bool: "on or off", int: "a whole number", float: "a number", str: "a text"}
    return words.get(kind, kind.__name__)


def declared(cls: type) -> dict[str, tuple[Option, type]]:
    """Every option of ``cls`` and its bases, bases first, in the order written."""
    found: dict[str, tuple[Option, type]] = {}
    for base in reversed(cls.__mro__):
        mine = {name: value for name, value in vars(base).items() if isinstance(value, Option)}
        if mine:
            hints = get_type_hints(base)
            for name, value in mine.items():
                found[name] = (value, hints.get(name, type(value.default)))
    return found


def resolve(cls: type, given: Mapping[str, Any], workload: str) -> dict[str, Any]:
    """Values of all options of ``cls``: the given ones parsed, the rest at their defaults.

    Names may be written with ``-`` for ``_``, as sysbench allows.

    Raises:
        UsageError: an unknown option (with the nearest name) or a wrong value.
    """
    options = declared(cls)
    values = {name: entry.default for name, (entry, _) in options.items()}
    seen: set[str] = set()
    for raw, value in given.items():
        name = raw.replace("-", "_")
        if name not in options:
            raise UsageError(f"workload {workload} has no option {raw!r}{nearest(name, options)}")
        if name in seen:
            raise UsageError(f"option {name} of workload {workload} is given twice")
        seen.add(name)
        entry, kind = options[name]
        values[name] = entry.parse(name, kind, value)
    return values
