"""The machine that dbdyno runs on: what decides how fast a client, and a database beside it, can be."""

from __future__ import annotations

import functools
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

_SYS = Path("/sys")


@functools.cache
def _constant_facts() -> dict[str, Any]:
    affinity = getattr(psutil.Process(), "cpu_affinity", None)
    return {
        "cpu_model": _cpu_model(),
        "cores": psutil.cpu_count(logical=True),
        "cores_physical": psutil.cpu_count(logical=False),
        "cores_usable": len(affinity()) if affinity is not None else psutil.cpu_count(logical=True),
        "cpu_governor": first_line(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": first_line(_SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
        "memory_bytes": psutil.virtual_memory().total,
        "swap_bytes": psutil.swap_memory().total,
        "numa_nodes": len(list((_SYS / "devices/system/node").glob("node[0-9]*"))) or None,
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "limits": container_limits(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "dbdyno": _our_version(),
    }


def client_facts(data: Path | None = None) -> dict[str, Any]:
    """CPU, memory, kernel, container limits and versions; what changes (load, free memory) as it is now.

    ``data``: a path whose disk is to be described, the store's or a database file's. None where the system
    does not tell.
    """
    memory = psutil.virtual_memory()
    return {
        **_constant_facts(),
        "disk": disk_of(data or Path.cwd()),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "memory_available_bytes": memory.available,
    }


def disk_of(path: Path) -> dict[str, Any] | None:
    """Device, file system, size and free bytes of the file system that holds ``path`` (or its folder)."""
    folder = path.absolute()
    while not folder.exists():
        folder = folder.parent
    folder = folder.resolve()
    found = None
    for part in psutil.disk_partitions(all=True):
        holds = folder == Path(part.mountpoint) or Path(part.mountpoint) in folder.parents
        if holds and (found is None or len(part.mountpoint) >= len(found.mountpoint)):
            found = part
    if found is None:
        return None
    try:
        usage = psutil.disk_usage(str(folder))
    except OSError:
        return None
    return {
        "device": found.device,
        "filesystem": found.fstype,
        "options": found.opts,
        "bytes": usage.total,
        "free_bytes": usage.free,
        "rotational": _rotational(folder),
    }


def _rotational(folder: Path) -> bool | None:
    """Whether the disk turns, as the kernel believes; None for network and memory file systems."""
    number = folder.stat().st_dev
    block = _SYS / "dev/block" / f"{os.major(number)}:{os.minor(number)}"
    for queue in (block / "queue", block / ".." / "queue"):
        if (line := first_line(queue / "rotational")) is not None:
            return line == "1"
    return None


def container_limits() -> dict[str, float | int | None]:
    """CPUs and bytes that the control group allows (version 2, or 1); None where there is no limit."""
    base = Path("/sys/fs/cgroup")
    own = base / own_group()
    cpus: float | None = None
    memory: int | None = None
    for folder in dict.fromkeys((own, *own.parents)):
        if base not in (folder, *folder.parents):
            break
        quota = (first_line(folder / "cpu.max") or "").split()
        if len(quota) == 2 and quota[0] != "max":
            share = int(quota[0]) / int(quota[1])
            cpus = share if cpus is None else min(cpus, share)
        limit = first_line(folder / "memory.max")
        if limit is not None and limit.isdigit():
            memory = int(limit) if memory is None else min(memory, int(limit))
    quota_us = first_line(base / "cpu/cpu.cfs_quota_us")
    period_us = first_line(base / "cpu/cpu.cfs_period_us")
    if cpus is None and quota_us is not None and period_us is not None and int(quota_us) > 0:
        cpus = int(quota_us) / int(period_us)
    return {"cpus": cpus, "memory_bytes": memory}


def own_group() -> str:
    """Our control group's folder below that of version 2; "" where there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "")


def _cpu_model() -> str | None:
    """The processor's name; psutil and platform do not know it on Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or None
    found = re.search(r"^(?:model name|Model|Hardware|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def first_line(path: Path) -> str | None:
    """The first line of a small file, None where it cannot be read."""
    try:
        return path.read_text().split("\n", 1)[0].strip()
    except (OSError, UnicodeDecodeError):
        return None


def _our_version() -> str:
    try:
        return version("dbdyno")
    except PackageNotFoundError:
        return "unknown"
