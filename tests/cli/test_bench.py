"""``dbdyno bench --json`` on every server: what scripts rely on."""

from __future__ import annotations

import pytest
from tests.command_line import CommandLine

FIELDS = {
    *("workload", "target", "connections", "round", "seconds", "committed", "rolled_back", "failed", "unknown"),
    *("skipped", "retries", "reconnects", "tps", "qps", "latency_ms", "service_ms", "errors", "generator"),
}
LATENCIES = {"mean", "p50", "p95", "p99", "p999", "max"}


def test_one_command_measures_every_server(dbdyno: CommandLine, target_url: str) -> None:
    words = ("bench", "oltp_read_write", target_url, "-c", "1,8", "--warmup", "0.2s", "--opt", "table_size=1000")
    ended = dbdyno.ok(*words, "-d", "1s", "--json")
    first, second = ended.json["trials"]
    assert [first["connections"], second["connections"]] == [1, 8]
    for trial in (first, second):
        assert set(trial) >= FIELDS
        assert set(trial["latency_ms"]) >= LATENCIES
        assert set(trial["service_ms"]) >= LATENCIES
        assert set(trial["generator"]) >= {"cpu_us_per_query", "cpu_share", "bound"}
        assert trial["state"] == "done"
        assert trial["workload"] == "oltp_read_write"
        assert trial["committed"] > 0
        assert trial["seconds"] == pytest.approx(1.0, rel=0.2)
        assert trial["tps"] == pytest.approx(trial["committed"] / trial["seconds"], rel=0.01)
        assert 0 < trial["latency_ms"]["p50"] <= trial["latency_ms"]["p99"] <= trial["latency_ms"]["max"]
        assert trial["generator"]["cpu_us_per_query"] > 0
    again = dbdyno.ok(*words, "-d", "0.2s")
    assert "loaded" not in again.stderr, "complete tables are loaded again"
    lines = again.stdout.splitlines()
    assert lines[2].split() == ["c", "tps", "qps", "mean", "p50", "p95", "p99", "max", "errors", "retries", "client"]
    assert [line.split()[0] for line in lines[3:5]] == ["1", "8"]


def test_an_open_loop_says_the_rate_it_was_asked_for(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_point_select", "sqlite:///a.db", "-d", "2s", "--rate", "50", "--opt", "table_size=100")
    ended = dbdyno.run(*words, "--arrivals", "even", "--json")
    (trial,) = ended.json["trials"]
    # A machine that pauses by itself makes a transaction late, and the run says so.
    assert ended.status == 0 or "after it was due" in trial["reason"], ended.stderr
    assert trial["rate"] == 50
    assert trial["tps"] == pytest.approx(50, rel=0.1)


def test_a_rate_that_cannot_be_reached_fails(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_read_write", "sqlite:///a.db", "-d", "1s", "--warmup", "0s", "--rate", "20000")
    ended = dbdyno.run(*words, "--opt", "table_size=100", "--json")
    assert ended.status == 1
    (trial,) = ended.json["trials"]
    assert trial["state"] == "failed"
    assert "rate" in trial["reason"] or "arrivals" in trial["reason"]
    assert trial["reason"] in ended.stderr


def test_by_count_the_run_is_the_same_every_time(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_read_only", "sqlite:///a.db", "-c", "3", "-n", "100", "--opt", "table_size=100", "--json")
    first, second = (dbdyno.ok(*words).json["trials"][0] for _ in range(2))
    assert first["committed"] == second["committed"] == 100
    assert first["statements"] == second["statements"]
    assert first["program"] == second["program"]
