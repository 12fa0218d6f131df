"""When a server that says nothing counts as gone: the network was cut, or its machine lost power.

Nothing closes such a connection, and a statement on it would wait for ever. The kernel probes a silent peer and
breaks the connection when nothing was acknowledged for fifteen seconds (TCP_KEEPALIVE and TCP_USER_TIMEOUT, tcp(7)
and RFC 5482). A statement that merely takes long is no silence: the kernel of the server answers the probes.
The load engine has the same figures (crates/engine/src/link/socket.rs).
"""

from __future__ import annotations

import socket

FIRST_PROBE_S = 5
PROBES_EVERY_S = 2
SILENCE_S = 15


def watch_peer(handle: socket.socket) -> None:
    """Ask the kernel to notice that the peer is gone; a unix socket needs nothing."""
    if handle.family not in (socket.AF_INET, socket.AF_INET6):
        return
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", FIRST_PROBE_S),
        ("TCP_KEEPINTVL", PROBES_EVERY_S),
        ("TCP_USER_TIMEOUT", SILENCE_S * 1000),
    ):
        if hasattr(socket, name):
            handle.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


#: The same in libpq's words.
LIBPQ: dict[str, int] = {
    "keepalives_idle": FIRST_PROBE_S,
    "keepalives_interval": PROBES_EVERY_S,
    "tcp_user_timeout": SILENCE_S * 1000,
}
