"""What the compiler makes of a workload: what is folded, what is written out, what the engine is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno import _engine
from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities
from dbdyno.workload.compiler import compile_workload
from dbdyno.workload.source import load_workload, shipped, workload_class

HEAD = """
from dbdyno.workload import Workload, marks, option, state, transaction

class Base(Workload):
    size: int = option(10, "rows")
    loud: bool = option(False, "whether")

    def twice(self, n, by=2):
        return n * by

    def session_setup(self, db):
        return ["SET a = 1"] if db.has.returning else []

class Made(Base):
    reconnect_every = 7

    def twice(self, n, by=3):
        return super().twice(n, by=by) + 1

    @transaction(weight=3, keying_s=0.5, think_s=2)
    def event(self, db, rand):
"""


def made(folder: Path, body: str, **capabilities: Any) -> dict[str, Any]:
    """The program of a transaction with that body, as JSON; the engine has read it."""
    path = folder / f"made_{abs(hash(body))}.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.splitlines()), encoding="utf-8")
    workload = workload_class(f"{path}:Made")({})
    program = compile_workload(workload, Capabilities(**capabilities), "FOR UPDATE", 5)
    assert _engine.Program(program.data).hash == program.hash
    found: dict[str, Any] = json.loads(program.data)
    return found


def words(program: dict[str, Any]) -> list[str]:
    return [instruction[0] for instruction in program["transactions"][0]["block"]["code"]]


def columns(program: dict[str, Any]) -> list[int]:
    return [site["columns"] for site in program["transactions"][0]["block"]["statements"]]


def test_what_is_constant_costs_nothing_at_run_time(tmp_path: Path) -> None:
    program = made(
        tmp_path,
        """n = self.twice(self.size) - 1
if self.loud:
    db.query("SELECT 2")
if db.has.returning and n > 5:
    db.query(f"SELECT {n}, {self.size:03d} {db.for_update} WHERE id IN ({marks(3)})", 1, 2, db.terminals)""",
        returning=True,
    )
    assert program["texts"] == ["SELECT 30, 010 FOR UPDATE WHERE id IN (?, ?, ?)"]
    assert words(program) == ["statement", "return"]
    assert program["constants"] == [1, 2, 5]


def test_functions_are_written_out_and_loops_are_not(tmp_path: Path) -> None:
    program = made(
        tmp_path, "for i in range(1000):\n    db.query('SELECT a FROM t WHERE id = ?', self.twice(rand.uniform(1, 9)))"
    )
    assert words(program).count("statement") == 1
    assert words(program).count("mul") == 1
    assert len(words(program)) < 15


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("db.row('SELECT a, b FROM t')", 0),
        ("r = db.row('SELECT a, b FROM t')\nif r is None:\n    db.begin()\n    db.commit()", 0),
        ("r = db.row('SELECT a, b FROM t')\nif r:\n    db.ack(r[1])", 0b10),
        ("r = db.row('SELECT a, b FROM t')\ndb.ack(r[0], r[3])", 0b1001),
        ("db.ack(db.row('SELECT a, b FROM t')[1])", 0b10),
        ("a, b = db.row('SELECT a, b FROM t')", 2**64 - 1),
        ("r = db.query('SELECT a, b FROM t')\ndb.ack(len(r))", 0),
        ("if db.query('SELECT a, b FROM t'):\n    db.ack(1)", 0),
        ("r = db.query('SELECT a, b FROM t')\ndb.ack(r[0][1])", 2**64 - 1),
        ("r = db.row('SELECT a, b FROM t')\ndb.ack(r)", 2**64 - 1),
        ("for a, b in db.query('SELECT a, b FROM t'):\n    db.ack(a)", 2**64 - 1),
    ],
)
def test_the_engine_decodes_only_the_columns_that_are_read(tmp_path: Path, body: str, expected: int) -> None:
    assert columns(made(tmp_path, body)) == [expected]


def test_the_engine_is_told_all_it_needs(tmp_path: Path) -> None:
    program = made(tmp_path, "db.execute('DELETE FROM t')", returning=True, max_parameters=99, pipeline=True)
    kind = program["transactions"][0]
    assert (kind["weight"], kind["keying_s"], kind["think_s"], kind["writes"]) == (3.0, 0.5, 2.0, True)
    assert program["setup"] == ["SET a = 1"]
    assert (program["reconnect_every"], program["max_parameters"], program["pipeline"]) == (7, 99, True)
    assert not made(tmp_path, "db.query('SELECT 1')")["transactions"][0]["writes"]


def test_a_text_that_is_made_at_run_time_is_numbered_by_its_integers(tmp_path: Path) -> None:
    program = made(tmp_path, "n = rand.uniform(1, 9)\ndb.query(f'SELECT {n:02d} FROM t{n} WHERE id = ?', n)")
    assert program["templates"] == [
        ["SELECT ", {"hole": "int", "width": 2}, " FROM t", {"hole": "int"}, " WHERE id = ?"]
    ]


def test_a_program_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    assert all("/" not in name for name in made(tmp_path, "db.query('SELECT 1')")["files"])
    for name in shipped():
        program = compile_workload(load_workload(name, {}), Capabilities(), "", 1)
        assert all(file.startswith("dbdyno/workloads/") for file in json.loads(program.data)["files"])


def test_loading_a_file_refuses_what_is_outside_the_language(tmp_path: Path) -> None:
    path = tmp_path / "outside.py"
    path.write_text(HEAD.replace("class Base", "class _Base").replace("(Base)", "(_Base)") + "        print(1)\n")
    with pytest.raises(UsageError, match=r"outside\.py:\d+: print\(\) cannot be called here"):
        load_workload(f"{path}:Made", {})


def test_damaged_programs_are_one_sentence() -> None:
    for data in (b"", b"{}", b"[1]", b'{"format": 2}'):
        with pytest.raises(ValueError, match="not a program of this version"):
            _engine.Program(data)
