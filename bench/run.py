"""What dbdyno costs and how exactly it measures, beside its peers, in one run: ``make bench``.

Every comparison is a ratio to a peer in the same round; absolute figures move with the machine. The table is written
to bench/RESULTS.md. ``make bench BENCH="--only cpu"`` runs a section, ``BENCH=--quick`` all of them briefly.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import connections
import cpu
import instructions
import latency
import openloop
from machine import Quiet, spin
from table import Result, document

HERE = Path(__file__).parent
SECTIONS = ("cpu", "instructions", "connections", "latency", "openloop")


def main() -> None:
    """Run the sections and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="measured in each round of a comparison")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="a section; may be given again")
    parser.add_argument("--server", choices=("fake", "mysql", "postgresql"), action="append", help="of section cpu")
    parser.add_argument("--quick", action="store_true", help="one short round of everything: does it work?")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 2
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    began = time.monotonic()
    results: list[Result] = []
    noise: list[Quiet] = [spin()]
    quick = arguments.quick
    sections: dict[str, Callable[[Path], list[Result]]] = {
        "cpu": lambda folder: comparisons(arguments, folder, noise),
        "instructions": lambda folder: instructions.measure(folder, 25_000 if quick else instructions.LONG),
        "connections": lambda folder: connections.measure(folder, seconds=12 if quick else 24),
        "latency": lambda folder: latency.measure(folder, 1.0 if quick else 2.0, 1 if quick else latency.WINDOWS),
        "openloop": lambda folder: openloop.measure(folder, 6.0 if quick else 12.0, 2.0 if quick else 10.0),
    }
    with tempfile.TemporaryDirectory(prefix="dbdyno-bench-") as name:
        for section, measure in sections.items():
            if arguments.only and section not in arguments.only:
                continue
            print(f"section {section}", file=sys.stderr, flush=True)
            results += measure(Path(name))
            noise.append(spin())
    minutes = (time.monotonic() - began) / 60
    text = document(results, noise, arguments.rounds, arguments.seconds, minutes)
    arguments.output.write_text(text, encoding="utf-8")
    print(text)


def comparisons(arguments: argparse.Namespace, folder: Path, noise: list[Quiet]) -> list[Result]:
    """Section cpu: all comparisons, interleaved."""
    wanted = arguments.server or ["fake", "mysql", "postgresql"]
    with ExitStack() as stack:
        pairs: list[cpu.Pair] = []
        if "fake" in wanted:
            pairs += cpu.null_pairs(folder, arguments.seconds, quick=arguments.quick)
        if "mysql" in wanted:
            pairs += cpu.mysql_pairs(stack, folder, arguments.seconds, quick=arguments.quick)
        if "postgresql" in wanted:
            pairs += cpu.postgresql_pairs(stack, folder, arguments.seconds)
        for number in range(1, arguments.rounds + 1):
            cpu.rounds(pairs, number, arguments.seconds, folder)
            noise.append(spin())
        return cpu.results(pairs)


if __name__ == "__main__":
    main()
