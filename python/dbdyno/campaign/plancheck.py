"""What can be said about a plan's targets and workloads before anything is connected to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dbdyno.campaign.planerrors import Problem
from dbdyno.model.errors import DbdynoError, UsageError, nearest
from dbdyno.targets import managed
from dbdyno.targets.managed_state import default_home
from dbdyno.targets.registry import family_of_scheme
from dbdyno.targets.url import Address, split_scheme
from dbdyno.workload.options import resolve
from dbdyno.workload.source import load_workload, workload_class

Table = dict[str, Any]
HOME = "{home}"


def resolve_paths(data: Mapping[str, Any], folder: Path) -> None:
    """Make a plan's paths independent of where dbdyno is run: ``{home}`` filled in, the rest absolute.

    Workload files and database files are relative to ``folder``, the plan's. Changes ``data``.
    """
    for target in _tables(data, "target"):
        url = target.get("url")
        if isinstance(url, str):
            target["url"] = absolute_url(url.replace(HOME, str(default_home().absolute())), folder)
    for workload in _tables(data, "workload"):
        name = workload.get("name")
        if isinstance(name, str) and is_file_name(name):
            workload["name"] = str((folder / name).absolute())


def is_file_name(name: str) -> bool:
    """Whether a workload's name is a file's, as :func:`dbdyno.workload.source.workload_class` sees it."""
    return "/" in name or name.endswith(".py") or ".py:" in name


def absolute_url(url: str, folder: Path) -> str:
    """A database file's URL with its path made absolute from ``folder``; other URLs as they are."""
    address = _parsed(url)
    if not isinstance(address, Address) or address.endpoints or Path(address.database).is_absolute():
        return url
    scheme, separator, rest = url.partition("://")
    for written in (address.database, quote(address.database)):
        before, found, after = rest.partition(written)
        if found:
            return f"{scheme}{separator}{before}{quote(str((folder / address.database).absolute()))}{after}"
    return url


def _parsed(url: str) -> Address | UsageError:
    parts = split_scheme(url)
    try:
        if parts is None:
            raise UsageError('is not a URL; write scheme://user@host:port/database, or server = "NAME"')
        return family_of_scheme(parts[0]).parse(url)
    except UsageError as error:
        return error


def target_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Malformed URLs, unknown servers and their unknown settings."""
    for number, target in enumerate(_tables(data, "target")):
        url, server = target.get("url"), target.get("server")
        if isinstance(url, str):
            address = _parsed(url)
            if isinstance(address, UsageError):
                yield Problem(f"target.{number}.url", str(address))
        if isinstance(server, str):
            yield from _server_problems(f"target.{number}", server, target.get("options"))


def server_kind(server: str) -> str | None:
    """The kind behind ``server = "…"``: a kind's own name, or that of a server made before; None: neither."""
    if server in managed.KINDS:
        return server
    known = {item.name: item.kind for item in managed.listing()}
    return known.get(server)


def server_options(options: Mapping[str, Any]) -> dict[str, str | None]:
    """Settings as a managed server takes them: texts."""
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in options.items()
    }


def _server_problems(key: str, server: str, options: Any) -> Iterator[Problem]:
    kind = server_kind(server)
    if kind is None:
        allowed = {*managed.KINDS, *(item.name for item in managed.listing())}
        yield Problem(f"{key}.server", f"no managed server {server!r}{nearest(server, allowed)}")
        return
    for name, value in options.items() if isinstance(options, Mapping) else ():
        try:
            managed.KINDS[kind].checked(server_options({name: value}))
        except DbdynoError as error:
            yield Problem(f"{key}.options.{name}", str(error))


def workload_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Unknown workloads, unknown options and wrong values of options, each of them."""
    for number, workload in enumerate(_tables(data, "workload")):
        name, options = workload.get("name"), workload.get("options", {})
        if not isinstance(name, str) or not name:
            continue
        try:
            cls = workload_class(name)
        except UsageError as error:
            yield Problem(f"workload.{number}.name", str(error))
            continue
        wrong = False
        for key, value in options.items() if isinstance(options, Mapping) else ():
            if isinstance(value, Mapping | list):
                wrong = True  # its type is wrong already
                continue
            try:
                resolve(cls, {key: value}, name)
            except UsageError as error:
                wrong = True
                yield Problem(f"workload.{number}.options.{key}", str(error))
        if not wrong and isinstance(options, Mapping):
            try:
                load_workload(name, options)
            except UsageError as error:
                yield Problem(f"workload.{number}.options", str(error))


def _tables(data: Mapping[str, Any], key: str) -> list[Table]:
    value = data.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
