"""A scripted database server for tests: `FakeServer` starts the `fakeserver` program of this repository.

    with FakeServer("mysql", rules=[{"match": "COMMIT", "nth": 2, "error": DEADLOCK}]) as server:
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="u")
        ...
        assert server.recorded()[0] == Recorded(conn=1, sql="BEGIN", values=[])

The program is built once per test session by `cargo build`. Anybody may log in unless `password` is given.
Without a rule SELECT gives one row of ones, as many as it has columns, INSERT, UPDATE and DELETE affect one
row, everything else succeeds; transactions are tracked; prepared statements, pipelines and COPY FROM STDIN work.

**Rules** (the first that matches and whose turn it is answers):

- `match`: a prefix of the statement or a regular expression found in it; letter case does not count. A prepared
  statement is matched by its text with `?` or `$1`.
- `nth`: only the n-th match, counted over all connections from 1.
- `at`: "execute" (default), "prepare" or, through a proxy, "answer".
- `columns`: `[{"name": "c", "type": "text"}]`, type int, double, decimal, text or timestamp; `rows`: lists of
  values; `parameters`: types that a prepared statement on PostgreSQL describes (text without it).
- `repeat`: the rows are given so often, one after the other.
- `affected`: rows affected.
- `error`: `{"code": 1213, "message": "..."}`, or a SQLSTATE as code; `sqlstate` where it is not the code's own.
- `delay_ms`: wait before the answer; or `delay`: "300us", "exponential:2ms" (mean), "lognormal:2ms,0.5" (median,
  sigma of the logarithm), "normal:2ms,300us", "uniform:1ms,3ms", drawn with the option `--seed`. The option `--delay`
  is for all statements whose rule has none.
- `fault`: "reset", "silence", "half_packet", "slow_bytes", "garbage" or "wrong_length".

**connect** (one or a list): `{"fault": "refuse" | "reset" | "silence" | "error", "error": {...}, "nth": n,
"delay_ms": n}`. "refuse" resets before a byte is sent, "reset" in the middle of logging in.

**stalls**: `[{"at_s": 5, "for_s": 1}]`: the whole server stands still, counted from the first statement, or from the
first that matches `stalls_from`.

With `proxy="127.0.0.1:3306"` everything passes to a real server and its statements are recorded the same way.
Rules may then have `delay_ms`, `error`, and the faults "reset" and "silence"; the server does not see such a
statement. With `"at": "answer"` it executes the statement and the client gets a reset instead of the answer.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

ROOT = Path(__file__).resolve().parent.parent

#: Errors that servers send to the victim of a deadlock.
DEADLOCK = {"code": 1213, "message": "Deadlock found when trying to get lock; try restarting transaction"}
DEADLOCK_POSTGRESQL = {"code": "40P01", "message": "deadlock detected"}


@dataclass(frozen=True)
class Recorded:
    """A statement that a client sent: the connection's number from 1, the text, the values bound to it."""

    conn: int
    sql: str
    values: list[Any]


@functools.cache
def fakeserver_program() -> Path:
    """The built program; FAKESERVER names another one, which is then not built."""
    given = os.environ.get("FAKESERVER")
    if given:
        return Path(given)
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "fakeserver"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "debug" / "fakeserver"


class FakeServer:
    """A running fakeserver on a free port of 127.0.0.1; a context manager that ends it."""

    def __init__(
        self,
        protocol: Literal["mysql", "postgresql"],
        *,
        rules: Sequence[dict[str, Any]] = (),
        connect: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
        stalls: Sequence[dict[str, float]] = (),
        stalls_from: str | None = None,
        password: str | None = None,
        server_version: str | None = None,
        proxy: str | None = None,
        record: bool = True,
        options: Sequence[str] = (),
    ) -> None:
        self.protocol = protocol
        self.port = 0
        self.host = "127.0.0.1"
        self.user = "fake"
        self.database = "fake"
        self.password = password
        self._folder = tempfile.TemporaryDirectory(prefix="fakeserver")
        self._record = Path(self._folder.name, "record.jsonl")
        script: dict[str, Any] = {"rules": list(rules), "stalls": list(stalls), "stalls_from": stalls_from}
        if connect is not None:
            script["connect"] = connect if isinstance(connect, dict) else list(connect)
        script_file = Path(self._folder.name, "script.json")
        script_file.write_text(json.dumps(script))
        self._command = [
            str(fakeserver_program()),
            f"--protocol={protocol}",
            f"--script={script_file}",
            *([f"--record={self._record}"] if record else []),
            *([f"--password={password}"] if password is not None else []),
            *([f"--server-version={server_version}"] if server_version else []),
            *([f"--proxy={proxy}"] if proxy else []),
            *options,
        ]
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """How dbdyno addresses it."""
        secret = f":{self.password}" if self.password is not None else ""
        return f"{self.protocol}://{self.user}{secret}@{self.host}:{self.port}/{self.database}"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            _, errors = self._process.communicate()
            raise RuntimeError(f"fakeserver did not start: {line}{errors}")
        self.port = int(line.rsplit(":", 1)[1])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def stop(self) -> None:
        """End it as a server that is shut down: its connections close, its port refuses."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate(timeout=10)

    def kill(self) -> None:
        """End it as a server that crashes."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=10)

    def recorded(self) -> list[Recorded]:
        """All statements so far, in the order in which they arrived."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        return [Recorded(**json.loads(line)) for line in lines]

    def statements(self) -> list[str]:
        """The texts of `recorded()`."""
        return [statement.sql for statement in self.recorded()]

    def counts(self) -> tuple[int, int]:
        """Statements and connections so far, counted by the server itself."""
        assert self._process is not None
        assert self._process.stderr is not None
        self._process.send_signal(signal.SIGUSR1)
        while True:
            words = self._process.stderr.readline().split()
            if words[:1] == ["statements"]:
                return int(words[1]), int(words[3])
            if not words:
                raise RuntimeError("fakeserver has ended")
