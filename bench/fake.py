"""The fake server as a process of its own, answering what the benchmarks ask."""

from __future__ import annotations

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
ROW = "68487932199-96439406143-93774651418-41631865787-96406072701-20604855487-25459966574-28203206787-41238978918-19503783441"


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


def program() -> Path:
    """The server's program, which ``make bench`` builds."""
    built = ROOT / "target" / "release" / "fakeserver"
    if not built.exists():
        if shutil.which("cargo") is None:
            raise Missing("the fake server is not built and cargo is not here")
        subprocess.run(["cargo", "build", "--locked", "--release", "-p", "fakeserver"], cwd=ROOT, check=True)
    return built


@contextmanager
def fake(folder: Path, *, socket: bool = False, delay_ms: float = 0) -> Iterator[Fake]:
    """A server on a free port or a unix socket in ``folder``; every point select gets one row after the delay."""
    rule: dict[str, object] = {
        "match": "SELECT c FROM sbtest",
        "columns": [{"name": "c", "type": "text"}],
        "rows": [[ROW]],
    }
    if delay_ms:
        rule["delay_ms"] = delay_ms
    script = folder / "fake.json"
    script.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    command = [str(program()), "--protocol", "mysql", "--script", str(script)]
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
