"""A family made of the modules in its folder: what every member does is written once, here."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dbdyno.model.finding import Finding, Need
from dbdyno.targets.family import Capabilities, Connection, DbError, Dialect, Facts, Version, Wire
from dbdyno.targets.url import Address


class Connecting(Protocol):
    """A folder's ``connect.py``."""

    def parse(self, url: str) -> Address: ...

    def connect(
        self,
        address: Address,
        endpoint: int = 0,
        *,
        isolation: str | None = None,
        timeout_s: float = 10.0,
        control: bool = False,
    ) -> Connection: ...

    def wire(self, address: Address, isolation: str | None) -> Wire | None: ...


class Classifying(Protocol):
    """A folder's ``errors.py``."""

    def classify(self, error: BaseException) -> DbError: ...


class Asking(Protocol):
    """A folder's ``facts.py``."""

    def identify(self, connection: Connection) -> Version: ...

    def facts(self, connection: Connection, address: Address) -> Facts: ...

    def counters(self, connection: Connection, address: Address) -> dict[str, int]: ...


class Describing(Protocol):
    """A folder's ``capabilities.py``."""

    def capabilities(self, version: Version) -> Capabilities: ...


class Examining(Protocol):
    """A folder's ``doctor.py``."""

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]: ...


class Inventory(Protocol):
    """What a folder's ``facts.py`` says of tables and limits; families that share a protocol share it."""

    def existing_tables(self, connection: Connection) -> dict[str, list[str]]: ...

    def max_connections(self, connection: Connection) -> int | None: ...


class FolderFamily:
    """See :class:`dbdyno.targets.family.Family` for what each member means."""

    name: str
    schemes: tuple[str, ...]
    default_port: int
    dialect: Dialect
    driver: str

    connecting: Connecting
    errors: Classifying
    asking: Asking
    describing: Describing
    doctor: Examining
    inventory: Inventory

    def parse(self, url: str) -> Address:
        return self.connecting.parse(url)

    def password_from_file(self, address: Address, home: Path) -> str | None:
        return None

    def connect(
        self,
        address: Address,
        endpoint: int = 0,
        *,
        isolation: str | None = None,
        timeout_s: float = 10.0,
        control: bool = False,
    ) -> Connection:
        return self.connecting.connect(address, endpoint, isolation=isolation, timeout_s=timeout_s, control=control)

    def wire(self, address: Address, isolation: str | None) -> Wire | None:
        return self.connecting.wire(address, isolation)

    def classify(self, error: BaseException) -> DbError:
        return self.errors.classify(error)

    def identify(self, connection: Connection) -> Version:
        return self.asking.identify(connection)

    def capabilities(self, version: Version) -> Capabilities:
        return self.describing.capabilities(version)

    def facts(self, connection: Connection, address: Address) -> Facts:
        return self.asking.facts(connection, address)

    def counters(self, connection: Connection, address: Address) -> dict[str, int]:
        return self.asking.counters(connection, address)

    def existing_tables(self, connection: Connection) -> dict[str, list[str]]:
        return self.inventory.existing_tables(connection)

    def max_connections(self, connection: Connection) -> int | None:
        return self.inventory.max_connections(connection)

    def examine(self, connection: Connection, address: Address, need: Need) -> list[Finding]:
        return self.doctor.examine(connection, address, need)
