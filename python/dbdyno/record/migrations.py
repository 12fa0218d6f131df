"""The store's versions. A store is made at the newest one; an older one is brought up step by step.

To change the schema: change ``schema.py``, and append one function to :data:`STEPS` that does the same to a
store of the version before. Each step runs in a transaction together with its version's number.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from dbdyno.model.errors import RunError, UsageError
from dbdyno.record.schema import METADATA, VERSION

Step = Callable[[sa.Connection], None]

#: ``STEPS[n]`` leads from version n + 1 to n + 2.
STEPS: tuple[Step, ...] = ()
CURRENT = len(STEPS) + 1


def stored_version(connection: sa.Connection, shown: str) -> int | None:
    """The store's version; None for an empty database.

    Raises:
        UsageError: the database holds other things and no store.
    """
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION.name in tables:
        return int(connection.execute(sa.select(sa.func.max(VERSION.c.version))).scalar_one())
    if tables and connection.dialect.name == "sqlite":
        raise UsageError(f"{shown} is a database, but not a store of dbdyno; choose another path with --store")
    return None


def check_not_newer(version: int, shown: str) -> None:
    """Refuse a store of a newer dbdyno."""
    if version > CURRENT:
        raise RunError(
            f"the store {shown} was written by a newer dbdyno (its version is {version}, this one knows"
            f" {CURRENT}); update dbdyno to read it"
        )


def create(connection: sa.Connection) -> None:
    """Make a new store of the newest version in an empty database."""
    METADATA.create_all(connection)
    connection.execute(sa.insert(VERSION).values(version=CURRENT))


def migrate(engine: sa.Engine, version: int) -> None:
    """Bring a store from ``version`` to the newest, one transaction a step."""
    for number in range(version, CURRENT):
        with engine.begin() as connection:
            STEPS[number - 1](connection)
            connection.execute(sa.update(VERSION).values(version=number + 1))
