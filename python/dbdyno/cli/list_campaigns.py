"""``dbdyno list``: the campaigns of a store."""

from __future__ import annotations

from collections import Counter

import click

from dbdyno.cli.output import say, tell_json, tell_table
from dbdyno.cli.words import as_json, store
from dbdyno.record.entries import CampaignEntry
from dbdyno.record.store import Store


@click.command(short_help="List the campaigns of a store.")
@store
@as_json
def command(store: str | None, as_json: bool) -> None:
    """List the campaigns of a store, oldest first."""
    with Store.open(store) as opened:
        found = [(entry, Counter(opened.states(entry.id).values())) for entry in opened.campaigns()]
        name = str(opened)
    if as_json:
        tell_json({"campaigns": [described(entry, states) for entry, states in found]})
        return
    if not found:
        say(f"the store {name} holds no campaign yet")
        return
    tell_table(
        ["campaign", "state", "begun", "trials", "targets", "workloads"],
        [
            (
                entry.id,
                entry.state,
                entry.created.astimezone().strftime("%Y-%m-%d %H:%M"),
                f"{states['done']}/{states.total()}" + (f", {states['failed']} failed" if states["failed"] else ""),
                _few([target.name for target in entry.plan.target]),
                _few([workload.label for workload in entry.plan.workload]),
            )
            for entry, states in found
        ],
        left=(0, 1, 2, 3, 4, 5),
    )


def _few(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def described(entry: CampaignEntry, states: Counter[str]) -> dict[str, object]:
    """A campaign as JSON; ``trials`` counts by state."""
    return {
        "campaign": entry.id,
        "state": entry.state,
        "created": entry.created.isoformat(),
        "trials": dict(sorted(states.items())),
        "targets": [target.name for target in entry.plan.target],
        "workloads": [workload.label for workload in entry.plan.workload],
        "connections": list(entry.plan.connections),
        "rounds": entry.plan.rounds,
        "dbdyno": entry.version,
    }
