"""The store keeps what it was given, refuses what it cannot keep, and says so in one sentence."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from dbdyno.model.errors import DbdynoError, RunError, UsageError
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Counts, Health, KindFigures, Outage, Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record import migrations
from dbdyno.record.schema import COUNTS
from dbdyno.record.store import Store

PLAN = Plan.model_validate(
    {
        "name": "nightly",
        "connections": [1, 4],
        "duration": "1s",
        "target": [{"name": "a", "url": "scheme://joe:hunter2@host/db"}],
        "workload": [{"name": "w", "options": {"tables": 2, "on": True, "rate": 0.5}}],
    }
)
TEXT = 'name = "nightly"\n[[target]]\nurl = "scheme://joe:hunter2@host/db"\n'
HEALTH = Health(cpu_s=0.5, cpu_share=0.5, cpu_us_per_query=12.5, loop_busy=None, lag_p99_ns=7, bound=True, why="x")
COUNTED = Counts(*range(1, len(COUNTS) + 1))


def trials(campaign: str, plan: Plan = PLAN) -> list[Trial]:
    return [
        Trial(campaign, number, "w", "w", {"tables": 2}, "a", plan.load(count), 1)
        for number, count in enumerate(plan.connections, 1)
    ]


def sample(second: float, *, kinds: bool = False) -> Sample:
    figures = {"event": KindFigures(COUNTED, b"\x00kind\xff")} if kinds else {}
    return Sample(second, 1.0, COUNTED, {"1213": 3}, b"\x1cresponse", b"\x00service", HEALTH, 4, figures)


def outcome(state: str = "done") -> Outcome:
    return Outcome(
        state, "", 1.0, COUNTED, {"40P01": 2}, b"r", b"s", b"l", HEALTH, {"event": KindFigures(COUNTED, b"k")},
        (Outage(1, 0.25, 0.75, "08006"),), 500.0, "dbapi driver 1.0", "ab" * 32, ("a note",),
    )  # fmt: skip


def filled(path: Path) -> str:
    with Store.open(str(path), write=True) as store:
        campaign = store.new_campaign(PLAN, TEXT)
        store.add_trials(campaign.id, trials(campaign.id))
        first = trials(campaign.id)[0].id
        store.begin_trial(first, {"server": {"version": "1", "database_bytes_before": 1}}, "class W: ...")
        store.add_sample(first, sample(-0.5))
        store.add_sample(first, sample(0.0, kinds=True))
        store.finish_trial(first, outcome(), {"server": {"database_bytes_after": 2}})
        return campaign.id


def test_everything_written_is_read_back_the_same(tmp_path: Path) -> None:
    campaign_id = filled(tmp_path / "s.db")
    with Store.open(str(tmp_path / "s.db")) as store:
        campaign = store.campaign(campaign_id)
        first, second = store.trials(campaign_id)
        assert campaign.plan == PLAN.without_passwords()
        assert (campaign.id, campaign.state, campaign.created.tzinfo is not None) == ("nightly-1", "running", True)
        assert [entry.trial for entry in (first, second)] == trials(campaign_id)
        assert (first.state, second.state, second.outcome, second.environment) == ("done", "pending", None, {})
        assert first.outcome == outcome()
        assert first.environment["server"] == {"version": "1", "database_bytes_before": 1, "database_bytes_after": 2}
        assert first.source == "class W: ..."
        assert first.started is not None
        assert first.finished is not None
        assert store.samples(first.id) == [sample(-0.5), sample(0.0, kinds=True)]
        assert store.trial(first.id) == first


def test_a_new_count_needs_a_column() -> None:
    assert Counts.__slots__ == COUNTS


def test_a_password_in_the_plan_never_gets_into_the_file(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    for file in tmp_path.iterdir():
        assert b"hunter2" not in file.read_bytes(), file


def test_a_password_in_the_environment_never_gets_into_the_file(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "s.db"), write=True) as store:
        campaign = store.new_campaign(PLAN, TEXT)
        store.add_trials(campaign.id, trials(campaign.id))
        first = trials(campaign.id)[0].id
        store.begin_trial(first, {"address": "scheme://joe:hunter2@host/db"}, "")
        assert store.trial(first).environment == {"address": "scheme://joe:***@host/db"}
    assert b"hunter2" not in (tmp_path / "s.db").read_bytes()


def test_campaigns_of_one_name_are_numbered(tmp_path: Path) -> None:
    assert [filled(tmp_path / "s.db") for _ in range(3)] == ["nightly-1", "nightly-2", "nightly-3"]


def test_a_finished_trial_is_never_run_over(tmp_path: Path) -> None:
    campaign_id = filled(tmp_path / "s.db")
    with Store.open(str(tmp_path / "s.db"), write=True) as store:
        with pytest.raises(UsageError, match="is finished"):
            store.begin_trial(trials(campaign_id)[0].id, {}, "")
        assert len(store.samples(trials(campaign_id)[0].id)) == 2


def test_an_interrupted_trial_starts_anew_without_its_old_samples(tmp_path: Path) -> None:
    campaign_id = filled(tmp_path / "s.db")
    second = trials(campaign_id)[1].id
    with Store.open(str(tmp_path / "s.db"), write=True) as store:
        store.begin_trial(second, {}, "")
        store.add_sample(second, sample(0.0))
        store.finish_trial(second, outcome("interrupted"))
        assert len(store.samples(second)) == 1
        store.begin_trial(second, {}, "")
        assert (store.samples(second), store.trial(second).outcome) == ([], None)


def test_the_nearest_campaign_is_offered(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    with Store.open(str(tmp_path / "s.db")) as store:
        with pytest.raises(UsageError, match="no campaign 'nihgtly-1'; did you mean 'nightly-1'"):
            store.campaign("nihgtly-1")
        with pytest.raises(UsageError, match="did you mean 'nightly-1/w/a/c1/r1'"):
            store.trial("nightly-1/w/a/c1/r11")


def test_taking_over_marks_what_a_dead_process_left_running(tmp_path: Path) -> None:
    campaign_id = filled(tmp_path / "s.db")
    second = trials(campaign_id)[1].id
    with Store.open(str(tmp_path / "s.db"), write=True) as store:
        store.begin_trial(second, {}, "")
        store.add_sample(second, sample(0.0))
    with Store.open(str(tmp_path / "s.db"), write=True) as store:
        store.take_over(campaign_id)
        assert store.states(campaign_id) == {trials(campaign_id)[0].id: "done", second: "interrupted"}
        assert len(store.samples(second)) == 1


# Refusals


def test_a_second_writer_is_told_who_has_the_store(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = "import sys; from dbdyno.record.store import Store; Store.open(sys.argv[1], write=True)"
    with Store.open(str(path), write=True):
        done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        assert f"another dbdyno (process {os.getpid()}) is writing to the store {path}" in done.stderr
        with Store.open(str(path)) as reader:
            assert reader.campaigns() == []
    with Store.open(str(path), write=True):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["s.db"]


def test_reading_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no store at .*s\.db"):
        Store.open(str(tmp_path / "s.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the folder .*missing of the store .* does not exist"):
        Store.open(str(tmp_path / "missing" / "s.db"), write=True)


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, write: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something else entirely\n" * 500)
    with pytest.raises(RunError, match=r"notes\.txt is not a SQLite database"):
        Store.open(str(path), write=write)
    assert path.read_text() == "something else entirely\n" * 500
    assert list(tmp_path.iterdir()) == [path]


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE sbtest1 (id INTEGER)")
    other.close()
    before = path.read_bytes()
    for write in (True, False):
        with pytest.raises(UsageError, match="is a database, but not a store of dbdyno"):
            Store.open(str(path), write=write)
    assert path.read_bytes() == before


def test_a_newer_store_is_not_touched(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    with sqlite3.connect(tmp_path / "s.db") as raw:
        raw.execute("UPDATE dbdyno_version SET version = 99")
    raw.close()
    with pytest.raises(RunError, match=r"written by a newer dbdyno .its version is 99"):
        Store.open(str(tmp_path / "s.db"))


def test_an_older_store_is_brought_up_by_its_first_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_id = filled(tmp_path / "s.db")

    def add_comment(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE dbdyno_campaign ADD COLUMN comment TEXT"))
        connection.execute(sa.text("UPDATE dbdyno_campaign SET comment = 'migrated ' || name"))

    monkeypatch.setattr(migrations, "STEPS", (add_comment,))
    monkeypatch.setattr(migrations, "CURRENT", 2)
    with Store.open(str(tmp_path / "s.db")) as store:
        assert store.trials(campaign_id)[0].outcome == outcome()
    with sqlite3.connect(tmp_path / "s.db") as raw:
        assert raw.execute("SELECT comment FROM dbdyno_campaign").fetchall() == [("migrated nightly",)]
        assert raw.execute("SELECT version FROM dbdyno_version").fetchall() == [(2,)]
    raw.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "s.db")

    def half(connection: sa.Connection) -> None:
        connection.execute(sa.text("ALTER TABLE dbdyno_campaign ADD COLUMN comment TEXT"))
        connection.execute(sa.text("SELECT * FROM nowhere"))

    monkeypatch.setattr(migrations, "STEPS", (half,))
    monkeypatch.setattr(migrations, "CURRENT", 2)
    with pytest.raises(RunError, match="nowhere"):
        Store.open(str(tmp_path / "s.db"), write=True)
    with sqlite3.connect(tmp_path / "s.db") as raw:
        assert "comment" not in [row[1] for row in raw.execute("PRAGMA table_info(dbdyno_campaign)")]
        assert raw.execute("SELECT version FROM dbdyno_version").fetchall() == [(1,)]
    raw.close()


def in_child(work: Callable[[], None], *, user: int | None = None) -> str:
    """Run in a forked child (as another user) and return the sentence of the DbdynoError it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        message = "no error"
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            work()
        except DbdynoError as error:
            message = str(error)
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
        os.write(writing, message.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return pipe.read()


NOBODY = 65534 if os.geteuid() == 0 else None


@pytest.fixture
def reachable(tmp_path: Path) -> Path:
    """A folder below ones that every user may pass through."""
    folder = tmp_path
    while folder != folder.parent and folder.stat().st_uid == os.geteuid() and folder != Path("/tmp"):
        folder.chmod(folder.stat().st_mode | 0o055)
        folder = folder.parent
    return tmp_path


def test_a_read_only_store_is_refused_for_writing_and_read_all_the_same(reachable: Path) -> None:
    path = reachable / "s.db"
    campaign_id = filled(path)
    path.chmod(0o444)
    reachable.chmod(0o555)
    try:
        assert "is read-only; make it writable" in in_child(
            lambda: Store.open(str(path), write=True).close(), user=NOBODY
        )

        def read() -> None:
            with Store.open(str(path)) as store:
                assert store.trials(campaign_id)[0].outcome == outcome()

        assert in_child(read, user=NOBODY) == "no error"
    finally:
        reachable.chmod(0o755)


def test_a_folder_that_may_not_be_written_to(reachable: Path) -> None:
    reachable.chmod(0o555)
    try:
        path = reachable / "s.db"
        assert "is read-only" in in_child(lambda: Store.open(str(path), write=True).close(), user=NOBODY)
    finally:
        reachable.chmod(0o755)


def _fill_up(store: Store, trial_id: str) -> int:
    """Samples that fitted before the store refused one."""
    big = Sample(0.0, 1.0, COUNTED, {}, os.urandom(50_000), b"", HEALTH, 1)
    for number in range(1000):
        try:
            store.add_sample(trial_id, big)
        except RunError:
            return number
    raise AssertionError("never full")


def test_a_full_disk_keeps_every_finished_trial_and_sample(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    campaign_id = filled(path)
    second = trials(campaign_id)[1].id

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        with Store.open(str(path), write=True) as store:
            store.begin_trial(second, {}, "")
            fitted = _fill_up(store, second)
            (tmp_path / "fitted").write_text(str(fitted))
            store.add_sample(second, Sample(0.0, 1.0, COUNTED, {}, os.urandom(500_000), b"", HEALTH, 1))

    assert "cannot be read or written (disk I/O error)" in in_child(fill)
    with Store.open(str(path)) as store:
        assert store.trials(campaign_id)[0].outcome == outcome()
        assert len(store.samples(second)) == int((tmp_path / "fitted").read_text()) > 3


def test_no_room_left_on_the_device_is_said(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    try:
        campaign_id = filled(disk / "s.db")
        second = trials(campaign_id)[1].id
        with Store.open(str(disk / "s.db"), write=True) as store:
            store.begin_trial(second, {}, "")
            fitted = _fill_up(store, second)
            with pytest.raises(RunError, match="is full: there is no room left on its disk"):
                store.add_sample(second, Sample(0.0, 1.0, COUNTED, {}, os.urandom(700_000), b"", HEALTH, 1))
            assert len(store.samples(second)) == fitted > 3
            assert store.trials(campaign_id)[0].outcome == outcome()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Places


def test_a_store_url_with_a_password_is_never_shown_with_it(tmp_path: Path) -> None:
    with pytest.raises(DbdynoError) as caught:
        Store.open("postgresql://joe:hunter2@127.0.0.1:1/nowhere", write=True)
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_the_store_is_found_by_argument_then_variable_then_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBDYNO_STORE", raising=False)
    Store.open(None, write=True).close()
    monkeypatch.setenv("DBDYNO_STORE", str(tmp_path / "by_variable.db"))
    Store.open(None, write=True).close()
    Store.open(f"sqlite:///{tmp_path}/by_url.db", write=True).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["by_url.db", "by_variable.db", "dbdyno.db"]


@pytest.mark.parametrize("text", ["nosuch://x/y", "sqlite://", "sqlite:///:memory:"])
def test_places_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError):
        Store.open(text, write=True)


def test_samples_come_from_another_thread_while_a_reader_reads(tmp_path: Path) -> None:
    campaign_id = filled(tmp_path / "s.db")
    second = trials(campaign_id)[1].id
    with Store.open(str(tmp_path / "s.db"), write=True) as store, Store.open(str(tmp_path / "s.db")) as reader:
        import threading

        store.begin_trial(second, {}, "")
        thread = threading.Thread(target=lambda: [store.add_sample(second, sample(i)) for i in range(200)])
        thread.start()
        seen = 0
        while thread.is_alive():
            found = [entry.second for entry in reader.samples(second)]
            assert found == [float(i) for i in range(len(found))]
            assert len(found) >= seen
            seen = len(found)
        thread.join()
        assert len(reader.samples(second)) == 200
