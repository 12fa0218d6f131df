"""``prepare`` and ``ensure``: tables, rows, indexes, foreign keys, statistics; what is there already is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from dbdyno.load import ledger
from dbdyno.load.failures import told
from dbdyno.load.inspection import COMPLETE, OTHER, PARTIAL, SHORT, DataState, connected, inspect
from dbdyno.load.rows import fill
from dbdyno.model.errors import RunError
from dbdyno.targets.family import Capabilities, Connection
from dbdyno.targets.target import Target
from dbdyno.workload import Table, Workload


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is. ``units`` are what row functions count in (for most tables a unit is a row)."""

    phase: str  # "rows", "indexes", "statistics"
    table: str  # the table last worked on
    units: int
    total_units: int
    rows: int
    seconds: float

    @property
    def share(self) -> float:
        """Units done, in [0, 1]."""
        return self.units / self.total_units if self.total_units else 1.0


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What ``prepare`` did. ``loaded`` names the tables it made (none: everything was there)."""

    loaded: tuple[str, ...]
    rows: int
    seconds: float
    sentence: str

    @property
    def already_there(self) -> bool:
        """Whether there was nothing to do."""
        return not self.loaded


def prepare(
    target: Target,
    workload: Workload,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> LoadReport:
    """Make and fill the workload's tables, unless they are there with the same data.

    An unfinished load of our own is dropped and begun anew. ``workers`` = connections that insert at once.

    Raises:
        RunError: the tables hold other data, are not ours, or a statement failed.
    """
    return _prepare(target, workload, inspect(target, workload, seed=seed), seed, workers, progress)


def ensure(
    target: Target,
    workload: Workload,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> LoadReport:
    """What a campaign does before a trial: as ``prepare``, but data made with another seed will do.

    Raises:
        RunError: as ``prepare``.
    """
    return _prepare(target, workload, inspect(target, workload), seed, workers, progress)


def _prepare(
    target: Target,
    workload: Workload,
    state: DataState,
    seed: int,
    workers: int,
    progress: Callable[[Progress], None] | None,
) -> LoadReport:
    if state.kind in (OTHER, SHORT):
        raise RunError(f"cannot prepare {workload.label} on {target.label}: {state.sentence}")
    missing = [found.table for found in state.tables if found.kind != COMPLETE]
    if not missing:
        return LoadReport((), 0, 0.0, _already(target, workload, state))
    begun = time.monotonic()
    report = _Reporting(missing, begun, progress)
    with connected(target) as connection:
        with told(target, f"create the tables of {workload.label}"):
            capabilities = target.family.capabilities(target.family.identify(connection))
            _create(target, connection, workload, state, missing, seed)
        fill(target, workload, missing, seed=seed, workers=workers, capabilities=capabilities, loaded=report.loaded)
        _finish(target, connection, missing, workers, capabilities, report)
        with told(target, "note that the load is finished"):
            ledger.finish(connection, report.rows)
    rows = sum(report.rows.values())
    seconds = time.monotonic() - begun
    names = tuple(table.name for table in missing)
    sentence = f"loaded {rows:,} rows into {len(names)} table{'s' * (len(names) != 1)} on {target.label}"
    return LoadReport(names, rows, seconds, sentence)


def _create(
    target: Target,
    connection: Connection,
    workload: Workload,
    state: DataState,
    missing: Sequence[Table],
    seed: int,
) -> None:
    dialect = target.family.dialect
    statements = [text for table in missing for text in dialect.create_table(table)]  # may refuse a table
    partial = [found.table.name for found in state.tables if found.kind == PARTIAL]
    for name in reversed(partial):
        connection.execute(dialect.drop_table(name))
    exists = ledger.NAME in target.family.existing_tables(connection)
    ledger.begin(target, connection, workload, missing, seed, exists)
    for statement in statements:
        connection.execute(statement)


def _finish(
    target: Target,
    connection: Connection,
    tables: Sequence[Table],
    workers: int,
    capabilities: Capabilities,
    report: _Reporting,
) -> None:
    dialect = target.family.dialect

    def index(table: Table, own: Connection) -> None:
        for one in table.indexes:
            report.show("indexes", table.name)
            with told(target, f"create index {one.name} on {table.name}"):
                own.execute(dialect.create_index(table, one))

    def index_alone(table: Table) -> None:
        with connected(target) as own:
            index(table, own)

    if workers > 1 and capabilities.concurrent_writers and len(tables) > 1:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(index_alone, tables))
    else:
        for table in tables:
            index(table, connection)
    if capabilities.foreign_keys:
        for table in tables:
            with told(target, f"add the foreign keys of {table.name}"):
                for statement in dialect.add_foreign_keys(table):
                    connection.execute(statement)
    report.show("statistics", tables[-1].name)
    with told(target, "gather statistics"):
        for statement in dialect.after_load(tables):
            connection.execute(statement)


class _Reporting:
    """Counts what is loaded and tells the caller."""

    def __init__(self, tables: Sequence[Table], begun: float, tell: Callable[[Progress], None] | None) -> None:
        self.rows = {table.name: 0 for table in tables}
        self._units = 0
        self._total = sum(table.units for table in tables if table.rows is not None)
        self._begun = begun
        self._tell = tell

    def loaded(self, table: Table, units: int, rows: int) -> None:
        self.rows[table.name] += rows
        self._units += units
        self.show("rows", table.name)

    def show(self, phase: str, table: str) -> None:
        if self._tell is not None:
            seconds = time.monotonic() - self._begun
            self._tell(Progress(phase, table, self._units, self._total, sum(self.rows.values()), seconds))


def _already(target: Target, workload: Workload, state: DataState) -> str:
    count = len(state.tables)
    what = f"the {count} tables" if count != 1 else "the table"
    if state.foreign:
        return f"{what} of {workload.label} on {target.label} came from another program and fit; kept"
    return f"{what} of {workload.label} on {target.label}: complete already; kept"
