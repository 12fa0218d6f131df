"""The document as Markdown (GitHub's tables), without the charts."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from dbdyno.report.document import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Group,
    Notice,
    Paragraph,
    Statement,
    Table,
    Text,
)

# What would start an element, a link, a code span, emphasis or a cell. An underscore within a word means nothing in
# GitHub's Markdown, and escaping it would make names of settings unreadable.
_SPECIAL = re.compile(r"([\\`*<>\[\]|])")


def render_markdown(document: Document) -> str:
    """One text, every line ending in a newline."""
    lines = [f"# {_escaped(document.title)}", "", _escaped(document.subtitle)]
    for section in document.sections:
        lines += ["", f"## {_escaped(section.heading)}", *_blocks(section.blocks)]
    lines += ["", "---", "", _escaped(document.footer)]
    return "\n".join(lines) + "\n"


def _blocks(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        rendered = _block(block)
        if rendered:
            lines += ["", *rendered]
    return lines


def _block(block: Block) -> list[str]:
    match block:
        case Statement(subject, sentence, evidence, _):
            tail = [f"  \n{_escaped(evidence)}"] if evidence else []
            return "".join([f"**{_escaped(subject)}.** {_escaped(sentence)}", *tail]).split("\n")
        case Paragraph(text, _):
            return [_escaped(text)]
        case Notice(text, warning):
            return [f"> **{_escaped(text)}**" if warning else f"> {_escaped(text)}"]
        case Table():
            return _table(block)
        case Facts(caption, facts):
            return [
                f"**{_escaped(caption)}**",
                "",
                *(f"- {_escaped(name)}: {_escaped(value)}" for name, value in facts),
            ]
        case Text(_, text):
            return _verbatim(text)
        case Folded(summary, inner):
            return ["<details>", f"<summary>{html.escape(summary)}</summary>", *_blocks(inner), "", "</details>"]
        case Group(heading, inner):
            return [f"### {_escaped(heading)}", *_blocks(inner)]
        case Chart():
            return []


def _table(table: Table) -> list[str]:
    head = "| " + " | ".join(_escaped(column.head) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if column.number else "---" for column in table.columns) + "|"
    rows = ["| " + " | ".join(_escaped(cell.text) for cell in row.cells) + " |" for row in table.rows]
    note = ["", _escaped(table.note)] if table.note else []
    return [f"**{_escaped(table.caption)}**", "", head, rule, *rows, *note]


def _verbatim(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *text.rstrip("\n").split("\n"), fence]


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
