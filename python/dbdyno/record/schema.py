"""The tables of the store, as of :data:`dbdyno.record.migrations.CURRENT`. SQLAlchemy Core, any database.

Names begin with ``dbdyno_`` so that a team's store may share a database with other things. Histograms are
blobs in the HdrHistogram V2 encoding; counts are columns, so that plain SQL can ask for them; what has no
fixed shape (errors by code, kinds, outages, environment) is JSON.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()

#: Fields of :class:`dbdyno.model.sample.Counts` in its order; a new one needs a migration.
COUNTS = (
    "scheduled", "committed", "rolled_back", "failed", "unknown", "skipped", "unfinished",
    "retries", "reconnects", "reads", "writes", "others", "rows",
)  # fmt: skip


class LongText(sa.TypeDecorator[str]):
    """Text of any length, also where plain TEXT ends at 64 KiB and a longer type has a name of its own."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """The dialect's LONGTEXT, or TEXT where there is none."""
        package = import_module(type(dialect).__module__.rpartition(".")[0])
        return dialect.type_descriptor(getattr(package, "LONGTEXT", sa.Text)())


_TEXT = LongText()
_BLOB = sa.LargeBinary(2**24)  # a length beyond 64 KiB, for databases that choose the type by it
_ID = sa.String(255)
_TIME = sa.String(32)  # ISO 8601, UTC
_LABEL = sa.String(100)


def _counts() -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in COUNTS]


VERSION = sa.Table(
    "dbdyno_version",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)

CAMPAIGN = sa.Table(
    "dbdyno_campaign",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("name", _LABEL, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("created", _TIME, nullable=False),
    sa.Column("state", _LABEL, nullable=False),
    sa.Column("plan", _TEXT, nullable=False),
    sa.Column("plan_text", _TEXT, nullable=False),
    sa.Column("version", _LABEL, nullable=False),  # of dbdyno
    sa.Column("writer", sa.String(255)),  # "host pid" of the process that runs it
    sa.Column("beat", _TIME),  # when that process last wrote
)

SOURCE = sa.Table(
    "dbdyno_source",
    METADATA,
    sa.Column("hash", sa.String(64), primary_key=True),  # sha256 of the text
    sa.Column("text", _TEXT, nullable=False),
)

TRIAL = sa.Table(
    "dbdyno_trial",
    METADATA,
    sa.Column("id", _ID, primary_key=True),
    sa.Column("campaign_id", _ID, sa.ForeignKey("dbdyno_campaign.id"), nullable=False, index=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("workload", _LABEL, nullable=False),
    sa.Column("target", _LABEL, nullable=False),
    sa.Column("connections", sa.Integer, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("trial", _TEXT, nullable=False),
    sa.Column("state", _LABEL, nullable=False),
    sa.Column("started", _TIME),
    sa.Column("finished", _TIME),
    sa.Column("environment", _TEXT),
    sa.Column("source_hash", sa.String(64), sa.ForeignKey("dbdyno_source.hash")),
)

SAMPLE = sa.Table(
    "dbdyno_sample",
    METADATA,
    sa.Column("trial_id", _ID, sa.ForeignKey("dbdyno_trial.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),  # from 0
    sa.Column("second", sa.Float(53), nullable=False),
    sa.Column("seconds", sa.Float(53), nullable=False),
    *_counts(),
    sa.Column("errors", _TEXT, nullable=False),
    sa.Column("response", _BLOB, nullable=False),
    sa.Column("service", _BLOB, nullable=False),
    sa.Column("health", _TEXT, nullable=False),
    sa.Column("connected", sa.Integer, nullable=False),
    sa.Column("kinds", _TEXT),
)

OUTCOME = sa.Table(
    "dbdyno_outcome",
    METADATA,
    sa.Column("trial_id", _ID, sa.ForeignKey("dbdyno_trial.id"), primary_key=True),
    sa.Column("state", _LABEL, nullable=False),
    sa.Column("reason", _TEXT, nullable=False),
    sa.Column("seconds", sa.Float(53), nullable=False),
    *_counts(),
    sa.Column("errors", _TEXT, nullable=False),
    sa.Column("response", _BLOB, nullable=False),
    sa.Column("service", _BLOB, nullable=False),
    sa.Column("lag", _BLOB, nullable=False),
    sa.Column("health", _TEXT, nullable=False),
    sa.Column("kinds", _TEXT, nullable=False),
    sa.Column("outages", _TEXT, nullable=False),
    sa.Column("rate", sa.Float(53)),
    sa.Column("drive", _TEXT, nullable=False),
    sa.Column("program", sa.String(64), nullable=False),
    sa.Column("notes", _TEXT, nullable=False),
)
