"""One function while it is compiled into its caller, and what all parts of the compiler share."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbdyno.workload.compiler.assembler import Block, Constants, Label
from dbdyno.workload.compiler.functions import Function
from dbdyno.workload.compiler.problems import Problem, Refused
from dbdyno.workload.compiler.values import (
    Const,
    Db,
    DbHas,
    DbState,
    Marks,
    NotInLanguage,
    Register,
    SqlText,
    Stream,
    Value,
)
from dbdyno.workload.language import Workload


@dataclass(frozen=True)
class Setting:
    """What a program is compiled for. ``capabilities`` None: only to check, with every capability unknown."""

    workload: Workload
    capabilities: Any
    for_update: str
    terminals: int
    states: Mapping[str, Any]


@dataclass
class Loop:
    """A loop that ``break`` and ``continue`` may leave."""

    next: Label
    after: Label
    pipelined: bool
    #: names surely assigned at each ``break``
    breaks: list[set[str]] = field(default_factory=list)


@dataclass
class Frame:
    """A function being compiled: where its names are."""

    function: Function
    file: int
    cls: type | None  # the class that defines it, for super()
    outermost: bool
    result: int | None  # register that takes what it returns
    end: Label
    bindings: dict[str, Value] = field(default_factory=dict)
    #: names that surely have a value here; None = this place is never reached
    bound: set[str] | None = field(default_factory=set)
    scopes: list[dict[str, Register]] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    pipelined: bool = False  # inside a ``with db.pipeline()`` of this function


class Core:
    """State of the compiler; its parts are the other bases of ``Compiler``."""

    def __init__(self, setting: Setting, constants: Constants) -> None:
        self.setting = setting
        self.constants = constants
        self.problems: set[Problem] = set()
        self.block = Block(constants)
        self.frames: list[Frame] = []
        self.pipelined = False

    @property
    def frame(self) -> Frame:
        """The function that is compiled now."""
        return self.frames[-1]

    # --- the parts, as they see each other ------------------------------------------------------------------

    def expr(self, node: ast.expr, into: int | None = None, *, used: bool = True) -> Value:
        """Compile an expression; ``into`` is the register that may take the result."""
        raise NotImplementedError

    def call(self, node: ast.Call, into: int | None, *, used: bool, parent: ast.AST | None = None) -> Value:
        """Compile a call."""
        raise NotImplementedError

    def inline(self, node: ast.Call, callee: Value, into: int | None, *, used: bool) -> Value:
        """Compile a function into its caller."""
        raise NotImplementedError

    def sql(self, node: ast.expr) -> SqlText:
        """Compile an SQL text."""
        raise NotImplementedError

    def branch(self, node: ast.expr, target: Label, when: bool) -> bool | None:
        """Jump if the truth of ``node`` is ``when``. True: always jumps, False: never, None: it depends."""
        raise NotImplementedError

    def body(self, statements: list[ast.stmt]) -> None:
        """Compile statements."""
        raise NotImplementedError

    # --- problems ---------------------------------------------------------------------------------------------

    def refused(self, node: ast.AST, text: str) -> Refused:
        """To be raised, which leaves the statement; ``text`` says what was found and what to write instead."""
        return Refused(node, text)

    def note(self, refused: Refused) -> None:
        """Keep a problem."""
        function = self.frame.function
        line = getattr(refused.node, "lineno", function.node.lineno)
        column = getattr(refused.node, "col_offset", 0)
        self.problems.add(Problem(function.path, line, column, refused.text))

    # --- operands ---------------------------------------------------------------------------------------------

    def source(self, value: Value, node: ast.AST) -> int:
        """The operand that reads ``value``."""
        if isinstance(value, Register):
            return value.index
        if isinstance(value, Const):
            try:
                return self.constants.constant(value.value)
            except NotInLanguage as error:
                raise self.refused(node, f"{_words(node)} is {error}, which is no value of the language") from None
        raise self.refused(node, f"{_describe(value)} is not a value; it cannot be kept or passed on")

    def operand(self, node: ast.expr) -> int:
        """Compile ``node`` and give the operand that reads it."""
        return self.source(self.expr(node), node)

    def into(self, node: ast.expr, register: int) -> None:
        """Compile ``node`` so that its value ends in ``register``."""
        self.move(register, self.source(self.expr(node, register), node))

    def move(self, register: int, source: int) -> None:
        """Copy, unless it is there already."""
        if source != register:
            self.block.emit("move", register, source)

    def dest(self, into: int | None) -> int:
        """The register for a result."""
        return self.block.take() if into is None else into

    def here(self, node: ast.AST) -> None:
        """Instructions from now on belong to that line."""
        line = getattr(node, "lineno", None)
        if line is not None:
            self.block.place = (self.frame.file, line)


def _words(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except Exception:
        return "this"
    return text if len(text) <= 60 else text[:57] + "…"


def _describe(value: Value) -> str:
    names: dict[type, str] = {
        Db: "db",
        DbState: "db.state",
        DbHas: "db.has",
        Stream: "a random stream",
        SqlText: "an SQL text with integers in it",
        Marks: "marks(n) outside an SQL text",
    }
    return names.get(type(value), "a method")
