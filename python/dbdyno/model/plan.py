"""A plan: what the user wants measured. Targets × workloads × connection counts × rounds.

Its TOML names are the aliases of the fields (``duration`` is ``duration_s``, in seconds, here).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from dbdyno.model.errors import nearest
from dbdyno.model.masking import holds_literal_password, without_password
from dbdyno.model.trial import Load
from dbdyno.model.units import parse_duration_s

Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]
Scalar = bool | int | float | str
#: Part of a trial's id, which is ``campaign/workload/target/c4/r2``: no blanks and no slashes.
Label = Annotated[str, Field(pattern=r"^\w[\w.+@#:-]{0,63}$")]
Whole = Annotated[int, Strict()]  # true is no number here, nor is "3"
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Seconds = Annotated[Real, BeforeValidator(parse_duration_s)]

SHORTEST_INTERVAL_S = 0.01


def _listed(value: Any) -> Any:
    """``4``, ``"1,4"`` and ``[1, 4]`` alike, as a list."""
    if isinstance(value, str):
        words = [word.strip() for word in value.split(",") if word.strip()]
        return [int(word) if word.isascii() and word.isdigit() else word for word in words]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


def _codes(value: Any) -> Any:
    """Error codes as texts; ``"08006,1062"`` is two of them."""
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    listed = _listed(value)
    return [str(code) if isinstance(code, int) else code for code in listed] if isinstance(listed, list) else listed


def workload_label(name: str) -> str:
    """The label of a workload that the plan gives none: its name, or its file's stem."""
    return PurePath(name.partition(".py")[0]).name if ".py" in name else name


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanTarget(_Part):
    """One side of the comparison: a URL, or a managed server that is started when it does not run."""

    name: Label
    url: str | None = Field(None, repr=False)  # may hold a password
    server: str | None = None
    options: dict[str, Scalar] = Field(default_factory=dict)  # of the managed server
    password_env: str | None = None  # the environment variable that has the password


class PlanWorkload(_Part):
    """A workload with its options. ``name`` is a shipped name or a file relative to the plan."""

    name: str = Field(min_length=1)
    label: Label
    options: dict[str, Scalar] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _default_label(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("name"), str) and not data.get("label"):
            return {**data, "label": workload_label(data["name"])}
        return data


class PlanHooks(_Part):
    """Shell commands around the campaign and around every trial; a failing one fails the campaign."""

    before_campaign: str | None = None
    after_campaign: str | None = None
    before_trial: str | None = None
    after_trial: str | None = None


class Plan(_Part):
    """A whole plan. Durations in seconds; ``rate`` in arrivals per second over all connections."""

    name: Label
    target: tuple[PlanTarget, ...] = Field(min_length=1)
    workload: tuple[PlanWorkload, ...] = Field(min_length=1)
    connections: Annotated[
        tuple[Annotated[Whole, Field(ge=1, le=1_000_000)], ...], BeforeValidator(_listed), Field(min_length=1)
    ]
    rounds: Whole = Field(1, ge=1, le=10_000)
    duration_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, alias="duration")
    transactions: Annotated[Whole, Field(ge=1)] | None = None
    warmup_s: Annotated[Seconds, Field(ge=0)] = Field(0.0, alias="warmup")
    interval_s: Annotated[Seconds, Field(ge=SHORTEST_INTERVAL_S)] = Field(1.0, alias="interval")
    pause_s: Annotated[Seconds, Field(ge=0)] = Field(0.0, alias="pause")
    order: Literal["interleaved", "blocks"] = "interleaved"
    #: Before a trial, drop and load anew the tables to which earlier ones added or from which they removed rows.
    reload: Literal["never", "changed"] = "never"
    isolation: Isolation | None = None
    rate: Annotated[Real, Field(gt=0)] | None = None
    arrivals: Literal["poisson", "even"] = "poisson"
    max_tries: Whole = Field(10, ge=1)
    retry_values: Literal["same", "new"] = "same"
    ignore_errors: Annotated[tuple[str, ...], BeforeValidator(_codes)] = ()
    reconnect_every: Whole = Field(0, ge=0)
    loops: Whole = Field(1, ge=1, le=256)
    spin: bool = False
    seed: Whole = Field(1, ge=0, lt=2**63)
    baseline: str | None = None
    hooks: PlanHooks = PlanHooks()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = contradictions(self.model_dump(by_alias=True))
        if found:
            raise ValueError("; ".join(f"{key}: {sentence}" for key, sentence in found))
        return self

    @property
    def baseline_name(self) -> str:
        """The target that the others are compared with; the first unless the plan names one."""
        return self.baseline or self.target[0].name

    def load(self, connections: int) -> Load:
        """How hard and how long one trial is driven."""
        return Load(
            connections=connections,
            duration_s=self.duration_s,
            transactions=self.transactions,
            warmup_s=self.warmup_s,
            interval_s=self.interval_s,
            rate=self.rate,
            arrivals=self.arrivals,
            max_tries=self.max_tries,
            retry_values=self.retry_values,
            ignore_errors=self.ignore_errors,
            isolation=self.isolation,
            reconnect_every=self.reconnect_every,
            loops=self.loops,
            spin=self.spin,
            seed=self.seed,
        )

    def without_passwords(self) -> Plan:
        """The same plan as it may be stored and shown."""
        clean = tuple(
            target.model_copy(update={"url": without_password(target.url)}) if target.url else target
            for target in self.target
        )
        return self.model_copy(update={"target": clean})

    def target_named(self, name: str) -> PlanTarget:
        """The target with that label."""
        return next(target for target in self.target if target.name == name)

    def workload_labelled(self, label: str) -> PlanWorkload:
        """The workload with that label."""
        return next(workload for workload in self.workload if workload.label == label)


def contradictions(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, what was wrong) of everything in a plan's data that no single value shows to be wrong.

    ``data`` has the shape of the TOML file and need not be valid otherwise, so that these are reported
    together with the wrong values.
    """
    found: list[tuple[str, str]] = []
    duration, transactions = data.get("duration"), data.get("transactions")
    if duration is not None and transactions is not None:
        found.append(("transactions", "a trial ends by duration or by transactions; leave one of the two out"))
    if duration is None and transactions is None:
        found.append(("duration", 'missing; write for example duration = "30s", or transactions = 1000'))
    targets, workloads = _tables(data, "target"), _tables(data, "workload")
    for number, target in enumerate(targets):
        found += [(f"target.{number}.{key}", sentence) for key, sentence in _of_target(target)]
    names = [target["name"] for target in targets if isinstance(target.get("name"), str)]
    found += [("target", f"two targets are named {name!r}; names must differ") for name in _twice(names)]
    labels = [
        workload.get("label") or workload_label(workload["name"])
        for workload in workloads
        if isinstance(workload.get("name"), str)
    ]
    found += [("workload", f'two workloads are labelled {label!r}; set label = "…" apart') for label in _twice(labels)]
    counts = _listed(data.get("connections"))
    if isinstance(counts, list | tuple):
        found += [("connections", f"{count} is there twice") for count in _twice([str(count) for count in counts])]
    baseline = data.get("baseline")
    if isinstance(baseline, str) and names and baseline not in names:
        found.append(("baseline", f"no target is named {baseline!r}{nearest(baseline, names)}"))
    hooks = data.get("hooks")
    for key, command in hooks.items() if isinstance(hooks, Mapping) else ():
        if isinstance(command, str) and holds_literal_password(command):
            found.append((f"hooks.{key}", "a password is written out; take it from an environment variable"))
    return found


def _of_target(target: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    if target.get("url") is not None and target.get("server") is not None:
        found.append(("server", "a target has a url or a server, not both"))
    if target.get("url") is None and target.get("server") is None:
        found.append(("url", 'missing; write url = "scheme://user@host:port/database" or server = "NAME"'))
    if target.get("options") and target.get("server") is None:
        found.append(("options", "only a managed server (server = …) has options"))
    return found


def _tables(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = data.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def _twice(words: list[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]
