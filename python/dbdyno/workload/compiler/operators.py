"""Operators: arithmetic, comparison, and, or, not, and the choice between two values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from dbdyno.workload.compiler.assembler import Label
from dbdyno.workload.compiler.frame import Core
from dbdyno.workload.compiler.values import INT_MAX, INT_MIN, Const, Register, Value, foldable

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift),
}
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Invert: ("invert", operator.invert),
    ast.Not: ("not", operator.not_),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
}


class Operators(Core):
    """The part of the compiler that combines values and decides by them."""

    def _binary(self, node: ast.BinOp, into: int | None) -> Value:
        left, right = self.expr(node.left), self.expr(node.right)
        return self.operate(node, node.op, left, right, into)

    def operate(
        self, node: ast.AST, sign: ast.operator, left: Value, right: Value, into: int | None, *, in_place: bool = False
    ) -> Value:
        """``left sign right``, folded when both are constants."""
        if type(sign) not in _BINARY:
            raise self.refused(node, "the operator @ is not in the language")
        word, function = _BINARY[type(sign)]
        if isinstance(left, Const) and isinstance(right, Const):
            found = folded(function, left, right)
            if found is not None:
                return found
        operands = self.source(left, node), self.source(right, node)
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, *operands, s=int(in_place and word in ("add", "mul")))
        return Register(register)

    def _unary(self, node: ast.UnaryOp, into: int | None) -> Value:
        word, function = _UNARY[type(node.op)]
        value = self.expr(node.operand)
        if isinstance(value, Const):
            found = folded(function, value)
            if found is not None:
                return found
        source, register = self.source(value, node), self.dest(into)
        self.here(node)
        self.block.emit(word, register, source)
        return Register(register)

    def _compare(self, node: ast.Compare, into: int | None) -> Value:
        if isinstance(node.left, ast.Call):
            left = self.call(node.left, None, used=True, parent=node)
        else:
            left = self.expr(node.left)
        if len(node.ops) == 1:
            return self._compared(node, node.ops[0], left, self.expr(node.comparators[0]), into)
        result, end = self.block.take(), Label()
        kept: set[str] | None = None
        for n, (sign, comparator) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.expr(comparator)
            if n == 0:  # the others are only computed when the first holds
                kept = None if self.frame.bound is None else set(self.frame.bound)
            self.move(result, self.source(self._compared(node, sign, left, right, result), node))
            if n < len(node.ops) - 1:
                self.block.emit("jump_unless", result, end)
            left = right
        self.block.set(end)
        self.frame.bound = kept
        return Register(result)

    def _compared(self, node: ast.Compare, sign: ast.cmpop, left: Value, right: Value, into: int | None) -> Value:
        if isinstance(sign, (ast.Is, ast.IsNot)):
            return self._is_none(node, left, right, isinstance(sign, ast.Is), into)
        if isinstance(sign, (ast.In, ast.NotIn)):
            if isinstance(left, Const) and isinstance(right, Const) and isinstance(right.value, (dict, set, frozenset)):
                return Const((left.value in right.value) == isinstance(sign, ast.In))
            word, function = "contains", lambda one, other: one in other
        else:
            word, function = _COMPARE[type(sign)]
        negated = isinstance(sign, ast.NotIn)
        if isinstance(left, Const) and isinstance(right, Const):
            found = folded(function, left, right)
            if found is not None:
                return Const(not found.value) if negated else found
        operands = self.source(left, node), self.source(right, node)
        self.here(node)
        register = self.dest(into)
        self.block.emit(word, register, *operands, s=int(negated))
        return Register(register)

    def _is_none(self, node: ast.Compare, left: Value, right: Value, positive: bool, into: int | None) -> Value:
        for value, none in ((left, right), (right, left)):
            if isinstance(none, Const) and none.value is None:
                if isinstance(value, Const):
                    return Const((value.value is None) == positive)
                source, register = self.source(value, node), self.dest(into)
                self.block.emit("is_none" if positive else "is_not_none", register, source)
                return Register(register)
        raise self.refused(node, "is: only None is tested with it; compare values with ==")

    def _boolean(self, node: ast.BoolOp) -> Value:
        result, end = self.block.take(), Label()
        stop = "jump_unless" if isinstance(node.op, ast.And) else "jump_if"
        kept = self.frame.bound
        emitted = False
        for n, part in enumerate(node.values):
            last = n == len(node.values) - 1
            value = self.expr(part, result)
            if isinstance(value, Const) and not last:
                if bool(value.value) == isinstance(node.op, ast.And):
                    continue  # neither decides nor is the result
                last = True
            if last and not emitted:
                self.block.set(end)
                return value
            self.move(result, self.source(value, part))
            if last:
                break
            self.block.emit(stop, result, end)
            emitted = True
            kept = None if self.frame.bound is None else set(self.frame.bound)
        self.block.set(end)
        self.frame.bound = kept
        return Register(result)

    def _either_value(self, node: ast.IfExp, into: int | None) -> Value:
        otherwise, end = Label(), Label()
        taken = self.branch(node.test, otherwise, False)
        if taken is not None:
            self.block.set(otherwise)
            return self.expr(node.orelse if taken else node.body, into)
        register = self.dest(into)
        kept = None if self.frame.bound is None else set(self.frame.bound)
        self.into(node.body, register)
        self.block.emit("jump", end)
        self.block.set(otherwise)
        self.frame.bound = None if kept is None else set(kept)
        self.into(node.orelse, register)
        self.block.set(end)
        self.frame.bound = kept
        return Register(register)

    def branch(self, node: ast.expr, target: Label, when: bool) -> bool | None:
        """Jump by the truth of ``node`` (see :class:`Core`)."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.branch(node.operand, target, not when)
        if isinstance(node, ast.BoolOp):
            if isinstance(node.op, ast.And) != when:
                return self._any_jumps(node.values, target, when)
            return self._last_jumps(node.values, target, when)
        if isinstance(node, ast.Call):  # only its truth is asked, as with not
            asked = ast.UnaryOp(op=ast.Not(), operand=node)
            value = self.call(node, None, used=True, parent=asked)
        else:
            value = self.expr(node)
        if isinstance(value, Const):
            if bool(value.value) == when:
                self.block.emit("jump", target)
                return True
            return False
        self.here(node)
        self.block.emit("jump_if" if when else "jump_unless", self.source(value, node), target)
        return None

    def _any_jumps(self, parts: list[ast.expr], target: Label, when: bool) -> bool | None:
        certain: bool | None = False
        kept: set[str] | None = None
        for n, part in enumerate(parts):
            jumps = self.branch(part, target, when)
            if n == 0:
                kept = None if self.frame.bound is None else set(self.frame.bound)
            if jumps is True:
                return True
            if jumps is None:
                certain = None
        self.frame.bound = kept
        return certain

    def _last_jumps(self, parts: list[ast.expr], target: Label, when: bool) -> bool | None:
        skip = Label()
        certain = True
        kept: set[str] | None = None
        for n, part in enumerate(parts[:-1]):
            skips = self.branch(part, skip, not when)
            if n == 0:
                kept = None if self.frame.bound is None else set(self.frame.bound)
            if skips is True:
                self.block.set(skip)
                self.frame.bound = kept
                return False
            if skips is None:
                certain = False
        jumps = self.branch(parts[-1], target, when)
        self.block.set(skip)
        self.frame.bound = kept
        if jumps is False:
            return False
        return jumps if certain else None


def folded(function: Callable[..., Any], *operands: Const) -> Const | None:
    """The result, when Python has one and the machine would have the same."""
    if not all(foldable(operand.value) for operand in operands):
        return None
    values = [operand.value for operand in operands]
    if any(isinstance(value, int) and abs(value) > 10_000 for value in values) and function in (
        operator.pow,
        operator.lshift,
    ):
        return None
    if function is operator.mul and any(isinstance(value, (str, bytes, tuple)) for value in values):
        size = max((len(value) for value in values if isinstance(value, (str, bytes, tuple))), default=0)
        if size * max((value for value in values if isinstance(value, int)), default=0) > 1_000_000:
            return None
    try:
        result = function(*values)
    except Exception:
        return None  # at run time, and only if it is reached
    if isinstance(result, int) and not INT_MIN <= result <= INT_MAX:
        return None
    return Const(result) if foldable(result) else None
