"""Running a campaign: every trial of a plan, one after the other, each on the record before the next begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dbdyno._engine import Histogram
from dbdyno.campaign.doctor import spoilers
from dbdyno.campaign.environment import capture, capture_after, unreachable
from dbdyno.campaign.hooks import campaign_variables, run_hook, trial_variables
from dbdyno.campaign.observer import Observer
from dbdyno.campaign.sides import AskPassword, Side, make_ready
from dbdyno.campaign.trials import expand
from dbdyno.drive import Job, Stop, drive_for
from dbdyno.load import Progress, cleanup, ensure, require
from dbdyno.model.errors import DbdynoError, Interrupted, RunError
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Counts, Health, Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.model.units import format_bytes
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.store import Store
from dbdyno.workload import Workload
from dbdyno.workload.source import load_workload, program_hash, source_text

#: A database that grew by more than this since the campaign's first trial on it is mentioned.
GROWTH = 1.2


def run_campaign(
    store: Store,
    plan: Plan,
    plan_text: str,
    *,
    observer: Observer | None = None,
    stop: Stop | None = None,
    ask_password: AskPassword | None = None,
) -> CampaignEntry:
    """Run a plan from its first trial to its last; the campaign as it is on the record at the end.

    Its state is ``done``, ``failed`` (a trial failed; the others were run all the same) or ``interrupted``
    (``stop``; :func:`resume` goes on).

    Raises:
        UsageError, RunError: nothing is on the record yet, as a target cannot be reached or cannot do what
            the plan asks; or the campaign ended at once, as a hook failed, data cannot be loaded, or the
            store cannot be written. What was finished before is kept.
    """
    stop = stop or Stop()
    workloads = _workloads(plan)
    sides = make_ready(plan, [target.name for target in plan.target], ask_password)
    entry = store.new_campaign(plan, plan_text)
    store.add_trials(entry.id, expand(plan, entry.id))
    return _Campaign(store, plan, entry, sides, workloads, observer or Observer(), stop).run()


def resume(
    store: Store,
    campaign_id: str,
    *,
    observer: Observer | None = None,
    stop: Stop | None = None,
    ask_password: AskPassword | None = None,
) -> CampaignEntry:
    """Go on with a campaign that was killed or interrupted, at its first trial without a result.

    A trial that was running is run anew. The plan is the one on the record; passwords come from where
    :func:`dbdyno.targets.target.open_target` finds them.

    Raises:
        UsageError: no such campaign. RunError: as :func:`run_campaign`.
    """
    entry = store.campaign(campaign_id)
    left = [trial.trial for trial in store.trials(campaign_id) if not trial.finished_itself]
    workloads = _workloads(entry.plan)
    sides = make_ready(entry.plan, {trial.target for trial in left}, ask_password)
    store.take_over(campaign_id)
    # Killed between making the campaign and making its trials: there are none on the record yet.
    if not store.states(campaign_id):
        store.add_trials(campaign_id, expand(entry.plan, campaign_id))
        sides = make_ready(entry.plan, [target.name for target in entry.plan.target], ask_password)
    return _Campaign(store, entry.plan, entry, sides, workloads, observer or Observer(), stop or Stop()).run()


def _workloads(plan: Plan) -> dict[str, Workload]:
    return {item.label: load_workload(item.name, item.options) for item in plan.workload}


class _Campaign:
    """One campaign while it runs in this process."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        entry: CampaignEntry,
        sides: Mapping[str, Side],
        workloads: Mapping[str, Workload],
        observer: Observer,
        stop: Stop,
    ) -> None:
        self._store = store
        self._plan = plan
        self._entry = entry
        self._sides = sides
        self._workloads = workloads
        self._observer = observer
        self._stop = stop
        self._loaded: set[tuple[str, str]] = set()  # (target, workload) whose data were seen to be there
        self._sizes: dict[str, int] = {}  # target: bytes at its first trial
        # target: tables to which a trial may have added or from which it may have removed rows
        self._altered: dict[str, set[str]] = {label: set() for label in sides}
        self._programs: dict[str, str] = {}  # workload: hash of what its finished trials ran

    def run(self) -> CampaignEntry:
        """Everything that is left to run, and the campaign's state at the end."""
        state = "failed"
        try:
            state = self._run()
        except Interrupted as interruption:
            state = "interrupted"
            self._observer.note(str(interruption))
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        except _StoreFailed as error:
            state = "interrupted"  # not the campaign's fault: with room made, it can go on
            raise RunError(str(error)) from error.__cause__
        finally:
            with suppress(RunError):  # a store that takes no more: resume finds the campaign as it was left
                self._store.set_state(self._entry.id, state)
            self._observer.campaign_finished(state)
        return self._store.campaign(self._entry.id)

    def _run(self) -> str:
        entries = self._store.trials(self._entry.id)
        self._observer.campaign_started(self._entry, entries)
        self._note_changed(entries)
        left = [entry.trial for entry in entries if not entry.finished_itself]
        variables = campaign_variables(self._entry.id)
        hooks = self._plan.hooks
        if left:
            self._note_spoilers(left)
            run_hook("before_campaign", hooks.before_campaign, variables, self._stop)
            try:
                self._run_trials(left)
            finally:
                run_hook("after_campaign", hooks.after_campaign, variables, self._stop)
        states = set(self._store.states(self._entry.id).values())
        if states <= {"done", "failed"}:
            return "failed" if "failed" in states else "done"
        return "interrupted"

    def _run_trials(self, left: Sequence[Trial]) -> None:
        for trial in left:
            self._load(trial)
        for number, trial in enumerate(left):
            if number and self._plan.pause_s:
                self._stop.wait(self._plan.pause_s)
            if self._stop.requested:
                return
            address = str(self._sides[trial.target].target.address)
            hooks = self._plan.hooks
            run_hook("before_trial", hooks.before_trial, trial_variables(trial, address), self._stop)
            state = "interrupted"
            try:
                state = self._run_trial(trial).state
            finally:
                run_hook("after_trial", hooks.after_trial, trial_variables(trial, address, state), self._stop)

    def _load(self, trial: Trial) -> None:
        """See that the trial's data are there. Cheap when they are; tables are shared by workloads."""
        pair = (trial.target, trial.workload)
        if pair not in self._loaded:
            self._ensure(trial)
            self._loaded.add(pair)

    def _ensure(self, trial: Trial) -> None:
        def progress(step: Progress) -> None:
            self._observer.preparing(trial.target, trial.workload, step)
            if self._stop.requested:
                raise Interrupted("stopped while data were loaded; a resume loads them anew")

        workload = self._workloads[trial.workload]
        report = ensure(self._sides[trial.target].target, workload, seed=self._plan.seed, progress=progress)
        if not report.already_there:
            self._observer.note(report.sentence)

    def _run_trial(self, trial: Trial) -> Outcome:
        side, workload = self._sides[trial.target], self._workloads[trial.workload]
        environment, problem = self._look(trial, side, workload)
        self._store.begin_trial(trial.id, environment, source_text(workload))
        self._observer.trial_started(trial)
        try:
            outcome = _not_begun(problem, workload) if problem else self._drive(trial, side, workload)
        except BaseException:
            with suppress(RunError):
                self._store.break_off_trial(trial.id)
            raise
        outcome = replace(outcome, notes=(*outcome.notes, *self._notes(trial, environment)))
        try:
            self._store.finish_trial(trial.id, outcome, {} if problem else capture_after(side.target))
        except RunError as error:
            raise _StoreFailed(str(error)) from error
        # A workload that needs fewer rows than it loads adds or removes rows while it runs.
        self._altered[trial.target] |= {table.name for table in workload.schema() if table.needed_rows < table.units}
        self._observer.trial_finished(trial, outcome)
        return outcome

    def _look(self, trial: Trial, side: Side, workload: Workload) -> tuple[dict[str, Any], str]:
        """The environment before the trial, and why the trial cannot begin ("" when it can)."""
        altered = self._altered[trial.target] & {table.name for table in workload.schema()}
        problem = ""
        try:
            if altered and self._plan.reload == "changed":
                cleanup(side.target, workload)
                self._ensure(trial)
                self._altered[trial.target] -= altered
            elif altered:
                require(side.target, workload)
        except RunError as error:
            problem = str(error)
        try:
            environment = capture(
                side.target, isolation=trial.load.isolation, managed=side.managed, store=self._store.path
            )
        except RunError as error:
            return unreachable(side.target, side.managed), problem or str(error)
        return environment, problem

    def _drive(self, trial: Trial, side: Side, workload: Workload) -> Outcome:
        """Run the trial; a run that cannot begin is a failed trial, a store that takes no sample ends all."""
        job = Job(side.target, workload, trial.load, side.capabilities)

        def keep(sample: Sample) -> None:
            try:
                self._store.add_sample(trial.id, sample)
            except RunError as error:
                raise _StoreFailed(str(error)) from error
            self._observer.sample(trial, sample)

        try:
            return drive_for(side.target).run(job, keep, self._stop)
        except Interrupted:
            raise
        except DbdynoError as error:
            return _not_begun(str(error), workload)

    def _notes(self, trial: Trial, environment: Mapping[str, Any]) -> list[str]:
        notes = []
        tables = {table.name for table in self._workloads[trial.workload].schema()}
        if altered := sorted(tables & self._altered[trial.target]):
            notes.append(
                f"earlier trials added rows to {altered[0]}{' and others' * (len(altered) > 1)} or removed some;"
                ' reload = "changed" loads such tables anew'
            )
        size = environment.get("server", {}).get("database_bytes_before")
        if size:
            first = self._sizes.setdefault(trial.target, size)
            if size > first * GROWTH:
                notes.append(
                    f"the database had grown from {format_bytes(first)} to {format_bytes(size)}"
                    " since the first trial on it"
                )
        ran, now = self._programs.get(trial.workload), program_hash(self._workloads[trial.workload])
        if ran not in (None, now):
            notes.append("the workload's source or options changed since earlier trials of this campaign")
        return notes

    def _note_spoilers(self, left: Sequence[Trial]) -> None:
        """What would plainly spoil the trials that are left, said before they run: they run all the same."""
        for label, side in self._sides.items():
            trials = [trial for trial in left if trial.target == label]
            if trials:
                workloads = [self._workloads[name] for name in dict.fromkeys(trial.workload for trial in trials)]
                most = max(trial.load.connections for trial in trials)
                for sentence in spoilers(side.target, side.capabilities, workloads, most):
                    self._observer.note(f"{label}: {sentence}")

    def _note_changed(self, entries: Sequence[TrialEntry]) -> None:
        """Tell when a workload is no longer what the campaign's finished trials ran."""
        for entry in entries:
            if entry.finished_itself and entry.outcome is not None and entry.outcome.program:
                self._programs.setdefault(entry.trial.workload, entry.outcome.program)
        for label, ran in self._programs.items():
            if program_hash(self._workloads[label]) != ran:
                self._observer.note(
                    f"workload {label} has changed since this campaign began; its trials before and after"
                    " ran different programs"
                )


class _StoreFailed(Exception):
    """The store took no more; nothing that a drive says."""


def _not_begun(reason: str, workload: Workload) -> Outcome:
    """The outcome of a trial whose run could not begin."""
    empty = Histogram().encode()
    return Outcome(
        state="failed",
        reason=reason,
        seconds=0.0,
        counts=Counts(),
        errors={},
        response=empty,
        service=empty,
        lag=empty,
        health=Health(cpu_s=0.0, cpu_share=0.0, cpu_us_per_query=0.0),
        kinds={},
        program=program_hash(workload),
    )
