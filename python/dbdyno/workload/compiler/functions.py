"""Functions of a workload as syntax trees, and what their names are used for."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

ALL_COLUMNS = 2**64 - 1

#: ``db`` methods whose first argument is SQL.
SQL_METHODS = frozenset({"row", "query", "execute", "batch"})


class NoSource(Exception):
    """A function without source that could be read; the text says which."""


@lru_cache(maxsize=64)
def _tree(path: str, text: str) -> ast.Module:
    return ast.parse(text, path)


class Function:
    """One function: its tree, its file, and the names that it assigns."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.path = inspect.getsourcefile(function) or function.__code__.co_filename
        self.node = _definition(function, self.path)
        self.body = _without_docstring(self.node.body)
        self.arguments = [argument.arg for argument in ast.walk(self.node.args) if isinstance(argument, ast.arg)]
        #: how often each name is assigned, and which of them only in the body's own top level
        self.stores: dict[str, int] = {}
        self.nested: set[str] = set()
        for statement in self.body:
            plain = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign))
            for name in _stored(statement):
                self.stores[name] = self.stores.get(name, 0) + 1
                if not plain:
                    self.nested.add(name)
        self.locals = set(self.arguments) | set(self.stores)
        self.row_columns = _columns(self.body, columns_of_row)
        self.rows_columns = _columns(self.body, columns_of_rows)
        #: names that are used as SQL
        self.sql_names = {
            call.args[0].id
            for call in _calls(self.body)
            if isinstance(call.func, ast.Attribute)
            and call.func.attr in SQL_METHODS
            and call.args
            and isinstance(call.args[0], ast.Name)
        } & self.locals

    def single(self, name: str) -> bool:
        """Whether ``name`` is assigned once, at the top level, so that it may be known at compile time."""
        return self.stores.get(name) == 1 and name not in self.nested and name not in self.arguments

    def outside(self, name: str) -> Any:
        """What a name that is not local means.

        Raises:
            NameError: nothing.
        """
        function = self.function
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if free == name:
                return cell.cell_contents
        if name in function.__globals__:
            return function.__globals__[name]
        return _builtin(name)


def _builtin(name: str) -> Any:
    if not hasattr(builtins, name):
        raise NameError(name)
    return getattr(builtins, name)


@lru_cache(maxsize=1024)
def function_of(function: FunctionType) -> Function:
    """The analysed function.

    Raises:
        NoSource: its file cannot be read.
    """
    return Function(function)


def _definition(function: FunctionType, path: str) -> ast.FunctionDef:
    text = "".join(linecache.getlines(path, function.__globals__))
    first = function.__code__.co_firstlineno
    if text:
        for node in ast.walk(_tree(path, text)):
            if isinstance(node, ast.FunctionDef) and node.name == function.__code__.co_name:
                lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
                if min(lines) == first:
                    return node
    raise NoSource(f"{function.__qualname__} ({path}:{first})")


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:]
    return body


_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.FunctionDef, ast.ClassDef)


def _stored(node: ast.AST) -> Iterator[str]:
    """Names that a statement assigns, not those of scopes of their own."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SCOPES):
            yield from _stored(child)


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node


def _columns(body: list[ast.stmt], read: Callable[[ast.AST, ast.AST | None], int]) -> dict[str, int]:
    """What ``read`` says of every use of a name, together; a name that is missing is not used."""
    found: dict[str, int] = {}

    def visit(node: ast.AST, parent: ast.AST | None) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] = found.get(node.id, 0) | read(node, parent)
        for child in ast.iter_child_nodes(node):
            visit(child, node)

    for statement in body:
        visit(statement, None)
    return found


def columns_of_row(node: ast.AST, parent: ast.AST | None) -> int:
    """Which columns of the row ``node`` its use in ``parent`` reads, as bits (bit 63: all from there on)."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        index = parent.slice
        if isinstance(index, ast.Constant) and type(index.value) is int and index.value >= 0:
            return 1 << min(index.value, 63)
    return 0 if _tested(node, parent) else ALL_COLUMNS


def columns_of_rows(node: ast.AST, parent: ast.AST | None) -> int:
    """Which columns of the list of rows ``node`` its use in ``parent`` reads: all or none."""
    counted = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len"
    return 0 if counted or _tested(node, parent) else ALL_COLUMNS


def _tested(node: ast.AST, parent: ast.AST | None) -> bool:
    """Whether only the truth of ``node`` is asked, or whether it is None."""
    if isinstance(parent, (ast.If, ast.While, ast.IfExp)):
        return parent.test is node
    if isinstance(parent, ast.Compare):
        return len(parent.ops) == 1 and isinstance(parent.ops[0], (ast.Is, ast.IsNot))
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
