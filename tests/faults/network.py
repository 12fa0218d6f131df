"""A network of one's own: a namespace for the client, reached by a pair of virtual interfaces, that can be cut.

Servers that dbdyno manages listen on 127.0.0.1 only; a relay on the outer side passes bytes on to them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import pytest
from tests.command_line import CommandLine

OUTER, INNER = "10.213.77.1", "10.213.77.2"
NOBODY = "02:00:00:00:00:99"  # no interface has this address


def ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


class Network:
    """See the module. ``port`` of 127.0.0.1 is reached from inside as ``OUTER``:``self.port``."""

    def __init__(self, port: int) -> None:
        self._server = port
        self.name = f"dbdyno-{os.getpid()}"
        self._outer, self._inner = f"dbo{os.getpid() % 10**6}", f"dbi{os.getpid() % 10**6}"
        self.port = 0
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or shutil.which("ip") is None or ip("netns", "add", self.name, check=False).returncode:
            pytest.skip("this machine lets nobody make a network of his own")
        try:
            ip("link", "add", self._outer, "type", "veth", "peer", "name", self._inner, "netns", self.name)
            ip("addr", "add", f"{OUTER}/30", "dev", self._outer)
            ip("link", "set", self._outer, "up")
            ip("-n", self.name, "addr", "add", f"{INNER}/30", "dev", self._inner)
            ip("-n", self.name, "link", "set", self._inner, "up")
            ip("-n", self.name, "link", "set", "lo", "up")
            self._listener = socket.create_server((OUTER, 0))
            self.port = self._listener.getsockname()[1]
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        if self._listener is not None:
            self._listener.close()
        ip("link", "del", self._outer, check=False)
        ip("netns", "del", self.name, check=False)

    def down(self) -> None:
        """The cable is out."""
        ip("link", "set", self._outer, "down")

    def up(self) -> None:
        """And in again."""
        ip("link", "set", self._outer, "up")

    def swallow(self) -> None:
        """From now on packets vanish in both directions, and no interface says so."""
        ip("neigh", "replace", INNER, "lladdr", NOBODY, "dev", self._outer, "nud", "permanent")
        ip("-n", self.name, "neigh", "replace", OUTER, "lladdr", NOBODY, "dev", self._inner, "nud", "permanent")

    def restore(self) -> None:
        """Packets arrive again."""
        ip("neigh", "del", INNER, "dev", self._outer)
        ip("-n", self.name, "neigh", "del", OUTER, "dev", self._inner)

    def start(self, dbdyno: CommandLine, *words: str) -> subprocess.Popen[str]:
        """The command, inside."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, sys.executable, "-m", "dbdyno", *words],
            cwd=dbdyno.folder,
            env=dbdyno.environment(),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                return
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
