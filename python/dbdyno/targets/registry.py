"""All database families. Adding a database = one folder and one line here."""

from __future__ import annotations

from dbdyno.model.errors import UsageError, nearest
from dbdyno.targets.family import Family
from dbdyno.targets.mysql import FAMILY as MYSQL
from dbdyno.targets.oceanbase import FAMILY as OCEANBASE
from dbdyno.targets.postgresql import FAMILY as POSTGRESQL
from dbdyno.targets.sqlite import FAMILY as SQLITE
from dbdyno.targets.tidb import FAMILY as TIDB

_ALL: tuple[Family, ...] = (SQLITE, POSTGRESQL, MYSQL, OCEANBASE, TIDB)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}


def family_of_scheme(scheme: str) -> Family:
    """The family that a URL's scheme names.

    Raises:
        UsageError: no family has that scheme.
    """
    known = {name: family for family in FAMILIES.values() for name in family.schemes}
    if scheme not in known:
        raise UsageError(f"unknown kind of database {scheme!r}{nearest(scheme, known)}")
    return known[scheme]
