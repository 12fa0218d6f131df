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
    blocks += _table(material)
    return Section("errors", words("heading.errors"), tuple(blocks))


def _table(material: Material) -> list[Block]:
    """Columns that are zero everywhere become a sentence."""
    words = material.words
    names = [name for name in ("rolled_back", *_TROUBLE) if any(getattr(cell.counts, name) for cell in material.cells)]
    shown = ["scheduled", "committed", *names]
    outages = any(cell.outages for cell in material.cells)
    codes = any(cell.errors for cell in material.cells)
    columns = [
        Column(words("col.workload")),
        Column(words("col.connections"), number=True),
        Column(words("col.target")),
        *(Column(words(f"count.{name}"), number=True) for name in shown),
    ]
    if outages:
        columns.append(Column(words("count.outages"), number=True))
    if codes:
        columns.append(Column(words("col.codes")))
    rows = [
        _row(cell, shown, outages, codes) for workload in material.workloads for cell in material.cells_of(workload)
    ]
    zero = [words(f"count.{name}").lower() for name in ("rolled_back", *_TROUBLE) if name not in names]
    blocks: list[Block] = [
        Table(
            words("caption.errors"),
            tuple(columns),
            tuple(rows),
            heads=3,
            merged=True,
            note=words("note.errors"),
        )
    ]
    if zero:
        blocks.insert(0, Paragraph(words("errors.zero", names=words.listed(zero))))
    return blocks


def _row(cell: Summary, names: list[str], outages: bool, codes: bool) -> Row:
    cells = [Cell(cell.workload), Cell(str(cell.connections)), Cell(cell.target)]
    for name in names:
        value = getattr(cell.counts, name)
        warn = name in ("failed", "unknown") and value > 0
        cells.append(Cell(f"{value:,}", "warning" if warn else ("quiet" if value == 0 else "")))
    if outages:
        cells.append(Cell(f"{cell.outages:,}", "warning" if cell.outages else "quiet"))
    if codes:
        by_count = sorted(cell.errors.items(), key=lambda item: -item[1])
        text = ", ".join(f"{code}: {count:,}" for code, count in by_count)
        cells.append(Cell(text or "–", "" if text else "quiet"))
    return Row(tuple(cells))
