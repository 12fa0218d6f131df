"""Histograms: buckets, percentiles, saturation, and the standard encoding read by an independent reader."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno._engine import Histogram

HOUR_NS = 3_600_000_000_000
durations = st.lists(st.integers(0, HOUR_NS), max_size=60)

NOT_V2 = "not a HdrHistogram V2 encoding:"

#: What a histogram of `GOLDEN` encoded to when the format was fixed.
GOLDEN = [(0, 1), (99, 2), (1_000, 3), (123_456, 40), (5_000_000, 5), (HOUR_NS + 1, 2)]
GOLDEN_ENCODING = bytes.fromhex(
    "1c84931400000041789c013600c9ff1c8493130000000e000000000000000300000000000000640000034630b8a0003ff0"
    "00000000000002041906f11d50f3540a8db70204b4bf08da"
)


def of(values: list[int]) -> Histogram:
    histogram = Histogram()
    for ns in values:
        histogram.record(ns)
    return histogram


def signed_varints(payload: bytes) -> list[int]:
    """ZigZag LEB128 as the HdrHistogram V2 format has it: at most nine bytes, the ninth all value."""
    numbers, at = [], 0
    while at < len(payload):
        value = shift = 0
        while True:
            byte = payload[at]
            at += 1
            if shift == 56:
                value |= byte << 56
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        numbers.append((value >> 1) ^ -(value & 1))
    return numbers


def read_encoding(data: bytes) -> list[tuple[int, int]]:
    """(lowest value of the bucket in ns, count), by the format's description alone."""
    cookie, length = struct.unpack(">II", data[:8])
    assert cookie == 0x1C849304 | 0x10
    plain = zlib.decompress(data[8 : 8 + length])
    cookie, payload, offset, digits, lowest, highest, ratio = struct.unpack(">IIIIQQd", plain[:40])
    assert (cookie, offset, digits, lowest, highest, ratio) == (0x1C849303 | 0x10, 0, 3, 100, HOUR_NS, 1.0)
    counts: list[int] = []
    for number in signed_varints(plain[40 : 40 + payload]):
        counts.extend([0] * -number if number < 0 else [number])
    # 2048 sub-buckets of 64 ns, then 1024 of twice the width each.
    buckets = []
    for index, count in enumerate(counts):
        if count:
            row, column = (0, index) if index < 2048 else (index // 1024 - 1, index % 1024 + 1024)
            buckets.append((column * 64 << row, count))
    return buckets


def test_stored_histograms_could_no_longer_be_read() -> None:
    decoded = Histogram.decode(GOLDEN_ENCODING)
    assert decoded.buckets() == [
        (63, 1),
        (127, 2),
        (1023, 3),
        (123_519, 40),
        (5_001_215, 5),
        (HOUR_NS, 2),
    ]
    assert (decoded.count, decoded.saturated, decoded.min, decoded.max) == (53, 0, 0, HOUR_NS)
    again = Histogram()
    for ns, n in GOLDEN:
        again.record_n(ns, n)
    assert again.saturated == 2
    assert read_encoding(again.encode()) == read_encoding(GOLDEN_ENCODING)


@given(durations)
def test_other_tools_read_what_was_recorded(values: list[int]) -> None:
    histogram = of(values)
    read = read_encoding(histogram.encode())
    assert [count for _, count in read] == [count for _, count in histogram.buckets()]
    for (low, _), (high, _) in zip(read, histogram.buckets(), strict=True):
        assert any(low <= ns <= high for ns in values)
        assert high - low <= max(63, low / 1000)


@given(durations)
def test_encoding_loses_nothing(values: list[int]) -> None:
    histogram = of(values)
    assert Histogram.decode(histogram.encode()) == histogram


@given(durations, durations)
def test_merging_is_recording_both(one: list[int], other: list[int]) -> None:
    merged = of(one)
    merged.merge(of(other))
    assert merged == of(one + other)
    copy = merged.copy()
    copy.record(5)
    assert merged.count + 1 == copy.count


@given(st.lists(st.integers(0, HOUR_NS), min_size=1, max_size=60), st.floats(0.0, 100.0))
def test_percentiles_split_the_durations_within_a_thousandth(values: list[int], p: float) -> None:
    found = of(values).percentile(p)
    share = len(values) * p / 100
    bucket_below = found - max(64, found / 1000)
    assert sum(ns <= found for ns in values) >= share - 1e-9
    assert sum(ns < bucket_below for ns in values) < share + 1e-9


@given(st.lists(st.integers(0, HOUR_NS), min_size=1, max_size=60))
def test_means_and_extremes_are_within_a_thousandth(values: list[int]) -> None:
    histogram = of(values)
    assert histogram.mean == pytest.approx(np.mean(values), rel=1e-3, abs=64)
    assert histogram.stddev == pytest.approx(np.std(values), rel=1e-2, abs=np.mean(values) * 2e-3 + 64)
    assert histogram.min <= min(values) <= histogram.min * 1.001 + 64
    assert max(values) <= histogram.max <= min(HOUR_NS, max(values) * 1.001 + 64)
    assert histogram.count == len(values)


def test_durations_above_an_hour_are_counted_not_clipped_silently() -> None:
    histogram = of([HOUR_NS, HOUR_NS + 1, 2**63 - 1])
    assert (histogram.count, histogram.saturated, histogram.max) == (3, 2, HOUR_NS)
    twice = histogram.copy()
    twice.merge(histogram)
    assert twice.saturated == 4
    twice.merge(twice)
    assert (twice.saturated, twice.count) == (8, 12)
    twice.reset()
    assert (twice.saturated, twice.count, twice.max, twice == Histogram()) == (0, 0, 0, True)


def test_an_empty_histogram_has_zeros() -> None:
    empty = Histogram()
    assert (empty.count, empty.min, empty.max, empty.mean, empty.stddev) == (0, 0, 0, 0.0, 0.0)
    assert (empty.percentile(99.0), empty.buckets()) == (0, [])
    assert Histogram.decode(empty.encode()) == empty


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda h: h.record(-1), "a duration must not be negative: -1"),
        (lambda h: h.record_n(5, -1), "a count must not be negative: -1"),
        (lambda h: h.percentile(100.5), "percentile(p) needs a p from 0 to 100, not 100.5"),
        (lambda h: Histogram.decode(b""), f"{NOT_V2} it ends too early"),
        (
            lambda h: Histogram.decode(b"nonsense"),
            f"{NOT_V2} it begins with 0x6e6f6e73",
        ),
        (
            lambda h: Histogram.decode(GOLDEN_ENCODING[:30]),
            f"{NOT_V2} it ends too early",
        ),
    ],
)
def test_a_wrong_argument_gets_a_sentence(call: object, sentence: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the sentence is compared below
        call(Histogram())
    assert str(raised.value) == sentence


@given(st.binary(max_size=200))
def test_broken_encodings_are_an_error_not_a_crash(tail: bytes) -> None:
    for data in (tail, GOLDEN_ENCODING[:8] + tail, b"\x1c\x84\x93\x13" + tail):
        try:
            Histogram.decode(data)
        except ValueError:
            continue
