"""Connections to PostgreSQL through psycopg 3.

psycopg opens, cancels and closes; statements go straight to its libpq handle, which costs the client less than
half the CPU of a cursor (and releases the interpreter lock while it waits).
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets import unreachable
from dbdyno.targets.family import Wire
from dbdyno.targets.postgresql import errors
from dbdyno.targets.postgresql.capabilities import ISOLATION
from dbdyno.targets.postgresql.errors import FORGOTTEN_CODE, STALE_PLAN
from dbdyno.targets.postgresql.values import decoder, encode
from dbdyno.targets.silence import LIBPQ
from dbdyno.targets.url import Address, Endpoint, parse_address
from dbdyno.workload.sql import OTHER, parameter_positions, statement_kind

APPLICATION = "dbdyno"
CONTROL_APPLICATION = "dbdyno control"
SOCKET_PREFIX = ".s.PGSQL."
#: Prepared statements a connection keeps; texts beyond are sent unprepared. The language allows as many.
MAX_PREPARED = 4_096
#: Rows sent between two synchronisations of ``execute_many``.
_CHUNK = 1_000
_CANCEL_TIMEOUT_S = 2.0

_OK = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY)
_Columns = list[tuple[int, Callable[[bytes], Any]]]


def parse(url: str) -> Address:
    """``postgresql://user@host:port/database``; ``?socket=FOLDER`` or a percent-encoded folder as host, as libpq."""
    return parse_address(url, 5432)


@lru_cache(maxsize=8192)
def numbered(sql: str) -> bytes:
    """``?`` parameters as ``$1``, ``$2`` …"""
    parts, last = [], 0
    for number, position in enumerate(parameter_positions(sql), start=1):
        parts.append(f"{sql[last:position]}${number}")
        last = position + 1
    parts.append(sql[last:])
    return "".join(parts).encode()


class _Prepared:
    __slots__ = ("columns", "name")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.columns: _Columns | None = None


class PostgresqlConnection:
    """One connection. Statements are prepared on first use, BEGIN and COMMIT are sent as plain queries."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw
        self._pg: PGconn = raw.pgconn
        self._prepared: dict[str, _Prepared] = {}
        self._queue: list[_Prepared | None] | None = None  # inside pipeline(): what was sent
        #: Transactions that reading the counters cost on this connection (facts.counters).
        self.counter_transactions = 0

    # -- statements

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        statement = self._prepared.get(sql)
        if statement is not None and self._queue is None:
            result = self._pg.exec_prepared(statement.name, [encode(value) for value in params])
            if result.status not in _OK:
                self._fail(result, sql)
        else:
            first = self._first(sql, params)
            if first is None:
                return []
            result, statement = first, self._prepared.get(sql)
        columns = statement.columns if statement is not None else None
        if columns is None:
            columns = [(i, decoder(result.ftype(i))) for i in range(result.nfields)]
            if statement is not None:
                statement.columns = columns
        get = result.get_value
        return [
            tuple([None if (value := get(row, i)) is None else load(value) for i, load in columns])
            for row in range(result.ntuples)
        ]

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        statement = self._prepared.get(sql)
        if statement is not None and self._queue is None:
            result = self._pg.exec_prepared(statement.name, [encode(value) for value in params])
            if result.status not in _OK:
                self._fail(result, sql)
            return result.command_tuples or 0
        first = self._first(sql, params)
        return 0 if first is None else first.command_tuples or 0

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Pipelined; outside of a transaction each thousand rows are one transaction."""
        matched = 0
        for start in range(0, len(rows), _CHUNK):
            with self._pipelined() as results:
                for row in rows[start : start + _CHUNK]:
                    self.execute(sql, row)
            matched += sum(result.command_tuples or 0 for result in results)
        return matched

    def begin(self, write: bool) -> None:
        self._plain(b"BEGIN")

    def commit(self) -> None:
        self._plain(b"COMMIT")

    def rollback(self) -> None:
        if self._pg.transaction_status != TransactionStatus.IDLE:
            self._plain(b"ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        return self._pg.transaction_status in (
            TransactionStatus.ACTIVE,
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Outside of a transaction the statements inside are one transaction (the protocol's rule)."""
        with self._pipelined():
            yield

    def cancel(self) -> None:
        try:
            self.raw.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
        except psycopg.Error:
            self._cut()

    def close(self) -> None:
        self.raw.close()

    @property
    def tls(self) -> str:
        """ "TLS", or "" without it; libpq tells the cipher only in C."""
        return "TLS" if self._pg.ssl_in_use else ""

    # -- how they are sent

    def _plain(self, sql: bytes) -> PGresult | None:
        if self._queue is not None:
            self._pg.send_query_params(sql, None)
            self._queue.append(None)
            return None
        result = self._pg.exec_(sql)
        if result.status not in _OK:
            self._fail(result, None)
        return result

    def _first(self, sql: str, params: Sequence[Any]) -> PGresult | None:
        """Any statement that is not prepared yet, or is sent in a pipeline (then None)."""
        statement = self._prepared.get(sql)
        if statement is None and not params and statement_kind(sql) == OTHER:
            return self._plain(sql.encode())
        values = [encode(value) for value in params]
        if statement is None and len(self._prepared) >= MAX_PREPARED:
            if self._queue is None:
                result = self._pg.exec_params(numbered(sql), values)
                if result.status not in _OK:
                    self._fail(result, None)
                return result
            self._pg.send_query_params(numbered(sql), values)
            self._queue.append(None)
            return None
        if self._queue is not None:
            self._send(sql, values)
            return None
        # Parse, Bind and Execute before one Sync: a Parse with its own would be a transaction of its own.
        with self._pipelined() as results:
            self._send(sql, values)
        return results[-1]

    def _send(self, sql: str, values: list[Any]) -> None:
        assert self._queue is not None
        statement = self._prepared.get(sql)
        if statement is None:
            statement = _Prepared(b"d%d" % len(self._prepared))
            self._pg.send_prepare(statement.name, numbered(sql))
            self._prepared[sql] = statement
            self._queue.append(statement)
        self._pg.send_query_prepared(statement.name, values)
        self._queue.append(None)

    @contextmanager
    def _pipelined(self) -> Iterator[list[PGresult]]:
        results: list[PGresult] = []
        if self._queue is not None:  # nested: the outer one reads
            yield results
            return
        self._pg.enter_pipeline_mode()
        self._queue = []
        try:
            yield results
        finally:
            queue, self._queue = self._queue, None
            failed = self._drain(queue, results)
        if failed is not None:
            self._fail(failed, None)

    def _drain(self, queue: list[_Prepared | None], results: list[PGresult]) -> PGresult | None:
        """Read the answers to everything sent; the first that failed."""
        pg = self._pg
        pg.pipeline_sync()
        failed: PGresult | None = None
        refused: set[int] = set()
        for prepared in queue:
            answered = False
            while (result := self._next_result()) is not None:
                answered = True
                if prepared is None:
                    results.append(result)
                if result.status in _OK:
                    continue
                if failed is None and result.status != ExecStatus.PIPELINE_ABORTED:
                    failed = result
                if prepared is not None:
                    refused.add(id(prepared))
            if not answered and pg.status != ConnStatus.OK:
                raise psycopg.OperationalError(pg.get_error_message())
        if refused:
            self._prepared = {sql: item for sql, item in self._prepared.items() if id(item) not in refused}
        while (result := self._next_result()) is not None and result.status != ExecStatus.PIPELINE_SYNC:
            pass
        pg.exit_pipeline_mode()
        return failed

    def _next_result(self) -> PGresult | None:
        pg = self._pg
        waiter: Any = None
        while True:
            unsent = pg.flush()
            if not unsent and not pg.is_busy():
                return pg.get_result()
            if waiter is None:
                waiter = select.poll()
            waiter.register(pg.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            waiter.poll()
            pg.consume_input()

    def _fail(self, result: PGresult, sql: str | None) -> None:
        if self._pg.status != ConnStatus.OK and result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) is None:
            raise psycopg.OperationalError(result.get_error_message())
        error = error_from_result(result, encoding="utf-8")
        if sql in self._prepared and (STALE_PLAN in str(error) or error.sqlstate == FORGOTTEN_CODE):
            # The table was made anew, or a pooler gave us another session. The name may stay taken on the server,
            # so the next one must differ.
            self._prepared[f"-- stale {len(self._prepared)}"] = self._prepared.pop(sql)
        raise error

    def _cut(self) -> None:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._pg.socket)) as handle:
            handle.shutdown(socket.SHUT_RDWR)


def wire(address: Address, isolation: str | None) -> Wire:
    """How the engine speaks this protocol; see :class:`dbdyno.targets.family.Wire`. The session is that of
    :func:`connect`.

    Raises:
        UsageError: an isolation level that PostgreSQL does not have.
    """
    return Wire(
        protocol="postgresql",
        endpoints=tuple(_file(endpoint) for endpoint in address.endpoints),
        begin="BEGIN",
        errors=errors.CODES,
        error_prefixes=errors.CLASSES,
        lost_code=errors.CONNECTION_FAILURE,
        stale={errors.STALE_PLAN_CODE: errors.STALE_PLAN},
        sentences=errors.SENTENCES,
        parameters=_session(isolation),
    )


def _session(isolation: str | None) -> dict[str, str]:
    session = {"TimeZone": "UTC", "DateStyle": "ISO"}
    if isolation is not None:
        if isolation not in ISOLATION:
            raise UsageError(f"PostgreSQL has no isolation level {isolation!r}; it has {', '.join(ISOLATION)}")
        session["default_transaction_isolation"] = isolation
    return session


def connect(
    address: Address,
    endpoint: int = 0,
    *,
    isolation: str | None = None,
    timeout_s: float = 10.0,
    control: bool = False,
) -> PostgresqlConnection:
    """Open a connection: autocommit, UTC, the isolation level as the session's default.

    Settings travel in the start-up message, so that opening a connection runs no statement.

    Raises:
        UsageError: an isolation level that PostgreSQL does not have.
        RunError: refused, in one sentence.
    """
    session = _session(isolation)
    if missing := unreachable.missing_file_sentence(address):
        raise RunError(missing)
    where = address.endpoints[endpoint]
    host, port = libpq_place(where)
    mode = address.params.get("tls", "prefer")
    settings: dict[str, Any] = {
        "host": host,
        "port": port,
        "user": address.user or None,
        "password": address.password.reveal() if address.password is not None else None,
        "dbname": address.database or None,
        "sslmode": mode,
        # Without a file: the system's certificates, which libpq takes for verify-full alone.
        "sslrootcert": address.params.get("tls_ca") or ("system" if mode == "verify-full" else None),
        "sslcert": address.params.get("tls_cert"),
        "sslkey": address.params.get("tls_key"),
        "gssencmode": "disable",
        **LIBPQ,
        "connect_timeout": max(2, round(timeout_s)),  # libpq takes whole seconds, at least two
        "application_name": CONTROL_APPLICATION if control else APPLICATION,
        "options": " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in session.items()),
        "client_encoding": "UTF8",
    }
    try:
        try:
            raw = psycopg.connect(autocommit=True, **settings)
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" not in str(error):
                raise
            # A pooler that passes no options on: SET costs a transaction each, but works.
            raw = psycopg.connect(autocommit=True, **{**settings, "options": None})
            for name, value in session.items():
                raw.execute(f"SET {name} = '{value}'".encode())
    except psycopg.Error as error:
        # Raised below, outside of this block, so that the driver's exception is not chained.
        problem = refused(address, where, str(error), timeout_s)
    else:
        return PostgresqlConnection(raw)
    raise RunError(problem)


def libpq_place(endpoint: Endpoint) -> tuple[str, int]:
    """Host (or the socket's folder) and port as libpq wants them; a socket's own path names its port."""
    folder, _, name = endpoint.socket.rpartition("/")
    if name.startswith(SOCKET_PREFIX) and name[len(SOCKET_PREFIX) :].isdecimal():
        return folder, int(name[len(SOCKET_PREFIX) :])
    return endpoint.socket or endpoint.host, endpoint.port


def _file(endpoint: Endpoint) -> Endpoint:
    """The same place, a unix socket by its file."""
    folder, port = libpq_place(endpoint)
    return Endpoint(endpoint.host, port, f"{folder}/{SOCKET_PREFIX}{port}" if endpoint.socket else "")


def refused(address: Address, where: Endpoint, text: str, timeout_s: float) -> str:
    """One sentence for a connection that could not be opened; ``text`` is libpq's."""
    if "password authentication failed" in text or "no password supplied" in text:
        return unreachable.login_sentence(address, where)
    if "does not exist" in text and "database" in text:
        name = address.database or address.user
        return f'{where} has no database {name!r}; create it with: CREATE DATABASE "{name}"'
    if "does not exist" in text and "role" in text:
        return f'{where} has no user {address.user!r}; create it with: CREATE ROLE "{address.user}" LOGIN'
    if "too many clients" in text or "remaining connection slots" in text or "too many connections" in text:
        return f"{where} has no connection left; raise the server's max_connections or use fewer connections"
    if "no pg_hba.conf entry" in text:
        return (
            f"{where} lets user {address.user!r} not in from here (no pg_hba.conf entry for host, user, database, TLS)"
        )
    if "does not support SSL" in text:
        return f"{where} has no TLS; use tls=disable, or tls=prefer to take what there is"
    if "certificate" in text or "SSL error" in text:
        return f"TLS with {where} failed: {unreachable.scrub(text, address)}"
    if "starting up" in text or "shutting down" in text:
        return f"{where} is starting up or shutting down; try again in a moment"
    # What is left may be the network; a socket says that in no language.
    probed = _file(where)
    failure = unreachable.probe(probed, timeout_s)
    if failure is not None:
        return unreachable.transport_sentence(probed, failure, timeout_s)
    if "timeout expired" in text:
        return unreachable.silent_sentence(where, timeout_s)
    if "invalid response" in text:
        return f"{where} is no PostgreSQL server; correct host and port, or the scheme"
    if "closed the connection" in text or "reset by peer" in text:
        return unreachable.closed_sentence(where)
    return f"{where} refused the connection: {unreachable.scrub(text, address)}"
