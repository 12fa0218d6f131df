"""The whole examination of a target: its endpoints one by one, the way there, this machine."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dbdyno._engine import Program
from dbdyno.campaign.doctor import machine, server
from dbdyno.drive.statements import count_texts
from dbdyno.model.errors import DbdynoError
from dbdyno.model.finding import Finding, Mend, Need, Verdict, worst
from dbdyno.targets import managed
from dbdyno.targets.family import Capabilities, Facts
from dbdyno.targets.managed import ManagedServer
from dbdyno.targets.managed_kind import option_key
from dbdyno.targets.place import same_host
from dbdyno.targets.target import Target
from dbdyno.workload import Workload
from dbdyno.workload.compiler import compile_workload

#: How long this machine is watched at least.
_WATCH_S = 0.5


@dataclass(frozen=True)
class Examination:
    """What was found, of the server first; ``verdict`` is the worst."""

    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(self.findings)


def examine(target: Target, workload: Workload | None, connections: int) -> Examination:
    """Everything there is to say before a run of ``workload`` with that many connections. Takes a second.

    Raises:
        RunError: the server does not answer. UsageError: the workload is outside of the language.
    """
    watch, begun = machine.Watch(), time.monotonic()
    _, capabilities, facts = target.describe()
    need = _need(target, capabilities, [workload] if workload is not None else [], connections)
    findings = _of_servers(target, need)
    here = same_host(target.address)
    control = target.control()
    try:
        findings += server.way(control, facts, capabilities.in_process)
    finally:
        control.close()
    findings += server.meaning(facts, capabilities.isolation)
    findings += [] if capabilities.in_process else [machine.shared(here)]
    findings += machine.limits(connections, capabilities.in_process)
    time.sleep(max(0.0, begun + _WATCH_S - time.monotonic()))
    findings += watch.findings()
    findings += [*machine.frequency(), *machine.clock(), *machine.memory(here)]
    return Examination(facts, tuple(_for_managed(findings, _managed(target))))


def spoilers(target: Target, capabilities: Capabilities, workloads: Sequence[Workload], connections: int) -> list[str]:
    """One sentence for each thing that is bad and quickly seen, for the notes of a campaign; never an error: what
    cannot be asked is not said."""
    try:
        need = _need(target, capabilities, workloads, connections)
        findings = _of_servers(target, need)
    except DbdynoError:
        return []  # the trial itself will meet it, and say so
    except Exception as error:
        # A look beforehand is no reason to lose the run, whatever a relative of the family answers.
        return [f"not examined before the run, as an answer was not understood ({type(error).__name__})"]
    findings += [*machine.limits(connections, capabilities.in_process), *machine.clock()]
    findings = _for_managed(findings, _managed(target))
    return [sentence(finding) for finding in findings if finding.verdict is Verdict.BAD]


def sentence(finding: Finding) -> str:
    """``connections: max_connections = 10, 0 in use, needed 66 …: why; mend (SQL): …``."""
    needed = f", needed {finding.needed}" if finding.needed else ""
    mend = f"; mend ({finding.mend.where}): {finding.mend.command}" if finding.mend is not None else ""
    return f"{finding.name}: {finding.found}{needed}: {finding.why}{mend}"


def _need(target: Target, capabilities: Capabilities, workloads: Iterable[Workload], connections: int) -> Need:
    """What the most demanding of the workloads asks of each endpoint."""
    each = -(-connections // max(1, len(target.address.endpoints)))
    need = Need(each)
    wired = target.family.wire(target.address, None) is not None
    for workload in workloads:
        tables = [table.name for table in workload.schema()]
        for_update = target.family.dialect.for_update if capabilities.for_update else ""
        program = Program(compile_workload(workload, capabilities, for_update, connections).data)
        writes = any(kind["writes"] for kind in program.transactions)
        need = replace(need, tables=max(len(tables), need.tables or 0), writes=writes or bool(need.writes))
        texts = count_texts(program, tables) if wired else None
        if texts is not None and texts.number > (need.texts or 0):
            need = replace(need, texts=texts.number, texts_exact=texts.exact)
    return need


def _of_servers(target: Target, need: Need) -> list[Finding]:
    """The family's findings at each endpoint; named after it where there are several."""
    found: list[Finding] = []
    endpoints = target.address.endpoints
    for number in range(max(1, len(endpoints))):
        connection = target.family.connect(target.address, number, control=True)
        try:
            findings = target.family.examine(connection, target.address, need)
        except Exception as error:
            # A view that this user may not read, a proxy that knows no status: said, not raised.
            told = target.family.classify(error)
            if told.code == type(error).__name__:  # no driver's exception
                raise
            findings = [Finding("server", Verdict.INFO, "cannot be examined", "", None, told.message)]
        finally:
            connection.close()
        if len(endpoints) > 1:
            findings = [replace(each, name=f"{each.name} at {endpoints[number]}") for each in findings]
        found += findings
    return found


def _managed(target: Target) -> ManagedServer | None:
    """The managed server behind the address, if dbdyno manages it."""
    if len(target.address.endpoints) != 1 or not same_host(target.address):
        return None
    port = target.address.endpoints[0].port
    return next((one for one in managed.listing() if one.running and one.port == port), None)


def _for_managed(findings: Sequence[Finding], one: ManagedServer | None) -> list[Finding]:
    """A managed server is restarted by dbdyno, with its settings and all those that are to change: one command
    mends every finding that needs the restart, and takes back nothing that the others mend."""
    if one is None:
        return list(findings)
    mends = [each.mend for each in findings if each.mend is not None and each.verdict is not Verdict.INFO]
    changed = {name: value for mend in mends for name, value in mend.settings.items()}
    restart = Mend(_restart_words(one, changed), "the shell", changed, restart=True)
    return [replace(each, mend=restart) if each.mend is not None and each.mend.restart else each for each in findings]


def _restart_words(one: ManagedServer, changed: dict[str, str]) -> str:
    again = {option_key(name) for name in changed}
    kept = {name: value for name, value in one.options.items() if option_key(name) not in again}
    words = [name if value is None else f"{name}={value}" for name, value in {**kept, **changed}.items()]
    options = " ".join(f"--option {shlex.quote(word)}" for word in words)
    return f"dbdyno server stop {one.name} && dbdyno server start {one.kind} --name {one.name} {options}"
