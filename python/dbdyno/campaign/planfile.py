"""Plan files: TOML in, a checked plan out, or every error at once.

``--set KEY=VALUE`` changes a value before anything is checked: ``rounds=5``, ``target.0.url=…``,
``workload.oltp_read_write.options.table_size=1000``, ``workload.*.options.tables=4``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dbdyno.campaign.plancheck import resolve_paths, target_problems, workload_problems
from dbdyno.campaign.planerrors import Problem, value_problems
from dbdyno.model.errors import UsageError, nearest
from dbdyno.model.masking import mask_passwords
from dbdyno.model.plan import Plan, contradictions, workload_label

#: Setting one of these takes the other out: the plan's own choice between them is overridden.
_EXCLUSIVE = {
    "duration": ("transactions",),
    "transactions": ("duration",),
    "url": ("server", "options"),
    "server": ("url",),
}


def read_plan(path: str | Path, overrides: Sequence[str] = ()) -> tuple[Plan, str]:
    """A plan and the text to keep with it: the file's, without passwords, and the overrides as comments.

    Raises:
        UsageError: no such file, not TOML, or anything wrong in it: one line for each error, with file, key,
            what was wrong and what is allowed.
    """
    shown, file = str(path), Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"the plan {shown} does not exist{_other_plans(file)}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"the plan {shown} cannot be read: {reason}") from None
    return parse_plan(text, shown, file.parent, overrides)


def shipped_plan(name: str) -> Path:
    """The path of a plan that comes with dbdyno (``quickstart``)."""
    return Path(str(files("dbdyno.campaign") / "plans" / f"{name}.toml"))


def parse_plan(text: str, shown: str, folder: Path, overrides: Sequence[str] = ()) -> tuple[Plan, str]:
    """The same for a text. ``shown`` names it in errors; paths in it are relative to ``folder``."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_syntax(shown, str(error))) from None
    problems = [problem for override in overrides if (problem := _override(data, override)) is not None]
    resolve_paths(data, folder)
    plan: Plan | None = None
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        problems += value_problems(error)
    problems += [Problem(*each) for each in contradictions(data)]
    problems += target_problems(data)
    problems += workload_problems(data)
    if problems or plan is None:
        raise UsageError(mask_passwords("\n".join(_lines(shown, problems, list(data)))))
    kept = "".join(f"# --set {override}\n" for override in overrides)
    return plan, mask_passwords(text if not kept else f"{text.rstrip()}\n\n{kept}")


def _other_plans(file: Path) -> str:
    try:
        names = [item.name for item in file.parent.glob("*.toml")]
    except OSError:
        return ""
    return nearest(file.name, names) if names else ""


def _syntax(shown: str, message: str) -> str:
    found = re.fullmatch(r"(.*?) \(at (?:line (\d+), column (\d+)|(end of document))\)", message, re.DOTALL)
    if found is None:
        return f"{shown}: {message}"
    where = f"{shown}:{found[2]}:{found[3]}" if found[2] else f"{shown}: at the end"
    return f"{where}: {found[1]}"


def _lines(shown: str, problems: Iterable[Problem], keys: list[str]) -> list[str]:
    """One line a problem, in the order of the file; what is missing comes last. One key's are together."""

    def rank(problem: Problem) -> tuple[int, int]:
        top, _, rest = problem.key.partition(".")
        member = rest.partition(".")[0]
        return (keys.index(top) if top in keys else len(keys)), (int(member) if member.isdigit() else -1)

    once = dict.fromkeys(problems)
    return [f"{shown}: {problem.key}: {problem.sentence}" for problem in sorted(once, key=rank)]


def _override(data: dict[str, Any], override: str) -> Problem | None:
    """Apply one override to ``data``, or say what is wrong with it."""
    path, equals, raw = override.partition("=")
    words = [word.strip() for word in path.split(".")]
    if not equals or not all(words):
        return Problem(f"--set {override}", "is not KEY=VALUE, like rounds=5 or target.0.url=scheme://host/db")
    try:
        places = _places([data], words[:-1])
    except LookupError as error:
        return Problem(f"--set {path.strip()}", str(error.args[0]))
    for place in places:
        place[words[-1]] = _value(raw.strip())
        for other in _EXCLUSIVE.get(words[-1], ()):
            place.pop(other, None)
    return None


def _value(raw: str) -> Any:
    """A TOML value, or the text itself where it is none (``duration=30s``)."""
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _places(tables: list[dict[str, Any]], words: list[str]) -> list[dict[str, Any]]:
    """The tables that a dotted path names; LookupError with a sentence when it names none."""
    for position, word in enumerate(words):
        if position == 0 and word in ("target", "workload"):
            continue  # the list's member is named by the next word
        if position == 1 and words[0] in ("target", "workload"):
            tables = _members(tables[0].get(words[0]), words[0], word)
            continue
        for table in tables:
            table.setdefault(word, {})
        tables = [table[word] for table in tables]
        if not all(isinstance(table, dict) for table in tables):
            raise LookupError(f"{'.'.join(words[: position + 1])} is not a table")
    if len(words) == 1 and words[0] in ("target", "workload"):
        raise LookupError(f"name a key of one of them, like {words[0]}.0.name or {words[0]}.*.options.KEY")
    return tables


def _members(listed: Any, kind: str, word: str) -> list[dict[str, Any]]:
    members = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    if word == "*":
        return members
    if word.isascii() and word.isdigit():
        if int(word) < len(members):
            return [members[int(word)]]
        raise LookupError(f"there is no {kind}.{word}; the plan has {len(members)}, counted from 0")
    names = [str(item.get("label") or workload_label(str(item.get("name", "")))) for item in members]
    found = [item for item, name in zip(members, names, strict=True) if name == word]
    if not found:
        raise LookupError(f"no {kind} is named {word!r}{nearest(word, names)}")
    return found
