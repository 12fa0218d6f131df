"""Statements that a server does not prepare, forgets or must prepare anew: the run goes on, and says so."""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

import pytest
from tests.drive.driving import Add, Read, drive, fetch, make_table
from tests.fake import FakeServer

from dbdyno.targets.family import Capabilities
from dbdyno.targets.target import open_target
from dbdyno.workload import Workload, transaction


class Odd(Workload):
    """Values that need care when they are written into a text."""

    data_options = ()

    @transaction
    def event(self, db: Any, rand: Any) -> None:
        db.execute("UPDATE drive_accounts SET balance = ?, note = ? WHERE id = ?", -7, "it's \\ a 'ü%'", 1)
        db.execute("UPDATE drive_accounts SET note = 'none' WHERE id = ? AND ? IS NULL", 2, None)
        row = db.row("SELECT balance, note FROM drive_accounts WHERE id = ?", 1)
        db.execute("UPDATE drive_accounts SET balance = ?, note = ? WHERE id = ?", row[0] - 1, row[1], 3)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("mariadb", "mysql")],
)
def test_a_server_that_prepares_no_more_gets_texts_and_the_run_says_so(
    name: str, request: pytest.FixtureRequest
) -> None:
    target = open_target(request.getfixturevalue(f"{name}_url"))
    make_table(target)
    control = target.control()
    before = control.fetch("SELECT @@GLOBAL.max_prepared_stmt_count")[0][0]
    try:
        control.execute("SET GLOBAL max_prepared_stmt_count = 2")
        outcome, _ = drive(Add(), target, connections=4, transactions=80)
        assert outcome.state == "done", outcome.reason
        assert (outcome.counts.committed, outcome.counts.retries, outcome.errors) == (80, 0, {})
        assert fetch(target, "SELECT SUM(balance) FROM drive_accounts")[0][0] == 80
        (note,) = outcome.notes
        assert note.endswith("the server refused to prepare (error 1461)")
        assert "not prepared, on " in note

        control.execute("SET GLOBAL max_prepared_stmt_count = 0")
        outcome, _ = drive(Odd(), target, transactions=2)
        assert outcome.state == "done", outcome.reason
        assert outcome.notes[0].startswith("3 statement texts went as text, not prepared, on 1 connection:")
    finally:
        control.execute(f"SET GLOBAL max_prepared_stmt_count = {before}")
        control.close()
    rows = fetch(target, "SELECT id, balance, note FROM drive_accounts WHERE id <= 3 ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (1, -7, "it's \\ a 'ü%'"),
        (2, 0, "none"),
        (3, -8, "it's \\ a 'ü%'"),
    ]


@pytest.mark.parametrize("code", [1295, 1461, 1047])
def test_a_text_that_is_refused_once_is_sent_as_text_on_that_connection_alone(code: int) -> None:
    error = {"code": code, "message": "not in the prepared statement protocol"}
    with FakeServer("mysql", rules=[{"match": "^UPDATE", "at": "prepare", "nth": 1, "error": error}]) as server:
        target = open_target(f"mysql://u@127.0.0.1:{server.port}/db?tls=disable")
        outcome, _ = drive(Add(), target, connections=2, transactions=10, capabilities=Capabilities())
        updates = [one for one in server.recorded() if one.sql.startswith("UPDATE")]
    assert (outcome.state, outcome.counts.committed) == ("done", 10), outcome.reason
    assert outcome.errors == {}
    assert outcome.notes == (
        f"1 statement text went as text, not prepared, on 1 connection: the server refused to prepare (error {code})",
    )
    # five on each connection, on one of them with the values in the text
    assert sum("?" not in one.sql for one in updates) == 5
    assert len({one.conn for one in updates if "?" not in one.sql}) == 1


@pytest.mark.parametrize(("protocol", "code"), [("mysql", 1243), ("postgresql", "26000"), ("postgresql", "42P05")])
def test_a_statement_that_the_server_does_not_know_is_prepared_anew_and_costs_no_try(
    protocol: Literal["mysql", "postgresql"], code: Any
) -> None:
    error = {"code": code, "message": "prepared statement does not exist"}
    with FakeServer(protocol, rules=[{"match": "^UPDATE", "nth": 3, "error": error}]) as server:
        target = open_target(f"{protocol}://u@127.0.0.1:{server.port}/db?tls=disable")
        outcome, _ = drive(Add(), target, transactions=6, max_tries=1, capabilities=Capabilities())
    assert (outcome.state, outcome.counts.committed, outcome.counts.retries) == ("done", 6, 1), outcome.reason
    assert outcome.errors == {str(code): 1}


def test_a_table_that_is_altered_during_a_run_does_not_end_it(postgresql_url: str) -> None:
    target = open_target(postgresql_url)
    make_table(target)

    class ReadAll(Read):
        @transaction
        def event(self, db: Any, rand: Any) -> None:
            db.row("SELECT * FROM drive_accounts WHERE id = ?", rand.uniform(1, 100))

    def alter() -> None:
        time.sleep(0.4)
        control = target.control()
        control.execute("ALTER TABLE drive_accounts ALTER COLUMN balance TYPE bigint")
        control.close()

    thread = threading.Thread(target=alter)
    thread.start()
    outcome, _ = drive(ReadAll(), target, connections=2, duration_s=1.2)
    thread.join()
    assert outcome.state == "done", outcome.reason
    assert outcome.counts.failed == 0
    assert outcome.errors == {"0A000": 2}
