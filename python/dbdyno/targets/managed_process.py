"""Processes, ports and folders of managed servers: whose they are, and how they are started and ended."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from signal import Signals

import psutil

from dbdyno.model.errors import RunError, UsageError

LOOPBACK = "127.0.0.1"

#: The kernel keeps a process's start in ticks since boot, and the time of boot may be corrected meanwhile.
_CREATE_TIME_TOLERANCE_S = 2.0
#: ``sun_path`` holds 108 bytes, the last a zero.
SOCKET_PATH_MAX = 107
#: Servers append up to ``/.s.PGSQL.65535.lock`` to a folder's name.
_SOCKET_FOLDER_MAX = SOCKET_PATH_MAX - 21

#: Servers that this process started; kept so that a dead one is reaped and not seen as a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


#: Told of a process before it does anything, so that it can be found again however we end.
Record = Callable[[psutil.Process], None]


def spawn(
    command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path, record: Record
) -> psutil.Process:
    """Start a server in a session of its own (no terminal, no Ctrl-C), its output appended to ``log``.

    It waits at the door until it is on record; if we end before, it ends as well.
    """
    gate = ["/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "dbdyno"]
    with log.open("ab") as output:
        child = subprocess.Popen(
            [*gate, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=cwd,
            start_new_session=True,
        )
    assert child.stdin is not None
    _children[child.pid] = child
    process = psutil.Process(child.pid)
    try:
        record(process)
        child.stdin.write(b"go\n")
        child.stdin.close()
    except BaseException:
        end_now(process)
        raise
    return process


def owned(pid: int, create_time: float, data_dir: Path) -> psutil.Process | None:
    """The process, if it is the server that was started on ``data_dir``: same pid, same start, and the data
    folder in its command line. Anything else that has got the pid since is left alone (None)."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        if abs(process.create_time() - create_time) > _CREATE_TIME_TOLERANCE_S:
            return None
        words = process.cmdline()
    except psutil.Error:
        return None
    wanted = str(data_dir)
    if any(word == wanted or word.endswith(f"={wanted}") for word in words):
        return process
    return None


def wait_gone(process: psutil.Process, timeout_s: float) -> bool:
    """Whether the process ended within the time. A child of ours is reaped."""
    child = _children.get(process.pid)
    if child is not None:
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        del _children[process.pid]
        return True
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def send(process: psutil.Process, signal: Signals) -> None:
    """Signal it; that it is gone already is no error. psutil checks that the pid was not reused."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal)


def end_now(process: psutil.Process) -> None:
    """SIGKILL for it and what it started, and wait until the data folder is nobody's."""
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = [process]
    send(process, Signals.SIGKILL)
    for member in family[1:]:
        send(member, Signals.SIGKILL)
    for member in family:
        wait_gone(member, 10)


def run_step(
    command: Sequence[str], log: Path, environment: Mapping[str, str], what: str, cwd: Path, record: Record
) -> None:
    """Run an initialising program to its end, its output into ``log``. Interrupted, it is ended with us."""
    process = spawn(command, log, environment, cwd, record)
    child = _children[process.pid]
    try:
        status = child.wait(timeout=300)
    except BaseException as error:
        end_now(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise RunError(f"{what} took more than 300 s{log_tail([log])}") from None
        raise
    del _children[process.pid]
    if status != 0:
        raise RunError(f"{what} ended with status {status}{log_tail([log])}")


def log_tail(logs: Sequence[Path], lines: int = 12, skip: Mapping[Path, int] | None = None) -> str:
    """The last lines of the logs, ready to follow a sentence; ``skip``: how many bytes of each are old."""
    text: list[str] = []
    for log in logs:
        try:
            with log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max((skip or {}).get(log, 0), size - 16_384))
                content = file.read().decode(errors="replace")
        except OSError:
            continue
        last = [line.rstrip()[:500] for line in content.splitlines() if line.strip()][-lines:]
        if last:
            text.append(f"; the last lines of {log}:\n  " + "\n  ".join(last))
    return "\n".join(text) if text else f"; {logs[-1] if logs else 'its log'} is empty"


def free_port(wanted: int | None = None) -> int:
    """A port of loopback that can be bound now: the wanted one, or any. RunError: the wanted one is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted or 0))
        except OSError as error:
            raise RunError(f"port {wanted} of {LOOPBACK} cannot be used: {error.strerror}; choose another") from None
        port: int = probe.getsockname()[1]
        return port


def port_is_free(port: int) -> bool:
    try:
        free_port(port)
    except RunError:
        return False
    return True


def short_folder(server_folder: Path) -> Path:
    """A folder for the unix socket: in the server's own, or, where that path is longer than a socket address
    can be, in a private one below the folder for temporary files."""
    inside = server_folder / "run"
    if len(os.fsencode(inside)) <= _SOCKET_FOLDER_MAX:
        inside.mkdir(mode=0o700, exist_ok=True)
        return inside
    digest = sha256(os.fsencode(server_folder)).hexdigest()[:16]
    return private_folder(private_folder(Path(tempfile.gettempdir()) / f"dbdyno-{os.geteuid()}") / digest)


def private_folder(path: Path, mode: int = 0o700) -> Path:
    """Make a folder in a place that everybody can write to, and see that it is ours and no link."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=mode)
    status = path.lstat()
    if not path.is_dir() or path.is_symlink() or status.st_uid != os.geteuid():
        raise RunError(f"{path} belongs to somebody else; remove it or set TMPDIR to a folder of your own")
    path.chmod(mode)
    return path


@contextlib.contextmanager
def locked(path: Path, what: str, timeout_s: float) -> Iterator[None]:
    """Hold an exclusive lock on a file; another dbdyno that holds it is waited for."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise RunError(f"servers cannot be kept in {path.parent}: {error.strerror}; set DBDYNO_HOME") from None
    with file:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise RunError(f"{path} cannot be locked: {error.strerror}") from None
            if time.monotonic() >= deadline:
                raise RunError(f"another dbdyno has been starting or stopping {what} for {timeout_s:.0f} s")
            time.sleep(0.05)
        yield


def check_name(name: str) -> str:
    """A server's name: it becomes a folder's. Raises UsageError."""
    if not (1 <= len(name) <= 40) or not name[0].isalnum() or not name.isascii():
        raise UsageError(f"{name!r} cannot be a server's name: a letter or digit first, at most 40 characters")
    if not all(c.isalnum() or c in "_-." for c in name):
        raise UsageError(f"{name!r} cannot be a server's name: letters, digits, '-', '_' and '.' only")
    return name
