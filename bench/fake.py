"""The fake server as a process of its own, answering what the benchmarks ask."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from window import Missing

ROOT = Path(__file__).parent.parent
#: Above this share of its core the server, not the client, sets the pace.
BOUND_SHARE = 0.9
ROW = "-".join(["68487932199"] * 10)  # as long as sysbench's column c


@dataclass(frozen=True)
class Fake:
    """A running fake server: where it listens (a port as text, or a socket's path) and its process."""

    where: str
    pid: int

    @property
    def url(self) -> str:
        """For dbdyno."""
        if self.where.startswith("/"):
            return f"mysql://root@localhost/dbdyno?socket={self.where}"
        return f"mysql://root@127.0.0.1:{self.where}/dbdyno?tls=disable"


@functools.cache
def program() -> Path:
    """The server's program, built if need be."""
    built = ROOT / "target" / "release" / "fakeserver"
    if shutil.which("cargo") is not None:
        subprocess.run(["cargo", "build", "--quiet", "--locked", "--release", "-p", "fakeserver"], cwd=ROOT, check=True)
    elif not built.exists():
        raise Missing("the fake server is not built and cargo is not here")
    return built


@contextmanager
def fake(folder: Path, *, socket: bool = False, delay_ms: float = 0) -> Iterator[Fake]:
    """A server on a free port or a unix socket in ``folder``; every point select gets one row after the delay."""
    rule = {
        "match": "SELECT c FROM sbtest",
        "columns": [{"name": "c", "type": "text"}],
        "rows": [[ROW]],
    }
    script = folder / "fake.json"
    script.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    command = [str(program()), "--protocol", "mysql", "--script", str(script)]
    if delay_ms:
        command += ["--delay", f"{delay_ms:g}ms"]
    path = folder / "fake.sock"
    if socket:
        command += ["--socket", str(path)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line:
            raise Missing(f"the fake server does not start: {' '.join(command[1:])}")
        yield Fake(str(path) if socket else line.rpartition(":")[2], process.pid)
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(20)
        process.stdout.close()
