"""What an examination before a run found: one thing, what it is, what it should be, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """How much a finding matters; later ones are worse."""

    OK = "ok"
    INFO = "info"  # nothing wrong, but a reader of the figures should know
    WARN = "warn"  # the figures may be worse, or noisier, than the database is
    BAD = "bad"  # the run fails, or measures something else than it says


_ORDER = list(Verdict)


@dataclass(frozen=True, slots=True)
class Mend:
    """The command that mends a finding, to be executed as it stands.

    ``where``: "SQL", "the shell", or another place in words. ``settings`` are the server's settings that it brings
    about, by name; ``restart`` says that they need one. A server that dbdyno manages is restarted by it, with them.
    """

    command: str
    where: str
    settings: Mapping[str, str] = field(default_factory=dict)
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """``found`` and ``needed`` are short and have their units; ``why`` is what happens otherwise, in a sentence."""

    name: str
    verdict: Verdict
    found: str
    needed: str = ""
    mend: Mend | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """What a run asks of one server. None: not known, as no workload was named."""

    connections: int  # of the load, to this server, at most
    tables: int | None = None
    texts: int | None = None  # statements that one connection prepares
    texts_exact: bool = True  # False: an upper bound
    writes: bool | None = None


def worst(findings: Iterable[Finding]) -> Verdict:
    """The worst verdict; ok when there is none."""
    return max((finding.verdict for finding in findings), key=_ORDER.index, default=Verdict.OK)


def limit(
    name: str, *, found: str, needed: str, enough: bool, otherwise: Verdict, mend: Mend | None, why: str
) -> Finding:
    """A finding about a limit: ok without further words when it is ``enough``."""
    if enough:
        return Finding(name, Verdict.OK, found, needed)
    return Finding(name, otherwise, found, needed, mend, why)


def counted(number: int, one: str) -> str:
    """``1 table``, ``1,024 tables``."""
    return f"{number:,} {one if number == 1 else one + 's'}"
