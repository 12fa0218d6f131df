"""Statements: assignment, if, loops, with, return, raise."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dbdyno.workload.compiler.assembler import Label
from dbdyno.workload.compiler.dbcalls import DbCalls
from dbdyno.workload.compiler.expressions import Expressions
from dbdyno.workload.compiler.frame import Loop
from dbdyno.workload.compiler.problems import OUTSIDE, Refused
from dbdyno.workload.compiler.values import (
    Const,
    Db,
    DbState,
    Marks,
    Method,
    Register,
    SqlText,
    Stream,
    Value,
)
from dbdyno.workload.language import Rollback


class Statements(Expressions, DbCalls):
    """The part of the compiler that follows a function from line to line."""

    def function_body(self) -> Value:
        """Compile the innermost frame's statements (see :class:`Calls`)."""
        frame, function = self.frame, self.frame.function
        for name in sorted(function.stores):
            if name not in frame.bindings:
                register = Register(self.block.take())
                frame.bindings[name] = register
                if name in function.nested and not frame.outermost:
                    self.block.emit("unset", register.index)
        self.body(function.body)
        if frame.bound is not None:
            self._return(None, function.node)
        self.block.set(frame.end)
        return Const(None)

    def body(self, statements: list[ast.stmt]) -> None:
        """Compile statements (see :class:`Core`)."""
        for statement in statements:
            if self.frame.bound is None:
                return  # never reached
            top = self.block.top
            self.here(statement)
            try:
                self.statement(statement)
            except Refused as refused:
                self.note(refused)
                if self.frame.bound is not None:  # not one problem more for each use of what it would assign
                    self.frame.bound |= {
                        name.id
                        for name in ast.walk(statement)
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                    }
            self.block.top = top

    def statement(self, node: ast.stmt) -> None:
        """Compile one statement."""
        match node:
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                if node.value is not None:
                    same = ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)
                    self._assign(same)
            case ast.AugAssign():
                self._augmented(node)
            case ast.Expr():
                if not isinstance(node.value, ast.Constant):
                    self.expr(node.value, used=False)
            case ast.If():
                self._if(node)
            case ast.For():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.Break():
                self._leave(node, self.frame.loops, again=False)
            case ast.Continue():
                self._leave(node, self.frame.loops, again=True)
            case ast.Return():
                self._return(node.value, node)
            case ast.Raise():
                self._raise(node)
            case ast.With():
                self._with(node)
            case ast.Pass():
                pass
            case _:
                raise self.refused(node, OUTSIDE.get(type(node), f"{type(node).__name__} is not in the language"))

    # --- assignment -------------------------------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name):
            self._assign_name(node, target)
            return
        pairs = isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, ast.Tuple)
        if len(node.targets) == 1 and pairs:
            assert isinstance(target, (ast.Tuple, ast.List))
            assert isinstance(node.value, ast.Tuple)
            if len(target.elts) == len(node.value.elts) and not any(
                isinstance(element, ast.Starred) for element in [*target.elts, *node.value.elts]
            ):
                self._parallel(target.elts, node.value.elts)
                return
        value = self.expr(node.value)
        for each in node.targets:
            self._store(each, value)

    def _assign_name(self, node: ast.Assign, target: ast.Name) -> None:
        frame, name = self.frame, target.id
        if name in frame.function.sql_names:
            register = self._variable(target)
            self.sql_into(node.value, register)
            frame.bindings[name] = SqlText(register=register)
            self._now_bound(name)
            return
        into = self._variable(target) if isinstance(frame.bindings.get(name), Register) else None
        if isinstance(node.value, ast.Call):
            value = self.call(node.value, into, used=True, parent=node)
        else:
            value = self.expr(node.value, into)
        if isinstance(value, Stream) and value.slot and not isinstance(node.value, ast.Call):
            raise self.refused(node, "a second name for a random stream: use the first one")
        self._store(target, value)

    def _variable(self, target: ast.Name) -> int:
        known = self.frame.bindings.get(target.id)
        if isinstance(known, Register):
            return known.index
        if isinstance(known, SqlText) and known.register is not None:
            return known.register
        raise self.refused(
            target, f"{target.id} stands for something that only exists while compiling; use another name"
        )

    def _now_bound(self, name: str) -> None:
        if self.frame.bound is not None:
            self.frame.bound.add(name)

    def _parallel(self, targets: list[ast.expr], values: list[ast.expr]) -> None:
        """``a, b = x, y``: all values before any assignment."""
        found: list[Value] = []
        for node in values:
            value = self.expr(node)
            if isinstance(value, Register) and any(value == other for other in self.frame.bindings.values()):
                copy = self.block.take()
                self.move(copy, value.index)
                value = Register(copy)
            found.append(value)
        for target, value in zip(targets, found, strict=True):
            self._store(target, value)

    def _store(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name():
                self._store_name(target, value)
            case ast.Tuple() | ast.List():
                if any(isinstance(element, ast.Starred) for element in target.elts):
                    raise self.refused(target, "a * on the left: name the elements, or use slices")
                base = self.block.take(max(1, len(target.elts)))
                self.block.emit("unpack", base, len(target.elts), self.source(value, target))
                for n, element in enumerate(target.elts):
                    self._store(element, Register(base + n))
            case ast.Attribute():
                if not isinstance(self.expr(target.value), DbState):
                    raise self.refused(
                        target,
                        f"{ast.unparse(target)} is a constant; values that change are declared with"
                        " NAME = state(DEFAULT) and kept in db.state.NAME",
                    )
                source = self.source(value, target)
                self.block.emit("state_set", self.state_slot(target, target.attr), source)
            case ast.Subscript():
                if isinstance(target.slice, ast.Slice):
                    raise self.refused(
                        target, "assignment to a slice: assign the elements in a loop, or join lists with +"
                    )
                container = self.expr(target.value)
                if isinstance(container, Const):
                    raise self.refused(
                        target, "a list of the module or of self is a constant; copy it with [x for x in it] first"
                    )
                index = self.operand(target.slice)
                self.here(target)
                self.block.emit("set_index", self.source(container, target), index, self.source(value, target))
            case _:
                raise self.refused(target, f"{ast.unparse(target)} cannot be assigned to")

    def _store_name(self, target: ast.Name, value: Value) -> None:
        frame, name = self.frame, target.id
        for scope in reversed(frame.scopes):
            if name in scope:
                self.move(scope[name].index, self.source(value, target))
                return
        if isinstance(value, Const) and frame.function.single(name):
            frame.bindings[name] = value  # the same wherever it is used: no register needed
        elif isinstance(value, (Const, Register)):
            self.move(self._variable(target), self.source(value, target))
        elif frame.function.stores.get(name) != 1 or name in frame.function.arguments:
            raise self.refused(target, f"{name} is assigned twice, which only values can be; use two names")
        elif isinstance(value, Marks):
            register = self._variable(target)
            self.move(register, value.count.index)
            frame.bindings[name] = Marks(Register(register))
        else:
            frame.bindings[name] = value
        self._now_bound(name)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            old = self.expr(load)
            new = self.expr(node.value)
            register = old.index if isinstance(old, Register) else None
            self._store(target, self.operate(node, node.op, old, new, register, in_place=True))
            return
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            container, index = self.expr(target.value), self.expr(target.slice)
            sources = self.source(container, target), self.source(index, target)
            old = Register(self.block.take())
            self.block.emit("index", old.index, *sources)
            new = self.operate(node, node.op, old, self.expr(node.value), None, in_place=True)
            self.block.emit("set_index", *sources, self.source(new, node))
            return
        if isinstance(target, ast.Attribute):
            load_attribute = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
            old = self.expr(load_attribute)
            self._store(target, self.operate(node, node.op, old, self.expr(node.value), None))
            return
        raise self.refused(node, f"{ast.unparse(node)}: write the assignment out")

    # --- branches and loops -------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        otherwise, end = Label(), Label()
        taken = self.branch(node.test, otherwise, False)
        if taken is not None:
            self.block.set(otherwise)
            self.body(node.orelse if taken else node.body)
            self.block.set(end)
            return
        before = set(self.frame.bound or ())
        self.body(node.body)
        after_body = self.frame.bound
        if node.orelse and after_body is not None:
            self.block.emit("jump", end)
        self.block.set(otherwise)
        self.frame.bound = before
        self.body(node.orelse)
        self.block.set(end)
        self.frame.bound = _both(after_body, self.frame.bound)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.refused(node, "else of a loop: set a variable before break and test it after the loop")
        top, again, after = Label(), Label(), Label()
        self.block.set(top)
        taken = self.branch(node.test, after, False)
        before = set(self.frame.bound or ())
        loop = Loop(again, after, self.frame.pipelined)
        if taken is not True:
            self._repeat(loop, top, lambda: self.body(node.body))
        self.block.set(after)
        ends: set[str] | None = None if taken is False else before
        for state in loop.breaks:
            ends = _both(ends, state)
        self.frame.bound = ends

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.refused(node, "else of a loop: set a variable before break and test it after the loop")
        after = Label()
        before = self._each(node.target, node.iter, after, lambda: self.body(node.body))
        self.frame.bound = before

    def _repeat(self, loop: Loop, top: Label, body: Callable[[], None]) -> None:
        """A loop's body and the way back to ``top``."""
        self.frame.loops.append(loop)
        body()
        self.frame.loops.pop()
        self.block.set(loop.next)
        self.block.emit("loop", top, 0)

    def _each(
        self,
        target: ast.expr,
        iterable: ast.expr,
        after: Label,
        body: Callable[[], None],
        scope: dict[str, Register] | None = None,
    ) -> set[str] | None:
        """Run ``body`` for each element; the names surely assigned afterwards. ``scope``: names that only
        exist inside, which the iterable does not see."""
        top, again = Label(), Label()
        counter: int | None = None
        element = target
        if isinstance(iterable, ast.Call) and self._names(iterable.func, enumerate):
            counter = self._enumerated(iterable, target)
            assert isinstance(target, ast.Tuple)
            element, iterable = target.elts[1], iterable.args[0]
        ranged = isinstance(iterable, ast.Call) and self._names(iterable.func, range)
        base = self._range(iterable) if ranged and isinstance(iterable, ast.Call) else self._list(iterable)
        before = set(self.frame.bound or ())
        loop = Loop(again, after, self.frame.pipelined)
        if scope is not None:
            self.frame.scopes.append(scope)
        self.block.set(top)
        register = self._loop_register(element)
        self.block.emit("range_next" if ranged else "iter_next", register, base, after)
        self._store(element, Register(register))
        if counter is not None and isinstance(target, ast.Tuple):
            self._store(target.elts[0], Register(counter))
            self.block.emit("add", counter, counter, self.constants.constant(1))
        self._repeat(loop, top, body)
        self.block.set(after)
        ends: set[str] | None = before
        for state in loop.breaks:
            ends = _both(ends, state)
        return ends

    def _names(self, node: ast.expr, function: object) -> bool:
        """Whether an expression is that builtin."""
        if not isinstance(node, ast.Name) or node.id in self.frame.function.locals:
            return False
        value = self.expr(node)
        return isinstance(value, Const) and value.value is function

    def _enumerated(self, call: ast.Call, target: ast.expr) -> int:
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            raise self.refused(call, "enumerate() is written for i, x in enumerate(list)")
        start = call.args[1] if len(call.args) == 2 else None
        for keyword in call.keywords:
            start = keyword.value if keyword.arg == "start" else start
        if not call.args or len(call.args) + len(call.keywords) > 2:
            raise self.refused(call, "enumerate() is written enumerate(list) or enumerate(list, start)")
        counter = self.block.take()
        self.move(counter, self.constants.constant(0) if start is None else self.operand(start))
        return counter

    def _range(self, call: ast.Call) -> int:
        if call.keywords or not 1 <= len(call.args) <= 3 or any(isinstance(arg, ast.Starred) for arg in call.args):
            raise self.refused(call, "range() is written range(end), range(begin, end) or range(begin, end, step)")
        arguments: list[ast.expr] = list(call.args)
        if len(arguments) == 1:
            arguments.insert(0, ast.copy_location(ast.Constant(0), call))
        if len(arguments) == 2:
            arguments.append(ast.copy_location(ast.Constant(1), call))
        base = self.block.take(3)
        values = [self.expr(argument) for argument in arguments]
        for n, value in enumerate(values):
            self.move(base + n, self.source(value, call))
        plain = all(isinstance(value, Const) and type(value.value) is int for value in values)
        if not plain or values[2] == Const(0):
            self.here(call)
            self.block.emit("range_init", base)
        return base

    def _list(self, iterable: ast.expr) -> int:
        source = self.operand(iterable)
        base = self.block.take(2)
        self.here(iterable)
        self.block.emit("iter_init", base, source)
        return base

    def _loop_register(self, target: ast.expr) -> int:
        if isinstance(target, ast.Name):
            for scope in reversed(self.frame.scopes):
                if target.id in scope:
                    return scope[target.id].index
            if target.id not in self.frame.function.sql_names:
                return self._variable(target)
        return self.block.take()

    def comprehension(self, node: ast.ListComp) -> Value:
        """Compile a list comprehension (see :class:`Expressions`)."""
        if len(node.generators) != 1:
            raise self.refused(node, "a comprehension with two for: write loops and append()")
        generator = node.generators[0]
        if generator.is_async:
            raise self.refused(node, OUTSIDE[ast.AsyncFor])
        result = self.block.take()
        scope = {
            name.id: Register(self.block.take()) for name in ast.walk(generator.target) if isinstance(name, ast.Name)
        }
        top = self.block.top
        self.block.emit("list", result, top, 0)
        kept = None if self.frame.bound is None else set(self.frame.bound)

        def add() -> None:
            skip = Label()
            wanted = [self.branch(condition, skip, False) for condition in generator.ifs]
            if True not in wanted:
                self.block.emit("append", result, self.operand(node.elt))
            self.block.set(skip)

        scopes = len(self.frame.scopes)
        try:
            self._each(generator.target, generator.iter, Label(), add, scope)
        finally:
            del self.frame.scopes[scopes:]
            self.frame.bound = kept
        self.block.top = top
        return Register(result)

    def _leave(self, node: ast.stmt, loops: list[Loop], *, again: bool) -> None:
        loop = loops[-1]
        if self.frame.pipelined and not loop.pipelined:
            self._end_pipeline()
        if not again:
            loop.breaks.append(set(self.frame.bound or ()))
        self.block.emit("jump", loop.next if again else loop.after)
        self.frame.bound = None

    # --- the ends of a function -------------------------------------------------------------------------------------

    def _return(self, value: ast.expr | None, node: ast.AST) -> None:
        frame = self.frame
        if frame.outermost:
            if value is not None:
                self.expr(value, used=False)
            if frame.pipelined:
                self._end_pipeline()
            self.here(node)
            self.block.emit("return")
        else:
            if frame.result is not None:
                if value is None:
                    self.move(frame.result, self.constants.constant(None))
                else:
                    self.into(value, frame.result)
            elif value is not None:
                self.expr(value, used=False)
            if frame.pipelined:
                self._end_pipeline()
            self.block.emit("jump", frame.end)
        frame.bound = None

    def _raise(self, node: ast.Raise) -> None:
        target = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        value = None if target is None else self.expr(target)
        if not isinstance(value, Const) or value.value is not Rollback or node.cause is not None:
            raise self.refused(node, "raise: only raise Rollback, which rolls the transaction back and counts it so")
        if self.pipelined:
            self._end_pipeline()
        self.here(node)
        self.block.emit("rollback")
        self.frame.bound = None

    def _with(self, node: ast.With) -> None:
        item = node.items[0]
        call = item.context_expr
        callee = self.expr(call.func) if isinstance(call, ast.Call) else None
        if len(node.items) != 1 or item.optional_vars is not None or callee != Method(Db(), "pipeline"):
            raise self.refused(node, "with: only with db.pipeline(): is in the language")
        if self.pipelined:
            raise self.refused(node, "db.pipeline() inside db.pipeline(): one block is enough")
        self.frame.pipelined = self.pipelined = True
        if self._pipelines():
            self.block.emit("pipeline_begin")
        try:
            self.body(node.body)
        finally:
            if self.frame.bound is not None:
                self._end_pipeline()
            self.frame.pipelined = self.pipelined = False

    def _pipelines(self) -> bool:
        return bool(getattr(self.setting.capabilities, "pipeline", False))

    def _end_pipeline(self) -> None:
        if self._pipelines():
            self.block.emit("pipeline_end")


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    """Names surely assigned where two ways meet; a way that is never gone says nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one & other
