"""Expressions: names, operators, comparisons, f-strings, lists."""

from __future__ import annotations

import ast
import re
from typing import Any

from dbdyno.model.errors import nearest
from dbdyno.workload.compiler.operators import Operators, folded
from dbdyno.workload.compiler.problems import OUTSIDE
from dbdyno.workload.compiler.values import (
    Bound,
    Const,
    Db,
    DbHas,
    DbState,
    Method,
    Register,
    Stream,
    Super,
    Value,
    foldable,
)
from dbdyno.workload.language import State

_FORMATS = (
    (re.compile(r"0(\d{1,4})d"), "zeros"),
    (re.compile(r"(\d{0,4})d"), "blanks"),
    (re.compile(r"\.(\d{1,4})f"), "fixed"),
)
_WIDTH_LIMIT = 1000
_DB = (
    "row", "query", "execute", "batch", "pipeline", "begin", "commit", "now", "ack", "has", "for_update",
    "terminal", "terminals", "state",
)  # fmt: skip
_RAND = ("uniform", "pick", "real", "chance", "exponential", "nurand", "text", "template", "permute", "at")


class Expressions(Operators):
    """The part of the compiler that computes values."""

    def expr(self, node: ast.expr, into: int | None = None, *, used: bool = True) -> Value:
        """Compile an expression (see :class:`Core`)."""
        self.here(node)
        match node:
            case ast.Constant():
                if isinstance(node.value, complex) or node.value is Ellipsis:
                    raise self.refused(node, f"{node.value!r} is not a value of the language")
                return Const(node.value)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self.attribute(node, into)
            case ast.Call():
                return self.call(node, into, used=used)
            case ast.BinOp():
                return self._binary(node, into)
            case ast.UnaryOp():
                return self._unary(node, into)
            case ast.Compare():
                return self._compare(node, into)
            case ast.BoolOp():
                return self._boolean(node)
            case ast.IfExp():
                return self._either_value(node, into)
            case ast.JoinedStr():
                return self._formatted(node, into)
            case ast.Tuple():
                return self._tuple(node, into)
            case ast.List():
                base = self._elements(node.elts)
                register = self.dest(into)
                self.block.emit("list", register, base, len(node.elts))
                return Register(register)
            case ast.Subscript():
                return self._subscript(node, into)
            case ast.ListComp():
                return self.comprehension(node)
            case ast.Starred():
                raise self.refused(
                    node, "a * here: only the values of a statement may be starred, db.query(sql, *values)"
                )
        outside = OUTSIDE.get(type(node), f"{type(node).__name__} is not in the language")
        raise self.refused(node, outside)

    def comprehension(self, node: ast.ListComp) -> Value:
        """Compile a list comprehension."""
        raise NotImplementedError

    # --- names --------------------------------------------------------------------------------------------------

    def name(self, node: ast.Name) -> Value:
        """What a name stands for here."""
        frame, name = self.frame, node.id
        for scope in reversed(frame.scopes):
            if name in scope:
                return scope[name]
        if name in frame.function.locals:
            known = frame.bindings.get(name)
            if known is None or (frame.bound is not None and name not in frame.bound and not self._checkable(name)):
                raise self.refused(node, f"{name} is used before it has a value; assign it first")
            if frame.bound is not None and name not in frame.bound and isinstance(known, Register):
                self.block.emit("bound", known.index, self.constants.name(name))
                frame.bound.add(name)
            return known
        try:
            return Const(frame.function.outside(name))
        except NameError:
            words = [*frame.function.locals, *frame.function.function.__globals__]
            raise self.refused(
                node, f"the name {name} is not defined{nearest(name, words) if len(words) < 200 else ''}"
            ) from None

    def _checkable(self, name: str) -> bool:
        """Whether the machine can tell that a variable has no value yet."""
        return name in self.frame.function.nested and isinstance(self.frame.bindings.get(name), Register)

    def attribute(self, node: ast.Attribute, into: int | None) -> Value:
        """``owner.name``: an option, a constant of a module, a part of ``db``, a method."""
        owner, name = self.expr(node.value), node.attr
        match owner:
            case Db():
                return self._of_db(node, name, into)
            case DbHas():
                return self._capability(node, name, into)
            case DbState():
                register = self.dest(into)
                self.block.emit("state_get", register, self.state_slot(node, name))
                return Register(register)
            case Stream():
                if name not in _RAND:
                    raise self.refused(node, f"a random stream has no {name}{nearest(name, _RAND)}")
                return Method(owner, name)
            case Super():
                function = _after(type(self.setting.workload), owner.cls, name)
                if function is None:
                    raise self.refused(node, f"no base of {owner.cls.__name__} has a method {name}")
                return Bound(function, Const(self.setting.workload))
            case Register():
                return Method(owner, name)
            case Const():
                return self._of_constant(node, owner, name)
        raise self.refused(node, f"{ast.unparse(node)} is not in the language")

    def _of_db(self, node: ast.Attribute, name: str, into: int | None) -> Value:
        match name:
            case "has":
                return DbHas()
            case "state":
                return DbState()
            case "for_update":
                return Const(self.setting.for_update)
            case "terminals":
                return self._unknown(into) if self.setting.capabilities is None else Const(self.setting.terminals)
            case "terminal":
                register = self.dest(into)
                self.block.emit("terminal", register)
                return Register(register)
        if name not in _DB:
            raise self.refused(node, f"db has no {name}{nearest(name, _DB)}")
        return Method(Db(), name)

    def _capability(self, node: ast.Attribute, name: str, into: int | None) -> Value:
        capabilities = self.setting.capabilities
        if capabilities is None:
            return self._unknown(into)
        if not hasattr(capabilities, name):
            known = [word for word in dir(capabilities) if not word.startswith("_")]
            raise self.refused(node, f"there is no capability db.has.{name}{nearest(name, known)}")
        return Const(getattr(capabilities, name))

    def _unknown(self, into: int | None) -> Value:
        """A value that only a target decides, while a workload is merely checked."""
        register = self.dest(into)
        self.block.emit("terminal", register)
        return Register(register)

    def state_slot(self, node: ast.AST, name: str) -> int:
        """Number of ``db.state.name``."""
        names = list(self.setting.states)
        if name not in names:
            raise self.refused(
                node,
                f"db.state.{name} is not declared; write {name} = state(DEFAULT) in the workload class"
                + (nearest(name, names) if names else ""),
            )
        return names.index(name)

    def _of_constant(self, node: ast.Attribute, owner: Const, name: str) -> Value:
        value = owner.value
        if isinstance(value, list):
            return Method(owner, name)
        missing = object()
        found = getattr(value, name, missing)
        if found is missing:
            if value is self.setting.workload:
                words = [word for word in dir(value) if not word.startswith("__")]
                raise self.refused(
                    node, f"self.{name} does not exist{nearest(name, words) if len(words) < 200 else ''}"
                )
            raise self.refused(node, f"{ast.unparse(node.value)} has no {name}")
        if isinstance(found, State):
            raise self.refused(node, f"{name} is a state: read it as db.state.{name}")
        if getattr(found, "__self__", None) is value and hasattr(found, "__func__"):
            return Bound(found.__func__, owner)
        return Const(found)

    # --- strings, lists ---------------------------------------------------------------------------------------------

    def _formatted(self, node: ast.JoinedStr, into: int | None) -> Value:
        fragments: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                fragments.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.expr(part.value)
            if isinstance(value, Const) and foldable(value.value):
                fragments.append(self.formatted_constant(part, value))
                continue
            spec, n = self.format_of(part)
            fragments.append({"value": self.source(value, part.value), "spec": spec, "n": n})
        if all(isinstance(fragment, str) for fragment in fragments):
            return Const("".join(fragments))
        self.here(node)
        register = self.dest(into)
        self.block.fstrings.append(fragments)
        self.block.emit("fstring", register, len(self.block.fstrings) - 1)
        return Register(register)

    def formatted_constant(self, part: ast.FormattedValue, value: Const) -> str:
        """``{value:spec}`` of a constant."""
        if part.conversion != -1:
            raise self.refused(part, "a conversion (!r, !s, !a) in an f-string: write {x}, {x:0Nd} or {x:.Nf}")
        spec = self._spec_text(part)
        if (
            value.value is not None
            and not isinstance(value.value, (bool, int, float, str))
            and not foldable(value.value)
        ):
            raise self.refused(
                part, f"a {type(value.value).__name__} in an f-string; numbers and strings can stand there"
            )
        try:
            return format(value.value, spec)
        except (ValueError, TypeError) as error:
            raise self.refused(part, f"{ast.unparse(part.value)} in an f-string: {error}") from None

    def _spec_text(self, part: ast.FormattedValue) -> str:
        if part.format_spec is None:
            return ""
        value = self.expr(part.format_spec)
        if not isinstance(value, Const):
            raise self.refused(part, "a format made at run time: write {x}, {x:0Nd} or {x:.Nf} with a constant N")
        return str(value.value)

    def format_of(self, part: ast.FormattedValue) -> tuple[str, int]:
        """The format of a hole (see :class:`SqlTexts`)."""
        if part.conversion != -1:
            raise self.refused(part, "a conversion (!r, !s, !a) in an f-string: write {x}, {x:0Nd} or {x:.Nf}")
        text = self._spec_text(part)
        if not text:
            return "plain", 0
        for pattern, word in _FORMATS:
            match = pattern.fullmatch(text)
            if match and int(match[1] or 0) <= _WIDTH_LIMIT:
                return word, int(match[1] or 0)
        raise self.refused(part, f"the format {text!r}: write {{x}}, {{x:0Nd}} or {{x:.Nf}} (N up to {_WIDTH_LIMIT})")

    def _elements(self, nodes: list[ast.expr]) -> int:
        """Compile values into consecutive registers; the first one."""
        base = self.block.take(len(nodes)) if nodes else self.block.top
        for n, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                raise self.refused(node, "a * in a list: append in a loop, or join lists with +")
            self.into(node, base + n)
        return base

    def _tuple(self, node: ast.Tuple, into: int | None) -> Value:
        if all(isinstance(element, ast.Constant) for element in node.elts):
            return Const(tuple(element.value for element in node.elts if isinstance(element, ast.Constant)))
        base = self._elements(node.elts)
        register = self.dest(into)
        self.block.emit("tuple", register, base, len(node.elts))
        return Register(register)

    def _subscript(self, node: ast.Subscript, into: int | None) -> Value:
        if isinstance(node.value, ast.Call):
            container = self.call(node.value, None, used=True, parent=node)
        else:
            container = self.expr(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(node, node.slice, container, into)
        index = self.expr(node.slice)
        if isinstance(container, Const) and isinstance(index, Const):
            try:
                return Const(container.value[index.value])
            except (TypeError, KeyError, IndexError):
                if isinstance(container.value, dict):
                    raise self.refused(node, f"{ast.unparse(node)} does not exist") from None
        if isinstance(container, Const) and isinstance(container.value, dict):
            raise self.refused(node, "a dict with a key known only at run time: use a list, or if and elif")
        operands = self.source(container, node.value), self.source(index, node.slice)
        self.here(node)
        register = self.dest(into)
        self.block.emit("index", register, *operands)
        return Register(register)

    def _slice(self, node: ast.Subscript, part: ast.Slice, container: Value, into: int | None) -> Value:
        if part.step is not None:
            raise self.refused(node, "a slice with a step: write x[i:j]")
        ends = [Const(None) if end is None else self.expr(end) for end in (part.lower, part.upper)]
        low, high = ends
        if isinstance(container, Const) and isinstance(low, Const) and isinstance(high, Const):
            found = folded(lambda whole: whole[low.value : high.value], container)
            if found is not None:
                return found
        base = self.block.take(2)
        for n, end in enumerate(ends):
            self.move(base + n, self.source(end, node))
        source = self.source(container, node.value)
        self.here(node)
        register = self.dest(into)
        self.block.emit("slice", register, source, base)
        return Register(register)


def _after(of: type, cls: type, name: str) -> Any:
    """The attribute that ``super().name`` in ``cls`` finds for an instance of ``of``."""
    order = of.__mro__
    for base in order[order.index(cls) + 1 :]:
        if name in vars(base):
            return vars(base)[name]
    return None
