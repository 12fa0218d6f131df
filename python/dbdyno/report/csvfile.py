"""Trials and samples as CSV, for spreadsheets and scripts.

``trials.csv`` has one row a trial and ``samples.csv`` one row an interval; the first row names the columns, a unit
is part of the name (``_ms``, ``_s``, ``_us``), no unit is a count. An empty field is a figure that does not exist.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from dbdyno.analysis.latency import latency_of
from dbdyno.model.sample import Sample
from dbdyno.record.entries import TrialEntry
from dbdyno.report.jsonfile import COUNT_FIELDS, LATENCY_FIELDS, trial_json

_LATENCIES = {"response": "latency_ms", "service": "service_ms", "lag": "lag_ms"}

TRIAL_COLUMNS: tuple[str, ...] = (
    *("id", "workload", "target", "connections", "round", "state", "reason", "started", "seconds_s"),
    *COUNT_FIELDS,
    *("tps", "qps"),
    *(f"{kind}_{name}_ms" for kind in _LATENCIES for name in LATENCY_FIELDS),
    *("errors", "reads", "writes", "others"),
    *("cpu_us_per_query", "cpu_share", "bound", "rate", "drive", "program"),
)

SAMPLE_COLUMNS: tuple[str, ...] = (
    *("id", "workload", "target", "connections", "round", "begin_s", "seconds_s"),  # begin below 0: warm-up
    *COUNT_FIELDS,
    *("tps", "qps"),
    *(f"response_{name}_ms" for name in LATENCY_FIELDS),
    *("errors", "connected", "cpu_share", "bound"),
)


def trials_csv(trials: Iterable[TrialEntry]) -> str:
    """One row a trial (:data:`TRIAL_COLUMNS`); ``errors`` is ``code=count`` separated by blanks."""
    return _table(TRIAL_COLUMNS, (_trial_row(entry) for entry in trials))


def samples_csv(series: Iterable[tuple[TrialEntry, Sequence[Sample]]]) -> str:
    """One row an interval of a trial (:data:`SAMPLE_COLUMNS`), in the order of time."""
    rows = (_sample_row(entry, sample) for entry, samples in series for sample in samples)
    return _table(SAMPLE_COLUMNS, rows)


def _trial_row(entry: TrialEntry) -> list[Any]:
    found = trial_json(entry)
    head = [found[name] for name in TRIAL_COLUMNS[:8]]
    latencies = [found[group][name] for group in _LATENCIES.values() for name in LATENCY_FIELDS]
    generator, statements = found["generator"], found["statements"]
    return [
        *head,
        found["seconds"],
        *(found[name] for name in COUNT_FIELDS),
        *(found["tps"], found["qps"]),
        *latencies,
        _codes(found["errors"]),
        *(statements["read"], statements["write"], statements["other"]),
        *(generator["cpu_us_per_query"], generator["cpu_share"], generator["bound"]),
        *(found["rate"], found["drive"], found["program"]),
    ]


def _sample_row(entry: TrialEntry, sample: Sample) -> list[Any]:
    trial, counts = entry.trial, sample.counts
    response = latency_of(sample.response)
    length = sample.seconds
    return [
        *(entry.id, trial.workload, trial.target, trial.connections, trial.round, sample.second, length),
        *(getattr(counts, name) for name in COUNT_FIELDS),
        *((round(count / length, 3) if length > 0 else None) for count in (counts.committed, counts.queries)),
        *(getattr(response, name) if response else None for name in LATENCY_FIELDS),
        *(_codes(sample.errors), sample.connected, round(sample.health.cpu_share, 4), sample.health.bound),
    ]


def _codes(errors: Any) -> str:
    return " ".join(f"{code}={count}" for code, count in errors.items())


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if value is None else _harmless(value) for value in row])
    return text.getvalue()


def _harmless(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP: CSV injection)."""
    if isinstance(value, bool):
        return int(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
