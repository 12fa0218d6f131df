"""SQL texts: constants, or literals with integers and parameter marks in them."""

from __future__ import annotations

import ast
from typing import Any

from dbdyno.workload.compiler.assembler import Label
from dbdyno.workload.compiler.frame import Core
from dbdyno.workload.compiler.values import Bound, Const, Marks, Register, SqlText, Value
from dbdyno.workload.sql import parameter_positions

_ADVICE = (
    "SQL is a literal or an f-string whose holes are integers, constants of self or db, or marks(n);"
    " other values are parameters (?)"
)

#: A piece of a text: a literal, or a hole: its kind, the operand that fills it, its width (zeros on the left).
Piece = str | tuple[str, int, int]


class SqlTexts(Core):
    """The part of the compiler that reads first arguments of statements."""

    def sql_of_statement(self, node: ast.expr) -> SqlText:
        """An SQL text that only the statement at hand uses: it may make it itself, without an instruction."""
        if not isinstance(node, ast.JoinedStr):
            return self.sql(node)
        return self._made(self._pieces(node), fused=True)

    def sql(self, node: ast.expr) -> SqlText:
        """Compile an SQL text (see :class:`Core`)."""
        if isinstance(node, ast.Name):
            known = self.expr(node)
            if isinstance(known, SqlText):
                return known
            if isinstance(known, Register):
                raise self.refused(node, f"the SQL in {node.id} is made at run time; {_ADVICE}")
        if isinstance(node, ast.IfExp):
            return self._either(node)
        return self._made(self._pieces(node))

    def _made(self, pieces: list[Piece], register: int | None = None, *, fused: bool = False) -> SqlText:
        merged: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, str) and merged and isinstance(merged[-1], str):
                merged[-1] += piece
            elif piece != "":
                merged.append(piece)
        if register is None and all(isinstance(piece, str) for piece in merged):
            sql = "".join(map(str, merged))
            return SqlText(id=self.constants.text(sql), parameters=len(parameter_positions(sql)))
        shape: list[Any] = [piece if isinstance(piece, str) else _shape(piece) for piece in merged]
        holes = [piece[1] for piece in merged if not isinstance(piece, str)]
        self.block.templates.append({"template": self.constants.template(shape), "holes": holes})
        site = len(self.block.templates) - 1
        parameters: int | None = None
        if not any(isinstance(piece, tuple) and piece[0] == "marks" for piece in merged):
            example = "".join(piece if isinstance(piece, str) else "0" for piece in merged)
            parameters = len(parameter_positions(example))
            if fused:
                return SqlText(template=site, parameters=parameters)
        register = self.dest(register)
        self.block.emit("text", register, site)
        return SqlText(register=register, parameters=parameters)

    def sql_into(self, node: ast.expr, register: int) -> None:
        """An SQL text in a register, also a constant one: for variables that take one of several."""
        if isinstance(node, ast.IfExp):
            text = self._either(node, register)
        elif isinstance(node, ast.Name):
            text = self.sql(node)
        else:
            text = self._made(self._pieces(node), register)
        if text.id is not None:
            text = self._made([self.constants.texts[text.id]], register)
        assert text.register is not None
        self.move(register, text.register)

    def _either(self, node: ast.IfExp, register: int | None = None) -> SqlText:
        """One of two texts; the register is only needed when the choice is made at run time."""
        otherwise, end = Label(), Label()
        taken = self.branch(node.test, otherwise, False)
        if taken is True:
            self.block.set(otherwise)
            return self.sql(node.orelse)
        if taken is False:
            self.block.set(otherwise)
            return self.sql(node.body)
        register = self.dest(register)
        self.sql_into(node.body, register)
        self.block.emit("jump", end)
        self.block.set(otherwise)
        self.sql_into(node.orelse, register)
        self.block.set(end)
        return SqlText(register=register)

    def _pieces(self, node: ast.expr) -> list[Piece]:
        if isinstance(node, ast.JoinedStr):
            return [piece for part in node.values for piece in self._part(part)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._pieces(node.left) + self._pieces(node.right)
        if isinstance(node, ast.Call):
            made = self.returned_pieces(node)
            if made is not None:
                return made
        value = self.expr(node)
        if isinstance(value, Const) and isinstance(value.value, str):
            return [value.value]
        raise self.refused(node, f"this SQL is made at run time; {_ADVICE}")

    def returned_pieces(self, node: ast.Call) -> list[Piece] | None:
        """The text that a function of one ``return`` makes; None when ``node`` calls none."""
        raise NotImplementedError

    def _part(self, part: ast.expr) -> list[Piece]:
        if isinstance(part, ast.Constant):
            return [str(part.value)]
        assert isinstance(part, ast.FormattedValue)
        if isinstance(part.value, ast.Call):
            made = self.returned_pieces(part.value) if part.format_spec is None else None
            if made is not None:
                return made
        value = self.expr(part.value)
        if isinstance(value, Const):
            return [self.formatted_constant(part, value)]
        kind, width = self.format_of(part)
        if kind not in ("plain", "zeros"):
            raise self.refused(part, "a hole of an SQL text is written {x} or {x:0Nd}")
        return [_hole(self, value, part, width)]

    def format_of(self, part: ast.FormattedValue) -> tuple[str, int]:
        """The format of a hole: plain, zeros, blanks or fixed, and its N."""
        raise NotImplementedError

    def formatted_constant(self, part: ast.FormattedValue, value: Const) -> str:
        """``{value:spec}`` of a constant."""
        raise NotImplementedError


def _shape(piece: tuple[str, int, int]) -> dict[str, Any]:
    kind, _, width = piece
    return {"hole": kind, "width": width} if width else {"hole": kind}


def _hole(compiler: SqlTexts, value: Value, part: ast.FormattedValue, width: int) -> Piece:
    if isinstance(value, Marks) and not width:
        return ("marks", value.count.index, 0)
    if isinstance(value, (Register, Bound)):
        return ("int", compiler.source(value, part.value), width)
    raise compiler.refused(part, f"this cannot stand in an SQL text; {_ADVICE}")
