"""The workload language: ``Workload``, ``@transaction``, ``@check``, ``Rollback`` (language.md, first life)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from dbdyno._engine import Distribution, Stream
from dbdyno.model.errors import UsageError
from dbdyno.workload.options import declared, resolve
from dbdyno.workload.table import Table

F = TypeVar("F", bound=Callable[..., Any])


class Rollback(Exception):
    """Raised by a transaction that wants to be rolled back: counted as rolled back, never retried."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One kind of transaction of a workload. ``weight`` may be a number or a method name of the workload."""

    name: str
    method: str
    weight: float
    keying_s: float
    think_s: float


@dataclass(frozen=True, slots=True)
class Check:
    """A statement about the data. ``method(self, db)`` returns SQL whose rows are the violations."""

    name: str
    method: str
    doc: str


@dataclass(frozen=True, slots=True)
class State:
    """A declared per-terminal value of ``db.state``; its default is what every terminal begins with."""

    default: Any


def transaction(function: F | None = None, *, weight: float = 1.0, keying_s: float = 0.0, think_s: float = 0.0) -> Any:
    """Mark a method as a transaction. ``weight`` is relative; keying and think times are the drive's to wait."""

    def mark(method: F) -> F:
        method.__dbdyno_transaction__ = (weight, keying_s, think_s)  # type: ignore[attr-defined]
        return method

    return mark if function is None else mark(function)


def check(name: str) -> Callable[[F], F]:
    """Mark a method ``(self, db) -> SQL`` as a check of the data, named by the clause it comes from."""

    def mark(method: F) -> F:
        method.__dbdyno_check__ = name  # type: ignore[attr-defined]
        return method

    return mark


def state(default: Any) -> Any:
    """Declare a per-terminal value: ``next_id = state(0)`` is ``db.state.next_id`` in a transaction."""
    return State(default)


class Workload:
    """Base of every workload: options as class attributes, ``tables()``, transactions, checks."""

    name: ClassVar[str] = ""
    #: options whose value changes the loaded rows; ``prepare`` and ``check`` compare them
    data_options: ClassVar[tuple[str, ...]] = ("tables", "table_size")
    #: close and reopen a terminal's connection after that many transactions; 0 = never
    reconnect_every: int = 0

    def __init__(self, options: Mapping[str, Any] | None = None, *, name: str = "") -> None:
        self.label = name or self.name or type(self).__name__
        self.reference = self.label  # the word that names it on a command line: a shipped name or ./file.py
        self.options: dict[str, Any] = resolve(type(self), options or {}, self.label)
        for key, value in self.options.items():
            setattr(self, key, value)
        self.validate()

    def validate(self) -> None:
        """Refuse combinations of options that make no sense (raise UsageError)."""

    def schema(self) -> Iterable[Table]:
        """The tables, in an order in which they can be created and filled."""
        return ()

    def tables_of_runs(self, existing: Mapping[str, Iterable[str]]) -> Iterable[Table]:
        """Tables that runs made beyond ``schema()``, among the ``existing`` ones (name to columns): clean-up
        drops them too."""
        return ()

    def distribution(self) -> Distribution | None:
        """How ``rand.pick`` draws; None = uniform."""
        return None

    def session_setup(self, db: Any) -> Iterable[str]:
        """Statements that each connection runs once after it opened."""
        return ()

    def weight_of(self, transaction: Transaction) -> float:
        """The weight of a transaction kind; override when options set it."""
        return transaction.weight

    @property
    def has_start(self) -> bool:
        """Whether terminals have something to do once before their first transaction."""
        return callable(getattr(self, "start", None))

    def stream(self, seed: int, purpose: str, terminal: int, number: int) -> Stream:
        """The random stream of one purpose, terminal and transaction number of this workload."""
        return Stream(seed, purpose, terminal, number, self.distribution())


def transactions(workload: Workload | type[Workload]) -> list[Transaction]:
    """Transactions of a workload with a weight above zero, in the order written, bases first.

    Raises:
        UsageError: there is none.
    """
    cls = workload if isinstance(workload, type) else type(workload)
    found: dict[str, Transaction] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            mark = getattr(member, "__dbdyno_transaction__", None)
            if mark is not None:
                found[name] = Transaction(name, name, *mark)
            elif name in found:  # overridden without the mark: no longer a transaction
                del found[name]
    if not isinstance(workload, type):
        weighed = {name: workload.weight_of(kind) for name, kind in found.items()}
        found = {
            name: Transaction(name, kind.method, weighed[name], kind.keying_s, kind.think_s)
            for name, kind in found.items()
            if weighed[name] > 0
        }
    if not found:
        raise UsageError(f"workload {cls.__name__} has no transaction; mark one of its methods @transaction")
    return list(found.values())


def checks(workload: Workload) -> list[Check]:
    """Checks of a workload in the order written."""
    found: dict[str, Check] = {}
    for base in reversed(type(workload).__mro__):
        for name, member in vars(base).items():
            label = getattr(member, "__dbdyno_check__", None)
            if label is not None:
                found[name] = Check(label, name, " ".join((member.__doc__ or "").split()))
    return list(found.values())


def states(workload: Workload) -> dict[str, Any]:
    """Declared per-terminal values and their defaults."""
    return {
        name: member.default
        for base in reversed(type(workload).__mro__)
        for name, member in vars(base).items()
        if isinstance(member, State)
    }


def option_help(cls: type[Workload]) -> list[tuple[str, str, Any, str]]:
    """(name, type, default, help) of every option, for ``--help`` and the documentation."""
    return [(name, kind.__name__, entry.default, entry.help) for name, (entry, kind) in declared(cls).items()]
