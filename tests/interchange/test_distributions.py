"""Ids picked here and ids picked by sysbench hit the same rows equally often: two-sample chi-squared tests.

Both sides have fixed seeds, so a test that passes always passes; the oracle is the sysbench on PATH.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dbdyno._engine import Distribution, Stream

pytestmark = pytest.mark.needs("sysbench")

DRAWS = 40_000
#: Below this the two samples are taken as different; one false alarm in a thousand if seeds were fresh.
LEAST_P = 0.001

SCRIPT = """
function event() end
function thread_init()
  local draw = sysbench.rand[os.getenv("DRAW")]
  local a, b = tonumber(os.getenv("LOW")), tonumber(os.getenv("HIGH"))
  for i = 1, tonumber(os.getenv("DRAWS")) do io.write(draw(a, b), "\\n") end
  io.flush()
end
"""


def sysbench_draws(folder: Path, kind: str, low: int, high: int, *options: str) -> Counter[int]:
    """How often sysbench's own function draws each value."""
    script = folder / "draw.lua"
    script.write_text(SCRIPT)
    environment = {"DRAW": kind, "LOW": str(low), "HIGH": str(high), "DRAWS": str(DRAWS)}
    command = ["sysbench", str(script), "--verbosity=0", "--events=1", "--rand-seed=11", *options, "run"]
    done = subprocess.run(
        command, env={"PATH": "/usr/local/bin:/usr/bin:/bin", **environment}, check=True, capture_output=True
    )
    return Counter(int(line) for line in done.stdout.split())


def own_draws(distribution: Distribution, low: int, high: int) -> Counter[int]:
    stream = Stream(5, "interchange", 1, 1, distribution)
    return Counter(stream.pick(low, high) for _ in range(DRAWS))


def p_value(one: Counter[int], other: Counter[int]) -> float:
    """Two-sample chi-squared over runs of neighbouring values with at least 40 draws in all."""
    table: list[list[int]] = []
    left = right = 0
    for value in sorted(one.keys() | other.keys()):
        left, right = left + one[value], right + other[value]
        if left + right >= 40:
            table.append([left, right])
            left = right = 0
    if table:
        table[-1] = [table[-1][0] + left, table[-1][1] + right]
    if len(table) < 2:
        return 1.0
    return float(stats.chi2_contingency(np.array(table).T).pvalue)


CASES = [
    ("uniform", 1, 1000, {}),
    ("gaussian", 1, 1000, {}),
    ("gaussian", 1, 1000, {"spec_iter": 2}),
    ("special", 1, 10_000, {}),
    ("special", 1, 37, {}),
    ("special", 1, 2, {}),
    ("special", 100, 2099, {"spec_pct": 20, "spec_res": 40, "spec_iter": 3}),
    ("special", 1, 500, {"spec_res": 0}),
    ("pareto", 1, 10_000, {}),
    ("pareto", 1, 1000, {"pareto_h": 0.45}),
]


@pytest.mark.parametrize(("kind", "low", "high", "options"), CASES)
def test_ids_would_hit_other_rows_than_sysbenchs(
    tmp_path: Path, kind: str, low: int, high: int, options: dict[str, float]
) -> None:
    flags = [f"--rand-{name.replace('_', '-')}={value}" for name, value in options.items()]
    theirs = sysbench_draws(tmp_path, kind, low, high, *flags)
    assert theirs.total() == DRAWS
    ours = own_draws(Distribution(kind, **options), low, high)  # type: ignore[arg-type]
    assert p_value(ours, theirs) > LEAST_P


def test_the_comparison_sees_a_wrong_option(tmp_path: Path) -> None:
    theirs = sysbench_draws(tmp_path, "special", 1, 10_000)
    ours = own_draws(Distribution("special", spec_res=74), 1, 10_000)
    assert p_value(ours, theirs) < LEAST_P


def test_default_rand_type_of_sysbench_is_special(tmp_path: Path) -> None:
    theirs = sysbench_draws(tmp_path, "default", 1, 10_000)
    assert p_value(own_draws(Distribution("special"), 1, 10_000), theirs) > LEAST_P
