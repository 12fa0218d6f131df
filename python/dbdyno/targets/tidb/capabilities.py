"""What TiDB can do, by version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version

#: SERIALIZABLE and READ UNCOMMITTED are refused (manual, "TiDB Transaction Isolation Levels").
ISOLATION = ("read committed", "repeatable read")


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this version. SKIP LOCKED is parsed but not done; foreign keys are kept since 6.6."""
    return Capabilities(
        isolation=ISOLATION,
        foreign_keys=version.number >= (6, 6),
        foreign_keys_with_partitions=False,
        partitions=True,
        null_for_auto=True,
        server_counters=False,
    )
