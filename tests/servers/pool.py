"""The servers of one run of the tests: which there are, started when first needed, stopped when another server's
tests come."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import tomllib
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg
import pymysql

from dbdyno.targets import managed
from dbdyno.targets.managed import ManagedServer

_PREFIX = "dbdyno-test-"
#: What pytest-xdist calls its workers, before their number.
WORKER = "gw"
LIST = Path(__file__).parents[1] / "servers.toml"


@dataclass(frozen=True)
class Needed:
    """One entry of servers.toml and whether this machine has it: exactly one of ``version``, ``missing`` is set."""

    name: str
    why: str
    server: bool
    version: str | None
    missing: str | None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def survey() -> dict[str, Needed]:
    """Every entry of servers.toml by name, in the file's order."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    there = managed.available()
    found: dict[str, Needed] = {}
    for entry in listed["server"]:
        name, least = entry["name"], entry["min_version"]
        if name == "sqlite":
            version, missing = sqlite3.sqlite_version, None
        else:
            version, missing = there[name].version, there[name].reason
        if version is not None and _numbers(version) < _numbers(least):
            version, missing = None, f"version {version} is older than {least}"
        found[name] = Needed(name, entry["why"], True, version, missing)
    for entry in listed["program"]:
        path = next((p for command in entry["commands"] if (p := shutil.which(command))), None)
        missing = None if path else f"no program {' or '.join(entry['commands'])} on PATH"
        found[entry["name"]] = Needed(entry["name"], entry["why"], False, path, missing)
    return found


@dataclass
class Pool:
    """Managed servers in a home of this run's own."""

    home: Path
    started: set[str] = field(default_factory=set)
    #: The servers that the running test has said it needs.
    needed: frozenset[str] = frozenset()
    #: The test file that used each server last.
    used_by: dict[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls) -> Pool:
        """In $DBDYNO_TEST_HOME, so that whoever set it can stop what a killed run left, or in a new folder."""
        named = os.environ.get("DBDYNO_TEST_HOME")
        if named:
            Path(named).mkdir(parents=True, exist_ok=True)
            return cls(Path(named).resolve())
        sweep()
        home = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        me = psutil.Process()
        (home / "owner").write_text(f"{me.pid} {me.create_time()}", encoding="ascii")
        return cls(home)

    @classmethod
    def of_worker(cls, home: Path, name: str) -> Pool:
        """One of several processes that share a run: its servers are its own, in a folder below the run's."""
        (home / name).mkdir(exist_ok=True)
        return cls(home / name)

    def server(self, name: str) -> ManagedServer:
        """The running server; started, also again if a test ended it."""
        if name not in self.needed:
            # Its marks decide in which worker it runs, and whether it is skipped where there is no such server.
            raise AssertionError(f"this test uses the server {name}: mark it @pytest.mark.needs({name!r})")
        self.started.add(name)
        return managed.start(name, home=self.home)

    def url(self, name: str) -> str:
        return self.server(name).url

    def enter(self, file: str, names: Collection[str]) -> None:
        """A test of this file comes: it shall not see tables that another file's tests left."""
        self.needed = frozenset(names)
        for name in names:
            if self.used_by.get(name) != file and name in self.started:
                server = managed.find(name, home=self.home)
                if server is not None and server.running:
                    empty(server)
            self.used_by[name] = file

    def keep(self, names: Collection[str]) -> None:
        """Remove all servers but these, with their data."""
        for name in self.started - set(names):
            self.started.discard(name)
            managed.remove(name, home=self.home)

    def close(self) -> None:
        """Remove everything, also what workers that were killed have left below this home."""
        for home in homes(self.home):
            for server in managed.listing(home):
                managed.remove(server.name, home=home)
        shutil.rmtree(self.home, ignore_errors=True)


def homes(home: Path) -> list[Path]:
    """A run's home and its workers'."""
    return [home, *sorted(home.glob(f"{WORKER}*"))]


def sweep() -> None:
    """Remove the servers of runs that were killed before they could: their process is gone, the folder is not."""
    for home in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            pid, born = (home / "owner").read_text(encoding="ascii").split()
            if home.stat().st_uid != os.geteuid():
                continue
            if abs(psutil.Process(int(pid)).create_time() - float(born)) < 2:
                continue
        except psutil.NoSuchProcess:
            pass
        except (OSError, ValueError, psutil.Error):
            continue
        Pool(home).close()


def empty(server: ManagedServer) -> None:
    """Drop every table in the server's database ``dbdyno``, so that no test sees what another left."""
    if server.family == "postgresql":
        with psycopg.connect(server.url, autocommit=True, connect_timeout=10) as connection:
            connection.execute("SET lock_timeout = '20s'")
            connection.execute("SET client_min_messages = warning")
            for (table,) in connection.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall():
                connection.execute(f"DROP TABLE IF EXISTS {table} CASCADE".encode())
        return
    with (
        closing(
            pymysql.connect(
                host="127.0.0.1",
                port=server.port,
                user="root",
                database="dbdyno",
                autocommit=True,
                connect_timeout=10,
                read_timeout=60,
            )
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW TABLES")
        tables = [row[0] for row in cursor.fetchall()]
        if not tables:
            return
        if server.family == "mysql":
            cursor.execute("SET lock_wait_timeout = 20")
        cursor.execute("SET foreign_key_checks = 0")
        for table in tables:
            cursor.execute(f"DROP TABLE `{table}`")
