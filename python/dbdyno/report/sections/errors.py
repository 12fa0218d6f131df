"""Section 5: what did not succeed, by the accounting identity."""

from __future__ import annotations

from dbdyno.analysis.summary import Cell as Summary
from dbdyno.report.document import Block, Cell, Column, Notice, Paragraph, Row, Section, Table
from dbdyno.report.material import Material

_TROUBLE = ("failed", "unknown", "skipped", "unfinished", "retries", "reconnects")


def section(material: Material) -> Section:
    """Errors."""
    words = material.words
    blocks: list[Block] = []
    totals = {name: sum(getattr(cell.counts, name) for cell in material.cells) for name in _TROUBLE}
    lost = totals["failed"] + totals["unknown"]
    if not any(totals.values()) and not any(cell.errors for cell in material.cells):
        blocks.append(Paragraph(words("errors.none")))
    elif lost == 0:
        blocks.append(Paragraph(words("errors.none_lost")))
    else:
        blocks.append(Paragraph(words("errors.lost", failed=totals["failed"], unknown=totals["unknown"])))
    for entry in material.trials:
        if entry.outcome is not None and entry.outcome.reason:
            blocks.append(Notice(words("errors.trial", trial=entry.id, reason=entry.outcome.reason), warning=True))
    blocks.append(_table(material))
    return Section("errors", words("heading.errors"), tuple(blocks))


def _table(material: Material) -> Table:
    words = material.words
    outages = any(cell.outages for cell in material.cells)
    names = ("scheduled", "committed", "rolled_back", *_TROUBLE)
    columns = [
        Column(words("col.workload")),
        Column(words("col.connections"), number=True),
        Column(words("col.target")),
        *(Column(words(f"count.{name}"), number=True) for name in names),
    ]
    if outages:
        columns.append(Column(words("count.outages"), number=True))
    columns.append(Column(words("col.codes")))
    rows = tuple(_row(cell, names, outages) for workload in material.workloads for cell in material.cells_of(workload))
    return Table(words("caption.errors"), tuple(columns), rows, heads=3, merged=True, note=words("note.errors"))


def _row(cell: Summary, names: tuple[str, ...], outages: bool) -> Row:
    cells = [Cell(cell.workload), Cell(str(cell.connections)), Cell(cell.target)]
    for name in names:
        value = getattr(cell.counts, name)
        warn = name in ("failed", "unknown") and value > 0
        cells.append(Cell(f"{value:,}", "warning" if warn else ("quiet" if value == 0 else "")))
    if outages:
        cells.append(Cell(f"{cell.outages:,}", "warning" if cell.outages else "quiet"))
    codes = ", ".join(f"{code}: {count:,}" for code, count in sorted(cell.errors.items(), key=lambda item: -item[1]))
    cells.append(Cell(codes or "–", "" if codes else "quiet"))
    return Row(tuple(cells))
