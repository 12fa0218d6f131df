"""An OceanBase server of our own: seekdb, OceanBase's engine in one process, from ``pylibseekdb``."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
from pathlib import Path
from typing import ClassVar

import pymysql

from dbdyno.model.errors import RunError
from dbdyno.targets.managed_kind import Installation, NotReady, Options, Place, ServerKind, WrongAnswer
from dbdyno.targets.managed_process import LOOPBACK


class SeekdbServer(ServerKind):
    kind = "seekdb"
    family = "oceanbase"
    scheme = "oceanbase"
    user = "root"
    comes_from = "pip install 'dbdyno[servers]', or $DBDYNO_SEEKDB (the path of the program seekdb)"
    defaults: ClassVar[dict[str, str]] = {
        "datafile_size": "2G",
        "log_disk_size": "2G",
        "memory_limit": "4G",
        # Its own default writes megabytes a second while it starts.
        "syslog_level": "WARN",
    }
    reserved = frozenset({"mysql_port", "data_dir", "redo_dir", "base_dir", "use_ipv6", "nodaemon"})

    def locate(self) -> Installation:
        program = os.environ.get("DBDYNO_SEEKDB")
        if program is None:
            package = importlib.util.find_spec("pylibseekdb")
            folders = list(package.submodule_search_locations or []) if package else []
            program = os.path.join(folders[0], "seekdb") if folders else ""
        path = Path(program)
        if path.is_file():
            # Its libraries lie beside it. It reports its host to its makers unless told not to.
            environment = {"LD_LIBRARY_PATH": str(path.parent), "TELEMETRY_ENABLED": "false"}
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                done = subprocess.run(
                    [path, "--version"],
                    capture_output=True,
                    text=True,
                    timeout=20,
                    check=True,
                    env={**os.environ, **environment},
                )
                if found := re.search(r"seekdb\s+(\d+(?:\.\d+)+)", done.stdout + done.stderr):
                    return Installation(self.kind, path, found.group(1), environment=environment)
        raise RunError(f"no seekdb server on this machine; it comes from {self.comes_from}")

    def initialise(self, installation: Installation, data_dir: Path, log: Path) -> None:
        # It fills its folder itself when it starts for the first time, with absolute paths.
        data_dir.mkdir(mode=0o700)

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        words = [str(installation.program), "--nodaemon", "--port", str(place.port)]
        words += ["--base-dir", str(place.data_dir)]
        for name, value in options.items():
            words += ["--parameter", f"{name}={value}"]
        return words

    def clear_leftovers(self, place: Place) -> None:
        place.socket.unlink(missing_ok=True)

    def probe(self, place: Place) -> str:
        try:
            connection = pymysql.connect(
                host=LOOPBACK, port=place.port, user=self.user, connect_timeout=5, autocommit=True
            )
        except (pymysql.MySQLError, OSError) as error:
            raise NotReady(str(error)) from None
        with contextlib.closing(connection), connection.cursor() as cursor:
            try:
                cursor.execute("SELECT @@version, @@ob_tcp_invited_nodes")
                row = cursor.fetchone()
                if row is None or "seekdb" not in str(row[0]) or not place.socket.exists():
                    raise WrongAnswer(f"another server answers on port {place.port}")
                if row[1] != LOOPBACK:
                    # It cannot be told an address to listen on, but whom to let in.
                    cursor.execute("SET GLOBAL ob_tcp_invited_nodes = %s", (LOOPBACK,))
                cursor.execute("CREATE DATABASE IF NOT EXISTS dbdyno")
            except pymysql.MySQLError as error:  # it opens its port before the schema is there
                raise NotReady(str(error)) from None
            return str(row[0])

    def socket(self, folder: Path, data_dir: Path, port: int) -> Path:
        return data_dir / "run" / "sql.sock"

    def logs(self, place: Place) -> list[Path]:
        return [place.data_dir / "log" / "seekdb.log", place.log]


KINDS: tuple[ServerKind, ...] = (SeekdbServer(),)
