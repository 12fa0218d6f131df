"""What a database family's folder must provide. Everything else in dbdyno sees databases only through this.

A family is one folder under ``targets/`` with the same file names as its siblings, and ``FAMILY`` in its
``__init__``. Capabilities are data. The compliance suite (tests/compliance) runs on every family unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Protocol

from dbdyno.model.finding import Finding, Need
from dbdyno.targets.url import Address, Endpoint
from dbdyno.workload.table import Index, Table


class ErrorClass(Enum):
    """What a database error means for the run (sysbench, pgbench and go-tpc know the first three)."""

    RETRYABLE = "retryable"  # deadlock, serialization failure, lock time-out: ROLLBACK and again
    IGNORABLE = "ignorable"  # this transaction fails, the run goes on (duplicate key, …)
    LOST = "lost"  # the connection is gone: reopen
    FATAL = "fatal"  # the run makes no sense any more (missing table, syntax, no privilege)


@dataclass(frozen=True, slots=True)
class DbError:
    """A driver's exception, understood. ``code`` is the family's own ("1213", "40P01", "SQLITE_BUSY")."""

    code: str
    kind: ErrorClass
    message: str  # one line, without credentials


@dataclass(frozen=True, slots=True)
class Version:
    """What the server says it is. ``flavour`` is told by what only that product has; unknown = plain family."""

    family: str
    flavour: str  # e.g. the product's name in lower case
    number: tuple[int, ...]
    text: str  # as the server wrote it
    comment: str = ""

    def __str__(self) -> str:
        return f"{self.flavour} {'.'.join(map(str, self.number))}"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server can do, as data. Workloads ask for these as ``db.has.NAME``."""

    for_update: bool = True  # SELECT … FOR UPDATE locks rows
    skip_locked: bool = False
    returning: bool = False  # INSERT/DELETE/UPDATE … RETURNING
    pipeline: bool = False  # several statements in flight on one connection (through our driver)
    multi_row_insert: bool = True
    concurrent_writers: bool = True  # False: one write transaction at a time in the whole database
    isolation: tuple[str, ...] = ("read uncommitted", "read committed", "repeatable read", "serializable")
    foreign_keys: bool = True
    foreign_keys_with_partitions: bool = True
    partitions: bool = False  # PARTITION BY HASH
    tablegroups: bool = False
    storage_engines: bool = False  # CREATE TABLE … ENGINE = …
    auto_increment: bool = True
    null_for_auto: bool = False  # id 0 in an INSERT means: number it (sysbench inserts 0)
    in_process: bool = False  # the database runs inside our own process
    server_counters: bool = True
    kill_query: bool = True  # a running statement can be cancelled from another connection
    max_parameters: int = 65_535  # in one statement


@dataclass(frozen=True, slots=True)
class Facts:
    """A server as found, kept with every trial."""

    version: Version
    settings: Mapping[str, str]  # every server variable
    durability: Mapping[str, str]  # the settings that decide what COMMIT means
    durable_commit: bool | None  # COMMIT waits for stable storage; None = cannot be told
    database_bytes: int | None
    isolation: str  # default of new sessions
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wire:
    """What the load engine must know to speak to a server by itself, without a driver."""

    protocol: Literal["mysql", "postgresql"]
    endpoints: tuple[Endpoint, ...]  # with the files of unix sockets
    begin: str  # what opens a transaction
    errors: Mapping[str, ErrorClass]  # by code; what is not there is fatal
    lost_code: str  # what a connection that broke without a word is counted under
    error_prefixes: Mapping[str, ErrorClass] = field(default_factory=dict)  # by the code's first two characters
    stale: Mapping[str, str] = field(default_factory=dict)  # code: text in its message; prepare anew and retry
    sentences: Mapping[str, str] = field(default_factory=dict)  # code: what it means, put before its message
    parameters: Mapping[str, str] = field(default_factory=dict)  # of the session, sent with the login
    setup: tuple[str, ...] = ()  # statements that every connection runs once
    cancel: str = ""  # the statement that cancels a connection's, before its number; "": the protocol's own way


class Connection(Protocol):
    """One open connection in autocommit, used by one thread (but ``cancel``). Driver exceptions pass through."""

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a statement; ``?`` marks. CHAR comes without trailing blanks."""

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Rows matched by a statement that returns none."""

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """One statement for each row, pipelined where the driver can. Rows matched in all."""

    def begin(self, write: bool) -> None:
        """Open a transaction; ``write`` says that it may write."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as far as client or server know without a round trip."""

    def pipeline(self) -> AbstractContextManager[None]:
        """Statements inside are sent without waiting; does nothing where the family cannot."""

    def cancel(self) -> None:
        """From another thread: cancel the running statement, or cut the connection where that is impossible."""

    def close(self) -> None: ...


class Dialect(Protocol):
    """SQL that differs between families."""

    for_update: str  # "FOR UPDATE" or ""

    def quote(self, name: str) -> str:
        """An identifier, quoted if it must be."""

    def literal(self, value: Any) -> str:
        """A Python value as SQL text."""

    def create_table(self, table: Table) -> list[str]:
        """Statements that make the table with its primary key, without secondary indexes."""

    def create_index(self, table: Table, index: Index) -> str: ...

    def add_foreign_keys(self, table: Table) -> list[str]: ...

    def drop_table(self, name: str) -> str:
        """Drop if it exists."""

    def after_load(self, tables: Iterable[Table]) -> list[str]:
        """Sequences set past the loaded ids, ANALYZE."""


class Family(Protocol):
    """A database family. ``FAMILY`` in each folder is an object of this shape."""

    name: str
    schemes: tuple[str, ...]
    default_port: int
    dialect: Dialect
    driver: str  # DB-API driver with its version, for the record

    def parse(self, url: str) -> Address:
        """A URL of this family (most call :func:`dbdyno.targets.url.parse_address`)."""

    def password_from_file(self, address: Address, home: Path) -> str | None:
        """The password that the family's own file in ``home`` has for this address."""

    def connect(
        self,
        address: Address,
        endpoint: int = 0,
        *,
        isolation: str | None = None,
        timeout_s: float = 10.0,
        control: bool = False,
    ) -> Connection:
        """Open a connection to endpoint number ``endpoint``. ``control`` = not part of the load: names itself
        so, and where server counters are per database it may use another one.

        Raises:
            RunError: refused, no such database, wrong password … in one sentence, without the password.
        """

    def wire(self, address: Address, isolation: str | None) -> Wire | None:
        """How the load engine speaks to it; None where it cannot, and a Python driver carries the load.

        Raises:
            UsageError: an isolation level that the family does not have.
        """

    def refused(self, address: Address, endpoint: int, code: str, message: str, timeout_s: float) -> str:
        """The sentence for a login of the load engine that the server refused with that code and message."""

    def classify(self, error: BaseException) -> DbError:
        """Understand a driver's exception; anything unknown is FATAL."""

    def identify(self, connection: Connection) -> Version: ...

    def capabilities(self, version: Version) -> Capabilities: ...

    def facts(self, connection: Connection, address: Address) -> Facts: ...

    def existing_tables(self, connection: Connection) -> dict[str, list[str]]:
        """Tables of the database: name to column names, lower case."""

    def counters(self, connection: Connection, address: Address) -> dict[str, int]:
        """The server's own counters of statements: begin, commit, rollback, select, insert, update, delete,
        and others the family has; {} where it has none. Monotone since the server's start."""

    def max_connections(self, connection: Connection) -> int | None: ...

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]:
        """What of this server's limits and settings would spoil a run with that need. Reads settings and status
        only, in a few hundredths of a second."""
