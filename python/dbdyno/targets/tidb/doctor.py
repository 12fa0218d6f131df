"""What of a TiDB server would spoil a run: its limits and logs (manual, "System Variables")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.model.finding import Finding, Need, Verdict, limit
from dbdyno.targets.family import Connection
from dbdyno.targets.mysql import doctor as _mysql
from dbdyno.targets.mysql import facts as _mysql_facts
from dbdyno.targets.url import Address

#: The upper end of max_prepared_stmt_count; -1 is no limit.
_MOST_STATEMENTS = 1_048_576


def examine(connection: Connection, address: Address, need: Need) -> list[Finding]:
    """All findings of this family; see :meth:`dbdyno.targets.family.Family.examine`."""
    variables = _mysql_facts.variables(connection)
    return [
        *_mysql.connections(connection, variables, need),
        *_mysql.statements(connection, variables, need, _MOST_STATEMENTS),
        *_logs(variables),
        *_plan_cache(variables),
    ]


def _on(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").upper() in ("ON", "1")


def _logs(variables: Mapping[str, str]) -> Iterator[Finding]:
    """The general log has a variable of its own; every statement is slow to a threshold of 0 ms."""
    general = _on(variables, "tidb_general_log")
    slow = _on(variables, "tidb_enable_slow_log") and variables.get("tidb_slow_log_threshold") == "0"
    what = [*["tidb_general_log = ON"] * general, *["tidb_slow_log_threshold = 0"] * slow]
    pairs = [*[("tidb_general_log", "OFF")] * general, *[("tidb_slow_log_threshold", "300")] * slow]
    yield limit(
        "statement logs",
        found=" and ".join(what) or "no log of every statement",
        needed="none of every statement",
        enough=not what,
        otherwise=Verdict.BAD,
        mend=_mysql.set_global(*pairs),
        why="the server writes every statement into a log: the run measures that",
    )


def _plan_cache(variables: Mapping[str, str]) -> Iterator[Finding]:
    if "tidb_enable_prepared_plan_cache" not in variables:  # before 6.1
        return
    yield limit(
        "plan cache",
        found=f"tidb_enable_prepared_plan_cache = {variables['tidb_enable_prepared_plan_cache']}",
        needed="ON",
        enough=_on(variables, "tidb_enable_prepared_plan_cache"),
        otherwise=Verdict.WARN,
        mend=_mysql.set_global(("tidb_enable_prepared_plan_cache", "ON")),
        why="every execution of a prepared statement is planned anew",
    )
