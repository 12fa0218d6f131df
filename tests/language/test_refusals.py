"""Constructs outside the language are refused before anything runs, with file, line and what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno.model.errors import UsageError
from dbdyno.targets.family import Capabilities
from dbdyno.workload.compiler import check_workload, compile_workload
from dbdyno.workload.source import workload_class

HEAD = """from functools import lru_cache
import math
import random
from dbdyno.workload import Rollback, Workload, marks, option, state, transaction

NAMES = ["a", "b"]
SIZES = {"a": 1}

@lru_cache
def cached(n):
    return n

def many(*values):
    return values

def again(n):
    return again(n - 1)

class Wrong(Workload):
    size: int = option(10, "rows")
    total = state(0)

    @transaction
    def event(self, db, rand):
        x = rand.uniform(1, 9)
"""
LINE = HEAD.count("\n") + 1

REFUSED = {
    "try:\n    x = 1\nexcept Exception:\n    pass": "cannot be caught",
    "import os": "top of the module",
    "lambda y: y": "lambda",
    "y = {}": "a dict",
    "y = {x: 1 for x in NAMES}": "dict comprehension",
    "y = (z for z in NAMES)": "list comprehension",
    "y = [a + b for a in NAMES for b in NAMES]": "two for",
    "x.strip()": "strip()",
    "y = f'{x!r}'": "conversion",
    "y = f'{x:>10}'": "the format '>10'",
    "y = NAMES[::2]": "slice with a step",
    "y = SIZES[x]": "a dict with a key",
    "NAMES.append(x)": "constant",
    "NAMES[0] = 'z'": "constant",
    "self.size = x": "db.state.NAME",
    "db.state.other = x": "state(DEFAULT)",
    "db.rows('SELECT 1')": "did you mean 'row'",
    "rand.unifrom(1, 2)": "did you mean 'uniform'",
    "rand.uniform(1)": "rand.uniform(a, b)",
    "rand.at(f't{x}', 1)": "constant string",
    "db.query(f'SELECT {NAMES[x]} FROM t WHERE a = ?')": "1 parameters|holes take|integers",
    "db.query('SELECT ' + rand.template('@'))": "made at run time",
    "db.query('SELECT ? FROM t', 1, 2)": "1 parameters (?) but 2 values",
    "db.query('SELECT 1 FROM t WHERE a = ?', *NAMES, x)": "starred list last",
    "db.execute()": "begins with its SQL",
    "math.sqrt(x)": "cannot be called here",
    "random.random()": "cannot be called here|not a plain function|calls",
    "print(x)": "cannot be called here",
    "y = zip(NAMES, NAMES)": "cannot be called here",
    "y = range(3)": "for … in range",
    "cached(x)": "not a plain function|cannot be called",
    "many(x)": "takes * or **",
    "again(x)": "calls itself",
    "y = sorted(NAMES, key=len)": "sort tuples",
    "y = x is 5": "only None",
    "y = x @ x": "@",
    "y = (z := 1)": "assign in a line of its own",
    "raise ValueError('no')": "only raise Rollback",
    "with open('f') as f:\n    pass": "only with db.pipeline()",
    "with db.pipeline():\n    y = db.row('SELECT 1')": "not there yet",
    "with db.pipeline():\n    with db.pipeline():\n        db.query('SELECT 1')": "inside db.pipeline()",
    "for z in NAMES:\n    pass\nelse:\n    x = 1": "else of a loop",
    "del x": "del",
    "assert x": "assert",
    "global NAMES": "global",
    "y = undefined": "undefined is not defined",
    "y = later\nlater = 1": "before it has a value",
    "y = x if x else db": "db is not a value",
    "y = 10j": "not a value",
    "a, *b = NAMES": "name the elements",
    "self.missing": "self.missing does not exist",
    "ids = rand.at('t', 1)\nids = rand.at('t', 2)": "two names",
    "y = marks(0)": "at least one",
    "db.batch('INSERT INTO t VALUES (?)', x, x)": "db.batch(sql, rows)",
    "y = [db.has]": "db.has is not a value",
}  # fmt: skip


def written(folder: Path, body: str) -> Any:
    path = folder / f"wrong_{abs(hash(body))}.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.splitlines()), encoding="utf-8")
    return workload_class(f"{path}:Wrong")({}), path


@pytest.mark.parametrize("body", REFUSED)
def test_a_construct_outside_is_refused_with_its_place_and_what_to_write(tmp_path: Path, body: str) -> None:
    workload, path = written(tmp_path, body)
    with pytest.raises(UsageError) as raised:
        compile_workload(workload, Capabilities(), "FOR UPDATE", 1)
    text = str(raised.value)
    assert any(word in text for word in REFUSED[body].split("|")), text
    assert any(f"{path}:{line}:" in text for line in range(LINE, LINE + body.count("\n") + 1)) or "again" in body
    with pytest.raises(UsageError):
        check_workload(workload)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    workload, path = written(tmp_path, "y = {}\nimport os\nz = y\nprint(1)\ndb.execute('DELETE FROM t', x)")
    with pytest.raises(UsageError) as raised:
        check_workload(workload)
    lines = str(raised.value).splitlines()[1:]
    assert [line.split(":")[1] for line in lines] == [str(LINE + n) for n in (0, 1, 3, 4)]
    assert all(line.startswith(str(path)) for line in lines)


def test_a_branch_that_options_leave_out_is_not_compiled(tmp_path: Path) -> None:
    workload, _ = written(tmp_path, "if self.size > 100:\n    print(1)\ndb.query('SELECT 1')")
    assert compile_workload(workload, Capabilities(), "", 1).data.count(b"statement") == 2


def test_checking_looks_at_both_sides_of_a_capability(tmp_path: Path) -> None:
    workload, _ = written(tmp_path, "if db.has.returning:\n    print(1)\ndb.query('SELECT 1')")
    compile_workload(workload, Capabilities(returning=False), "", 1)
    with pytest.raises(UsageError, match="print"):
        check_workload(workload)


def test_an_unknown_capability_is_named(tmp_path: Path) -> None:
    workload, _ = written(tmp_path, "if db.has.skip_lock:\n    x = 1")
    with pytest.raises(UsageError, match="did you mean 'skip_locked'"):
        compile_workload(workload, Capabilities(), "", 1)


def test_the_same_program_has_the_same_bytes_and_another_option_another_hash(tmp_path: Path) -> None:
    workload, _ = written(tmp_path, "db.query(f'SELECT a FROM t{x} WHERE b = ?', self.size)")
    first = compile_workload(workload, Capabilities(), "", 4)
    assert first == compile_workload(workload, Capabilities(), "", 4)
    other = compile_workload(type(workload)({"size": 11}), Capabilities(), "", 4)
    assert other.hash != first.hash
