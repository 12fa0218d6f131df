"""Filling tables: ranges of units, dealt to worker threads, each range one transaction."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dbdyno.load.failures import from_driver, told
from dbdyno.model.errors import DbdynoError, RunError
from dbdyno.targets.family import Capabilities, Connection, ErrorClass
from dbdyno.targets.target import Target
from dbdyno.workload import Table, Workload, marks
from dbdyno.workload.batch import multi_row, packets

#: Units of a range: enough for a few packets, few enough that progress moves and a retry is cheap.
_LEAST_UNITS, _MOST_UNITS, _RANGES = 1_000, 20_000, 50
_TRIES, _PAUSE_S = 6, 0.2

Loaded = Callable[[Table, int, int], None]  # (table, units, rows) of a range that is committed


@dataclass(frozen=True, slots=True)
class Range:
    """Units ``first`` to ``last`` (inclusive) of a table."""

    table: Table
    first: int
    last: int


def ranges_of(table: Table) -> Iterator[Range]:
    """The table's units, cut into ranges."""
    size = min(max(table.units // _RANGES, _LEAST_UNITS), _MOST_UNITS)
    for first in range(1, table.units + 1, size):
        yield Range(table, first, min(first + size - 1, table.units))


def rows_of(workload: Workload, part: Range, seed: int) -> Iterator[Sequence[Any]]:
    """The rows of a range. ``rand.at(table, unit)`` elsewhere gives a unit's values again."""
    assert part.table.rows is not None
    stream = workload.stream(seed, f"table:{part.table.name}", 0, part.first)
    width = len(part.table.filled)
    for unit in range(part.first, part.last + 1):
        stream.reseat(0, unit)
        for row in part.table.rows(stream, unit):
            if len(row) != width:
                raise RunError(
                    f"the row function of table {part.table.name} gave {len(row)} values for unit {unit};"
                    f" the columns {', '.join(part.table.filled)} need {width}"
                )
            yield row


def fill(
    target: Target,
    workload: Workload,
    tables: Sequence[Table],
    *,
    seed: int,
    workers: int,
    capabilities: Capabilities,
    loaded: Loaded,
) -> None:
    """Load the rows of all ``tables``; ``loaded`` is called for every committed range, one call at a time.

    Raises:
        RunError: a range failed for good; the others are given up.
    """
    parts: queue.SimpleQueue[Range] = queue.SimpleQueue()
    count = 0
    for table in tables:
        if table.rows is not None:
            for part in ranges_of(table):
                parts.put(part)
                count += 1
    if not count:
        return
    crew = _Crew(target, workload, seed, capabilities, parts, loaded)
    crew.work(1 if not capabilities.concurrent_writers else max(1, min(workers, count)))


class _Crew:
    def __init__(
        self,
        target: Target,
        workload: Workload,
        seed: int,
        capabilities: Capabilities,
        parts: queue.SimpleQueue[Range],
        loaded: Loaded,
    ) -> None:
        self.target, self.workload, self.seed = target, workload, seed
        self.capabilities, self.parts, self.loaded = capabilities, parts, loaded
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self.connections: list[Connection] = []

    def work(self, workers: int) -> None:
        """Run to the end; on Ctrl-C cancel what runs and pass it on."""
        threads = [
            threading.Thread(target=self._run, args=(number,), name=f"load-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
        except BaseException:
            self.stop.set()
            with self.lock:
                for connection in self.connections:
                    connection.cancel()
            for thread in threads:
                thread.join(5.0)
            raise
        if self.failure is not None:
            raise self.failure

    def _run(self, number: int) -> None:
        try:
            connection = self.target.connect(number)
            with self.lock:
                self.connections.append(connection)
            try:
                while not self.stop.is_set():
                    try:
                        part = self.parts.get_nowait()
                    except queue.Empty:
                        return
                    rows = self._range(connection, part)
                    with self.lock:
                        self.loaded(part.table, part.last - part.first + 1, rows)
            finally:
                with self.lock:
                    self.connections.remove(connection)
                with suppress(Exception):  # closing alone can leave locks while a traceback holds the statement
                    connection.rollback()
                connection.close()
        except BaseException as error:
            if self.failure is None and not self.stop.is_set():
                self.failure = error
            self.stop.set()

    def _range(self, connection: Connection, part: Range) -> int:
        """One range in one transaction; a deadlock or the like repeats it."""
        doing = f"load units {part.first:,} to {part.last:,} of table {part.table.name}"
        for attempt in range(1, _TRIES + 1):
            try:
                return self._insert(connection, part)
            except DbdynoError:
                raise
            except Exception as error:
                if not from_driver(error):
                    raise RunError(
                        f"the row function of table {part.table.name} failed: {type(error).__name__}: {error}"
                    ) from error
                retryable = self.target.family.classify(error).kind is ErrorClass.RETRYABLE
                with told(self.target, doing):
                    if not retryable or attempt == _TRIES or self.stop.is_set():
                        raise
                    connection.rollback()
                time.sleep(_PAUSE_S * attempt)
        raise AssertionError("unreachable")

    def _insert(self, connection: Connection, part: Range) -> int:
        columns = part.table.filled
        quote = self.target.family.dialect.quote
        sql = f"INSERT INTO {quote(part.table.name)} ({', '.join(map(quote, columns))}) VALUES ({marks(len(columns))})"
        rows = rows_of(self.workload, part, self.seed)
        count = 0
        connection.begin(True)
        if self.capabilities.multi_row_insert and not self.capabilities.in_process:
            for packet in packets(rows, self.capabilities.max_parameters):
                connection.execute(multi_row(sql, len(packet)), [value for row in packet for value in row])
                count += len(packet)
        else:
            listed = list(rows)
            connection.execute_many(sql, listed)
            count = len(listed)
        connection.commit()
        return count
