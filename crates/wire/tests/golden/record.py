"""Records the golden conversations of this folder from servers that run here.

    dbdyno server start mysql; python crates/wire/tests/golden/record.py mysql://root@127.0.0.1:PORT/dbdyno mysql-9.7

The bytes are the server's own; what they must mean is written down here by hand, next to the SQL that made them.
Accounts and their password exist on the recorded server alone: record from a throw-away one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

import record_mysql
import record_postgresql

HERE = Path(__file__).parent


def main() -> None:
    """Record one server."""
    if len(sys.argv) != 3:
        sys.exit("usage: record.py URL NAME, for example mysql://root@127.0.0.1:3306/dbdyno mysql-9.7")
    url, name = urlsplit(sys.argv[1]), sys.argv[2]
    address = (url.hostname or "127.0.0.1", url.port or 0)
    user, database = url.username or "root", url.path.strip("/")
    if url.scheme.startswith("postgres"):
        golden = record_postgresql.record(address, user, database)
    else:
        golden = record_mysql.record(address, user, database)
    path = HERE / f"{name}.json"
    path.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(golden['exchanges'])} exchanges, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
