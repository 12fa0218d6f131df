"""Section 6: the load generator's own health: was the client the bottleneck?"""

from __future__ import annotations

from dbdyno.analysis.summary import Cell as Summary
from dbdyno.model.units import format_ms
from dbdyno.report.document import Block, Cell, Column, Notice, Paragraph, Row, Section, Table
from dbdyno.report.material import Material


def section(material: Material) -> Section:
    """Generator health."""
    words = material.words
    bound = sum(cell.bound_rounds for cell in material.cells)
    done = sum(entry.counts for cell in material.cells for entry in cell.rounds)
    blocks: list[Block] = []
    if bound:
        blocks.append(Notice(words("generator.bound", bound=bound, all=done), warning=True))
    else:
        blocks.append(Paragraph(words("generator.free")))
    columns = (
        Column(words("col.workload")),
        Column(words("col.connections"), number=True),
        Column(words("col.target")),
        Column(words("col.cpu_per_query"), number=True),
        Column(words("col.cpu_share"), number=True),
        Column(words("col.lag"), number=True),
        Column(words("col.bound")),
        Column(words("col.drive")),
    )
    rows = tuple(_row(material, cell) for workload in material.workloads for cell in material.cells_of(workload))
    table = Table(words("caption.generator"), columns, rows, heads=3, merged=True, note=words("note.generator"))
    return Section("generator", words("heading.generator"), (*blocks, table))


def _row(material: Material, cell: Summary) -> Row:
    words = material.words
    cpu = f"{cell.cpu_us_per_query:.1f}" if cell.cpu_us_per_query is not None else "–"
    share = f"{cell.cpu_share * 100:.0f}\N{NO-BREAK SPACE}%" if cell.cpu_share is not None else "–"
    lag = format_ms(cell.lag.p99) if cell.lag else "–"
    verdict = Cell(words("no"), "quiet")
    if cell.bound_rounds:
        rounds = sum(entry.counts for entry in cell.rounds)
        text = words("bound.rounds", bound=cell.bound_rounds, all=rounds)
        reasons = "; ".join(cell.bound_reasons)
        verdict = Cell(f"{text}: {reasons}" if reasons else text, "warning")
    figures = (Cell(cpu), Cell(share), Cell(lag))
    head = (Cell(cell.workload), Cell(str(cell.connections)), Cell(cell.target))
    return Row((*head, *figures, verdict, Cell(_unbroken(cell.drives))))


def _unbroken(drives: tuple[str, ...]) -> str:
    """A driver and its version stay on one line; lines break after commas."""
    parts = [part.strip().replace(" ", "\N{NO-BREAK SPACE}") for drive in drives for part in drive.split(",")]
    return ", ".join(parts) or "–"
