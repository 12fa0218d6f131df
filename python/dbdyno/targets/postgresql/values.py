"""Values to and from PostgreSQL's text format.

Parameters carry no type of ours: the server infers it from the statement, as the workload language says, so one
prepared statement serves every value.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg

from dbdyno.targets.rendering import utc_text


def _text(value: str) -> bytes:
    encoded = value.encode()
    if b"\0" in encoded:  # libpq would cut the text there
        raise psycopg.DataError("PostgreSQL texts cannot hold NUL characters")
    return encoded


_ENCODERS: dict[type, Callable[[Any], bytes | None]] = {
    int: b"%d".__mod__,
    str: _text,
    type(None): lambda value: None,
    float: lambda value: repr(value).encode(),
    Decimal: lambda value: str(value).encode(),
    bool: lambda value: b"t" if value else b"f",
    bytes: lambda value: b"\\x" + value.hex().encode(),
    datetime: lambda value: utc_text(value).encode(),
    date: lambda value: value.isoformat().encode(),
    time: lambda value: value.isoformat().encode(),
}


def encode(value: Any) -> Any:
    """One parameter: bytes, or None for NULL. Raises TypeError for what is no value of the language."""
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        for kind, encoder in _ENCODERS.items():
            if isinstance(value, kind):
                return encoder(value)
        raise TypeError(f"{type(value).__name__} is not a value that SQL can be given")
    return encoder(value)


def _timestamp(value: bytes) -> Any:
    text = value.decode()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # infinity, or a year that Python cannot hold
        return text
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _bytea(value: bytes) -> bytes:
    return bytes.fromhex(value[2:].decode()) if value.startswith(b"\\x") else value


def _decode(value: bytes) -> str:
    return value.decode()


#: By type OID (pg_type.dat). CHAR(n) is 1042, bpchar.
_DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: b"t".__eq__,
    17: _bytea,
    20: int,
    21: int,
    23: int,
    26: int,
    700: float,
    701: float,
    1042: lambda value: value.decode().rstrip(" "),
    1082: lambda value: date.fromisoformat(value.decode()),
    1114: _timestamp,
    1184: _timestamp,
    1700: lambda value: Decimal(value.decode()),
}


def decoder(oid: int) -> Callable[[bytes], Any]:
    """How to read a column of that type; what is not known comes as text."""
    return _DECODERS.get(oid, _decode)
