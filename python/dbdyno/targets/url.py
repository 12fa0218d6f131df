"""Target URLs: ``scheme://user[:password]@host[:port][,host[:port]…]/database[?key=value&…]``.

``user@tenant#cluster`` is taken as typed and percent-encoded; the host begins after the last ``@``. A password
lives in :class:`Secret` alone, which never shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, unquote

from dbdyno.model.errors import UsageError, nearest

_SCHEME = re.compile(r"([a-z][a-z0-9+]*)://(.*)", re.DOTALL)


class Secret:
    """A text that prints as ``***``; ``reveal()`` is for the driver's login alone."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a password is not to be stored")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Host and port, or the path of a unix socket."""

    host: str
    port: int
    socket: str = ""

    def __str__(self) -> str:
        return self.socket or (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed target URL. ``str()`` of it never holds the password."""

    scheme: str
    user: str
    password: Secret | None
    endpoints: tuple[Endpoint, ...]
    database: str  # a name, or for files the path
    params: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        # "root@tenant#cluster" stays readable: the host begins after the last @, so only what would end the user
        # or the escape itself is escaped.
        user = f"{quote(self.user, safe='@#!$*+=;~ ')}@" if self.user else ""
        where = ",".join(self._where(endpoint) for endpoint in self.endpoints)
        params = "&".join(f"{key}={quote(value, safe='/')}" for key, value in self.params.items())
        database = quote(self.database, safe="/ ")
        return f"{self.scheme}://{user}{where}/{database}{'?' + params if params else ''}"

    def _where(self, endpoint: Endpoint) -> str:
        if endpoint.socket and not self.params.get("socket"):  # written as a host, the way libpq does
            return f"{quote(endpoint.socket, safe='')}:{endpoint.port}"
        return str(replace(endpoint, socket=""))

    def with_password(self, password: str) -> Address:
        """The same address with that password."""
        return replace(self, password=Secret(password))

    def with_database(self, database: str) -> Address:
        """The same server, another database."""
        return replace(self, database=database)


def split_scheme(url: str) -> tuple[str, str] | None:
    """(scheme, rest), or None when the text is no URL."""
    match = _SCHEME.fullmatch(url)
    return (match[1], match[2]) if match else None


#: Parameters that every server family takes.
SERVER_PARAMS = ("socket", "tls", "tls_ca", "tls_cert", "tls_key")
TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")


def parse_address(url: str, default_port: int, allowed: tuple[str, ...] = SERVER_PARAMS) -> Address:
    """Parse a URL of a server family. Parameters: ``socket=PATH`` (a unix socket), ``tls=MODE`` (of
    :data:`TLS_MODES`, default prefer), ``tls_ca=FILE``, ``tls_cert=FILE``, ``tls_key=FILE``.

    Raises:
        UsageError: not of the form above. The message never repeats the text, which may hold a password.
    """
    parts = split_scheme(url)
    if parts is None:
        raise UsageError("a target is a URL like scheme://user@host:port/database or the name of a server")
    scheme, rest = parts
    rest, _, query = _split_query(rest)
    credentials, at, location = rest.rpartition("@")
    user_text, colon, password_text = credentials.partition(":")
    hosts, _, database = location.partition("/")
    params = dict(parse_qsl(query, keep_blank_values=True))
    if any(key in params for key in ("password", "passwd")):
        raise UsageError(
            "a password does not belong in the URL's parameters; write user:password@host, or use a variable"
        )
    check_params(params, allowed)
    socket = params.get("socket", "")
    endpoints = tuple(_endpoint(text, default_port, socket) for text in (hosts or "127.0.0.1").split(","))
    if at and not user_text:
        raise UsageError(f"the {scheme} URL has an @ but no user before it")
    return Address(
        scheme,
        unquote(user_text),
        Secret(unquote(password_text)) if colon else None,
        endpoints,
        unquote(database),
        params,
    )


def check_params(params: Mapping[str, str], allowed: tuple[str, ...]) -> None:
    """Refuse parameters that would do nothing.

    Raises:
        UsageError: an unknown name, or a mode of TLS that there is not.
    """
    for key, value in params.items():
        if key not in allowed:
            raise UsageError(f"the URL's parameter {key!r} is unknown{nearest(key, allowed)}")
        if key == "tls" and value not in TLS_MODES:
            raise UsageError(f"tls={value} is unknown{nearest(value, TLS_MODES)}")


def _split_query(rest: str) -> tuple[str, str, str]:
    """Split at the ``?`` that begins the parameters: the first one after the database's slash.

    A ``?``, ``/`` or ``#`` inside user or password stands before the last ``@``.
    """
    at = rest.rfind("@")
    mark = rest.find("?", at + 1)
    return (rest, "", "") if mark < 0 else (rest[:mark], "?", rest[mark + 1 :])


def _endpoint(text: str, default_port: int, socket: str) -> Endpoint:
    # The messages do not repeat the text: where an @ was forgotten, it is a password.
    if text.startswith("["):
        host, bracket, tail = text[1:].partition("]")
        port_text = tail[1:] if tail.startswith(":") else ""
        if not bracket or (tail and not tail.startswith(":")):
            raise UsageError("a host in the target's URL has brackets; an IPv6 address is written [::1] or [::1]:port")
    else:
        host, _, port_text = text.partition(":")
    host = unquote(host)
    if not host:
        raise UsageError("a host is missing in the target's URL; write host or host:port, separated by commas")
    if port_text and not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536):
        raise UsageError("the port in the target's URL is not a number from 1 to 65535; write user:password@host:port")
    port = int(port_text) if port_text else default_port
    if host.startswith("/"):  # a folder of sockets, percent-encoded, as libpq takes it
        return Endpoint("localhost", port, host)
    return Endpoint(host, port, socket)
