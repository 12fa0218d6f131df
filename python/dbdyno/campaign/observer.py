"""What a campaign tells while it runs. The command line draws it; nothing depends on anybody listening."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.load import Progress
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record.entries import CampaignEntry, TrialEntry


class Observer:
    """Does nothing; override what is of interest. ``sample`` is called from another thread than the rest.

    An exception of an observer ends the campaign like an error of its own.
    """

    def campaign_started(self, entry: CampaignEntry, trials: Sequence[TrialEntry]) -> None:
        """The campaign begins (or goes on): all its trials in the order of running, finished ones included."""

    def preparing(self, target: str, workload: str, progress: Progress) -> None:
        """Rows are being loaded. ``target`` and ``workload`` are labels."""

    def trial_started(self, trial: Trial) -> None:
        """The trial is on the record and its drive begins."""

    def sample(self, trial: Trial, sample: Sample) -> None:
        """An interval ended; its sample is in the store."""

    def trial_finished(self, trial: Trial, outcome: Outcome) -> None:
        """The trial's outcome is in the store."""

    def note(self, sentence: str) -> None:
        """Something the user should know: data that grow, a workload changed since the campaign began."""

    def campaign_finished(self, state: str) -> None:
        """All is on the record; ``state`` is done, failed or interrupted."""
