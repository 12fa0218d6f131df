"""Ctrl-C in a real run: once keeps and ends, twice ends at once, and a resume goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.command_line import CommandLine, Ended

PLAN = """\
name = "long"
connections = [1, 2]
rounds = 2
duration = "{duration}"
interval = "100ms"
[[target]]
name = "here"
url = "sqlite:///here.db"
[[workload]]
name = "oltp_point_select"
options = {{ table_size = 100 }}
"""


def until_line(process: subprocess.Popen[str], start: str) -> list[str]:
    """stderr's lines up to the first that begins so."""
    lines: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if line.startswith(start):
            return lines
    pytest.fail(f"no line began with {start!r}: {lines}")


def ended(process: subprocess.Popen[str], before: list[str]) -> Ended:
    """The end of a process whose stderr was read in part."""
    stdout, stderr = process.communicate(timeout=60)
    return Ended(process.returncode, stdout, "".join(before) + stderr)


def test_once_keeps_what_was_measured_and_a_resume_goes_on(dbdyno: CommandLine) -> None:
    dbdyno.write("plan.toml", PLAN.format(duration="0.6s"))
    process = dbdyno.start("run", "plan.toml", "--no-report")
    lines = until_line(process, "1/4 ")
    time.sleep(0.3)  # within the second trial
    process.send_signal(signal.SIGINT)
    end = ended(process, lines)
    assert end.status == 130, end.stderr
    assert "finishing: what was measured is being kept; Ctrl-C again stops at once\n" in end.stderr
    assert end.stderr.endswith("go on with: dbdyno resume long-1\n")
    assert "Traceback" not in end.stderr
    shown = dbdyno.ok("show", "long-1", "--json").json
    assert shown["campaign"]["state"] == "interrupted"
    states = [trial["state"] for trial in shown["trials"]]
    assert states[0] == "done"
    assert "pending" in states
    first = shown["trials"][0]
    resumed = dbdyno.ok("resume", "long-1", "--no-report")
    assert "4/4 " in resumed.stderr
    again = dbdyno.ok("show", "long-1", "--json").json
    assert [trial["state"] for trial in again["trials"]] == ["done"] * 4
    assert again["trials"][0] == first, "a finished trial was run again"


def test_twice_ends_at_once_and_keeps_the_finished_trials(dbdyno: CommandLine) -> None:
    dbdyno.write("plan.toml", PLAN.format(duration="0.3s"))
    process = dbdyno.start("run", "plan.toml", "--set", "pause=60s", "--no-report")
    lines = until_line(process, "1/4 ")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    end = ended(process, lines)
    assert time.monotonic() - begun < 20  # not the minute of the pause
    assert end.status == 130, end.stderr
    states = [trial["state"] for trial in dbdyno.ok("show", "long-1", "--json").json["trials"]]
    assert states[0] == "done"


def test_a_bench_that_is_told_to_end_prints_what_it_has(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_point_select", "sqlite:///a.db", "-c", "1,2", "--opt", "table_size=100", "--json")
    process = dbdyno.start(*words, "-d", "1s", "--warmup", "0s", "--rounds", "5")
    lines = until_line(process, "1/10 ")
    process.send_signal(signal.SIGTERM)
    end = ended(process, lines)
    assert end.status == 130, end.stderr
    trials = end.json["trials"]
    assert trials[0]["state"] == "done"
    assert trials[0]["committed"] > 0
    assert len(trials) < 10


@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3, 0.6])
def test_at_any_moment_of_the_start_it_is_one_line(dbdyno: CommandLine, after_s: float) -> None:
    process = dbdyno.start("bench", "oltp_point_select", "sqlite:///a.db", "-d", "30s", "--opt", "table_size=100")
    while "pydantic_core" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None  # until Python itself has started and our imports are under way
        time.sleep(0.002)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    end = ended(process, [])
    assert end.status == 130, end.stderr
    assert "Traceback" not in end.stderr
