"""How a campaign's course is told: a board on a terminal, one line a trial anywhere else. Both on stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from dbdyno.analysis.latency import latency_of
from dbdyno.campaign.observer import Observer
from dbdyno.cli import output
from dbdyno.cli.board import Board, fitted
from dbdyno.cli.output import plural
from dbdyno.load import Progress
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.model.units import format_duration, format_ms, format_rate
from dbdyno.record.entries import CampaignEntry, TrialEntry

#: Nothing moves on the terminal for what is over sooner than this.
PATIENCE_S = 2.0
_DUMB = ("dumb", "unknown")


def moving() -> bool:
    """Whether stderr is a terminal on which lines can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB


class _Drawn:
    """Lines made anew at every refresh; none before ``PATIENCE_S``."""

    def __init__(self, lines: Callable[[int], list[str]]) -> None:
        self._lines, self._began = lines, time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if time.monotonic() - self._began >= PATIENCE_S:
            yield Text("\n".join(self._lines(options.max_width)), no_wrap=True)


@contextmanager
def drawn(lines: Callable[[int], list[str]]) -> Iterator[Callable[[str], None]]:
    """Keep ``lines(width)`` on the terminal within the block; gives a function that says a line above them.

    Without a terminal nothing is drawn and lines are just said.
    """
    if not moving():
        yield output.say
        return
    console = Console(file=sys.stderr, highlight=False, markup=False)
    with Live(
        _Drawn(lines),
        console=console,
        refresh_per_second=4,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        def say(text: str) -> None:
            live.console.print(text, soft_wrap=True)

        yield say


class Teller(Observer):
    """Tells a campaign's course; made by :func:`telling`."""

    def __init__(self, trial_s: float | None, lines: bool) -> None:
        self._trial_s = trial_s
        self._lines = lines  # one line a trial, because nothing is drawn
        self._lock = threading.Lock()
        self._board: Board | None = None
        self._number = 0
        self.say: Callable[[str], None] = output.say

    def drawing(self, width: int) -> list[str]:
        """The board's lines at this moment."""
        with self._lock:
            return self._board.lines(width) if self._board is not None else []

    def campaign_started(self, entry: CampaignEntry, trials: Sequence[TrialEntry]) -> None:
        with self._lock:
            self._board = Board(
                entry.id,
                [each.trial for each in trials],
                {each.id: each.state for each in trials if each.finished_itself},
                self._trial_s,
            )
            self._number = self._board.finished

    def preparing(self, target: str, workload: str, progress: Progress) -> None:
        line = f"loading {workload} into {target}: {loading_words(progress)}"
        with self._lock:
            if self._board is not None:
                self._board.activity = line

    def trial_started(self, trial: Trial) -> None:
        with self._lock:
            if self._board is not None:
                self._board.begin(trial)

    def sample(self, trial: Trial, sample: Sample) -> None:
        with self._lock:
            if self._board is not None:
                self._board.sample(sample)

    def trial_finished(self, trial: Trial, outcome: Outcome) -> None:
        with self._lock:
            board = self._board
            if board is not None:
                board.end(trial, outcome.state)
        self._number += 1
        total = len(board.trials) if board is not None else self._number
        if self._lines or outcome.state != "done":
            where = f"{trial.workload} on {trial.target}, c={trial.connections}, round {trial.round}"
            self.say(f"{self._number}/{total} {where}: {outcome_words(outcome)}")

    def note(self, sentence: str) -> None:
        self.say(f"note: {sentence}")


@contextmanager
def telling(trial_s: float | None) -> Iterator[Teller]:
    """An observer for a campaign whose trials take about ``trial_s`` each, drawing while the block runs."""
    teller = Teller(trial_s, lines=not moving())
    with drawn(teller.drawing) as say:
        teller.say = say
        yield teller


def outcome_words(outcome: Outcome) -> str:
    """``3,214 tps, p95 1.20 ms, 0 errors``, or why there is no figure."""
    if outcome.state == "failed":
        return f"failed: {outcome.reason}"
    errors = sum(outcome.errors.values())
    response = latency_of(outcome.response)
    p95 = f"p95 {format_ms(response.p95)} ms, " if response is not None else ""
    words = f"{format_rate(outcome.tps)} tps, {p95}{plural(errors, 'error')}"
    if outcome.health.bound:
        words += f"; client-bound: {outcome.health.why}"
    return words if outcome.state == "done" else f"{outcome.state} after {format_duration(outcome.seconds)}: {words}"


def loading_words(progress: Progress) -> str:
    """``sbtest2 45 % (45,000 rows)``."""
    if progress.phase != "rows":
        return f"{progress.table} {progress.phase}"
    return f"{progress.table} {progress.share * 100:.0f} % ({plural(progress.rows, 'row')})"


class LoadTeller:
    """Progress of one load (``dbdyno prepare``)."""

    def __init__(self, what: str) -> None:
        self._what, self._words = what, ""

    def __call__(self, progress: Progress) -> None:
        self._words = loading_words(progress)

    def drawing(self, width: int) -> list[str]:
        """The one line."""
        return [fitted(f"{self._what}: {self._words}", width)] if self._words else []
