"""One statement and its answer in the MySQL text protocol, over a connection that PyMySQL opened.

PyMySQL describes every column of every answer anew, which costs the client more than sending and reading; here a
column's definition is understood once. Login, TLS and errors stay PyMySQL's.
Layout: MySQL's "Client/Server Protocol", COM_QUERY response (without CLIENT_DEPRECATE_EOF, which PyMySQL never asks
for).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.constants import COMMAND, FIELD_TYPE, SERVER_STATUS
from pymysql.converters import decoders as DECODERS
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

Convert = Callable[[Any], Any] | None
#: A packet holds at most this many bytes; a longer statement goes PyMySQL's way.
_MAX_PAYLOAD = 0xFFFFFF
_CHUNK = 65_536
_TEXT_TYPES = frozenset(
    {
        FIELD_TYPE.BIT, FIELD_TYPE.BLOB, FIELD_TYPE.LONG_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.TINY_BLOB,
        FIELD_TYPE.STRING, FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.GEOMETRY,
    }
)  # fmt: skip
_BINARY_CHARSET = 63
_ASCII_NUMBERS = frozenset(
    {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG, FIELD_TYPE.INT24, FIELD_TYPE.YEAR}
)
_MORE = SERVER_STATUS.SERVER_MORE_RESULTS_EXISTS

Rows = list[tuple[Any, ...]]


class Exchange:
    """Sends statements of one connection and reads their answers. ``raw`` is a logged-in PyMySQL connection."""

    __slots__ = ("_at", "_columns", "_raw", "_receive", "_received", "_send")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        raw._sock.settimeout(None)  # the login is over; statements take what they take
        self._receive: Callable[[int], bytes] = raw._sock.recv
        self._send: Callable[[bytes], None] = raw._sock.sendall
        self._columns: dict[bytes, Convert] = {}
        self._received, self._at = b"", 0

    def run(self, statement: bytes) -> tuple[Rows | None, int]:
        """Rows (None for a statement without) of the first result, and the rows matched.

        Raises:
            pymysql.err.Error: the server's error, or 2006 and 2013 when the connection is gone.
        """
        raw = self._raw
        if raw._sock is None:
            raise pymysql.err.InterfaceError(0, "")
        length = len(statement) + 1
        if length >= _MAX_PAYLOAD:
            raw.query(statement)
            result = raw._result
            answer = (list(result.rows) if result.rows is not None else None, int(result.affected_rows))
            while raw._result.has_next:
                raw.next_result()
            return answer
        try:
            self._send(length.to_bytes(3, "little") + b"\0" + _QUERY + statement)
        except OSError as error:
            raw._force_close()
            raise pymysql.err.OperationalError(2006, f"MySQL server has gone away ({error!r})") from None
        try:
            rows, matched = self._answer()
            while raw.server_status & _MORE:
                self._answer()
        except (IndexError, KeyError, ValueError, struct.error) as error:  # no answer of this protocol
            raw._force_close()
            raise pymysql.err.OperationalError(2027, f"Malformed packet ({error!r})") from None
        return rows, matched

    def _answer(self) -> tuple[Rows | None, int]:
        packet = self._packet()
        first = packet[0]
        if first == 0:
            matched, at = _number(packet, 1)
            _, at = _number(packet, at)
            self._raw.server_status = packet[at] | packet[at + 1] << 8
            return None, matched
        if first == 0xFF:
            self._raise(packet)
        if first == 0xFB:  # LOAD DATA LOCAL, which was not offered
            self._raw._force_close()
            raise pymysql.err.OperationalError(2013, "the server asked for a file, which was not offered")
        count, _ = _number(packet, 0)
        known = self._columns
        converts: list[Convert] = []
        for _ in range(count):
            definition = self._packet()
            try:
                converts.append(known[definition])
            except KeyError:
                convert = known[definition] = self._convert(definition)
                converts.append(convert)
        self._end(self._packet())
        rows: Rows = []
        while True:
            packet = self._packet()
            first = packet[0]
            if first == 0xFE and len(packet) < 9:
                self._end(packet)
                return rows, len(rows)
            if first == 0xFF:  # in the middle of the rows: cancelled, or the server's limit of time
                self._raise(packet)
            at = 0
            row: list[Any] = []
            for convert in converts:
                size = packet[at]
                at += 1
                if size == 0xFB:
                    row.append(None)
                    continue
                if size > 0xFB:
                    size, at = _number(packet, at - 1)
                value: Any = packet[at : at + size]
                at += size
                row.append(value if convert is None else convert(value))
            rows.append(tuple(row))

    def _packet(self) -> bytes:
        received, at = self._received, self._at
        if len(received) < at + 4:
            received, at = self._fill(4), 0
        length = received[at] | received[at + 1] << 8 | received[at + 2] << 16
        end = at + 4 + length
        if len(received) < end:
            received, at, end = self._fill(4 + length), 0, 4 + length
        self._at = end
        body = received[at + 4 : end]
        return body if length < _MAX_PAYLOAD else body + self._packet()

    def _fill(self, count: int) -> bytes:
        """At least ``count`` bytes that were not taken yet; afterwards they begin at 0."""
        parts = [self._received[self._at :]]
        missing = count - len(parts[0])
        while missing > 0:
            try:
                data = self._receive(max(missing, _CHUNK))
            except OSError as error:
                self._raw._force_close()
                raise pymysql.err.OperationalError(2013, f"Lost connection to MySQL server ({error})") from None
            if not data:
                self._raw._force_close()
                raise pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")
            parts.append(data)
            missing -= len(data)
        self._received, self._at = b"".join(parts), 0
        return self._received

    def _end(self, packet: bytes) -> None:
        if packet[0] == 0xFF:
            self._raise(packet)
        self._raw.server_status = packet[3] | packet[4] << 8

    def _raise(self, packet: bytes) -> None:
        MysqlPacket(packet, "utf8").raise_for_error()

    def _convert(self, definition: bytes) -> Convert:
        field: Any = FieldDescriptorPacket(definition, "utf8")
        kind, binary = field.type_code, field.charsetnr == _BINARY_CHARSET
        if kind in _ASCII_NUMBERS or kind in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE):
            return int if kind in _ASCII_NUMBERS else float  # both read bytes
        if kind == FIELD_TYPE.JSON or (kind in _TEXT_TYPES and not binary):
            return _decode
        if kind in _TEXT_TYPES:
            return None
        decoder = DECODERS.get(kind)
        return _decode if decoder is None else lambda value: decoder(value.decode())


_QUERY = bytes([COMMAND.COM_QUERY])


def _decode(value: bytes) -> str:
    return value.decode()


def _number(packet: bytes, at: int) -> tuple[int, int]:
    """A length-encoded integer, and where it ends."""
    first = packet[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(packet[at + 1 : at + 1 + size], "little"), at + 1 + size
