"""A further database is one folder: no other code knows any database by name."""

from __future__ import annotations

import re
from pathlib import Path

import dbdyno

#: As a word of its own: option names (mysql_storage_engine) and drivers (pymysql) are something else.
_NAMES = re.compile(
    r"\b(mysql|mariadb|percona|greatsql|tdsql|oceanbase|seekdb|tidb|postgres|postgresql)\b", re.IGNORECASE
)
_MAY = ("targets", "compat", "audit")


def test_no_database_family_is_named_outside_its_folder() -> None:
    package = Path(dbdyno.__file__).parent
    found = [
        f"{path.relative_to(package)}:{number}: {line.strip()}"
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in _MAY
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _NAMES.search(line)
    ]
    assert found == []
