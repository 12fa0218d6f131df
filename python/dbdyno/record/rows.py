"""Model values to rows of the store and back. Pure; the JSON forms of the store are defined here."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dbdyno.model.sample import Counts, Health, KindFigures, Outage, Outcome, Sample
from dbdyno.model.trial import Load, Trial
from dbdyno.record.schema import COUNTS

Row = Mapping[str, Any]


def to_json(value: Any) -> str:
    """Compact JSON; texts stay readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def now() -> str:
    """The time now as the store keeps it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def to_time(text: str | None) -> datetime | None:
    """A stored time, or None."""
    return None if text is None else datetime.fromisoformat(text)


def _counts_row(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in COUNTS}


def _counts_from(row: Row) -> Counts:
    return Counts(**{name: row[name] for name in COUNTS})


def _kinds_json(kinds: Mapping[str, KindFigures]) -> str:
    return to_json(
        {
            name: {
                "counts": _counts_row(figures.counts),
                "response": base64.b64encode(figures.response).decode(),
            }
            for name, figures in kinds.items()
        }
    )


def _kinds_from(text: str | None) -> dict[str, KindFigures]:
    return {
        name: KindFigures(_counts_from(item["counts"]), base64.b64decode(item["response"]))
        for name, item in json.loads(text or "{}").items()
    }


def trial_json(trial: Trial) -> str:
    """A trial as JSON: its fields by name, the load as an object."""
    return to_json(dataclasses.asdict(trial))


def trial_from(text: str) -> Trial:
    """The trial that :func:`trial_json` wrote."""
    data = json.loads(text)
    load = data.pop("load")
    load["ignore_errors"] = tuple(load["ignore_errors"])
    return Trial(load=Load(**load), **data)


def sample_row(trial_id: str, number: int, sample: Sample) -> dict[str, Any]:
    """A row of the sample table."""
    return {
        "trial_id": trial_id,
        "number": number,
        "second": sample.second,
        "seconds": sample.seconds,
        **_counts_row(sample.counts),
        "errors": to_json(dict(sample.errors)),
        "response": sample.response,
        "service": sample.service,
        "health": to_json(dataclasses.asdict(sample.health)),
        "connected": sample.connected,
        "kinds": _kinds_json(sample.kinds) if sample.kinds else None,
    }


def sample_from(row: Row) -> Sample:
    """The sample of a row."""
    return Sample(
        second=row["second"],
        seconds=row["seconds"],
        counts=_counts_from(row),
        errors=json.loads(row["errors"]),
        response=bytes(row["response"]),
        service=bytes(row["service"]),
        health=Health(**json.loads(row["health"])),
        connected=row["connected"],
        kinds=_kinds_from(row["kinds"]),
    )


def outcome_row(trial_id: str, outcome: Outcome) -> dict[str, Any]:
    """A row of the outcome table."""
    return {
        "trial_id": trial_id,
        "state": outcome.state,
        "reason": outcome.reason,
        "seconds": outcome.seconds,
        **_counts_row(outcome.counts),
        "errors": to_json(dict(outcome.errors)),
        "response": outcome.response,
        "service": outcome.service,
        "lag": outcome.lag,
        "health": to_json(dataclasses.asdict(outcome.health)),
        "kinds": _kinds_json(outcome.kinds),
        "outages": to_json([dataclasses.asdict(outage) for outage in outcome.outages]),
        "rate": outcome.rate,
        "drive": outcome.drive,
        "program": outcome.program,
        "notes": to_json(list(outcome.notes)),
    }


def outcome_from(row: Row) -> Outcome:
    """The outcome of a row."""
    return Outcome(
        state=row["state"],
        reason=row["reason"],
        seconds=row["seconds"],
        counts=_counts_from(row),
        errors=json.loads(row["errors"]),
        response=bytes(row["response"]),
        service=bytes(row["service"]),
        lag=bytes(row["lag"]),
        health=Health(**json.loads(row["health"])),
        kinds=_kinds_from(row["kinds"]),
        outages=tuple(Outage(**outage) for outage in json.loads(row["outages"])),
        rate=row["rate"],
        drive=row["drive"],
        program=row["program"],
        notes=tuple(json.loads(row["notes"])),
    )


def merged(environment: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """``environment`` with ``after`` laid over it, objects within objects too."""
    result = dict(environment)
    for key, value in after.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result
