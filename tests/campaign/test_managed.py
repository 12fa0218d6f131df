"""Campaigns against servers that dbdyno starts itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.campaign.witness import Witness

from dbdyno.campaign.runner import resume, run_campaign
from dbdyno.model.errors import RunError
from dbdyno.model.plan import Plan
from dbdyno.record.store import Store
from dbdyno.targets import managed

pytestmark = pytest.mark.needs("postgresql")

Make = Callable[..., Plan]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of servers of our own, ended with the module."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBDYNO_HOME", str(folder))
        yield folder
        for server in managed.listing():
            managed.remove(server.name)


@pytest.fixture(autouse=True)
def _home_of_servers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_HOME", str(home))


def test_two_settings_of_one_kind_are_two_servers_with_their_settings_on_record(small_plan: Make, store: Store) -> None:
    targets = [
        {"name": "small", "server": "postgresql", "options": {"work_mem": "1MB", "fsync": True}},
        {"name": "large", "server": "postgresql", "options": {"work_mem": "8MB", "fsync": True}},
    ]
    plan = small_plan(target=targets, connections=1, isolation="read committed")
    entry = run_campaign(store, plan, "")
    assert entry.state == "done"
    small, large = store.trials(entry.id)
    assert small.environment["address"] != large.environment["address"]
    for trial, memory, found in ((small, "1MB", "1024 kB"), (large, "8MB", "8192 kB")):
        server = trial.environment["server"]
        assert server["settings"]["work_mem"] == found
        assert (server["managed"]["kind"], server["managed"]["options"]) == (
            "postgresql",
            {"work_mem": memory, "fsync": "on"},
        )
        assert (server["isolation"], server["in_process"], server["same_host"]) == ("read committed", False, True)
        assert server["durable_commit"] is True
        assert server["database_bytes_before"] > 0


def test_a_password_of_the_url_reaches_the_server_and_nothing_else(
    small_plan: Make, store: Store, tmp_path: Path
) -> None:
    url = managed.start("postgresql", "small").url.replace("@", ":hunter2secret@", 1)
    plan = small_plan(target=[{"name": "a", "url": url}], connections=1)
    entry = run_campaign(store, plan, f'url = "{url}"')
    assert entry.state == "done"
    assert "hunter2secret" not in repr(plan)
    for file in tmp_path.iterdir():
        assert b"hunter2secret" not in file.read_bytes(), file.name
    assert store.campaign(entry.id).plan.target[0].url == managed.start("postgresql", "small").url


def test_a_server_without_room_for_the_connections_is_said_at_once(small_plan: Make, store: Store) -> None:
    url = managed.start("postgresql", "small").url
    with pytest.raises(RunError, match=r"target a allows \d+ connections, the plan asks for 5000"):
        run_campaign(store, small_plan(target=[{"name": "a", "url": url}], connections=[1, 5000]), "")
    assert store.campaigns() == []


def test_a_server_that_dies_fails_its_trials_and_the_others_go_on(
    small_plan: Make, store: Store, tmp_path: Path
) -> None:
    server = managed.start("postgresql", "small")
    targets = [{"name": "a", "url": f"sqlite:///{tmp_path}/a.db?synchronous=off"}, {"name": "b", "url": server.url}]
    witness = Witness()

    def then(*_: object) -> None:
        if len(witness.started) == 2 and len(witness.samples[witness.started[1]]) == 2:
            managed.kill("small")

    witness.then = then
    plan = small_plan(target=targets, duration="1s")
    entry = run_campaign(store, plan, "", observer=witness)
    states = {trial.trial.target + str(trial.trial.connections): trial.state for trial in store.trials(entry.id)}
    assert entry.state == "failed"
    assert (states["a1"], states["a2"], states["b2"]) == ("done", "done", "failed")
    last = store.trials(entry.id)[-1]
    assert last.outcome is not None
    assert last.outcome.reason
    assert last.environment["server"]["family"] == "postgresql"
    assert resume(store, entry.id, observer=witness).state == "failed"
