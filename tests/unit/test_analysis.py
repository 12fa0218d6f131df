"""Intervals and verdicts: what a reader would be told, and how often it would be wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dbdyno.analysis.comparison import Comparison, compare_cells
from dbdyno.analysis.interval import geometric_means, paired, unpaired
from dbdyno.analysis.summary import Cell, Round
from dbdyno.analysis.verdict import Answer, Reason, compare, reach
from dbdyno.model.sample import Counts

POSITIVE = st.floats(min_value=0.5, max_value=1e6)
OPPOSITE = {
    Answer.FASTER: Answer.SLOWER,
    Answer.SLOWER: Answer.FASTER,
    Answer.NO_DIFFERENCE: Answer.NO_DIFFERENCE,
    Answer.CANNOT_TELL: Answer.CANNOT_TELL,
}


def by_round(*values: float) -> dict[int, float]:
    return dict(enumerate(values, start=1))


def cell(connections: int, *tps: float, target: str = "a", rate: float | None = None) -> Cell:
    rounds = tuple(Round(number, "done", value, None, None, False) for number, value in enumerate(tps, 1))
    return Cell(
        workload="rw", target=target, connections=connections, rounds=rounds, mean_tps=None, low_tps=None,
        high_tps=None, sd_tps=None, counts=Counts(), errors={}, response=None, service=None, lag=None,
        cpu_us_per_query=None, cpu_share=None, bound_rounds=0, bound_reasons=(), drives=(), rate=rate, outages=0,
    )  # fmt: skip


def compared(baseline: dict[int, list[float]], other: dict[int, list[float]], **how: bool) -> Comparison:
    return compare_cells(
        [cell(count, *tps) for count, tps in baseline.items()],
        [cell(count, *tps, target="b") for count, tps in other.items()],
        **how,
    )


def test_paired_interval_is_scipys_t_interval_of_the_log_ratios() -> None:
    baseline, other = [100.0, 110.0, 95.0], [120.0, 128.0, 118.0]
    logs = np.log(other) - np.log(baseline)
    low, high = stats.t.interval(0.95, df=2, loc=logs.mean(), scale=stats.sem(logs))
    found = paired(baseline, other, 0.95)
    assert found.ratio == pytest.approx(math.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_unpaired_interval_is_scipys_welch_interval() -> None:
    baseline, other = [100.0, 110.0, 95.0, 104.0], [120.0, 148.0, 118.0]
    result = stats.ttest_ind(np.log(other), np.log(baseline), equal_var=False).confidence_interval(0.95)
    found = unpaired(baseline, other, 0.95)
    assert (found.low, found.high) == pytest.approx((math.exp(result.low), math.exp(result.high)))


def test_pairing_sees_a_difference_through_a_drift_that_hits_both_sides() -> None:
    baseline, other = by_round(100, 150, 220), by_round(111, 165, 243)
    assert compare(baseline, other).answer is Answer.FASTER
    assert compare(baseline, other, pair=False).answer is Answer.CANNOT_TELL


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=0, max_size=6), st.booleans())
@settings(max_examples=300, deadline=None)
def test_swapping_the_sides_inverts_the_ratio_and_exchanges_faster_and_slower(
    pairs: list[tuple[float, float]], pair: bool
) -> None:
    left, right = by_round(*(one for one, _ in pairs)), by_round(*(two for _, two in pairs))
    forward, backward = compare(left, right, pair=pair), compare(right, left, pair=pair)
    assert backward.answer is OPPOSITE[forward.answer]
    assert backward.reason is forward.reason
    if forward.ratio is not None and backward.ratio is not None:
        assert backward.ratio == pytest.approx(1 / forward.ratio)
    if forward.low is not None and backward.high is not None:
        assert backward.high == pytest.approx(1 / forward.low)
    if forward.limit is not None:
        assert backward.limit == pytest.approx(forward.limit)


@given(st.lists(POSITIVE, min_size=1, max_size=6), st.booleans())
@settings(max_examples=200, deadline=None)
def test_identical_figures_are_never_faster_or_slower(values: list[float], pair: bool) -> None:
    verdict = compare(by_round(*values), by_round(*values), pair=pair)
    assert not verdict.decided


def test_a_last_bit_of_a_logarithm_is_not_a_difference() -> None:
    tps = by_round(100.0, 200.0, 300.0)
    assert not compare(tps, {number: math.nextafter(value, 1e9) for number, value in tps.items()}).decided


def test_one_round_cannot_tell_and_says_so() -> None:
    verdict = compare(by_round(100), by_round(500))
    assert (verdict.answer, verdict.reason) == (Answer.CANNOT_TELL, Reason.ONE_ROUND)
    assert verdict.ratio == pytest.approx(5)
    assert verdict.low is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_a_round_without_commits_is_no_answer(bad: float) -> None:
    verdict = compare(by_round(100, 101, 102), by_round(100, bad, 102))
    assert (verdict.answer, verdict.reason) == (Answer.CANNOT_TELL, Reason.NOTHING_COMMITTED)


def test_an_infinite_figure_is_no_answer() -> None:
    assert compare(by_round(1, 1, 1), by_round(2, math.inf, 2)).reason is Reason.ARITHMETIC


def test_no_difference_names_how_large_one_could_still_be() -> None:
    verdict = compare(by_round(100, 101, 99), by_round(100.5, 100.6, 99.4))
    assert verdict.answer is Answer.NO_DIFFERENCE
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.limit == pytest.approx(reach(verdict.low, verdict.high))
    assert 0 < verdict.limit < 0.10


def test_a_wide_interval_around_one_is_not_called_no_difference() -> None:
    verdict = compare(by_round(100, 130, 80), by_round(120, 90, 110))
    assert (verdict.answer, verdict.reason) == (Answer.CANNOT_TELL, Reason.WIDE)


def test_lower_latency_is_faster() -> None:
    assert compare(by_round(10, 11, 10), by_round(5, 5.1, 5.2), more_is_better=False).answer is Answer.FASTER


def test_rounds_that_only_one_side_has_are_left_out_of_pairs() -> None:
    verdict = compare(by_round(100, 101, 102), {1: 200.0, 3: 204.0, 7: 1.0})
    assert (verdict.rounds, verdict.answer) == (2, Answer.FASTER)


def test_geometric_mean_weighs_connection_counts_alike() -> None:
    assert geometric_means([{1: 10.0, 2: 20.0}, {1: 1000.0}]) == {1: pytest.approx(100.0)}


@pytest.mark.parametrize("rounds", [3, 5])
@pytest.mark.parametrize("pair", [True, False])
def test_same_side_twice_is_called_different_no_more_often_than_promised(rounds: int, pair: bool) -> None:
    random = np.random.default_rng(20_2610 + rounds)
    campaigns = 4_000
    wrong = sum(
        compare(
            by_round(*np.exp(random.normal(7, 0.04, rounds))),
            by_round(*np.exp(random.normal(7, 0.04, rounds))),
            pair=pair,
        ).decided
        for _ in range(campaigns)
    )
    # 5 % nominal; three standard errors of 4000 draws are one per cent.
    assert wrong / campaigns < 0.05 + 3 * math.sqrt(0.05 * 0.95 / campaigns)


@pytest.mark.parametrize("rounds", [3, 5])
def test_intervals_cover_the_true_ratio_as_often_as_they_say(rounds: int) -> None:
    random = np.random.default_rng(7 + rounds)
    campaigns, truth = 4_000, 1.07
    covered = 0
    for _ in range(campaigns):
        drift = random.normal(0, 0.10, rounds)  # hits both sides: what pairing is for
        left = np.exp(7 + drift + random.normal(0, 0.03, rounds))
        right = truth * np.exp(7 + drift + random.normal(0, 0.05, rounds))
        verdict = compare(by_round(*left), by_round(*right))
        assert verdict.low is not None
        assert verdict.high is not None
        covered += verdict.low <= truth <= verdict.high
    assert covered / campaigns == pytest.approx(0.95, abs=3 * math.sqrt(0.05 * 0.95 / campaigns))


def test_a_whole_sweep_against_itself_is_called_different_no_more_often_than_promised() -> None:
    random = np.random.default_rng(99)
    campaigns, overall, anywhere, mixed = 1_000, 0, 0, 0
    for _ in range(campaigns):
        sides = [{count: list(np.exp(random.normal(7, 0.04, 3))) for count in (1, 4, 16)} for _ in "ab"]
        found = compared(*sides)
        overall += found.overall.decided
        anywhere += bool(found.faster_at or found.slower_at)
        mixed += found.mixed
    margin = 3 * math.sqrt(0.05 * 0.95 / campaigns)
    assert overall / campaigns < 0.05 + margin
    assert anywhere / campaigns < 0.05 + margin
    assert mixed / campaigns < 0.005


def test_direction_that_depends_on_connections_is_seen() -> None:
    found = compared({1: [1000, 1010, 1005], 16: [1000, 1010, 1005]}, {1: [500, 505, 502], 16: [3000, 3030, 3010]})
    assert found.mixed
    assert (found.faster_at, found.slower_at) == ((16,), (1,))


def test_connection_count_without_results_on_one_side_is_named_and_left_out() -> None:
    found = compared({1: [100, 101, 102], 64: [100, 101, 102]}, {1: [200, 203, 202], 64: []})
    assert (found.compared, found.left_out) == ((1,), (64,))
    assert found.overall.answer is Answer.FASTER
    assert found.cells[64].reason is Reason.NO_ROUNDS


def test_same_database_on_both_sides_is_never_faster_whatever_was_measured() -> None:
    found = compared({1: [100, 101, 102]}, {1: [200, 203, 202]}, same_database=True)
    for verdict in (found.overall, found.cells[1], found.joint[1]):
        assert (verdict.answer, verdict.reason) == (Answer.CANNOT_TELL, Reason.SAME_DATABASE)
    assert found.overall.ratio == pytest.approx(2, rel=0.05)


def test_a_connection_count_that_committed_nothing_leaves_the_whole_answer_open() -> None:
    found = compared({1: [100, 101], 4: [100, 101]}, {1: [200, 203], 4: [0, 203]})
    assert found.overall.reason is Reason.NOTHING_COMMITTED
