"""What of an SQLite database would spoil a run: little, since it has no server and no settings of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from dbdyno.model.finding import Finding, Need, Verdict
from dbdyno.model.units import format_bytes
from dbdyno.targets.family import Connection
from dbdyno.targets.url import Address

_FREE_BYTES = 1 << 30


def examine(connection: Connection, address: Address, need: Need) -> list[Finding]:
    """All findings of this family; see :meth:`dbdyno.targets.family.Family.examine`."""
    return [*_writers(need), *_disk(address)]


def _writers(need: Need) -> Iterator[Finding]:
    if need.connections > 1 and need.writes is not False:
        yield Finding(
            "writers",
            Verdict.INFO,
            "one at a time in the whole database",
            "",
            None,
            "writing transactions of several connections queue, so more connections bring no more of them",
        )


def _disk(address: Address) -> Iterator[Finding]:
    free = shutil.disk_usage(Path(address.database).absolute().parent).free
    if free < _FREE_BYTES:
        yield Finding(
            "disk",
            Verdict.WARN,
            f"{format_bytes(free)} free",
            f"{format_bytes(_FREE_BYTES)}",
            None,
            "the database and its log may not find room while the run lasts",
        )
    else:
        yield Finding("disk", Verdict.OK, f"{format_bytes(free)} free", f"{format_bytes(_FREE_BYTES)}")
