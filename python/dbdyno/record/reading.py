"""What is asked of a store. Functions over a connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from dbdyno.model.errors import UsageError, nearest
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Sample
from dbdyno.record import rows
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.schema import CAMPAIGN, OUTCOME, SAMPLE, SOURCE, TRIAL


def _campaign_from(row: Any) -> CampaignEntry:
    created = rows.to_time(row.created)
    assert created is not None
    return CampaignEntry(
        id=row.id,
        name=row.name,
        created=created,
        state=row.state,
        plan=Plan.model_validate_json(row.plan),
        plan_text=row.plan_text,
        version=row.version,
    )


def campaigns(connection: sa.Connection) -> list[CampaignEntry]:
    """All campaigns, oldest first."""
    query = sa.select(CAMPAIGN).order_by(CAMPAIGN.c.created, CAMPAIGN.c.id)
    return [_campaign_from(row) for row in connection.execute(query)]


def campaign(connection: sa.Connection, campaign_id: str) -> CampaignEntry:
    """One campaign.

    Raises:
        UsageError: there is none of that id; the nearest one is named.
    """
    row = connection.execute(sa.select(CAMPAIGN).where(CAMPAIGN.c.id == campaign_id)).first()
    if row is None:
        known = list(connection.execute(sa.select(CAMPAIGN.c.id)).scalars())
        raise UsageError(f"no campaign {campaign_id!r}{nearest(campaign_id, known) or '; the store is empty'}")
    return _campaign_from(row)


def _trial_query() -> sa.Select[Any]:
    return (
        sa.select(
            TRIAL.c.trial,
            TRIAL.c.state.label("trial_state"),
            TRIAL.c.started,
            TRIAL.c.finished,
            TRIAL.c.environment,
            SOURCE.c.text.label("source"),
            OUTCOME,
        )
        .select_from(
            TRIAL.outerjoin(SOURCE, SOURCE.c.hash == TRIAL.c.source_hash).outerjoin(
                OUTCOME, OUTCOME.c.trial_id == TRIAL.c.id
            )
        )
        .order_by(TRIAL.c.number)
    )


def _trial_from(row: Any) -> TrialEntry:
    return TrialEntry(
        trial=rows.trial_from(row["trial"]),
        state=row["trial_state"],
        started=rows.to_time(row["started"]),
        finished=rows.to_time(row["finished"]),
        environment=json.loads(row["environment"] or "{}"),
        outcome=None if row["trial_id"] is None else rows.outcome_from(row),
        source=row["source"] or "",
    )


def trials(connection: sa.Connection, campaign_id: str) -> list[TrialEntry]:
    """All trials of a campaign in the order of running."""
    query = _trial_query().where(TRIAL.c.campaign_id == campaign_id)
    return [_trial_from(row) for row in connection.execute(query).mappings()]


def trial(connection: sa.Connection, trial_id: str) -> TrialEntry:
    """One trial.

    Raises:
        UsageError: there is none of that id; the nearest one is named.
    """
    row = connection.execute(_trial_query().where(TRIAL.c.id == trial_id)).mappings().first()
    if row is None:
        known = list(connection.execute(sa.select(TRIAL.c.id)).scalars())
        near = nearest(trial_id, known) if len(known) < 20 or "did you" in nearest(trial_id, known) else ""
        raise UsageError(f"no trial {trial_id!r}{near}")
    return _trial_from(row)


def samples(connection: sa.Connection, trial_id: str) -> Iterator[Sample]:
    """A trial's samples in the order they came."""
    query = sa.select(SAMPLE).where(SAMPLE.c.trial_id == trial_id).order_by(SAMPLE.c.number)
    for row in connection.execute(query).mappings():
        yield rows.sample_from(row)  # type: ignore[arg-type]


def states(connection: sa.Connection, campaign_id: str) -> dict[str, str]:
    """Trial id to state, in the order of running."""
    query = sa.select(TRIAL.c.id, TRIAL.c.state).where(TRIAL.c.campaign_id == campaign_id)
    return {row.id: row.state for row in connection.execute(query.order_by(TRIAL.c.number))}


def writer(connection: sa.Connection, campaign_id: str) -> tuple[str | None, str | None]:
    """(process that runs the campaign, when it last wrote)."""
    query = sa.select(CAMPAIGN.c.writer, CAMPAIGN.c.beat).where(CAMPAIGN.c.id == campaign_id)
    row = connection.execute(query).first()
    return (None, None) if row is None else (row.writer, row.beat)
