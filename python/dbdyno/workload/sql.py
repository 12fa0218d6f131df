"""Reading SQL texts: where the parameters stand, and which kind of statement it is.

``?`` outside quotes and comments is a parameter (language.md). Nothing here knows a database family.
"""

from __future__ import annotations

import re
from functools import lru_cache

# One alternative each: '…' with doubled quotes, "…", `…`, -- comment, /* comment */, the parameter itself.
_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\?""",
    re.DOTALL,
)
_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*([A-Za-z]+)", re.DOTALL)
_MAIN_VERB = re.compile(r"[()]|\b(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|VALUES|TABLE)\b", re.IGNORECASE)
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"})

READ, WRITE, OTHER = "read", "write", "other"


def parameter_positions(sql: str) -> list[int]:
    """Offsets of every parameter mark in ``sql``."""
    return [match.start() for match in _TOKEN.finditer(sql) if match[0] == "?"]


@lru_cache(maxsize=4096)
def statement_kind(sql: str) -> str:
    """``read``, ``write`` or ``other``, as sysbench counts them: SELECT; INSERT, UPDATE, DELETE; the rest.

    WITH counts as the statement that follows its queries.
    """
    match = _WORD.match(sql)
    word = match[1].upper() if match else ""
    if word == "WITH":
        word = _after_with(sql)
    if word == "SELECT":
        return READ
    return WRITE if word in _WRITES else OTHER


def _after_with(sql: str) -> str:
    """The first verb outside all parentheses; SELECT when there is none."""
    depth = 0
    for match in _MAIN_VERB.finditer(_TOKEN.sub(" ", sql)):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif depth == 0:
            return match[0].upper()
    return "SELECT"


@lru_cache(maxsize=4096)
def to_format_style(sql: str) -> str:
    """``?`` parameters as ``%s`` and every other ``%`` doubled, for drivers of the format paramstyle."""
    parts, last = [], 0
    for position in parameter_positions(sql):
        parts.append(sql[last:position].replace("%", "%%"))
        parts.append("%s")
        last = position + 1
    parts.append(sql[last:].replace("%", "%%"))
    return "".join(parts)


def marks(n: int) -> str:
    """``?, ?, ?``: n parameter marks for an IN list or VALUES (n ≥ 1)."""
    if n < 1:
        raise ValueError(f"marks({n}) has no parameter; at least one is needed")
    return ", ".join("?" * n)
