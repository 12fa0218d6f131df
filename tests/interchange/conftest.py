"""The servers that dbdyno's peers speak to."""

from __future__ import annotations

import pytest
from tests.interchange.peers import Peer

from dbdyno.targets.target import open_target


@pytest.fixture(scope="session", params=("postgresql", "mariadb", "mysql"))
def server(request: pytest.FixtureRequest) -> str:
    """Each server that sysbench's drivers speak to."""
    return str(request.param)


@pytest.fixture
def peer(server: str, target_url: str) -> Peer:
    """A server, empty, with both programs on it."""
    return Peer(server, open_target(target_url))
