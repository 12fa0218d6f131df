"""A one-off measurement (``dbdyno bench``): a campaign whose plan is made from arguments, not from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.campaign.plancheck import (
    absolute_url,
    is_file_name,
    server_kind,
    target_problems,
    workload_problems,
)
from dbdyno.campaign.planerrors import Problem, value_problems
from dbdyno.model.errors import UsageError
from dbdyno.model.masking import mask_passwords
from dbdyno.model.plan import Plan, contradictions, workload_label
from dbdyno.targets.registry import family_of_scheme
from dbdyno.targets.target import default_label
from dbdyno.targets.url import split_scheme
from dbdyno.workload.source import load_workload

DEFAULT_DURATION = "10s"


def oneoff_plan(
    workload: str,
    target: str,
    *,
    connections: Sequence[int] = (1,),
    options: Mapping[str, Any] | None = None,
    label: str = "",
    name: str = "bench",
    **settings: Any,
) -> tuple[Plan, str]:
    """A plan of one workload on one target, and its text as a plan file.

    Args:
        workload: a shipped name or ``./file.py``.
        target: a URL, or the name of a managed server.
        connections: one trial for each count (and round).
        options: of the workload, as texts or typed.
        label: of the target in tables and sentences; by default its scheme, file or server name.
        settings: any other key of a plan, by its name in a plan file (``duration``, ``transactions``,
            ``warmup``, ``interval``, ``rounds``, ``rate``, ``arrivals``, ``isolation``, ``max_tries`` …);
            None is the same as leaving it out. Without an end the trial lasts ten seconds.

    Raises:
        UsageError: one line for each thing that is wrong, named by its key.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    if "duration" not in given and "transactions" not in given:
        given["duration"] = DEFAULT_DURATION
    data = {
        "name": name,
        "connections": list(connections),
        **given,
        "target": [_target(target, label)],
        "workload": [
            {
                "name": str(Path(workload).absolute()) if is_file_name(workload) else workload,
                "label": _as_label(workload_label(workload)),
                "options": dict(options or {}),
            }
        ],
    }
    problems: list[Problem] = []
    plan: Plan | None = None
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        problems += value_problems(error)
    problems += [Problem(*each) for each in contradictions(data)]
    problems += [*target_problems(data), *workload_problems(data)]
    if problems or plan is None:
        raise UsageError(mask_passwords("\n".join(_said(problem) for problem in dict.fromkeys(problems))))
    # What the command line gave as texts is on the record as what it is.
    typed = load_workload(plan.workload[0].name, plan.workload[0].options).options
    names = plan.workload[0].options
    data["workload"][0]["options"] = {key: typed[key.replace("-", "_")] for key in names}
    return Plan.model_validate(data), mask_passwords(to_toml(data))


def _said(problem: Problem) -> str:
    """A problem without the key where the sentence itself names what the user typed."""
    last = problem.key.rpartition(".")[2]
    named = problem.key.startswith(("target.", "workload."))
    return problem.sentence if named else f"{last}: {problem.sentence}"


def _target(text: str, label: str) -> dict[str, Any]:
    parts = split_scheme(text)
    if parts is None:
        if server_kind(text) is None:
            # a name that is neither: let the registry of servers say so
            return {"name": label or "target", "server": text}
        return {"name": label or _as_label(text), "server": text}
    if not label:
        try:
            label = _as_label(default_label(family_of_scheme(parts[0]).parse(text)))
        except UsageError:
            label = "target"  # the URL itself is what is wrong, and is reported
    return {"name": label, "url": absolute_url(text, Path.cwd())}


def _as_label(text: str) -> str:
    """A label made of what may be any text."""
    return re.sub(r"[^\w.+@#:-]", "_", text).lstrip(".+@#:-")[:64] or "target"


def to_toml(data: Mapping[str, Any]) -> str:
    """A plan's data as the plan file that would give the same plan."""
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if key not in ("target", "workload", "hooks")]
    for kind in ("target", "workload"):
        for table in data[kind]:
            lines += ["", f"[[{kind}]]"]
            lines += [f"{key} = {_value(value)}" for key, value in table.items() if value not in (None, {})]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    # JSON's texts, numbers and truth values are TOML's as well
    return json.dumps(value, ensure_ascii=False)
