"""The MySQL family's own places for passwords: $MYSQL_PWD and ``~/.my.cnf`` (manual, "Using Option Files")."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from dbdyno.targets.url import Address

#: Groups that the clients read, in the order of the manuals of MySQL and MariaDB.
GROUPS = ("client", "client-server", "client-mariadb", "mysql")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "\\": "\\", "s": " "}
_OPTION = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)\s*(?:=\s*(.*))?", re.ASCII)


def find(address: Address, home: Path) -> str | None:
    """The password for the address. A file that names a user, host, port or socket speaks for that one only.

    As the clients do, a file that everybody may write to is ignored.
    """
    if "MYSQL_PWD" in os.environ:
        return os.environ["MYSQL_PWD"]
    path = home / ".my.cnf"
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or mode & stat.S_IWOTH:
            return None
        options = read(path.read_text(errors="replace"))
    except OSError:
        return None
    where = address.endpoints[0]
    named = {
        "user": address.user,
        "host": where.host if where.host != "localhost" else "127.0.0.1",
        "port": str(where.port),
    }
    if where.socket:
        named = {"user": address.user, "socket": where.socket}
    for key, wanted in named.items():
        given = options.get(key)
        if key == "host" and given == "localhost":
            given = "127.0.0.1"
        if given is not None and wanted and given != wanted:
            return None
    return options.get("password")


def read(text: str) -> dict[str, str]:
    """Options of the clients' groups, later lines winning; names with ``-`` for ``_``."""
    options: dict[str, str] = {}
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;!":
            continue
        if line.startswith("["):
            group = line.strip("[]").strip().lower()
            continue
        match = _OPTION.fullmatch(line)
        if match and group in GROUPS:
            options[match[1].lower().replace("_", "-")] = _value(match[2] or "")
    return options


def _value(text: str) -> str:
    if text[:1] in ("'", '"') and (end := text.find(text[0], 1)) > 0:
        text = text[1:end]
    else:
        text = text.partition("#")[0].rstrip()  # a comment may begin within a line
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text)
