"""What PostgreSQL can do, by version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version

#: READ UNCOMMITTED is taken for READ COMMITTED (manual, 13.2), so there is nothing weaker to ask for.
ISOLATION = ("read committed", "repeatable read", "serializable")


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this version."""
    return Capabilities(
        skip_locked=version.number >= (9, 5),
        returning=True,
        pipeline=True,
        isolation=ISOLATION,
        partitions=version.number >= (11,),
        foreign_keys_with_partitions=version.number >= (12,),
    )
