"""What the compiler refuses: where, which construct, and what to write instead."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dbdyno.model.errors import UsageError

_SHOWN = 20


@dataclass(frozen=True, order=True, slots=True)
class Problem:
    """One construct outside the language. ``column`` from 0."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class Refused(Exception):
    """Leaves the statement that has a problem; compilation goes on with the next one."""

    def __init__(self, node: ast.AST, text: str) -> None:
        super().__init__(text)
        self.node = node
        self.text = text


def refuse(workload: str, problems: set[Problem]) -> UsageError:
    """All problems of a workload as one error."""
    ordered = sorted(problems)
    lines = [str(problem) for problem in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"… and {len(ordered) - _SHOWN} more")
    if len(lines) == 1:
        return UsageError(lines[0])
    return UsageError(f"workload {workload} is outside the workload language:\n" + "\n".join(lines))


#: Statements and expressions of Python that are not in the language, with what to write instead.
OUTSIDE: dict[type[ast.AST], str] = {
    ast.Try: "try: a database error cannot be caught; the drive retries what can be retried",
    ast.Import: "import: write it at the top of the module",
    ast.ImportFrom: "import: write it at the top of the module",
    ast.FunctionDef: "a function inside a function: write it as a method or at the top of the module",
    ast.AsyncFunctionDef: "async: the drive waits for the database; write plain calls",
    ast.ClassDef: "a class inside a function: write it at the top of the module",
    ast.Global: "global: values that change are declared with NAME = state(DEFAULT) and kept in db.state",
    ast.Nonlocal: "nonlocal: values that change are declared with NAME = state(DEFAULT) and kept in db.state",
    ast.Delete: "del: assign None, or leave it",
    ast.Assert: "assert: write it as a check of the data (@check), or raise Rollback",
    ast.Match: "match: write if and elif",
    ast.AsyncFor: "async: the drive waits for the database; write plain calls",
    ast.AsyncWith: "async: the drive waits for the database; write plain calls",
    ast.Await: "await: the drive waits for the database; write plain calls",
    ast.Yield: "yield: append to a list and return it",
    ast.YieldFrom: "yield: append to a list and return it",
    ast.Lambda: "lambda: write a method or a function of the module",
    ast.NamedExpr: "the := operator: assign in a line of its own",
    ast.Dict: "a dict: use a list, or a dict of the module with constant keys",
    ast.Set: "a set: use a list",
    ast.SetComp: "a set comprehension: use a list comprehension",
    ast.DictComp: "a dict comprehension: use a list comprehension",
    ast.GeneratorExp: "a generator expression: write a list comprehension, [… for … in …]",
}
