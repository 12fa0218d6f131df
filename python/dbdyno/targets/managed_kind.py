"""What a kind of managed server must be able to do; implemented in each family's ``server.py``."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets.managed_process import Record, short_folder

#: Options as the user gave them: name to value, or None for an option that takes no value.
Options = Mapping[str, str | None]

_SETTING = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class NotReady(Exception):
    """The server does not answer yet; asked again until it does, it exits, or the time is up."""


class WrongAnswer(RunError):
    """Something answers at the server's address, but it is not the server we started."""


@dataclass(frozen=True)
class Installation:
    """The programs of one server on this machine. ``folder`` holds ``program`` and its tools."""

    kind: str
    program: Path
    version: str
    #: The words before the program's own options, when it needs a loader or another user.
    launcher: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.program.parent


@dataclass(frozen=True)
class Place:
    """Where one server keeps its things and how it is reached."""

    data_dir: Path
    log: Path
    socket: Path
    port: int


class ServerKind:
    """How to find, initialise, start and ask one kind of server. Stateless."""

    kind: ClassVar[str]
    #: The family of targets whose dialect it speaks; the folder below ``dbdyno.targets``.
    family: ClassVar[str]
    #: Scheme of its URLs and the user in them; neither has a password (it listens on loopback only).
    scheme: ClassVar[str]
    user: ClassVar[str]
    #: What has to be installed, for the sentence about a missing server.
    comes_from: ClassVar[str]
    #: The signal that makes it stop cleanly without waiting for clients to leave.
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_timeout_s: ClassVar[float] = 120.0
    ready_timeout_s: ClassVar[float] = 120.0
    #: Settings that fit a small machine; never ones that weaken durability.
    defaults: ClassVar[Mapping[str, str]] = {}
    #: Settings that are dbdyno's own business, in lower case with underscores.
    reserved: ClassVar[frozenset[str]] = frozenset()
    #: Whether an option may stand without a value.
    bare_options: ClassVar[bool] = False

    def locate(self) -> Installation:
        """The installation to use. Raises RunError with the reason when there is none."""
        raise NotImplementedError

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        """Make an empty data folder at ``data_dir`` (which does not exist; its parent does). A program that
        this runs is named to ``record`` and has ``data_dir`` in its command line."""
        raise NotImplementedError

    def clear_leftovers(self, place: Place) -> None:
        """Before a start, with no server of ours running: drop what a crash left that would hinder it."""

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        """The server's command line; it must name ``place.data_dir`` and stay in the foreground."""
        raise NotImplementedError

    def probe(self, place: Place) -> str:
        """Connect, run a statement, see that it is *this* server (its data folder), make the database
        ``dbdyno`` if it is missing; the version it reports. Raises NotReady or WrongAnswer."""
        raise NotImplementedError

    def settle(self, place: Place, options: Options, dropped: Options) -> None:
        """Once it answers: see that the user's ``options`` are in force, and take back ``dropped`` ones of the
        start before, where the server's command line alone does not do so. Raises RunError or UsageError."""

    def data_folder(self, usual: Path) -> Path:
        """Where the data go; other than the usual place only where the server could not go there."""
        return usual

    def socket_folder(self, server_folder: Path) -> Path:
        """A folder for the unix socket, made if it is missing."""
        return short_folder(server_folder)

    def socket(self, folder: Path, data_dir: Path, port: int) -> Path:
        """The unix socket that the server makes, in that folder or wherever it always puts it."""
        return folder / "socket"

    def logs(self, place: Place) -> list[Path]:
        """Log files worth quoting when it does not start, the most telling last."""
        return [place.log]

    def checked(self, options: Options) -> dict[str, str | None]:
        """The options, checked as far as that is possible without the server. Raises UsageError."""
        result: dict[str, str | None] = {}
        for name, value in options.items():
            if not _SETTING.fullmatch(name):
                raise UsageError(f"{name!r} is not the name of a {self.kind} setting; write NAME=VALUE")
            if option_key(name) in self.reserved:
                raise UsageError(f"{name} of a managed {self.kind} server is chosen by dbdyno; leave it out")
            if value is None and not self.bare_options:
                raise UsageError(f"the {self.kind} setting {name} needs a value: {name}=VALUE")
            if value is not None and ("\0" in value or "\n" in value):
                raise UsageError(f"the value of {name} must be one line of text")
            result[name] = value
        return result

    def with_defaults(self, options: Options) -> dict[str, str | None]:
        """The settings to start with: the user's, then the defaults that the user did not name."""
        given = {option_key(name) for name in options}
        merged: dict[str, str | None] = {k: v for k, v in self.defaults.items() if option_key(k) not in given}
        merged.update(options)
        return merged


def option_key(name: str) -> str:
    """One spelling for comparing setting names: servers take ``-`` for ``_`` and ignore case."""
    return name.replace("-", "_").lower()
