"""Section 8: where and with what it was measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from dbdyno.model.units import format_bytes, format_duration
from dbdyno.report.document import Block, Cell, Column, Facts, Folded, Paragraph, Row, Section, Table, Text
from dbdyno.report.material import Material
from dbdyno.report.words import TABLE

_ORDER = ("cpu_model", "cores", "memory_bytes", "kernel", "numa_nodes", "disk", "load_average", "python", "dbdyno")
_SHORT = 60  # characters of a comment that a table can take
_MACHINE = ("cpu_model", "cores", "memory_bytes", "kernel")  # what tells one client machine from another


def section(material: Material) -> Section:
    """Environment."""
    words = material.words
    blocks: list[Block] = []
    clients = _clients(material)
    for number, client in enumerate(clients, start=1):
        caption = words("caption.client") if len(clients) == 1 else f"{words('caption.client')} {number}"
        blocks.append(Facts(caption, tuple(_facts(material, client))))
    blocks.append(_campaign(material))
    if material.environments:
        blocks.append(_servers(material))
    blocks.append(_workloads(material))
    notes = _notes(material)
    if notes:
        blocks.append(notes)
    blocks.append(Folded(words("environment.plan"), (Text(words("caption.plan"), material.campaign.plan_text),)))
    for label, source in _sources(material).items():
        summary = words("environment.source", workload=label)
        blocks.append(Folded(summary, (Text(summary, source),)))
    return Section("environment", words("heading.environment"), tuple(blocks))


def _clients(material: Material) -> list[list[Mapping[str, Any]]]:
    """What was captured of the client before each trial, by machine."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for entry in material.trials:
        client = entry.environment.get("client")
        if isinstance(client, Mapping):
            found.setdefault(tuple(str(client.get(name)) for name in _MACHINE), []).append(client)
    return list(found.values())


def _facts(material: Material, captured: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Each fact once; one that moved from trial to trial with its range."""
    names = dict.fromkeys(name for client in captured for name in client)
    ordered = sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    found = []
    for name in ordered:
        values = [client[name] for client in captured if client.get(name) not in (None, {}, [])]
        shown = _shown(material, name, values) if values else ""
        if shown:
            label = material.words(f"client.{name}") if f"client.{name}" in TABLE else name.replace("_", " ")
            found.append((label, shown))
    return found


def _shown(material: Material, name: str, values: list[Any]) -> str:
    first = values[0]
    if isinstance(first, Mapping):
        parts = []
        for key in first:
            inner = [value[key] for value in values if isinstance(value, Mapping) and value.get(key) is not None]
            if inner and key != "options":
                parts.append(f"{key.replace('_', ' ')}: {_shown(material, key, inner)}")
        return ", ".join(parts)
    if isinstance(first, list | tuple):
        heads = [value[0] for value in values if isinstance(value, list | tuple) and value]
        return _shown(material, name, heads) if name == "load_average" else ", ".join(map(str, first))
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values) and min(numbers) != max(numbers):
        return material.words("interval", low=_text(name, min(numbers)), high=_text(name, max(numbers)))
    words = {True: material.words("yes"), False: material.words("no")}
    texts = (words[value] if isinstance(value, bool) else _text(name, value) for value in values)
    return ", ".join(dict.fromkeys(texts))


def _text(name: str, value: Any) -> str:
    if name.endswith("bytes") and isinstance(value, int):
        return format_bytes(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _servers(material: Material) -> Table:
    """One row a target."""
    words = material.words
    rows = []
    for target in material.targets:
        environment = material.environments.get(target)
        if environment is None:
            continue
        server = material.server(target)
        version = " ".join(str(server[key]) for key in ("flavour", "version") if server.get(key))
        comment = str(server.get("comment") or "")
        if len(comment) > _SHORT or comment in version:
            comment = ""  # whole among the server's facts in the section before
        place = "in_process" if server.get("in_process") else "same_host" if server.get("same_host") else "remote"
        rows.append(
            Row(
                (
                    Cell(target),
                    Cell(f"{version or '–'}{f' ({comment})' if comment else ''}"),
                    Cell(str(environment.get("address") or "–")),
                    Cell(words(f"place.{place}")),
                    Cell(str(environment.get("driver") or "–")),
                    Cell(_growth(material, target)),
                )
            )
        )
    columns = tuple(
        Column(words(f"col.{key}")) for key in ("target", "version", "address", "place", "driver", "database_size")
    )
    return Table(words("caption.servers"), columns, tuple(rows))


def _growth(material: Material, target: str) -> str:
    """Size of the database before the target's first and after its last trial."""
    sizes: list[int] = []
    for entry in material.trials:
        server = entry.environment.get("server")
        if entry.trial.target == target and isinstance(server, Mapping):
            sizes += [
                value
                for key in ("database_bytes_before", "database_bytes_after")
                if isinstance(value := server.get(key), int)
            ]
    return f"{format_bytes(sizes[0])} → {format_bytes(sizes[-1])}" if sizes else "–"


def _campaign(material: Material) -> Facts:
    words, campaign, plan = material.words, material.campaign, material.campaign.plan
    length = words("how_long.transactions", count=f"{plan.transactions:,}") if plan.transactions else ""
    if plan.duration_s is not None:
        length = format_duration(plan.duration_s)
    times = [moment for entry in material.trials for moment in (entry.started, entry.finished) if moment]
    facts = [
        (words("campaign.id"), campaign.id),
        (words("campaign.state"), words(f"state.{campaign.state}")),
        (words("campaign.trials"), str(len(material.trials))),
        (words("campaign.length"), length),
        (words("campaign.warmup"), format_duration(plan.warmup_s)),
        (words("campaign.interval"), format_duration(plan.interval_s)),
        (words("campaign.order"), words(f"order.{plan.order}")),
        (words("campaign.loop"), _loop(material)),
        (words("campaign.seed"), str(plan.seed)),
    ]
    if times:
        took = (max(times) - min(times)).total_seconds()
        facts.append((words("campaign.measured"), f"{min(times):%Y-%m-%d %H:%M} UTC, {format_duration(took)}"))
    if campaign.version:
        facts.append((words("campaign.version"), campaign.version))
    return Facts(words("caption.campaign"), tuple(facts))


def _loop(material: Material) -> str:
    plan, words = material.campaign.plan, material.words
    if plan.rate is None:
        return words("loop.closed")
    return words("loop.open", rate=f"{plan.rate:,g}", arrivals=words(f"arrivals.{plan.arrivals}"))


def _workloads(material: Material) -> Table:
    words = material.words
    rows = []
    for label in material.workloads:
        entry = next(entry for entry in material.trials if entry.trial.workload == label)
        options = ", ".join(f"{name} = {value}" for name, value in sorted(entry.trial.options.items()))
        programs = dict.fromkeys(
            each.outcome.program
            for each in material.trials
            if each.trial.workload == label and each.outcome and each.outcome.program
        )
        shown = [program.removeprefix("sha256:")[:16] for program in programs]
        rows.append(
            Row(
                (
                    Cell(label),
                    Cell(entry.trial.workload_name),
                    Cell(options or words("defaults")),
                    Cell(", ".join(shown) or "–"),
                )
            )
        )
    columns = tuple(Column(words(f"col.{key}")) for key in ("workload", "name", "options", "program"))
    return Table(words("caption.workloads"), columns, tuple(rows))


def _notes(material: Material) -> Block | None:
    """Notes of the drives, each once, with the number of trials that have it."""
    counts: dict[str, int] = {}
    for entry in material.trials:
        for note in entry.outcome.notes if entry.outcome else ():
            counts[note] = counts.get(note, 0) + 1
    if not counts:
        return None
    lines = [f"{note} ({material.words.count('trials', count)})" for note, count in counts.items()]
    return Paragraph(material.words("environment.notes", notes="; ".join(lines)))


def _sources(material: Material) -> dict[str, str]:
    """Workload label (with a hash when there are several) to the text that ran."""
    found: dict[str, str] = {}
    for label in material.workloads:
        texts = dict.fromkeys(
            entry.source for entry in material.trials if entry.trial.workload == label and entry.source
        )
        for text in texts:
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            found[label if len(texts) == 1 else f"{label} {digest}"] = text
    return found
