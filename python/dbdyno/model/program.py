"""A compiled workload: what the engine runs and a trial records."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Program:
    """``data`` is the serialised program (JSON, as ``dbdyno._engine.Program`` reads it); ``hash`` its sha256.

    The same source, options, capabilities and number of terminals give the same bytes.
    """

    name: str
    data: bytes = field(repr=False)
    hash: str

    @classmethod
    def of(cls, name: str, data: bytes) -> Program:
        """The program of these bytes."""
        return cls(name, data, hashlib.sha256(data).hexdigest())
