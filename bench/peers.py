"""The commands of the peers and of dbdyno, and what one run of each came to.

Client CPU is the operating system's own account of the finished client process (wait4), so that it is the
same measure for every program. Set-up (logging in, preparing) is included for all of them alike.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Run:
    """One run of one client: queries answered, wall seconds driven, client CPU seconds."""

    queries: int
    transactions: int
    seconds: float
    cpu_s: float

    @property
    def qps(self) -> float:
        """Queries per second."""
        return self.queries / self.seconds

    @property
    def cpu_us_per_query(self) -> float:
        """Client CPU for each query."""
        return self.cpu_s * 1e6 / self.queries


def measured(command: Sequence[str]) -> tuple[str, float]:
    """Standard output and CPU seconds (user and system) of a command.

    Raises:
        SystemExit: it failed; its last words are shown.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stdout is not None
    assert process.stderr is not None
    output = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = "\n".join((output + errors).strip().splitlines()[-5:])
        raise SystemExit(f"{command[0]} ended with status {process.returncode}:\n{tail}")
    return output, usage.ru_utime + usage.ru_stime


def sysbench(script: str, port: int, threads: int, seconds: int, *options: str) -> Run:
    """sysbench 1.0 over the MySQL protocol, prepared statements."""
    command = [
        "sysbench", script, "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=root", "--mysql-db=dbdyno",
        f"--threads={threads}", f"--time={seconds}", "--events=0", "--rand-type=uniform", *options, "run",
    ]  # fmt: skip
    output, cpu_s = measured(command)
    queries = re.search(r"queries:\s+(\d+)", output)
    transactions = re.search(r"transactions:\s+(\d+)", output)
    elapsed = re.search(r"total time:\s+([\d.]+)s", output)
    if not (queries and transactions and elapsed):
        raise SystemExit(f"cannot read sysbench's output:\n{output}")
    return Run(int(queries[1]), int(transactions[1]), float(elapsed[1]), cpu_s)


def pgbench(binary: Path, port: int, clients: int, seconds: int, user: str) -> Run:
    """pgbench's select-only, prepared, one thread."""
    command = [
        str(binary), "-n", "-S", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(seconds),
        "-h", "127.0.0.1", "-p", str(port), "-U", user, "dbdyno",
    ]  # fmt: skip
    began = time.monotonic()
    output, cpu_s = measured(command)
    elapsed = time.monotonic() - began
    count = re.search(r"transactions actually processed: (\d+)", output)
    if not count:
        raise SystemExit(f"cannot read pgbench's output:\n{output}")
    return Run(int(count[1]), int(count[1]), min(elapsed, float(seconds)), cpu_s)


def dbdyno(workload: str, url: str, connections: int, seconds: int, *options: str, store: Path) -> Run:
    """dbdyno's bench on tables that are there already; a process of its own, like the peers."""
    command = [
        sys.executable, "-m", "dbdyno", "bench", workload, url, "-c", str(connections), "-d", f"{seconds}s",
        "--warmup", "0s", "--rounds", "1", "--json", "--store", str(store),
        *(word for option in options for word in ("--opt", option)),
    ]  # fmt: skip
    output, cpu_s = measured(command)
    trial = json.loads(output)["trials"][0]
    statements = sum(trial["statements"].values())
    return Run(statements, trial["committed"], trial["seconds"], cpu_s)
