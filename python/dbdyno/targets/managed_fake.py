"""The scripted server as a managed one: it answers at once, stores nothing, and shows what the generator can do.

Both kinds listen on a port and a unix socket, in a process of their own whose CPU time is that of the server.
The statements of the sysbench and pgbench workloads get rows of the right shape; every other SELECT gets one row
of ones, INSERT, UPDATE and DELETE change one row, everything else succeeds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.model.errors import UsageError, nearest
from dbdyno.targets.managed_kind import Installation, Options, Place, ServerKind, option_key
from dbdyno.targets.managed_process import Record
from dbdyno.targets.mysql.server import MysqlServer
from dbdyno.targets.postgresql.server import PostgresqlServer

#: The first word after the program's text is the data folder: by it the process is known.
_PROGRAM = "import sys; from dbdyno._engine import serve_fake; sys.exit(serve_fake(sys.argv[2:]))"
#: What may be set, passed on to the server under these names, and how many sbtest tables it says it has.
_OPTIONS = ("delay", "seed", "spin", "stall", "tables")
_TABLES, _MOST_TABLES = 64, 10_000
#: Whatever size a workload asks for is there.
_ROWS = 1_000_000_000_000

_C = "-".join(f"{(n * 7_919_191_919 + 68_487_932_199) % 10**11:011d}" for n in range(10))
_PAD = "-".join(f"{(n * 6_700_417_001 + 67_847_967_377) % 10**11:011d}" for n in range(5))

Rule = dict[str, Any]


class _FakeServer(ServerKind):
    comes_from = "dbdyno itself"
    ready_timeout_s = 30.0
    stop_timeout_s = 10.0
    protocol: ClassVar[str]
    claimed_version: ClassVar[str]
    reserved = frozenset({"port", "socket", "protocol", "script", "record", "stay", "proxy", "server_version"})

    def locate(self) -> Installation:
        from dbdyno._engine import engine_version

        return Installation(self.kind, Path(sys.executable), engine_version())

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        data_dir.mkdir(mode=0o700)

    def checked(self, options: Options) -> dict[str, str | None]:
        found = super().checked(options)
        for name in found:
            if option_key(name) not in _OPTIONS:
                raise UsageError(f"the {self.kind} server has no setting {name!r}{nearest(name, _OPTIONS)}")
        _table_count(found)
        return found

    def clear_leftovers(self, place: Place) -> None:
        place.socket.unlink(missing_ok=True)

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        script = place.data_dir / "script.json"
        rules = [*self.identity(place), *self.tables(_table_count(options)), *_workload_rules()]
        script.write_text(json.dumps({"rules": rules}), encoding="utf-8")
        words = [str(installation.program), "-c", _PROGRAM, str(place.data_dir), "--stay"]
        words += [f"--protocol={self.protocol}", f"--port={place.port}", f"--socket={place.socket}"]
        words += [f"--script={script}", f"--server-version={self.claimed_version}"]
        return words + [f"--{option_key(name)}={value}" for name, value in options.items() if name != "tables"]

    def identity(self, place: Place) -> list[Rule]:
        """Answers to what dbdyno asks a server about itself."""
        raise NotImplementedError

    def tables(self, count: int) -> list[Rule]:
        """The answer to the question which tables there are."""
        raise NotImplementedError


class FakeMysqlServer(_FakeServer):
    """Speaks the MySQL protocol."""

    kind = "fake"
    family = "mysql"
    scheme = "mysql"
    user = "root"
    protocol = "mysql"
    claimed_version = "8.0.36-fakeserver"

    def identity(self, place: Place) -> list[Rule]:
        limit = ["max_connections", "100000"]
        variables = [
            ["version", self.claimed_version],
            ["version_comment", "dbdyno's scripted server, which stores nothing"],
            ["transaction_isolation", "REPEATABLE-READ"],
            limit,
        ]
        named = ("Variable_name", "Value")
        return [
            _rule("SELECT @@datadir, @@version", ("datadir", "version"), [[str(place.data_dir), self.claimed_version]]),
            _rule("SHOW GLOBAL VARIABLES LIKE 'max_connections'", named, [limit]),
            _rule("SHOW GLOBAL VARIABLES", named, variables),
        ]

    def tables(self, count: int) -> list[Rule]:
        asked = "SELECT c.table_name, c.column_name FROM information_schema.columns"
        return [_rule(asked, ("table_name", "column_name"), list(_columns(count)))]

    def probe(self, place: Place) -> str:
        return MysqlServer().probe(place)


class FakePostgresqlServer(_FakeServer):
    """Speaks PostgreSQL's protocol."""

    kind = "fake-postgresql"
    family = "postgresql"
    scheme = "postgresql"
    user = "dbdyno"
    protocol = "postgresql"
    claimed_version = "18.0-fakeserver"

    def identity(self, place: Place) -> list[Rule]:
        banner = f"PostgreSQL {self.claimed_version}, dbdyno's scripted server, which stores nothing"
        folder, reserved = "SELECT current_setting('data_directory')", "current_setting('max_connections')::int"
        settings = [
            ["default_transaction_isolation", "read committed", None],
            ["max_connections", "100000", None],
            ["server_version", self.claimed_version, None],
        ]
        in_full = [[name, value, "", "postmaster", "default"] for name, value, _ in settings]
        return [
            _rule("SELECT name, setting, COALESCE(unit", ("a", "b", "c", "d", "e"), in_full),
            _rule("SELECT pg_is_in_recovery()", ("pg_is_in_recovery",), [[0]], "int"),
            _rule("SELECT COALESCE(sum(numbackends), 1) FROM pg_stat_database", ("sum",), [[1]], "int"),
            _rule(folder, ("a", "b", "c"), [[str(place.data_dir), self.claimed_version, 1]], "text", "text", "int"),
            _rule("SELECT current_setting('server_version'), version()", ("a", "b"), [[self.claimed_version, banner]]),
            _rule("SELECT name, setting, unit FROM pg_settings", ("name", "setting", "unit"), settings),
            _rule(f"SELECT {reserved}", ("a", "b", "c", "d"), [[100_000, 0, 0, 1]], *["int"] * 4),
        ]

    def tables(self, count: int) -> list[Rule]:
        return [_rule("SELECT c.relname, a.attname FROM pg_class", ("relname", "attname"), list(_columns(count)))]

    def probe(self, place: Place) -> str:
        return PostgresqlServer().probe(place)

    def socket(self, folder: Path, data_dir: Path, port: int) -> Path:
        return folder / f".s.PGSQL.{port}"


def _table_count(options: Options) -> int:
    text = options.get("tables") or str(_TABLES)
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_TABLES:
        raise UsageError(f"tables must be a number from 1 to {_MOST_TABLES}, not {text}")
    return int(text)


def _columns(tables: int) -> Iterator[list[str]]:
    """Table and column names: sysbench's tables up to that number, and pgbench's."""
    listed = {f"sbtest{number}": "id k c pad" for number in range(1, tables + 1)}
    listed["pgbench_accounts"] = "aid bid abalance filler"
    listed["pgbench_branches"] = "bid bbalance filler"
    listed["pgbench_history"] = "tid bid aid delta mtime filler"
    listed["pgbench_tellers"] = "tid bid tbalance filler"
    return ([table, column] for table, columns in listed.items() for column in columns.split())


def _workload_rules() -> list[Rule]:
    row = [5_001, 4_999, _C, _PAD]
    return [
        # Statements that ask for what is wrong with the data: nothing is.
        _rule(r"^SELECT .*(<> |HAVING COUNT|counted WHERE n < )", ("name", "id"), []),
        _rule(r"^SELECT COUNT\(k\)", ("count",), [[1_000]], "int"),
        # pgbench takes the number of branches for its scale, which must be an int; dbdyno's may be as high.
        _rule("SELECT COUNT(*) FROM pgbench_branches", ("count",), [[1_000_000]], "int"),
        # How pgbench asks whether its accounts are partitioned: they are not.
        _rule("SELECT o.n, p.partstrat", ("n", "partstrat", "count"), [[1, None, 0]], "int", "text", "int"),
        _rule(r"^SELECT COUNT\(", ("count",), [[_ROWS]], "int"),
        _rule(r"^SELECT c FROM sbtest\d+ WHERE id ?=", ("c",), [[_C]], parameters=["int"]),
        _rule(r"^SELECT SUM\(k\) FROM sbtest\d+", ("sum",), [[501_234]], "int", parameters=["int", "int"]),
        _rule(
            r"^SELECT (DISTINCT )?c FROM sbtest\d+ WHERE id BETWEEN",
            ("c",), [[_C]], repeat=100, parameters=["int", "int"],
        ),
        _rule(
            r"^SELECT id, k, c, pad FROM sbtest\d+",
            ("id", "k", "c", "pad"), [row], "int", "int", "text", "text", repeat=100, parameters=["int"] * 10,
        ),
        _rule("SELECT abalance FROM pgbench_accounts", ("abalance",), [[0]], "int", parameters=["int"]),
        {"match": r"^UPDATE sbtest\d+ SET k=", "parameters": ["int"], "affected": 1},
        {"match": r"^UPDATE sbtest\d+ SET c=", "parameters": ["text", "int"], "affected": 1},
        {"match": r"^DELETE FROM sbtest", "parameters": ["int"], "affected": 1},
        {"match": r"^UPDATE pgbench_", "parameters": ["int", "int"], "affected": 1},
        {"match": r"^INSERT INTO pgbench_history", "parameters": ["int"] * 4, "affected": 1},
    ]  # fmt: skip


def _rule(match: str, names: tuple[str, ...], rows: list[list[Any]], *types: str, **more: Any) -> Rule:
    """A rule that answers with rows; ``types`` of the columns, text without them."""
    kinds = types or ("text",) * len(names)
    columns = [{"name": name, "type": kind} for name, kind in zip(names, kinds, strict=True)]
    return {"match": match, "columns": columns, "rows": rows, **more}


KINDS: tuple[ServerKind, ...] = (FakeMysqlServer(), FakePostgresqlServer())
