"""Client CPU for each query, and queries a second, beside sysbench, pgbench and a bare ping-pong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clients import dbdyno, find_pgbench, pgbench, pingpong, sysbench
from table import Ratio, Result
from window import Client, Missing, Window, watch

from dbdyno.targets import managed
from fake import BOUND_SHARE, Fake, fake

POINT = "oltp_point_select"
WORDS = ("--opt", "tables=4", "--opt", "table_size=20000")


@dataclass
class Pair:
    """A peer and dbdyno on one server, and the rows that come of it: (row, figure of a window)."""

    title: str
    server: Callable[[], Iterator[Fake | None]]  # opened for each round where it is cheap to
    peer: Callable[[Fake | None], Client]
    ours: Callable[[Fake | None], Client]
    rows: list[tuple[Ratio, Callable[[Window], float]]]
    floor: Ratio | None = None
    dead: str = ""
    done: int = field(default=0)


def rounds(pairs: list[Pair], number: int, seconds: int, folder: Path) -> None:
    """One round of every pair; who goes first changes from round to round."""
    for pair in pairs:
        if pair.dead:
            continue
        print(f"round {number}: {pair.title}", file=sys.stderr, flush=True)
        try:
            with contextmanager(pair.server)() as server:
                _round(pair, server, number, seconds, folder)
        except Missing as error:
            if pair.done == 0:
                pair.dead = str(error)
            for row, _ in pair.rows:
                row.notes.append(str(error))
            print(f"  {error}", file=sys.stderr, flush=True)


def _round(pair: Pair, server: Fake | None, number: int, seconds: int, folder: Path) -> None:
    pid = server.pid if server else None
    clients = {"peer": pair.peer(server), "ours": pair.ours(server)}
    windows = {}
    for who in ("peer", "ours") if number % 2 else ("ours", "peer"):
        windows[who] = watch(clients[who], seconds, pid)
        print(f"  {clients[who].name}: {told(windows[who])}", file=sys.stderr, flush=True)
    pair.done += 1
    bound = [
        name for name, who in (("sysbench", "peer"), ("dbdyno", "ours")) if windows[who].server_share > BOUND_SHARE
    ]
    for row, figure in pair.rows:
        row.add(figure(windows["ours"]), figure(windows["peer"]))
        row.notes += [f"server-bound with {' and '.join(bound)}"] if bound and pid else []
    if pair.floor is not None and server is not None:
        with pingpong(server.where, 64, folder) as client:
            window = watch(client, seconds, pid)
        print(f"  {client.name}: {told(window)}", file=sys.stderr, flush=True)
        pair.floor.add(windows["ours"].cpu_us_per_query, window.cpu_us_per_query)


def told(window: Window) -> str:
    """A window in one line."""
    return (
        f"{window.cpu_us_per_query:.2f} µs/query, {window.qps:,.0f} queries/s,"
        f" client {100 * window.cpu_s / window.seconds:.0f} %, server {100 * window.server_share:.0f} %"
    )


def results(pairs: list[Pair]) -> list[Result]:
    """The rows, the floor last."""
    rows = [row.result() for pair in pairs for row, _ in pair.rows]
    return rows + [pair.floor.result() for pair in pairs if pair.floor is not None]


def null_pairs(folder: Path, seconds: int, *, quick: bool) -> list[Pair]:
    """Point selects on the fake server."""
    pairs = []
    for connections, bar in ((64, 0.45), (1024, 0.40)):
        pairs.append(
            Pair(
                f"fake server over TCP, {connections} connections",
                lambda: _fake(folder, False),
                lambda server, n=connections: sysbench(POINT, server.where, n, seconds, quick=quick),  # type: ignore[misc]
                lambda server, n=connections: dbdyno(POINT, server.url, n, seconds, *WORDS),  # type: ignore[misc]
                [
                    (
                        Ratio(f"CPU per query, fake server over TCP, {connections} connections", "sysbench", bar),
                        lambda window: window.cpu_us_per_query,
                    ),
                    (
                        Ratio(
                            f"queries a second, fake server, {connections} connections",
                            "sysbench",
                            at_least=2,
                            unit="/s",
                            form=",.0f",
                        ),
                        lambda window: window.qps,
                    ),
                ],
                Ratio("CPU per query against a bare ping-pong of the same bytes, 64 connections", "ping-pong", 1.25)
                if connections == 64
                else None,
            )
        )
    pairs.append(
        Pair(
            "fake server over a unix socket, 64 connections",
            lambda: _fake(folder, True),
            lambda server: sysbench(POINT, server.where, 64, seconds),  # type: ignore[union-attr]
            lambda server: dbdyno(POINT, server.url, 64, seconds, *WORDS),  # type: ignore[union-attr]
            [
                (
                    Ratio("CPU per query, fake server over a unix socket, 64 connections", "sysbench", 0.30),
                    lambda window: window.cpu_us_per_query,
                )
            ],
        )
    )
    return pairs


def _fake(folder: Path, socket: bool) -> Iterator[Fake]:
    with fake(folder, socket=socket) as server:
        yield server


def mysql_pairs(stack: ExitStack, home: Path, seconds: int, *, quick: bool) -> list[Pair]:
    """Point selects and the mixed workload on MySQL; one server for all rounds."""
    url, port, version, trouble = "", 0, "", ""
    try:
        server = managed.start("mysql", home=home, options={"max_connections": "2000"})
        stack.callback(managed.stop, server.name, home)
        url, port, version = server.url, server.port, server.version
        prepare("oltp_read_write", url, *WORDS)
    except Exception as error:  # whatever keeps it from starting is the row's note
        trouble = f"MySQL does not start here: {error}"
    pairs = []
    for script, connections, what, figure in (
        (POINT, 64, "query", lambda window: window.cpu_us_per_query),
        (POINT, 1024, "query", lambda window: window.cpu_us_per_query),
        ("oltp_read_write", 64, "transaction", lambda window: window.cpu_us_per_transaction),
    ):
        mixed = "" if script == POINT else f"{script}, "
        title = f"CPU per {what}, {mixed}MySQL {version}, {connections} connections"
        pairs.append(
            Pair(
                title,
                _none,
                lambda _, s=script, n=connections: sysbench(s, str(port), n, seconds, quick=quick),  # type: ignore[misc]
                lambda _, s=script, n=connections: dbdyno(s, url, n, seconds, *WORDS),  # type: ignore[misc]
                [(Ratio(title, "sysbench", 0.60), figure)],
                dead=trouble,
            )
        )
    return pairs


def postgresql_pairs(stack: ExitStack, home: Path, seconds: int) -> list[Pair]:
    """select_only beside pgbench."""
    url, port, trouble, version = "", 0, "", ""
    try:
        server = managed.start("postgresql", home=home)
        stack.callback(managed.stop, server.name, home)
        url, port, version = server.url, server.port, server.version
        prepare("select_only", url, "--opt", "scale=1")
    except Exception as error:  # whatever keeps it from starting is the row's note
        trouble = f"PostgreSQL does not start here: {error}"
    user = url.partition("://")[2].partition("@")[0]
    title = f"CPU per query, select_only, PostgreSQL {version}, 64 connections"
    return [
        Pair(
            title,
            _none,
            lambda _: pgbench(find_pgbench(), port, user, 64, seconds),
            lambda _: dbdyno("select_only", url, 64, seconds, "--opt", "scale=1"),
            [(Ratio(title, "pgbench -M prepared -j 1", 0.95), lambda window: window.cpu_us_per_query)],
            dead=trouble,
        )
    ]


def _none() -> Iterator[None]:
    yield None


def prepare(workload: str, url: str, *words: str) -> None:
    """Load the tables that both sides use."""
    subprocess.run(
        [sys.executable, "-m", "dbdyno", "prepare", workload, url, *words], check=True, stdout=subprocess.DEVNULL
    )
