"""Words that several sub-commands take: options, their types, and sentences about wrong ones."""

from __future__ import annotations

import difflib
import getpass
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from dbdyno.model.errors import UsageError
from dbdyno.model.units import parse_duration_s

PASSWORD_VARIABLE = "DBDYNO_PASSWORD"

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """``30s``, ``1.5m``, ``1h30m``; the value is in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ConnectionCounts(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """``1,8,64``: in the order given; repeats are refused."""

    name = "n,n,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        counts: list[int] = []
        for part in str(value).split(","):
            text = part.strip()
            if not text.isascii() or not text.isdigit() or int(text) < 1:
                self.fail(
                    f"{text!r} is not a number of connections; write numbers from 1 such as 1,8,64",
                    param,
                    ctx,
                )
            if int(text) in counts:
                self.fail(f"{text} connections are named twice", param, ctx)
            counts.append(int(text))
        return tuple(counts)


class KeyValue(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """``KEY=VALUE``; the value is the pair."""

    name = "key=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, content = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"{value!r} has not the form KEY=VALUE", param, ctx)
        return key.strip(), content


class Isolation(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4 only
    """An isolation level in SQL's words; ``-`` and ``_`` stand for blanks."""

    name = "level"
    levels = ("read uncommitted", "read committed", "repeatable read", "serializable")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        level = " ".join(str(value).lower().replace("-", " ").replace("_", " ").split())
        if level not in self.levels:
            near = difflib.get_close_matches(level, self.levels, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else f"levels: {', '.join(self.levels)}"
            self.fail(f"{value!r} is not an isolation level; {hint}", param, ctx)
        return level


def pairs(given: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """The pairs as a mapping; a key given twice with different values is an error."""
    found: dict[str, str] = {}
    for key, value in given:
        name = key.replace("-", "_")
        if found.get(name, value) != value:
            raise UsageError(f"{option} {key} is given twice, as {found[name]!r} and as {value!r}")
        found[name] = value
    return found


def opt(function: F) -> F:
    """``--opt KEY=VALUE`` of a workload."""
    return click.option(
        "--opt",
        "opts",
        type=KeyValue(),
        multiple=True,
        help="An option of the workload; 'dbdyno workloads WORKLOAD' lists them. Repeatable.",
    )(function)


def seed(function: F) -> F:
    """``--seed``."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="N",
        default=1,
        show_default=True,
        help="Of all random values.",
    )(function)


def ask_password(function: F) -> F:
    """``--ask-password``."""
    return click.option("--ask-password", is_flag=True, help="Ask for the password on the terminal.")(function)


def store(function: F) -> F:
    """``--store URL``."""
    return click.option(
        "--store",
        metavar="FILE|URL",
        help="Where results live. [default: $DBDYNO_STORE or dbdyno.db in this folder]",
    )(function)


def closing(function: F) -> F:
    """``-o``, ``--no-report`` and ``--lang``: how a campaign's end is told."""
    function = click.option(
        "--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of answer and report."
    )(function)
    function = click.option("--no-report", "report", flag_value=False, default=True, help="Write no report.")(function)
    return click.option(
        "-o", "--output", "folder", metavar="DIR", help="Folder of the report. [default: reports/CAMPAIGN]"
    )(function)


def as_json(function: F) -> F:
    """``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="The same as JSON, for scripts.")(function)


_taken: dict[str, str] = {}


def take_password() -> None:
    """Take $DBDYNO_PASSWORD out of the environment: hooks and servers that we start have no business with it."""
    _taken.clear()
    if (given := os.environ.pop(PASSWORD_VARIABLE, None)) is not None:
        _taken[PASSWORD_VARIABLE] = given


def password_asker(ask: bool) -> Callable[[str], str] | None:
    """What :func:`dbdyno.targets.target.open_target` takes: asks once for each prompt, without echo; without
    ``ask`` it answers with the password of the environment, if there is one."""
    if not ask:
        given = _taken.get(PASSWORD_VARIABLE)
        return None if given is None else lambda _prompt: given
    known: dict[str, str] = {}

    def answer(prompt: str) -> str:
        if prompt not in known:
            if not sys.stdin.isatty() and not os.path.exists("/dev/tty"):
                raise UsageError("--ask-password needs a terminal; without one set $DBDYNO_PASSWORD")
            try:
                known[prompt] = getpass.getpass(prompt)
            except EOFError:
                raise UsageError("no password was given") from None
        return known[prompt]

    return answer


def usage_sentence(error: click.UsageError) -> str:
    """One sentence for a wrong word, with the nearest right one, and where the help is."""
    sentence = _what(error).strip().rstrip(".")
    if sentence[:1].isupper():
        sentence = sentence[:1].lower() + sentence[1:]
    path = error.ctx.command_path if error.ctx is not None else "dbdyno"
    return f"{sentence} (see '{path} --help')"


def _what(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"unknown option {error.option_name}{_near_option(error)}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        kind = "argument" if error.param.param_type_name == "argument" else "option"
        return f"missing {kind} {error.param.make_metavar(_context(error))}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = error.param.get_error_hint(_context(error)).split("/")[0].strip().strip("'")
        return f"{name}: {error.message}"
    return error.message


def _context(error: click.UsageError) -> click.Context:
    return error.ctx if error.ctx is not None else click.Context(click.Command("dbdyno"))


def _near_option(error: click.NoSuchOption) -> str:
    if error.ctx is None:
        return ""
    known = [
        name
        for parameter in error.ctx.command.get_params(error.ctx)
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]
    wanted = error.option_name.replace("_", "-")
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def words_of(mapping: Mapping[str, Any]) -> str:
    """``key=value, key=value`` in the order given, switches as on and off."""

    def word(value: Any) -> str:
        return ("off", "on")[value] if isinstance(value, bool) else str(value)

    return ", ".join(f"{key}={word(value)}" for key, value in mapping.items())
