"""What a run came to: the same rules for every drive."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.drive.accounting import verify
from dbdyno.drive.job import Job
from dbdyno.drive.tally import Figures
from dbdyno.model.sample import Health, Outage, Outcome
from dbdyno.workload.source import program_hash

_RATE_TOLERANCE = 0.005  # started ÷ arrivals
_LATE_SHARE = 0.01  # of the run's length


@dataclass(frozen=True)
class End:
    """How a run ended. ``arrived`` and ``never_begun`` are of an open loop's measured interval."""

    seconds: float
    fatal: str = ""
    interrupted: bool = False
    arrived: int = 0
    never_begun: int = 0
    outages: tuple[Outage, ...] = ()
    stuck: int = 0  # connections whose statement did not come back after it was cancelled
    notes: tuple[str, ...] = field(default=())


def outcome(job: Job, total: Figures, end: End, health: Health, drive: str) -> Outcome:
    """The outcome of a run with these figures; ``drive`` says which drive ran it, and how.

    Raises:
        RunError: the accounting identity does not hold.
    """
    counts = total.frozen_counts()
    verify(counts)
    state, reason = "done", ""
    if end.fatal:
        state, reason = "failed", end.fatal
    elif end.interrupted:
        state, reason = "interrupted", "stopped before its end"
    elif gone := _gone(job, end):
        state, reason = "failed", gone
    elif job.load.rate is not None and (late := _rate_missed(job, total, end)):
        state, reason = "failed", late
    elif counts.scheduled and not counts.committed and not counts.rolled_back:
        code = max(total.errors, key=lambda key: total.errors[key], default="no error")
        state, reason = "failed", f"no transaction was committed; most frequent error: {code}"
    notes = end.notes
    if end.stuck:
        notes = (f"{end.stuck} connections did not come back after their statement was cancelled", *notes)
    if total.response.saturated:
        notes = (f"{total.response.saturated} response times above the histogram's hour", *notes)
    return Outcome(
        state=state,
        reason=reason,
        seconds=end.seconds,
        counts=counts,
        errors=dict(total.errors),
        response=total.response.encode(),
        service=total.service.encode(),
        lag=total.lag.encode(),
        health=health,
        kinds=total.frozen_kinds(),
        outages=tuple(sorted(end.outages, key=lambda one: one.begin)),
        rate=job.load.rate,
        drive=drive,
        program=program_hash(job.workload),
        notes=notes,
    )


def _gone(job: Job, end: End) -> str:
    """A server that went away and was not back at the end: what was measured before is no figure of that length."""
    lost = {one.connection: one for one in end.outages if one.end >= end.seconds}
    if len(lost) + end.stuck < job.load.connections:
        return ""
    if not lost:
        return "the server was gone at the end of the run: what was sent last was neither answered nor cancelled"
    last = max(lost.values(), key=lambda one: one.begin)
    return f"the server was gone at the end of the run: no connection since {max(0.0, last.begin):.1f} s ({last.code})"


def _rate_missed(job: Job, total: Figures, end: End) -> str:
    """Failing to deliver the asked rate is a failed run, never a silently lower rate."""
    started = end.arrived - end.never_begun
    if end.arrived and started < end.arrived * (1 - _RATE_TOLERANCE):
        return (
            f"{end.arrived} transactions were due in {end.seconds:.1f} s but only {started} begun: "
            f"the rate of {job.load.rate:g}/s is more than {job.load.connections} connections reach"
        )
    latest_s = total.lag.max / 1e9 if total.lag.count else 0.0
    if latest_s > _LATE_SHARE * max(end.seconds, 1.0):
        return (
            f"a transaction began {latest_s:.2f} s after it was due, over 1 % of the run: "
            f"the rate of {job.load.rate:g}/s was not kept"
        )
    return ""
