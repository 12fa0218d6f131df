"""A network that is cut between ``dbdyno bench`` and its server: noticed, on the record, never a hang."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.command_line import CommandLine, command_line
from tests.faults.network import OUTER, Network
from tests.faults.running import sessions, wait_for
from tests.servers.pool import Pool

from dbdyno.targets.target import open_target

CONNECTIONS = 3
BENCH = ("bench", "oltp_update_index", "--opt", "table_size=200", "-c", str(CONNECTIONS), "--warmup", "0", "--json")
soak = pytest.mark.skipif("DBDYNO_SOAK" not in os.environ, reason="takes half a minute: make soak")


@pytest.fixture
def dbdyno(tmp_path: Path) -> CommandLine:
    return command_line(tmp_path)


class Cut:
    """A run inside a network, and how it ended."""

    def __init__(self, dbdyno: CommandLine, pool: Pool, kind: str, network: Network, *words: str) -> None:
        server = pool.server(kind)
        self.target = open_target(server.url)
        dbdyno.ok("prepare", "oltp_update_index", server.url, "--opt", "table_size=200")
        url = server.url.replace(f"127.0.0.1:{server.port}", f"{OUTER}:{network.port}")
        self.process = network.start(dbdyno, *BENCH, url, "--store", "s.db", *words)
        wait_for(lambda: len(sessions(self.target)) == CONNECTIONS, "the run's connections")
        time.sleep(0.6)

    def end(self) -> dict[str, Any]:
        """The trial; the accounting identity holds."""
        stdout, self.stderr = self.process.communicate(timeout=60)
        (trial,) = json.loads(stdout)["trials"]
        ended = ("committed", "rolled_back", "failed", "unknown", "skipped", "unfinished")
        assert trial["scheduled"] == sum(trial[name] for name in ended)
        return dict(trial)


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_cable_out_for_a_second_costs_time_and_no_connection(dbdyno: CommandLine, server: str, pool: Pool) -> None:
    with Network(pool.server(server).port) as network:
        run = Cut(dbdyno, pool, server, network, "-d", "4s", "--interval", "100ms")
        network.down()
        time.sleep(1.0)
        network.up()
        outcome = run.end()
    assert run.process.returncode == 0, run.stderr
    assert outcome["state"] == "done"
    assert (outcome["outages"], outcome["errors"]) == ([], {})
    assert outcome["committed"] == outcome["scheduled"]
    assert outcome["latency_ms"]["max"] > 900


@soak
def test_packets_that_vanish_are_an_outage_after_fifteen_seconds(dbdyno: CommandLine, server: str, pool: Pool) -> None:
    with Network(pool.server(server).port) as network:
        run = Cut(dbdyno, pool, server, network, "-d", "40s")
        network.swallow()
        cpu = psutil.Process(run.process.pid).cpu_times()
        time.sleep(20.0)
        after = psutil.Process(run.process.pid).cpu_times()
        network.restore()
        outcome = run.end()
    assert run.process.returncode == 0, run.stderr
    assert after.user + after.system - cpu.user - cpu.system < 2.0
    assert len(outcome["outages"]) == outcome["reconnects"] == CONNECTIONS
    assert sum(outcome["errors"].values()) == CONNECTIONS == outcome["unknown"]
    assert all(14 < outage["begin"] < 20 for outage in outcome["outages"])


@soak
def test_a_run_whose_network_is_gone_ends_in_time_and_failed(dbdyno: CommandLine, server: str, pool: Pool) -> None:
    with Network(pool.server(server).port) as network:
        run = Cut(dbdyno, pool, server, network, "-d", "4s")
        began = time.monotonic()
        network.swallow()
        outcome = run.end()
        took = time.monotonic() - began
    # four seconds, five to drain, five to cancel
    assert took < 20
    assert outcome["unfinished"] == CONNECTIONS
    assert run.process.returncode == 1
    assert outcome["reason"].startswith("the server was gone at the end of the run")
