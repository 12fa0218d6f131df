"""``dbdyno workloads``: what there is to run, and the options of each."""

from __future__ import annotations

import inspect
from typing import Any

import click

from dbdyno.cli.output import tell, tell_json, tell_table
from dbdyno.cli.words import as_json
from dbdyno.workload.language import Workload, transactions
from dbdyno.workload.options import declared
from dbdyno.workload.source import shipped, workload_class


@click.command(short_help="List the workloads, or the options of one.")
@click.argument("workload", required=False)
@as_json
def command(workload: str | None, as_json: bool) -> None:
    """List the workloads, or the options of one.

    WORKLOAD is a shipped name or a file (./mine.py).

    \b
    dbdyno workloads
    dbdyno workloads oltp_read_write
    """
    if workload is not None:
        cls = workload_class(workload)
        if as_json:
            tell_json(_described(workload, cls))
        else:
            _tell_one(workload, cls)
        return
    found = [(name, workload_class(name)) for name in shipped()]
    if as_json:
        tell_json({"workloads": [_described(name, cls) for name, cls in found]})
        return
    tell_table(["workload", "what it does"], [(name, _summary(cls)) for name, cls in found], left=(0, 1))


def _summary(cls: type[Workload]) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").strip()


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value != "" else '""'


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"


def option_rows(cls: type[Workload]) -> list[tuple[str, str, str]]:
    """(option, default, help with its bounds) of every option of a workload."""
    rows = []
    for name, (entry, _) in declared(cls).items():
        bounds = []
        if entry.choices:
            bounds.append(" | ".join(choice or '""' for choice in entry.choices))
        if entry.ge is not None:
            bounds.append(f"at least {_number(entry.ge)}")
        if entry.le is not None:
            bounds.append(f"at most {_number(entry.le)}")
        limits = f" ({', '.join(bounds)})" if bounds else ""
        rows.append((name, _default(entry.default), f"{entry.help}{limits}"))
    return rows


def _tell_one(name: str, cls: type[Workload]) -> None:
    tell(f"{name}: {_summary(cls)}")
    rest = (inspect.getdoc(cls) or "").split("\n\n", 1)[1:]
    if rest:
        tell()
        tell(rest[0])
    tell()
    tell(f"transactions: {', '.join(kind.name for kind in transactions(cls))}")
    rows = option_rows(cls)
    if rows:
        tell()
        tell_table(["option", "default", "meaning"], rows, left=(0, 1, 2))


def _described(name: str, cls: type[Workload]) -> dict[str, Any]:
    return {
        "workload": name,
        "summary": _summary(cls),
        "transactions": [kind.name for kind in transactions(cls)],
        "options": {
            key: {
                "type": kind.__name__,
                "default": entry.default,
                "help": entry.help,
                "at_least": entry.ge,
                "at_most": entry.le,
                "choices": list(entry.choices),
            }
            for key, (entry, kind) in declared(cls).items()
        },
    }
