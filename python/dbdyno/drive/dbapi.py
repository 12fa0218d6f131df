"""The DB-API drive: a thread per connection over any Python driver.

The same job in and samples out as the engine. Measuring begins when all connections are ready; a transaction
belongs to the measured interval if its intended start lies in it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from dbdyno.drive.emitter import Emitter
from dbdyno.drive.health import HealthMeter
from dbdyno.drive.job import Job, Stop
from dbdyno.drive.pacing import Clock, ClosedLoop, OpenLoop, Pacing
from dbdyno.drive.reporter import Reporter
from dbdyno.drive.tally import Tally
from dbdyno.drive.terminal import Fatal, Kind, Terminal
from dbdyno.drive.verdict import End, outcome
from dbdyno.model.errors import RunError
from dbdyno.model.sample import Outcome, Sample
from dbdyno.workload.language import Workload, states, transactions
from dbdyno.workload.source import writes

_CONNECTS_IN_FLIGHT = 16
_CANCEL_S = 5.0  # how long a cancelled statement may take to come back before its connection is given up


class DbApiDrive:
    """See :class:`dbdyno.drive.job.Drive`."""

    name = "dbapi"

    def run(self, job: Job, on_sample: Callable[[Sample], None], stop: Stop) -> Outcome:
        """Run one job; see :meth:`dbdyno.drive.job.Drive.run`."""
        return _Run(job, on_sample, stop).run()


class _Run:
    """One run: threads, clock, reporter and the way to the end."""

    def __init__(self, job: Job, on_sample: Callable[[Sample], None], stop: Stop) -> None:
        self._job = job
        self._stop = stop
        self._clock = Clock(stop)
        self._kinds = kinds_of(job.workload)
        self._tally = Tally()
        declared = states(job.workload)
        self._terminals = [
            Terminal(job, number, self._kinds, declared, self._clock, self._tally)
            for number in range(1, job.load.connections + 1)
        ]
        self._threads: list[threading.Thread] = []
        self._fatal: list[str] = []
        self._emitter = Emitter(
            on_sample,
            HealthMeter(open_loop=job.load.rate is not None, in_process=job.capabilities.in_process),
            several_kinds=len(self._kinds) > 1,
        )
        self._reporter = Reporter(
            self._clock,
            self._tally,
            self._emitter,
            interval_s=job.load.interval_s,
            connected=lambda: sum(terminal.session.connection is not None for terminal in self._terminals),
        )
        self._ack_lock = threading.Lock()

    def run(self) -> Outcome:
        """Connect, drive, drain, judge."""
        acks = _ack_file(self._job.ack_path)
        try:
            self._connect()
            if acks is not None:
                for terminal in self._terminals:
                    terminal.acknowledge = lambda text: self._acknowledge(acks, text)
            return self._drive()
        finally:
            for terminal in self._terminals:
                if terminal.in_flight == 0:
                    terminal.close()
            if acks is not None:
                acks.close()

    def _connect(self) -> None:
        with ThreadPoolExecutor(_CONNECTS_IN_FLIGHT, thread_name_prefix="connect") as pool:
            ready = [pool.submit(terminal.connect) for terminal in self._terminals]
            try:
                for future in ready:
                    future.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for terminal in self._terminals:
            terminal.start()

    def _drive(self) -> Outcome:
        load, clock = self._job.load, self._clock
        pacing: Pacing = OpenLoop(load, clock) if load.rate is not None else ClosedLoop(load, clock)
        # a thread gives the interpreter up after that time: shorter than the default keeps latencies honest
        interval = sys.getswitchinterval()
        sys.setswitchinterval(0.001)
        try:
            clock.begin_ns = clock.now_ns()
            clock.measure_ns = clock.begin_ns + int(load.warmup_s * 1e9)
            self._tally.measured_from_ns = clock.measure_ns
            if load.duration_s is not None:
                clock.end_ns = clock.measure_ns + int(load.duration_s * 1e9)
            self._reporter.start()
            for number, terminal in enumerate(self._terminals, 1):
                thread = threading.Thread(
                    target=self._body, args=(terminal, pacing), name=f"terminal-{number}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
            self._wait_for_end()
            self._drain(load.drain_s)
        finally:
            clock.ending.set()
            sys.setswitchinterval(interval)
        stuck = sum(1 for terminal in self._terminals if terminal.in_flight >= max(1, clock.measure_ns))
        never_begun = pacing.never_begun()
        self._tally.extra(unfinished=stuck + never_begun)
        self._reporter.finish()
        return self._outcome(pacing, never_begun)

    def _body(self, terminal: Terminal, pacing: Pacing) -> None:
        try:
            terminal.run(pacing)
        except Fatal as error:
            self._fatal.append(str(error))
            self._stop.request()
        except BaseException as error:  # a fault of ours must end the run, never pass silently
            self._fatal.append(f"internal error in a terminal: {type(error).__name__}: {error}")
            self._stop.request()

    def _alive(self) -> list[int]:
        return [number for number, thread in enumerate(self._threads) if thread.is_alive()]

    def _wait_for_end(self) -> None:
        """Until the duration is over, the run is stopped, or every terminal has ended (by count)."""
        clock = self._clock
        while self._alive() and not self._stop.requested and self._emitter.failure is None:
            left_s = 0.1
            if clock.end_ns is not None:
                left_s = (clock.end_ns - clock.now_ns()) / 1e9
                if left_s <= 0:
                    break
            self._stop.wait(min(left_s, 0.1))
        if self._stop.requested or self._emitter.failure is not None:
            clock.end_ns = min(clock.end_ns or clock.now_ns(), clock.now_ns())
            clock.ending.set()
        elif self._job.load.rate is None:
            clock.ending.set()
        if clock.end_ns is None:  # a run by count ends with its last transaction
            clock.end_ns = clock.now_ns()

    def _drain(self, drain_s: float) -> None:
        """Open transactions may finish; then they are cancelled on the server; then left behind."""
        deadline = self._clock.now_ns() + int(drain_s * 1e9)
        while self._alive() and self._clock.now_ns() < deadline and not self._stop.immediate:
            threading.Event().wait(0.005)
        self._clock.ending.set()
        for number in self._alive():
            self._terminals[number].cancelled = True
        deadline = self._clock.now_ns() + int(_CANCEL_S * 1e9)
        cancelled: set[int] = set()
        while (alive := self._alive()) and self._clock.now_ns() < deadline:
            for number in set(alive) - cancelled:
                cancelled.add(number)
                connection = self._terminals[number].session.connection
                if connection is not None:
                    threading.Thread(target=_cancel, args=(connection.cancel,), daemon=True).start()
            threading.Event().wait(0.005)

    def _acknowledge(self, acks: IO[str], text: str) -> None:
        with self._ack_lock:
            acks.write(text)
            acks.flush()

    def _outcome(self, pacing: Pacing, never_begun: int) -> Outcome:
        clock, emitter = self._clock, self._emitter
        if emitter.failure is not None:
            raise emitter.failure
        assert clock.end_ns is not None
        seconds = max(0.0, (clock.end_ns - clock.measure_ns) / 1e9)
        left = sum(1 for number in self._alive() if self._terminals[number].session.connection is not None)
        for terminal in self._terminals:
            terminal.end_outage()
        end = End(
            seconds=seconds,
            fatal=self._fatal[0] if self._fatal else "",
            interrupted=self._stop.requested,
            arrived=pacing.arrived(),
            never_begun=never_begun,
            outages=tuple(one for terminal in self._terminals for one in terminal.outages),
            stuck=left,
        )
        drive = f"dbapi, {self._job.target.family.driver}, thread per connection"
        return outcome(self._job, emitter.total, end, emitter.total_health(seconds), drive)


def kinds_of(workload: Workload) -> list[Kind]:
    """The workload's transactions with their cumulative shares, ready to be called."""
    found = transactions(workload)
    whole = sum(kind.weight for kind in found)
    kinds, upto = [], 0.0
    for kind in found:
        upto += kind.weight / whole
        kinds.append(Kind(kind, getattr(workload, kind.method), writes(workload, kind.method), upto))
    return kinds


def _ack_file(path: Path | None) -> IO[str] | None:
    if path is None:
        return None
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot write the acknowledgement file {path}: {error.strerror}") from None


def _cancel(cancel: Callable[[], None]) -> None:
    try:
        cancel()
    except Exception:
        return  # the statement ended by itself, or the server is gone: the caller watches the thread
