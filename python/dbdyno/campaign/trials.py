"""The matrix of a plan: which trials there are, in which order they run, how long that takes."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.model.plan import Plan, PlanTarget, PlanWorkload
from dbdyno.model.trial import Trial

#: What a trial takes beside warm-up and measuring: connecting, capturing the environment, draining.
OVERHEAD_S = 0.35


def expand(plan: Plan, campaign_id: str) -> list[Trial]:
    """All trials in the order of running. The same plan gives the same list, whenever it is expanded.

    ``interleaved``: round by round, and within a round the targets follow each other on the same cell, so that
    a drift of the machine meets all of them alike; every other round begins with the last target, so that none
    always comes first. ``blocks``: all of one target before the next one, for servers that slow down when left.
    """
    if plan.order == "blocks":
        cells = [
            (workload, target, count, number)
            for target in plan.target
            for number in range(1, plan.rounds + 1)
            for workload in plan.workload
            for count in plan.connections
        ]
    else:
        cells = [
            (workload, target, count, number)
            for number in range(1, plan.rounds + 1)
            for workload in plan.workload
            for count in plan.connections
            for target in (plan.target if number % 2 else plan.target[::-1])
        ]
    return [_trial(plan, campaign_id, position, *cell) for position, cell in enumerate(cells, 1)]


def _trial(
    plan: Plan,
    campaign_id: str,
    position: int,
    workload: PlanWorkload,
    target: PlanTarget,
    connections: int,
    number: int,
) -> Trial:
    # The targets of a cell meet the same random values; no two cells do, or a second round would insert the
    # first one's rows again. The first cell has the plan's own seed.
    cell = (number - 1) * len(plan.workload) + plan.workload.index(workload)
    cell = cell * len(plan.connections) + plan.connections.index(connections)
    return Trial(
        campaign=campaign_id,
        number=position,
        workload=workload.label,
        workload_name=workload.name,
        options=workload.options,
        target=target.name,
        load=replace(plan.load(connections), seed=(plan.seed + cell) % 2**63),
        round=number,
    )


def estimate_s(plan: Plan) -> float | None:
    """Seconds that the trials will take, without loading data; None when they end by transaction count."""
    each = trial_s(plan)
    if each is None:
        return None
    count = len(plan.target) * len(plan.workload) * len(plan.connections) * plan.rounds
    return count * each + max(0, count - 1) * plan.pause_s


def trial_s(plan: Plan) -> float | None:
    """Seconds that one trial will take; None when it ends by transaction count."""
    return None if plan.duration_s is None else plan.warmup_s + plan.duration_s + OVERHEAD_S
