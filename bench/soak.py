"""What is too long for ``make test``: ``make soak``. The dated result is written to bench/SOAK.md.

Twenty kills of a running campaign, each resumed; campaigns of a database against itself, which must never find
a side faster at more than the promised rate; random programs of the workload language; fuzzing of the wire
protocols, five minutes a target; a long run.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
FUZZ_TARGETS = (
    "wire_mysql", "wire_mysql_client", "wire_postgresql", "wire_postgresql_client", "engine_mysql", "engine_postgresql",
)  # fmt: skip
PLAN = """
name = "aa"
rounds = 5
connections = [2]
duration = "1s"
warmup = "200ms"
interval = "200ms"
seed = {seed}
[[target]]
name = "one"
url = "sqlite:///{folder}/one.db"
[[target]]
name = "two"
url = "sqlite:///{folder}/two.db"
[[workload]]
name = "oltp_point_select"
options = {{ table_size = 1000 }}
"""


@dataclass(frozen=True)
class Result:
    """What one part came to."""

    part: str
    passed: bool
    minutes: float
    finding: str


def kills(number: int) -> tuple[bool, str]:
    """The kill test with that many kills."""
    done = pytest("tests/campaign/test_kill.py", DBDYNO_KILLS=str(number))
    return done.returncode == 0, f"{number} kills; {last_line(done.stdout)}"


def random_programs(seconds: int) -> tuple[bool, str]:
    """Both lives of the workload language, again and again with new random programs."""
    until, runs = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        done = pytest("tests/language", "--hypothesis-seed=random")
        runs += 1
        if done.returncode:
            return False, f"run {runs}: {last_line(done.stdout)}"
    return True, f"{runs} runs; {last_line(done.stdout)}"


def rust(runs: int) -> tuple[bool, str]:
    """The wire crate's mangled messages, no panic; the event loop."""
    command = ["cargo", "test", "--locked", "--quiet", "-p", "dbdyno-wire", "-p", "dbdyno-engine"]
    for run in range(1, runs + 1):
        if subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode:
            return False, f"run {run} failed"
    return True, f"{runs} runs of the tests of wire and engine, event loop included"


def fuzz(target: str, seconds: int) -> tuple[bool, str]:
    """libFuzzer on one target (scripts/fuzz): no crash, no memory beyond the input's share, always an end."""
    done = subprocess.run(["scripts/fuzz", target, str(seconds)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        found = re.findall(r"Test unit written to (\S+)", done.stderr)
        return False, f"input in {found[0]}" if found else last_line(done.stderr)
    coverage = re.findall(r"cov: (\d+)", done.stderr)
    return True, f"{last_line(done.stderr)}, {coverage[-1] if coverage else 'no'} places of the code reached"


def against_itself(campaigns: int) -> tuple[bool, str]:
    """Two files of the same database: how often a side is called faster. Nominal: at most 5 %."""
    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="dbdyno-soak-") as folder:
        for number in range(campaigns):
            plan = Path(folder, "aa.toml")
            plan.write_text(PLAN.format(seed=number + 1, folder=folder), encoding="utf-8")
            store = Path(folder, "aa-store.db")
            words = ["run", str(plan), "--store", str(store), "--no-report"]
            done = dbdyno(*words)
            if done.returncode not in (0, 1):
                return False, last_line(done.stderr)
            answers[verdict(done.stdout)] += 1
    wrong = answers["faster"] + answers["slower"]
    found = ", ".join(f"{count} × {answer}" for answer, count in answers.most_common())
    # the most that chance gives in 19 of 20 soaks at a true rate of 5 %
    allowed = max(1, round(campaigns * 0.05 + 1.65 * (campaigns * 0.05 * 0.95) ** 0.5))
    return wrong <= allowed, f"{campaigns} campaigns: {found}; at most {allowed} may name a faster side"


def verdict(text: str) -> str:
    """The answer's word out of the sentence."""
    for word, form in (
        ("cannot tell", r"[Cc]annot tell"),
        ("no difference", r"[Nn]o difference|same database"),
        ("faster", r"\bfaster\b"),
        ("slower", r"\bslower\b"),
    ):
        if re.search(form, text):
            return word
    return "no answer"


def long_run(minutes: float) -> tuple[bool, str]:
    """One long trial: the identity holds and memory stays."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-soak-") as folder:
        url = f"sqlite:///{folder}/long.db"
        done = dbdyno(
            "bench", "oltp_read_write", url, "-c", "4", "-d", f"{minutes * 60:.0f}s", "--opt", "table_size=1000",
            "--store", f"{folder}/store.db", "--json",
        )  # fmt: skip
        found = re.search(r'"committed": (\d+)', done.stdout)
        return done.returncode == 0 and found is not None, (
            f"{minutes:g} min, {found[1]} transactions committed" if found else last_line(done.stderr)
        )


def pytest(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """pytest, quietly."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=3600", *words]
    if "--hypothesis-seed=random" in words:
        command[-1] = f"--hypothesis-seed={time.time_ns() % 1_000_000}"
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **variables}, check=False
    )


def dbdyno(*words: str) -> subprocess.CompletedProcess[str]:
    """The command line."""
    return subprocess.run([sys.executable, "-m", "dbdyno", *words], capture_output=True, text=True, check=False)


def last_line(text: str) -> str:
    """The last words."""
    lines = text.strip().splitlines()
    return lines[-1].strip("= ") if lines else "no output"


def main() -> None:
    """Run the parts and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--campaigns", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10, help="length of the long run")
    parser.add_argument("--programs", type=int, default=300, help="seconds of random programs")
    parser.add_argument("--fuzz", type=int, default=300, help="seconds of fuzzing for each target")
    arguments = parser.parse_args()
    parts: list[tuple[str, Callable[[], tuple[bool, str]]]] = [
        ("kills", lambda: kills(arguments.kills)),
        ("a database against itself", lambda: against_itself(arguments.campaigns)),
        ("random programs", lambda: random_programs(arguments.programs)),
        ("Rust", lambda: rust(3)),
        *((f"fuzz {target}", partial(fuzz, target, arguments.fuzz)) for target in FUZZ_TARGETS),
        ("long run", lambda: long_run(arguments.minutes)),
    ]
    results = []
    for name, part in parts:
        print(f"{name} …", file=sys.stderr, flush=True)
        began = time.monotonic()
        passed, finding = part()
        results.append(Result(name, passed, (time.monotonic() - began) / 60, finding))
        print(f"  {'passed' if passed else 'FAILED'}: {finding}", file=sys.stderr, flush=True)
    (HERE / "SOAK.md").write_text(report(results), encoding="utf-8")
    sys.exit(0 if all(result.passed for result in results) else 1)


def report(results: list[Result]) -> str:
    """The results as Markdown."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False
    ).stdout.strip()
    lines = [
        "# Soak",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, {os.cpu_count()} cores, Linux {platform.release()}.",
        "",
        "| part | result | minutes | finding |",
        "|---|---|---|---|",
    ]
    for result in results:
        word = "passed" if result.passed else "FAILED"
        lines.append(f"| {result.part} | {word} | {result.minutes:.1f} | {result.finding} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
