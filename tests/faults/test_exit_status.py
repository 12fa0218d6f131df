"""What ``dbdyno bench`` says, and its exit status, after a fault during the run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.command_line import CommandLine, command_line
from tests.faults.running import administer, kill_sessions, sessions, wait_for

from dbdyno.targets.target import Target, open_target

BENCH = ("bench", "oltp_update_index", "--opt", "table_size=200", "-c", "2", "--interval", "100ms", "--warmup", "0")


@pytest.fixture
def dbdyno(tmp_path: Path) -> CommandLine:
    return command_line(tmp_path)


@pytest.fixture
def target(postgresql_url: str, dbdyno: CommandLine) -> Target:
    dbdyno.ok("prepare", "oltp_update_index", postgresql_url, "--opt", "table_size=200")
    return open_target(postgresql_url)


def test_a_run_that_outlived_a_fault_is_done_with_the_outages_on_its_record(
    dbdyno: CommandLine, target: Target, postgresql_url: str
) -> None:
    process = dbdyno.start(*BENCH, postgresql_url, "-d", "2s", "--json")
    wait_for(lambda: len(sessions(target)) == 2, "the run's connections")
    time.sleep(0.5)
    kill_sessions(target, sessions(target))
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    (trial,) = json.loads(stdout)["trials"]
    assert trial["state"] == "done"
    # A connection that is just sending may find itself cut before it reads the server's last word.
    assert {outage["code"] for outage in trial["outages"]} <= {"57P01", "08006"}
    assert len(trial["outages"]) == sum(trial["errors"].values()) == 2


def test_a_server_that_becomes_read_only_is_a_failed_run_in_one_sentence(
    dbdyno: CommandLine, target: Target, postgresql_url: str
) -> None:
    process = dbdyno.start(*BENCH, postgresql_url, "-d", "60s")
    try:
        wait_for(lambda: len(sessions(target)) == 2, "the run's connections")
        administer(target, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        _, stderr = process.communicate(timeout=60)
    finally:
        administer(target, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
    assert process.returncode == 1
    assert "25006: the server is read-only" in stderr
    assert "Traceback" not in stderr
