"""How the command ends: exit status, one sentence, no traceback, whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.command_line import CommandLine

from dbdyno.cli import app
from dbdyno.model.errors import Interrupted, RunError, UsageError


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException, *words: str) -> int:
    """The exit status when a command raises ``error``."""

    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr(app.Commands, "get_command", lambda *_: broken)
    return app.run_words(["list", *words])


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageError("no such thing"), 2, "dbdyno: no such thing\n"),
        (RunError("the server is away"), 1, "dbdyno: the server is away\n"),
        (Interrupted("stopped while loading"), 130, "dbdyno: stopped while loading\n"),
        (KeyboardInterrupt(), 130, "dbdyno: interrupted\n"),
        (RunError("two lines\nsecond"), 1, "dbdyno: two lines\n  second\n"),
    ],
)
def test_every_ending_has_its_status_and_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, said: str
) -> None:
    assert ending(monkeypatch, error) == status
    assert capsys.readouterr().err == said


def test_our_own_mistake_is_one_line_that_says_how_to_report_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ending(monkeypatch, ZeroDivisionError("division by zero")) == 1
    said = capsys.readouterr().err
    assert said == (
        "dbdyno: a mistake in dbdyno, please report it with what the same command prints under --debug: "
        "ZeroDivisionError: division by zero\n"
    )


@pytest.mark.parametrize("error", [RunError("away"), ZeroDivisionError("zero")])
def test_debug_shows_the_traceback_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    assert ending(monkeypatch, error, "--debug") == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_password_in_an_error_or_a_traceback_is_masked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DBDYNO_PASSWORD", "very-secret")
    assert ending(monkeypatch, RunError("cannot log in with very-secret"), "--debug") == 1
    said = capsys.readouterr().err
    assert "very-secret" not in said
    assert "dbdyno: cannot log in with ***\n" in said


def test_a_reader_that_goes_away_is_no_error(dbdyno: CommandLine) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = dbdyno.run("workloads", stdout=writing)
    os.close(writing)
    assert (ended.status, ended.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_one_sentence(dbdyno: CommandLine) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        ended = dbdyno.run("workloads", stdout=full)
    assert ended.status == 1
    assert ended.stderr == "dbdyno: the output cannot be written: No space left on device\n"


def test_figures_go_to_stdout_and_talk_to_stderr(dbdyno: CommandLine) -> None:
    ended = dbdyno.ok("bench", "oltp_point_select", "sqlite:///a.db", "-n", "20", "--opt", "table_size=100", "--json")
    assert [trial["committed"] for trial in ended.json["trials"]] == [20]
    assert "loaded 100 rows" in ended.stderr


def test_an_ascii_terminal_gets_question_marks_not_a_traceback(dbdyno: CommandLine) -> None:
    ended = dbdyno.run(
        "workloads", "oltp_read_write", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert ended.status == 0, ended.stderr


#: Which of the packages that take long to import a command may load before it does anything.
_HEAVY = ("numpy", "scipy", "sqlalchemy", "pydantic", "psycopg", "pymysql")


@pytest.mark.parametrize(
    ("words", "allowed"),
    [("--help", ()), ("workloads", ()), ("server list", ()), ("bench --help", ("sqlalchemy", "pydantic"))],
)
def test_nobody_waits_for_packages_that_the_command_does_not_need(words: str, allowed: tuple[str, ...]) -> None:
    code = f"import sys; from dbdyno.cli.app import run_words; run_words({words.split()});"
    code += f"print(*[name for name in {_HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.splitlines()[-1].split()) <= set(allowed)


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_help_says_of_a_command_what_the_command_says_of_itself(name: str) -> None:
    found = app.Commands().get_command(click.Context(app.command), name)
    assert found is not None
    assert found.get_short_help_str(limit=100) == app.COMMANDS[name]
