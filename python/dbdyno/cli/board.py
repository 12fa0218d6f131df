"""What a running campaign looks like on a terminal: the matrix, the trial that runs, the time that is left.

Marks and words carry the meaning; nothing here is coloured. Lines fit the width they are asked for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size

from dbdyno.analysis.latency import latency_of
from dbdyno.cli.output import pad, plural
from dbdyno.model.sample import Sample
from dbdyno.model.trial import Trial
from dbdyno.model.units import format_duration, format_ms, format_rate

#: One mark a trial: waiting, running, done, failed, interrupted.
MARKS: Mapping[str, str] = {"pending": "·", "running": ">", "done": "#", "failed": "x", "interrupted": "!"}
LEGEND = "# done  > running  · to do  x failed"
_MATRIX_LINES = 16  # a larger matrix is shown as counts: the terminal must not scroll


@dataclass
class LastSecond:
    """The newest samples of a trial that make up at least one second."""

    samples: deque[Sample] = field(default_factory=deque)

    def add(self, sample: Sample) -> None:
        """A further sample; older ones leave when the rest still covers a second."""
        self.samples.append(sample)
        while len(self.samples) > 1 and sum(s.seconds for s in self.samples) - self.samples[0].seconds >= 0.999:
            self.samples.popleft()

    def words(self) -> str:
        """``3,214 tps, p95 1.20 ms, 0 errors``."""
        seconds = sum(sample.seconds for sample in self.samples)
        if seconds <= 0:
            return ""
        committed = sum(sample.counts.committed for sample in self.samples)
        response = latency_of(*(sample.response for sample in self.samples))
        errors = sum(sum(sample.errors.values()) for sample in self.samples)
        p95 = f"p95 {format_ms(response.p95)} ms, " if response is not None else ""
        return f"{format_rate(committed / seconds)} tps, {p95}{plural(errors, 'error')}"


class Board:
    """The state of a campaign, and its lines. Not thread-safe: its owner locks."""

    def __init__(self, name: str, trials: Sequence[Trial], states: Mapping[str, str], trial_s: float | None) -> None:
        """``states`` of trials by id (default pending); ``trial_s`` = how long one trial is expected to take."""
        self.name = name
        self.trials = list(trials)
        self.states = {trial.id: states.get(trial.id, "pending") for trial in trials}
        self.activity = ""  # preparing, instead of a running trial
        self._expected_s = trial_s
        self._current: Trial | None = None
        self._began = 0.0
        self._took: list[float] = []
        self._last = LastSecond()
        self._second: float | None = None

    def begin(self, trial: Trial) -> None:
        """A trial begins."""
        self.activity = ""
        self._current, self._began = trial, time.monotonic()
        self._last, self._second = LastSecond(), None
        self.states[trial.id] = "running"

    def sample(self, sample: Sample) -> None:
        """The running trial's newest sample."""
        self._second = sample.second + sample.seconds
        self._last.add(sample)

    def end(self, trial: Trial, state: str) -> None:
        """The trial ended."""
        self.states[trial.id] = state
        if state == "done":
            self._took.append(time.monotonic() - self._began)
        self._current = None

    @property
    def finished(self) -> int:
        """Trials that need no running any more."""
        return sum(state in ("done", "failed") for state in self.states.values())

    def left_s(self) -> float | None:
        """Expected seconds to the end (without loading), from the trials so far; None when nothing is known."""
        each = sum(self._took) / len(self._took) if self._took else self._expected_s
        if each is None:
            return None
        running = min(each, time.monotonic() - self._began) if self._current is not None else 0.0
        return max(0.0, each * (len(self.trials) - self.finished) - running)

    def head(self) -> str:
        """``quickstart-1: 7 of 36 trials done, about 42 s left``."""
        left = self.left_s()
        about = f", about {format_duration(round(left))} left" if left is not None and left >= 1 else ""
        return f"{self.name}: {self.finished} of {plural(len(self.trials), 'trial')} done{about}"

    def now(self) -> list[str]:
        """The line (or two) about what happens at this moment."""
        trial = self._current
        if trial is None:
            return [self.activity] if self.activity else []
        rounds = max(other.round for other in self.trials)
        line = f"{trial.workload} on {trial.target}, {plural(trial.connections, 'connection')}"
        line += f", round {trial.round} of {rounds}" if rounds > 1 else ""
        words = self._last.words()
        if self._second is None or not words:
            return [line, "  connecting"]
        if self._second <= 0:
            return [line, f"  warming up: {words}"]
        whole = trial.load.duration_s
        total = f" of {format_duration(whole)}" if whole is not None else ""
        return [line, f"  {format_duration(self._second)}{total}: {words}"]

    def matrix(self) -> list[str]:
        """Workloads and targets against connection counts, one mark a round."""
        columns = sorted({trial.connections for trial in self.trials})
        rows = list(dict.fromkeys((trial.workload, trial.target) for trial in self.trials))
        if len(self.trials) < 2 or len(rows) > _MATRIX_LINES:
            return []
        cells: dict[tuple[str, str, int], list[Trial]] = {}
        for trial in self.trials:
            cells.setdefault((trial.workload, trial.target, trial.connections), []).append(trial)
        body = [["", "", *map(str, columns)]]
        for workload, target in rows:
            marks = (
                "".join(
                    MARKS[self.states[trial.id]]
                    for trial in sorted(cells.get((workload, target, count), []), key=lambda each: each.round)
                )
                for count in columns
            )
            body.append([workload, target, *marks])
        widths = [max(cell_len(row[i]) for row in body) for i in range(len(body[0]))]
        lines = ["  ".join(pad(text, widths[i]) for i, text in enumerate(row)).rstrip() for row in body]
        return [*lines, LEGEND]

    def lines(self, width: int) -> list[str]:
        """Everything, cut to ``width`` cells. A matrix that does not fit the width is left out."""
        matrix = self.matrix()
        if any(cell_len(line) > width for line in matrix):
            matrix = []
        return [fitted(line, width) for line in (self.head(), *matrix, *self.now())]


def fitted(line: str, width: int) -> str:
    """The line, cut with an ellipsis if it is longer than ``width`` cells."""
    return line if cell_len(line) <= width else set_cell_size(line, max(1, width - 1)).rstrip() + "…"
