"""Passwords in the command line's words: kept out of the process title and out of everything printed.

The words of a process are readable for every user of the machine (``/proc/PID/cmdline``, ``ps``). When one of
them holds a password, the program replaces itself at once by itself with ``***`` in its place; the true words
pass through a pipe that only the new image has, so that neither the title nor the environment holds them. The
process id stays. What remains visible is the moment until Python has started; ``--ask-password``,
``$DBDYNO_PASSWORD`` and the family's own file avoid even that.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

#: Number of the inherited pipe's reading end; set only between the two images.
PIPE_VARIABLE = "DBDYNO_WORDS_FD"
MASK = "***"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?P<rest>.*)", re.DOTALL)
_PARAMETER = re.compile(r"[?&](?:password|passwd|pwd)=(?P<value>[^&]*)", re.IGNORECASE)


def password_spans(word: str) -> list[tuple[int, int]]:
    """Where a word holds passwords: between ``user:`` and the last ``@`` of a URL, and in its parameters."""
    url = _URL.search(word)
    if url is None:
        return []
    spans = []
    begin, at = url.start("rest"), word.rfind("@")
    colon = word.find(":", begin, at) if at > begin else -1
    if colon >= 0 and colon + 1 < at:
        spans.append((colon + 1, at))
    spans += [match.span("value") for match in _PARAMETER.finditer(word, max(begin, at)) if match["value"]]
    return spans


def masked(word: str) -> str:
    """The word with ``***`` for every password in it."""
    for begin, end in reversed(password_spans(word)):
        word = word[:begin] + MASK + word[end:]
    return word


def passwords_in(words: Iterable[str]) -> set[str]:
    """Every password in the words, as typed and with its percent signs resolved."""
    found: set[str] = set()
    for word in words:
        for begin, end in password_spans(word):
            found |= {word[begin:end], unquote(word[begin:end])}
    return found - {MASK}


def passwords_around() -> set[str]:
    """Passwords that came by the environment: variables named for one (ours, drivers', a plan's), and URLs."""
    named = {value for name, value in os.environ.items() if name.upper().endswith(("PASSWORD", "_PWD"))}
    return (named | passwords_in(os.environ.values())) - {""}


def scrub(text: str, passwords: Iterable[str]) -> str:
    """The text with ``***`` for every password of three characters or more: a net below everything printed.

    Shorter ones stand in too many ordinary words to be replaced without nonsense.
    """
    for password in sorted((word for word in passwords if len(word) >= 3), key=len, reverse=True):
        text = text.replace(password, MASK)
    return text


def hide_passwords() -> list[str]:
    """The command line's words (without the program's name), none of which is visible as a title if it holds
    a password: replaces the process when that is needed, and does not return then."""
    handed_over = os.environ.pop(PIPE_VARIABLE, None)
    if handed_over is not None:
        words = _receive(int(handed_over))
        sys.argv[1:] = words
        return words
    words = sys.argv[1:]
    if any(password_spans(word) for word in words) and hasattr(os, "execve"):
        _replace_process(words)
    return words


def _receive(descriptor: int) -> list[str]:
    with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as pipe:
        words: list[str] = json.loads(pipe.read())
        return words


def _replace_process(words: Sequence[str]) -> None:
    """Start the same program in this process with the passwords masked. Returns only if that is impossible."""
    content = json.dumps(list(words)).encode()
    original = sys.orig_argv
    if len(content) > 60_000 or original[len(original) - len(words) :] != list(words):
        return  # a pipe holds 64 KiB; words that are not our process's own (an embedding program) are its business
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    os.set_inheritable(reading, True)
    command = [*original[: len(original) - len(words)], *(masked(word) for word in words)]
    command[0] = sys.executable or command[0]
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(OSError):
        os.execve(command[0], command, {**os.environ, PIPE_VARIABLE: str(reading)})
    os.close(reading)
