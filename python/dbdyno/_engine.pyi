"""The compiled part of dbdyno: random streams, arrival schedules, histograms.

The load engine uses the same code, so a transaction called from Python and the same transaction run by
the engine draw the same values and are measured alike.
"""

from typing import Any, ClassVar, Literal, TypedDict, final, type_check_only

__all__ = [
    "Arrivals", "Distribution", "EngineError", "Histogram", "Program", "ProgramError", "ProgramTerminal", "Run",
    "Span", "Stream", "engine_version", "serve_fake",
]  # fmt: skip

@final
class Distribution:
    """How `Stream.pick` spreads values over a range; names, options and defaults are sysbench's.

    uniform, gaussian, special and pareto are those of sysbench 1.0.20, zipfian that of 1.1
    (rejection-inversion, Hörmann and Derflinger 1996). Equal when kind and options are equal.

    - `spec_iter`: uniform values averaged by gaussian and special, 1 to 10000.
    - `spec_pct`: width of the special band in per cent of the range, 0 to 100.
    - `spec_res`: per cent of the values that fall in the special band, 0 to 100.
    - `pareto_h`: shape of pareto, above 0 and below 1.
    - `zipfian_exp`: exponent of zipfian, at least 0.

    Raises ValueError for an unknown kind or an option out of range, also one that the kind does not use.
    """

    def __new__(
        cls,
        kind: str,
        *,
        spec_iter: int = 12,
        spec_pct: int = 1,
        spec_res: int = 75,
        pareto_h: float = 0.2,
        zipfian_exp: float = 0.8,
    ) -> Distribution: ...
    @property
    def kind(self) -> str:
        """The name it was made with."""
    @property
    def parameters(self) -> dict[str, Any]:
        """The options it was made with, by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Stream:
    """The random values of one transaction for one purpose.

    Counter-based: Philox4x64-10 (Salmon et al. 2011) with key (seed, FNV-1a of the purpose) and counter
    (block, transaction, terminal, 0). A value depends on seed, purpose, terminal, transaction and its
    position in the stream, and on nothing else: not on time, connection, attempt or number of generators.

    `seed`, `terminal` and `transaction` are 0 to 2**64 - 1, otherwise ValueError. `pick` draws by
    `distribution`, uniform when it is None.
    """

    def __new__(
        cls,
        seed: int,
        purpose: str,
        terminal: int,
        transaction: int,
        distribution: Distribution | None = None,
    ) -> Stream: ...
    def reseat(self, terminal: int, transaction: int) -> None:
        """Move to the first value of another transaction of the same seed, purpose and distribution."""
    def rewind(self) -> None:
        """Go back to the first value: a retry repeats its parameters."""
    def uniform(self, a: int, b: int) -> int:
        """An integer in a..b, both included, without bias. 64-bit signed ends; ValueError when a > b."""
    def pick(self, a: int, b: int) -> int:
        """An integer in a..b, both included, by the distribution. ValueError when a > b."""
    def real(self) -> float:
        """Uniform in [0, 1), a multiple of 2**-53."""
    def chance(self, p: float) -> bool:
        """True with probability `p`. ValueError unless 0 <= p <= 1. Draws one value whatever p is."""
    def exponential(self, mean: float) -> float:
        """Exponentially distributed, in the unit of `mean`. ValueError unless it is finite and >= 0."""
    def nurand(self, A: int, x: int, y: int, C: int) -> int:
        """NURand(A, x, y) with constant C, in x..y (TPC-C clause 2.1.6).

        ValueError unless 0 <= A, 0 <= x <= y, 0 <= C.
        """
    def text(self, lo: int, hi: int, alphabet: str) -> str:
        """`lo` to `hi` characters (length uniform), each uniform over `alphabet`.

        ValueError for an empty alphabet or unless 0 <= lo <= hi <= 16777215.
        """
    def template(self, pattern: str) -> str:
        """`pattern` with a digit for each '#' and a letter a to z for each '@' (sysbench's sb_rand_str)."""
    def permute(self, n: int, i: int) -> int:
        """Where `i` goes in a bijection of 0..n-1 that depends on seed and purpose only; draws no value.

        A Feistel network walked along its cycle: constant memory for any n. ValueError unless 0 <= i < n.
        """
    def at(self, table: str, unit: int) -> Stream:
        """The stream that a unit of a table uses: Stream(seed, "table:" + table, 0, unit, distribution)."""

@final
class Arrivals:
    """When the transactions of an open loop are meant to start, whatever the server does.

    kind "poisson": independent exponential gaps; "even": equal gaps from 0 on. A function of the arguments
    only. ValueError unless 0 < rate_per_s <= 1e9 and the kind is one of the two.
    """

    def __new__(cls, seed: int, rate_per_s: float, kind: Literal["poisson", "even"] = "poisson") -> Arrivals: ...
    def next_ns(self) -> int:
        """The next intended start in ns since the begin; never before the one handed out last."""

@final
class Histogram:
    """An HdrHistogram of durations in ns: 100 ns to one hour, three significant digits.

    Values are kept within 0.1 %, below 64 µs within 64 ns. A duration above one hour is recorded at one
    hour and counted in `saturated`. Equal when all buckets and `saturated` are equal.
    """

    LOWEST_NS: ClassVar[int]
    HIGHEST_NS: ClassVar[int]

    def __new__(cls) -> Histogram: ...
    def record(self, ns: int) -> None:
        """Count one duration. ValueError when it is negative."""
    def record_n(self, ns: int, n: int) -> None:
        """Count `n` durations of the same length. ValueError when either is negative."""
    def merge(self, other: Histogram) -> None:
        """Add all counts of `other`, saturated ones included."""
    def reset(self) -> None:
        """Forget everything."""
    def copy(self) -> Histogram:
        """An independent histogram with the same counts."""
    @property
    def count(self) -> int:
        """Number of durations, saturated ones included."""
    @property
    def saturated(self) -> int:
        """Number of durations above one hour."""
    @property
    def min(self) -> int:
        """Shortest duration in ns, rounded down to its bucket; 0 when empty."""
    @property
    def max(self) -> int:
        """Longest duration in ns, rounded up to its bucket, at most one hour; 0 when empty."""
    @property
    def mean(self) -> float:
        """Mean in ns from the middles of the buckets; 0.0 when empty."""
    @property
    def stddev(self) -> float:
        """Standard deviation in ns (of the population) from the middles of the buckets; 0.0 when empty."""
    def percentile(self, p: float) -> int:
        """The least bucket bound in ns that p per cent of the durations do not exceed; 0 when empty.

        p = 0 gives `min`. ValueError unless 0 <= p <= 100.
        """
    def buckets(self) -> list[tuple[int, int]]:
        """The buckets that hold something, ascending: (upper bound in ns, count)."""
    def encode(self) -> bytes:
        """The standard HdrHistogram V2 encoding, deflate-compressed. `saturated` is not part of it."""
    @staticmethod
    def decode(data: bytes) -> Histogram:
        """The histogram of a V2 encoding, compressed or not; `saturated` is 0.

        An encoding made with other bounds or digits is counted again into these, each of its buckets at its
        upper bound (above one hour: saturated). ValueError for anything else.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@type_check_only
class TransactionKind(TypedDict):
    """One kind of transaction of a program; `upto` is the cumulative share of the weights, in (0, 1]."""

    name: str
    weight: float
    upto: float
    keying_s: float
    think_s: float
    writes: bool

class ProgramError(Exception):
    """A compiled workload failed where its function fails: `kind` is the name of Python's exception
    (or WrongUse, LimitError), `file` and `line` its place, `sentence` what went wrong."""

    kind: str
    fatal_use: bool
    file: str
    line: int
    sentence: str

@final
class Program:
    """A compiled workload, decoded and verified: damaged bytes are a ValueError, never worse."""

    def __new__(cls, data: bytes) -> Program: ...
    @property
    def name(self) -> str:
        """The workload's name."""
    @property
    def hash(self) -> str:
        """sha256 of the serialised program, in hexadecimal."""
    @property
    def data(self) -> bytes:
        """The serialised program."""
    @property
    def transactions(self) -> list[TransactionKind]:
        """Transaction kinds in the order written."""
    @property
    def setup(self) -> list[str]:
        """Statements that each connection runs once after it opened."""
    @property
    def has_start(self) -> bool:
        """Whether terminals have something to do before their first transaction."""
    def texts(self) -> list[tuple[str, str, int]]:
        """Constant SQL texts: (SQL, "read", "write" or "other", number of parameters)."""
    def terminal(self, seed: int, number: int) -> ProgramTerminal:
        """A machine for that terminal, from 1."""
    def run_once(self, transaction: str, seed: int, terminal: int, number: int, db: Any) -> str:
        """One transaction on a machine of its own; see `ProgramTerminal.run`."""

@final
class ProgramTerminal:
    """One terminal's machine, driven by a Python `db` (`row` is sent as `query`, a batch as `execute`)."""

    def start(self, db: Any) -> str:
        """The workload's `start`; as `run`."""
    def run(self, transaction: str, number: int, db: Any) -> str:
        """Run a transaction: "committed" or "rolled back".

        Exceptions of `db` pass through; ProgramError when the workload is wrong; KeyError for an unknown name.
        """
    def retry(self, db: Any, tries: int | None = None) -> str:
        """The same transaction again with the same values; with `tries` with new ones, as the drives draw them."""
    def restore_state(self) -> None:
        """The transaction did not commit: `db.state` as it was before."""
    @property
    def acks(self) -> str:
        """What `db.ack` wrote in the last transaction, as JSON lines."""
    @property
    def state(self) -> dict[str, Any]:
        """The terminal's `db.state`."""
    def texts(self) -> list[tuple[str, str, int]]:
        """All SQL texts so far, as `Program.texts`."""

class EngineError(Exception):
    """A run could not begin. ``args``: the server's code ("" when it did not come that far), its own words or
    (without a code) a sentence, and the endpoint as ``host:port`` or a socket's path ("" when it was nowhere)."""

@final
class Span:
    """The figures of a span of time, as the event loop measured them. Times in seconds, histograms in ns."""

    @property
    def begin_s(self) -> float:
        """Its begin, after measuring began (negative: warm-up)."""
    @property
    def seconds(self) -> float:
        """Its length."""
    @property
    def counts(self) -> tuple[int, ...]:
        """In the order of the fields of dbdyno.model.sample.Counts."""
    @property
    def errors(self) -> dict[str, int]:
        """Attempts that failed, by code."""
    @property
    def response(self) -> Histogram:
        """Committed transactions from the intended start."""
    @property
    def service(self) -> Histogram:
        """Committed transactions from the actual start."""
    @property
    def lag(self) -> Histogram:
        """From the intended to the actual start, all transactions."""
    @property
    def kinds(self) -> list[tuple[tuple[int, ...], Histogram]]:
        """Counts and response times by kind, in the program's order; empty for a program of one kind."""
    @property
    def warm(self) -> bool:
        """Whether it belongs to the warm-up."""
    @property
    def last(self) -> bool:
        """Whether it is the last one."""
    @property
    def connected(self) -> int:
        """Connections open at its end."""
    @property
    def busy(self) -> float:
        """Share of it that the loop worked, in [0, 1]."""

@final
class Run:
    """A run of a program against a server, on an event loop's thread. `job` is JSON: see crates/engine, `Job`.

    Raises ValueError for a job that is not of that form, OSError when the system has no thread or descriptor left.
    """

    def __new__(cls, job: str, program: Program) -> Run: ...
    def next(self, timeout_s: float) -> Span | None:
        """The next span; None when none came within that time. Other threads go on meanwhile."""
    def stop(self, *, immediate: bool = False) -> None:
        """Begin no further transaction; `immediate`: cancel the open ones, too."""
    def conclusion(self) -> dict[str, Any]:
        """How it ended: seconds, interrupted, fatal, arrived, never_begun, stuck, outages (connection, begin s, end s,
        code), notes (sentences for the record).

        Waits for the end. To be asked once. Raises EngineError when it could not begin.
        """
    @property
    def over(self) -> bool:
        """Whether it has ended and every span was taken."""
    @property
    def thread_ids(self) -> list[int]:
        """The loops' threads as the kernel numbers them; 0 until they run."""

def engine_version() -> str:
    """Version of the compiled engine; the same as the package's."""

def serve_fake(words: list[str]) -> int:
    """Be the scripted server of a command line (`--help` lists its words) until SIGTERM or SIGINT; the exit status.

    It listens on 127.0.0.1 and perhaps on a unix socket, prints `listening on 127.0.0.1:PORT`, and takes over
    the signals: for a process that does nothing else.
    """
