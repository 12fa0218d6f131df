"""The document as one self-contained HTML file: styles, scripts, charts and data inside, no request to anywhere.

Every text is escaped, the data is JSON in which nothing can end its element, and a content security policy lets
nothing load and only our own two scripts run (by their hashes).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from dbdyno.report.document import (
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Folded,
    Group,
    Notice,
    Paragraph,
    Row,
    Section,
    Statement,
    Table,
    Text,
)
from dbdyno.report.words import Words

ECHARTS = "vendor/echarts-6.1.0/echarts.common.min.js"
_CHART_WORDS = (
    *("tps", "ms", "ms_log", "errors", "seconds", "connections", "connections_log", "warmup", "outage", "range"),
)
_MARKS = {"faster": "▲", "slower": "▼", "quiet": "?", "": "◆", "warning": "!"}


@cache
def _static(name: str) -> str:
    return (files("dbdyno.report") / "static" / name).read_text(encoding="utf-8")


def render_html(document: Document, words: Words) -> str:
    """The whole page."""
    page = _Page(words)
    body = page.body(document)
    scripts = [_static(ECHARTS), _static("report.js")]
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = {"charts": page.charts, "words": {name: words(f"chart.{name}") for name in _CHART_WORDS}}
    loaded = "\n".join(f"<script>{script}</script>" for script in scripts)
    return f"""<!DOCTYPE html>
<html lang="{escape(document.lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True).replace("&#x27;", "'")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="dbdyno">
<link rel="icon" href="data:,">
<title>{escape(document.title)} · {escape(words("page.kind"))}</title>
<style>
{_static("report.css")}</style>
</head>
<body>
{body}
<script type="application/json" id="report-data">{_embedded(data)}</script>
{loaded}
</body>
</html>
"""


def _embedded(data: Any) -> str:
    """JSON that cannot end a script element or start a comment in one, nor a line in old JavaScript."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


class _Page:
    """Renders blocks and collects the charts' data on the way."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.charts: list[dict[str, Any]] = []

    def body(self, document: Document) -> str:
        words = self.words
        links = "".join(
            f'<li><a href="#{section.id}">{escape(section.heading)}</a></li>' for section in document.sections
        )
        sections = "\n".join(self._section(section) for section in document.sections)
        return f"""<a class="skip" href="#answer">{escape(words("page.skip"))}</a>
<header>
<p class="kind">{escape(words("page.kind"))}</p>
<h1>{escape(document.title)}</h1>
<p class="subtitle">{escape(document.subtitle)}</p>
<nav aria-label="{escape(words("page.contents"))}"><ul>{links}</ul></nav>
</header>
<main>
{sections}
</main>
<footer><p>{escape(document.footer)}</p></footer>"""

    def _section(self, section: Section) -> str:
        return (
            f'<section id="{section.id}" aria-labelledby="{section.id}-heading">\n'
            f'<h2 id="{section.id}-heading">{escape(section.heading)}</h2>\n'
            f"{self._blocks(section.blocks)}\n</section>"
        )

    def _blocks(self, blocks: Sequence[Block]) -> str:
        """Neighbouring sweeps share a row where there is room; neighbouring notices are one list."""
        parts = []
        for kind, run in groupby(blocks, key=_kind):
            rendered = "\n".join(self._block(block) for block in run)
            parts.append(f'<div class="{kind}">\n{rendered}\n</div>' if kind else rendered)
        return "\n".join(parts)

    def _block(self, block: Block) -> str:
        match block:
            case Statement(subject, sentence, evidence, tone):
                detail = f'<p class="evidence">{escape(evidence)}</p>' if evidence else ""
                return (
                    f'<div class="statement {tone}"><p class="subject">{escape(subject)}</p>'
                    f'<p class="sentence"><span class="mark" aria-hidden="true">{_MARKS[tone]}</span> '
                    f"{escape(sentence)}</p>{detail}</div>"
                )
            case Paragraph(text, small):
                return f"<p{' class=note' if small else ''}>{escape(text)}</p>"
            case Notice(text, warning):
                return f'<p class="notice{" warning" if warning else ""}">{escape(text)}</p>'
            case Table():
                return self._table(block)
            case Facts(caption, facts):
                items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
                return f"<div><h3>{escape(caption)}</h3><dl>{items}</dl></div>"
            case Text(caption, text):
                return f'<pre tabindex="0" aria-label="{escape(caption)}"><code>{escape(text)}</code></pre>'
            case Folded(summary, inner):
                return f"<details><summary>{escape(summary)}</summary>\n{self._blocks(inner)}</details>"
            case Group(heading, inner):
                return f'<div class="group"><h3>{escape(heading)}</h3>\n{self._blocks(inner)}</div>'
            case Chart():
                return self._chart(block)

    def _chart(self, chart: Chart) -> str:
        number = len(self.charts)
        self.charts.append({"kind": chart.kind, **chart.data})
        choice = self._choice(chart, number) if chart.kind == "timeline" else ""
        no_script = f"<noscript><p>{escape(self.words('page.no_script'))}</p></noscript>"
        return (
            f'<figure class="chart {chart.kind}">{choice}<figcaption>{escape(chart.caption)}</figcaption>'
            f'<div class="plot" role="img" aria-label="{escape(chart.caption)}" data-chart="{number}"></div>'
            f"{no_script}</figure>"
        )

    def _choice(self, chart: Chart, number: int) -> str:
        """Two selectors of trials; the second may stay empty."""
        trials = list(enumerate(chart.data["trials"]))
        fields = []
        for place, (key, chosen) in enumerate(zip(("first", "second"), chart.data["chosen"], strict=True)):
            groups = []
            for workload, run in groupby(trials, key=lambda item: item[1]["workload"]):
                options = "".join(
                    f'<option value="{index}"{" selected" if index == chosen else ""}>{escape(trial["label"])}</option>'
                    for index, trial in run
                )
                groups.append(f'<optgroup label="{escape(workload)}">{options}</optgroup>')
            if place == 1:
                groups.insert(0, f'<option value="">{escape(self.words("course.none"))}</option>')
            name = f"choice-{number}-{place}"
            fields.append(
                f'<label for="{name}">{escape(self.words(f"course.{key}"))}'
                f'<select id="{name}" autocomplete="off">{"".join(groups)}</select></label>'
            )
        return f'<div class="choice">{"".join(fields)}</div>'

    def _table(self, table: Table) -> str:
        head = "".join(
            f'<th scope="col"{" class=number" if column.number else ""}>{escape(column.head)}</th>'
            for column in table.columns
        )
        if table.merged:
            runs = [list(run) for _, run in groupby(table.rows, key=lambda row: row.cells[0].text)]
        else:
            runs = [list(table.rows)]
        bodies = "".join(_body(table, run) for run in runs)
        note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
        label = escape(self.words("page.scrolls", caption=table.caption))
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
            f"<table{_classes(table)}><caption>{escape(table.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead>{bodies}</table></div>{note}"
        )


def _kind(block: Block) -> str:
    if isinstance(block, Chart) and block.kind == "sweep":
        return "charts"
    if isinstance(block, Facts):
        return "facts"
    if isinstance(block, Notice):
        return "warnings" if block.warning else "notices"
    return ""


def _classes(table: Table) -> str:
    names = [name for name, there in (("code", table.code), ("merged", table.merged)) if there]
    return f' class="{" ".join(names)}"' if names else ""


def _body(table: Table, rows: Sequence[Row]) -> str:
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for place, cell in enumerate(row.cells):
            if table.merged and place == 0:
                if number == 0:
                    span = f' rowspan="{len(rows)}"' if len(rows) > 1 else ""
                    cells.append(_cell(table, place, cell, f' scope="rowgroup"{span}'))
                continue
            cells.append(_cell(table, place, cell, ' scope="row"' if place < table.heads else ""))
        lines.append(f"<tr{' class=total' if row.total else ''}>{''.join(cells)}</tr>")
    return f"<tbody>{''.join(lines)}</tbody>"


def _cell(table: Table, place: int, cell: Cell, attributes: str) -> str:
    element = "th" if place < table.heads else "td"
    number = "number" if table.columns[place].number else ""
    classes = " ".join(name for name in (number, cell.tone) if name)
    styled = f' class="{classes}"' if classes else ""
    return f"<{element}{attributes}{styled}>{escape(cell.text)}</{element}>"
