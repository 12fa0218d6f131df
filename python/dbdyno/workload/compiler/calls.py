"""Calls: builtin functions, random streams, and functions compiled into their caller."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from types import FunctionType
from typing import Any

from dbdyno.model.errors import nearest
from dbdyno.workload.compiler.assembler import NOWHERE, Label
from dbdyno.workload.compiler.frame import Frame
from dbdyno.workload.compiler.functions import Function, NoSource, function_of
from dbdyno.workload.compiler.sqltexts import Piece, SqlTexts
from dbdyno.workload.compiler.values import (
    Bound,
    Const,
    Db,
    Marks,
    Method,
    Register,
    Stream,
    Super,
    Value,
    foldable,
)
from dbdyno.workload.sql import marks

#: Builtins of one value, and the instruction of each.
_OF_ONE: dict[Any, str] = {len: "len", abs: "abs", int: "int", float: "float", str: "str", sum: "sum"}
_BUILTINS = ("abs", "enumerate", "float", "int", "len", "max", "min", "range", "round", "sorted", "str", "sum")
#: Parameters of the methods of a stream, as the stub file names them, and their instructions.
_RAND: dict[str, tuple[str, tuple[str, ...]]] = {
    "uniform": ("uniform", ("a", "b")),
    "pick": ("pick", ("a", "b")),
    "real": ("real", ()),
    "chance": ("chance", ("p",)),
    "exponential": ("exponential", ("mean",)),
    "nurand": ("nurand", ("A", "x", "y", "C")),
    "text": ("rand_text", ("lo", "hi", "alphabet")),
    "template": ("rand_template", ("pattern",)),
    "permute": ("permute", ("n", "i")),
}
_BLOCK_ARGUMENTS = ("nurand", "text")  # take consecutive registers


class Calls(SqlTexts):
    """The part of the compiler that knows what can be called."""

    def call(self, node: ast.Call, into: int | None, *, used: bool, parent: ast.AST | None = None) -> Value:
        """Compile a call (see :class:`Core`)."""
        callee = self._callee(node.func)
        self.here(node)
        match callee:
            case Method(owner=Db()):
                return self.statement_call(node, callee.name, into, used=used, parent=parent)
            case Method(owner=Stream() as stream):
                return self._drawn(node, stream, callee.name, into)
            case Method():
                return self._of_list(node, callee)
            case Bound():
                return self.inline(node, callee, into, used=used)
            case Const():
                return self._of_object(node, callee, into, used=used)
        raise self.refused(node, f"{ast.unparse(node.func)} is not a function")

    def _callee(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name) and node.id == "super" and "super" not in self.frame.function.locals:
            return Const(super)
        return self.expr(node)

    def statement_call(
        self, node: ast.Call, name: str, into: int | None, *, used: bool, parent: ast.AST | None
    ) -> Value:
        """Compile ``db.NAME(…)``."""
        raise NotImplementedError

    # --- functions of the language ------------------------------------------------------------------------------

    def _of_object(self, node: ast.Call, callee: Const, into: int | None, *, used: bool) -> Value:
        target = callee.value
        if target is super:
            return self._super(node)
        if target is marks:
            return self._marks(node)
        if isinstance(target, (FunctionType, staticmethod)) and getattr(target, "__dbdyno_builtin__", "") == "decimal":
            return self._emit_values(node, "decimal", into, 2)
        if isinstance(target, FunctionType):
            return self.inline(node, callee, into, used=used)
        if target in (Decimal, datetime, timedelta):
            return self._constructed(node, target)
        if target in (range, enumerate):
            raise self.refused(node, f"{target.__name__}() outside a for: write for … in {target.__name__}(…)")
        try:
            word = _OF_ONE.get(target)
        except TypeError:
            word = None
        if word is not None:
            return self._of_one(node, target, word, into)
        if target in (min, max):
            return self._extreme(node, target, into)
        if target is round:
            return self._round(node, into)
        if target is sorted:
            return self._sorted(node, into)
        name = getattr(target, "__name__", ast.unparse(node.func))
        raise self.refused(
            node,
            f"{ast.unparse(node.func)}() cannot be called here{nearest(name, _BUILTINS)};"
            " what is constant can be computed in validate() and kept as self.NAME",
        )

    def _plain(self, node: ast.Call, least: int, most: int) -> list[ast.expr]:
        """The arguments of a builtin: positional ones only."""
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.refused(node, f"{ast.unparse(node.func)}() takes plain arguments here, without names and *")
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.refused(node, f"{ast.unparse(node.func)}() takes {wanted} arguments, not {len(node.args)}")
        return node.args

    def _folded(self, function: Callable[..., Any], *values: Value) -> Const | None:
        constants = [value for value in values if isinstance(value, Const)]
        if len(constants) != len(values):
            return None
        try:
            result = function(*(constant.value for constant in constants))
        except Exception:
            return None
        return Const(result) if foldable(result) else None

    def _of_one(self, node: ast.Call, target: Callable[..., Any], word: str, into: int | None) -> Value:
        if word in ("int", "str", "float") and not node.args:
            raise self.refused(node, f"{word}() takes one argument")
        argument = self._plain(node, 1, 1)[0]
        if isinstance(argument, ast.Call):
            value = self.call(argument, None, used=True, parent=node)
        else:
            value = self.expr(argument)
        folded = self._folded(target, value)
        if folded is not None:
            return folded
        source = self.source(value, argument)
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, source)
        return Register(register)

    def _emit_values(self, node: ast.Call, word: str, into: int | None, count: int) -> Value:
        sources = [self.operand(argument) for argument in self._plain(node, count, count)]
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, *sources)
        return Register(register)

    def _extreme(self, node: ast.Call, target: Any, into: int | None) -> Value:
        arguments = self._plain(node, 1, 255)
        word = target.__name__
        values = [self.expr(argument) for argument in arguments]
        folded = self._folded(target, *values)
        if folded is not None:
            return folded
        if len(values) == 1:
            source, register = self.source(values[0], node), self.dest(into)
            self.block.emit(f"{word}_of", register, source)
            return Register(register)
        base = self.block.take(len(values))
        for n, value in enumerate(values):
            self.move(base + n, self.source(value, arguments[n]))
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, base, len(values))
        return Register(register)

    def _round(self, node: ast.Call, into: int | None) -> Value:
        arguments = list(node.args)
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if set(keywords) == {"ndigits"} and len(arguments) == 1:
            arguments.append(keywords["ndigits"])
        elif keywords or not 1 <= len(arguments) <= 2:
            raise self.refused(node, "round() is written round(x) or round(x, places)")
        values = [self.expr(argument) for argument in arguments]
        folded = self._folded(round, *values)
        if folded is not None:
            return folded
        sources = [self.source(value, node) for value in values]
        self.here(node)
        register = self.dest(into)
        self.block.emit("round", register, sources[0], sources[1] if len(sources) == 2 else NOWHERE)
        return Register(register)

    def _sorted(self, node: ast.Call, into: int | None) -> Value:
        descending = False
        for keyword in node.keywords:
            value = self.expr(keyword.value)
            if keyword.arg != "reverse" or not isinstance(value, Const):
                raise self.refused(
                    node, "sorted() is written sorted(x) or sorted(x, reverse=True); sort tuples for a key"
                )
            descending = bool(value.value)
        if len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
            raise self.refused(node, "sorted() takes one list")
        source = self.operand(node.args[0])
        self.here(node)
        register = self.dest(into)
        self.block.emit("sorted", register, source, s=int(descending))
        return Register(register)

    def _marks(self, node: ast.Call) -> Value:
        count = self.expr(self._plain(node, 1, 1)[0])
        if isinstance(count, Const):
            try:
                return Const(marks(count.value))
            except (ValueError, TypeError) as error:
                raise self.refused(node, str(error)) from None
        if not isinstance(count, Register):
            raise self.refused(node, "marks(n) takes an integer")
        return Marks(count)

    def _constructed(self, node: ast.Call, target: Any) -> Value:
        arguments = [self.expr(argument) for argument in node.args]
        named = {keyword.arg: self.expr(keyword.value) for keyword in node.keywords if keyword.arg}
        values = [*arguments, *named.values()]
        if all(isinstance(value, Const) for value in values) and len(named) == len(node.keywords):
            try:
                return Const(
                    target(
                        *(value.value for value in arguments if isinstance(value, Const)),
                        **{name: value.value for name, value in named.items() if isinstance(value, Const)},
                    )
                )
            except Exception as error:
                raise self.refused(node, f"{ast.unparse(node)}: {error}") from None
        raise self.refused(
            node,
            f"{target.__name__}() of a value known only at run time: decimals come from decimal(x, scale),"
            " times from db.now()",
        )

    def _of_list(self, node: ast.Call, callee: Method) -> Value:
        if callee.name != "append":
            raise self.refused(
                node,
                f"the method {callee.name}() of a value: lists have append(); strings len(), slices, +, *, in,"
                " and f-strings",
            )
        if isinstance(callee.owner, Const):
            raise self.refused(
                node, "a list of the module or of self is a constant; copy it with [x for x in it] first"
            )
        value = self.operand(self._plain(node, 1, 1)[0])
        self.here(node)
        assert isinstance(callee.owner, Register)
        self.block.emit("append", callee.owner.index, value)
        return Const(None)

    # --- random streams -------------------------------------------------------------------------------------------

    def _drawn(self, node: ast.Call, stream: Stream, name: str, into: int | None) -> Value:
        if name == "at":
            return self.stream_at(node, stream, self.block.take_stream())
        word, names = _RAND[name]
        arguments = self._named(node, name, names)
        if name in _BLOCK_ARGUMENTS:
            base = self.block.take(len(names))
            for n, argument in enumerate(arguments):
                self.into(argument, base + n)
            operands = [base]
        else:
            operands = [self.operand(argument) for argument in arguments]
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, *operands, s=stream.slot)
        return Register(register)

    def stream_at(self, node: ast.Call, stream: Stream, slot: int) -> Stream:
        """``rand.at(table, unit)`` as the stream of that slot."""
        table, unit = self._named(node, "at", ("table", "unit"))
        name = self.expr(table)
        if not isinstance(name, Const) or not isinstance(name.value, str):
            raise self.refused(node, "the table of rand.at(table, unit) must be a constant string")
        source = self.operand(unit)
        self.here(node)
        self.block.emit("at", stream.slot, self.constants.name(name.value), source, s=slot)
        return Stream(slot)

    def _named(self, node: ast.Call, method: str, names: tuple[str, ...]) -> list[ast.expr]:
        found = dict(zip(names, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in found:
                found[keyword.arg] = keyword.value
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if (
            len(node.args) > len(names)
            or set(found) != set(names)
            or starred
            or len(found) != len(node.args) + len(node.keywords)
        ):
            raise self.refused(node, f"rand.{method} is written rand.{method}({', '.join(names)})")
        return [found[name] for name in names]

    # --- functions compiled into their caller ---------------------------------------------------------------------

    def _super(self, node: ast.Call) -> Value:
        cls = self.frame.cls
        if node.args or node.keywords or cls is None:
            raise self.refused(node, "super() is written without arguments, in a method")
        return Super(cls)

    def _function(self, node: ast.Call, callee: Value) -> tuple[Function, list[Value]]:
        """The function behind a callee and its first arguments."""
        target = callee.function if isinstance(callee, Bound) else callee.value if isinstance(callee, Const) else None
        first: list[Value] = [callee.owner] if isinstance(callee, Bound) else []
        if isinstance(target, staticmethod):
            target, first = target.__func__, []
        name = ast.unparse(node.func)
        if not isinstance(target, FunctionType):
            raise self.refused(
                node, f"{name}() is not a plain function: decorated and compiled functions cannot be called"
            )
        if any(frame.function.function is target for frame in self.frames):
            raise self.refused(node, f"{name}() calls itself: write the recursion as a loop")
        try:
            function = function_of(target)
        except NoSource as error:
            raise self.refused(node, f"{error} has no source to compile") from None
        arguments = function.node.args
        if arguments.vararg or arguments.kwarg:
            raise self.refused(node, f"{name}() takes * or **: name its parameters, or pass a list")
        return function, first

    def _enter(self, node: ast.Call, function: Function, first: list[Value]) -> Frame:
        """A frame with the arguments bound: compiled in the caller, before."""
        name = ast.unparse(node.func)
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            raise self.refused(node, f"* in the call of {name}(): pass the values one by one, or as a list")
        signature = inspect.signature(function.function)
        named: dict[str | None, Any] = {keyword.arg: keyword.value for keyword in node.keywords}
        try:
            bound = signature.bind(*first, *node.args, **named)  # type: ignore[arg-type]
        except TypeError as error:
            raise self.refused(node, f"{name}(): {error}") from None
        values: dict[str, Value] = {}
        for parameter in signature.parameters.values():
            given = bound.arguments.get(parameter.name, parameter.default)
            if not isinstance(given, ast.expr):
                values[parameter.name] = given if parameter.name in bound.arguments else Const(given)
            elif parameter.name in function.sql_names:
                values[parameter.name] = self.sql(given)
            else:
                values[parameter.name] = self.expr(given)
        for parameter_name in function.stores:
            value = values.get(parameter_name)
            if isinstance(value, (Const, Register)):  # it is assigned to: a variable of its own
                register = self.block.take()
                self.move(register, self.source(value, node))
                values[parameter_name] = Register(register)
            elif value is not None:
                raise self.refused(node, f"{name}() assigns to its parameter {parameter_name}, which is no value")
        return Frame(
            function,
            file=self.constants.file(short_path(function.path)),
            cls=defining_class(type(self.setting.workload), function.function),
            outermost=False,
            result=None,
            end=Label(),
            bindings=values,
            bound=set(values),
        )

    def inline(self, node: ast.Call, callee: Value, into: int | None, *, used: bool) -> Value:
        """Compile a function into its caller (see :class:`Core`)."""
        function, first = self._function(node, callee)
        frame = self._enter(node, function, first)
        only = function.body[0] if len(function.body) == 1 else None
        if isinstance(only, ast.Return):
            value: Value = self._within(frame, lambda: self._returned(only, into, used=used), node)
            return value
        frame.result = self.dest(into) if used else None
        self._within(frame, self.function_body, node)
        return Const(None) if frame.result is None else Register(frame.result)

    def _returned(self, only: ast.Return, into: int | None, *, used: bool) -> Value:
        if only.value is None:
            return Const(None)
        return self.expr(only.value, into, used=used)

    def function_body(self) -> Value:
        """The statements of the innermost frame, with its variables in new registers."""
        raise NotImplementedError

    def _within(self, frame: Frame, compile: Callable[[], Any], node: ast.AST) -> Any:
        streams = self.block.streams_top
        self.frames.append(frame)
        try:
            return compile()
        finally:
            self.frames.pop()
            if not isinstance(frame.function.body[0], ast.Return):
                self.block.streams_top = streams
            self.here(node)

    def returned_pieces(self, node: ast.Call) -> list[Piece] | None:
        """See :class:`SqlTexts`."""
        callee = self._callee(node.func)
        if isinstance(callee, Const) and not isinstance(callee.value, FunctionType):
            return None
        if not isinstance(callee, (Bound, Const)):
            return None
        function, first = self._function(node, callee)
        only = function.body[0] if len(function.body) == 1 else None
        if not isinstance(only, ast.Return) or not isinstance(only.value, (ast.JoinedStr, ast.BinOp, ast.Constant)):
            return None
        value = only.value
        if isinstance(value, ast.BinOp) and not _textual(value):
            return None
        if isinstance(value, ast.Constant) and not isinstance(value.value, str):
            return None
        frame = self._enter(node, function, first)
        found: list[Piece] = self._within(frame, lambda: self._pieces(value), node)
        return found


def _textual(node: ast.expr) -> bool:
    """Whether a sum begins with a string."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _textual(node.left)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def short_path(path: str) -> str:
    """A file's name without the folders that differ between machines."""
    parts = path.replace("\\", "/").split("/")
    if "dbdyno" not in parts[:-1]:
        return parts[-1]
    package = len(parts) - 2 - parts[-2::-1].index("dbdyno")  # the last one: a clone's folder has that name, too
    return "/".join(parts[package:])


def defining_class(of: type, function: FunctionType) -> type | None:
    """The class whose method ``function`` is."""
    for base in of.__mro__:
        for member in vars(base).values():
            if member is function or getattr(member, "__func__", None) is function:
                return base
    return None
