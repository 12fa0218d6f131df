"""The sides of a comparison, made ready: servers started, addresses with their passwords, capabilities known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.campaign.plancheck import server_kind, server_options
from dbdyno.model.errors import RunError, UsageError, nearest
from dbdyno.model.plan import Plan, PlanTarget
from dbdyno.targets import managed
from dbdyno.targets.family import Capabilities
from dbdyno.targets.managed_state import default_home
from dbdyno.targets.target import Target, open_target

AskPassword = Callable[[str], str]


@dataclass(frozen=True)
class Side:
    """One target of the plan, ready to be driven. ``managed`` describes a server that dbdyno manages."""

    target: Target
    capabilities: Capabilities
    managed: Mapping[str, Any] | None = None


def make_ready(plan: Plan, labels: Iterable[str], ask_password: AskPassword | None = None) -> dict[str, Side]:
    """Open the targets with those labels and see that each answers and can do what the plan asks.

    Raises:
        UsageError: no such server, an isolation level it has not, a password's variable that is not set.
        RunError: it does not answer, or has not room for the connections.
    """
    wanted = set(labels)
    return {target.name: _side(plan, target, ask_password) for target in plan.target if target.name in wanted}


def _side(plan: Plan, wanted: PlanTarget, ask_password: AskPassword | None) -> Side:
    target, server = _opened(wanted, ask_password)
    if not target.address.endpoints and Path(target.address.database).parent == default_home().absolute():
        default_home().mkdir(parents=True, exist_ok=True)  # {home}, which nobody made before
    connection = target.control()
    try:
        capabilities = target.family.capabilities(target.family.identify(connection))
        room = target.family.max_connections(connection)
    finally:
        connection.close()
    if plan.isolation is not None and plan.isolation not in capabilities.isolation:
        raise UsageError(
            f"target {wanted.name} has no isolation level {plan.isolation!r}"
            f"{nearest(plan.isolation, capabilities.isolation)}"
        )
    if room is not None and max(plan.connections) > room:
        raise RunError(
            f"target {wanted.name} allows {room} connections, the plan asks for {max(plan.connections)};"
            " raise the server's limit or lower connections"
        )
    return Side(target, capabilities, server)


def _opened(wanted: PlanTarget, ask_password: AskPassword | None) -> tuple[Target, Mapping[str, Any] | None]:
    if wanted.server is not None:
        server = _started(wanted, wanted.server)
        described = {
            "name": server.name,
            "kind": server.kind,
            "version": server.version,
            "options": dict(server.options),
        }
        return open_target(server.url, label=wanted.name), described
    assert wanted.url is not None
    if wanted.password_env is None:
        return open_target(wanted.url, label=wanted.name, ask_password=ask_password), None
    password = os.environ.get(wanted.password_env)
    if password is None:
        raise UsageError(f"target {wanted.name}: the variable {wanted.password_env} with its password is not set")
    target = open_target(wanted.url, label=wanted.name)
    return replace(target, address=target.address.with_password(password)), None


def _started(wanted: PlanTarget, server: str) -> managed.ManagedServer:
    """The managed server, running. One with settings of its own is named after the target, so that two
    targets can be the same kind with different settings."""
    kind = server_kind(server)
    if kind is None:
        raise UsageError(f"target {wanted.name}: no managed server {server!r}{nearest(server, managed.KINDS)}")
    if not wanted.options:
        return managed.start(kind, server)
    name = wanted.name if server in managed.KINDS else server
    return managed.start(kind, name, server_options(wanted.options))
