"""``dbdyno server``: database servers that dbdyno starts and stops itself."""

from __future__ import annotations

from typing import Any

import click

from dbdyno.cli.output import say, tell, tell_json, tell_table
from dbdyno.cli.words import as_json
from dbdyno.model.errors import UsageError
from dbdyno.targets import managed
from dbdyno.targets.managed import ManagedServer


@click.group(short_help="Start and stop databases of dbdyno's own.")
def command() -> None:
    """Start and stop database servers of dbdyno's own.

    Each has a data folder of its own, a free port of this machine's loopback and no password; dbdyno never
    touches a server that it did not start. Its name is a TARGET for every other command.
    """


def _options(given: tuple[str, ...]) -> dict[str, str | None] | None:
    """``NAME=VALUE`` or a bare ``NAME``; None when nothing was given: the settings of the last start."""
    options: dict[str, str | None] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name in options:
            raise UsageError(f"--option {name} is given twice")
        options[name] = value if equals else None
    return options or None


@command.command("start")
@click.argument("kind")
@click.option("--name", metavar="NAME", help="Name of the server; several of one kind may run. [default: its kind]")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Port of 127.0.0.1. [default: a free one]")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the server, passed on to it. Repeatable. [default: as last time]",
)
@as_json
def start(kind: str, name: str | None, port: int | None, options: tuple[str, ...], as_json: bool) -> None:
    """Start a server and print its URL.

    'dbdyno server list' shows the KINDs that can be started here.

    \b
    dbdyno server start KIND
    dbdyno server start KIND --name big --option SETTING=VALUE
    """
    server = managed.start(kind, name, _options(options), port=port)
    if as_json:
        tell_json(_described(server))
        return
    say(f"server {server.name} runs: {server.kind} {server.version}, log {server.log}")
    tell(server.url)


@command.command("stop")
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--all", "every", is_flag=True, help="All that are running.")
def stop(names: tuple[str, ...], every: bool) -> None:
    """Stop servers cleanly; their data stay."""
    for name in _chosen(names, every, running=True):
        managed.stop(name)
        say(f"server {name} is stopped")


@command.command("remove")
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--all", "every", is_flag=True, help="All of them.")
def remove(names: tuple[str, ...], every: bool) -> None:
    """Stop servers and delete their data."""
    for name in _chosen(names, every, running=False):
        managed.remove(name)
        say(f"server {name} and its data are gone")


def _chosen(names: tuple[str, ...], every: bool, running: bool) -> tuple[str, ...]:
    if every == bool(names):
        raise UsageError("name the servers, or say --all")
    if not every:
        return names
    return tuple(server.name for server in managed.listing() if server.running or not running)


@command.command("list")
@as_json
def list_servers(as_json: bool) -> None:
    """List the servers, and the kinds that can be started here."""
    servers, kinds = managed.listing(), managed.available()
    if as_json:
        tell_json(
            {
                "servers": [_described(server) for server in servers],
                "kinds": {name: {"version": found.version, "reason": found.reason} for name, found in kinds.items()},
            }
        )
        return
    if servers:
        tell_table(
            ["name", "kind", "version", "state", "url"],
            [(s.name, s.kind, s.version, "running" if s.running else "stopped", s.url) for s in servers],
            left=range(5),
        )
        tell()
    tell_table(
        ["kind", "can be started here"],
        [(name, found.version or f"no: {found.reason}") for name, found in kinds.items()],
        left=(0, 1),
    )


def _described(server: ManagedServer) -> dict[str, Any]:
    return {
        "name": server.name,
        "kind": server.kind,
        "version": server.version,
        "running": server.running,
        "url": server.url,
        "port": server.port,
        "socket": str(server.socket),
        "pid": server.pid,
        "data": str(server.data_dir),
        "log": str(server.log),
        "options": dict(server.options),
    }
