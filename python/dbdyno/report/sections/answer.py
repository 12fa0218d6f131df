"""Section 1: the answer in a sentence for each workload, and everything that limits what it is worth."""

from __future__ import annotations

from dbdyno.analysis.summary import Cell
from dbdyno.model.units import format_ms, format_rate
from dbdyno.report import sentences
from dbdyno.report.document import Block, Notice, Section, Statement
from dbdyno.report.material import Material


def section(material: Material) -> Section:
    """The answer."""
    if len(material.targets) > 1:
        statements = _comparisons(material)
    else:
        statements = [_alone(material, workload) for workload in material.workloads]
    return Section("answer", material.words("heading.answer"), (*statements, *_warnings(material), *_sides(material)))


def _comparisons(material: Material) -> list[Block]:
    words = material.words
    several = len(material.targets) > 2
    found: list[Block] = []
    for workload in material.workloads:
        for comparison in (each for each in material.comparisons if each.workload == workload):
            subject = f"{workload}: {comparison.other}" if several else workload
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
        return Statement(workload, words("alone.nothing", target=material.targets[0]), "", "quiet")
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
    return Statement(workload, text, words.count("alone.rounds", rounds))


def _warnings(material: Material) -> list[Block]:
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
    found += _unequal_promises(material)
    bound = [cell for cell in material.cells if cell.bound_rounds]
    if bound:
        found.append(Notice(_bound(material, bound), warning=True))
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


def _bound(material: Material, bound: list[Cell]) -> str:
    words = material.words
    places = words.listed(
        [f"{cell.workload} · {cell.target} · {words.count('connections', cell.connections)}" for cell in bound[:6]]
        + ([words("notice.more", count=len(bound) - 6)] if len(bound) > 6 else [])
    )
    reasons = words.listed(list(dict.fromkeys(reason for cell in bound for reason in cell.bound_reasons))[:3])
    return words("notice.bound" if reasons else "notice.bound_plain", places=places, reasons=reasons)


def _unequal_promises(material: Material) -> list[Block]:
    """COMMIT or isolation that do not mean the same on both sides."""
    words = material.words
    found: list[Block] = []
    promises = {target: material.server(target).get("durable_commit") for target in material.environments}
    if True in promises.values() and False in promises.values():
        waits = [target for target, durable in promises.items() if durable is True]
        not_waiting = [target for target, durable in promises.items() if durable is False]
        text = words("notice.unequal_durability", durable=words.listed(waits), loose=words.listed(not_waiting))
        found.append(Notice(text, warning=True))
    if material.campaign.plan.isolation is None:
        levels = {target: str(material.server(target).get("isolation") or "") for target in material.environments}
        if len({level.lower().replace("-", " ") for level in levels.values() if level}) > 1:
            shown = words.listed([f"{target}: {level}" for target, level in levels.items() if level])
            found.append(Notice(words("notice.unequal_isolation", levels=shown)))
    return found


def _sides(material: Material) -> list[Block]:
    """What COMMIT means on each side, with the settings that decide it."""
    words = material.words
    found: list[Block] = []
    for target in material.targets:
        if target not in material.environments:
            continue
        durable = str(material.server(target).get("durable_commit"))
        key = {"True": "durable.yes", "False": "durable.no"}.get(durable, "durable.unknown")
        settings = ", ".join(f"{name} = {value}" for name, value in material.durability(target).items())
        text = words(key, target=target)
        found.append(Notice(f"{text} ({settings})" if settings else text))
    return found
