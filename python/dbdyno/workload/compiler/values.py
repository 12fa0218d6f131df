"""What an expression is at compile time: a constant, a register, or something that only exists here."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import FunctionType
from typing import Any

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
LIST_LIMIT = 10_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Const:
    """A Python object known at compile time: an option, a module's constant, a literal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Register:
    """A value in that register."""

    index: int


@dataclass(frozen=True, slots=True)
class SqlText:
    """An SQL text: a number of the program's texts, a register that holds one, or a place where the statement
    itself makes one; ``parameters`` where known."""

    id: int | None = None
    register: int | None = None
    template: int | None = None
    parameters: int | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """``marks(n)`` with an ``n`` known only at run time; only a hole of an SQL text takes it."""

    count: Register


@dataclass(frozen=True, slots=True)
class Db:
    """``db``."""


@dataclass(frozen=True, slots=True)
class DbState:
    """``db.state``."""


@dataclass(frozen=True, slots=True)
class DbHas:
    """``db.has``."""


@dataclass(frozen=True, slots=True)
class Stream:
    """``rand`` (slot 0) or a stream made by ``rand.at``."""

    slot: int


@dataclass(frozen=True, slots=True)
class Method:
    """A method of ``db``, of a stream or of a list, before it is called."""

    owner: Db | Stream | Register | Const
    name: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of ``self``: the function, and the workload as its first argument."""

    function: FunctionType | Callable[..., Any]
    owner: Const


@dataclass(frozen=True, slots=True)
class Super:
    """``super()`` in a method of ``cls``."""

    cls: type


Value = Const | Register | SqlText | Marks | Db | DbState | DbHas | Stream | Method | Bound | Super


class NotInLanguage(ValueError):
    """A Python object that no register can hold; the text says why."""


def encode(value: Any) -> Any:
    """A constant as the program's JSON has it.

    Raises:
        NotInLanguage: its type or size is not in the language.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise NotInLanguage(f"{value} goes beyond 64 bits")
        return int(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotInLanguage("a string with half a surrogate pair") from None
        return str(value)
    if isinstance(value, float):
        return {"float": int.from_bytes(_bits(value), "big")}
    if isinstance(value, Decimal):
        if not value.is_finite() or len(value.as_tuple().digits) > 28 or abs(value.adjusted()) > 28:
            raise NotInLanguage(f"the decimal {value} has more than 28 digits")
        return {"decimal": str(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return {"timestamp": (aware - _EPOCH) // timedelta(microseconds=1)}
    if isinstance(value, (tuple, list)):
        if len(value) > LIST_LIMIT:
            raise NotInLanguage(f"a list of {len(value)} elements; at most {LIST_LIMIT} are allowed")
        return {"tuple" if isinstance(value, tuple) else "list": [encode(item) for item in value]}
    raise NotInLanguage(f"a {type(value).__name__}")


def _bits(value: float) -> bytes:
    return struct.pack(">d", value)


def foldable(value: Any) -> bool:
    """Whether operators on this constant may be evaluated by the compiler."""
    return value is None or isinstance(value, (bool, int, float, str, bytes, Decimal, datetime, timedelta, tuple))
