"""A client watched from outside: its CPU and its queries over the same window of time.

Every client here prints a line each second (sysbench ``--report-interval=1``, pgbench ``-P 1``, ours the same). The
kernel's account of its threads is read when a line arrives, so that queries and CPU belong to the same span and
neither start nor end of the program is in any figure.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LOGIN_PATIENCE_S = 60.0
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}


class Missing(Exception):
    """A row cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Window:
    """What a client did between two of its lines."""

    queries: float
    transactions: float
    seconds: float
    cpu_s: float
    server_share: float  # of one core, of the server's process

    @property
    def cpu_us_per_query(self) -> float:
        """Client CPU for each query, µs."""
        return self.cpu_s * 1e6 / self.queries

    @property
    def cpu_us_per_transaction(self) -> float:
        """Client CPU for each transaction, µs."""
        return self.cpu_s * 1e6 / self.transactions

    @property
    def qps(self) -> float:
        """Queries a second."""
        return self.queries / self.seconds


@dataclass(frozen=True)
class Client:
    """A command, and how a line of its output is read: (queries, transactions, whether they are rates) or None."""

    name: str
    command: Sequence[str]
    read: Callable[[str], tuple[float, float, bool] | None]
    warm_s: float = 1.0
    pass_fds: tuple[int, ...] = ()
    batch: bool = False  # the whole process under SCHED_BATCH


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, ended threads included, at the scheduler's resolution (ns): its CPU clock, as
    clock_getcpuclockid numbers it."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e9


def watch(client: Client, seconds: int, server_pid: int | None = None) -> Window:
    """Run the client, let it warm up, measure ``seconds`` of its lines, end it.

    Raises:
        Missing: it ended early or went silent; its last words are in the message.
    """
    process = subprocess.Popen(
        client.command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=ENVIRONMENT,
        pass_fds=client.pass_fds,
        preexec_fn=_batch if client.batch else None,
    )
    try:
        return _watched(client, process, seconds, server_pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _watched(client: Client, process: subprocess.Popen[bytes], seconds: int, server_pid: int | None) -> Window:
    lines = Lines(process)
    said: list[str] = []
    first: float | None = None
    last: tuple[float, float, float] | None = None
    queries = transactions = 0.0
    begin: tuple[float, float, float] | None = None
    taken = 0
    deadline = time.monotonic() + LOGIN_PATIENCE_S + client.warm_s + seconds
    while time.monotonic() < deadline:
        line = lines.next(deadline)
        if line is None:
            break
        said.append(line)
        counts = client.read(line)
        if counts is None:
            continue
        now = (time.monotonic(), cpu_s(process.pid), cpu_s(server_pid) if server_pid else 0.0)
        first = now[0] if first is None else first
        if last is not None and begin is not None:
            span = now[0] - last[0] if counts[2] else 1.0
            queries += counts[0] * span
            transactions += counts[1] * span
            taken += 1
            if taken >= seconds:
                wall = now[0] - begin[0]
                return Window(queries, transactions, wall, now[1] - begin[1], (now[2] - begin[2]) / wall)
        elif now[0] - first >= client.warm_s - 1.0:
            begin = now
        last = now
    raise Missing(f"{client.name} ended before it was measured: " + " / ".join(said[-3:]))


class Lines:
    """The lines of a process as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._fd = process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._fd, selectors.EVENT_READ)
        self._left = b""

    def next(self, deadline: float) -> str | None:
        """The next line; None at the end of the output or at the deadline (monotonic clock)."""
        while b"\n" not in self._left:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                return None
            fresh = os.read(self._fd, 65536)
            if not fresh:
                return None
            self._left += fresh
        line, _, self._left = self._left.partition(b"\n")
        return line.decode(errors="replace")


def _batch() -> None:
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
