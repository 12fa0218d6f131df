"""An OceanBase server of our own: seekdb, OceanBase's engine in one process, from ``pylibseekdb``."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets.managed_kind import Installation, NotReady, Options, Place, ServerKind, WrongAnswer
from dbdyno.targets.managed_process import LOOPBACK, SOCKET_PATH_MAX, Record

if TYPE_CHECKING:
    import pymysql
    import pymysql.cursors


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

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        # It fills its folder itself when it starts for the first time, with absolute paths.
        data_dir.mkdir(mode=0o700)

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        words = [str(installation.program), "--nodaemon", "--port", str(place.port)]
        # The parameter counts once it runs, the option until then.
        words += ["--base-dir", str(place.data_dir), "--log-level", options.get("syslog_level") or "WARN"]
        for name, value in options.items():
            words += ["--parameter", f"{name}={value}"]
        return words

    def clear_leftovers(self, place: Place) -> None:
        place.socket.unlink(missing_ok=True)

    def probe(self, place: Place) -> str:
        # Imported here: most commands look at the managed servers without asking one anything.
        import pymysql

        try:
            with self._connection(place) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT @@version, @@ob_tcp_invited_nodes")
                row = cursor.fetchone()
                if row is None or "seekdb" not in str(row[0]) or not place.socket.exists():
                    raise WrongAnswer(f"another server answers on port {place.port}")
                if row[1] != LOOPBACK:
                    # It cannot be told an address to listen on, but whom to let in.
                    cursor.execute("SET GLOBAL ob_tcp_invited_nodes = %s", (LOOPBACK,))
                cursor.execute("CREATE DATABASE IF NOT EXISTS dbdyno")
                return str(row[0])
        except (pymysql.MySQLError, OSError) as error:  # it opens its port before its schema is there
            raise NotReady(str(error)) from None

    def settle(self, place: Place, options: Options, dropped: Options) -> None:
        # It takes unknown parameters without a word, and keeps known ones in its data folder.
        with self._connection(place) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW PARAMETERS")
            columns = [column[0] for column in cursor.description]
            known = {row[columns.index("name")]: row for row in cursor.fetchall()}
            for name in options:
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else "SHOW PARAMETERS lists them"
                    raise RunError(f"seekdb has no parameter {name}; {hint}")
            for name in dropped:
                if known[name][columns.index("edit_level")] == "STATIC_EFFECTIVE":
                    raise UsageError(f"seekdb keeps {name} from its last start; give the value it shall have now")
                default = known[name][columns.index("default_value")]
                cursor.execute(f"ALTER SYSTEM SET {name} = %s", (default,))

    @staticmethod
    @contextlib.contextmanager
    def _connection(place: Place) -> Iterator[pymysql.Connection[pymysql.cursors.Cursor]]:
        import pymysql

        connection = pymysql.connect(
            host=LOOPBACK,
            port=place.port,
            user=SeekdbServer.user,
            connect_timeout=5,
            read_timeout=10,
            write_timeout=10,
            autocommit=True,
        )
        with contextlib.closing(connection):
            yield connection

    def socket(self, folder: Path, data_dir: Path, port: int) -> Path:
        socket = data_dir / "run" / "sql.sock"
        if len(os.fsencode(socket)) > SOCKET_PATH_MAX:
            # The server gets there by a relative path; clients need a short one.
            link = folder / "seekdb"
            link.unlink(missing_ok=True)
            link.symlink_to(socket.parent)
            socket = link / socket.name
        return socket

    def logs(self, place: Place) -> list[Path]:
        return [place.log, place.data_dir / "log" / "seekdb.log"]


KINDS: tuple[ServerKind, ...] = (SeekdbServer(),)
