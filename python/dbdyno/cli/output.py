"""Writing: data to stdout, talk to stderr, tables whose columns align whatever script the names are in."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len

from dbdyno.cli.argv_secrets import scrub
from dbdyno.model.errors import RunError

_passwords: set[str] = set()


def never_say(passwords: Iterable[str]) -> None:
    """From now on, talk shows ``***`` for these: a net below every place that might let one through."""
    _passwords.clear()
    _passwords.update(passwords)


def say(text: str) -> None:
    """A line of talk on stderr. That nobody reads it is no reason to end a run."""
    text = scrub(text, _passwords)
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):
        return
    except UnicodeEncodeError:
        encoding = sys.stderr.encoding or "ascii"
        sys.stderr.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def tell(text: str = "") -> None:
    """A line of data on stdout.

    Raises:
        BrokenPipeError: nobody reads it any more.
        RunError: it cannot be written.
    """
    with _written():
        try:
            print(text)
        except UnicodeEncodeError:
            encoding = sys.stdout.encoding or "ascii"
            print(text.encode(encoding, "replace").decode(encoding))


def flush() -> None:
    """Write what is still buffered for stdout; raises as :func:`tell`."""
    with _written():
        sys.stdout.flush()


def forget_unwritten() -> None:
    """At the very end: what stdout did not take must not raise again when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"the output cannot be written: {error.strerror}") from None


def tell_json(value: Any) -> None:
    """JSON on stdout: indented, one object, non-ASCII as it is where the terminal can show it."""
    with _written():
        try:
            print(json.dumps(value, indent=2, ensure_ascii=False))
        except UnicodeEncodeError:
            print(json.dumps(value, indent=2))


def pad(text: str, width: int, right: bool = False) -> str:
    """``text`` in ``width`` terminal cells; Chinese characters take two."""
    gap = " " * max(0, width - cell_len(text))
    return gap + text if right else text + gap


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,)) -> list[str]:
    """Lines of a table: columns named in ``left`` begin left, the others (figures) end right; two blanks between."""
    body = [[*row] for row in rows]
    lefts = set(left)
    widths = [max(cell_len(row[i]) for row in [list(head), *body]) for i in range(len(head))]
    return [
        "  ".join(pad(text, widths[i], i not in lefts) for i, text in enumerate(row)).rstrip()
        for row in [list(head), *body]
    ]


def tell_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,)) -> None:
    """A table on stdout."""
    for line in table(head, rows, left):
        tell(line)


def plural(number: int, one: str, many: str = "") -> str:
    """``1 trial``, ``2 trials``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
