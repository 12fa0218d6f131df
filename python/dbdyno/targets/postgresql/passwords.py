"""PostgreSQL's own places for passwords: $PGPASSWORD, and ``.pgpass`` (manual, "The Password File")."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from dbdyno.targets.url import Address

#: host:port:database:user:password; ``\\`` escapes a colon in the first four.
_LINE = re.compile(r"((?:\\.|[^:\\])*):" * 4 + r"(.*)")


def find(address: Address, home: Path) -> str | None:
    """The password for the address's first endpoint. As libpq does, a file that others may read is ignored."""
    if "PGPASSWORD" in os.environ:
        return os.environ["PGPASSWORD"]
    path = Path(os.environ.get("PGPASSFILE") or home / ".pgpass")
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) or mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    where = address.endpoints[0]
    hosts = {"*", "localhost", where.socket} if where.socket else {"*", where.host}
    for line in lines:
        match = None if line.startswith("#") else _LINE.fullmatch(line)
        if match is None:
            continue
        host, port, database, user, password = (re.sub(r"\\(.)", r"\1", field) for field in match.groups())
        if (
            host in hosts
            and port in ("*", str(where.port))
            and database in ("*", address.database or address.user)
            and user in ("*", address.user)
        ):
            return password
    return None
