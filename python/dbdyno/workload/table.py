"""Tables as a workload describes them: columns in abstract types that each database's dialect renders."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Type:
    """A column type. ``name`` is one of int, bigint, smallint, float, decimal, char, varchar, text, timestamp.

    ``length`` in characters; ``precision`` and ``scale`` in decimal digits.
    """

    name: str
    length: int = 0
    precision: int = 0
    scale: int = 0


INT = Type("int")
BIGINT = Type("bigint")
SMALLINT = Type("smallint")
FLOAT = Type("float")
TEXT = Type("text")
TIMESTAMP = Type("timestamp")  # microseconds, UTC


def char(length: int) -> Type:
    """CHAR(length); read without trailing blanks."""
    return Type("char", length)


def varchar(length: int) -> Type:
    """VARCHAR(length)."""
    return Type("varchar", length)


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale)."""
    return Type("decimal", precision=precision, scale=scale)


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``auto`` = the server numbers it. ``default`` is a Python value, rendered as a literal."""

    name: str
    type: Type
    null: bool = False
    default: Any = None
    auto: bool = False
    binary: bool = False  # compared by code point: columns that a transaction orders by


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index, made after the rows are in."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` refer to ``references(referenced)``."""

    name: str
    columns: tuple[str, ...]
    references: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table and how its rows are made.

    ``rows(rand, i)`` yields the rows of unit ``i`` in [1, ``units``] as tuples in the order of ``fill``
    (default: all columns); a unit may yield any number of rows. ``rand`` is the stream of that unit:
    ``rand.at(name, i)`` elsewhere gives the same values. Ranges, resuming and progress count units.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    units: int = 0
    rows: Callable[[Any, int], Iterable[tuple[Any, ...]]] | None = None
    fill: tuple[str, ...] = ()
    key_index: str = ""  # not "": the key is a plain index of that name (sysbench --secondary)
    partition: str = ""  # column to partition by, where the capability exists
    suffix: str = ""  # appended to CREATE TABLE verbatim (sysbench --create_table_options)
    engine: str = ""  # storage engine, where there is a choice
    needed: int | None = None  # fewest rows that a run needs; None = one for each unit

    @property
    def needed_rows(self) -> int:
        """A table with fewer rows than that is not what this workload can run on."""
        return self.units if self.needed is None else self.needed

    @property
    def filled(self) -> tuple[str, ...]:
        """Names of the columns that the row function gives, in its order."""
        return self.fill or tuple(column.name for column in self.columns)
