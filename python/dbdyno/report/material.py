"""What a report is made of: a campaign's trials, summed up and compared once, for all sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dbdyno.analysis.comparison import Comparison, compare_targets
from dbdyno.analysis.summary import Cell, cells
from dbdyno.model.sample import Sample
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.report.words import Words


@dataclass(frozen=True)
class Material:
    """``samples`` fetches a trial's samples by its id, warm-up included."""

    campaign: CampaignEntry
    trials: tuple[TrialEntry, ...]
    samples: Callable[[str], Sequence[Sample]]
    words: Words

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells: by workload, connections, target."""
        return cells(self.trials)

    @cached_property
    def targets(self) -> list[str]:
        """Labels of the targets, the baseline first."""
        labels = list(dict.fromkeys(entry.trial.target for entry in self.trials))
        return sorted(labels, key=lambda label: label != self.baseline)

    @property
    def baseline(self) -> str:
        """Label of the target that the others are compared with."""
        return self.campaign.plan.baseline_name

    @cached_property
    def workloads(self) -> list[str]:
        """Labels of the workloads in the plan's order."""
        return list(dict.fromkeys(cell.workload for cell in self.cells))

    @cached_property
    def connections(self) -> list[int]:
        """Connection counts, ascending."""
        return sorted({cell.connections for cell in self.cells})

    def title(self, workload: str) -> str:
        """A workload's label, with its name where the plan gave it another one."""
        name = next(entry.trial.workload_name for entry in self.trials if entry.trial.workload == workload)
        return workload if name == workload else f"{workload} · {name}"

    def cells_of(self, workload: str) -> list[Cell]:
        """The cells of a workload, by connections, the baseline first."""
        found = [cell for cell in self.cells if cell.workload == workload]
        return sorted(found, key=lambda cell: (cell.connections, self.targets.index(cell.target)))

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Every other target against the baseline, by workload."""
        return compare_all(self.trials, self.baseline, pair=self.campaign.plan.order == "interleaved")

    def comparison(self, workload: str, target: str) -> Comparison | None:
        """The comparison of that target with the baseline; None for the baseline itself."""
        for comparison in self.comparisons:
            if (comparison.workload, comparison.other) == (workload, target):
                return comparison
        return None

    @cached_property
    def environments(self) -> dict[str, Mapping[str, Any]]:
        """Target to the environment of its first trial that has one."""
        found: dict[str, Mapping[str, Any]] = {}
        for entry in self.trials:
            if entry.environment:
                found.setdefault(entry.trial.target, entry.environment)
        return found

    def server(self, target: str) -> Mapping[str, Any]:
        """What was captured of a target's server; empty when nothing was."""
        return _mapping(self.environments.get(target, {}).get("server"))

    def settings(self, target: str) -> Mapping[str, Any]:
        """All settings of a target's server, as found before its first trial."""
        return _mapping(self.server(target).get("settings"))

    def durability(self, target: str) -> Mapping[str, Any]:
        """The settings that decide what COMMIT means."""
        return _mapping(self.server(target).get("durability"))

    def durability_text(self, target: str, most: int | None = None) -> str:
        """``"fsync = on, synchronous_commit = on"``; the first ``most`` of them."""
        found = [f"{name} = {value if str(value) else '(empty)'}" for name, value in self.durability(target).items()]
        return ", ".join(found if most is None or len(found) <= most else [*found[:most], "…"])

    @cached_property
    def changed_settings(self) -> dict[str, list[str]]:
        """Target to the names of settings that were not the same in all of its trials."""
        return {target: changed_settings(self.trials, target) for target in self.targets}


def compare_all(trials: Iterable[TrialEntry], baseline: str, *, pair: bool) -> list[Comparison]:
    """Every other target of a campaign against the baseline: by target, then by workload."""
    entries = list(trials)
    summed = cells(entries)
    others = [target for target in dict.fromkeys(cell.target for cell in summed) if target != baseline]
    return [
        comparison
        for other in others
        for comparison in compare_targets(
            summed, baseline, other, pair=pair, same_database=same_database(entries, baseline, other)
        )
    ]


def same_database(trials: Sequence[TrialEntry], one: str, two: str) -> bool:
    """Whether two labels stood for one database: same address, driver, version and settings.

    Settings that change by themselves (they differ among one label's own trials) do not tell them apart.
    """
    first, second = (
        next((entry.environment for entry in trials if entry.trial.target == label and entry.environment), None)
        for label in (one, two)
    )
    if first is None or second is None or first.get("address") is None:
        return False
    if any(first.get(key) != second.get(key) for key in ("address", "driver")):
        return False
    left, right = _mapping(first.get("server")), _mapping(second.get("server"))
    if left.get("version") != right.get("version"):
        return False
    moving = {*changed_settings(trials, one), *changed_settings(trials, two)}
    sides = (_mapping(left.get("settings")), _mapping(right.get("settings")))
    return all(sides[0].get(name) == sides[1].get(name) for name in {*sides[0], *sides[1]} - moving)


def changed_settings(trials: Iterable[TrialEntry], target: str) -> list[str]:
    """Names of a target's settings that were not the same in all of its trials, sorted."""
    found = [
        _mapping(_mapping(entry.environment.get("server")).get("settings"))
        for entry in trials
        if entry.trial.target == target and entry.environment
    ]
    if not found:
        return []
    names = set().union(*found)
    return sorted(name for name in names if any(each.get(name) != found[0].get(name) for each in found))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
