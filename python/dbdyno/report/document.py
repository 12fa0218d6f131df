"""A report as data: sections of blocks. Publishers (html, markdown) render it and add nothing of their own.

All texts are plain, not yet escaped for any format, and may come from servers: publishers escape everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["", "faster", "slower", "quiet", "warning"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell. ``tone`` colours what the text already says."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's head. Numbers are set to the right with figures of equal width."""

    head: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row; as many cells as the table has columns."""

    cells: tuple[Cell, ...]
    total: bool = False  # a row that sums up those above


@dataclass(frozen=True, slots=True)
class Table:
    """``merged``: equal texts in the first column that follow each other are one head of a group of rows.
    ``heads``: that many leading columns name the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    heads: int = 1
    merged: bool = False
    note: str = ""
    code: bool = False  # names and values of settings: set in a fixed-width face


@dataclass(frozen=True, slots=True)
class Statement:
    """The answer for one subject: the sentence, and the evidence in smaller print."""

    subject: str
    sentence: str
    evidence: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text; ``small`` for how to read what stands before it."""

    text: str
    small: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that limits what the answer is worth; ``warning`` ones must not be missed."""

    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, a short list."""

    caption: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A file or part of one, verbatim."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing made from ``data`` by static/report.js, of the kinds that it knows. The figures are also in tables."""

    kind: Literal["sweep", "timeline"]
    caption: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are folded away on a screen until asked for, and shown in print."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks under a heading of the second order."""

    heading: str
    blocks: tuple[Block, ...]


Block = Statement | Paragraph | Notice | Table | Facts | Text | Chart | Folded | Group


@dataclass(frozen=True, slots=True)
class Section:
    """``id`` is the anchor, the same in every language."""

    id: str
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    lang: str
    title: str
    subtitle: str
    sections: tuple[Section, ...]
    footer: str
