"""This machine as a load generator: descriptors, CPU, clock, memory.

``limits`` and ``clock`` read a few files; :class:`Watch` needs half a second to see what is going on.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from dbdyno.campaign.machine import client_facts, container_limits, first_line, own_group
from dbdyno.model.finding import Finding, Mend, Verdict, counted, limit
from dbdyno.model.units import format_bytes

#: Descriptors of this process beside its connections: libraries, the store, the terminal.
_OWN_FILES = 64
#: Database file, log and shared memory: what a connection to a database in our own process opens.
_FILES_IN_PROCESS = 3
#: What the event loop needs for itself, in cores.
_LOOP_CORES = 1.0
_BUSY_SHARE = 0.10  # of all CPUs, by others
_STEAL_SHARE = 0.02
_THROTTLED_SHARE = 0.01  # of the control group's periods
#: One reading of a good clock takes 20 to 60 ns, and Python's call as long; from here on it shows in the figures.
_SLOW_CLOCK_NS = 1_000
_GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
_CLOCKS = Path("/sys/devices/system/clocksource/clocksource0")
_CPUS = Path("/sys/devices/system/cpu")
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_LEAST_MEMORY_SHARE = 0.1


def limits(connections: int, in_process: bool) -> Iterator[Finding]:
    """Open files of this process and the control group's share of the CPUs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections * (_FILES_IN_PROCESS if in_process else 1) + _OWN_FILES
    unlimited = soft == resource.RLIM_INFINITY
    target = wanted * 2
    if hard == resource.RLIM_INFINITY or hard >= target:
        mend = Mend(f"ulimit -n {target}", "the shell that runs dbdyno")
    else:
        mend = Mend(f"sudo prlimit --pid $$ --nofile={target}:{target}", "the shell that runs dbdyno")
    yield limit(
        "client's open files",
        found="no limit" if unlimited else f"ulimit -n = {soft:,}",
        needed=f"{wanted:,} for {counted(connections, 'connection')}",
        enough=unlimited or soft >= wanted,
        otherwise=Verdict.BAD,
        mend=mend,
        why="the run cannot open its connections: too many open files",
    )
    yield from _quota()


def _quota() -> Iterator[Finding]:
    allowed, cores = container_limits()["cpus"], psutil.cpu_count() or 1
    if allowed is None or allowed >= cores:
        return
    yield Finding(
        "CPU quota",
        Verdict.BAD if allowed < _LOOP_CORES else Verdict.INFO,
        f"{allowed:g} of {cores} CPUs",
        "a whole CPU for the client at least",
        _without_quota() if allowed < _LOOP_CORES else None,
        "the control group stops the client when its share of each tenth of a second is used up, which looks like"
        " a slow database"
        if allowed < _LOOP_CORES
        else "the client is stopped for the rest of each period in which it used more",
    )


def _without_quota() -> Mend:
    folder = Path("/sys/fs/cgroup") / own_group()
    if (folder / "cpu.max").exists():
        return Mend(f"echo max | sudo tee {folder}/cpu.max", "the shell, outside of the container")
    return Mend(
        "echo -1 | sudo tee /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "the shell, outside of the container, in its own control group",
    )


def clock() -> Iterator[Finding]:
    """The kernel's clock source and what one reading costs through Python."""
    source, cost_ns = first_line(_CLOCKS / "current_clocksource"), _clock_cost_ns()
    others = (first_line(_CLOCKS / "available_clocksource") or "").split()
    better = next((name for name in _GOOD_CLOCKS if name in others and name != source), None)
    slow = cost_ns > _SLOW_CLOCK_NS or source in ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
    yield limit(
        "clock",
        found=f"{source or 'unknown source'}, {cost_ns:.0f} ns a reading from Python",
        needed=f"less than {_SLOW_CLOCK_NS:,} ns",
        enough=not slow,
        otherwise=Verdict.BAD if source in ("jiffies", "refined-jiffies") else Verdict.WARN,
        mend=Mend(f"echo {better} | sudo tee {_CLOCKS}/current_clocksource", "the shell") if better else None,
        why="every transaction reads the clock a few times: a slow one costs client CPU and is part of the latency",
    )


def _clock_cost_ns() -> float:
    """The best of several batches: what disturbs makes it only longer."""
    now, best = time.perf_counter_ns, float("inf")
    for _ in range(10):
        begin = now()
        for _ in range(100):
            now()
        best = min(best, (now() - begin) / 100)
    return best


def frequency() -> Iterator[Finding]:
    """The governor of the CPUs' frequency, where the system shows it (a virtual machine's host does not)."""
    governors = {
        line for path in _CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor") if (line := first_line(path)) is not None
    }
    if not governors:
        return
    yield limit(
        "CPU frequency",
        found=f"governor {', '.join(sorted(governors))}",
        needed="governor performance",
        enough=governors == {"performance"},
        otherwise=Verdict.WARN,
        mend=Mend("sudo cpupower frequency-set -g performance", "the shell"),
        why="the CPUs slow down under light load, so that few connections look slower than they are",
    )


def memory(same_host: bool) -> Iterator[Finding]:
    """What is left of it, and huge pages where the database is here, too."""
    facts = psutil.virtual_memory()
    wanted = int(facts.total * _LEAST_MEMORY_SHARE)
    yield limit(
        "memory",
        found=f"{format_bytes(facts.available)} available of {format_bytes(facts.total)}",
        needed=f"{format_bytes(wanted)} available",
        enough=facts.available >= wanted,
        otherwise=Verdict.WARN,
        mend=Mend("ps -eo pid,rss,comm --sort=-rss | head", "the shell, to see who has it"),
        why="the system drops cached files or swaps while the run lasts",
    )
    enabled = first_line(_HUGE_PAGES) or ""
    if same_host and enabled:
        yield limit(
            "transparent huge pages",
            found=enabled.partition("[")[2].partition("]")[0] or enabled,
            needed="madvise or never",
            enough="[always]" not in enabled,
            otherwise=Verdict.WARN,
            mend=Mend(f"echo madvise | sudo tee {_HUGE_PAGES}", "the shell"),
            why="the kernel moves the database's memory into huge pages meanwhile, which stalls it now and then",
        )


class Watch:
    """What happens on this machine between its making and :meth:`findings`."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._times = psutil.cpu_times()
        self._own = time.process_time()
        self._processes = _cpu_seconds()
        self._swap = psutil.swap_memory()
        self._throttled = _throttled()
        self._slowed = _thermal_events()

    def findings(self) -> Iterator[Finding]:
        """Others' load, steal, throttling, swapping since the beginning."""
        elapsed = max(1e-3, time.monotonic() - self._begun)
        cpus = psutil.cpu_count() or 1
        times = psutil.cpu_times()
        spent = sum(times[:8]) - sum(self._times[:8])  # guest time is part of user time
        idle = times.idle - self._times.idle + getattr(times, "iowait", 0.0) - getattr(self._times, "iowait", 0.0)
        stolen = getattr(times, "steal", 0.0) - getattr(self._times, "steal", 0.0)
        share = max(0.0, min(1.0, 1 - (idle + stolen) / spent)) if spent > 0 else 0.0
        busy = max(0.0, share * cpus - (time.process_time() - self._own) / elapsed)
        yield self._busy(busy, cpus, elapsed)
        yield from self._stolen(stolen / spent if spent > 0 else 0.0)
        yield from self._stopped()
        yield from self._swapped()

    def _busy(self, busy: float, cpus: int, elapsed: float) -> Finding:
        crowded = cpus - busy < _LOOP_CORES
        now = _cpu_seconds()
        used = {key: now[key] - before for key, before in self._processes.items() if key in now}
        top = max(used, key=lambda key: used[key], default=None)
        who = ""
        if top is not None and used[top] / elapsed >= 0.05:
            who = f"; {top[1]} {used[top] / elapsed:.1f} (pid {top[0]})"
        return limit(
            "CPU",
            found=f"{busy:.1f} of {cpus} busy with others' work, load average {os.getloadavg()[0]:.1f}{who}",
            needed=f"{_BUSY_SHARE * cpus:.1f} or less",
            enough=busy <= _BUSY_SHARE * cpus,
            otherwise=Verdict.BAD if crowded else Verdict.WARN,
            mend=Mend("ps -eo pid,pcpu,etime,comm --sort=-pcpu | head", "the shell, to see who it is"),
            why="less than one CPU is left for the client: it will be the bottleneck"
            if crowded
            else "what others do meanwhile is noise in the figures",
        )

    def _stolen(self, share: float) -> Iterator[Finding]:
        if not hasattr(self._times, "steal"):
            return
        yield limit(
            "steal",
            found=f"{share * 100:.1f} % taken by the host",
            needed=f"{_STEAL_SHARE * 100:g} % or less",
            enough=share <= _STEAL_SHARE,
            otherwise=Verdict.WARN,
            mend=None,
            why="other virtual machines use the CPUs of this one: no command here mends that; another host or dedicated"
            " CPUs do",
        )

    def _stopped(self) -> Iterator[Finding]:
        before, after = self._throttled, _throttled()
        if before is not None and after is not None and after[0]:
            periods, stopped = after[0] - before[0], after[1] - before[1]
            total = after[1] / after[0]
            now = periods > 0 and stopped / periods > _THROTTLED_SHARE
            yield limit(
                "throttling",
                found=f"stopped in {stopped:,} of {periods:,} periods now, {total * 100:.1f} % of all so far",
                needed="never",
                enough=not now and total <= _THROTTLED_SHARE,
                otherwise=Verdict.BAD if now else Verdict.WARN,
                mend=_without_quota(),
                why="the control group stops the client when its CPU quota is used up: it looks like a slow database",
            )
        if self._slowed is not None:
            events = (_thermal_events() or 0) - self._slowed
            yield limit(
                "CPU temperature",
                found=f"slowed down {events:,} times now, {self._slowed:,} times since the start",
                needed="never",
                enough=events == 0,
                otherwise=Verdict.WARN,
                mend=None,
                why="the CPUs are too hot and slow down: figures fall while the run lasts; see to the cooling",
            )

    def _swapped(self) -> Iterator[Finding]:
        now = psutil.swap_memory()
        if not now.total:
            return
        moved = now.sin + now.sout - self._swap.sin - self._swap.sout
        yield limit(
            "swap",
            found=f"{format_bytes(now.used)} used, {format_bytes(moved)} moved now",
            needed="none moved",
            enough=moved == 0,
            otherwise=Verdict.WARN,
            mend=Mend("sudo swapoff -a && sudo swapon -a", "the shell, when memory is free again"),
            why="pages of the client or the database come from the disk while the run lasts",
        )


def shared(same_host: bool) -> Finding:
    """Whether client and server share this machine's CPUs."""
    cores = client_facts()["cores_usable"]
    if not same_host:
        return Finding("place", Verdict.OK, "the server is on another machine")
    return Finding(
        "place",
        Verdict.INFO,
        f"the server is on this machine, with {counted(cores, 'CPU')}",
        "",
        None,
        "client and server take CPU from each other; for absolute figures drive from another machine",
    )


def _cpu_seconds() -> dict[tuple[int, str], float]:
    """CPU seconds of the other processes that we may look at, by pid and name."""
    found: dict[tuple[int, str], float] = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None and process.pid != os.getpid():
            found[process.pid, str(process.info["name"])] = times.user + times.system
    return found


def _throttled() -> tuple[int, int] | None:
    """Periods of our control group, and those in which it was stopped."""
    for path in (Path("/sys/fs/cgroup") / own_group() / "cpu.stat", Path("/sys/fs/cgroup/cpu/cpu.stat")):
        try:
            fields = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
        except OSError:
            continue
        if "nr_periods" in fields:
            return int(fields["nr_periods"]), int(fields["nr_throttled"])
    return None


def _thermal_events() -> int | None:
    """How often cores were slowed down for their heat; None where the system does not count it."""
    lines = [first_line(path) for path in _CPUS.glob("cpu[0-9]*/thermal_throttle/core_throttle_count")]
    counts = [int(line) for line in lines if line is not None and line.isdigit()]
    return sum(counts) if counts else None
