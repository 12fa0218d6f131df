"""Whole output of commands, compared with files: help, wrong words, and what a run prints.

A case is one command (``CASES``), run in this process in a folder that ``stages`` has filled; its file holds the
words, stdout, stderr and the exit status. What differs from run to run is replaced (``filtered``).

    DBDYNO_GOLDEN=write pytest tests/golden        writes the files anew; read the difference before committing it
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.command_line import joined

from dbdyno.cli.app import run_words

HERE = Path(__file__).parent
WRITE = os.environ.get("DBDYNO_GOLDEN") == "write"

PLAN = """\
name = "small"
connections = [1, 2]
rounds = 2
transactions = 20
[[target]]
name = "left"
url = "sqlite:///left.db"
[[target]]
name = "right"
url = "sqlite:///right.db"
[[workload]]
name = "oltp_point_select"
options = { table_size = 100 }
"""

WRONG_PLAN = """\
name = "small"
connexions = [1, 0]
connections = [1, 0]
rounds = "many"
duration = "soon"
order = "interleave"
[[target]]
name = "left"
url = "sqlite:///left.db"
[[target]]
name = "left"
[[workload]]
name = "oltp_read_wite"
[[workload]]
name = "oltp_point_select"
options = { table_sise = 100, tables = 0 }
"""

NO_WORKLOAD = """\
from dbdyno.workload import Workload, option, transaction

class Broken(Workload):
    tables: int = option(1, "number of tables")

    @transaction
    def event(self, db, rand)
        pass
"""


@dataclass(frozen=True)
class Case:
    """One command. ``stage`` names what was done in its folder before."""

    name: str
    words: tuple[str, ...]
    stage: str = "fresh"


def case(name: str, line: str, stage: str = "fresh") -> Case:
    """A case from words separated by blanks."""
    return Case(name, tuple(line.split()), stage)


PREPARE = "prepare oltp_point_select sqlite:///a.db --opt table_size=100"
RUN = "run plan.toml --store s.db"
COMMANDS = (
    *("quickstart", "doctor", "bench", "run", "resume", "prepare", "check", "cleanup", "list"),
    *("show", "compare", "report", "export", "workloads", "server"),
)

CASES = [
    case("help", "--help"),
    *(case(f"help-{name}", f"{name} --help") for name in COMMANDS),
    *(case(f"help-server-{name}", f"server {name} --help") for name in ("start", "stop", "remove", "list")),
    case("help-bench-workload", "bench oltp_read_write --help"),
    case("workloads", "workloads"),
    case("workloads-one", "workloads oltp_read_write"),
    # Wrong words
    case("wrong-command", "lsit"),
    case("wrong-option", "bench oltp_read_write sqlite:///a.db --conections 4"),
    case("wrong-connections", "bench oltp_read_write sqlite:///a.db -c 1,none"),
    case("wrong-duration", "bench oltp_read_write sqlite:///a.db -d soon"),
    case("wrong-isolation", "bench oltp_read_write sqlite:///a.db --isolation read-comitted"),
    case("wrong-both-ends", "bench oltp_read_write sqlite:///a.db -d 1s -n 10"),
    case("wrong-argument-missing", "bench oltp_read_write"),
    case("wrong-workload", "bench oltp_read_wite sqlite:///a.db"),
    case("wrong-workload-file", "bench ./nothing.py sqlite:///a.db"),
    case("wrong-workload-syntax", "bench ./broken.py sqlite:///a.db"),
    case("wrong-workload-option", "bench oltp_read_write sqlite:///a.db --opt table_sise=10"),
    case("wrong-workload-value", "bench oltp_read_write sqlite:///a.db --opt tables=none"),
    case("wrong-opt-form", "bench oltp_read_write sqlite:///a.db --opt tables"),
    case("wrong-scheme", "bench oltp_read_write postgrsql://u@h/db"),
    case("wrong-port", "bench oltp_read_write postgresql://u@127.0.0.1:none/db"),
    case("wrong-target", "bench oltp_read_write nowhere"),
    case("wrong-doctor-opt", "doctor sqlite:///a.db --opt tables=2"),
    case("wrong-plan", "run wrong.toml"),
    case("wrong-plan-missing", "run nothing.toml"),
    case("wrong-set", "run plan.toml --set roudns=5"),
    case("wrong-server-kind", "server start postgres"),
    case("wrong-server-name", "server stop nothing"),
    case("wrong-no-store", "list"),
    case("wrong-campaign", "show smal-1 --store s.db", "run"),
    case("wrong-trial", "show small-1/oltp_point_select/left/c1/r9 --store s.db", "run"),
    case("wrong-format", "report small-1 --format htlm --store s.db", "run"),
    # Databases that are not as they should be
    case("closed-port", "bench oltp_point_select postgresql://u@127.0.0.1:1/db"),
    case("missing-folder", "bench oltp_point_select sqlite:///nowhere/a.db"),
    case("missing-table", "bench oltp_point_select sqlite:///a.db --no-prepare"),
    case("check-nothing", "check oltp_point_select sqlite:///a.db"),
    case("foreign-table", "bench oltp_point_select sqlite:///foreign.db -n 10 --opt table_size=100"),
    case("too-few-rows", "bench oltp_point_select sqlite:///a.db -n 10 --opt table_size=200", "prepared"),
    # What a run says
    case("prepare", PREPARE),
    case("check", "check oltp_point_select sqlite:///a.db --opt table_size=100", "prepared"),
    case("cleanup", "cleanup oltp_point_select sqlite:///a.db", "prepared"),
    case("bench", "bench oltp_point_select sqlite:///a.db -c 1,2 -n 20 --opt table_size=100"),
    case("doctor", "doctor sqlite:///a.db -w oltp_read_write -c 1,4"),
    case("dry-run", "run plan.toml --dry-run"),
    case("run", RUN),
    case("list", "list --store s.db", "run"),
    case("show", "show small-1 --store s.db", "run"),
    case("show-trial", "show small-1/oltp_point_select/left/c1/r2 --store s.db", "run"),
    case("show-trials", "show small-1 --trials --store s.db", "run"),
    case("compare", "compare small-1 --store s.db", "run"),
    case("export-csv", "export small-1 --format csv --store s.db", "run"),
]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders to copy: plans and a database that is not ours; that with tables prepared; that with a plan run."""
    fresh = tmp_path_factory.mktemp("stages") / "fresh"
    fresh.mkdir()
    (fresh / "plan.toml").write_text(PLAN, encoding="utf-8")
    (fresh / "wrong.toml").write_text(WRONG_PLAN, encoding="utf-8")
    (fresh / "broken.py").write_text(NO_WORKLOAD, encoding="utf-8")
    with contextlib.closing(sqlite3.connect(fresh / "foreign.db")) as connection:
        connection.execute("CREATE TABLE sbtest1 (customer TEXT)")
        connection.commit()
    found = {"fresh": fresh}
    for stage, line in (("prepared", PREPARE), ("run", RUN)):
        found[stage] = Path(shutil.copytree(fresh, fresh.with_name(stage)))
        with contextlib.chdir(found[stage]):
            assert run_words(line.split()) == 0
    return found


@pytest.fixture
def folder(
    request: pytest.FixtureRequest, stages: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The case's own folder, which is where it stands, with an empty home beside it."""
    work = Path(shutil.copytree(stages[request.node.callspec.params["case"].stage], tmp_path / "work"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    for name in ("DBDYNO_HOME", "XDG_DATA_HOME", "DBDYNO_STORE", "DBDYNO_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    return work


def filtered(text: str, folder: Path) -> str:
    """The text without what differs from run to run: places, times, measured figures and their alignment."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"/\S*/stages\d+/\w+", "STAGE", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?", "TIME", text)
    return re.sub(r"\b(sqlite|sqlite3|psycopg|pymysql|dbdyno|python|Python) \d+(\.\d+)+", r"\1 V", text)


_FIGURE = re.compile(r"(?<![\w./=-])[+-]?\d[\d,]*(\.\d+)?(?![\w/]|\.\d)")


def without_figures(text: str) -> str:
    """Measured figures as ``N`` and runs of blanks as two: for the output of runs."""
    text = re.sub(r" {2,}", "  ", _FIGURE.sub("N", text)).replace("bound N %", "N %")
    text = re.sub(r"^(  )?(Geometric mean over [^.]*\.) .*$", r"\1\2 EVIDENCE", text, flags=re.MULTILINE)
    text = re.sub(r"^(oltp_point_select: ).*$", r"\1ANSWER", text, flags=re.MULTILINE)
    text = re.sub(r"^(N  N  N  ).*  [▲▼=?] .*$", r"\1CHANGE", text, flags=re.MULTILINE)
    text = re.sub(r"; client-bound: .*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n?^the client was the bottleneck.*\n", "", text, flags=re.MULTILINE)


#: Cases whose output holds measured figures.
MEASURED = ("bench", "run", "show", "show-trials", "show-trial", "compare", "prepare", "check")


#: What ``doctor`` finds on this machine at this moment: others' load, memory, the kernel's settings.
_MACHINE = (
    *("CPU", "CPU quota", "CPU frequency", "CPU temperature", "steal", "throttling", "swap", "clock", "memory"),
    *("transparent huge pages", "client's open files", "disk"),
)


def without_machine(text: str) -> str:
    """A doctor's table and paragraphs without those about the machine."""
    row = re.compile(rf"^(ok|info|warn|bad) +({'|'.join(map(re.escape, _MACHINE))})  .*\n", re.MULTILINE)
    paragraph = re.compile(rf"^\n(info|warn|bad) +({'|'.join(map(re.escape, _MACHINE))}): .*\n( +.*\n)*", re.MULTILINE)
    return re.sub(r" {2,}", "  ", paragraph.sub("", row.sub("", text)))


def golden(case: Case, stdout: str, stderr: str, status: int, folder: Path) -> str:
    """What the case's file should hold."""
    stdout, stderr = filtered(stdout, folder), filtered(stderr, folder)
    if case.name in MEASURED:
        stdout, stderr = without_figures(stdout), without_figures(stderr)
    if case.name == "doctor":
        stdout, stderr = without_machine(stdout), "SUMMARY\n" if re.search(r"things looked at\n$", stderr) else stderr
    if case.name == "export-csv":
        head, *rows = stdout.splitlines()
        stdout = "\n".join([head, *(",".join(row.split(",")[:6]) + ",…" for row in rows)]) + "\n"
    # Noise may give an answer; a busy machine is found bad.
    ending = "0 or 1" if case.name in ("compare", "doctor") and status in (0, 1) else status
    return f"$ dbdyno {joined(case.words)}\n{stdout}--- stderr\n{stderr}--- exit {ending}\n"


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.name)
def test_output_is_as_agreed(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    status = run_words(case.words)
    said = capsys.readouterr()
    found = golden(case, said.out, said.err, status, folder)
    assert "Traceback" not in found
    assert "mistake in dbdyno" not in found
    path = HERE / f"{case.name}.txt"
    if WRITE:
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"no golden file {path.name}; write it with DBDYNO_GOLDEN=write"
    assert found == path.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == {case.name for case in CASES}
