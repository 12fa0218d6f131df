"""All database families. Adding a database = one folder and one line here.

A family's folder is imported when it is first asked for: drivers take longer to import than most commands to run.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import cast

from dbdyno.model.errors import UsageError, nearest
from dbdyno.targets.family import Family

#: Folder and schemes of each family.
_SCHEMES: dict[str, tuple[str, ...]] = {
    "sqlite": ("sqlite",),
    "postgresql": ("postgresql", "postgres"),
    "mysql": ("mysql", "mariadb"),
    "oceanbase": ("oceanbase", "seekdb"),
    "tidb": ("tidb",),
}


class _Families(Mapping[str, Family]):
    """Families by name."""

    def __getitem__(self, name: str) -> Family:
        if name not in _SCHEMES:
            raise KeyError(name)
        return cast(Family, importlib.import_module(f"dbdyno.targets.{name}.family").FAMILY)

    def __iter__(self) -> Iterator[str]:
        return iter(_SCHEMES)

    def __len__(self) -> int:
        return len(_SCHEMES)


FAMILIES: Mapping[str, Family] = _Families()


def family_of_scheme(scheme: str) -> Family:
    """The family that a URL's scheme names.

    Raises:
        UsageError: no family has that scheme.
    """
    known = {word: name for name, words in _SCHEMES.items() for word in words}
    if scheme not in known:
        raise UsageError(f"unknown kind of database {scheme!r}{nearest(scheme, known)}")
    return FAMILIES[known[scheme]]
