"""Running a plan and telling how it ended: what ``quickstart``, ``run``, ``resume`` and ``bench`` share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.analysis.summary import cells
from dbdyno.campaign.observer import Observer
from dbdyno.cli.figures import cell_table, trial_remarks
from dbdyno.cli.interrupt import stopping
from dbdyno.cli.output import say, tell, tell_json
from dbdyno.cli.progress import telling
from dbdyno.drive import Stop
from dbdyno.model.errors import RunError
from dbdyno.model.masking import without_password
from dbdyno.model.plan import Plan
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.store import Store

#: Exit status by the campaign's state.
STATUS = {"done": 0, "failed": 1, "interrupted": 130}

# The reports' modules are imported where they are used: their statistics take seconds to load, and nobody should
# wait for them before the first trial begins.

Run = Callable[[Observer, Stop], CampaignEntry]


def watched(run: Run, trial_s: float | None) -> CampaignEntry:
    """Run with progress on stderr, Ctrl-C once and twice understood. ``trial_s``: how long a trial takes."""
    stop = Stop()
    with telling(trial_s) as teller, stopping(stop, lambda text: teller.say(text)):
        return run(teller, stop)


@dataclass(frozen=True)
class Closing:
    """What is told after a campaign, and where its report goes (``report`` None: no report)."""

    report: Path | None
    lang: str
    as_json: bool
    store: str | None  # as given, for the command that resumes

    @property
    def store_words(self) -> str:
        """`` --store …`` as a further command needs it, without its password; empty for the default store."""
        return f" --store {shlex.quote(without_password(self.store))}" if self.store else ""

    def in_folder_of(self, campaign: str) -> Closing:
        """The same with the report's place known: an empty path stands for ``reports/CAMPAIGN``."""
        if self.report == Path():
            return replace(self, report=Path("reports") / campaign)
        return self


def close(opened: Store, entry: CampaignEntry, closing: Closing) -> int:
    """Tell the answer and write the report of a campaign that ended; the exit status."""
    entries = opened.trials(entry.id)
    measured = [each for each in entries if each.outcome is not None]
    if closing.as_json:
        from dbdyno.report.jsonfile import campaign_json
        from dbdyno.report.material import compare_all

        comparisons = compare_all(entries, entry.plan.baseline_name, pair=entry.plan.order == "interleaved")
        tell_json(campaign_json(entry, entries, comparisons))
    else:
        _tell_answer(entry.plan, entries, measured, closing.lang)
    for remark in trial_remarks(measured, notes=False):
        say(remark)
    if entry.state == "interrupted":
        left = sum(not each.finished_itself for each in entries)
        how = f"dbdyno resume {entry.id}{closing.store_words}"
        say(f"interrupted, {left} of {len(entries)} trials left; go on with: {how}")
    elif entry.state == "failed":
        failed = sum(each.state == "failed" for each in entries)
        say(f"{failed} of {len(entries)} trials of {entry.id} failed")
    if closing.report is not None and measured:
        _write(opened, entry, closing)
    return STATUS.get(entry.state, 1)


def _tell_answer(plan: Plan, entries: Sequence[TrialEntry], measured: Sequence[TrialEntry], lang: str) -> None:
    from dbdyno.report.material import compare_all
    from dbdyno.report.sentences import evidence, sentence
    from dbdyno.report.words import Words

    words = Words(lang)
    found = compare_all(entries, plan.baseline_name, pair=plan.order == "interleaved")
    if not found:
        for line in cell_table(cells(measured), plan.rounds):
            tell(line)
    for comparison in found:
        tell(f"{comparison.workload}: {sentence(comparison, words)}")
        more = evidence(comparison, words)
        if more:
            tell(f"  {more}")


def _write(opened: Store, entry: CampaignEntry, closing: Closing) -> None:
    from dbdyno.report import write_report

    assert closing.report is not None
    try:
        written = write_report(opened, entry.id, closing.report, lang=closing.lang)
    except RunError as error:
        raise RunError(
            f"{error}; the results are in the store {opened}, "
            f"write the report elsewhere with: dbdyno report {entry.id}{closing.store_words} -o FOLDER"
        ) from error
    path = written.get("html") or next(iter(written.values()))
    if closing.as_json:
        say(f"report: {path}")
    else:
        tell(f"report: {path}")
