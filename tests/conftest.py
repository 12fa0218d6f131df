"""Servers for the tests.

``@pytest.mark.needs("mysql", …)`` or a fixture ``mysql_url`` says that a test needs a server (or a program) of
servers.toml; ``server`` and ``target_url`` run a test once on each server. A missing one skips the test, or
fails the whole run where DBDYNO_REQUIRE_SERVERS=1 is set. A server's tests run together, in one worker where
there are several (``-n``), and it is stopped when they are done.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.servers.pool import Needed, Pool, empty, survey

# How long an example takes says nothing where several tests run at a time.
settings.register_profile("dbdyno", deadline=None)
settings.load_profile("dbdyno")

#: The servers that a test with ``server`` or ``target_url`` runs on, the light ones first.
SERVERS = ("sqlite", "postgresql", "mariadb", "mysql", "seekdb")

_survey = pytest.StashKey[dict[str, Needed]]()
_pool = pytest.StashKey[Pool]()
_HOME = "dbdyno_home"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(name, …): the test needs these servers or programs of servers.toml")
    config.stash[_survey] = survey()
    missing = [entry for entry in config.stash[_survey].values() if entry.missing]
    if missing and os.environ.get("DBDYNO_REQUIRE_SERVERS") == "1":
        said = "; ".join(f"{entry.name}: {entry.missing}" for entry in missing)
        raise pytest.UsageError(f"DBDYNO_REQUIRE_SERVERS=1, but missing here: {said}")
    worker = getattr(config, "workerinput", None)
    config.stash[_pool] = Pool.of_worker(Path(worker[_HOME]), worker["workerid"]) if worker else Pool.make()
    # A run that is told to stop shall stop its servers, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # One that a script started in the background would have Ctrl-C ignored, and so would the commands under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist starts a worker: its servers are below our home, so that we can stop what it leaves."""
    node.workerinput[_HOME] = str(node.config.stash[_pool].home)


def pytest_unconfigure(config: pytest.Config) -> None:
    pool = config.stash.get(_pool, None)
    if pool is not None:
        pool.close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    entries = config.stash[_survey].values()
    lines = ["servers: " + ", ".join(f"{e.name} {e.version}" for e in entries if e.server and not e.missing)]
    programs = [e.name for e in entries if not e.server and not e.missing]
    if programs:
        lines.append(f"programs: {', '.join(programs)}")
    return lines + [f"missing, its tests are skipped: {e.name}: {e.missing}" for e in entries if e.missing]


def needed_by(item: pytest.Item) -> list[str]:
    """Names of servers.toml that a test needs, by its markers, its parameters and its fixtures."""
    names: dict[str, None] = {}
    for marker in item.iter_markers("needs"):
        names |= dict.fromkeys(marker.args)
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "server" in callspec.params:
        names[callspec.params["server"]] = None
    for fixture in getattr(item, "fixturenames", ()):
        if fixture.endswith("_url") and fixture.removesuffix("_url") in SERVERS:
            names[fixture.removesuffix("_url")] = None
    return list(names)


def group_of(item: pytest.Item | None) -> int:
    """The heaviest of the servers that a test needs (its place in ``SERVERS``), -1 if it needs none."""
    needed = needed_by(item) if item is not None else []
    return max((SERVERS.index(name) for name in needed if name in SERVERS), default=-1)


def pytest_itemcollected(item: pytest.Item) -> None:
    # Several workers: a server's tests stay together; those that have nothing but files go where there is time.
    if (group := group_of(item)) > 0 and item.config.pluginmanager.hasplugin("xdist"):
        item.add_marker(pytest.mark.xdist_group(SERVERS[group]))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = config.stash[_survey]
    for item in items:
        for name in needed_by(item):
            if name not in known:
                raise pytest.UsageError(f"{item.nodeid} needs {name!r}, which servers.toml does not list")
    # Tests without a server first, then server by server: at most the servers of one test run at a time.
    items.sort(key=group_of)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    known = item.config.stash[_survey]
    for name in needed_by(item):
        if known[name].missing:
            pytest.skip(f"needs {name}: {known[name].missing}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    pool = item.config.stash[_pool]
    pool.enter(str(item.path), needed_by(item))
    try:
        return (yield)
    finally:
        if group_of(item) != group_of(nextitem):
            pool.keep(needed_by(nextitem) if nextitem is not None else ())


@pytest.fixture(scope="session")
def pool(request: pytest.FixtureRequest) -> Pool:
    """The managed servers of this run, for tests that stop, kill or reconfigure one."""
    return request.config.stash[_pool]


@pytest.fixture
def postgresql_url(pool: Pool) -> str:
    return pool.url("postgresql")


@pytest.fixture
def mariadb_url(pool: Pool) -> str:
    return pool.url("mariadb")


@pytest.fixture
def mysql_url(pool: Pool) -> str:
    return pool.url("mysql")


@pytest.fixture
def seekdb_url(pool: Pool) -> str:
    return pool.url("seekdb")


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """Each server's name in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that stands for a server where there is none."""
    return tmp_path_factory.mktemp("sqlite") / "shared.db"


@pytest.fixture
def server_url(server: str, pool: Pool, shared_file: Path) -> str:
    """A URL on each server in turn: the test cleans up after itself.

    Asked for by every test anew: a server that went when another's tests came is on another port when it is back.
    """
    return f"sqlite:///{shared_file}" if server == "sqlite" else pool.url(server)


@pytest.fixture
def target_url(server: str, pool: Pool, tmp_path: Path) -> Iterator[str]:
    """A URL on each server in turn, its database empty before the test."""
    if server == "sqlite":
        yield f"sqlite:///{tmp_path}/target.db"
        return
    running = pool.server(server)
    empty(running)
    yield running.url
    empty(pool.server(server))
