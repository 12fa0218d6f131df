"""What is put into a store. Functions over a connection within a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import sqlalchemy as sa

from dbdyno.model.errors import UsageError
from dbdyno.model.masking import mask_passwords
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record import rows
from dbdyno.record.schema import CAMPAIGN, OUTCOME, SAMPLE, SOURCE, TRIAL

#: Made once, values given at execution: a sample must cost little while something is being measured.
_ADD_SAMPLE = sa.insert(SAMPLE)


def our_version() -> str:
    """The installed dbdyno's version; ``unknown`` in a source tree that was never installed."""
    try:
        return version("dbdyno")
    except PackageNotFoundError:
        return "unknown"


def new_campaign(connection: sa.Connection, plan: Plan, plan_text: str, writer: str) -> str:
    """Add a campaign in state ``running``; its id. Whatever is given, no password gets in."""
    numbers = sa.select(sa.func.max(CAMPAIGN.c.number)).where(CAMPAIGN.c.name == plan.name)
    number = (connection.execute(numbers).scalar() or 0) + 1
    campaign_id = f"{plan.name}-{number}"
    connection.execute(
        sa.insert(CAMPAIGN).values(
            id=campaign_id,
            name=plan.name,
            number=number,
            created=rows.now(),
            state="running",
            plan=plan.without_passwords().model_dump_json(by_alias=True),
            plan_text=mask_passwords(plan_text),
            version=our_version(),
            writer=writer,
            beat=rows.now(),
        )
    )
    return campaign_id


def add_trials(connection: sa.Connection, campaign_id: str, trials: Iterable[Trial]) -> None:
    """Add a campaign's trials, all pending."""
    values = [
        {
            "id": trial.id,
            "campaign_id": campaign_id,
            "number": trial.number,
            "workload": trial.workload,
            "target": trial.target,
            "connections": trial.connections,
            "round": trial.round,
            "trial": rows.trial_json(trial),
            "state": "pending",
        }
        for trial in trials
    ]
    if values:
        connection.execute(sa.insert(TRIAL), values)


def _source_hash(connection: sa.Connection, text: str) -> str:
    digest = sha256(text.encode()).hexdigest()
    known = connection.execute(sa.select(SOURCE.c.hash).where(SOURCE.c.hash == digest)).first()
    if known is None:
        connection.execute(sa.insert(SOURCE).values(hash=digest, text=text))
    return digest


def _state_of(connection: sa.Connection, trial_id: str) -> str:
    state = connection.execute(sa.select(TRIAL.c.state).where(TRIAL.c.id == trial_id)).scalar()
    if state is None:
        raise UsageError(f"no trial {trial_id!r} in the store")
    return str(state)


def begin_trial(connection: sa.Connection, trial_id: str, environment: Mapping[str, Any], source: str) -> None:
    """Set a trial running with what was captured; an unfinished earlier attempt's samples go.

    Raises:
        UsageError: it is finished already: finished trials are never changed.
    """
    if _state_of(connection, trial_id) in ("done", "failed"):
        raise UsageError(f"trial {trial_id} is finished; a finished trial is never run again in its campaign")
    connection.execute(sa.delete(SAMPLE).where(SAMPLE.c.trial_id == trial_id))
    connection.execute(sa.delete(OUTCOME).where(OUTCOME.c.trial_id == trial_id))
    connection.execute(
        sa.update(TRIAL)
        .where(TRIAL.c.id == trial_id)
        .values(
            state="running",
            started=rows.now(),
            finished=None,
            environment=mask_passwords(rows.to_json(environment)),
            source_hash=_source_hash(connection, source) if source else None,
        )
    )


def add_sample(connection: sa.Connection, trial_id: str, number: int, sample: Sample) -> None:
    """Add the sample of one interval."""
    connection.execute(_ADD_SAMPLE, rows.sample_row(trial_id, number, sample))


def finish_trial(
    connection: sa.Connection, trial_id: str, outcome: Outcome, environment_after: Mapping[str, Any]
) -> None:
    """Add a trial's outcome and take over its state."""
    if _state_of(connection, trial_id) != "running":
        raise UsageError(f"trial {trial_id} is not running, so it cannot be finished")
    found = connection.execute(sa.select(TRIAL.c.environment).where(TRIAL.c.id == trial_id)).scalar()
    environment = rows.merged(json.loads(found or "{}"), environment_after)
    connection.execute(sa.insert(OUTCOME).values(rows.outcome_row(trial_id, outcome)))
    connection.execute(
        sa.update(TRIAL)
        .where(TRIAL.c.id == trial_id)
        .values(
            state=outcome.state,
            finished=rows.now(),
            environment=mask_passwords(rows.to_json(environment)),
        )
    )


def break_off_trial(connection: sa.Connection, trial_id: str) -> None:
    """Mark a trial whose process died, or that never began measuring, as interrupted; its samples stay."""
    connection.execute(
        sa.update(TRIAL)
        .where(TRIAL.c.id == trial_id, TRIAL.c.state == "running")
        .values(state="interrupted", finished=rows.now())
    )


def set_state(connection: sa.Connection, campaign_id: str, state: str, writer: str | None) -> None:
    """Set a campaign's state, and who runs it now (None: nobody)."""
    connection.execute(
        sa.update(CAMPAIGN).where(CAMPAIGN.c.id == campaign_id).values(state=state, writer=writer, beat=rows.now())
    )


def beat(connection: sa.Connection, campaign_id: str) -> None:
    """Say that the campaign's process is alive."""
    connection.execute(sa.update(CAMPAIGN).where(CAMPAIGN.c.id == campaign_id).values(beat=rows.now()))
