"""How many statements a workload makes a connection prepare on the server, without a server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from dbdyno._engine import Program, ProgramError, ProgramTerminal

#: Transactions of each kind that are tried, and how long that may take.
_TRIES = 400
_PATIENCE_S = 0.1


@dataclass(frozen=True)
class Texts:
    """``number`` of SQL texts that one connection prepares; ``exact`` False: at most that many."""

    number: int
    exact: bool


def count_texts(program: Program, tables: Iterable[str]) -> Texts:
    """The texts of one connection: constant ones, and those with a table's number in them for each table.

    A terminal is run against a database that is always empty. Where that comes to an end with new texts (a
    workload that counts on rows stops there), the number of tables that fit each text's name bounds them.
    """
    bound = _bound(program, list(tables))
    terminal = program.terminal(1, 1)
    empty = _EmptyDatabase()
    deadline = time.monotonic() + _PATIENCE_S
    # What comes and goes with no new text for as many transactions as there were with them has settled.
    seen, last, number = 0, 0, 0
    try:
        if program.has_start:
            terminal.start(empty)
        while number < _TRIES and time.monotonic() < deadline:
            for kind in program.transactions:
                terminal.run(kind["name"], number, empty)
            number += 1
            if (now := _prepared(terminal)) > seen:
                seen, last = now, number
    except ProgramError:
        return Texts(bound, exact=not _templates(program))
    settled = number >= max(50, 3 * last) or seen == bound
    return Texts(seen if settled else max(bound, seen), exact=settled)


def _prepared(terminal: ProgramTerminal) -> int:
    return len(terminal.texts())


def _templates(program: Program) -> list[list[Any]]:
    templates: list[list[Any]] = json.loads(program.data)["templates"]
    return templates


def _bound(program: Program, tables: list[str]) -> int:
    number = len(program.texts())
    for template in _templates(program):
        names = _name_pattern(template)
        number += max(1, sum(names.fullmatch(table) is not None for table in tables)) if names else 1
    return number


def _name_pattern(template: list[Any]) -> re.Pattern[str] | None:
    """The table names that a text's first hole can make: ``sbtest`` and a number."""
    for before, hole in pairwise(template):
        if isinstance(before, str) and isinstance(hole, Mapping):
            word = re.search(r"\w*\Z", before)
            if word is not None and word[0]:
                return re.compile(re.escape(word[0]) + r"\d+\w*")
    return None


class _EmptyDatabase:
    """A ``db`` whose every table is empty."""

    def query(self, _sql: str, *_params: Any) -> list[tuple[Any, ...]]:
        return []

    def execute(self, _sql: str, *_params: Any) -> int:
        return 0

    def pipeline(self) -> AbstractContextManager[None]:
        return nullcontext()

    def begin(self) -> None:
        """Nothing to do."""

    commit = rollback = begin

    def now(self) -> datetime:
        return datetime.now(UTC)

    def ack(self, *_values: Any) -> None:
        """Nothing to do."""
