"""A process to be killed: runs or resumes a campaign and says what is in the store, line by line.

Usage: resuming.py STORE PLAN [CAMPAIGN]. Each line is written after the store has returned:
``trial ID``, ``sample ID SECOND``, ``finished ID``, ``ended STATE``.
"""

from __future__ import annotations

import sys

from dbdyno.campaign.observer import Observer
from dbdyno.campaign.planfile import read_plan
from dbdyno.campaign.runner import resume, run_campaign
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record.store import Store


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Teller(Observer):
    def trial_started(self, trial: Trial) -> None:
        say("trial", trial.id)

    def sample(self, trial: Trial, sample: Sample) -> None:
        say("sample", trial.id, repr(sample.second))

    def trial_finished(self, trial: Trial, outcome: Outcome) -> None:
        say("finished", trial.id)


def main() -> None:
    with Store.open(sys.argv[1], write=True) as store:
        if len(sys.argv) == 3:
            plan, text = read_plan(sys.argv[2])
            entry = run_campaign(store, plan, text, observer=Teller())
        else:
            entry = resume(store, sys.argv[3], observer=Teller())
        say("ended", entry.state)


if __name__ == "__main__":
    main()
