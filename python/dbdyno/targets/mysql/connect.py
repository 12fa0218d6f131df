"""Connections of the MySQL protocol through PyMySQL; also for the families that share the protocol."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from typing import Any, cast

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets import silence, unreachable
from dbdyno.targets.family import ErrorClass, Wire
from dbdyno.targets.mysql.errors import CODES, LOST_CODE, SENTENCES, by_text
from dbdyno.targets.mysql.exchange import Exchange
from dbdyno.targets.mysql.values import ENCODERS, ENCODERS_WITHOUT_BACKSLASHES, bind
from dbdyno.targets.url import Address, Endpoint, parse_address

ISOLATION = ("read uncommitted", "read committed", "repeatable read", "serializable")
APPLICATION = "dbdyno"
CONTROL_APPLICATION = "dbdyno control"
_CANCEL_TIMEOUT_S = 2.0
#: What a result may bring; PyMySQL's default of 16 MiB is below what servers allow.
_MAX_PACKET = 1 << 30


def parse(url: str) -> Address:
    """``mysql://user@host:port/database``; ``?socket=FILE``."""
    return parse_address(url, 3306)


class MysqlConnection:
    """One connection; statements go out as text with their values in them.

    ``cancel_with(connection id)`` cancels from elsewhere. Rows matched, not changed, is CLIENT_FOUND_ROWS.
    """

    def __init__(self, raw: pymysql.Connection[Any], cancel_with: Callable[[int], None]) -> None:
        self.raw = cast(Any, raw)
        self._cancel_with = cancel_with
        no_backslash = self.raw.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES
        self._encoders = ENCODERS_WITHOUT_BACKSLASHES if no_backslash else ENCODERS
        self._run = Exchange(raw).run

    def fetch(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._run(bind(sql, params, self._encoders))[0] or []

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        rows, matched = self._run(bind(sql, params, self._encoders))
        return matched if rows is None else 0  # ANALYZE TABLE and the like answer with rows

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        return sum(self.execute(sql, row) for row in rows)

    def begin(self, write: bool) -> None:
        self._run(b"BEGIN")

    def commit(self) -> None:
        self._run(b"COMMIT")

    def rollback(self) -> None:
        """Always sent: after an error the client does not know whether the server still has a transaction."""
        self._run(b"ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        """As the last answer without an error said."""
        return bool(self.raw.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def pipeline(self) -> AbstractContextManager[None]:
        return nullcontext()

    def cancel(self) -> None:
        try:
            self._cancel_with(self.raw.thread_id())
        except (RunError, pymysql.err.Error):
            self._cut()

    def close(self) -> None:
        with suppress(pymysql.err.Error, OSError):
            self.raw.close()

    @property
    def tls(self) -> str:
        """The cipher in use, "" without TLS."""
        handle = self.raw._sock
        cipher = handle.cipher() if isinstance(handle, ssl.SSLSocket) else None
        return cipher[0] if cipher else ""

    def _cut(self) -> None:
        handle = self.raw._sock
        if handle is not None:
            with suppress(OSError):
                handle.shutdown(2)


def wire(
    address: Address,
    isolation: str | None,
    *,
    codes: Mapping[int, ErrorClass] = CODES,
    prefixes: Mapping[str, ErrorClass] | None = None,
    sentences: Mapping[str, str] | None = None,
    cancel: str = "KILL QUERY",
    product: str = "MySQL",
    allowed_isolation: Sequence[str] = ISOLATION,
) -> Wire:
    """How the engine speaks this protocol; see :class:`dbdyno.targets.family.Wire`. The session is that of
    :func:`connect`.

    Raises:
        UsageError: an isolation level that the product does not have.
    """
    return Wire(
        protocol="mysql",
        endpoints=address.endpoints,
        begin="BEGIN",
        errors=by_text(codes),
        error_prefixes=prefixes or {},
        lost_code=LOST_CODE,
        sentences=sentences or {str(number): sentence for number, sentence in SENTENCES.items()},
        setup=tuple(_session(isolation, product, allowed_isolation)),
        cancel=cancel,
    )


def _session(isolation: str | None, product: str, allowed: Sequence[str]) -> list[str]:
    if isolation is None:
        return ["SET time_zone = '+00:00'"]
    if isolation not in allowed:
        raise UsageError(f"{product} has no isolation level {isolation!r}; it has {', '.join(allowed)}")
    return [f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation.upper()}", "SET time_zone = '+00:00'"]


def connect(
    address: Address,
    endpoint: int = 0,
    *,
    isolation: str | None = None,
    timeout_s: float = 10.0,
    control: bool = False,
    setup: Sequence[str] = (),
    kill: str = "KILL QUERY",
    product: str = "MySQL",
    allowed_isolation: Sequence[str] = ISOLATION,
) -> MysqlConnection:
    """Open a connection: autocommit, UTC, the isolation level as the session's. Runs SET statements only.

    ``setup`` are more SET statements; ``kill`` is the command that cancels a connection's statement.

    Raises:
        UsageError: an isolation level that the product does not have.
        RunError: refused, in one sentence.
    """
    statements = [*_session(isolation, product, allowed_isolation), *setup]
    where = address.endpoints[endpoint]
    if problem := unreachable.missing_file_sentence(address):
        raise RunError(problem)
    try:
        raw = _open(address, where, timeout_s, CONTROL_APPLICATION if control else APPLICATION)
        try:
            for statement in statements:
                raw.query(statement)
        except BaseException:
            raw.close()
            raise
        raw._read_timeout = None  # type: ignore[attr-defined]
    except (pymysql.err.Error, OSError, UnicodeError, IndexError, ValueError) as error:
        # Raised below, outside of this block, so that the driver's exception is not chained.
        problem = refused(address, where, error, timeout_s, product)
    if problem:
        raise RunError(problem)

    def cancel_with(number: int) -> None:
        helper = _open(address, where, _CANCEL_TIMEOUT_S, CONTROL_APPLICATION)
        try:
            helper.query(f"{kill} {number}")
        finally:
            helper.close()

    return MysqlConnection(raw, cancel_with)


def _open(address: Address, where: Endpoint, timeout_s: float, program: str) -> pymysql.Connection[Any]:
    mode = address.params.get("tls", "prefer")
    password = address.password.reveal() if address.password is not None else ""
    raw: Any = pymysql.connections.Connection(
        host=where.host,
        port=where.port,
        unix_socket=where.socket or None,
        user=address.user or None,
        password=password.encode(),  # as text PyMySQL would take it for latin1
        database=address.database or None,
        charset="utf8mb4",
        autocommit=True,
        client_flag=CLIENT.FOUND_ROWS,
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        max_allowed_packet=_MAX_PACKET,
        local_infile=False,
        program_name=program,
        ssl=None if mode == "disable" else tls_context(mode, *(address.params.get(k, "") for k in _TLS_FILES)),
        ssl_disabled=mode == "disable",
        defer_connect=True,
    )
    if mode == "prefer":  # a context given means "required" to PyMySQL
        raw._ssl_required = False
        raw.client_flag &= ~CLIENT.SSL
    raw.connect()
    silence.watch_peer(raw._sock)
    if mode not in ("disable", "prefer") and not isinstance(raw._sock, ssl.SSLSocket):
        raw.close()
        raise pymysql.err.OperationalError(2026, "SSL is required but the server doesn't support it")
    connection: pymysql.Connection[Any] = raw
    return connection


_TLS_FILES = ("tls_ca", "tls_cert", "tls_key")


@lru_cache(maxsize=16)
def tls_context(mode: str, ca: str, cert: str, key: str) -> ssl.SSLContext:
    """One context for all connections: reading the system's certificates takes milliseconds.

    Raises:
        OSError, ssl.SSLError: a file that is missing or no certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    if mode in ("verify-ca", "verify-full"):
        context.verify_mode = ssl.CERT_REQUIRED
        # The certificates that servers make for themselves break RFC 5280's finer rules.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if ca:
            context.load_verify_locations(cafile=ca)
        else:
            context.load_default_certs()
    else:
        context.verify_mode = ssl.CERT_NONE
    if cert:
        context.load_cert_chain(cert, key or None)
    return context


def refused(address: Address, where: Endpoint, error: BaseException, timeout_s: float, product: str) -> str:
    """One sentence for a connection that could not be opened."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    text = unreachable.scrub(str(error.args[1] if len(error.args) > 1 else error), address)
    original = getattr(error, "original_exception", None)
    if isinstance(error, ssl.SSLError) or isinstance(original, ssl.SSLError) or number == 2026:
        if "doesn't support" in text:
            return f"{where} has no TLS; use tls=disable, or tls=prefer to take what there is"
        return f"TLS with {where} failed: {unreachable.scrub(str(original or text), address)}"
    if isinstance(original, OSError):
        return unreachable.transport_sentence(where, original, timeout_s)
    if isinstance(error, OSError) and not isinstance(error, pymysql.err.Error):
        return unreachable.transport_sentence(where, error, timeout_s)
    if number in (1045, 1698):
        return unreachable.login_sentence(address, where)
    if number == 1049:
        name = address.database
        return f"{where} has no database {name!r}; create it with: CREATE DATABASE `{name}`"
    if number == 1044:
        return f"{where} does not let user {address.user!r} use database {address.database!r}; GRANT it"
    if number in (1040, 1203) or (number == 1226 and "connections" in text):
        return f"{where} has no connection left; raise the server's max_connections or use fewer connections"
    if number == 1130:
        return f"{where} lets nobody in from this machine as {address.user!r}; create the user for this host"
    if number == 1129:
        return f"{where} blocked this machine after many failed logins; run FLUSH HOSTS there"
    if number in (1820, 1862):
        return f"the password of user {address.user!r} has expired on {where}; set a new one"
    if number == 2013 and "timed out" in text:
        return unreachable.silent_sentence(where, timeout_s)
    if number in (2006, 2013):
        return unreachable.closed_sentence(where)
    if number is None and not isinstance(error, pymysql.err.OperationalError):
        return f"{where} is no {product} server; correct host and port, or the scheme"
    return f"{where} refused the connection: {text}"
