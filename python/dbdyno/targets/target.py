"""A target: a database as addressed, with its family behind it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.model.errors import UsageError, nearest
from dbdyno.targets.family import Capabilities, Connection, Facts, Family, Version
from dbdyno.targets.registry import FAMILIES, family_of_scheme
from dbdyno.targets.url import Address, split_scheme

PASSWORD_VARIABLE = "DBDYNO_PASSWORD"


@dataclass(frozen=True)
class Target:
    """One side of a comparison. ``label`` is its name in tables and sentences."""

    label: str
    family: Family = field(repr=False)
    address: Address

    def connect(self, endpoint: int = 0, *, isolation: str | None = None, timeout_s: float = 10.0) -> Connection:
        """A connection of the load; ``endpoint`` is taken modulo the number of endpoints (round robin)."""
        number = endpoint % max(1, len(self.address.endpoints))
        return self.family.connect(self.address, number, isolation=isolation, timeout_s=timeout_s)

    def control(self, timeout_s: float = 10.0) -> Connection:
        """A control connection, not part of any figure."""
        return self.family.connect(self.address, 0, timeout_s=timeout_s, control=True)

    def describe(self) -> tuple[Version, Capabilities, Facts]:
        """Connect once and ask the server what it is."""
        connection = self.control()
        try:
            version = self.family.identify(connection)
            return version, self.family.capabilities(version), self.family.facts(connection, self.address)
        finally:
            connection.close()

    def capabilities(self) -> Capabilities:
        """Connect once and ask what the server can do."""
        connection = self.control()
        try:
            return self.family.capabilities(self.family.identify(connection))
        finally:
            connection.close()


def open_target(
    text: str,
    *,
    label: str = "",
    ask_password: Callable[[str], str] | None = None,
    start_server: bool = False,
) -> Target:
    """A target from a URL or the name of a managed server. Connects to nothing (but may start the server).

    The password comes from the URL, from ``ask_password(prompt)``, from $DBDYNO_PASSWORD, or from the
    family's own file, in this order.

    Raises:
        UsageError: unknown scheme, malformed URL, no such server.
    """
    parts = split_scheme(text)
    if parts is None:
        from dbdyno.targets import managed  # starts processes: only loaded when a server is named

        server = managed.find(text)
        if (server is None or not server.running) and start_server:
            server = managed.start(text) if server is None else managed.start(server.kind, server.name)
        if server is None or not server.running:
            names = [item.name for item in managed.listing()]
            raise UsageError(
                f"{text!r} is neither a URL nor a running server"
                + (nearest(text, names) if names else "")
                + f"; start one with 'dbdyno server start {text if text in managed.KINDS else 'KIND'}'"
                " or write scheme://user@host:port/database"
            )
        return open_target(server.url, label=label or server.name)
    family = family_of_scheme(parts[0])
    address = family.parse(text)
    if address.password is None and ask_password is not None and address.endpoints:  # a file has no password
        address = address.with_password(ask_password(f"Password for {address}: "))
    elif address.password is None and (given := os.environ.get(PASSWORD_VARIABLE)) is not None:
        address = address.with_password(given)
    elif address.password is None:
        found = family.password_from_file(address, Path.home())
        if found is not None:
            address = address.with_password(found)
    return Target(label or default_label(address), family, address)


def default_label(address: Address) -> str:
    """``postgresql`` for a scheme, the file's stem for a file: short enough for a table's head."""
    return address.scheme if address.endpoints else Path(address.database).stem or address.scheme


def family_names() -> list[str]:
    """Names of all families."""
    return sorted(FAMILIES)
