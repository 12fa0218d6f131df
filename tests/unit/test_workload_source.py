"""Workloads from files: what is found, what is refused, what is hashed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.model.errors import UsageError
from dbdyno.workload import check, checks, state, states, transaction, transactions
from dbdyno.workload.language import Workload
from dbdyno.workload.source import load_workload, program_hash, shipped, source_text, workload_class, writes

GOOD = '''
from dbdyno.workload import Workload, option, transaction

class Mine(Workload):
    """One row."""
    data_options = ()
    size: int = option(3, "size", ge=1)

    @transaction
    def event(self, db, rand):
        db.row("SELECT ?", self.size)
'''


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_a_file_is_a_workload_with_its_options(tmp_path: Path) -> None:
    name = written(tmp_path, GOOD)
    workload = load_workload(name, {"size": 9})
    assert (workload.label, workload.reference, workload.options) == ("mine", name, {"size": 9})
    assert "class Mine" in source_text(workload)


def test_the_hash_follows_the_text_and_the_options(tmp_path: Path) -> None:
    first = load_workload(written(tmp_path, GOOD, "a.py"), {})
    same = load_workload(written(tmp_path, GOOD, "b.py"), {})
    other = load_workload(written(tmp_path, GOOD.replace("SELECT ?", "SELECT ? + 1"), "c.py"), {})
    assert program_hash(first) == program_hash(same)
    assert program_hash(first) != program_hash(other)
    assert program_hash(first) != program_hash(load_workload(str(tmp_path / "a.py"), {"size": 4}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("class Mine(", r"mine\.py:1: "),
        ("import nothing_of_that_name\n", r"mine\.py:1: ModuleNotFoundError"),
        ("\nx = 1 / 0\n", r"mine\.py:2: ZeroDivisionError"),
        ("x = 1\n", "must define one Workload class, found none"),
        (GOOD + "\nclass Second(Mine):\n    pass\n", "found Mine, Second"),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        load_workload(written(tmp_path, text), {})
    assert "\n" not in str(refused.value)


def test_one_class_of_several_can_be_named(tmp_path: Path) -> None:
    name = written(tmp_path, GOOD + "\nclass Second(Mine):\n    pass\n")
    assert workload_class(f"{name}:Second").__name__ == "Second"
    assert load_workload(f"{name}:Second", {}).label == "mine"
    with pytest.raises(UsageError, match="did you mean 'Second'"):
        workload_class(f"{name}:Secund")


def test_unknown_names_and_files_are_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'oltp_read_write'"):
        load_workload("oltp_readwrite", {})
    with pytest.raises(UsageError, match="does not exist"):
        load_workload(str(tmp_path / "absent.py"), {})
    assert "oltp_read_write" in shipped()


def test_an_edited_file_is_read_again_in_the_same_process(tmp_path: Path) -> None:
    name = written(tmp_path, GOOD)
    before = program_hash(load_workload(name, {}))
    written(tmp_path, GOOD.replace("SELECT ?", "SELECT ?, 1"))
    assert program_hash(load_workload(name, {})) != before


class Parent(Workload):
    counter = state(0)

    @transaction(weight=3, keying_s=1.0, think_s=2.0)
    def first(self, db, rand) -> None:  # type: ignore[no-untyped-def]
        self.touch(db)

    @transaction
    def second(self, db, rand) -> None:  # type: ignore[no-untyped-def]
        db.row("SELECT 1")

    def touch(self, db) -> None:  # type: ignore[no-untyped-def]
        db.row("SELECT 2")

    @check("one")
    def one(self, db) -> str:  # type: ignore[no-untyped-def]
        """Holds
        always."""
        return "SELECT 1 WHERE 1 = 0"


class Child(Parent):
    log = state([])

    def second(self, db, rand) -> None:  # type: ignore[no-untyped-def]
        db.row("SELECT 3")

    def touch(self, db) -> None:  # type: ignore[no-untyped-def]
        db.execute("DELETE FROM t")


def test_transactions_are_those_marked_and_not_overridden_without_the_mark() -> None:
    assert [(kind.name, kind.weight, kind.think_s) for kind in transactions(Parent())] == [
        ("first", 3, 2.0), ("second", 1.0, 0.0),
    ]  # fmt: skip
    assert [kind.name for kind in transactions(Child())] == ["first"]


def test_weights_of_zero_leave_a_kind_out_and_none_at_all_is_refused() -> None:
    class Chosen(Parent):
        def weight_of(self, transaction):  # type: ignore[no-untyped-def]
            return 0 if transaction.name == "first" else 2

    assert [(kind.name, kind.weight) for kind in transactions(Chosen())] == [("second", 2)]
    with pytest.raises(UsageError, match="has no transaction"):
        transactions(Workload())


def test_what_writes_is_found_through_methods_as_the_class_overrides_them() -> None:
    assert not writes(Parent(), "first")
    assert writes(Child(), "first")


def test_states_and_checks_are_inherited() -> None:
    assert states(Child()) == {"counter": 0, "log": []}
    assert [(one.name, one.doc) for one in checks(Child())] == [("one", "Holds always.")]
