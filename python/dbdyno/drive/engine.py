"""The engine drive: a compiled workload over the server's own protocol, event loops, no Python on the way.

Each loop runs in a thread of its own; this module translates the job into the engine's words, hands the spans they
measure on as samples, and judges the end by the same rules as every drive.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dbdyno._engine import EngineError, Program, Run, Span
from dbdyno._engine import engine_version as _version
from dbdyno.drive.emitter import Emitter
from dbdyno.drive.health import HealthMeter
from dbdyno.drive.job import Job, Stop
from dbdyno.drive.tally import Figures, KindTally
from dbdyno.drive.verdict import End, outcome
from dbdyno.model.errors import DbdynoError, Interrupted, RunError
from dbdyno.model.sample import Counts, Outage, Outcome, Sample
from dbdyno.targets.family import Wire
from dbdyno.targets.place import same_host
from dbdyno.workload.compiler import compile_workload

_LOGIN_TIMEOUT_S = 10.0
_LOOK_S = 0.1  # how soon a request to stop is passed on
_COUNTS = Counts.__slots__


class EngineDrive:
    """See :class:`dbdyno.drive.job.Drive`. For families with a :class:`dbdyno.targets.family.Wire`."""

    name = "engine"

    def run(self, job: Job, on_sample: Callable[[Sample], None], stop: Stop) -> Outcome:
        """Run one job; see :meth:`dbdyno.drive.job.Drive.run`."""
        wire = job.target.family.wire(job.target.address, job.load.isolation)
        assert wire is not None, "drive_for chooses this drive for families that have one"
        return _Run(job, wire, on_sample, stop).run()


class _Run:
    def __init__(self, job: Job, wire: Wire, on_sample: Callable[[Sample], None], stop: Stop) -> None:
        self._job = job
        self._wire = wire
        self._stop = stop
        self._program = program_of(job)
        self._kinds = [kind["name"] for kind in self._program.transactions]
        self._emitter = Emitter(
            on_sample,
            HealthMeter(open_loop=job.load.rate is not None, in_process=job.capabilities.in_process),
            several_kinds=len(self._kinds) > 1,
        )
        self._measuring = False
        self._threads: list[int] = []  # of the event loops
        # Answers are read in batches, which costs latency and saves both sides' CPU where they share a machine.
        self._batch = job.load.rate is None and same_host(job.target.address) and not job.load.spin

    def run(self) -> Outcome:
        """Start the loop, hand its spans on, judge its end."""
        if self._stop.requested:
            raise Interrupted("stopped before the run began")
        run = Run(json.dumps(engine_job(self._job, self._wire, self._program)), self._program)
        try:
            batched = False
            while not run.over:
                if self._batch and not batched and all(run.thread_ids):
                    batched = all(_schedule_in_batches(thread) for thread in run.thread_ids)
                    self._batch = batched
                if self._stop.immediate:
                    run.stop(immediate=True)
                elif self._stop.requested or self._emitter.failure is not None:
                    run.stop()
                span = run.next(_LOOK_S)
                if span is not None:
                    self._emit(span)
            ended = run.conclusion()
            self._threads = run.thread_ids
        except EngineError as error:
            raise self._refusal(*error.args) from None
        if self._emitter.failure is not None:
            raise self._emitter.failure
        return self._outcome(ended)

    def _emit(self, span: Span) -> None:
        if not span.warm and not self._measuring:
            self._measuring = True
            self._emitter.begin_measuring()
        self._emitter.emit(
            self._figures(span),
            begin_s=span.begin_s,
            seconds=span.seconds,
            warm=span.warm,
            connected=span.connected,
            last=span.last,
            busy=span.busy,
        )

    def _figures(self, span: Span) -> Figures:
        figures = Figures()
        figures.counts = dict(zip(_COUNTS, span.counts, strict=True))
        figures.errors.update(span.errors)
        figures.response, figures.service, figures.lag = span.response, span.service, span.lag
        if len(self._kinds) == 1:
            figures.kinds = {self._kinds[0]: KindTally(dict(figures.counts), span.response.copy())}
        else:
            figures.kinds = {
                name: KindTally(dict(zip(_COUNTS, counts, strict=True)), response)
                for name, (counts, response) in zip(self._kinds, span.kinds, strict=False)
                if any(counts)
            }
        return figures

    def _outcome(self, ended: dict[str, Any]) -> Outcome:
        seconds = ended["seconds"]
        end = End(
            seconds=seconds,
            fatal=ended["fatal"] or "",
            interrupted=ended["interrupted"],
            arrived=ended["arrived"],
            never_begun=ended["never_begun"],
            outages=tuple(Outage(*one) for one in ended["outages"]),
            notes=tuple(ended["notes"]),
            stuck=ended["stuck"],
        )
        policy = ", SCHED_BATCH" if self._batch else ""
        loops = len(self._threads)
        how = "one epoll loop" if loops == 1 else f"{loops} epoll loops"
        if self._job.load.spin:
            how += ", spinning"
        drive = f"engine {_version()}, {self._wire.protocol} protocol, {how}{policy}"
        health = self._emitter.total_health(seconds, has_loop=True)
        return outcome(self._job, self._emitter.total, end, health, drive)

    def _refusal(self, code: str, message: str, endpoint: str) -> DbdynoError:
        if self._stop.requested:
            return Interrupted("stopped before the run began")
        if not code:
            return RunError(message)
        target = self._job.target
        number = next((n for n, where in enumerate(self._wire.endpoints) if str(where) == endpoint), 0)
        return RunError(target.family.refused(target.address, number, code, message, _LOGIN_TIMEOUT_S))


def program_of(job: Job) -> Program:
    """The workload compiled for the job's target and number of terminals."""
    for_update = job.target.family.dialect.for_update if job.capabilities.for_update else ""
    return Program(compile_workload(job.workload, job.capabilities, for_update, job.load.connections).data)


def engine_job(job: Job, wire: Wire, program: Program) -> dict[str, Any]:
    """The job in the engine's words (crates/engine/src/run/job.rs). Holds the password: never to be shown."""
    load, address = job.load, job.target.address
    return {
        "login": {
            "protocol": wire.protocol,
            "user": address.user,
            "password": address.password.reveal() if address.password is not None else None,
            "database": address.database,
            "tls": address.params.get("tls", "prefer"),
            "tls_ca": address.params.get("tls_ca", ""),
            "tls_cert": address.params.get("tls_cert", ""),
            "tls_key": address.params.get("tls_key", ""),
            "parameters": dict(wire.parameters),
            "cancel": wire.cancel,
            "timeout_s": _LOGIN_TIMEOUT_S,
            "setup": [*wire.setup, *program.setup],
        },
        "endpoints": [
            {"host": endpoint.host, "port": endpoint.port, "socket": endpoint.socket} for endpoint in wire.endpoints
        ],
        "connections": load.connections,
        "loops": load.loops,
        "spin": load.spin,
        "duration_s": load.duration_s,
        "transactions": load.transactions,
        "warmup_s": load.warmup_s,
        "interval_s": load.interval_s,
        "rate": load.rate,
        "arrivals": load.arrivals,
        "max_tries": load.max_tries,
        "new_values": load.retry_values == "new",
        "ignore_errors": list(load.ignore_errors),
        "reconnect_every": load.reconnect_every or job.workload.reconnect_every,
        "drain_s": load.drain_s,
        "seed": load.seed,
        "replay": job.replay,
        "ack_path": str(job.ack_path) if job.ack_path is not None else "",
        "begin": wire.begin,
        "lost_code": wire.lost_code,
        "errors": {
            "codes": {code: kind.value for code, kind in wire.errors.items()},
            "prefixes": {code: kind.value for code, kind in wire.error_prefixes.items()},
            "stale": dict(wire.stale),
            "sentences": dict(wire.sentences),
        },
    }


def _schedule_in_batches(thread: int) -> bool:
    """Put the loop's thread under SCHED_BATCH; False where the system does not let us."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
        return True
    return False
