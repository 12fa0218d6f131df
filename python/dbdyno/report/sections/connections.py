"""Section 3: throughput and latency against connections, drawn and as a table."""

from __future__ import annotations

from typing import Any

from dbdyno.analysis.summary import Cell as Summary
from dbdyno.model.units import format_ms
from dbdyno.report.document import Block, Cell, Chart, Column, Group, Row, Section, Table
from dbdyno.report.material import Material

PERCENTILES = ("p95", "p99")


def section(material: Material) -> Section:
    """Throughput and latency against connections."""
    words = material.words
    blocks: list[Block] = []
    for workload in material.workloads:
        parts: list[Block] = [*_charts(material, workload), _table(material, workload)]
        blocks.append(Group(material.title(workload), tuple(parts)))
    return Section("connections", words("heading.connections"), tuple(blocks))


def _charts(material: Material, workload: str) -> list[Chart]:
    words = material.words
    summed = material.cells_of(workload)
    series = [
        {
            "target": target,
            "points": [_point(cell) for cell in summed if cell.target == target and cell.mean_tps is not None],
        }
        for target in material.targets
    ]
    series = [each for each in series if each["points"]]
    if not series:
        return []
    return [
        Chart("sweep", words("chart.throughput"), {"measure": "throughput", "series": series}),
        Chart("sweep", words("chart.latency"), {"measure": "latency", "series": series}),
    ]


def _point(cell: Summary) -> dict[str, Any]:
    point: dict[str, Any] = {
        "c": cell.connections,
        "tps": [_short(cell.mean_tps), _short(cell.low_tps), _short(cell.high_tps)],
    }
    for name in PERCENTILES:
        by_round = [getattr(entry.response, name) for entry in cell.rounds if entry.counts and entry.response]
        if cell.response and by_round:
            point[name] = [getattr(cell.response, name), min(by_round), max(by_round)]
    return point


def _short(value: float | None) -> float | None:
    """Four significant figures are more than a chart can show."""
    return None if value is None else float(f"{value:.5g}")


def _table(material: Material, workload: str) -> Table:
    words = material.words
    columns = (
        Column(words("col.connections")),
        Column(words("col.target")),
        *(Column(name, number=True) for name in (words("col.mean"), "p50", "p95", "p99", "p99.9")),
        Column(words("col.max"), number=True),
        Column(words("col.p95_range"), number=True),
        Column(words("col.service_p95"), number=True),
    )
    rows = tuple(_row(material, cell) for cell in material.cells_of(workload))
    return Table(
        words("caption.latency"),
        columns,
        rows,
        heads=2,
        merged=True,
        note=words("note.latency"),
    )


def _row(material: Material, cell: Summary) -> Row:
    found, service = cell.response, cell.service
    figures: list[str] = ["–"] * 8
    if found is not None:
        p95 = [entry.response.p95 for entry in cell.rounds if entry.counts and entry.response]
        figures = [
            *(format_ms(value) for value in (found.mean, found.p50, found.p95, found.p99, found.p999, found.max)),
            f"{format_ms(min(p95))}–{format_ms(max(p95))}",
            format_ms(service.p95) if service else "–",
        ]
    return Row((Cell(str(cell.connections)), Cell(cell.target), *(Cell(figure) for figure in figures)))
