"""What the store gives back: campaigns and trials as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dbdyno.model.plan import Plan
from dbdyno.model.sample import Outcome
from dbdyno.model.trial import Trial

#: A campaign is created ``running``; one that is ``running`` without a writer was killed.
CAMPAIGN_STATES = ("running", "done", "interrupted", "failed")
TRIAL_STATES = ("pending", "running", "done", "failed", "interrupted")


@dataclass(frozen=True, slots=True)
class CampaignEntry:
    """One campaign. ``id`` is ``<name>-<n>``, ``created`` is UTC, plan and text are without passwords."""

    id: str
    name: str
    created: datetime
    state: str
    plan: Plan
    plan_text: str
    version: str = ""  # of the dbdyno that made it


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """One trial. ``outcome`` is there once it is done, failed or interrupted (unless it was killed).

    ``environment`` is what was captured before the trial, with what was found after it merged in;
    ``source`` the text of the workload that ran. Both are empty while the trial is pending.
    """

    trial: Trial
    state: str
    started: datetime | None = None  # UTC
    finished: datetime | None = None  # UTC
    environment: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    source: str = ""

    @property
    def id(self) -> str:
        """The trial's id."""
        return self.trial.id

    @property
    def finished_itself(self) -> bool:
        """Whether it has a result that a resume keeps: done, or failed on its own terms."""
        return self.state in ("done", "failed")
