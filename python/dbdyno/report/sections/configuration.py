"""Section 7: how the targets were set up differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.report.document import Block, Cell, Column, Facts, Folded, Paragraph, Row, Section, Table
from dbdyno.report.material import Material


def section(material: Material) -> Section:
    """Configuration differences."""
    words = material.words
    targets = [target for target in material.targets if target in material.environments]
    if not targets:
        blocks: list[Block] = [Paragraph(words("configuration.nothing"))]
        return Section("configuration", words("heading.configuration"), tuple(blocks))
    blocks = [_durability(material, targets)]
    baseline = targets[0]
    for other in targets[1:]:
        blocks += _differences(material, baseline, other)
    changed = {target: names for target, names in material.changed_settings.items() if names}
    for target, names in changed.items():
        blocks.append(Paragraph(words("configuration.changed", target=target, names=", ".join(names))))
    blocks += [_everything(material, target) for target in targets if material.settings(target)]
    return Section("configuration", words("heading.configuration"), tuple(blocks))


def _durability(material: Material, targets: list[str]) -> Block:
    """Side by side, always: what COMMIT means on each."""
    words = material.words
    rows = []
    for target in targets:
        server = material.server(target)
        durable = words({"True": "yes", "False": "no"}.get(str(server.get("durable_commit")), "unknown"))
        settings = material.durability_text(target)
        isolation = material.campaign.plan.isolation or str(server.get("isolation") or "–")
        rows.append(Row((Cell(target), Cell(durable), Cell(settings or "–"), Cell(isolation))))
    columns = tuple(Column(words(f"col.{key}")) for key in ("target", "durable", "durability", "isolation"))
    return Table(words("caption.durability"), columns, tuple(rows))


def _differences(material: Material, baseline: str, other: str) -> list[Block]:
    words = material.words
    left, right = material.settings(baseline), material.settings(other)
    names = {"baseline": baseline, "other": other}
    if material.server(baseline).get("family") != material.server(other).get("family"):
        return [Paragraph(words("configuration.families", **names))]
    moving = {*material.changed_settings.get(baseline, ()), *material.changed_settings.get(other, ())}
    differing = sorted(name for name in {*left, *right} - moving if left.get(name) != right.get(name))
    if not differing:
        return [Paragraph(words("configuration.same", **names))]
    rows = tuple(Row((Cell(name), Cell(_shown(left, name)), Cell(_shown(right, name)))) for name in differing)
    columns = (Column(words("col.setting")), Column(baseline), Column(other))
    return [Table(words("caption.differences", **names), columns, rows, code=True)]


def _everything(material: Material, target: str) -> Folded:
    words = material.words
    settings, server = material.settings(target), material.server(target)
    rows = tuple(Row((Cell(name), Cell(_shown(settings, name)))) for name in sorted(settings))
    table = Table(
        words("caption.settings", target=target),
        (Column(words("col.setting")), Column(words("col.value"))),
        rows,
        code=True,
    )
    texts = dict.fromkeys(str(server[key]) for key in ("version_text", "comment") if server.get(key))
    facts = [(words("server.version_text"), "; ".join(texts))] if texts else []
    for group in ("managed", "extra"):
        values = server.get(group)
        if isinstance(values, Mapping):
            facts += [(str(name), str(value)) for name, value in values.items() if value not in (None, "", {})]
    about = (Facts(words("caption.server", target=target), tuple(facts)),) if facts else ()
    return Folded(words("configuration.all", target=target, count=len(settings)), (*about, table))


def _shown(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return "–" if value is None else str(value)
