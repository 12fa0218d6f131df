"""The drive against the scripted server: for each fault the exact counters, no hang, nothing counted twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from tests.drive.driving import Add, Counting, DriveName, Read, drive_named
from tests.fake import FakeServer

from dbdyno.drive import Job, Stop
from dbdyno.model.errors import RunError
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Load
from dbdyno.targets.family import Capabilities
from dbdyno.targets.target import open_target
from dbdyno.workload import Workload


@dataclass(frozen=True)
class Protocol:
    name: Literal["mysql", "postgresql"]
    url: str
    deadlock: dict[str, Any]
    duplicate: dict[str, Any]
    deadlock_code: str
    duplicate_code: str


PROTOCOLS = [
    Protocol(
        "mysql",
        "mysql://u@127.0.0.1:{port}/db",
        {"code": 1213, "sqlstate": "40001", "message": "Deadlock found when trying to get lock"},
        {"code": 1062, "sqlstate": "23000", "message": "Duplicate entry '1' for key 'PRIMARY'"},
        "1213",
        "1062",
    ),
    Protocol(
        "postgresql",
        "postgresql://u@127.0.0.1:{port}/db",
        {"code": "40P01", "sqlstate": "40P01", "message": "deadlock detected"},
        {"code": "23505", "sqlstate": "23505", "message": "duplicate key value violates unique constraint"},
        "40P01",
        "23505",
    ),
]


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.name)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["engine", "dbapi"])
def by(request: pytest.FixtureRequest) -> DriveName:
    return request.param  # type: ignore[no-any-return]


@contextmanager
def faulty(protocol: Protocol, *rules: dict[str, Any], connect: dict[str, Any] | None = None) -> Iterator[FakeServer]:
    with FakeServer(protocol.name, rules=rules, connect=connect) as server:
        yield server


def drive(
    by: DriveName,
    protocol: Protocol,
    server: FakeServer,
    workload: Workload,
    *,
    stop: Stop | None = None,
    **load: Any,
) -> tuple[Outcome, list[Sample]]:
    target = open_target(protocol.url.format(port=server.port))
    samples: list[Sample] = []
    job = Job(target, workload, Load(**{"connections": 1, "interval_s": 0.1, **load}), Capabilities())
    return drive_named(by, target).run(job, samples.append, stop or Stop()), samples


def updates(server: FakeServer) -> list[tuple[Any, ...]]:
    """Values of the UPDATE statements that the server saw, in order (the text's own number where it is text)."""
    seen = []
    for statement in server.recorded():
        if statement.sql.startswith("UPDATE"):
            values = tuple(statement.values) or (int(statement.sql.rsplit("=", 1)[1]),)
            seen.append(values)
    return seen


def test_a_deadlock_is_rolled_back_and_retried_with_the_same_values(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^UPDATE", "nth": 2, "error": protocol.deadlock}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=5)
        sent = updates(server)
        rollbacks = sum(statement.sql == "ROLLBACK" for statement in server.recorded())
    assert outcome.state == "done", outcome.reason
    assert (outcome.counts.committed, outcome.counts.retries, outcome.counts.failed) == (5, 1, 0)
    assert outcome.errors == {protocol.deadlock_code: 1}
    assert len(sent) == 6
    assert sent[1] == sent[2]
    assert rollbacks == 1


def test_new_values_on_a_retry_are_sysbenchs_way_and_an_option(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^UPDATE", "nth": 2, "error": protocol.deadlock}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=5, retry_values="new", seed=5)
        sent = updates(server)
    assert outcome.counts.retries == 1
    assert sent[1] != sent[2]


def test_tries_are_capped_and_the_transaction_then_fails_under_its_code(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^UPDATE", "error": protocol.deadlock}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=2, max_tries=4)
    assert outcome.state == "failed"
    assert protocol.deadlock_code in outcome.reason
    assert (outcome.counts.failed, outcome.counts.committed, outcome.counts.retries) == (2, 0, 6)
    assert outcome.errors == {protocol.deadlock_code: 8}


def test_an_ignorable_error_fails_its_transaction_and_the_run_goes_on(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^UPDATE", "nth": 3, "error": protocol.duplicate}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=10)
    assert outcome.state == "done", outcome.reason
    assert (outcome.counts.committed, outcome.counts.failed, outcome.counts.retries) == (9, 1, 0)
    assert outcome.errors == {protocol.duplicate_code: 1}


@pytest.mark.parametrize("fault", ["reset", "half_packet"])
def test_a_connection_lost_before_commit_is_reopened_and_the_transaction_retried(
    by: DriveName, protocol: Protocol, fault: str
) -> None:
    with faulty(protocol, {"match": "^UPDATE", "nth": 2, "fault": fault}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=5)
        sent = updates(server)
    assert outcome.state == "done", outcome.reason
    counts = outcome.counts
    assert (counts.committed, counts.retries, counts.reconnects, counts.unknown) == (5, 1, 1, 0)
    assert sent[1] == sent[2]
    assert len(outcome.outages) == 1
    assert outcome.outages[0].end >= outcome.outages[0].begin


def test_a_connection_lost_at_commit_leaves_the_outcome_unknown_and_is_never_retried(
    by: DriveName, protocol: Protocol
) -> None:
    with faulty(protocol, {"match": "^COMMIT", "nth": 2, "fault": "reset"}) as server:
        outcome, _ = drive(by, protocol, server, Add(), transactions=5)
        sent = updates(server)
    counts = outcome.counts
    assert (counts.committed, counts.unknown, counts.retries, counts.reconnects) == (4, 1, 0, 1)
    assert len(sent) == 5


def test_a_retry_gets_the_terminals_state_back(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^UPDATE", "nth": 2, "error": protocol.deadlock}) as server:
        outcome, _ = drive(by, protocol, server, Counting(), transactions=3)
        sql = [statement for statement in server.recorded() if statement.sql.startswith("UPDATE")]
    assert outcome.counts.committed == 3
    firsts = [
        int(statement.values[0]) if statement.values else int(statement.sql.split("=")[1].split(",")[0])
        for statement in sql
    ]
    assert firsts == [1, 2, 2, 3]


def test_a_silent_server_ends_with_an_unfinished_transaction_and_not_with_a_hang(
    by: DriveName, protocol: Protocol
) -> None:
    with faulty(protocol, {"match": "^SELECT balance", "nth": 3, "fault": "silence"}) as server:
        began = time.monotonic()
        outcome, _ = drive(by, protocol, server, Read(), duration_s=0.5, drain_s=0.3)
        took = time.monotonic() - began
    assert took < 12
    assert (outcome.counts.committed, outcome.counts.unfinished) == (2, 1)


@pytest.mark.parametrize("fault", ["garbage", "wrong_length"])
def test_garbage_from_the_server_is_an_error_and_not_a_result(by: DriveName, protocol: Protocol, fault: str) -> None:
    with faulty(protocol, {"match": "^SELECT balance", "nth": 3, "fault": fault}) as server:
        began = time.monotonic()
        outcome, _ = drive(by, protocol, server, Read(), transactions=6, duration_s=3.0, drain_s=0.3)
        took = time.monotonic() - began
    assert took < 15
    assert outcome.counts.scheduled == outcome.counts.ended
    assert sum(outcome.errors.values()) >= 1 or outcome.counts.unfinished == 1


def test_slow_bytes_are_only_slow(by: DriveName, protocol: Protocol) -> None:
    with faulty(protocol, {"match": "^SELECT balance", "nth": 3, "fault": "slow_bytes"}) as server:
        outcome, _ = drive(by, protocol, server, Read(), transactions=6)
    assert outcome.counts.committed == 6
    assert outcome.errors == {}


def test_a_stall_shows_in_response_time_of_the_open_loop_and_once_in_service_time(
    by: DriveName, protocol: Protocol
) -> None:
    from dbdyno._engine import Histogram

    with faulty(protocol, {"match": "^SELECT balance", "nth": 20, "delay_ms": 600}) as server:
        outcome, _ = drive(by, protocol, server, Read(), rate=40, arrivals="even", duration_s=2.0)
    response, service = Histogram.decode(outcome.response), Histogram.decode(outcome.service)
    slow = sum(count for value, count in service.buckets() if value > 300e6)
    waiting = sum(count for value, count in response.buckets() if value > 300e6)
    # twelve were due in the first 0.3 s of the stall; a machine that pauses by itself may add one slow request
    assert 1 <= slow <= 2
    assert waiting >= 10


@pytest.mark.parametrize("fault", ["refuse", "reset"])
def test_a_server_that_hangs_up_at_login_is_one_sentence(by: DriveName, protocol: Protocol, fault: str) -> None:
    with faulty(protocol, connect={"fault": fault}) as server, pytest.raises(RunError) as caught:
        drive(by, protocol, server, Read(), transactions=1)
    assert str(server.port) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_connections_names_the_limit(by: DriveName, protocol: Protocol) -> None:
    error = (
        {"code": 1040, "sqlstate": "08004", "message": "Too many connections"}
        if protocol.name == "mysql"
        else {"code": "53300", "sqlstate": "53300", "message": "sorry, too many clients already"}
    )
    with (
        faulty(protocol, connect={"fault": "error", "error": error}) as server,
        pytest.raises(RunError, match=r"connections|clients"),
    ):
        drive(by, protocol, server, Read(), transactions=1)


def test_an_outage_is_on_the_record_and_the_run_goes_on_when_the_server_is_back(
    by: DriveName, protocol: Protocol
) -> None:
    with faulty(protocol) as server:
        port = server.port
        stop = Stop()
        import threading

        result: list[tuple[Outcome, list[Sample]]] = []
        thread = threading.Thread(
            target=lambda: result.append(drive(by, protocol, server, Add(), connections=2, duration_s=3.0, stop=stop))
        )
        thread.start()
        time.sleep(1.0)
        server.stop()
        time.sleep(0.6)
        with FakeServer(protocol.name, options=[f"--port={port}"]):
            thread.join(timeout=20)
            assert not thread.is_alive()
    outcome, samples = result[0]
    assert outcome.state == "done", outcome.reason
    assert outcome.counts.reconnects == 2
    assert len(outcome.outages) == 2
    assert all(0.4 < outage.end - outage.begin < 2.5 for outage in outcome.outages)
    assert any(sample.counts.committed == 0 for sample in samples)
    assert outcome.counts.scheduled == outcome.counts.ended
