"""Many rows through one text: the multi-row INSERT that ``db.batch`` and the loader send.

sysbench's limit of 512 KiB a packet is kept (its bulk-insert buffer), as is each server's limit of parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

PACKET_BYTES = 512 * 1024

_VALUES = re.compile(r"\bVALUES\s*(\([^()]*\))\s*$", re.IGNORECASE)


@lru_cache(maxsize=1024)
def row_group(sql: str) -> str | None:
    """The ``(?, ?)`` of an ``INSERT … VALUES (?, ?)``, or None when ``sql`` cannot be made multi-row."""
    match = _VALUES.search(sql)
    return match[1] if match and sql.lstrip()[:6].upper() in ("INSERT", "REPLAC") else None


@lru_cache(maxsize=1024)
def multi_row(sql: str, rows: int) -> str:
    """``sql`` with its row group repeated for ``rows`` rows."""
    group = row_group(sql)
    assert group is not None
    return sql.rstrip() + (", " + group) * (rows - 1)


def value_bytes(value: Any) -> int:
    """An upper estimate of a value's bytes in a packet."""
    if isinstance(value, str):
        return 2 + (len(value) if value.isascii() else 4 * len(value))
    return 2 + len(value) if isinstance(value, (bytes, bytearray)) else 24


def packets(
    rows: Iterable[Sequence[Any]], max_parameters: int, packet_bytes: int = PACKET_BYTES
) -> Iterator[list[Sequence[Any]]]:
    """Split rows so that one statement stays under ``packet_bytes`` and ``max_parameters``."""
    packet: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        weight = sum(map(value_bytes, row)) + 4
        if packet and (size + weight > packet_bytes or (len(packet) + 1) * len(row) > max_parameters):
            yield packet
            packet, size = [], 0
        packet.append(row)
        size += weight
    if packet:
        yield packet
