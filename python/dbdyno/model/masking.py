"""Passwords taken out of URLs and texts, by the same reading of a URL as the targets have.

User and password end at the *last* ``@`` and the password begins at the first ``:`` before it, so that a
password may hold ``/``, ``?``, ``#`` and ``@`` as typed.
"""

from __future__ import annotations

import re

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>[^\s\"']*)")
_SETTING = re.compile(r"\b(?P<key>password|passwd|pwd)(?P<is>\s*=\s*)(?P<value>[^\s&\"',;\\$]+)", re.IGNORECASE)
_LITERAL_PASSWORD = re.compile(r"(?:\w*password|\w*passwd|\w+_pwd)\s*=\s*[\"']?[^\s$\"'{]", re.IGNORECASE)


def _cut(rest: str) -> tuple[str, str] | None:
    """(user, location) of a URL's part after ``://`` when it holds a password, else None."""
    credentials, at, location = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if not at or not colon or "/" in user or not rest or rest.startswith("/"):
        return None
    return user, location


def without_password(url: str) -> str:
    """The URL with its password and the colon before it left out; anything else unchanged."""
    scheme, separator, rest = url.partition("://")
    cut = _cut(rest) if separator else None
    return url if cut is None else f"{scheme}://{cut[0]}@{cut[1]}"


def has_password(url: str) -> bool:
    """Whether the URL holds a password."""
    return without_password(url) != url


def _mask_urls(text: str) -> str:
    def masked(match: re.Match[str]) -> str:
        cut = _cut(match["rest"])
        return match[0] if cut is None else f"{match['scheme']}{cut[0]}:***@{cut[1]}"

    return _URL.sub(masked, text)


def mask_passwords(text: str) -> str:
    """Every URL's password in a text as ``***``, and every ``password=…`` (a plan file, a message, settings)."""
    return _SETTING.sub(r"\g<key>\g<is>***", _mask_urls(text))


def holds_literal_password(command: str) -> bool:
    """Whether a command line has a password written out (``--password=…``, in a variable, in a URL)."""
    return bool(_LITERAL_PASSWORD.search(command)) or _mask_urls(command) != command
