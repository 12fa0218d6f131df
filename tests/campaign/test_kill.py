"""kill -9 at any moment loses no finished trial and at most the interval in flight.

``DBDYNO_KILLS`` sets how often (3 by default; the soak takes 20), ``DBDYNO_SEED`` when.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.campaign.witness import contiguous

from dbdyno.campaign.planfile import read_plan
from dbdyno.campaign.trials import expand
from dbdyno.model.errors import RunError
from dbdyno.record.entries import TrialEntry
from dbdyno.record.store import Store

KILLS = int(os.environ.get("DBDYNO_KILLS", "3"))
SEED = int(os.environ.get("DBDYNO_SEED", "20"))
INTERVAL_S = 0.05
DURATION_S = 0.4
PROGRAM = Path(__file__).with_name("resuming.py")

PLAN = """
name = "killed"
rounds = {rounds}
connections = [1, 2]
duration = "{duration}s"
warmup = "0.1s"
interval = "{interval}s"
[[target]]
name = "a"
url = "sqlite:///a.db?synchronous=off"
[[workload]]
name = "oltp_read_write"
options = {{ table_size = 200 }}
[[workload]]
name = "oltp_point_select"
options = {{ table_size = 200 }}
"""


@dataclass
class Said:
    """What a process said before it ended."""

    samples: dict[str, list[float]] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    running: str | None = None
    ended: str | None = None

    def hear(self, line: str) -> None:
        word, name, *rest = line.split()
        if word == "trial":
            self.running, self.samples[name] = name, []
        elif word == "sample":
            self.samples[name].append(float(rest[0]))
        elif word == "finished":
            self.running = None
            self.finished.append(name)
        elif word == "ended":
            self.ended = name


def run_and_kill(words: list[str], lines: int, further_s: float) -> Said:
    """Start the program; after so many lines and so much time, end it without warning (never: lines < 0)."""
    said = Said()
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for heard, line in enumerate(process.stdout, 1):
            said.hear(line)
            if heard == lines:
                with pytest.raises(RunError, match=f"another dbdyno .process {process.pid}. is writing"):
                    Store.open(words[0], write=True)
                time.sleep(further_s)
                process.send_signal(signal.SIGKILL)
        errors = process.stderr.read()
        status = process.wait()
    assert status == (-signal.SIGKILL if lines >= 0 and said.ended is None else 0), errors
    return said


def test_kill_9_loses_no_finished_trial_and_at_most_one_interval(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    plan_file, path = tmp_path / "plan.toml", str(tmp_path / "store.db")
    plan_file.write_text(PLAN.format(rounds=max(1, KILLS), duration=DURATION_S, interval=INTERVAL_S))
    plan, _ = read_plan(plan_file)
    words = [path, str(plan_file)]
    kept: dict[str, TrialEntry] = {}
    for _ in range(KILLS):
        said = run_and_kill(words, lines=chance.randint(1, 36), further_s=chance.uniform(0, 2 * INTERVAL_S))
        assert said.ended is None
        words = [path, str(plan_file), "killed-1"]
        with Store.open(path) as store:
            trials = {trial.id: trial for trial in store.trials("killed-1")}
            assert {name: trials[name] for name in kept} == kept
            assert set(said.finished) <= {name for name, trial in trials.items() if trial.finished_itself}
            for name, seconds in said.samples.items():
                samples = store.samples(name)
                assert contiguous(samples)
                if samples:  # killed before the first interval ended, there is none
                    assert samples[0].second == pytest.approx(-0.1, abs=0.01)
                # All that was said is there; not said but there may be those on their way to us.
                assert [sample.second for sample in samples[: len(seconds)]] == seconds
            if said.running is not None and trials[said.running].state == "running":
                assert trials[said.running].outcome is None
            kept = {name: trial for name, trial in trials.items() if trial.finished_itself}
    said = run_and_kill(words, lines=-1, further_s=0)
    assert said.ended == "done"
    assert set(said.finished).isdisjoint(kept)
    with Store.open(path) as store:
        trials = {trial.id: trial for trial in store.trials("killed-1")}
        assert list(trials) == [trial.id for trial in expand(plan, "killed-1")]
        assert {name: trials[name] for name in kept} == kept
        assert {trial.state for trial in trials.values()} == {"done"}
        assert [entry.state for entry in store.campaigns()] == ["done"]
        for name, trial in trials.items():
            samples = store.samples(name)
            assert contiguous(samples)
            assert samples[-1].second + samples[-1].seconds >= DURATION_S - 1e-3
            assert trial.outcome is not None
            assert sum(sample.counts.committed for sample in samples) >= trial.outcome.counts.committed > 0
