"""The command under test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import CommandLine, command_line


@pytest.fixture
def dbdyno(tmp_path: Path) -> CommandLine:
    """The ``dbdyno`` command in an empty folder, with an empty home."""
    return command_line(tmp_path)
