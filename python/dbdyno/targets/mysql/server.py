"""Servers of the MySQL protocol of our own: Oracle's ``mysqld`` and MariaDB's ``mariadbd``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import ClassVar

from dbdyno.model.errors import RunError
from dbdyno.targets.managed_kind import Installation, NotReady, Options, Place, ServerKind, WrongAnswer
from dbdyno.targets.managed_process import LOOPBACK, Record, run_step

#: Where a Debian with MySQL in it may have been unpacked, unless $DBDYNO_MYSQL_ROOT says another folder.
DEBIAN_TREE = Path("/var/cache/dbdyno/mysql")


def _says(words: list[str]) -> str | None:
    """What ``program --version`` prints, None if it cannot be run."""
    try:
        done = subprocess.run([*words, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _version(said: str) -> str:
    found = re.search(r"Ver\s+(\d+\.\d+\.\d+)", said) or re.search(r"(\d+\.\d+\.\d+)", said)
    return found.group(1) if found else "unknown"


def _program(name: str) -> Path | None:
    """An installed program; the folders of servers are not on an ordinary user's PATH."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/libexec:/usr/local/sbin")
    return Path(found) if found else None


def foreign_tree(program: Path) -> tuple[Path, tuple[str, ...]] | None:
    """For a program in a Debian tree that is not this system's: the tree and the words that run it with the
    tree's own loader and libraries, which needs neither root nor chroot. None for one of this system."""
    tree = program.parents[2] if len(program.parents) > 2 else Path("/")
    if tree == Path("/") or program.parent.parent.name != "usr":
        return None
    for loader in sorted([*tree.glob("lib64/ld-linux-*.so.*"), *tree.glob("lib/ld-linux-*.so.*")]):
        libraries = [str(path) for path in sorted(tree.glob("usr/lib/*-linux-gnu*"))]
        return tree, (str(loader), "--library-path", ":".join(libraries))
    return None


class _MysqlProtocolServer(ServerKind):
    family = "mysql"
    scheme = "mysql"
    user = "root"
    bare_options = True
    defaults: ClassVar[dict[str, str]] = {"innodb_buffer_pool_size": "512M", "max_connections": "500"}
    reserved = frozenset(
        {"port", "datadir", "bind_address", "socket", "pid_file", "basedir", "user", "daemonize", "init_file"}
        | {
            "defaults_file",
            "defaults_extra_file",
            "no_defaults",
            "log_error",
            "skip_networking",
            "skip_grant_tables",
        }
    )

    def _fixed(self, installation: Installation, data_dir: Path) -> list[str]:
        """Words common to initialising and running; they come first, as --no-defaults must."""
        words = [*installation.launcher, str(installation.program), "--no-defaults", f"--datadir={data_dir}"]
        if os.geteuid() == 0:
            words.append("--user=root")
        return words

    def clear_leftovers(self, place: Place) -> None:
        # The lock beside the socket names a pid, which another process may have by now.
        for path in (place.socket, place.socket.with_name(f"{place.socket.name}.lock")):
            path.unlink(missing_ok=True)

    def command(self, installation: Installation, place: Place, options: Options) -> list[str]:
        words = self._fixed(installation, place.data_dir)
        words += [
            f"--port={place.port}",
            f"--bind-address={LOOPBACK}",
            f"--socket={place.socket}",
            f"--pid-file={place.data_dir / 'server.pid'}",
        ]
        words += [f"--{name}" if value is None else f"--{name}={value}" for name, value in options.items()]
        return words

    def probe(self, place: Place) -> str:
        # Imported here: most commands look at the managed servers without asking one anything.
        import pymysql

        try:
            connection = pymysql.connect(
                host=LOOPBACK,
                port=place.port,
                user=self.user,
                connect_timeout=5,
                read_timeout=10,
                write_timeout=10,
                autocommit=True,
            )
        except (pymysql.MySQLError, OSError) as error:
            raise NotReady(str(error)) from None
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute("SELECT @@datadir, @@version")
            row = cursor.fetchone()
            if row is None or Path(row[0]) != place.data_dir:
                raise WrongAnswer(f"another server answers on port {place.port}")
            cursor.execute("CREATE DATABASE IF NOT EXISTS dbdyno")
            return str(row[1])


class MysqlServer(_MysqlProtocolServer):
    kind = "mysql"
    comes_from = (
        "an installed MySQL server, $DBDYNO_MYSQLD (the path of its mysqld), or a Debian tree with "
        f"mysql-server-core in $DBDYNO_MYSQL_ROOT or {DEBIAN_TREE}"
    )
    # Without the X protocol's second port; without SELECT … INTO OUTFILE, whose folder may be missing.
    defaults: ClassVar[dict[str, str]] = {
        **_MysqlProtocolServer.defaults,
        "mysqlx": "0",
        "secure_file_priv": "NULL",
    }

    def locate(self) -> Installation:
        named = os.environ.get("DBDYNO_MYSQLD")
        root = Path(os.environ.get("DBDYNO_MYSQL_ROOT") or DEBIAN_TREE)
        candidates = [Path(named)] if named else [root / "usr" / "sbin" / "mysqld", _program("mysqld")]
        for program in candidates:
            if program is None or not program.is_file():
                continue
            foreign = foreign_tree(program)
            launcher = foreign[1] if foreign else ()
            said = _says([*launcher, str(program)])
            if said is not None and "MariaDB" not in said:
                return Installation(self.kind, program, _version(said), launcher)
        where = f"{named} is not Oracle's mysqld" if named else "no MySQL server on this machine"
        raise RunError(f"{where}; it comes from {self.comes_from}")

    def _fixed(self, installation: Installation, data_dir: Path) -> list[str]:
        words = super()._fixed(installation, data_dir)
        foreign = foreign_tree(installation.program)
        if foreign is not None:
            usr = foreign[0] / "usr"
            words += [
                f"--basedir={usr}",
                f"--lc-messages-dir={usr / 'share' / 'mysql'}",
                f"--character-sets-dir={usr / 'share' / 'mysql' / 'charsets'}",
                f"--plugin-dir={usr / 'lib' / 'mysql' / 'plugin'}",
            ]
        return words

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        words = [*self._fixed(installation, data_dir), "--initialize-insecure"]
        run_step(words, log, installation.environment, "mysqld --initialize-insecure", log.parent, record)


class MariadbServer(_MysqlProtocolServer):
    kind = "mariadb"
    comes_from = "Debian's package mariadb-server, or any MariaDB with mariadbd and mariadb-install-db on PATH"

    def locate(self) -> Installation:
        program, install = _program("mariadbd"), _program("mariadb-install-db")
        said = _says([str(program)]) if program else None
        if program is None or install is None or said is None:
            raise RunError(f"no MariaDB server on this machine; it comes from {self.comes_from}")
        return Installation(self.kind, program, _version(said))

    def initialise(self, installation: Installation, data_dir: Path, log: Path, record: Record) -> None:
        words = [str(_program("mariadb-install-db")), "--no-defaults", f"--datadir={data_dir}"]
        words += ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        if os.geteuid() == 0:
            words.append("--user=root")
        run_step(words, log, installation.environment, "mariadb-install-db", log.parent, record)


KINDS: tuple[ServerKind, ...] = (MysqlServer(), MariadbServer())
