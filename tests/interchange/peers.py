"""sysbench and pgbench as peers on one server, and the server's own log as the witness of what either sent."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbdyno.targets.family import Connection
from dbdyno.targets.target import Target

#: (statement with ? for every value, shape of each value): what two programs must have in common.
Sent = tuple[str, tuple[str, ...]]

_VALUE = re.compile(r"'(?:[^'\\]|''|\\.)*'|\$\d+|(?<![\w$.])-?\d+(?:\.\d+)?\b")
_OURS = re.compile(r"\b(sbtest|pgbench_)", re.IGNORECASE)
_FRAMES = {"BEGIN", "COMMIT", "ROLLBACK", "END", "START TRANSACTION"}


def as_options(words: list[str]) -> dict[str, str]:
    """sysbench's ``--table-size=5`` as a workload's options."""
    return dict(word.removeprefix("--").split("=", 1) for word in words)


def normal(sql: str, parameters: tuple[str, ...] = ()) -> Sent:
    """A statement without its values, blanks and final semicolon, and the values' shapes.

    Numbers are ``int``; of texts digits become ``#``. ``$n`` stands for ``parameters[n - 1]``.
    """
    shapes = []

    def take(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith("$"):
            text = parameters[int(text[1:]) - 1]
        text = text[1:-1] if text.startswith("'") else text
        shapes.append("int" if re.fullmatch(r"-?\d+", text) else re.sub(r"\d", "#", text))
        return "?"

    bare = _VALUE.sub(take, sql.strip().rstrip(";"))
    bare = re.sub(r"\s+", " ", bare).strip()
    bare = re.sub(r"\s*([(),=])\s*", r"\1", bare)
    return ("COMMIT" if bare == "END" else bare), tuple(shapes)


@dataclass
class Seen:
    """What reached the server while it was watched: (session, statement, parameters), in order."""

    logged: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    @property
    def statements(self) -> list[Sent]:
        """Statements on the peers' tables, and BEGIN and COMMIT of the sessions that sent them."""
        sessions = {session for session, sql, _ in self.logged if _OURS.search(sql)}
        return [
            normal(sql, parameters)
            for session, sql, parameters in self.logged
            if session in sessions and (_OURS.search(sql) or sql.strip().rstrip(";").upper() in _FRAMES)
        ]

    @property
    def ids(self) -> list[int]:
        """The id of every point SELECT."""
        found = []
        for _, sql, parameters in self.logged:
            match = re.search(r"FROM sbtest1 WHERE id\s*=\s*(\$1|\d+)", sql)
            if match:
                found.append(int(parameters[0].strip("'") if match[1] == "$1" else match[1]))
        return found


class Witness:
    """A server's own log."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @contextmanager
    def watching(self) -> Iterator[Seen]:
        """``Seen`` is filled at the end."""
        raise NotImplementedError
        yield


class GeneralLog(Witness):
    """mysql.general_log: both texts and executed prepared statements, values in place."""

    @contextmanager
    def watching(self) -> Iterator[Seen]:
        connection = self.target.control()
        seen = Seen()
        try:
            connection.execute("SET GLOBAL general_log = 'OFF'")
            connection.execute("TRUNCATE TABLE mysql.general_log")
            connection.execute("SET GLOBAL log_output = 'TABLE'")
            connection.execute("SET GLOBAL general_log = 'ON'")
            try:
                yield seen
            finally:
                connection.execute("SET GLOBAL general_log = 'OFF'")
                connection.execute("SET GLOBAL log_output = 'FILE'")
            seen.logged += self._lines(connection)
        finally:
            connection.close()

    def _lines(self, connection: Connection) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        rows = connection.fetch(
            "SELECT thread_id, argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')"
        )
        for session, argument in rows:
            yield str(session), argument.decode() if isinstance(argument, bytes) else argument, ()


class ServerLog(Witness):
    """The log that a PostgreSQL server writes to its standard error, read through the server itself."""

    _FILE = "/proc/self/fd/2"
    _LINE = re.compile(r"^.*?\[(\d+)\].*? (LOG|DETAIL):  (.*)", re.DOTALL)
    _PARAMETER = re.compile(r"\$\d+ = ('(?:[^']|'')*'|NULL)")

    @contextmanager
    def watching(self) -> Iterator[Seen]:
        connection = self.target.connect()  # its own session keeps the settings it began with
        database = self.target.address.database
        seen = Seen()
        try:
            connection.execute(f"ALTER DATABASE {database} SET log_statement = 'all'")
            connection.execute(f"ALTER DATABASE {database} SET log_parameter_max_length = -1")
            begin = self._size(connection)
            try:
                yield seen
            finally:
                connection.execute(f"ALTER DATABASE {database} RESET log_statement")
                connection.execute(f"ALTER DATABASE {database} RESET log_parameter_max_length")
            length = self._size(connection) - begin
            text = str(connection.fetch("SELECT pg_read_file(?, ?, ?)", (self._FILE, begin, length))[0][0])
            seen.logged += self._lines(text)
        finally:
            connection.close()

    def _size(self, connection: Connection) -> int:
        return int(connection.fetch("SELECT size FROM pg_stat_file(?)", (self._FILE,))[0][0])

    def _lines(self, text: str) -> list[tuple[str, str, tuple[str, ...]]]:
        found: list[tuple[str, str, tuple[str, ...]]] = []
        for entry in re.split(r"\n(?!\t)", text):
            match = self._LINE.match(entry)
            if match is None:
                continue
            session, level, message = match[1], match[2], match[3].replace("\n\t", "\n")
            kind, _, sql = message.partition(": ")
            if level == "LOG" and (kind == "statement" or kind.startswith("execute ")):
                found.append((session, sql, ()))
            elif level == "DETAIL" and kind.lower() == "parameters" and found and found[-1][0] == session:
                found[-1] = (session, found[-1][1], tuple(self._PARAMETER.findall(sql)))
        return found


@dataclass(frozen=True)
class Peer:
    """A server with both programs on it."""

    kind: str  # "mariadb", "mysql", "postgresql"
    target: Target

    @property
    def witness(self) -> Witness:
        return ServerLog(self.target) if self.kind == "postgresql" else GeneralLog(self.target)

    def sysbench(self, script: str, command: str, *options: str) -> str:
        """Run sysbench against the server; its output. Fails with it."""
        address = self.target.address
        endpoint = address.endpoints[0]
        driver = "pgsql" if self.kind == "postgresql" else "mysql"
        password = address.password.reveal() if address.password is not None else ""
        words = [
            "sysbench", script, f"--db-driver={driver}", f"--{driver}-host={endpoint.host}",
            f"--{driver}-port={endpoint.port}", f"--{driver}-user={address.user}",
            f"--{driver}-db={address.database}", *options, command,
        ]  # fmt: skip
        if password:
            words.insert(3, f"--{driver}-password={password}")
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{script} {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows, over a connection of its own."""
        connection = self.target.connect()
        try:
            return connection.fetch(sql)
        finally:
            connection.close()

    def described(self, table: str) -> list[Any]:
        """Columns, types, defaults, indexes of a table, as the server describes them."""
        if self.kind != "postgresql":
            text = str(self.fetch(f"SHOW CREATE TABLE {table}")[0][1])
            return [re.sub(r" AUTO_INCREMENT=\d+", "", text)]
        columns = self.fetch(
            "SELECT column_name, data_type, character_maximum_length, column_default, is_nullable, collation_name"
            f" FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position"
        )
        return columns + self.fetch(f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}' ORDER BY 1")

    def clear(self) -> None:
        """Drop all of the peers' tables and the ledger."""
        connection = self.target.connect()
        try:
            for name in self.target.family.existing_tables(connection):
                if name.startswith(("sbtest", "pgbench_", "dbdyno_load")):
                    connection.execute(self.target.family.dialect.drop_table(name))
        finally:
            connection.close()
