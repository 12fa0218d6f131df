"""What every drive must do, on every server: the conformance suite.

Each test names what a user would see break.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.drive import driving
from tests.drive.driving import (
    PAIRS,
    Add,
    Buggy,
    Counting,
    DriveName,
    Mixed,
    Read,
    ReturnsOpen,
    Swallows,
    drive_named,
    fetch,
    make_table,
)

from dbdyno._engine import Histogram
from dbdyno.drive import Stop
from dbdyno.model.errors import RunError, UsageError
from dbdyno.model.sample import Counts, Outcome, Sample
from dbdyno.targets.target import Target, open_target

pytestmark = pytest.mark.parametrize(
    ("server", "by"), PAIRS, indirect=True, ids=[f"{server}-{by}" for server, by in PAIRS]
)
Driving = Callable[..., tuple[Outcome, list[Sample]]]


@pytest.fixture
def by(request: pytest.FixtureRequest) -> DriveName:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def drive(by: DriveName) -> Driving:
    return partial(driving.drive, by=by)


@pytest.fixture
def target(target_url: str) -> Target:
    opened = open_target(target_url)
    make_table(opened)
    return opened


def total(samples: list[Sample]) -> Counts:
    return sum((sample.counts for sample in samples if sample.second >= 0), Counts())


def test_by_count_runs_exactly_that_many_and_the_rows_agree(target: Target, drive: Driving) -> None:
    outcome, samples = drive(Add(), target, connections=4, transactions=42)
    assert outcome.state == "done", outcome.reason
    assert outcome.counts.scheduled == outcome.counts.committed == 42
    assert fetch(target, "SELECT SUM(balance) FROM drive_accounts")[0][0] == 42
    assert total(samples) == outcome.counts


def test_statements_are_counted_by_sysbenchs_kinds(target: Target, drive: Driving) -> None:
    counts = drive(Add(), target, transactions=10)[0].counts
    assert (counts.reads, counts.writes, counts.others, counts.rows) == (10, 10, 20, 10)


def test_the_same_seed_leaves_the_same_rows_and_another_seed_does_not(target: Target, drive: Driving) -> None:
    left = []
    for seed in (1, 1, 2):
        make_table(target)
        drive(Add(), target, connections=3, transactions=60, seed=seed)
        left.append(fetch(target, "SELECT id, balance FROM drive_accounts ORDER BY id"))
    assert left[0] == left[1] != left[2]


def test_a_transaction_that_rolls_back_by_its_own_wish_leaves_nothing_and_is_no_failure(
    target: Target, drive: Driving
) -> None:
    outcome, samples = drive(Mixed(), target, connections=2, transactions=300)
    assert outcome.state == "done", outcome.reason
    counts = outcome.counts
    assert counts.scheduled == 300 == counts.committed + counts.rolled_back
    assert 10 < counts.rolled_back < 60
    assert counts.failed == counts.retries == 0
    assert fetch(target, "SELECT MAX(balance) FROM drive_accounts")[0][0] < 1000
    assert set(outcome.kinds) == {"read", "write", "give_up"}
    assert sum(kind.counts.scheduled for kind in outcome.kinds.values()) == 300
    assert outcome.kinds["give_up"].counts.rolled_back == counts.rolled_back
    assert Histogram.decode(outcome.response).count == counts.committed
    assert total(samples) == counts


def test_the_warm_up_is_in_no_figure(target: Target, drive: Driving) -> None:
    outcome, samples = drive(Read(), target, connections=2, duration_s=0.5, warmup_s=0.4)
    warm = [sample for sample in samples if sample.second < 0]
    assert warm
    assert sum(sample.counts.committed for sample in warm) > 0
    assert total(samples) == outcome.counts
    assert outcome.seconds == pytest.approx(0.5, abs=0.02)
    assert next(sample.second for sample in samples if sample.second >= 0) == 0.0


def test_figures_of_time_are_plausible(target: Target, drive: Driving) -> None:
    outcome, _ = drive(Read(), target, connections=2, duration_s=0.5)
    response, service = Histogram.decode(outcome.response), Histogram.decode(outcome.service)
    assert response.count == service.count == outcome.counts.committed > 20
    # service times of two connections cannot exceed twice the duration; what is missing is time between transactions
    assert 0.8 * outcome.seconds < service.mean * service.count / 1e9 < 2.2 * outcome.seconds
    assert outcome.health.cpu_s > 0
    assert outcome.health.cpu_us_per_query > 0


def test_the_open_loop_begins_every_arrival(target: Target, drive: Driving) -> None:
    outcome, _ = drive(Read(), target, connections=4, duration_s=1.0, rate=200, seed=3)
    # a machine that pauses for 10 ms by itself makes one late, and the run says so
    assert outcome.state == "done" or "after it was due" in outcome.reason, outcome.reason
    assert outcome.counts.unfinished == outcome.counts.failed == 0
    assert 140 < outcome.counts.scheduled == outcome.counts.committed < 260
    again, _ = drive(Read(), target, connections=4, duration_s=1.0, rate=200, seed=3)
    assert again.counts.scheduled == outcome.counts.scheduled


def test_a_rate_that_cannot_be_kept_is_a_failed_run(target: Target, drive: Driving) -> None:
    outcome, _ = drive(Read(), target, connections=1, duration_s=0.5, rate=200_000, drain_s=0.2)
    assert outcome.state == "failed"
    assert "rate" in outcome.reason
    assert outcome.counts.unfinished > 0
    assert outcome.counts.scheduled == outcome.counts.ended


def test_a_stopped_run_keeps_what_it_measured(target: Target, drive: Driving) -> None:
    stop = Stop()
    threading.Timer(0.4, stop.request).start()
    began = time.monotonic()
    outcome, samples = drive(Add(), target, connections=2, duration_s=30, stop=stop)
    assert time.monotonic() - began < 6
    assert outcome.state == "interrupted"
    assert outcome.counts.committed > 0
    assert outcome.counts.unfinished == 0
    assert total(samples) == outcome.counts
    assert fetch(target, "SELECT SUM(balance) FROM drive_accounts")[0][0] == outcome.counts.committed


def test_a_missing_table_ends_the_run_with_its_name(target: Target, drive: Driving) -> None:
    connection = target.control()
    connection.execute(target.family.dialect.drop_table("drive_accounts"))
    connection.close()
    outcome, _ = drive(Read(), target, connections=3, duration_s=5)
    assert outcome.state == "failed"
    assert "drive_accounts" in outcome.reason
    assert outcome.counts.scheduled == outcome.counts.failed > 0


def test_a_workload_cannot_swallow_a_database_error(target: Target, drive: Driving, by: DriveName) -> None:
    if by == "engine":
        with pytest.raises(UsageError, match="cannot be caught"):  # before a connection is opened
            drive(Swallows(), target, duration_s=5)
        return
    outcome, _ = drive(Swallows(), target, duration_s=5)
    assert outcome.state == "failed"
    assert outcome.counts.committed == 0


def test_an_open_transaction_at_the_end_of_the_function_is_an_error_that_says_so(
    target: Target, drive: Driving
) -> None:
    outcome, _ = drive(ReturnsOpen(), target, duration_s=5)
    assert outcome.state == "failed"
    assert "open transaction" in outcome.reason
    assert fetch(target, "SELECT SUM(balance) FROM drive_accounts")[0][0] == 0


def test_a_python_error_in_a_workload_names_file_and_line(target: Target, drive: Driving) -> None:
    outcome, _ = drive(Buggy(), target, duration_s=5)
    assert outcome.state == "failed"
    assert "driving.py:" in outcome.reason
    assert "IndexError" in outcome.reason


def test_state_belongs_to_the_terminal_and_acknowledgements_follow_the_commit(
    target: Target, drive: Driving, tmp_path: Path
) -> None:
    acks = tmp_path / "acks"
    outcome, _ = drive(Counting(), target, connections=3, transactions=30, ack_path=acks)
    assert outcome.counts.committed == 30
    assert fetch(target, "SELECT balance, note FROM drive_accounts WHERE id <= 3 ORDER BY id") == [
        (10, "t1"),
        (10, "t2"),
        (10, "t3"),
    ]
    lines = sorted(tuple(json.loads(line)) for line in acks.read_text().splitlines())
    assert lines == [(terminal, seen) for terminal in (1, 2, 3) for seen in range(1, 11)]


def test_a_connection_reopened_on_purpose_is_counted(target: Target, drive: Driving) -> None:
    outcome, _ = drive(Add(), target, connections=2, transactions=20, reconnect_every=5)
    assert outcome.counts.committed == 20
    assert 2 <= outcome.counts.reconnects <= 4


def test_a_receiver_that_fails_ends_the_run_with_its_own_error(target: Target, by: DriveName) -> None:
    from dbdyno.drive import Job
    from dbdyno.model.trial import Load

    def full(sample: Sample) -> None:
        raise RunError("the disk is full")

    job = Job(target, Read(), Load(connections=2, duration_s=30, interval_s=0.1), target.capabilities())
    with pytest.raises(RunError, match="the disk is full"):
        drive_named(by, target).run(job, full, Stop())
