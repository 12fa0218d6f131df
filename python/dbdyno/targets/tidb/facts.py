"""What a TiDB server is: version, settings, durability."""

from __future__ import annotations

from dataclasses import replace

from dbdyno.targets.family import Connection, Facts, Version
from dbdyno.targets.mysql import facts as _mysql
from dbdyno.targets.settings import kept
from dbdyno.targets.url import Address

#: Variables that decide how COMMIT is done; whether TiKV syncs its log is its own configuration.
DURABILITY = (
    "tidb_enable_async_commit", "tidb_enable_1pc", "tidb_guarantee_linearizability", "tidb_txn_mode",
    "tidb_disable_txn_auto_retry", "tidb_retry_limit",
)  # fmt: skip


def identify(connection: Connection) -> Version:
    """Ask the server what it is. What is no TiDB keeps its own flavour."""
    return replace(_mysql.identify(connection), family="tidb")


def facts(connection: Connection, address: Address) -> Facts:
    """Settings, durability (whether COMMIT waits for the disk is TiKV's to say, so it cannot be told), size."""
    found = _mysql.variables(connection)
    settings = kept(found.items(), address)
    cipher = getattr(connection, "tls", "")
    return Facts(
        version=identify(connection),
        settings=settings,
        durability={name: settings[name] for name in DURABILITY if name in settings},
        durable_commit=None,
        database_bytes=_mysql.estimated_bytes(connection),
        isolation=(found.get("transaction_isolation") or found.get("tx_isolation", "")).lower().replace("-", " "),
        extra={"tls": cipher} if cipher else {},
    )


def counters(connection: Connection, address: Address) -> dict[str, int]:
    """TiDB keeps Prometheus metrics, but no counters that SQL can read."""
    return {}
