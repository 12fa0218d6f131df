"""An observer that remembers, and what is asked of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from dbdyno.campaign.observer import Observer
from dbdyno.load import Progress
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record.entries import CampaignEntry, TrialEntry


class Witness(Observer):
    """Remembers what it was told; ``then`` is called at every sample, to interfere."""

    def __init__(self, then: Callable[[Trial, Sample], None] = lambda trial, sample: None) -> None:
        self.then = then
        self.started: list[str] = []
        self.finished: list[tuple[str, str]] = []
        self.samples: dict[str, list[Sample]] = {}
        self.notes: list[str] = []
        self.loads: list[tuple[str, str]] = []
        self.states: list[str] = []
        self.campaign = ""
        self.on_load: Callable[[], None] = lambda: None

    def campaign_started(self, entry: CampaignEntry, trials: Sequence[TrialEntry]) -> None:
        self.campaign = entry.id

    def preparing(self, target: str, workload: str, progress: Progress) -> None:
        self.loads.append((target, workload))
        self.on_load()

    def trial_started(self, trial: Trial) -> None:
        self.started.append(trial.id)
        self.samples[trial.id] = []

    def sample(self, trial: Trial, sample: Sample) -> None:
        self.samples[trial.id].append(sample)
        self.then(trial, sample)

    def trial_finished(self, trial: Trial, outcome: Outcome) -> None:
        self.finished.append((trial.id, outcome.state))

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def campaign_finished(self, state: str) -> None:
        self.states.append(state)


def contiguous(samples: Sequence[Sample]) -> bool:
    """Whether each sample begins where the one before it ended, to a millisecond."""
    return all(abs(one.second + one.seconds - other.second) < 1e-3 for one, other in pairwise(samples))
