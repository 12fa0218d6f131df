"""A password in a real run: in no output, log, store, report or process title, and not with the hooks."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.command_line import CommandLine

from dbdyno.cli.app import run_words
from dbdyno.targets.target import open_target

PASSWORD = "Zx9-q4w-unmistakable"
#: Percent-encoded as a URL of a careful user has it, and what could be left of it anywhere.
TRACES = (PASSWORD, "q4w-unmistakable", "unmistakable")
SMALL = ("--opt", "table_size=100")

PLAN = """\
name = "secret"
connections = [1, 2]
duration = "0.3s"
[[target]]
name = "left"
url = "{url}"
[[target]]
name = "right"
url = "{url}"
[[workload]]
name = "oltp_read_write"
options = {{ table_size = 100 }}
[hooks]
before_trial = "env > hook.environment; echo $DBDYNO_URL"
"""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in ("postgresql", "mariadb")])
def url_of_bench(request: pytest.FixtureRequest) -> str:
    """A URL with the user ``bench`` and its password."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    control = open_target(url).control()
    try:
        if request.param == "postgresql":
            if not control.fetch("SELECT 1 FROM pg_roles WHERE rolname = 'bench'"):
                control.execute(f"CREATE ROLE bench SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        else:
            control.execute(f"CREATE USER IF NOT EXISTS 'bench'@'%' IDENTIFIED BY '{PASSWORD}'")
            control.execute("GRANT ALL ON *.* TO 'bench'@'%'")
    finally:
        control.close()
    scheme, _, rest = url.partition("://")
    return f"{scheme}://bench:{PASSWORD}@{rest.rpartition('@')[2]}"


def without_password(url: str) -> str:
    return url.replace(f":{PASSWORD}", "")


class Titles:
    """The words and environments of a process and of all that it starts, looked at while they run."""

    def __init__(self, pid: int) -> None:
        self.words: set[str] = set()
        self.environments: set[str] = set()
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.is_set():
            for process in self._alive():
                try:
                    self.words.add("\0".join(process.cmdline()))
                    self.environments.add(repr(process.environ()))
                except psutil.Error:
                    continue
            time.sleep(0.05)

    def _alive(self) -> Iterator[psutil.Process]:
        try:
            yield self._process
            yield from self._process.children(recursive=True)
        except psutil.Error:
            return

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def traces_in(folder: Path, leave_out: Path | None = None) -> list[str]:
    """Files below a folder that hold a trace of the password."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path != leave_out:
            content = path.read_bytes()
            found += [f"{path.name}: {trace}" for trace in TRACES if trace.encode() in content]
    return found


def test_in_the_url_of_a_bench(dbdyno: CommandLine, url_of_bench: str) -> None:
    words = ("bench", "oltp_read_write", url_of_bench, "-d", "1s", "--warmup", "0s", *SMALL, "--json")
    process = dbdyno.start(*words, "--store", "s.db")
    # The moment until Python has started cannot be helped; from when the title was replaced, it must stay.
    while not any("***" in word for word in psutil.Process(process.pid).cmdline()):
        assert process.poll() is None, "the title was never replaced"
        time.sleep(0.01)
    titles = Titles(process.pid)
    stdout, stderr = process.communicate(timeout=120)
    titles.stop()
    assert process.returncode == 0, stderr
    assert titles.words, "the title was not looked at"
    for place in (stdout, stderr, *titles.words, *titles.environments):
        assert not [trace for trace in TRACES if trace in place]
    assert '"committed"' in stdout
    assert traces_in(dbdyno.folder) == []
    assert traces_in(dbdyno.home) == []


def test_in_a_plan_with_hooks_and_a_report(
    dbdyno: CommandLine, url_of_bench: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = dbdyno.write("plan.toml", PLAN.format(url=url_of_bench))
    ended = dbdyno.ok("run", "plan.toml", "--store", "s.db")
    assert not [trace for trace in TRACES if trace in ended.stdout + ended.stderr]
    assert (dbdyno.folder / "reports" / "secret-1" / "report.html").exists()
    assert "DBDYNO_TRIAL" in (dbdyno.folder / "hook.environment").read_text()
    assert traces_in(dbdyno.folder, leave_out=plan) == []
    monkeypatch.chdir(dbdyno.folder)
    monkeypatch.setenv("DBDYNO_STORE", "s.db")
    for line in (
        "list --json",
        "show secret-1 --json",
        "show secret-1/oltp_read_write/left/c1/r1",
        "compare secret-1",
        "export secret-1",
        "run plan.toml --dry-run",
        "run plan.toml --set rounds=none",
    ):
        run_words(line.split())
        said = capsys.readouterr()
        assert said.out + said.err, line
        assert not [trace for trace in TRACES if trace in said.out + said.err], line


def test_in_the_variable(dbdyno: CommandLine, url_of_bench: str) -> None:
    dbdyno.write("plan.toml", PLAN.format(url=without_password(url_of_bench)))
    ended = dbdyno.run("run", "plan.toml", "--store", "s.db", env={"DBDYNO_PASSWORD": PASSWORD})
    assert ended.status in (0, 1), ended.stderr
    states = [trial["state"] for trial in dbdyno.ok("show", "secret-1", "--store", "s.db", "--json").json["trials"]]
    assert states == ["done"] * 4
    assert not [trace for trace in TRACES if trace in ended.stdout + ended.stderr]
    assert "DBDYNO_TRIAL" in (dbdyno.folder / "hook.environment").read_text()
    assert traces_in(dbdyno.folder) == [], "a hook was given the password"


def test_typed_on_the_terminal(dbdyno: CommandLine, mariadb_url: str) -> None:
    control = open_target(mariadb_url).control()
    try:
        control.execute(f"CREATE USER IF NOT EXISTS 'typist'@'%' IDENTIFIED BY '{PASSWORD}'")
        control.execute("GRANT ALL ON *.* TO 'typist'@'%'")
    finally:
        control.close()
    url = mariadb_url.replace("root@", "typist@")
    pid, terminal = pty.fork()
    if pid == 0:
        words = ["-m", "dbdyno", "bench", "oltp_point_select", url, "-n", "10", *SMALL, "--ask-password"]
        os.chdir(dbdyno.folder)
        os.execve(sys.executable, [sys.executable, *words], dbdyno.environment({"TERM": "dumb"}))
    screen = b""
    typed = False
    with contextlib.suppress(OSError):  # EIO: it has ended
        while chunk := os.read(terminal, 4096):
            screen += chunk
            if not typed and b"Password for" in screen:
                os.write(terminal, f"{PASSWORD}\n".encode())
                typed = True
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    text = screen.decode()
    assert os.waitstatus_to_exitcode(status) == 0, text
    assert text.count("Password for") == 1
    assert "closed loop" in text
    assert not [trace for trace in TRACES if trace in text], "what was typed was echoed"


def test_in_a_traceback(dbdyno: CommandLine, mariadb_url: str) -> None:
    url = mariadb_url.replace("root@", f"nobody:{PASSWORD}@")
    ended = dbdyno.run("--debug", "bench", "oltp_read_write", url, *SMALL)
    assert ended.status == 1
    assert "Traceback" in ended.stderr
    assert not [trace for trace in TRACES if trace in ended.stdout + ended.stderr]


def test_in_the_url_of_a_store(dbdyno: CommandLine, url_of_bench: str) -> None:
    scheme, _, rest = url_of_bench.partition("://")
    place = f"{scheme}://{rest}"
    ended = dbdyno.run("bench", "oltp_point_select", "sqlite:///a.db", "-n", "10", *SMALL, "--store", place)
    assert ended.status == 0, ended.stderr
    listed = dbdyno.ok("list", "--store", place)
    for each in (ended, listed):
        assert not [trace for trace in TRACES if trace in each.stdout + each.stderr]
