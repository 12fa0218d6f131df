"""What OceanBase can do, by flavour and version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version

#: READ UNCOMMITTED is not among its levels (manual, "Transaction isolation levels").
ISOLATION = ("read committed", "repeatable read", "serializable")


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this flavour and version. seekdb is a single node: no tablegroups, few counters."""
    return Capabilities(
        skip_locked=version.flavour == "seekdb" or version.number >= (4, 0),
        isolation=ISOLATION,
        partitions=True,
        tablegroups=version.flavour != "seekdb",
        null_for_auto=True,
    )
