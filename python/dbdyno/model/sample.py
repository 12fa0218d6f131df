"""What a drive reports: counts, generator health, one sample an interval, one outcome a trial.

The accounting identity (language.md; pgbench defines its counts by such an equation too):

    scheduled = committed + rolled_back + failed + unknown + skipped + unfinished

A transaction belongs to the measured interval if its *intended start* lies in it, whenever it ends; those
still open at the end are given five seconds to finish, then cancelled and counted as unfinished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EMPTY_ERRORS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one interval or one trial. All are numbers of transactions unless named otherwise."""

    scheduled: int = 0
    committed: int = 0
    rolled_back: int = 0  # by the transaction's own wish (raise Rollback); never retried
    failed: int = 0  # given up: tries used up or an ignored error
    unknown: int = 0  # connection lost after COMMIT was sent
    skipped: int = 0  # due but deliberately not started
    unfinished: int = 0  # cancelled at the end
    retries: int = 0  # attempts after the first
    reconnects: int = 0  # connections reopened
    reads: int = 0  # statements answered, by sysbench's kinds: SELECT
    writes: int = 0  # INSERT, UPDATE, DELETE, REPLACE, MERGE
    others: int = 0  # BEGIN, COMMIT, ROLLBACK and the rest
    rows: int = 0  # rows fetched

    @property
    def queries(self) -> int:
        """Statements of all kinds."""
        return self.reads + self.writes + self.others

    @property
    def ended(self) -> int:
        """The right side of the accounting identity."""
        return self.committed + self.rolled_back + self.failed + self.unknown + self.skipped + self.unfinished

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Health:
    """The generator's own state in one interval or trial: was the client the bottleneck?"""

    cpu_s: float  # CPU of this process, user and system
    cpu_share: float  # of one core, in [0, cores]; the DB-API drive cannot use more than one
    cpu_us_per_query: float
    loop_busy: float | None = None  # share of time the event loop worked, in [0, 1]; None without one
    lag_p99_ns: int = 0  # actual start after intended start
    bound: bool = False  # see architecture.md: the client was (or may have been) the bottleneck
    why: str = ""  # one clause for the report: "the client used 97 % of a core"


@dataclass(frozen=True, slots=True)
class KindFigures:
    """One transaction kind (``new_order``, ``event`` …): counts and its response-time histogram."""

    counts: Counts
    response: bytes  # HdrHistogram V2, ns


@dataclass(frozen=True, slots=True)
class Sample:
    """One interval of one trial, by time of ending. ``second`` 0 is where measuring begins (warm-up is negative)."""

    second: float  # start of the interval
    seconds: float  # its length
    counts: Counts
    errors: Mapping[str, int]  # code: count, every attempt that failed
    response: bytes  # HdrHistogram V2 of committed transactions, from the intended start, ns
    service: bytes  # the same from the actual start
    health: Health
    connected: int  # connections open at the interval's end
    kinds: Mapping[str, KindFigures] = field(default_factory=dict)  # every tenth second, since the last


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without any usable connection, or one connection's time away, in seconds of the trial."""

    connection: int
    begin: float
    end: float
    code: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to. ``state``: ``done``, ``failed`` (with ``reason``) or ``interrupted``."""

    state: str
    reason: str
    seconds: float  # measured interval, as elapsed
    counts: Counts
    errors: Mapping[str, int]
    response: bytes
    service: bytes
    lag: bytes  # intended to actual start
    health: Health
    kinds: Mapping[str, KindFigures]
    outages: tuple[Outage, ...] = ()
    rate: float | None = None  # asked arrivals per second (open loop)
    drive: str = ""  # which drive ran it, and which driver: "dbapi psycopg 3.2.1"
    program: str = ""  # sha256 of the workload's source
    notes: tuple[str, ...] = ()

    @property
    def tps(self) -> float:
        """Committed transactions per second; failed ones are in no throughput."""
        return self.counts.committed / self.seconds if self.seconds > 0 else 0.0

    @property
    def qps(self) -> float:
        """Statements answered per second."""
        return self.counts.queries / self.seconds if self.seconds > 0 else 0.0
