"""Why a connection could not be opened, in one sentence; what every server family shares of it."""

from __future__ import annotations

import errno
import re
import socket
from pathlib import Path

from dbdyno.targets.url import Address, Endpoint


def probe(endpoint: Endpoint, timeout_s: float) -> OSError | None:
    """Try the transport alone. Drivers say what failed in the words of the user's locale; a socket does not."""
    try:
        if endpoint.socket:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
                plain.settimeout(timeout_s)
                plain.connect(endpoint.socket)
        else:
            socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s).close()
    except OSError as error:
        return error
    return None


def transport_sentence(endpoint: Endpoint, error: OSError, timeout_s: float) -> str:
    """The sentence for a failure before the server said anything."""
    if isinstance(error, socket.gaierror):
        return f"the host {endpoint.host!r} is unknown; check its spelling"
    if isinstance(error, TimeoutError):
        return silent_sentence(endpoint, timeout_s)
    if endpoint.socket and error.errno in (errno.ENOENT, errno.ECONNREFUSED):
        return f"no server listens at the socket {endpoint.socket}; start it or correct the path"
    if error.errno == errno.ECONNREFUSED:
        return f"nothing listens at {endpoint}; start the server or correct host and port"
    if error.errno in (errno.ECONNRESET, errno.EPIPE):
        return closed_sentence(endpoint)
    return f"{endpoint} cannot be reached: {error.strerror or error}"


def silent_sentence(endpoint: Endpoint, timeout_s: float) -> str:
    """Nothing came within the time."""
    return f"{endpoint} did not answer within {timeout_s:g} s; a firewall, a stopped server, or another service"


def closed_sentence(endpoint: Endpoint) -> str:
    """The other side hung up during the login."""
    return f"{endpoint} closed the connection during the login; is it this kind of database?"


def missing_file_sentence(address: Address) -> str:
    """The sentence for a file of tls_ca, tls_cert or tls_key that is not there, "" when all are."""
    for name in ("tls_ca", "tls_cert", "tls_key"):
        path = address.params.get(name)
        if path and not Path(path).is_file():
            return f"there is no file {path}, which {name} names"
    return ""


def login_sentence(address: Address, endpoint: Endpoint) -> str:
    """Wrong user or password."""
    given = "with that password" if address.password is not None else "without a password"
    return (
        f"{endpoint} refused the login of user {address.user!r} {given};"
        " the password comes from the URL, --ask-password, $DBDYNO_PASSWORD or the database's own password file"
    )


def scrub(text: str, address: Address) -> str:
    """One line, without the password, whatever a driver or server put into its message."""
    secret = address.password.reveal() if address.password is not None else ""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    elif secret:  # a password "p" is no reason to blank every p
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return " ".join(text.split())
