"""User-space instructions of a point select, counted by valgrind.

Two runs of different length against the fake server; the difference leaves out start-up, logging in and preparing.
The event loop's thread is counted, in one sample: what is done once a second is no part of a query, and would be half
of it at valgrind's pace. The rows of CPU have all threads and a sample a second.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from engine_client import DRIVER, WORDS
from table import Result
from window import Missing

from fake import fake

CONNECTIONS = 64
BAR = 1_000
SHORT, LONG = 5_000, 105_000
PATIENCE_S = 240
#: A function of the thread that is counted.
LOOP = "EventLoop>::resume"
#: Python starts with the same number of instructions each time.
SAME = {**os.environ, "PYTHONHASHSEED": "0"}


def measure(folder: Path, long: int = LONG) -> list[Result]:
    """The row."""
    name = f"user-space instructions per point select (callgrind, {CONNECTIONS} connections)"
    try:
        if shutil.which("valgrind") is None:
            raise Missing("valgrind is not installed")
        with fake(folder) as server:
            counts = [counted(folder, server.url, transactions) for transactions in (SHORT, long)]
    except Missing as error:
        return [Result(name, f"≤ {BAR:,}", "–", None, str(error))]
    each = (counts[1] - counts[0]) / (long - SHORT)
    return [Result(name, f"≤ {BAR:,}", f"{each:,.0f}", each <= BAR, f"between {SHORT:,} and {long:,} transactions")]


def counted(folder: Path, url: str, transactions: int) -> int:
    """Instructions of a run of so many transactions."""
    command = [
        "valgrind", "--tool=callgrind", "--separate-threads=yes",
        f"--callgrind-out-file={folder}/callgrind.{transactions}",
        sys.executable, str(DRIVER), "oltp_point_select", url, *WORDS, "--connections", str(CONNECTIONS),
        "--transactions", str(transactions), "--interval", "600",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, env=SAME)
    except subprocess.TimeoutExpired:
        raise Missing(f"valgrind took more than {PATIENCE_S} s") from None
    loops = [
        int(found[1])
        for path in folder.glob(f"callgrind.{transactions}-*")
        if LOOP in (text := path.read_text(errors="replace")) and (found := re.search(r"^totals: (\d+)", text, re.M))
    ]
    if done.returncode or len(loops) != 1 or '"state": "done"' not in done.stdout:
        raise Missing(f"valgrind did not get through: {done.stderr.strip().splitlines()[-1:]}")
    return loops[0]
