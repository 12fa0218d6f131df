"""The two errors that a user may see, and their exit status.

Each carries one sentence that says what was wrong and, where there is one, what would be right. The
command line prints that sentence and nothing else (unless ``--debug``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DbdynoError(Exception):
    """Base of all errors that are the user's business. ``exit_status`` is the process's."""

    exit_status = 1


class UsageError(DbdynoError):
    """The words were wrong: unknown name, wrong option, wrong plan. Exit status 2."""

    exit_status = 2


class RunError(DbdynoError):
    """The run failed its own terms: server away, table missing, rate not reached. Exit status 1."""

    exit_status = 1


class Interrupted(DbdynoError):
    """The user stopped it; results so far are kept. Exit status 130."""

    exit_status = 130


def nearest(word: str, allowed: Iterable[str]) -> str:
    """``"; did you mean …?"`` with the nearest allowed word, or ``"; allowed: …"`` when none is near."""
    known = sorted(allowed)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; allowed: {', '.join(known)}" if known else ""
