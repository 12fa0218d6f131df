"""Random streams: fixed values, independent oracles, properties of the drawn values."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Arrivals, Distribution, Stream, engine_version

WORD = 2**64
LOWEST, HIGHEST = -(2**63), 2**63 - 1
KINDS = ["uniform", "gaussian", "special", "pareto", "zipfian"]

words = st.integers(0, WORD - 1)
integers = st.integers(LOWEST, HIGHEST)


def fnv_1a(text: str) -> int:
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001B3 % WORD
    return state


def numpy_words(seed: int, purpose: str, terminal: int, transaction: int, count: int) -> list[int]:
    """numpy's Philox adds one to its 256-bit counter before each block: it starts one below ours."""
    first = transaction * WORD + terminal * WORD**2
    counter = (first - 1) % WORD**4
    parts = np.array([counter >> shift & WORD - 1 for shift in (0, 64, 128, 192)], dtype=np.uint64)
    generator = np.random.Philox(key=np.array([seed, fnv_1a(purpose)], dtype=np.uint64), counter=parts)
    return [int(word) for word in generator.random_raw(count)]


@given(seed=words, purpose=st.text(max_size=20), terminal=words, transaction=words)
def test_words_are_those_of_numpys_philox(seed: int, purpose: str, terminal: int, transaction: int) -> None:
    stream = Stream(seed, purpose, terminal, transaction)
    drawn = [stream.uniform(LOWEST, HIGHEST) for _ in range(9)]
    expected = numpy_words(seed, purpose, terminal, transaction, 9)
    assert drawn == [word - WORD // 2 for word in expected]


# A run is replayed from its seed: these values may never change.


def test_a_seed_would_no_longer_give_the_same_run() -> None:
    stream = Stream(42, "event", 3, 1000)
    assert [stream.uniform(1, 10_000) for _ in range(6)] == [4467, 7706, 179, 8259, 3574, 1322]
    assert [stream.uniform(LOWEST, HIGHEST) for _ in range(3)] == [
        2484094769378924095,
        -8913292593733279768,
        -8129974565818268920,
    ]
    assert [stream.real() for _ in range(3)] == [0.43753187939959415, 0.8820188935001859, 0.6680701408788187]
    assert [stream.exponential(2.0) for _ in range(3)] == [
        4.8056604979101705,
        0.9329320481903074,
        0.8245664300955827,
    ]
    assert [stream.nurand(8191, 1, 100_000, 259) for _ in range(4)] == [73963, 4195, 77497, 77506]
    assert (stream.text(5, 12, "abcdefghij"), stream.template("###-@@@-###")) == ("efacegee", "327-mkh-123")
    assert [stream.permute(10, i) for i in range(10)] == [3, 1, 9, 8, 5, 6, 0, 4, 7, 2]
    assert stream.permute(2**40, 123_456_789) == 879410233085
    loaded = stream.at("customer", 7)
    assert [loaded.uniform(1, 10_000) for _ in range(3)] == [920, 1583, 1279]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("uniform", [4691, 2068, 618, 2523, 3360, 2450, 7360, 6207]),
        ("gaussian", [3887, 5035, 3660, 5403, 5897, 5452, 5128, 4306]),
        ("special", [4997, 4571, 4993, 4738, 5003, 5120, 5037, 4994]),
        ("pareto", [43, 1, 1, 1, 4, 1, 1096, 321]),
        ("zipfian", [757, 3759, 7611, 2945, 1819, 3066, 67, 221]),
    ],
)
def test_a_seed_would_no_longer_pick_the_same_ids(kind: str, values: list[int]) -> None:
    stream = Stream(42, "event", 1, 1, Distribution(kind))
    assert [stream.pick(1, 10_000) for _ in range(8)] == values


def test_arrivals_of_a_seed_would_no_longer_be_the_same() -> None:
    arrivals = Arrivals(7, 1000.0)
    assert [arrivals.next_ns() for _ in range(4)] == [407999, 677100, 1382806, 1534304]
    even = Arrivals(7, 3.0, "even")
    assert [even.next_ns() for _ in range(4)] == [0, 333_333_333, 666_666_667, 1_000_000_000]


@given(rate=st.floats(1e-3, 1e9), seed=words, kind=st.sampled_from(["poisson", "even"]))
def test_arrivals_never_go_back(rate: float, seed: int, kind: str) -> None:
    arrivals = Arrivals(seed, rate, kind)  # type: ignore[arg-type]
    starts = [arrivals.next_ns() for _ in range(50)]
    assert starts == sorted(starts)


@given(terminal=words, transaction=words, kind=st.sampled_from(KINDS), skipped=st.integers(0, 9))
def test_a_retry_repeats_its_values(terminal: int, transaction: int, kind: str, skipped: int) -> None:
    stream = Stream(1, "event", terminal, transaction, Distribution(kind))
    first = [stream.pick(1, 1000) for _ in range(10)]
    stream.rewind()
    assert [stream.pick(1, 1000) for _ in range(10)] == first
    other = Stream(1, "event", 1, 2, Distribution(kind))
    for _ in range(skipped):
        other.real()
    other.reseat(terminal, transaction)
    assert [other.pick(1, 1000) for _ in range(10)] == first


def test_purposes_terminals_and_transactions_have_their_own_values() -> None:
    heads = {
        Stream(seed, purpose, terminal, transaction).uniform(LOWEST, HIGHEST)
        for seed in (1, 2)
        for purpose in ("event", "start", "table:a")
        for terminal in range(8)
        for transaction in range(8)
    }
    assert len(heads) == 2 * 3 * 8 * 8


@given(ends=st.tuples(integers, integers), kind=st.sampled_from(KINDS), transaction=words)
def test_values_stay_in_their_range(ends: tuple[int, int], kind: str, transaction: int) -> None:
    a, b = sorted(ends)
    stream = Stream(9, "range", 1, transaction, Distribution(kind))
    assert a <= stream.uniform(a, b) <= b
    assert a <= stream.pick(a, b) <= b
    assert 0.0 <= stream.real() < 1.0
    assert stream.exponential(1.0) >= 0.0


@given(A=st.integers(0, 2**40), x=st.integers(0, 2**40), width=st.integers(0, 2**40), C=st.integers(0, 2**40))
def test_nurand_stays_in_its_range_and_follows_the_clause(A: int, x: int, width: int, C: int) -> None:
    drawn, parts = Stream(3, "nurand", 1, 1), Stream(3, "nurand", 1, 1)
    y = x + width
    expected = (((parts.uniform(0, A) | parts.uniform(x, y)) + C) % (y - x + 1)) + x
    assert drawn.nurand(A, x, y, C) == expected
    assert x <= expected <= y


@given(n=st.integers(1, 400), seed=words)
def test_permute_is_a_bijection(n: int, seed: int) -> None:
    stream = Stream(seed, "permute", 1, 1)
    assert sorted(stream.permute(n, i) for i in range(n)) == list(range(n))


@given(n=st.integers(1, HIGHEST), data=st.data())
def test_permute_of_large_ranges_is_the_same_everywhere(n: int, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, n - 1))
    image = Stream(1, "permute", 1, 1).permute(n, i)
    assert 0 <= image < n
    assert Stream(1, "permute", 8, 9).permute(n, i) == image


@given(
    lo=st.integers(0, 40),
    more=st.integers(0, 40),
    alphabet=st.text(min_size=1, max_size=9),
    pattern=st.text(max_size=40),
)
def test_strings_have_their_length_and_letters(lo: int, more: int, alphabet: str, pattern: str) -> None:
    stream = Stream(1, "text", 1, 1)
    text = stream.text(lo, lo + more, alphabet)
    assert lo <= len(text) <= lo + more
    assert set(text) <= set(alphabet)
    filled = stream.template(pattern)
    assert len(filled) == len(pattern)
    for mark, letter in zip(pattern, filled, strict=True):
        if mark == "#":
            assert letter in "0123456789"
        elif mark == "@":
            assert letter in "abcdefghijklmnopqrstuvwxyz"
        else:
            assert letter == mark


def test_at_is_the_stream_of_the_loader() -> None:
    loader = Stream(5, "table:orders", 0, 12, Distribution("pareto"))
    elsewhere = Stream(5, "event", 77, 3, Distribution("pareto")).at("orders", 12)
    assert [elsewhere.pick(1, 99) for _ in range(5)] == [loader.pick(1, 99) for _ in range(5)]


def test_chance_and_exponential_have_their_means() -> None:
    stream = Stream(1, "mean", 1, 1)
    hits = sum(stream.chance(0.25) for _ in range(40_000))
    assert abs(hits - 10_000) < 4 * math.sqrt(40_000 * 0.25 * 0.75)
    assert not any(stream.chance(0.0) for _ in range(100))
    assert all(stream.chance(1.0) for _ in range(100))
    mean = sum(stream.exponential(7.0) for _ in range(40_000)) / 40_000
    assert abs(mean - 7.0) < 4 * 7.0 / math.sqrt(40_000)


def test_zipfian_ranks_have_their_probabilities() -> None:
    from scipy import stats

    stream = Stream(1, "zipf", 1, 1, Distribution("zipfian", zipfian_exp=1.2))
    observed = np.bincount([stream.pick(0, 29) for _ in range(60_000)], minlength=30)
    weights = np.arange(1, 31) ** -1.2
    assert stats.chisquare(observed, 60_000 * weights / weights.sum()).pvalue > 0.001


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.uniform(2, 1), "uniform(a, b) needs a <= b, not 2 and 1"),
        (lambda s: s.pick(2, 1), "pick(a, b) needs a <= b, not 2 and 1"),
        (lambda s: s.chance(1.5), "chance(p) needs a probability from 0 to 1, not 1.5"),
        (lambda s: s.chance(math.nan), "chance(p) needs a probability from 0 to 1, not NaN"),
        (lambda s: s.exponential(-1.0), "exponential(mean) needs a finite mean of at least 0, not -1"),
        (lambda s: s.nurand(1, 5, 4, 0), "nurand(A, x, y, C) needs 0 <= A, 0 <= x <= y and 0 <= C"),
        (lambda s: s.text(3, 2, "a"), "text(lo, hi, alphabet) needs 0 <= lo <= hi <= 16777215, not 3 and 2"),
        (lambda s: s.text(1, 2, ""), "text(lo, hi, alphabet) needs an alphabet of at least one character"),
        (lambda s: s.permute(3, 3), "permute(n, i) needs 0 <= i < n, not n = 3 and i = 3"),
        (lambda s: s.reseat(-1, 0), "terminal must be from 0 to 2**64 - 1, not -1"),
        (lambda s: s.at("t", 2**64), "unit must be from 0 to 2**64 - 1, not 18446744073709551616"),
        (lambda s: Stream(-5, "p", 0, 0), "seed must be from 0 to 2**64 - 1, not -5"),
        (lambda s: Distribution("zipf"), 'unknown distribution "zipf": it must be uniform, gaussian'),
        (lambda s: Distribution("special", spec_pct=101), "spec_pct is a percentage"),
        (lambda s: Distribution("special", spec_iter=-1), "spec_iter is out of range: -1"),
        (lambda s: Distribution("pareto", pareto_h=1.0), "pareto_h must be above 0 and below 1, not 1"),
        (lambda s: Distribution("zipfian", zipfian_exp=-1.0), "zipfian_exp must be a finite number"),
        (lambda s: Arrivals(1, 0.0), "the rate must be above 0"),
        (lambda s: Arrivals(1, 5.0, "odd"), 'unknown spacing of arrivals "odd"'),
    ],
)
def test_a_wrong_argument_gets_a_sentence(call: object, sentence: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the sentence is compared below
        call(Stream(1, "event", 1, 1))
    assert str(raised.value).startswith(sentence)


def test_distributions_compare_by_their_options() -> None:
    assert Distribution("special") == Distribution("special", spec_iter=12)
    assert Distribution("special") != Distribution("special", spec_iter=11)
    assert Distribution("zipfian").kind == "zipfian"


def test_engine_and_package_have_one_version() -> None:
    import dbdyno

    assert engine_version() == dbdyno.__version__


def test_any_order_of_transactions_draws_the_same() -> None:
    def drawn(order: list[int]) -> dict[int, list[int]]:
        stream = Stream(1, "event", 1, 0)
        values = {}
        for transaction in order:
            stream.reseat(1, transaction)
            values[transaction] = [stream.uniform(1, 100) for _ in range(transaction % 5)]
        return values

    forward = list(range(50))
    shuffled = random.Random(3).sample(forward, k=50)
    assert drawn(forward) == drawn(shuffled)
