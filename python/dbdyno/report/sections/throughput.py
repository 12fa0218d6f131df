"""Section 2: connections × rounds with averages, and the change against the baseline."""

from __future__ import annotations

from dbdyno.analysis.comparison import Comparison
from dbdyno.analysis.summary import Cell as Summary
from dbdyno.analysis.summary import Round
from dbdyno.analysis.verdict import Verdict
from dbdyno.model.units import format_rate
from dbdyno.report import sentences
from dbdyno.report.document import Block, Cell, Column, Group, Paragraph, Row, Section, Table
from dbdyno.report.material import Material

BOUND_MARK = "†"
_NOTHING = Cell("–", "quiet")


def section(material: Material) -> Section:
    """Throughput by round."""
    words = material.words
    blocks: list[Block] = [
        Group(material.title(workload), (_table(material, workload),)) for workload in material.workloads
    ]
    if material.comparisons:
        order = "how.interleaved" if material.campaign.plan.order == "interleaved" else "how.blocks"
        blocks.append(Paragraph(f"{words('how.change')} {words(order)}", small=True))
    return Section("throughput", words("heading.throughput"), tuple(blocks))


def _table(material: Material, workload: str) -> Table:
    words = material.words
    summed = material.cells_of(workload)
    numbers = sorted({entry.number for cell in summed for entry in cell.rounds})
    compared = any(material.comparison(workload, cell.target) for cell in summed)
    columns = [Column(words("col.connections")), Column(words("col.target"))]
    columns += [Column(words("col.round", number=number), number=True) for number in numbers]
    columns += [Column(words("col.mean"), number=True), Column(words("col.sd"), number=True)]
    if compared:
        columns += [
            Column(words("col.change"), number=True),
            Column(words("col.interval"), number=True),
            Column(words("col.answer")),
        ]
    rows = [_row(material, cell, numbers, compared) for cell in summed]
    if compared and len({cell.connections for cell in summed}) > 1:
        rows += _totals(material, workload, len(numbers))
    notes = [words("note.rate")]
    if any(row.total for row in rows):
        notes.append(words("note.total"))
    if any(entry.bound for cell in summed for entry in cell.rounds):
        notes.append(words("note.bound", mark=BOUND_MARK))
    metric = next((each.metric for each in material.comparisons if each.workload == workload), "throughput")
    if metric == "p95":
        notes.append(words("note.open_loop"))
    return Table(
        words("caption.throughput"),
        tuple(columns),
        tuple(rows),
        heads=2,
        merged=True,
        note=words.sentences(notes),
    )


def _row(material: Material, cell: Summary, numbers: list[int], compared: bool) -> Row:
    words = material.words
    by_number = {entry.number: entry for entry in cell.rounds}
    target = words("baseline", target=cell.target) if _is_baseline(material, cell) else cell.target
    cells = [Cell(str(cell.connections)), Cell(target)]
    cells += [_round(material, by_number.get(number)) for number in numbers]
    cells.append(Cell(format_rate(cell.mean_tps)) if cell.mean_tps is not None else _NOTHING)
    if cell.sd_tps is not None and cell.mean_tps:
        cells.append(Cell(f"{cell.sd_tps / cell.mean_tps * 100:.1f}\N{NO-BREAK SPACE}%"))
    else:
        cells.append(_NOTHING)
    if compared:
        comparison = material.comparison(cell.workload, cell.target)
        cells += _change(material, comparison.cells.get(cell.connections) if comparison else None)
    return Row(tuple(cells))


def _is_baseline(material: Material, cell: Summary) -> bool:
    return len(material.targets) > 1 and cell.target == material.baseline


def _round(material: Material, entry: Round | None) -> Cell:
    if entry is None:
        return _NOTHING
    state = material.words(f"state.{entry.state}")
    if entry.tps is None:
        return _NOTHING if entry.state == "pending" else Cell(state, "warning")
    figure = format_rate(entry.tps) + (BOUND_MARK if entry.bound else "")
    return Cell(figure) if entry.counts else Cell(f"{figure} ({state})", "warning")


def _change(material: Material, verdict: Verdict | None) -> list[Cell]:
    if verdict is None:
        return [_NOTHING, _NOTHING, Cell("")]
    return [
        Cell(sentences.change(verdict.ratio)) if verdict.ratio is not None else _NOTHING,
        Cell(sentences.interval(verdict, material.words)) if verdict.low is not None else _NOTHING,
        Cell(sentences.answer(verdict, material.words), sentences.tone(verdict)),
    ]


def _totals(material: Material, workload: str, rounds: int) -> list[Row]:
    """Under the table: the geometric mean over the connection counts, for each other target."""
    found = []
    comparisons: list[Comparison] = [each for each in material.comparisons if each.workload == workload]
    for comparison in comparisons:
        if len(comparison.compared) < 2:
            continue
        blank = tuple(Cell("") for _ in range(rounds + 2))
        head = (Cell(material.words("total.geometric")), Cell(comparison.other))
        found.append(Row((*head, *blank, *_change(material, comparison.overall)), total=True))
    return found
