"""Faster, slower, no difference larger than X, or cannot tell.

The rule, for a figure of which more is better (throughput):

- the interval lies above 1: **faster**; below 1: **slower**;
- it contains 1 and reaches no further than ``TOLERANCE`` to either side: **no difference larger than X**, X being
  how far it reaches;
- anything else is **cannot tell**, with a reason: too few rounds, nothing committed, an interval too wide.

For latency, less is better and the two directions change places. Swapping the sides inverts the ratio and
exchanges faster and slower, nothing else. Whatever goes wrong in the arithmetic is ``cannot tell``, never an answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

from dbdyno.analysis.interval import Interval, paired, unpaired

CONFIDENCE = 0.95
TOLERANCE = 0.10  # an interval that reaches beyond a tenth either way does not show that there is no difference


class Answer(StrEnum):
    """What a comparison came to, seen from the side that is not the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference"
    CANNOT_TELL = "cannot tell"


class Reason(StrEnum):
    """Why a comparison cannot tell (empty when it can)."""

    NONE = ""
    NO_ROUNDS = "no common rounds"
    ONE_ROUND = "one round"
    NOTHING_COMMITTED = "nothing committed"
    WIDE = "interval too wide"
    SAME_DATABASE = "same database"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its evidence. Ratios are other/baseline (1.05 = 5 % more of the figure compared)."""

    answer: Answer
    reason: Reason = Reason.NONE
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None  # no difference larger than this (0.03 = 3 %)
    rounds: int = 0  # that were evidence
    confidence: float = CONFIDENCE
    paired: bool = True

    @property
    def decided(self) -> bool:
        """Whether one side was found faster than the other."""
        return self.answer in (Answer.FASTER, Answer.SLOWER)


def compare(
    baseline: Mapping[int, float],
    other: Mapping[int, float],
    *,
    confidence: float = CONFIDENCE,
    pair: bool = True,
    more_is_better: bool = True,
    tolerance: float = TOLERANCE,
) -> Verdict:
    """Compare two sides' figures by round (round number: figure, any positive unit).

    ``pair`` when the rounds were interleaved: round 1 of both sides ran next to each other in time. Rounds that
    only one side has are then left out. Never raises.
    """
    rounds = sorted(set(baseline) & set(other))
    left = [baseline[number] for number in (rounds if pair else sorted(baseline))]
    right = [other[number] for number in (rounds if pair else sorted(other))]
    usable = min(len(left), len(right))

    def cannot(reason: Reason, interval: Interval | None = None) -> Verdict:
        return _verdict(Answer.CANNOT_TELL, reason, interval, usable, confidence, pair)

    if usable == 0:
        return cannot(Reason.NO_ROUNDS)
    if any(not value > 0 for value in (*left, *right)):
        return cannot(Reason.NOTHING_COMMITTED)
    try:
        if usable == 1:
            ratio = geometric_mean(right) / geometric_mean(left)
            return Verdict(Answer.CANNOT_TELL, Reason.ONE_ROUND, ratio, None, None, None, 1, confidence, pair)
        interval = (paired if pair else unpaired)(left, right, confidence)
    except (ValueError, ArithmeticError):
        return cannot(Reason.ARITHMETIC)
    if not all(map(math.isfinite, (interval.ratio, interval.low, interval.high))):
        return cannot(Reason.ARITHMETIC)
    if interval.low > 1 or interval.high < 1:
        more = interval.low > 1
        answer = Answer.FASTER if more == more_is_better else Answer.SLOWER
        return _verdict(answer, Reason.NONE, interval, usable, confidence, pair)
    if reach(interval.low, interval.high) <= tolerance:
        return _verdict(Answer.NO_DIFFERENCE, Reason.NONE, interval, usable, confidence, pair)
    return cannot(Reason.WIDE, interval)


def reach(low: float, high: float) -> float:
    """How far an interval of ratios reaches from 1, the same in both directions: 0.8 is as far as 1.25."""
    return max(1 / low, low, 1 / high, high) - 1


def _verdict(
    answer: Answer, reason: Reason, interval: Interval | None, rounds: int, confidence: float, pair: bool
) -> Verdict:
    if interval is None:
        return Verdict(answer, reason, rounds=rounds, confidence=confidence, paired=pair)
    limit = reach(interval.low, interval.high) if answer is Answer.NO_DIFFERENCE else None
    return Verdict(answer, reason, interval.ratio, interval.low, interval.high, limit, rounds, confidence, pair)
