"""Driver exceptions during load, check and clean-up become one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbdyno.model.errors import DbdynoError, RunError
from dbdyno.targets.target import Target


def from_driver(error: BaseException) -> bool:
    """Whether a DB-API driver raised it: PEP 249 calls the base of all driver exceptions ``Error``."""
    return any(base.__name__ == "Error" for base in type(error).__mro__)


@contextmanager
def told(target: Target, doing: str) -> Iterator[None]:
    """Inside, a driver's exception becomes ``RunError("cannot DOING on LABEL: message (code)")``."""
    try:
        yield
    except DbdynoError:
        raise
    except Exception as error:
        if not from_driver(error):
            raise
        understood = target.family.classify(error)
        code = f" ({understood.code})" if understood.code else ""
        raise RunError(f"cannot {doing} on {target.label}: {understood.message}{code}") from error
