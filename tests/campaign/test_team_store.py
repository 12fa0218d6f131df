"""A store in a team's database: the same as a file, but several may write, each campaign by one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa
from tests.campaign.witness import Witness, contiguous

from dbdyno.campaign.runner import resume, run_campaign
from dbdyno.drive import Stop
from dbdyno.model.errors import RunError, UsageError
from dbdyno.model.plan import Plan
from dbdyno.record.place import find_place
from dbdyno.record.store import Store

Make = Callable[..., Plan]
on_each_server = pytest.mark.parametrize("server", ["postgresql", "mariadb", "mysql"], scope="session")


@on_each_server
def test_a_campaign_is_interrupted_and_resumed_in_it(small_plan: Make, target_url: str) -> None:
    stop = Stop()
    witness = Witness()
    witness.then = lambda *_: stop.request() if len(witness.started) == 2 else None
    with Store.open(target_url, write=True) as store:
        entry = run_campaign(store, small_plan(rounds=2), "ünï", observer=witness, stop=stop)
        assert (entry.state, entry.plan_text) == ("interrupted", "ünï")
    with Store.open(target_url, write=True) as store:
        assert resume(store, "small-1").state == "done"
    with Store.open(target_url) as store:
        for trial in store.trials("small-1"):
            assert trial.state == "done"
            assert trial.environment["server"]["family"] == "sqlite"
            samples = store.samples(trial.id)
            assert contiguous(samples)
            assert sum(sample.counts.committed for sample in samples) > 0


@on_each_server
def test_two_write_at_once_but_never_to_one_campaign(small_plan: Make, target_url: str) -> None:
    with Store.open(target_url, write=True) as one, Store.open(target_url, write=True) as other:
        first = one.new_campaign(small_plan(), "")
        second = other.new_campaign(small_plan(), "")
        assert (first.id, second.id) == ("small-1", "small-2")
        engine = sa.create_engine(find_place(target_url).text)
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE dbdyno_campaign SET writer = 'elsewhere 77' WHERE id = 'small-1'"))
        with pytest.raises(RunError, match=r"small-1 is being run by another dbdyno \(elsewhere 77\)"):
            other.take_over("small-1")
        long_ago = "2020-01-01T00:00:00.000+00:00"
        with engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE dbdyno_campaign SET beat = '{long_ago}' WHERE id = 'small-1'"))
        engine.dispose()
        other.take_over("small-1")


@on_each_server
def test_reading_a_database_without_a_store(target_url: str) -> None:
    with pytest.raises((RunError, UsageError), match="is empty; run something first"):
        Store.open(target_url)
