"""Reading SQL texts: parameters, kinds, multi-row INSERTs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.workload.batch import multi_row, packets, row_group
from dbdyno.workload.sql import marks, parameter_positions, statement_kind, to_format_style


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT 1", 0),
        ("SELECT ? + ?", 2),
        ("SELECT '?', ?", 1),
        ("SELECT 'it''s ?', ?", 1),
        ('SELECT "a?" FROM t WHERE b=?', 1),
        ("SELECT `a?` FROM t WHERE b=?", 1),
        ("SELECT ? -- why?\n, ?", 2),
        ("SELECT /* ? \n ? */ ?", 1),
        ("SELECT a - ? - -? FROM t", 2),
    ],
)
def test_marks_in_quotes_and_comments_are_no_parameters(sql: str, count: int) -> None:
    assert len(parameter_positions(sql)) == count
    assert to_format_style(sql).replace("%%", "").count("%s") == count


def test_per_cent_signs_survive_the_format_style() -> None:
    assert to_format_style("SELECT '100%' WHERE a LIKE ? AND b % 2 = ?") == (
        "SELECT '100%%' WHERE a LIKE %s AND b %% 2 = %s"
    )


_PIECES = st.sampled_from(["?", "'a?b'", '"?"', "`?`", "-- ?\n", "/* ? */", "%", "x", " ", "''", "%s"])


@given(st.lists(_PIECES, max_size=12))
def test_the_format_style_has_the_same_parameters_in_the_same_places(pieces: list[str]) -> None:
    sql = " ".join(pieces)
    values = tuple(f"<{n}>" for n in range(pieces.count("?")))
    expected = iter(values)
    assert to_format_style(sql) % values == " ".join(next(expected) if piece == "?" else piece for piece in pieces)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT 1", "read"),
        ("  (select 1)", "read"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "read"),
        ("/* hint */ SELECT 1", "read"),
        ("-- note\nUPDATE t SET a=1", "write"),
        ("insert into t values (1)", "write"),
        ("REPLACE INTO t VALUES (1)", "write"),
        ("DELETE FROM t", "write"),
        ("MERGE INTO t USING s ON 1=1", "write"),
        ("WITH gone AS (SELECT 1) DELETE FROM t", "write"),
        ("WITH moved AS (DELETE FROM t RETURNING a) INSERT INTO s SELECT a FROM moved", "write"),
        ("BEGIN", "other"),
        ("COMMIT", "other"),
        ("CREATE TABLE t (a int)", "other"),
        ("", "other"),
    ],
)
def test_statements_count_as_sysbench_counts_them(sql: str, kind: str) -> None:
    assert statement_kind(sql) == kind


def test_marks_makes_an_in_list() -> None:
    assert (marks(1), marks(3)) == ("?", "?, ?, ?")
    with pytest.raises(ValueError, match="at least one"):
        marks(0)


def test_only_an_insert_of_one_row_group_becomes_multi_row() -> None:
    assert row_group("INSERT INTO t (a, b) VALUES (?, ?)") == "(?, ?)"
    assert multi_row("INSERT INTO t VALUES (?, ?)", 3) == "INSERT INTO t VALUES (?, ?), (?, ?), (?, ?)"
    for sql in ("UPDATE t SET a=?", "INSERT INTO t SELECT ?", "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING"):
        assert row_group(sql) is None


@given(st.lists(st.text(max_size=300), max_size=60), st.integers(1, 50), st.integers(100, 2_000))
def test_packets_keep_order_and_both_limits(texts: list[str], parameters: int, size: int) -> None:
    rows = [(number, text) for number, text in enumerate(texts)]
    made = list(packets(iter(rows), 2 * parameters, size))
    assert [row for packet in made for row in packet] == rows
    for packet in made:
        assert packet
        assert len(packet) <= parameters
        written = ", ".join(f"({number}, '{text}')" for number, text in packet)
        assert len(packet) == 1 or len(written.encode("utf-8", "surrogatepass")) <= size


def test_values_need_no_blank_after_the_word() -> None:
    assert row_group("INSERT INTO sbtest1 VALUES(?, ?)") == "(?, ?)"
    assert re.fullmatch(r"INSERT .*VALUES\(\?\), \(\?\)", multi_row("INSERT INTO t VALUES(?)", 2))
