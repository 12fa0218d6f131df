"""Campaigns in a store, made of seeded figures, for tests of what a reader gets to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from dbdyno._engine import Histogram
from dbdyno.model.plan import Plan
from dbdyno.model.sample import Counts, Health, Outage, Outcome, Sample
from dbdyno.model.trial import Trial
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.store import Store

PLAN_TEXT = """\
name = "quickstart"
connections = [1, 4, 16]
rounds = 3
duration = "1.5s"
warmup = "0.4s"
interval = "200ms"
# the rest is cut short: <b>not markup</b> & no end: </script>
"""

#: (target, workload, connections) to (transactions per second, p50 in ms)
Speed = Callable[[str, str, int], tuple[float, float]]


def quickstart_speed(target: str, workload: str, connections: int) -> tuple[float, float]:
    """An embedded file database that does not scale, and a server that does."""
    light = 8.0 if workload == "ps" else 1.0
    if target == "filedb":
        return 900.0 * light, connections / (900.0 * light) * 900
    tps = 430.0 * light * connections / (1 + 0.08 * connections)
    return tps, connections / tps * 900


def plan(**changes: Any) -> Plan:
    """The plan of :func:`build`."""
    data: dict[str, Any] = {
        "name": "quickstart",
        "target": [
            {"name": "filedb", "url": "sqlite:////data/quickstart.db"},
            {"name": "serverdb", "url": "postgresql://bench@127.0.0.1:5433/bench"},
        ],
        "workload": [
            {"name": "oltp_read_write", "label": "rw", "options": {"tables": 1, "table_size": 10000}},
            {"name": "oltp_point_select", "label": "ps", "options": {"tables": 1, "table_size": 10000}},
        ],
        "connections": [1, 4, 16],
        "rounds": 3,
        "duration": "1.5s",
        "warmup": "0.4s",
        "interval": "200ms",
    }
    return Plan.model_validate({**data, **changes})


def environment(target: str, **server: Any) -> dict[str, Any]:
    """What the campaign captures of a target."""
    inside = target == "filedb"
    settings = (
        {"journal_mode": "wal", "synchronous": "2", "page_size": "4096", "cache_size": "-2000"}
        if inside
        else {
            "fsync": "on",
            "synchronous_commit": "on",
            "shared_buffers": "128MB",
            "work_mem": "4MB",
            **{f"setting_{number:03d}": str(number * 7) for number in range(120)},
        }
    )
    durable = ("journal_mode", "synchronous") if inside else ("fsync", "synchronous_commit")
    return {
        "client": {
            "cpu_model": "Example CPU 2.0 GHz",
            "cores": 2,
            "memory_bytes": 8 * 2**30,
            "kernel": "Linux 6.1",
            "numa_nodes": 1,
            "disk": {"device": "vda", "kind": "ssd"},
            "python": "3.11.7",
            "dbdyno": "0.1.0",
        },
        "server": {
            "family": target,
            "flavour": "FileDB" if inside else "ServerDB",
            "version": "3.45.1" if inside else "18.1",
            "comment": "",
            "settings": settings,
            "durability": {name: settings[name] for name in durable},
            "durable_commit": True,
            "isolation": "serializable" if inside else "read committed",
            "in_process": inside,
            "same_host": True,
            "database_bytes_before": 2_400_000,
            "database_bytes_after": 3_100_000,
            "managed": None,
            **server,
        },
        "address": "sqlite:////data/quickstart.db" if inside else "postgresql://bench@127.0.0.1:5433/bench",
        "driver": "sqlite3 3.45.1" if inside else "psycopg 3.3.9",
    }


def trials(campaign_id: str, of: Plan) -> list[Trial]:
    """All trials of a plan, rounds interleaved."""
    found: list[Trial] = []
    for number in range(1, of.rounds + 1):
        for workload in of.workload:
            for connections in of.connections:
                for target in of.target:
                    found.append(
                        Trial(
                            campaign=campaign_id,
                            number=len(found) + 1,
                            workload=workload.label,
                            workload_name=workload.name,
                            options=dict(workload.options),
                            target=target.name,
                            load=of.load(connections),
                            round=number,
                        )
                    )
    return found


_QUANTILES = [NormalDist().inv_cdf(share) for share in (*np.linspace(0.02, 0.98, 17), 0.995, 0.9995)]


def histogram(random: np.random.Generator, count: int, p50_ms: float) -> bytes:
    """About that many log-normal latencies around about that median, by quantiles: quick to make."""
    made = Histogram()
    median = max(p50_ms, 0.001) * float(np.exp(random.normal(0, 0.03)))
    for place, quantile in enumerate(_QUANTILES):
        values = max(1, count // 17) if place < 17 else max(1, count // 100)
        made.record_n(int(median * 1e6 * np.exp(0.35 * quantile)), values)
    return made.encode()


def figures(
    trial: Trial, tps: float, p50_ms: float, random: np.random.Generator, **changes: Any
) -> tuple[list[Sample], Outcome]:
    """Samples and outcome of one trial at about that speed. ``changes`` replace fields of the outcome."""
    load = trial.load
    duration, interval = load.duration_s or 1.0, load.interval_s
    steps = max(1, round(duration / interval))
    cold = round(load.warmup_s / interval)
    whole = tps * float(np.exp(random.normal(0, 0.02)))
    samples: list[Sample] = []
    merged, committed = Histogram(), 0
    errors: dict[str, int] = {}
    for step in range(-cold, steps):
        count = max(0, round(whole * interval * (0.8 if step < 0 else 1) * float(np.exp(random.normal(0, 0.04)))))
        codes = {"40001": 2} if trial.connections == 16 and trial.workload == "rw" and step == 3 else {}
        encoded = histogram(random, count, p50_ms)
        if step >= 0:
            committed += count
            merged.merge(Histogram.decode(encoded))
            for code, number in codes.items():
                errors[code] = errors.get(code, 0) + number
        samples.append(
            Sample(
                second=step * interval,
                seconds=interval,
                counts=Counts(scheduled=count, committed=count, reads=count * 14, writes=count * 4, others=count * 2),
                errors=codes,
                response=encoded,
                service=encoded,
                health=Health(cpu_s=0.05, cpu_share=0.31, cpu_us_per_query=21.5),
                connected=trial.connections,
            )
        )
    retries = sum(errors.values())
    fields: dict[str, Any] = {
        "state": "done",
        "reason": "",
        "seconds": duration,
        "counts": Counts(
            scheduled=committed,
            committed=committed,
            retries=retries,
            reads=committed * 14,
            writes=committed * 4,
            others=committed * 2,
        ),
        "errors": errors,
        "response": merged.encode(),
        "service": merged.encode(),
        "lag": histogram(random, 200, 0.004),
        "health": Health(cpu_s=0.5, cpu_share=0.31, cpu_us_per_query=21.5, lag_p99_ns=9000),
        "kinds": {},
        "rate": load.rate,
        "drive": "dbapi, sqlite3 3.45.1" if trial.target == "filedb" else "engine 0.1.0, one epoll loop",
        "program": "5e1b7a0c" * 8,
    }
    return samples, Outcome(**{**fields, **changes})


@dataclass(frozen=True)
class Built:
    """A campaign as the store gives it back, without a store."""

    campaign: CampaignEntry
    trials: list[TrialEntry]
    samples: dict[str, list[Sample]]


def entries(
    of: Plan | None = None,
    *,
    speed: Speed = quickstart_speed,
    environments: Mapping[str, Mapping[str, Any]] | None = None,
    outcomes: Mapping[str, Mapping[str, Any]] | None = None,
    skip: Sequence[str] = (),
    seed: int = 1,
    plan_text: str = PLAN_TEXT,
) -> Built:
    """A campaign. ``outcomes`` replaces fields of the outcome of the trials whose id (without the campaign) is given;
    ``skip`` names trials (likewise) that stay pending.
    """
    of = of or plan()
    random = np.random.default_rng(seed)
    began = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    campaign = CampaignEntry(
        f"{of.name}-1", of.name, began, "interrupted" if skip else "done", of, plan_text, version="0.1.0"
    )
    made: list[TrialEntry] = []
    samples: dict[str, list[Sample]] = {}
    for trial in trials(campaign.id, of):
        short = trial.id.removeprefix(f"{campaign.id}/")
        samples[trial.id] = []
        if short in skip:
            made.append(TrialEntry(trial, "pending"))
            continue
        tps, p50 = speed(trial.target, trial.workload, trial.connections)
        samples[trial.id], outcome = figures(trial, tps, p50, random, **(outcomes or {}).get(short, {}))
        started = began + timedelta(seconds=2 * trial.number)
        made.append(
            TrialEntry(
                trial,
                outcome.state,
                started,
                started + timedelta(seconds=1.9),
                (environments or {}).get(trial.target) or environment(trial.target),
                outcome,
                f"class Workload:  # {trial.workload_name}\n    pass\n",
            )
        )
    return Built(campaign, made, samples)


def build(path: Path, of: Plan | None = None, **how: Any) -> str:
    """Write the campaign of :func:`entries` to a store and return its id."""
    built = entries(of, **how)
    with Store.open(str(path), write=True) as store:
        campaign = store.new_campaign(built.campaign.plan, built.campaign.plan_text)
        assert campaign.id == built.campaign.id
        store.add_trials(campaign.id, [entry.trial for entry in built.trials])
        for entry in built.trials:
            if entry.outcome is None:
                continue
            store.begin_trial(entry.id, entry.environment, entry.source)
            for sample in built.samples[entry.id]:
                store.add_sample(entry.id, sample)
            store.finish_trial(entry.id, entry.outcome, {})
        store.set_state(campaign.id, built.campaign.state)
        return campaign.id


OUTAGE = Outage(connection=2, begin=0.5, end=0.9, code="08006")
