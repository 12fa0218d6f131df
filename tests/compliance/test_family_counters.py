"""The server's own counters say exactly what we sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.compliance.speech import ACCOUNTS

from dbdyno.targets.family import Capabilities, Connection
from dbdyno.targets.target import Target, open_target

CONNECTIONS, TRANSACTIONS = 3, 17
READ = "SELECT balance FROM accounts WHERE id = ?"
WRITE = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
REMOVE = "DELETE FROM accounts WHERE id = ?"
ADD = "INSERT INTO accounts (id, balance) VALUES (?, ?)"


def drive(open_one: Callable[[], Connection], connections: int, transactions: int) -> Counter[str]:
    """A fixed mix over several connections; what was sent, by kind. One transaction in five is rolled back."""
    sent: Counter[str] = Counter()
    for number in range(connections):
        connection = open_one()
        for i in range(transactions):
            connection.begin(True)
            connection.fetch(READ, (1,))
            connection.fetch(READ, (number + 1,))
            connection.execute(WRITE, (1, number + 1))
            connection.execute(REMOVE, (100 + number,))
            connection.execute(ADD, (100 + number, i))
            sent += Counter(begin=1, select=2, update=1, delete=1, insert=1)
            if i % 5 == 4:
                connection.rollback()
                sent["rollback"] += 1
            else:
                connection.commit()
                sent["commit"] += 1
        connection.close()
    return sent


def test_the_servers_counters_equal_what_was_sent(
    target: Target, control: Connection, has: Capabilities, accounts: str
) -> None:
    if not has.server_counters:
        assert target.family.counters(control, target.address) == {}
        return
    drive(target.connect, 1, 2)  # plans made anew take old counts along (seekdb)
    seen = []
    # A server's own background work (autovacuum) may fall between two readings: it cannot do so every time.
    for _ in range(3):
        before = target.family.counters(control, target.address)
        sent = drive(target.connect, CONNECTIONS, TRANSACTIONS)
        after = target.family.counters(control, target.address)
        names = sent.keys() & after.keys()
        assert names >= {"commit", "rollback"} or names >= {"select", "insert", "update", "delete"}
        seen.append({name: after[name] - before[name] for name in names})
        if seen[-1] == {name: sent[name] for name in names}:
            return
    raise AssertionError(f"sent {dict(sent)}, counted {seen}")


def test_reading_the_counters_changes_none(target: Target, control: Connection, accounts: str) -> None:
    first = target.family.counters(control, target.address)
    readings = [target.family.counters(control, target.address) for _ in range(3)]
    assert min(readings, key=lambda reading: sum(reading.values())) == first


def test_sqlite_has_a_witness_within_the_process(tmp_path: Path) -> None:
    target = open_target(f"sqlite:///{tmp_path}/witness.db")
    maker = target.connect()
    for statement in target.family.dialect.create_table(ACCOUNTS):
        maker.execute(statement)
    maker.close()
    statements: list[str] = []

    def open_one() -> Connection:
        connection = target.connect()
        connection.trace(statements.append)  # type: ignore[attr-defined]
        return connection

    sent = drive(open_one, CONNECTIONS, TRANSACTIONS)
    assert Counter(text.split()[0].lower() for text in statements) == sent
