"""What of an OceanBase server would spoil a run. Its limits of prepared statements and open tables do not bind:
``max_prepared_stmt_count`` is there for the sake of tools (tried on seekdb 1.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.model.finding import Finding, Mend, Need, Verdict, limit
from dbdyno.targets.family import Connection
from dbdyno.targets.mysql import doctor as _mysql
from dbdyno.targets.mysql import facts as _mysql_facts
from dbdyno.targets.oceanbase import facts as _facts
from dbdyno.targets.url import Address

#: Levels of the server's own log that write for every statement or more.
_LOUD = ("DEBUG", "TRACE", "INFO", "WDIAG", "EDIAG")
_SHORT_TIMEOUT_US = 5_000_000


def examine(connection: Connection, address: Address, need: Need) -> list[Finding]:
    """All findings of this family; see :meth:`dbdyno.targets.family.Family.examine`."""
    variables = _mysql_facts.variables(connection)
    parameters = dict(_facts.parameters(connection))
    return [
        *_mysql.connections(connection, variables, need),
        *_mysql.logs(variables),
        *_timeouts(variables),
        *_recording(variables, parameters),
        *_merge(parameters),
    ]


def _system(name: str, value: str) -> Mend:
    return Mend(f"ALTER SYSTEM SET {name} = {value};", "SQL, in a cluster as its tenant's administrator or of sys")


def _timeouts(variables: Mapping[str, str]) -> Iterator[Finding]:
    text = variables.get("ob_query_timeout", "")
    if not text.isdigit():
        return
    yield limit(
        "time-outs",
        found=f"ob_query_timeout = {int(text) / 1e6:g} s",
        needed=f"{_SHORT_TIMEOUT_US / 1e6:g} s or more",
        enough=int(text) >= _SHORT_TIMEOUT_US,
        otherwise=Verdict.WARN,
        mend=_mysql.set_global(("ob_query_timeout", 10_000_000)),
        why="slow statements, the interesting ones, end with error 4012 and are missing from the latency",
    )


def _recording(variables: Mapping[str, str], parameters: Mapping[str, str]) -> Iterator[Finding]:
    """What the server records of every statement; the makers' own guides to benchmarks turn these off."""
    level = parameters.get("syslog_level", "")
    if level:
        yield limit(
            "server's log",
            found=f"syslog_level = {level}",
            needed="WARN or less",
            enough=level.upper() not in _LOUD,
            otherwise=Verdict.WARN,
            mend=_system("syslog_level", "'WARN'"),
            why="the server writes megabytes of log a second under load",
        )
    for name, source, mend in (
        ("enable_sql_audit", parameters, _system("enable_sql_audit", "False")),
        ("ob_enable_sql_audit", variables, _mysql.set_global(("ob_enable_sql_audit", "OFF"))),
        ("enable_perf_event", parameters, _system("enable_perf_event", "False")),
        ("enable_record_trace_log", parameters, _system("enable_record_trace_log", "False")),
    ):
        if source.get(name, "").lower() in ("true", "on", "1"):
            yield Finding(
                name.removeprefix("ob_").removeprefix("enable_").replace("_", " "),
                Verdict.INFO,
                f"{name} = {source[name]}",
                "",
                mend,
                "each statement is recorded, which costs the server a few per cent; usual in production",
            )


def _merge(parameters: Mapping[str, str]) -> Iterator[Finding]:
    at = parameters.get("major_freeze_duty_time", "")
    if at and at.lower() != "disable":
        yield Finding(
            "daily merge",
            Verdict.INFO,
            f"major_freeze_duty_time = {at}",
            "",
            _system("major_freeze_duty_time", "'disable'"),
            f"a run that lasts over {at} of the server's clock shares it with the merge of all data",
        )
