"""The server as any family has one: the way to it, encryption, isolation, what COMMIT means."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence

from dbdyno.model.finding import Finding, Verdict
from dbdyno.targets.family import Connection, Facts

_ROUND_TRIPS = 50
#: From here on the way, not the client, decides what one connection can do.
_LONG_S = 0.3e-3


def way(connection: Connection, facts: Facts, in_process: bool) -> Iterator[Finding]:
    """The round trip of the smallest statement, and TLS."""
    if in_process:
        return
    took = sorted(_round_trip_s(connection) for _ in range(_ROUND_TRIPS))
    median = statistics.median(took)
    yield Finding(
        "round trip",
        Verdict.INFO if median >= _LONG_S else Verdict.OK,
        f"{_short(median)} for SELECT 1, through a Python driver",
        "",
        None,
        f"one connection cannot do more than about {1 / median:,.0f} statements a second, however fast the server is"
        if median >= _LONG_S
        else "",
    )
    cipher = facts.extra.get("tls", "")
    if cipher:
        why = "client and server encrypt every statement; tls=disable in the URL where nobody can listen"
        yield Finding("TLS", Verdict.INFO, cipher, "", None, why)
    else:
        yield Finding("TLS", Verdict.OK, "none, nothing is encrypted")


def meaning(facts: Facts, levels: Sequence[str]) -> Iterator[Finding]:
    """What a transaction promises: its isolation level, of those there are, and its durability."""
    if len(levels) == 1:
        yield Finding("isolation", Verdict.OK, f"{facts.isolation}, the only level")
    else:
        why = "a run without --isolation has this level; compare only what ran at the same"
        yield Finding("isolation", Verdict.INFO, f"{facts.isolation}, the server's default", "", None, why)
    settings = ", ".join(f"{name} = {value}" for name, value in list(facts.durability.items())[:3])
    if facts.durable_commit is False:
        yield Finding(
            "durability",
            Verdict.INFO,
            f"COMMIT does not wait for the disk: {settings}",
            "",
            None,
            "committed transactions may be lost in a crash, and are faster for that; compare only with the same",
        )
    elif facts.durable_commit:
        yield Finding("durability", Verdict.OK, f"COMMIT waits for the disk: {settings}")
    else:
        found = f"cannot be told{f': {settings}' if settings else ''}"
        yield Finding("durability", Verdict.INFO, found, "", None, "ask whoever runs the server's storage")


def _round_trip_s(connection: Connection) -> float:
    begin = time.perf_counter()
    connection.fetch("SELECT 1")
    return time.perf_counter() - begin


def _short(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"
