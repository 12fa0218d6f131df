"""On a terminal of 80 columns: the board is drawn, fits, and leaves the figures alone."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import struct
import subprocess
import sys
from fcntl import ioctl
from termios import TIOCSWINSZ

from rich.cells import cell_len
from tests.command_line import CommandLine

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(dbdyno: CommandLine, *words: str, env: dict[str, str]) -> tuple[int, str, str]:
    """(status, stdout, what was written to the terminal on stderr)."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**dbdyno.environment(), "TERM": "xterm-256color", **env}
    process = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", *words],
        cwd=dbdyno.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    screen = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(ours, 4096):
            screen += chunk
    stdout, _ = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, stdout, screen.decode()


def test_the_board_is_drawn_and_fits(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_point_select", "sqlite:///a.db", "-c", "2", "-d", "2s", "--warmup", "0s", "--rounds", "2")
    status, stdout, screen = on_a_terminal(dbdyno, *words, "--opt", "table_size=100", "--json", env={"NO_COLOR": "1"})
    assert status == 0
    assert stdout.startswith('{\n  "trials": [')
    plain = _CONTROL.sub("", screen)
    assert "bench-1: 1 of 2 trials done, about" in plain
    assert re.search(r"oltp_point_select on a, \d connections?, round \d of 2", plain)
    assert re.search(r"of 2 s: [\d,.]+ tps, p95 [\d.]+ ms, 0 errors", plain)
    assert "# done  > running" in plain
    assert "1/2 oltp_point_select" not in plain, "lines a trial belong where nothing is drawn"
    lines = [line for part in plain.split("\n") for line in part.split("\r")]
    assert all(cell_len(line) <= 80 for line in lines if not line.startswith(("note:", "dbdyno:")))
    assert not re.search(r"\x1b\[[0-9;]*[1-9][0-9;]*m", screen), "NO_COLOR forbids it"


def test_what_is_over_at_once_draws_nothing(dbdyno: CommandLine) -> None:
    words = ("prepare", "oltp_point_select", "sqlite:///a.db", "--opt", "table_size=100")
    status, stdout, screen = on_a_terminal(dbdyno, *words, env={})
    assert (status, stdout) == (0, "")
    assert re.fullmatch(r"loaded 100 rows into 1 table on a in [\d.]+ \w+", _CONTROL.sub("", screen).strip())


def test_a_dumb_terminal_gets_plain_lines(dbdyno: CommandLine) -> None:
    words = ("bench", "oltp_point_select", "sqlite:///a.db", "-n", "20", "--opt", "table_size=100")
    status, _, screen = on_a_terminal(dbdyno, *words, env={"TERM": "dumb"})
    assert status == 0
    assert "1/1 oltp_point_select on a" in screen
    assert "\x1b" not in screen
