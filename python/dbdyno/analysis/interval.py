"""Confidence intervals for the ratio of two throughputs (or latencies) measured in rounds.

Rounds are the unit of evidence: one round gives one figure a side, however many transactions stand behind it,
because what happens within a trial is autocorrelated. Figures are compared as logarithms, so that a ratio and its
inverse are treated alike and the interval of the swapped comparison is exactly the inverse.

- Paired (rounds interleaved): the differences of the logs, round by round, are one sample; Student's t with
  n - 1 degrees of freedom. What drifts from round to round hits both sides and drops out.
- Unpaired (rounds in blocks, or two campaigns): Welch's interval for two samples of unequal variance, degrees
  of freedom after Welch and Satterthwaite (Welch 1947, Biometrika 34).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Figures come from clocks and counts: no two of them are known to agree better than this (relative). It also
# keeps the last bit of a floating-point logarithm from becoming a difference.
RESOLUTION = 1e-6


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio other/baseline with its interval; all three are ratios (1.05 = 5 % more)."""

    ratio: float
    low: float
    high: float
    rounds: int  # pairs, or the smaller side's rounds when unpaired


def paired(baseline: Sequence[float], other: Sequence[float], confidence: float) -> Interval:
    """Interval from pairs, one a round.

    Raises:
        ValueError: fewer than two pairs, unequal lengths, a figure that is not positive and finite.
    """
    if len(baseline) != len(other):
        raise ValueError("pairs need as many figures on both sides")
    differences = [after - before for before, after in zip(_logs(baseline), _logs(other), strict=True)]
    if len(differences) < 2:
        raise ValueError("an interval needs at least two rounds")
    n = len(differences)
    error = statistics.stdev(differences) / math.sqrt(n)
    return _interval(statistics.fmean(differences), error, n - 1, confidence, n)


def unpaired(baseline: Sequence[float], other: Sequence[float], confidence: float) -> Interval:
    """Interval from two independent sets of rounds (Welch).

    Raises:
        ValueError: fewer than two rounds on a side, a figure that is not positive and finite.
    """
    left, right = _logs(baseline), _logs(other)
    if min(len(left), len(right)) < 2:
        raise ValueError("an interval needs at least two rounds on each side")
    difference = statistics.fmean(right) - statistics.fmean(left)
    parts = [statistics.variance(side) / len(side) for side in (left, right)]
    total = sum(parts)
    # Without any spread the degrees of freedom do not matter: the interval is the resolution's alone.
    freedom = 1.0
    if total > 0:
        freedom = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (left, right), strict=True))
    return _interval(difference, math.sqrt(total), freedom, confidence, min(len(left), len(right)))


def geometric_means(cells: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Per round, the geometric mean over cells; rounds that any cell lacks are left out.

    ``cells`` holds one mapping of round to figure for each cell (say, each connection count). A cell that weighs ten
    times another counts no more than it: this is the mean of ratios, not of throughputs.

    Raises:
        ValueError: a figure that is not positive and finite.
    """
    if not cells:
        return {}
    rounds = sorted(set.intersection(*(set(cell) for cell in cells)))
    return {number: math.exp(statistics.fmean(_logs([cell[number] for cell in cells]))) for number in rounds}


def _logs(values: Sequence[float]) -> list[float]:
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("a ratio needs figures above zero")
    return [math.log(value) for value in values]


def _interval(mean: float, error: float, freedom: float, confidence: float, rounds: int) -> Interval:
    from scipy.special import stdtrit  # here: it takes longer to import than a command to show one trial

    half = max(float(stdtrit(freedom, (1 + confidence) / 2)) * error, RESOLUTION)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), rounds)
