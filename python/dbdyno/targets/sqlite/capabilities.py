"""What SQLite can do, by version."""

from __future__ import annotations

from dbdyno.targets.family import Capabilities, Version

#: SQLite runs every transaction serializable (sqlite.org/isolation.html); there is nothing weaker to ask for.
ISOLATION = ("serializable",)
#: SQLITE_MAX_VARIABLE_NUMBER since 3.32 (sqlite.org/limits.html).
MAX_PARAMETERS = 32_766


def capabilities(version: Version) -> Capabilities:
    """Capabilities of this version."""
    return Capabilities(
        for_update=False,
        returning=version.number >= (3, 35),
        concurrent_writers=False,
        isolation=ISOLATION,
        in_process=True,
        server_counters=False,
        kill_query=False,  # there is no other connection to say it from; interrupt() works within the process
        max_parameters=MAX_PARAMETERS if version.number >= (3, 32) else 999,
    )
