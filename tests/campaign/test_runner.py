"""Campaigns on real files: everything is on the record, and what goes wrong is said and survived."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.campaign.witness import Witness, contiguous

from dbdyno._engine import Histogram
from dbdyno.campaign.runner import resume, run_campaign
from dbdyno.campaign.trials import expand
from dbdyno.drive import Stop
from dbdyno.model.errors import RunError, UsageError
from dbdyno.model.plan import Plan
from dbdyno.record.store import Store

Make = Callable[..., Plan]


def test_every_trial_is_on_the_record_with_its_samples_and_environment(small_plan: Make, store: Store) -> None:
    plan = small_plan(rounds=2, warmup="0.1s")
    witness = Witness()
    entry = run_campaign(store, plan, "the text", observer=witness)
    assert (entry.state, entry.plan_text, witness.states) == ("done", "the text", ["done"])
    trials = store.trials(entry.id)
    assert [trial.trial for trial in trials] == expand(plan, entry.id)
    assert witness.started == [trial.id for trial in trials]
    for trial in trials:
        samples = store.samples(trial.id)
        assert samples == witness.samples[trial.id]
        assert contiguous(samples)
        assert samples[0].second == pytest.approx(-0.1, abs=0.01)
        assert trial.outcome is not None
        measured = [sample for sample in samples if sample.second >= -1e-9]
        assert sum(sample.counts.committed for sample in measured) > 0
        assert Histogram.decode(trial.outcome.response).count == trial.outcome.counts.committed
        assert "class PointSelect" in trial.source
        assert trial.finished is not None
        assert trial.started is not None
        assert trial.finished > trial.started
        server, client = trial.environment["server"], trial.environment["client"]
        assert (server["family"], server["in_process"], server["same_host"]) == ("sqlite", True, True)
        assert server["durability"]["synchronous"] == "off"
        assert server["durable_commit"] is False
        assert server["isolation"] == "serializable"
        assert server["database_bytes_before"] > 0
        assert server["database_bytes_after"] > 0
        assert client["cores"] >= 1
        assert client["memory_bytes"] > 1 << 27
        assert client["cpu_model"]
        assert client["disk"]["filesystem"]
        assert trial.environment["address"].startswith("sqlite:///")


def test_data_are_loaded_once_before_the_first_trial(small_plan: Make, store: Store) -> None:
    workloads = [{"name": name, "options": {"table_size": 100}} for name in ("oltp_point_select", "oltp_read_only")]
    witness = Witness()
    witness.on_load = lambda: None if not witness.started else pytest.fail("loaded after a trial had begun")
    run_campaign(store, small_plan(workload=workloads), "", observer=witness)
    assert set(witness.loads) == {("a", "oltp_point_select")}
    assert witness.notes == ["loaded 100 rows into 1 table on a"]


def test_trials_are_run_in_the_order_of_the_plan(small_plan: Make, store: Store, tmp_path: Path) -> None:
    targets = [{"name": name, "url": f"sqlite:///{tmp_path}/{name}.db?synchronous=off"} for name in "ab"]
    witness = Witness()
    plan = small_plan(target=targets, rounds=2, connections=1, duration="0.05s")
    entry = run_campaign(store, plan, "", observer=witness)
    order = [name.split("/")[2] for name in witness.started]
    assert (order, entry.state) == (["a", "b", "b", "a"], "done")


# What cannot be done


def test_a_target_that_cannot_be_reached_stops_before_anything(small_plan: Make, store: Store) -> None:
    with socket.socket() as taken:  # bound, not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://joe:hunter2@127.0.0.1:{taken.getsockname()[1]}/db"
        targets = [*small_plan().model_dump()["target"], {"name": "b", "url": url}]
        with pytest.raises(RunError) as caught:
            run_campaign(store, small_plan(target=targets), "")
    assert "hunter2" not in str(caught.value)
    assert store.campaigns() == []


def test_an_isolation_level_that_a_target_has_not(small_plan: Make, store: Store) -> None:
    with pytest.raises(UsageError, match="target a has no isolation level 'read committed'; allowed: serializable"):
        run_campaign(store, small_plan(isolation="read committed"), "")
    assert store.campaigns() == []


def test_a_password_variable_that_is_not_set(small_plan: Make, store: Store) -> None:
    target = {"name": "b", "url": "postgresql://joe@127.0.0.1/db", "password_env": "NO_SUCH_VARIABLE"}
    with pytest.raises(UsageError, match="the variable NO_SUCH_VARIABLE with its password is not set"):
        run_campaign(store, small_plan(target=[target]), "")


def test_tables_of_somebody_else_fail_the_campaign_with_their_columns(small_plan: Make, store: Store) -> None:
    import sqlite3

    plan = small_plan()
    path = (plan.target[0].url or "").removeprefix("sqlite:///").partition("?")[0]
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE sbtest1 (colour TEXT)")
    other.close()
    with pytest.raises(RunError, match="it has the columns colour"):
        run_campaign(store, plan, "")
    assert [entry.state for entry in store.campaigns()] == ["failed"]
    assert set(store.states("small-1").values()) == {"pending"}


def test_a_trial_that_fails_is_recorded_and_the_campaign_goes_on(small_plan: Make, store: Store) -> None:
    workloads = [
        {"name": "oltp_delete", "options": {"table_size": 100}},
        {"name": "oltp_point_select", "options": {"table_size": 100}},
    ]
    witness = Witness()
    entry = run_campaign(store, small_plan(workload=workloads, connections=1, rounds=2), "", observer=witness)
    assert entry.state == "failed"
    assert [state for _, state in witness.finished] == ["done", "failed", "done", "failed"]
    failed = store.trials(entry.id)[1]
    assert failed.outcome is not None
    assert "rows, 100 are needed" in failed.outcome.reason
    assert Histogram.decode(failed.outcome.response).count == 0
    assert failed.environment["server"]["durability"]["synchronous"] == "off"


def test_tables_that_trials_changed_are_loaded_anew_where_the_plan_says_so(small_plan: Make, store: Store) -> None:
    workloads = [
        {"name": "oltp_delete", "options": {"table_size": 100}},
        {"name": "oltp_point_select", "options": {"table_size": 100}},
    ]
    witness = Witness()
    plan = small_plan(workload=workloads, connections=1, rounds=2, reload="changed")
    entry = run_campaign(store, plan, "", observer=witness)
    assert entry.state == "done"
    assert witness.notes == ["loaded 100 rows into 1 table on a"] * 3
    assert all(not trial.outcome.notes for trial in store.trials(entry.id) if trial.outcome is not None)


def test_a_trial_on_tables_that_earlier_ones_changed_says_so(small_plan: Make, store: Store) -> None:
    workloads = [{"name": "oltp_delete", "options": {"table_size": 100}}]
    entry = run_campaign(store, small_plan(workload=workloads), "")
    first, second = (trial.outcome for trial in store.trials(entry.id))
    assert first is not None
    assert second is not None
    assert (first.notes, "earlier trials added rows to sbtest1 or removed some" in second.notes[0]) == ((), True)


def test_a_second_process_is_refused_while_a_campaign_runs(small_plan: Make, store: Store, tmp_path: Path) -> None:
    seen: list[str] = []

    def second(*_: object) -> None:
        if not seen:
            with pytest.raises(RunError) as caught:
                Store.open(str(tmp_path / "store.db"), write=True)
            seen.append(str(caught.value))

    assert run_campaign(store, small_plan(), "", observer=Witness(second)).state == "done"
    assert f"another dbdyno (process {os.getpid()}) is writing to the store" in seen[0]


# Stopping and going on


def stopped_in_second_trial(plan: Plan, store: Store) -> Witness:
    stop = Stop()
    witness = Witness()

    def then(*_: object) -> None:
        if len(witness.started) == 2 and len(witness.samples[witness.started[1]]) == 2:
            stop.request()

    witness.then = then
    assert run_campaign(store, plan, "", observer=witness, stop=stop).state == "interrupted"
    return witness


def test_an_interrupted_campaign_keeps_what_it_has_and_goes_on(small_plan: Make, store: Store) -> None:
    plan = small_plan(rounds=2)
    witness = stopped_in_second_trial(plan, store)
    assert list(store.states("small-1").values()) == ["done", "interrupted", "pending", "pending"]
    first, second = store.trials("small-1")[:2]
    assert second.outcome is not None
    assert second.outcome.counts.committed > 0
    # It ended early; how many samples came after the request is the machine's affair, that each is kept is ours.
    assert second.outcome.seconds < (second.trial.load.duration_s or 0)
    assert len(store.samples(second.id)) >= 2
    assert store.samples(second.id) == witness.samples[second.id]

    again = Witness()
    entry = resume(store, "small-1", observer=again)
    assert (entry.state, again.started) == ("done", [trial.id for trial in expand(plan, "small-1")][1:])
    trials = store.trials("small-1")
    assert trials[0] == first
    assert trials[1].outcome != second.outcome
    assert store.samples(second.id) == again.samples[second.id]
    assert set(store.states("small-1").values()) == {"done"}


def test_nothing_is_run_when_nothing_is_left(small_plan: Make, store: Store) -> None:
    run_campaign(store, small_plan(), "")
    witness = Witness()
    assert resume(store, "small-1", observer=witness).state == "done"
    assert witness.started == []


def test_an_unknown_campaign_is_not_resumed(store: Store) -> None:
    with pytest.raises(UsageError, match="no campaign 'smal-1'"):
        resume(store, "smal-1")


def test_stopping_while_data_are_loaded_leaves_every_trial_to_a_resume(small_plan: Make, store: Store) -> None:
    stop = Stop()
    witness = Witness()
    witness.on_load = stop.request
    assert run_campaign(store, small_plan(), "", observer=witness, stop=stop).state == "interrupted"
    assert set(store.states("small-1").values()) == {"pending"}
    assert resume(store, "small-1").state == "done"


def test_a_workload_that_changed_since_is_said(small_plan: Make, store: Store, tmp_path: Path) -> None:
    source = (
        "from dbdyno.workload import Workload, transaction\n"
        "class Mine(Workload):\n    @transaction\n    def event(self, db, rand):\n        db.row('SELECT {}')\n"
    )
    file = tmp_path / "mine.py"
    file.write_text(source.format(1))
    plan = small_plan(workload=[{"name": str(file)}], rounds=2)
    stopped_in_second_trial(plan, store)
    file.write_text(source.format(2))
    witness = Witness()
    resume(store, "small-1", observer=witness)
    assert witness.notes == [
        "workload mine has changed since this campaign began; its trials before and after ran different programs"
    ]
    first, *later = store.trials("small-1")
    assert "SELECT 1" in first.source
    for trial in later:
        assert "SELECT 2" in trial.source
        assert trial.outcome is not None
        assert "changed since earlier trials" in trial.outcome.notes[0]


# Hooks


def test_hooks_run_around_everything_and_know_the_trial(small_plan: Make, store: Store, tmp_path: Path) -> None:
    log = tmp_path / "hooks.log"
    words = "$DBDYNO_CAMPAIGN $DBDYNO_TRIAL $DBDYNO_TARGET $DBDYNO_WORKLOAD $DBDYNO_CONNECTIONS $DBDYNO_ROUND"
    hooks = {
        name: f"echo {name} {words} $DBDYNO_STATE >> {log}"
        for name in ("before_campaign", "before_trial", "after_trial", "after_campaign")
    }
    run_campaign(store, small_plan(hooks=hooks, connections=[2]), "")
    trial = "small-1 small-1/oltp_point_select/a/c2/r1 a oltp_point_select 2 1"
    assert log.read_text().splitlines() == [
        "before_campaign small-1",
        f"before_trial {trial}",
        f"after_trial {trial} done",
        "after_campaign small-1",
    ]


def test_a_hook_that_fails_ends_the_campaign_with_its_last_line(small_plan: Make, store: Store, tmp_path: Path) -> None:
    done = tmp_path / "cleaned"
    hooks = {
        "before_trial": '[ "$DBDYNO_CONNECTIONS" = 1 ] || { echo one; echo "cannot drop caches"; exit 3; }',
        "after_campaign": f"touch {done}",
    }
    with pytest.raises(RunError, match=r"^the hook before_trial ended with status 3: cannot drop caches$"):
        run_campaign(store, small_plan(hooks=hooks), "")
    assert [entry.state for entry in store.campaigns()] == ["failed"]
    assert list(store.states("small-1").values()) == ["done", "pending"]
    assert done.exists()


def test_a_hook_that_hangs_is_ended_by_stopping_at_once(small_plan: Make, store: Store) -> None:
    import threading

    stop = Stop()
    threading.Timer(0.5, stop.now).start()
    witness = Witness()
    plan = small_plan(hooks={"before_trial": "sleep 60"})
    assert run_campaign(store, plan, "", observer=witness, stop=stop).state == "interrupted"
    assert witness.notes[-1] == "stopped while a hook ran"


def test_pauses_lie_between_trials(small_plan: Make, store: Store) -> None:
    entry = run_campaign(store, small_plan(pause="0.4s"), "")
    first, second = store.trials(entry.id)
    assert first.finished is not None
    assert second.started is not None
    assert (second.started - first.finished).total_seconds() >= 0.4


# A store that takes no more


def test_a_full_disk_under_the_store_loses_nothing_that_was_there(small_plan: Make, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    plan = small_plan(connections=[1], rounds=40, duration="0.1s", interval="0.01s")
    try:
        witness = Witness()
        with (
            Store.open(str(disk / "store.db"), write=True) as opened,
            pytest.raises(RunError, match="is full: there is no room left on its disk"),
        ):
            run_campaign(opened, plan, "", observer=witness)
        finished = [name for name, _ in witness.finished]
        assert 0 < len(finished) < 40
        with Store.open(str(disk / "store.db")) as reader:
            kept: dict[str, Any] = {trial.id: trial for trial in reader.trials("small-1")}
            for name in finished:
                assert kept[name].state == "done"
                assert reader.samples(name) == witness.samples[name]
        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        with Store.open(str(disk / "store.db"), write=True) as opened:
            entry = resume(opened, "small-1")
            assert entry.state == "done"
            after = {trial.id: trial for trial in opened.trials("small-1")}
            assert {name: after[name] for name in finished} == {name: kept[name] for name in finished}
    finally:
        subprocess.run(["umount", str(disk)], check=True)
