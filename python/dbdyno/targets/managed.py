"""Database servers that dbdyno starts and stops itself, for users who have none and for tests.

Each has a name, a folder of its own (HOME/servers/NAME), a port of 127.0.0.1 and no password. A server
runs on when the program that started it ends. dbdyno signals a process only if it is the one it started:
pid, start time and the data folder in the command line must all agree.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGKILL, Signals

import psutil

from dbdyno.model.errors import RunError, UsageError, nearest
from dbdyno.targets.managed_fake import KINDS as FAKE_KINDS
from dbdyno.targets.managed_kind import Installation, NotReady, Options, Place, ServerKind, WrongAnswer
from dbdyno.targets.managed_process import (
    LOOPBACK,
    check_name,
    end_now,
    free_port,
    locked,
    log_tail,
    owned,
    port_is_free,
    send,
    spawn,
    wait_gone,
)
from dbdyno.targets.managed_state import Shelf, State, default_home
from dbdyno.targets.mysql.server import KINDS as MYSQL_KINDS
from dbdyno.targets.oceanbase.server import KINDS as OCEANBASE_KINDS
from dbdyno.targets.postgresql.server import KINDS as POSTGRESQL_KINDS

logger = logging.getLogger(__name__)

KINDS: Mapping[str, ServerKind] = {
    kind.kind: kind for kind in (*POSTGRESQL_KINDS, *OCEANBASE_KINDS, *MYSQL_KINDS, *FAKE_KINDS)
}

#: How often a start is tried again when another program took the free port first.
_PORT_TRIES = 3
_LOCK_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class ManagedServer:
    """A managed server as it was when asked for. ``pid`` is None and ``running`` False when it is stopped."""

    name: str
    kind: str
    family: str
    url: str
    port: int
    socket: Path
    pid: int | None
    running: bool
    version: str
    data_dir: Path
    log: Path
    options: Mapping[str, str | None]


@dataclass(frozen=True)
class Availability:
    """Whether a kind can be started here: its version, or the reason why not. Exactly one is set."""

    version: str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return self.version or self.reason or ""


def available() -> dict[str, Availability]:
    """For each kind the version that would be started on this machine, or why none can be."""
    result: dict[str, Availability] = {}
    for name, kind in KINDS.items():
        try:
            result[name] = Availability(version=kind.locate().version)
        except RunError as error:
            result[name] = Availability(reason=str(error))
    return result


def start(
    kind: str,
    name: str | None = None,
    options: Options | None = None,
    home: Path | None = None,
    port: int | None = None,
) -> ManagedServer:
    """Start a server and wait until it answers; the data of an earlier start are used again.

    ``options`` are settings of the server (None: those of the last start). A running server of that name is
    returned as it is if it was started with the same settings. ``port`` None: the port of the last start if
    it is free, else any free one.

    Raises UsageError if the name is another kind's or runs with other settings, RunError if the server is
    missing or does not start (with the last lines of its log).
    """
    what = _kind(kind)
    name = check_name(name or kind)
    shelf = Shelf.of(name, home)
    wanted = None if options is None else what.checked(options)
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(f"{port} is not a port; it must be from 1 to 65535")
    with locked(shelf.lock_file, f"server {name}", _LOCK_TIMEOUT_S):
        state = shelf.read()
        if state is not None and state.kind != kind:
            raise UsageError(f"server {name} is a {state.kind} server; choose another name, or remove it first")
        if state is not None:
            running = _process(state)
            if running is not None:
                if state.initialised:
                    _same(state, wanted, port)
                    # Whoever started it may have been ended before it answered.
                    place = Place(Path(state.data_dir), shelf.log, Path(state.socket), state.port)
                    _wait_ready(what, running, place, {})
                    return _server(state, shelf, running)
                # Whoever started it was ended before it answered: nothing of it has been used yet.
                end_now(running)
        return _start(what, name, shelf, state, wanted, port)


def stop(name: str, home: Path | None = None, timeout_s: float | None = None) -> None:
    """Stop it cleanly and wait for its end; a stopped one is left as it is.

    After the time (default: the kind's) it is killed, with a warning in the log. Raises UsageError for an
    unknown name.
    """
    shelf, _ = _known(name, home)
    with locked(shelf.lock_file, f"server {name}", _LOCK_TIMEOUT_S):
        state = shelf.read()
        if state is not None:
            _stop(state, shelf, timeout_s)


def restart(
    name: str, options: Options | None = None, home: Path | None = None, port: int | None = None
) -> ManagedServer:
    """Stop it if it runs and start it on the same data; with other settings if any are given."""
    _, state = _known(name, home)
    stop(name, home)
    return start(state.kind, name, options, home, port)


def kill(name: str, signal: Signals = SIGKILL, home: Path | None = None) -> None:
    """Send a signal to a running server, by default the end without warning that a crash test needs; after
    SIGKILL its helpers' end is waited for. Raises RunError if it is not running."""
    shelf, _ = _known(name, home)
    with locked(shelf.lock_file, f"server {name}", _LOCK_TIMEOUT_S):
        state = shelf.read()
        process = _process(state) if state is not None else None
        if process is None:
            raise RunError(f"server {name} is not running")
        if signal == SIGKILL:
            end_now(process)
        else:
            send(process, signal)


def remove(name: str, home: Path | None = None) -> None:
    """Stop it and delete its data. Raises UsageError for an unknown name."""
    shelf, _ = _known(name, home)
    with locked(shelf.lock_file, f"server {name}", _LOCK_TIMEOUT_S):
        state = shelf.read()
        if state is None:
            return
        _stop(state, shelf, None)
        # The state goes last: a removal that was broken off can be repeated.
        _delete(Path(state.data_dir))
        socket_folder = Path(state.socket).parent if state.socket else shelf.folder
        if not socket_folder.is_relative_to(shelf.folder):
            shutil.rmtree(socket_folder, ignore_errors=True)
        for entry in shelf.folder.iterdir():
            if entry != shelf.state_file:
                _delete(entry)
        _delete(shelf.folder)


def find(name: str, home: Path | None = None) -> ManagedServer | None:
    """The server of that name, running or not, None if there is none."""
    shelf = Shelf.of(check_name(name), home)
    state = shelf.read()
    process = None if state is None else _process(state)
    if state is None or (process is None and not state.initialised):  # a first start that was broken off
        return None
    return _server(state, shelf, process)


def listing(home: Path | None = None) -> list[ManagedServer]:
    """All servers by name. One whose state is damaged is left out, with a warning in the log."""
    servers: list[ManagedServer] = []
    folder = (home or default_home()) / "servers"
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        if entry.name.startswith("."):
            continue
        try:
            server = find(entry.name, home)
        except (RunError, UsageError) as error:
            logger.warning("%s", error)
            continue
        if server is not None:
            servers.append(server)
    return servers


def _kind(kind: str) -> ServerKind:
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a server that dbdyno can start{nearest(kind, KINDS)}")
    return KINDS[kind]


def _known(name: str, home: Path | None) -> tuple[Shelf, State]:
    shelf = Shelf.of(check_name(name), home)
    state = shelf.read()
    if state is None:
        names = [server.name for server in listing(home)]
        hint = nearest(name, names) if names else "; none has been started yet"
        raise UsageError(f"there is no managed server {name!r}{hint}")
    return shelf, state


def _process(state: State) -> psutil.Process | None:
    return owned(state.pid, state.create_time, Path(state.data_dir)) if state.pid else None


def _server(state: State, shelf: Shelf, process: psutil.Process | None) -> ManagedServer:
    kind = _kind(state.kind)
    return ManagedServer(
        name=state.name,
        kind=state.kind,
        family=kind.family,
        url=f"{kind.scheme}://{kind.user}@{LOOPBACK}:{state.port}/dbdyno",
        port=state.port,
        socket=Path(state.socket),
        pid=process.pid if process is not None else None,
        running=process is not None,
        version=state.version,
        data_dir=Path(state.data_dir),
        log=shelf.log,
        options=dict(state.options),
    )


def _same(state: State, wanted: Mapping[str, str | None] | None, port: int | None) -> None:
    """Raise UsageError unless a running server is what is asked for."""
    if wanted is not None and dict(state.options) != dict(wanted):
        said = ", ".join(k if v is None else f"{k}={v}" for k, v in state.options.items()) or "no settings of its own"
        raise UsageError(f"server {state.name} runs already, with {said}; stop it first to change its settings")
    if port is not None and port != state.port:
        raise UsageError(f"server {state.name} runs already, on port {state.port}; stop it first to change its port")


def _start(
    kind: ServerKind,
    name: str,
    shelf: Shelf,
    state: State | None,
    wanted: Mapping[str, str | None] | None,
    port: int | None,
) -> ManagedServer:
    installation = kind.locate()
    shelf.make()
    options = wanted if wanted is not None else dict(state.options) if state is not None else {}
    if state is None or not state.initialised:
        data_dir = kind.data_folder(shelf.folder / "data")
        _initialise(kind, installation, data_dir, shelf, name)
    else:
        data_dir = Path(state.data_dir)
        if not data_dir.is_dir():
            raise RunError(f"the data folder {data_dir} of server {name} is gone; remove the server and start anew")
    before = state is not None and state.initialised
    for attempt in range(1, _PORT_TRIES + 1):
        if port is not None:
            chosen = free_port(port)
        elif attempt == 1 and state is not None and state.port and port_is_free(state.port):
            chosen = state.port
        else:
            chosen = free_port()
        place = Place(data_dir, shelf.log, kind.socket(kind.socket_folder(shelf.folder), data_dir, chosen), chosen)
        fresh = State(name, kind.kind, str(data_dir), str(place.socket), chosen, initialised=before, options=options)
        try:
            return _launch(kind, installation, shelf, place, fresh, state.options if state else {})
        except _PortTaken as error:
            if port is not None or attempt == _PORT_TRIES:
                _forget(shelf, state, data_dir)
                raise RunError(str(error)) from None
        except BaseException:
            _forget(shelf, state, data_dir)
            raise
    raise AssertionError("unreachable: the last attempt returns or raises")


class _PortTaken(Exception):
    """The server ended because another program got its port first."""


def _initialise(kind: ServerKind, installation: Installation, data_dir: Path, shelf: Shelf, name: str) -> None:
    """Make the data folder beside its place and move it there whole: a half-made one is never used."""
    temporary = data_dir.with_name(f"{data_dir.name}.init")
    _delete(temporary)
    _delete(data_dir)

    def record(process: psutil.Process) -> None:
        shelf.write(State(name, kind.kind, str(temporary), "", 0, process.pid, process.create_time()))

    try:
        kind.initialise(installation, temporary, shelf.log, record)
        temporary.rename(data_dir)
    except BaseException:
        _delete(temporary)
        _delete(shelf.state_file)
        raise


def _launch(
    kind: ServerKind,
    installation: Installation,
    shelf: Shelf,
    place: Place,
    state: State,
    earlier: Options,
) -> ManagedServer:
    """Spawn the server and wait until it answers. However this ends, either it answers or it is gone."""
    kind.clear_leftovers(place)
    skip = {log: log.stat().st_size for log in kind.logs(place) if log.exists()}
    command = kind.command(installation, place, kind.with_defaults(state.options))

    def record(process: psutil.Process) -> None:
        nonlocal state
        state = replace(state, pid=process.pid, create_time=process.create_time())
        shelf.write(state)

    process = spawn(command, shelf.log, installation.environment, shelf.folder, record)
    try:
        version = _wait_ready(kind, process, place, skip)
        kind.settle(place, state.options, {k: v for k, v in earlier.items() if k not in state.options})
        state = replace(state, version=version, initialised=True)
        shelf.write(state)
    except BaseException:
        end_now(process)
        raise
    return _server(state, shelf, process)


def _wait_ready(kind: ServerKind, process: psutil.Process, place: Place, skip: Mapping[Path, int]) -> str:
    deadline = time.monotonic() + kind.ready_timeout_s
    while True:
        try:
            return kind.probe(place)
        except NotReady as error:
            reason = str(error)
        except WrongAnswer as error:
            raise _PortTaken(f"{error}, which another program took first; choose another port") from None
        if wait_gone(process, 0):
            tail = log_tail(kind.logs(place), skip=skip)
            message = f"the {kind.kind} server ended while it was starting{tail}"
            if not port_is_free(place.port) or "already in use" in tail:
                raise _PortTaken(f"another program has port {place.port} now: {message}")
            raise RunError(message)
        if time.monotonic() >= deadline:
            tail = log_tail(kind.logs(place), skip=skip)
            limit = f"{kind.ready_timeout_s:.0f} s"
            raise RunError(f"the {kind.kind} server did not answer within {limit} ({reason.strip()}){tail}")
        time.sleep(0.1)


def _forget(shelf: Shelf, previous: State | None, data_dir: Path) -> None:
    """After a failed start: the state of before, or, if it was the first, nothing but the log."""
    if previous is not None and previous.initialised:
        shelf.write(replace(previous, pid=0, create_time=0.0))
        return
    _delete(data_dir)
    with suppress(FileNotFoundError):
        shelf.state_file.unlink()


def _stop(state: State, shelf: Shelf, timeout_s: float | None) -> None:
    process = _process(state)
    if process is not None:
        kind = _kind(state.kind)
        limit_s = kind.stop_timeout_s if timeout_s is None else timeout_s
        send(process, kind.stop_signal)
        if not wait_gone(process, limit_s):
            logger.warning("server %s did not stop within %g s; it is killed now", state.name, limit_s)
            end_now(process)
            if _process(state) is not None:
                raise RunError(f"server {state.name} (pid {state.pid}) does not stop, not even when killed")
    shelf.write(replace(state, pid=0, create_time=0.0))


def _delete(path: Path) -> None:
    """Delete a folder or file of ours; that it is not there is no error."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{path} cannot be deleted: {error.strerror}") from None
