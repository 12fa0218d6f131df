"""What the servers of the MySQL family can do, by flavour and version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this flavour and version.

    MariaDB's RETURNING lacks UPDATE, and no driver of ours has several statements in flight.
    """
    mariadb = version.flavour == "mariadb"
    return Capabilities(
        skip_locked=version.number >= ((10, 6) if mariadb else (8, 0, 1)),
        partitions=True,
        foreign_keys_with_partitions=False,
        storage_engines=True,
        null_for_auto=True,
    )
