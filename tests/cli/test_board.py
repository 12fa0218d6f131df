"""The board of a running campaign: what it says, that it aligns, that it fits the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from dbdyno._engine import Histogram
from dbdyno.cli.board import Board, fitted
from dbdyno.cli.output import table
from dbdyno.model.sample import Counts, Health, Sample
from dbdyno.model.trial import Load, Trial


def trials(workloads: Sequence[str], targets: Sequence[str], counts: Sequence[int], rounds: int) -> list[Trial]:
    found: list[Trial] = []
    for number in range(1, rounds + 1):
        for workload in workloads:
            for count in counts:
                for target in targets:
                    load = Load(count, duration_s=10.0)
                    found.append(Trial("c-1", len(found) + 1, workload, "oltp_read_only", {}, target, load, number))
    return found


def sample(second: float, committed: int, errors: int = 0, seconds: float = 0.2) -> Sample:
    histogram = Histogram()
    histogram.record_n(2_000_000, committed)
    return Sample(
        second=second,
        seconds=seconds,
        counts=Counts(committed=committed),
        errors={"1213": errors} if errors else {},
        response=histogram.encode(),
        service=histogram.encode(),
        health=Health(cpu_s=0.1, cpu_share=0.5, cpu_us_per_query=10.0),
        connected=1,
    )


def test_the_running_trial_shows_its_last_second_and_no_older_one() -> None:
    board = Board("c-1", trials(["w"], ["a"], [1], 1), {}, 10.0)
    board.begin(board.trials[0])
    for number in range(10):  # two seconds of 0.2 s: the first one at 1000 a sample, the last one at 10
        board.sample(sample(number * 0.2, 1000 if number < 5 else 10, errors=number < 5))
    assert board.now() == ["w on a, 1 connection", "  2 s of 10 s: 50.0 tps, p95 2.00 ms, 0 errors"]


def test_warm_up_is_called_warm_up() -> None:
    board = Board("c-1", trials(["w"], ["a"], [1], 1), {}, 10.0)
    board.begin(board.trials[0])
    assert board.now()[1] == "  connecting"
    board.sample(sample(-1.0, 10))
    assert board.now()[1].startswith("  warming up: ")


def test_done_running_failed_and_waiting_trials_differ_without_colour() -> None:
    board = Board("c-1", trials(["w"], ["a"], [1, 4], 2), {}, 10.0)
    first, second, third, _ = board.trials
    board.begin(first)
    board.end(first, "done")
    board.begin(second)
    board.end(second, "failed")
    board.begin(third)
    matrix = board.matrix()
    assert matrix[0].split() == ["1", "4"]
    assert matrix[1].split() == ["w", "a", "#>", "x·"]
    assert board.head().startswith("c-1: 2 of 4 trials done")


def test_time_left_counts_down_from_the_plan_and_then_from_what_trials_took() -> None:
    board = Board("c-1", trials(["w"], ["a"], [1], 4), {}, 10.0)
    assert board.left_s() == 40.0
    board.begin(board.trials[0])
    board.end(board.trials[0], "done")
    assert board.left_s() is not None
    assert board.left_s() < 1.0  # type: ignore[operator]  # it took no time at all, so the others will not either


def test_trials_without_a_known_length_promise_no_time() -> None:
    board = Board("c-1", trials(["w"], ["a"], [1], 4), {}, None)
    assert board.head() == "c-1: 0 of 4 trials done"


def test_every_line_fits_80_columns_and_chinese_names_align() -> None:
    board = Board("测试-1", trials(["读写混合", "rw"], ["旧版本数据库", "new"], [1, 8, 64], 3), {}, 60.0)
    board.begin(board.trials[0])
    lines = board.lines(80)
    assert all(cell_len(line) <= 80 for line in lines)
    rows = [line for line in board.matrix() if "···" in line or ">··" in line]
    starts = {cell_len(line[: line.index("··", 1)].rstrip(">·")) for line in rows}
    assert len(starts) == 1
    board.activity = "long " * 100
    assert all(cell_len(line) <= 40 for line in board.lines(40))


def test_a_line_is_cut_between_characters_never_in_half_of_one() -> None:
    assert fitted("数据库数据库", 7) == "数据库…"
    assert cell_len(fitted("数据库数据库", 6)) <= 6


def test_a_huge_matrix_does_not_scroll_the_terminal() -> None:
    board = Board("c-1", trials([f"w{i}" for i in range(30)], ["a"], [1], 1), {}, 1.0)
    assert board.matrix() == []
    assert len(board.lines(80)) <= 3


def test_tables_align_by_cells() -> None:
    lines = table(["target", "tps"], [("旧版本", "1,234"), ("new", "56")])
    assert [cell_len(line) for line in lines] == [13, 13, 13]
    assert lines[2] == "new        56"
