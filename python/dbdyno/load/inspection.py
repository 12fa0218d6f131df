"""What is in the database already: nothing, our data, half of it, somebody else's that fits, something else."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dbdyno.load import ledger
from dbdyno.load.failures import told
from dbdyno.load.ledger import LedgerEntry
from dbdyno.model.errors import RunError
from dbdyno.targets.family import Connection
from dbdyno.targets.target import Target
from dbdyno.workload import Table, Workload
from dbdyno.workload.options import declared

#: States of a table and of a workload's data, the most serious first.
OTHER, SHORT, PARTIAL, ABSENT, COMPLETE = "other", "short", "partial", "absent", "complete"
_ORDER = (OTHER, SHORT, PARTIAL, ABSENT, COMPLETE)


@dataclass(frozen=True, slots=True)
class TableState:
    """One table as found. ``found`` is a clause about it: ``"sbtest1 has 500 rows, 10,000 are needed"``."""

    table: Table
    kind: str
    found: str
    rows: int | None = None  # counted, where that was needed
    entry: LedgerEntry | None = None  # None: dbdyno did not make it
    alien: bool = False  # it has other columns


@dataclass(frozen=True, slots=True)
class DataState:
    """The data of a workload as found.

    ``kind``: ``complete`` (a run may begin; ``foreign`` = tables of another tool that fit), ``absent`` (tables
    are missing), ``partial`` (our own prepare did not finish), ``short`` (too few rows), ``other`` (tables
    with other columns, or our tables with other data options).
    """

    kind: str
    tables: tuple[TableState, ...]
    remedy: str  # what to do about it, as a clause with the command

    @property
    def foreign(self) -> bool:
        """Complete, but not made by dbdyno."""
        return self.kind == COMPLETE and any(state.entry is None for state in self.tables)

    @property
    def found(self) -> str:
        """What was found, as clauses of the tables that decide ``kind``."""
        telling = [state for state in self.tables if state.kind == self.kind]
        if self.kind == ABSENT and len(telling) > 1:
            names = [state.table.name for state in telling]
            listed = ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:3])} … {names[-1]}"
            return f"the tables {listed} do not exist"
        clauses = "; ".join(state.found for state in telling[:3])
        return clauses + (f"; and so on for {len(telling) - 3} more" if len(telling) > 3 else "")

    @property
    def sentence(self) -> str:
        """``found`` and what to do."""
        return f"{self.found}; {self.remedy}" if self.remedy else self.found


@contextmanager
def connected(target: Target) -> Iterator[Connection]:
    """A connection to the database of the load, closed at the end."""
    connection = target.connect()
    try:
        yield connection
    finally:
        connection.close()


def command(verb: str, target: Target, workload: Workload) -> str:
    """``dbdyno VERB WORKLOAD TARGET --opt …`` with every option that decides what is loaded."""
    defaults = declared(type(workload))
    words = ["dbdyno", verb, workload.reference, str(target.address)]
    for name, value in ledger.data_options(workload).items():
        if value != defaults[name][0].default:
            words += ["--opt", f"{name}={_word(value)}"]
    return shlex.join(words)


def _word(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def inspect(target: Target, workload: Workload, *, seed: int | None = None) -> DataState:
    """Look at every table of the workload.

    ``seed``: data made with another seed count as other data; None = any seed will do.

    Raises:
        RunError: no connection, or the tables cannot be read.
    """
    with connected(target) as connection, told(target, f"look at the data of {workload.label}"):
        existing = target.family.existing_tables(connection)
        entries = ledger.read(connection) if ledger.NAME in existing else {}
        states = tuple(
            _table_state(connection, workload, table, existing.get(table.name.lower()), entries.get(table.name), seed)
            for table in workload.schema()
        )
    kind = min((state.kind for state in states), key=_ORDER.index, default=COMPLETE)
    alien = any(state.alien for state in states)
    return DataState(kind, states, _remedy(kind, alien, target, workload))


def require(target: Target, workload: Workload) -> DataState:
    """The state when a run may begin.

    Raises:
        RunError: it may not; the sentence says why and what to do.
    """
    state = inspect(target, workload)
    if state.kind != COMPLETE:
        raise RunError(f"{workload.label} cannot run on {target.label}: {state.sentence}")
    return state


def _table_state(
    connection: Connection,
    workload: Workload,
    table: Table,
    columns: list[str] | None,
    entry: LedgerEntry | None,
    seed: int | None,
) -> TableState:
    name = table.name
    if columns is None:
        return TableState(table, ABSENT, f"table {name} does not exist")
    if entry is not None and not entry.finished:
        return TableState(table, PARTIAL, f"loading of {name} begun at {entry.begun_at} did not finish", entry=entry)
    wanted = [column.name.lower() for column in table.columns]
    if set(columns) != set(wanted):
        whose = f"was prepared for {entry.workload}" if entry else f"is not one of {workload.label}"
        found = f"table {name} {whose}: it has the columns {', '.join(columns)} instead of {', '.join(wanted)}"
        return TableState(table, OTHER, found, entry=entry, alien=True)
    if entry is not None and (difference := _difference(workload, table, entry, seed)):
        return TableState(table, OTHER, difference, entry=entry)
    rows = None
    if table.needed_rows > 0:
        rows = int(connection.fetch(f"SELECT COUNT(*) FROM {name}")[0][0])
        if rows < table.needed_rows:
            found = f"table {name} has {rows:,} rows, {table.needed_rows:,} are needed"
            return TableState(table, SHORT, found, rows, entry)
    by = f"prepared for {entry.workload} at {entry.begun_at}" if entry else "made by another program"
    return TableState(table, COMPLETE, f"table {name} is complete ({by})", rows, entry)


def _difference(workload: Workload, table: Table, entry: LedgerEntry, seed: int | None) -> str:
    """Why ``entry`` is not the data that ``workload`` would load, or ""."""
    parts = []
    if ledger.fingerprint(table, entry.seed) != entry.fingerprint:
        asked = ledger.data_options(workload)
        parts = [
            f"{name} = {_word(entry.options[name])} (asked: {_word(asked[name])})"
            for name in asked
            if name in entry.options and entry.options[name] != asked[name] and _matters(workload, table, entry, name)
        ]
        if not parts:
            parts = ["another definition of the table"]
    if seed not in (None, entry.seed):
        parts.append(f"seed = {entry.seed} (asked: {seed})")
    if not parts:
        return ""
    return f"table {table.name} holds other data, prepared for {entry.workload} with {', '.join(parts)}"


def _matters(workload: Workload, table: Table, entry: LedgerEntry, name: str) -> bool:
    """Whether this table would be another one with the option as in ``entry``."""
    variant = type(workload)({**workload.options, name: entry.options[name]})
    same_name = [other for other in variant.schema() if other.name == table.name]
    return not same_name or ledger.fingerprint(same_name[0], 1) != ledger.fingerprint(table, 1)


def _remedy(kind: str, alien: bool, target: Target, workload: Workload) -> str:
    prepare = command("prepare", target, workload)
    if kind in (ABSENT, PARTIAL):
        return f"run: {prepare}"
    if alien:
        return "use another database, or drop that table first"
    if kind == SHORT:
        return f"run {command('cleanup', target, workload)} and then {prepare}, or set a smaller size"
    if kind == OTHER:
        return f"use another database, or the same options, or run {command('cleanup', target, workload)} first"
    return ""
