"""``db.…()``: statements and what else a transaction asks of the drive."""

from __future__ import annotations

import ast

from dbdyno.workload.compiler.assembler import NOWHERE
from dbdyno.workload.compiler.calls import Calls
from dbdyno.workload.compiler.functions import ALL_COLUMNS, columns_of_row, columns_of_rows
from dbdyno.workload.compiler.values import Const, Register, SqlText, Value

_WANTS = {"row": "row", "query": "rows", "execute": "matched"}


class DbCalls(Calls):
    """The part of the compiler that sends statements."""

    def statement_call(
        self, node: ast.Call, name: str, into: int | None, *, used: bool, parent: ast.AST | None
    ) -> Value:
        """Compile ``db.NAME(…)`` (see :class:`Calls`)."""
        if node.keywords:
            raise self.refused(node, f"db.{name}() takes no named arguments")
        if name in _WANTS:
            return self._statement(node, name, into, used=used, parent=parent)
        if name == "batch":
            return self._batch(node, into, used=used)
        if name == "ack":
            return self._ack(node)
        if name == "pipeline":
            raise self.refused(node, "db.pipeline() is written with db.pipeline(): and the statements below it")
        if node.args:
            raise self.refused(node, f"db.{name}() takes no arguments")
        if name == "now":
            register = self.dest(into)
            self.block.emit("now", register)
            return Register(register)
        if name in ("begin", "commit"):
            self.block.emit(name)
            return Const(None)
        raise self.refused(node, f"db.{name} is a value, not a function: write it without ()")

    def _answer(self, node: ast.Call, into: int | None, *, used: bool) -> int:
        """The register of a statement's result."""
        if not used:
            return NOWHERE
        if self.pipelined:
            raise self.refused(
                node, "a result inside with db.pipeline(): it is not there yet; read it in a statement after the block"
            )
        return self.dest(into)

    def _text(self, node: ast.Call, name: str) -> SqlText:
        if not node.args or isinstance(node.args[0], ast.Starred):
            raise self.refused(node, f"db.{name}() begins with its SQL")
        return self.sql_of_statement(node.args[0]) if name in _WANTS else self.sql(node.args[0])

    def _text_json(self, text: SqlText) -> dict[str, int]:
        if text.id is not None:
            return {"id": text.id}
        if text.template is not None:
            return {"template": text.template}
        assert text.register is not None
        return {"source": text.register}

    def _statement(self, node: ast.Call, name: str, into: int | None, *, used: bool, parent: ast.AST | None) -> Value:
        text = self._text(node, name)
        params: list[int] = []
        star: int | None = None
        for argument in node.args[1:]:
            if star is not None:
                raise self.refused(argument, "values after a starred list: put the starred list last")
            if isinstance(argument, ast.Starred):
                star = self.operand(argument.value)
            else:
                params.append(self.operand(argument))
        if text.parameters is not None:
            self._check_count(node, text.parameters, len(params), star)
        register = self._answer(node, into, used=used)
        columns = self._columns(node, name, register, parent)
        self.here(node)
        self.block.statements.append(
            {"text": self._text_json(text), "params": params, "star": star, "want": _WANTS[name], "columns": columns}
        )
        self.block.writes |= name == "execute"
        self.block.emit("statement", register, len(self.block.statements) - 1)
        return Const(None) if register == NOWHERE else Register(register)

    def _columns(self, node: ast.Call, name: str, register: int, parent: ast.AST | None) -> int:
        if register == NOWHERE or name == "execute":
            return 0
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            function = self.frame.function
            read = function.row_columns if name == "row" else function.rows_columns
            return read.get(parent.targets[0].id, 0)
        if parent is None:
            return ALL_COLUMNS
        return columns_of_row(node, parent) if name == "row" else columns_of_rows(node, parent)

    def _check_count(self, node: ast.Call, wanted: int, given: int, star: int | None) -> None:
        if given != wanted if star is None else given > wanted:
            raise self.refused(node, f"{wanted} parameters (?) but {given} values: {ast.unparse(node.args[0])}")

    def _batch(self, node: ast.Call, into: int | None, *, used: bool) -> Value:
        text = self._text(node, "batch")
        if len(node.args) != 2 or isinstance(node.args[1], ast.Starred):
            raise self.refused(node, "db.batch() is written db.batch(sql, rows)")
        rows = self.operand(node.args[1])
        register = self._answer(node, into, used=used)
        self.here(node)
        self.block.batches.append({"text": self._text_json(text), "rows": rows})
        self.block.writes = True
        self.block.emit("batch", register, len(self.block.batches) - 1)
        return Const(None) if register == NOWHERE else Register(register)

    def _ack(self, node: ast.Call) -> Value:
        base = self.block.take(len(node.args)) if node.args else 0
        for n, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                raise self.refused(argument, "* in db.ack(): pass the list as it is")
            self.into(argument, base + n)
        self.here(node)
        self.block.emit("ack", base, len(node.args))
        return Const(None)
