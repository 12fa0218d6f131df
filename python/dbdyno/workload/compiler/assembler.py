"""Instructions on their way to a program: registers, labels, sites, constants."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from dbdyno.workload.compiler.values import encode

CONSTANT = 0x8000  # in a source: the rest is the number of a constant
NOWHERE = 0x7FFF  # no register
_CODE_LIMIT = 60_000
_REGISTER_LIMIT = 30_000
_STREAM_LIMIT = 255


class TooLarge(Exception):
    """The program exceeds a limit of its format."""


class Label:
    """A place in the code, set once."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position: int | None = None


@dataclass(slots=True)
class Instruction:
    """One instruction; operands may be labels until the block is finished."""

    word: str
    s: int
    operands: list[int | Label]
    place: tuple[int, int]
    dropped: bool = False


class Constants:
    """What all blocks of a program share; equal entries are kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.names: list[str] = []
        self.files: list[str] = []
        self.texts: list[str] = []
        self.templates: list[list[Any]] = []
        self._known: dict[tuple[str, str], int] = {}

    def _index(self, kind: str, entries: list[Any], entry: Any) -> int:
        key = (kind, json.dumps(entry, sort_keys=True))
        if key not in self._known:
            self._known[key] = len(entries)
            entries.append(entry)
        return self._known[key]

    def constant(self, value: Any) -> int:
        """The source that gives ``value``."""
        index = self._index("value", self.values, encode(value))
        if index >= CONSTANT:
            raise TooLarge(f"more than {CONSTANT} constants")
        return CONSTANT | index

    def name(self, name: str) -> int:
        """Number of a name that an instruction mentions."""
        return self._index("name", self.names, name)

    def file(self, name: str) -> int:
        """Number of a source file."""
        return self._index("file", self.files, name)

    def text(self, sql: str) -> int:
        """Number of a constant SQL text."""
        return self._index("text", self.texts, sql)

    def template(self, pieces: list[Any]) -> int:
        """Number of an SQL text with holes."""
        return self._index("template", self.templates, pieces)


@dataclass
class Block:
    """The code of one transaction. Registers are given out like a stack's; ``top`` is the next free one."""

    constants: Constants
    code: list[Instruction] = field(default_factory=list)
    place: tuple[int, int] = (0, 0)
    top: int = 0
    registers: int = 0
    streams_top: int = 1
    streams: int = 1
    statements: list[dict[str, Any]] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    templates: list[dict[str, Any]] = field(default_factory=list)
    fstrings: list[list[Any]] = field(default_factory=list)
    writes: bool = False

    def take(self, count: int = 1) -> int:
        """The first of ``count`` free registers."""
        first = self.top
        self.top += count
        self.registers = max(self.registers, self.top)
        if self.registers > _REGISTER_LIMIT:
            raise TooLarge(f"more than {_REGISTER_LIMIT} variables at once")
        return first

    def take_stream(self) -> int:
        """A free stream slot."""
        slot = self.streams_top
        self.streams_top += 1
        self.streams = max(self.streams, self.streams_top)
        if self.streams > _STREAM_LIMIT:
            raise TooLarge(f"more than {_STREAM_LIMIT} calls of rand.at")
        return slot

    def emit(self, word: str, *operands: int | Label, s: int = 0) -> Instruction:
        """Append an instruction."""
        instruction = Instruction(word, s, list(operands), self.place)
        self.code.append(instruction)
        if len(self.code) > _CODE_LIMIT:
            raise TooLarge(f"more than {_CODE_LIMIT} instructions")
        return instruction

    def set(self, label: Label) -> None:
        """Put ``label`` here."""
        assert label.position is None
        label.position = len(self.code)

    def finished(self) -> dict[str, Any]:
        """The block as the program's JSON has it."""
        self._drop_idle_jumps()
        numbers: list[int] = []
        kept: list[Instruction] = []
        for instruction in self.code:
            numbers.append(len(kept))
            if not instruction.dropped:
                kept.append(instruction)
        numbers.append(len(kept))
        code: list[list[Any]] = []
        for at, instruction in enumerate(kept):
            operands = [
                numbers[operand.position or 0] if isinstance(operand, Label) else operand
                for operand in instruction.operands
            ]
            operands += [0] * (3 - len(operands))
            if instruction.word == "loop":
                operands[1] = min(at - operands[0], 0xFFFF)
            code.append([instruction.word, instruction.s, *operands])
        return {
            "registers": self.registers,
            "streams": self.streams,
            "code": code,
            "lines": [list(instruction.place) for instruction in kept],
            "statements": self.statements,
            "batches": self.batches,
            "templates": self.templates,
            "fstrings": self.fstrings,
        }

    def _drop_idle_jumps(self) -> None:
        """A jump to the next instruction that is left does nothing."""
        for at in range(len(self.code) - 1, -1, -1):
            instruction = self.code[at]
            if instruction.word == "jump":
                target = instruction.operands[0]
                assert isinstance(target, Label)
                assert target.position is not None
                if all(between.dropped for between in self.code[at + 1 : target.position]):
                    instruction.dropped = True
