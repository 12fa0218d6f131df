"""Values in the text of a statement: PyMySQL speaks the text protocol only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pymysql

from dbdyno.targets.rendering import utc_text
from dbdyno.workload.sql import parameter_positions

_ESCAPES = str.maketrans({"\0": "\\0", "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})


def _text(value: str) -> bytes:
    return b"'" + value.translate(_ESCAPES).encode() + b"'"


def _text_without_backslashes(value: str) -> bytes:
    return b"'" + value.replace("'", "''").encode() + b"'"


def _float(value: float) -> bytes:
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        raise pymysql.err.ProgrammingError(f"{text} is no number of SQL")
    return text.encode() if "e" in text else text.encode() + b"e0"  # with an exponent it is a double, not a decimal


def _interval(value: timedelta) -> bytes:
    return f"SEC_TO_TIME({value.total_seconds()})".encode()


Encoders = dict[type, Callable[[Any], bytes]]
ENCODERS: Encoders = {
    int: b"%d".__mod__,
    str: _text,
    type(None): lambda value: b"NULL",
    float: _float,
    Decimal: lambda value: format(value, "f").encode(),
    bool: lambda value: b"1" if value else b"0",
    bytes: lambda value: b"_binary X'" + value.hex().encode() + b"'",
    datetime: lambda value: b"'" + utc_text(value).encode() + b"'",
    date: lambda value: b"'" + value.isoformat().encode() + b"'",
    time: lambda value: b"'" + value.isoformat().encode() + b"'",
    timedelta: _interval,
}
#: For sessions in sql_mode NO_BACKSLASH_ESCAPES.
ENCODERS_WITHOUT_BACKSLASHES: Encoders = {**ENCODERS, str: _text_without_backslashes}


@lru_cache(maxsize=8192)
def pieces(sql: str) -> tuple[bytes, ...]:
    """The text between the ``?`` marks: one piece more than there are parameters."""
    parts, last = [], 0
    for position in parameter_positions(sql):
        parts.append(sql[last:position].encode())
        last = position + 1
    parts.append(sql[last:].encode())
    return tuple(parts)


def bind(sql: str, params: Sequence[Any], encoders: Encoders) -> bytes:
    """The statement with its values in it.

    Raises:
        pymysql.err.ProgrammingError: another number of parameters than marks, or no value of the language.
    """
    if not params:
        return sql.encode()
    texts = pieces(sql)
    if len(texts) != len(params) + 1:
        raise pymysql.err.ProgrammingError(f"{len(params)} parameters given for {len(texts) - 1} marks")
    parts = [texts[0]]
    for value, text in zip(params, texts[1:], strict=True):
        encoder = encoders.get(type(value)) or _encoder_of(value, encoders)
        parts.append(encoder(value))
        parts.append(text)
    return b"".join(parts)


def _encoder_of(value: Any, encoders: Encoders) -> Callable[[Any], bytes]:
    for kind, encoder in encoders.items():
        if isinstance(value, kind):
            return encoder
    raise pymysql.err.ProgrammingError(f"{type(value).__name__} is not a value that SQL can be given")
