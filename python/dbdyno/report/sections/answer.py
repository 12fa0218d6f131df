"""Section 1: the answer in a sentence for each workload, and everything that limits what it is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dbdyno.analysis.summary import Cell
from dbdyno.model.units import format_ms, format_rate
from dbdyno.report import sentences
from dbdyno.report.document import Block, Notice, Section, Statement
from dbdyno.report.material import Material

# Loading data keeps a client and a server busy: up to that many runnable processes a core are ours.
_BUSY = 1.5


def section(material: Material) -> Section:
    """The answer."""
    if len(material.targets) > 1:
        statements = _comparisons(material)
    else:
        statements = [_alone(material, workload) for workload in material.workloads]
    return Section("answer", material.words("heading.answer"), (*statements, *_limits(material)))


def _comparisons(material: Material) -> list[Block]:
    words = material.words
    several = len(material.targets) > 2
    found: list[Block] = []
    for workload in material.workloads:
        for comparison in (each for each in material.comparisons if each.workload == workload):
            title = material.title(workload)
            subject = f"{title}: {comparison.other}" if several else title
            tone = "" if comparison.mixed else sentences.tone(comparison.overall)
            found.append(
                Statement(
                    subject,
                    sentences.sentence(comparison, words),
                    sentences.evidence(comparison, words),
                    tone,
                )
            )
    return found


def _alone(material: Material, workload: str) -> Block:
    """One target, nothing to compare: its highest throughput."""
    words = material.words
    measured = [cell for cell in material.cells_of(workload) if cell.mean_tps is not None]
    if not measured:
        return Statement(material.title(workload), words("alone.nothing", target=material.targets[0]), "", "quiet")
    best = max(measured, key=lambda cell: cell.mean_tps or 0.0)
    p95 = format_ms(best.response.p95) if best.response else "–"
    text = words(
        "alone.best" if len(measured) > 1 else "alone.single",
        target=best.target,
        tps=format_rate(best.mean_tps or 0.0),
        place=words.count("connections", best.connections),
        p95=p95,
    )
    rounds = sum(entry.counts for entry in best.rounds)
    return Statement(material.title(workload), text, words.count("alone.rounds", rounds))


def _limits(material: Material) -> list[Block]:
    """Warnings first, then what COMMIT means on each side, then the rest."""
    words = material.words
    found: list[Block] = []
    done = sum(entry.state == "done" for entry in material.trials)
    if done < len(material.trials):
        found.append(
            Notice(
                words(
                    "notice.unfinished",
                    done=done,
                    all=len(material.trials),
                    state=words(f"state.{material.campaign.state}"),
                ),
                warning=True,
            )
        )
    found += _unequal_durability(material)
    bound = [cell for cell in material.cells if cell.bound_rounds]
    if bound:
        found.append(Notice(_bound(material, bound), warning=True))
    found += _busy(material)
    found += _sides(material)
    found += _unequal_isolation(material)
    found += _unequal_drives(material)
    for target in material.targets:
        if material.server(target).get("in_process"):
            found.append(Notice(words("notice.in_process", target=target)))
    beside = [
        target
        for target in material.targets
        if material.server(target).get("same_host") and not material.server(target).get("in_process")
    ]
    if beside:
        found.append(Notice(words("notice.same_host", targets=words.listed(beside))))
    return found


def _unequal_drives(material: Material) -> list[Block]:
    """What a client pays for a statement differs several times between the drives; a reader must know."""
    drives = {
        target: [drive for cell in material.cells if cell.target == target for drive in cell.drives]
        for target in material.targets
    }
    engine = [target for target, names in drives.items() if any(name.startswith("engine") for name in names)]
    others = [target for target, names in drives.items() if names and target not in engine]
    if not engine or not others:
        return []
    words = material.words
    return [Notice(words("notice.unequal_drives", engine=words.listed(engine), others=words.listed(others)))]


def _bound(material: Material, bound: list[Cell]) -> str:
    words = material.words
    counts: dict[tuple[str, str], list[int]] = {}
    for cell in bound:
        counts.setdefault((cell.workload, cell.target), []).append(cell.connections)
    places = []
    for (workload, target), connections in counts.items():
        if len(connections) == 1:
            where = words.count("connections", connections[0])
        else:
            where = words("connections", count=words.listed([str(count) for count in connections]))
        places.append(f"{workload} · {target} · {where}")
    reasons = _strongest([reason for cell in bound for reason in cell.bound_reasons])
    key = "notice.bound" if reasons else "notice.bound_plain"
    return words(key, places=words.listed(places), reasons=words.listed(reasons))


def _strongest(reasons: list[str]) -> list[str]:
    """Of reasons that differ in their figures alone, the one with the largest."""
    found: dict[str, tuple[list[float], str]] = {}
    for reason in reasons:
        figures = [float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", reason)]
        kind = re.sub(r"\d+(?:\.\d+)?", "#", reason)
        found[kind] = max(found.get(kind, ([], "")), (figures, reason))
    return [reason for _, reason in found.values()]


def _busy(material: Material) -> list[Block]:
    """Something else ran on the client's machine: its load before the first trial, which is not yet our own."""
    first = next((entry.environment for entry in material.trials if entry.environment.get("client")), None)
    client: Mapping[str, Any] = first["client"] if first is not None else {}
    load, cores = client.get("load_average"), client.get("cores_usable") or client.get("cores")
    if not load or not cores or load[0] <= _BUSY * cores:
        return []
    text = material.words("notice.busy", load=f"{load[0]:.1f}", cores=material.words.count("cores", cores))
    return [Notice(text, warning=True)]


def _unequal_durability(material: Material) -> list[Block]:
    words = material.words
    promises = {target: material.server(target).get("durable_commit") for target in material.environments}
    if not {True, False} <= set(promises.values()):
        return []
    waiting = [target for target, durable in promises.items() if durable is True]
    loose = [target for target, durable in promises.items() if durable is False]
    text = words("notice.unequal_durability", durable=words.listed(waiting), loose=words.listed(loose))
    return [Notice(text, warning=True)]


def _unequal_isolation(material: Material) -> list[Block]:
    """Only where the plan asks for none, so that each side has its own default."""
    words = material.words
    levels = {target: str(material.server(target).get("isolation") or "") for target in material.environments}
    different = {level.lower().replace("-", " ") for level in levels.values() if level}
    if material.campaign.plan.isolation is not None or len(different) < 2:
        return []
    shown = [f"{target} {level}" for target, level in levels.items() if level]
    return [Notice(words("notice.unequal_isolation", levels=words.listed(shown)))]


def _sides(material: Material) -> list[Block]:
    """What COMMIT means on each side, with the settings that decide it."""
    words = material.words
    found: list[Block] = []
    for target in material.targets:
        if target not in material.environments:
            continue
        durable = str(material.server(target).get("durable_commit"))
        key = {"True": "durable.yes", "False": "durable.no"}.get(durable, "durable.unknown")
        settings = material.durability_text(target, most=3)
        text = words(key, target=target)
        found.append(Notice(f"{text} ({settings})" if settings else text))
    return found
