"""What is on the record of every trial: the client's machine, the server as found, how it was reached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.campaign.machine import client_facts
from dbdyno.model.errors import DbdynoError
from dbdyno.targets.family import Capabilities, Facts
from dbdyno.targets.place import same_host
from dbdyno.targets.target import Target
from dbdyno.targets.url import Address

__all__ = ["capture", "capture_after", "client_facts", "unreachable"]


def capture(
    target: Target,
    *,
    isolation: str | None = None,
    managed: Mapping[str, Any] | None = None,
    store: Path | None = None,
) -> dict[str, Any]:
    """Everything about client and server, as JSON.

    Args:
        isolation: the level that the trial asks for; None: the server's own default is on the record.
        managed: name, kind, version and settings of a managed server.
        store: where the store is, if it is a file; a database file's disk goes before it.

    Raises:
        RunError: the server cannot be asked.
    """
    _, capabilities, facts = target.describe()
    data = Path(target.address.database) if not target.address.endpoints else store
    return {
        "client": client_facts(data),
        "server": _server(facts, capabilities, target.address, isolation, managed),
        "address": str(target.address),
        "driver": target.family.driver,
    }


def unreachable(target: Target, managed: Mapping[str, Any] | None) -> dict[str, Any]:
    """What can be said of a server that does not answer."""
    return {
        "client": client_facts(),
        "server": {
            "family": target.family.name,
            "same_host": same_host(target.address),
            "managed": dict(managed) if managed is not None else None,
        },
        "address": str(target.address),
        "driver": target.family.driver,
    }


def _server(
    facts: Facts,
    capabilities: Capabilities,
    address: Address,
    isolation: str | None,
    managed: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "family": facts.version.family,
        "flavour": facts.version.flavour,
        "version": ".".join(map(str, facts.version.number)),
        "version_text": facts.version.text,
        "comment": facts.version.comment,
        "settings": dict(facts.settings),
        "durability": dict(facts.durability),
        "durable_commit": facts.durable_commit,
        "isolation": isolation or facts.isolation,
        "in_process": capabilities.in_process,
        "same_host": same_host(address),
        "database_bytes_before": facts.database_bytes,
        "database_bytes_after": None,
        "managed": dict(managed) if managed is not None else None,
        "extra": dict(facts.extra),
    }


def capture_after(target: Target) -> dict[str, Any]:
    """What is merged in after the trial: the database's size; nothing where the server does not answer."""
    try:
        _, _, facts = target.describe()
    except DbdynoError:
        return {}
    return {"server": {"database_bytes_after": facts.database_bytes}}
