"""What every test of a family needs: a target on each server in turn, connections to it, a table that goes again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from tests.compliance.speech import ACCOUNTS

from dbdyno.targets.family import Capabilities, Connection
from dbdyno.targets.target import Target, open_target
from dbdyno.workload.table import Table


@pytest.fixture
def target(server_url: str) -> Target:
    return open_target(server_url)


@pytest.fixture
def connect(target: Target, make: Callable[[Table], None]) -> Iterator[Callable[..., Connection]]:
    """Open connections of the load; those still open at the end are closed, before the tables are dropped."""
    opened: list[Connection] = []

    def open_one(isolation: str | None = None, endpoint: int = 0) -> Connection:
        opened.append(target.connect(endpoint, isolation=isolation))
        return opened[-1]

    yield open_one
    for connection in opened:
        with contextlib.suppress(Exception):
            connection.cancel()
        with contextlib.suppress(Exception):
            connection.close()


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    return connect()


@pytest.fixture
def control(target: Target) -> Iterator[Connection]:
    connection = target.control()
    yield connection
    connection.close()


@pytest.fixture
def has(target: Target) -> Capabilities:
    return target.capabilities()


@pytest.fixture
def make(target: Target) -> Iterator[Callable[[Table], None]]:
    """Create tables; they are dropped at the end, the last one first."""
    dialect, made = target.family.dialect, []

    def create(table: Table) -> None:
        maker = target.control()
        try:
            maker.execute(dialect.drop_table(table.name))
            made.append(table)
            for statement in dialect.create_table(table):
                maker.execute(statement)
        finally:
            maker.close()

    yield create
    dropper = target.control()
    for table in reversed(made):
        dropper.execute(dialect.drop_table(table.name))
    dropper.close()


@pytest.fixture
def accounts(make: Callable[[Table], None], control: Connection) -> str:
    """Accounts 1 to 10 with a balance of 100 each."""
    make(ACCOUNTS)
    control.execute_many("INSERT INTO accounts (id, balance) VALUES (?, ?)", [(i, 100) for i in range(1, 11)])
    return "accounts"
