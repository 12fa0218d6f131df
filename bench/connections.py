"""Ten thousand connections: opened in time, all of them served, small."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from engine_client import run
from table import Result
from window import Missing

from fake import fake

OPEN_S = 30.0
SILENT_S = 10.0
EACH_KIB = 32.0
#: The kernel may leave a socket out of a listing when others change meanwhile.
LOOKS_AT_ONCE = 4


class Watch:
    """The engine's memory before and with its connections, and the kernel's account of each of them."""

    def __init__(self, port: int, connections: int) -> None:
        self.port, self.connections = port, connections
        self.ready_s = self.open_s = 0.0
        self.before_kib = self.most_kib = 0
        self.silent_s = 0.0
        self.looks = self.missing = 0
        self.begun: list[float] = []

    def __call__(self, pid: int, entry: dict[str, Any]) -> None:
        """A line of the driver."""
        now = time.monotonic()
        if entry.get("ready"):
            self.ready_s, self.before_kib = now, resident_kib(pid)
        elif "connected" in entry:
            if not self.begun:
                self.open_s = now - self.ready_s - entry["seconds"]
            self.begun.append(now)
            self.most_kib = max(self.most_kib, resident_kib(pid))
            # each has had time to be served, and every few seconds is enough
            if now - self.begun[0] > SILENT_S / 2 and len(self.begun) % 3 == 0:
                self.look()

    def look(self) -> None:
        """How long ago each connection received something."""
        words = ["ss", "-tinHO", "state", "established", f"( dport = :{self.port} )"]
        silent: dict[str, float] = {}
        for _ in range(LOOKS_AT_ONCE):
            said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            for end, ms in re.findall(r"^\s*\d+ +\d+ +(\S+) .*?lastrcv:(\d+)", said, re.MULTILINE):
                silent.setdefault(end, int(ms) / 1e3)
            if len(silent) >= self.connections:
                break
        self.missing = max(self.missing, self.connections - len(silent))
        self.silent_s = max(self.silent_s, *silent.values())
        self.looks += 1
        print(
            f"  connections: {len(silent)}, the longest silence is {max(silent.values()):.1f} s",
            file=sys.stderr,
            flush=True,
        )


def resident_kib(pid: int) -> int:
    """Resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def measure(folder: Path, connections: int = 10_000, seconds: float = 24.0) -> list[Result]:
    """The row. A silence of s seconds seen every 3 s means that none was served less often than every s + 3 s."""
    name = f"{connections:,} connections to the fake server"
    bar = f"open within {OPEN_S:g} s; each commits at least every {SILENT_S:g} s; ≤ {EACH_KIB:g} KiB each"
    try:
        if shutil.which("ss") is None:
            raise Missing("ss (iproute2) is not installed")
        with fake(folder) as server:
            watch = Watch(int(server.where), connections)
            ended = run(server.url, "--connections", str(connections), "--seconds", str(seconds), watch=watch)
    except Missing as error:
        return [Result(name, bar, "not measured", False, str(error))]
    each_kib = (watch.most_kib - watch.before_kib) / connections
    silent_s = watch.silent_s + 3.0
    met = (
        watch.open_s <= OPEN_S
        and silent_s <= SILENT_S
        and each_kib <= EACH_KIB
        and watch.looks > 0
        and not watch.missing
    )
    return [
        Result(
            name,
            bar,
            f"open after {watch.open_s:.1f} s; each at least every {silent_s:.1f} s; {each_kib:.1f} KiB each",
            met,
            f"{ended.figures['queries'] / ended.figures['seconds']:,.0f} queries/s"
            + (f"; {watch.missing} connections were not open all the time" if watch.missing else ""),
        )
    ]
