"""Where a database runs, as seen from here."""

from __future__ import annotations

import ipaddress
import socket

import psutil

from dbdyno.targets.url import Address


def same_host(address: Address) -> bool:
    """Whether the database shares this machine: a file, a unix socket, loopback or one of our own addresses.

    Judged by address: a tunnel or a forwarded port on loopback looks like this machine.
    """
    own = {
        entry.address.partition("%")[0]
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family in (socket.AF_INET, socket.AF_INET6)
    }
    return all(endpoint.socket or _is_own(endpoint.host, own) for endpoint in address.endpoints)


def _is_own(host: str, own: set[str]) -> bool:
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    texts = {str(text).partition("%")[0] for text in found}
    return bool(texts) and all(text in own or ipaddress.ip_address(text).is_loopback for text in texts)
