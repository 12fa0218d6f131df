"""From a workload to a program: every transaction and ``start``, for one target and one set of options."""

from __future__ import annotations

import json
from types import FunctionType
from typing import Any

from dbdyno.model.errors import UsageError
from dbdyno.model.program import Program
from dbdyno.workload.compiler.assembler import Block, Constants, Label, TooLarge
from dbdyno.workload.compiler.calls import defining_class, short_path
from dbdyno.workload.compiler.frame import Frame, Setting
from dbdyno.workload.compiler.functions import NoSource, function_of
from dbdyno.workload.compiler.problems import Problem, refuse
from dbdyno.workload.compiler.statements import Statements
from dbdyno.workload.compiler.values import Const, Db, NotInLanguage, Stream, encode
from dbdyno.workload.language import Workload, states, transactions

FORMAT = 1


class Compiler(Statements):
    """The compiler, put together from its parts; one for each program."""

    def function(self, method: str) -> tuple[dict[str, Any], bool]:
        """Compile ``method(self, db, rand)`` of the workload; its block, and whether it writes."""
        workload = self.setting.workload
        target = getattr(type(workload), method)
        label = f"{type(workload).__name__}.{method}"
        if not isinstance(target, FunctionType):
            raise UsageError(f"{label} is not a plain method; write def {method}(self, db, rand)")
        try:
            function = function_of(target)
        except NoSource as error:
            raise UsageError(f"{error} has no source to compile; put the workload in a file") from None
        names = [argument.arg for argument in function.node.args.args]
        arguments = function.node.args
        if len(names) != 3 or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise UsageError(f"{function.path}:{function.node.lineno}: write def {method}(self, db, rand)")
        self.block = Block(self.constants)
        frame = Frame(
            function,
            file=self.constants.file(short_path(function.path)),
            cls=defining_class(type(workload), target),
            outermost=True,
            result=None,
            end=Label(),
            bindings=dict(zip(names, (Const(workload), Db(), Stream(0)), strict=True)),
            bound=set(names),
        )
        self.frames = [frame]
        self.pipelined = False
        for name in names:
            if name in function.stores:
                self.problems.add(
                    Problem(function.path, function.node.lineno, 0, f"{name} is assigned to: use another name")
                )
        if any(name in function.stores for name in names):
            return {}, False
        try:
            self.function_body()
        except TooLarge as error:
            raise UsageError(
                f"{function.path}:{function.node.lineno}: {label} has {error} once its functions are written out"
            ) from None
        if self.problems:
            return {}, False
        return self.block.finished(), self.block.writes


def compile_workload(workload: Workload, capabilities: Any, for_update: str, terminals: int) -> Program:
    """The program of a workload, its options and a target folded in.

    ``capabilities`` is what ``db.has`` shows (with ``multi_row_insert``, ``max_parameters`` and ``pipeline``,
    which batches need), ``for_update`` what ``db.for_update`` gives, ``terminals`` how many there are in all.

    Raises:
        UsageError: constructs outside the language, all of them, each with file, line and what to write instead.
    """
    return _compile(Setting(workload, capabilities, for_update, terminals, states(workload)))


def check_workload(workload: Workload) -> None:
    """Refuse a workload that is outside the language, whatever its target.

    Raises:
        UsageError: as :func:`compile_workload`.
    """
    _compile(Setting(workload, None, "FOR UPDATE", 1, states(workload)))


def _compile(setting: Setting) -> Program:
    workload = setting.workload
    constants = Constants()
    compiler = Compiler(setting, constants)
    found: list[dict[str, Any]] = []
    for kind in transactions(workload):
        block, writes = compiler.function(kind.method)
        found.append(
            {
                "name": kind.name,
                "weight": float(kind.weight),
                "keying_s": float(kind.keying_s),
                "think_s": float(kind.think_s),
                "writes": writes,
                "block": block,
            }
        )
    start = compiler.function("start")[0] if workload.has_start else None
    if compiler.problems:
        raise refuse(workload.label, compiler.problems)
    capabilities = setting.capabilities
    program = {
        "format": FORMAT,
        "name": workload.label,
        "files": constants.files,
        "names": constants.names,
        "constants": constants.values,
        "state": [{"name": name, "default": _state(name, value)} for name, value in setting.states.items()],
        "texts": constants.texts,
        "templates": constants.templates,
        "distribution": _distribution(workload),
        "terminals": setting.terminals,
        "multi_row": bool(getattr(capabilities, "multi_row_insert", False)),
        "pipeline": bool(getattr(capabilities, "pipeline", False)),
        "max_parameters": int(getattr(capabilities, "max_parameters", 65_535)),
        "setup": [] if capabilities is None else list(workload.session_setup(_SetupDb(setting))),
        "reconnect_every": int(workload.reconnect_every),
        "transactions": found,
        "start": start,
    }
    data = json.dumps(program, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return Program.of(workload.label, data)


def _state(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        raise UsageError(f"state {name} is a {type(value).__name__}; db.state keeps numbers, strings and None")
    try:
        return encode(value)
    except NotInLanguage as error:
        raise UsageError(f"state {name} is {error}, which is no value of the language") from None


def _distribution(workload: Workload) -> dict[str, Any]:
    from dbdyno._engine import Distribution

    distribution = workload.distribution() or Distribution("uniform")
    return {"kind": distribution.kind, **distribution.parameters}


class _SetupDb:
    """What ``session_setup(self, db)`` may ask of ``db``."""

    def __init__(self, setting: Setting) -> None:
        self.has = setting.capabilities
        self.for_update = setting.for_update
        self.terminals = setting.terminals
