"""The scripted server is what its script says to the clients that tests use it with: PyMySQL, psycopg, sysbench.

A fault that it would not make is a fault that no test of dbdyno has seen.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql
import pytest
from tests.fake import DEADLOCK, DEADLOCK_POSTGRESQL, FakeServer, Recorded

Protocol = Literal["mysql", "postgresql"]
PROTOCOLS: list[Protocol] = ["mysql", "postgresql"]
#: What a client raises when its connection goes wrong.
BROKEN = (pymysql.err.Error, psycopg.Error, OSError)


@contextmanager
def connected(server: FakeServer, **more: Any) -> Iterator[Any]:
    """A connection in autocommit that gives up after three seconds."""
    if server.protocol == "mysql":
        connection: Any = pymysql.connect(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password or "",
            database=server.database,
            autocommit=True,
            read_timeout=3,
            connect_timeout=3,
            **more,
        )
    else:
        connection = psycopg.connect(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password,
            dbname=server.database,
            connect_timeout=3,
            autocommit=True,
            **more,
        )
    with closing(connection):
        yield connection


def run(connection: Any, sql: str, *values: object) -> Any:
    cursor = connection.cursor()
    cursor.execute(sql, values or None)
    return cursor.fetchall() if cursor.description else cursor.rowcount


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_statements_without_a_rule_succeed(protocol: Protocol) -> None:
    with FakeServer(protocol) as server, connected(server) as connection:
        assert list(run(connection, "SELECT 1, f(2, 3) FROM t")) == [(1, 1)]
        assert run(connection, "UPDATE t SET a = 1") == 1
        run(connection, "CREATE TABLE t (a INT)")
        texts = [sql for sql in server.statements() if not sql.startswith("SET ")]
        assert texts == ["SELECT 1, f(2, 3) FROM t", "UPDATE t SET a = 1", "CREATE TABLE t (a INT)"]
        assert server.counts() == (len(server.recorded()), 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_canned_rows_keep_their_types(protocol: Protocol) -> None:
    columns = [{"name": n, "type": n} for n in ("int", "double", "decimal", "text", "timestamp")]
    rows = [[-7, 0.5, "12.30", "grün", "2024-02-29 12:30:00"], [None] * 5]
    rules = [{"match": "SELECT", "columns": columns, "rows": rows}]
    with FakeServer(protocol, rules=rules) as server, connected(server) as connection:
        full, empty = run(connection, "SELECT anything FROM t")
    assert full[:4] == (-7, 0.5, Decimal("12.30"), "grün")
    assert full[4].isoformat() == "2024-02-29T12:30:00"
    assert empty == (None,) * 5


def test_transaction_status_is_tracked_on_mysql() -> None:
    rules = [{"match": "COMMIT", "nth": 2, "error": DEADLOCK}]
    with FakeServer("mysql", rules=rules) as server, connected(server) as connection:
        run(connection, "BEGIN")
        assert connection.server_status & 1
        run(connection, "COMMIT")
        assert not connection.server_status & 1
        with pytest.raises(pymysql.err.OperationalError) as raised:
            run(connection, "COMMIT")
        assert raised.value.args[0] == 1213
        run(connection, "COMMIT")


def test_transaction_status_is_tracked_on_postgresql() -> None:
    rules = [{"match": "UPDATE", "error": DEADLOCK_POSTGRESQL}]
    with FakeServer("postgresql", rules=rules) as server, connected(server) as connection:
        run(connection, "BEGIN")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.DeadlockDetected):
            run(connection, "UPDATE t SET a = 1")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            run(connection, "SELECT 1")
        cursor = connection.execute("COMMIT")
        assert cursor.statusmessage == "ROLLBACK"
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_psycopg_prepares_pipelines_and_copies() -> None:
    with FakeServer("postgresql") as server, connected(server, prepare_threshold=0) as connection:
        for value in (3, 2**40):
            assert run(connection, "SELECT c FROM t WHERE id = %s AND d = %s", value, "x") == [(1,)]
        with connection.pipeline():
            first = connection.execute("SELECT %s", (Decimal("1.50"),))
            second = connection.execute("INSERT INTO t VALUES (%s, %s)", (None, 1.5))
            assert (first.fetchall(), second.rowcount) == ([(1,)], 1)
        assert connection.cursor(binary=True).execute("SELECT 1").fetchall() == [(1,)]
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write_row((1, 2))
        recorded = [(entry.sql, entry.values) for entry in server.recorded()]
    assert recorded[:2] == [
        ("SELECT c FROM t WHERE id = $1 AND d = $2", [3, "x"]),
        ("SELECT c FROM t WHERE id = $1 AND d = $2", [2**40, "x"]),
    ]
    assert ("SELECT $1", ["1.50"]) in recorded
    assert ("INSERT INTO t VALUES ($1, $2)", [None, 1.5]) in recorded
    assert recorded[-1] == ("COPY t FROM STDIN", [])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", ["reset", "half_packet", "garbage", "wrong_length", "silence"])
def test_a_broken_answer_breaks_the_client_not_the_server(protocol: Protocol, fault: str) -> None:
    rules = [{"match": "SELECT", "nth": 1, "fault": fault}]
    with FakeServer(protocol, rules=rules) as server:
        if fault == "silence" and protocol == "postgresql":
            with connected(server) as connection:
                connection.pgconn.send_query(b"SELECT 1")
                connection.pgconn.flush()
                began = time.monotonic()
                with socket.socket(fileno=socket.dup(connection.pgconn.socket)) as raw:
                    raw.settimeout(0.5)
                    with pytest.raises(TimeoutError):
                        raw.recv(1)
                assert time.monotonic() - began >= 0.4
        else:
            with pytest.raises(BROKEN), connected(server) as connection:
                run(connection, "SELECT 1")
        with connected(server) as connection:
            assert list(run(connection, "SELECT 1")) == [(1,)]
        assert server.counts()[1] == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_slow_and_late_answers_arrive_whole(protocol: Protocol) -> None:
    rules = [
        {"match": "SELECT 1", "fault": "slow_bytes"},
        {"match": "SELECT 2", "delay_ms": 300},
    ]
    with FakeServer(protocol, rules=rules) as server, connected(server) as connection:
        assert list(run(connection, "SELECT 1")) == [(1,)]
        began = time.monotonic()
        assert list(run(connection, "SELECT 2")) == [(1,)]
        assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", ["refuse", "reset", "silence", "error"])
def test_only_the_chosen_connection_fails(protocol: Protocol, fault: str) -> None:
    with FakeServer(protocol, connect={"fault": fault, "nth": 2}) as server:
        for number in (1, 2, 3):
            if number == 2:
                with pytest.raises(BROKEN), connected(server) as connection:
                    run(connection, "SELECT 1")
            else:
                with connected(server) as connection:
                    assert list(run(connection, "SELECT 1")) == [(1,)]


def test_a_server_that_is_full_says_so() -> None:
    with FakeServer("mysql", connect={"fault": "error"}) as server:
        with pytest.raises(pymysql.err.OperationalError) as raised, connected(server):
            pass
        assert raised.value.args[0] == 1040
    error = {"code": "53300", "message": "sorry, too many clients already"}
    with (
        FakeServer("postgresql", connect={"fault": "error", "error": error}) as server,
        pytest.raises(psycopg.OperationalError, match="too many clients"),
        connected(server),
    ):
        pass


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("options", [(), ("--cleartext",)])
def test_only_the_right_password_is_let_in(protocol: Protocol, options: tuple[str, ...]) -> None:
    with FakeServer(protocol, password="right", options=options) as server:
        with connected(server) as connection:
            assert list(run(connection, "SELECT 1")) == [(1,)]
        server.password = "wrong"
        with pytest.raises((pymysql.err.OperationalError, psycopg.OperationalError)) as raised, connected(server):
            pass
        assert "1045" in str(raised.value) or "password authentication failed" in str(raised.value)


def sysbench(server: FakeServer, *words: str) -> subprocess.CompletedProcess[str]:
    prefix = {"mysql": "mysql", "postgresql": "pgsql"}[server.protocol]
    options = {"host": server.host, "port": server.port, "user": server.user, "db": server.database}
    if server.password:
        options["password"] = server.password
    return subprocess.run(
        ["sysbench", f"--db-driver={prefix}"]
        + [f"--{prefix}-{name}={value}" for name, value in options.items()]
        + ["--time=0", "--events=5", "--rand-seed=7", "--tables=1", "--table-size=100", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def assert_read_write_events(recorded: list[Recorded], events: int) -> None:
    """Statements and values of sysbench's oltp_read_write: 20 an event, ids in the table."""
    counts = Counter(entry.sql.split(" ")[0] for entry in recorded)
    assert counts == Counter(
        SELECT=14 * events, UPDATE=2 * events, DELETE=events, INSERT=events, BEGIN=events, COMMIT=events
    )
    for entry in recorded:
        assert len(entry.values) == entry.sql.count("?") + entry.sql.count("$")
        if entry.sql.startswith("SELECT c FROM sbtest1 WHERE id="):
            (row,) = entry.values
            assert 1 <= row <= 100
        if entry.sql.startswith("INSERT"):
            row, k, c, pad = entry.values
            assert isinstance(row, int)
            assert isinstance(k, int)
            assert (len(c), len(pad)) == (119, 59)


@pytest.mark.needs("sysbench")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sysbench_runs_unchanged(protocol: Protocol) -> None:
    with FakeServer(protocol) as server:
        prepared = sysbench(server, "oltp_read_write", "prepare")
        assert prepared.returncode == 0, prepared.stdout
        loaded = len(server.recorded())
        done = sysbench(server, "oltp_read_write", "run")
        assert done.returncode == 0, done.stdout
        assert "transactions:                        5 " in done.stdout
        assert_read_write_events(server.recorded()[loaded:], events=5)
        statements, _ = server.counts()
        assert statements == len(server.recorded())


@pytest.mark.needs("sysbench")
def test_sysbench_retries_a_deadlock() -> None:
    with FakeServer("mysql", rules=[{"match": "UPDATE", "nth": 3, "error": DEADLOCK}]) as server:
        done = sysbench(server, "oltp_update_index", "--mysql-ignore-errors=1213", "run")
        assert done.returncode == 0, done.stdout
        assert "ignored errors:                      1 " in done.stdout


def proxied(url: str, rules: Sequence[dict[str, Any]] = ()) -> FakeServer:
    """A recording proxy before a real server, with that server's user and database."""
    parts = urlsplit(url)
    protocol: Protocol = "postgresql" if parts.scheme == "postgresql" else "mysql"
    server = FakeServer(protocol, proxy=f"{parts.hostname}:{parts.port}", rules=rules)
    server.user = unquote(parts.username or "")
    server.password = unquote(parts.password) if parts.password else None
    server.database = parts.path.lstrip("/")
    return server


def assert_proxy_records_sysbench(url: str) -> None:
    with proxied(url) as server:
        prepared = sysbench(server, "oltp_read_write", "prepare")
        assert prepared.returncode == 0, prepared.stdout
        try:
            loaded = len(server.recorded())
            done = sysbench(server, "oltp_read_write", "run")
            assert done.returncode == 0, done.stdout
            assert_read_write_events(server.recorded()[loaded:], events=5)
        finally:
            assert sysbench(server, "oltp_read_write", "cleanup").returncode == 0


def assert_proxy_records_values(url: str) -> None:
    with proxied(url) as server, connected(server) as connection:
        marks = "%s, %s, %s"
        if server.protocol == "postgresql":
            marks = "%s::bigint, %s::text, %s::numeric"
            connection.prepare_threshold = 0
        assert list(run(connection, f"SELECT {marks}", 2**40, "grün ?", Decimal("1.50"))) == [
            (2**40, "grün ?", Decimal("1.50"))
        ]
        with pytest.raises((pymysql.err.Error, psycopg.Error)):
            run(connection, "SELECT * FROM no_such_table")
        assert list(run(connection, "SELECT 1")) == [(1,)]
        recorded = server.recorded()
    assert recorded[-1].sql == "SELECT 1"
    if server.protocol == "postgresql":
        # What could not be prepared was not executed.
        assert recorded[-2].values == [2**40, "grün ?", "1.50"]
    else:
        assert recorded[-2].sql == "SELECT * FROM no_such_table"
        assert recorded[-3].sql == "SELECT 1099511627776, 'grün ?', 1.50"


def test_proxy_records_what_reaches_postgresql(postgresql_url: str) -> None:
    assert_proxy_records_values(postgresql_url)


def test_proxy_records_what_reaches_mariadb(mariadb_url: str) -> None:
    assert_proxy_records_values(mariadb_url)


def test_proxy_records_what_reaches_mysql(mysql_url: str) -> None:
    assert_proxy_records_values(mysql_url)


def assert_proxy_makes_faults(url: str) -> None:
    """An error comes from nowhere, a reset before COMMIT loses the row, a reset at its answer keeps it."""
    deadlock = DEADLOCK_POSTGRESQL if url.startswith("postgresql") else DEADLOCK
    rules = [
        {"match": "INSERT INTO fake_t VALUES (2)", "error": deadlock},
        {"match": "COMMIT /* lost */", "fault": "reset"},
        {"match": "COMMIT /* kept */", "fault": "reset", "at": "answer"},
        {"match": "SELECT 'late'", "delay_ms": 200},
    ]
    with proxied(url, rules) as server:
        with connected(server) as connection:
            run(connection, "DROP TABLE IF EXISTS fake_t")
            run(connection, "CREATE TABLE fake_t (id INT)")
            run(connection, "BEGIN")
            run(connection, "INSERT INTO fake_t VALUES (1)")
            with pytest.raises((pymysql.err.OperationalError, psycopg.errors.DeadlockDetected)):
                run(connection, "INSERT INTO fake_t VALUES (2)")
            run(connection, "ROLLBACK")
            assert list(run(connection, "SELECT id FROM fake_t")) == []
            began = time.monotonic()
            run(connection, "SELECT 'late'")
            assert time.monotonic() - began >= 0.2
        for value, comment in ((3, "lost"), (4, "kept")):
            with connected(server) as connection:
                run(connection, "BEGIN")
                run(connection, "INSERT INTO fake_t VALUES (%s)", value)
                with pytest.raises(BROKEN):
                    run(connection, f"COMMIT /* {comment} */")
        with connected(server) as connection:
            assert list(run(connection, "SELECT id FROM fake_t")) == [(4,)]
            run(connection, "DROP TABLE fake_t")


def test_proxy_makes_faults_before_postgresql(postgresql_url: str) -> None:
    assert_proxy_makes_faults(postgresql_url)


def test_proxy_makes_faults_before_mariadb(mariadb_url: str) -> None:
    assert_proxy_makes_faults(mariadb_url)


def test_a_proxy_refuses_what_it_cannot_do() -> None:
    rules = [{"match": "SELECT", "fault": "garbage"}]
    with pytest.raises(RuntimeError, match="with --proxy the fault can only be reset or silence"):
        FakeServer("mysql", proxy="127.0.0.1:1", rules=rules).__enter__()


@pytest.mark.needs("sysbench")
def test_proxy_records_sysbench_on_postgresql(postgresql_url: str) -> None:
    assert_proxy_records_sysbench(postgresql_url)


@pytest.mark.needs("sysbench")
def test_proxy_records_sysbench_on_mariadb(mariadb_url: str) -> None:
    assert_proxy_records_sysbench(mariadb_url)


@pytest.mark.needs("sysbench")
def test_proxy_records_sysbench_on_mysql(mysql_url: str) -> None:
    assert_proxy_records_sysbench(mysql_url)
