"""Small plans on SQLite files, and a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbdyno.model.plan import Plan
from dbdyno.record.store import Store


@pytest.fixture
def small_plan(tmp_path: Path) -> Callable[..., Plan]:
    """A plan of short trials on SQLite files in ``tmp_path``; keywords replace keys of it."""

    def make(**keys: Any) -> Plan:
        data: dict[str, Any] = {
            "name": "small",
            "connections": [1, 2],
            "duration": "0.2s",
            "interval": "0.05s",
            "target": [{"name": "a", "url": f"sqlite:///{tmp_path}/a.db?synchronous=off"}],
            "workload": [{"name": "oltp_point_select", "options": {"table_size": 100}}],
            **keys,
        }
        return Plan.model_validate({key: value for key, value in data.items() if value is not None})

    return make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store that is being written."""
    with Store.open(str(tmp_path / "store.db"), write=True) as opened:
        yield opened
