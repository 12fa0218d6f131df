"""What OceanBase can do, by flavour and version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version

#: READ UNCOMMITTED is not among its levels (manual, "Transaction isolation levels").
ISOLATION = ("read committed", "repeatable read", "serializable")


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this flavour and version. seekdb is a single node without tablegroups.

    SKIP LOCKED is there, but LIMIT counts the rows skipped, so that a queue's ``LIMIT 1`` finds nothing.
    """
    return Capabilities(
        skip_locked=False,
        isolation=ISOLATION,
        partitions=True,
        tablegroups=version.flavour != "seekdb",
        null_for_auto=True,
    )
