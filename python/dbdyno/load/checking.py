"""``check``: the workload's statements about its data, asked on the database."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dbdyno.load.failures import told
from dbdyno.load.inspection import ABSENT, COMPLETE, connected, inspect
from dbdyno.model.errors import RunError
from dbdyno.targets.family import Capabilities
from dbdyno.targets.target import Target
from dbdyno.workload import Workload, checks

#: Violations that are fetched and shown; all of them are counted no further.
MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check. ``violations`` are its first rows (at most ten); none = it holds."""

    name: str
    doc: str
    violations: tuple[tuple[Any, ...], ...]
    more: bool  # there are further violations
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the data agree with the statement."""
        return not self.violations


class _Asking:
    """The ``db`` of a check: it only describes the server; the statement is returned, not sent."""

    def __init__(self, capabilities: Capabilities, for_update: str) -> None:
        self.has = capabilities
        self.for_update = for_update


def check(target: Target, workload: Workload) -> list[CheckResult]:
    """Ask every check of the workload, in the order written.

    Raises:
        RunError: tables are missing or not ours, or a statement failed.
    """
    state = inspect(target, workload)
    unusable = [found for found in state.tables if found.kind == ABSENT or found.alien]
    if unusable:
        raise RunError(f"cannot check {workload.label} on {target.label}: {state.sentence}")
    results = []
    if state.kind != COMPLETE:
        clauses = tuple((found.found,) for found in state.tables if found.kind != COMPLETE)
        results.append(CheckResult("data", "The tables hold what prepare loads.", clauses, False, 0.0))
    with connected(target) as connection:
        family = target.family
        with told(target, "ask what the server can do"):
            capabilities = family.capabilities(family.identify(connection))
        db = _Asking(capabilities, family.dialect.for_update if capabilities.for_update else "")
        for one in checks(workload):
            begun = time.monotonic()
            with told(target, f"ask the check {one.name!r}"):
                rows = connection.fetch(getattr(workload, one.method)(db))
            shown = tuple(tuple(row) for row in rows[:MOST_SHOWN])
            seconds = time.monotonic() - begun
            results.append(CheckResult(one.name, one.doc, shown, len(rows) > MOST_SHOWN, seconds))
    return results
