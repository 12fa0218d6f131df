"""Comparing two sides over a sweep of connection counts, workload by workload.

The answer for a workload is one test, fixed beforehand: the geometric mean over the connection counts, per
round. The answers at the single counts say where it holds; because there are several of them, those that are put
in words are taken at a joint confidence (Bonferroni: each at 1 - 0.05/k), so that an A/A comparison does not become
"it depends" by trying often enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.analysis.interval import geometric_means
from dbdyno.analysis.summary import Cell
from dbdyno.analysis.verdict import CONFIDENCE, Answer, Reason, Verdict, compare

Judge = Callable[[tuple[Mapping[int, float], Mapping[int, float]], float], Verdict]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One workload, one side against the baseline."""

    workload: str
    baseline: str
    other: str
    metric: str  # "throughput", or "p95" where both sides were driven at an asked rate
    overall: Verdict
    cells: Mapping[int, Verdict]  # by connections, each at 95 % for itself
    joint: Mapping[int, Verdict]  # by connections, at 95 % for all of them together
    compared: tuple[int, ...]  # connection counts in the overall answer
    left_out: tuple[int, ...]  # asked for, but without a common round on both sides

    @property
    def faster_at(self) -> tuple[int, ...]:
        """Connection counts at which the other side is faster, jointly."""
        return tuple(count for count, verdict in self.joint.items() if verdict.answer is Answer.FASTER)

    @property
    def slower_at(self) -> tuple[int, ...]:
        """Connection counts at which it is slower, jointly."""
        return tuple(count for count, verdict in self.joint.items() if verdict.answer is Answer.SLOWER)

    @property
    def mixed(self) -> bool:
        """Whether the direction depends on the number of connections."""
        return bool(self.faster_at and self.slower_at)


def compare_cells(
    baseline: Sequence[Cell], other: Sequence[Cell], *, pair: bool = True, same_database: bool = False
) -> Comparison:
    """Compare two sides' cells of one workload.

    Both sequences hold one cell for each connection count. ``same_database`` says that both sides were one and the same
    database with the same settings: whatever was measured is then the noise of the measurement, and no side can be
    faster.

    Raises:
        ValueError: no cells on a side.
    """
    if not baseline or not other:
        raise ValueError("a comparison needs cells on both sides")
    left = {cell.connections: cell for cell in baseline}
    right = {cell.connections: cell for cell in other}
    # At an asked rate both sides do the same throughput by construction: what differs is how long they take.
    open_loop = all(cell.rate is not None for cell in (*baseline, *other))
    metric = "p95" if open_loop else "throughput"
    counts = sorted(set(left) | set(right))
    figures = {count: (_figures(left.get(count), metric), _figures(right.get(count), metric)) for count in counts}
    compared = tuple(count for count in counts if _has_rounds(*figures[count], pair=pair))

    def judge(sides: tuple[Mapping[int, float], Mapping[int, float]], confidence: float) -> Verdict:
        verdict = compare(*sides, confidence=confidence, pair=pair, more_is_better=not open_loop)
        return _as_noise(verdict) if same_database else verdict

    joint_confidence = 1 - (1 - CONFIDENCE) / max(len(compared), 1)
    return Comparison(
        workload=baseline[0].workload,
        baseline=baseline[0].target,
        other=other[0].target,
        metric=metric,
        overall=_overall([figures[count] for count in compared], judge),
        cells={count: judge(figures[count], CONFIDENCE) for count in counts},
        joint={count: judge(figures[count], joint_confidence) for count in counts},
        compared=compared,
        left_out=tuple(count for count in counts if count not in compared),
    )


def compare_targets(
    cells: Sequence[Cell], baseline: str, other: str, *, pair: bool = True, same_database: bool = False
) -> list[Comparison]:
    """One comparison for each workload that ran on both targets of a campaign."""
    found = []
    for workload in dict.fromkeys(cell.workload for cell in cells):
        sides = [
            [cell for cell in cells if cell.workload == workload and cell.target == target]
            for target in (baseline, other)
        ]
        if all(sides):
            found.append(compare_cells(sides[0], sides[1], pair=pair, same_database=same_database))
    return found


def _figures(cell: Cell | None, metric: str) -> dict[int, float]:
    if cell is None:
        return {}
    return cell.p95_by_round if metric == "p95" else cell.tps_by_round


def _has_rounds(left: Mapping[int, float], right: Mapping[int, float], *, pair: bool) -> bool:
    return bool(set(left) & set(right)) if pair else bool(left and right)


def _overall(figures: Sequence[tuple[Mapping[int, float], Mapping[int, float]]], judge: Judge) -> Verdict:
    """The answer over several connection counts; a zero in any of them has no geometric mean."""
    sides = ([left for left, _ in figures], [right for _, right in figures])
    if any(not value > 0 for side in sides for cell in side for value in cell.values()):
        return Verdict(Answer.CANNOT_TELL, Reason.NOTHING_COMMITTED)
    return judge((geometric_means(sides[0]), geometric_means(sides[1])), CONFIDENCE)


def _as_noise(verdict: Verdict) -> Verdict:
    if not verdict.decided:
        return verdict
    return replace(verdict, answer=Answer.CANNOT_TELL, reason=Reason.SAME_DATABASE)
