"""The two words WORKLOAD and TARGET of a command, opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dbdyno.cli.words import ask_password, opt, pairs, password_asker
from dbdyno.targets.target import Target, open_target
from dbdyno.workload.language import Workload
from dbdyno.workload.source import load_workload

F = TypeVar("F", bound=Callable[..., Any])


def workload_and_target(function: F) -> F:
    """Arguments WORKLOAD and TARGET with ``--opt`` and ``--ask-password``."""
    function = ask_password(function)
    function = opt(function)
    function = click.argument("target")(function)
    return click.argument("workload")(function)


def opened(workload: str, target: str, opts: tuple[tuple[str, str], ...], ask: bool) -> tuple[Workload, Target]:
    """The workload with its options and the target; connects to nothing.

    Raises:
        UsageError: unknown workload, option, scheme or server.
    """
    return load_workload(workload, pairs(opts, "--opt")), open_target(target, ask_password=password_asker(ask))
