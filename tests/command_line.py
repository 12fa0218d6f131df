"""Running the ``dbdyno`` command as a user does: a process of its own, in an empty folder with an empty home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Variables that may pass from the developer's environment; everything else is the test's own.
_KEPT = ("PATH", "LANG", "LD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.stdout)


@dataclass(frozen=True)
class CommandLine:
    """A folder to stand in, with a home folder beside it."""

    folder: Path
    home: Path

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a command."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "80",
            **(extra or {}),
        }

    def start(self, *words: str, env: Mapping[str, str] | None = None, **how: Any) -> subprocess.Popen[str]:
        """Start the command with its output in pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "dbdyno", *words],
            cwd=self.folder,
            env=self.environment(env),
            text=True,
            encoding="utf-8",
            stdin=how.pop("stdin", subprocess.DEVNULL),
            stdout=how.pop("stdout", subprocess.PIPE),
            stderr=how.pop("stderr", subprocess.PIPE),
            **how,
        )

    def run(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 120, **how: Any) -> Ended:
        """Run the command to its end."""
        process = self.start(*words, env=env, **how)
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return Ended(process.returncode, stdout or "", stderr or "")

    def ok(self, *words: str, env: Mapping[str, str] | None = None, timeout_s: float = 120) -> Ended:
        """Run the command and see that it succeeded."""
        ended = self.run(*words, env=env, timeout_s=timeout_s)
        assert ended.status == 0, f"dbdyno {' '.join(words)} ended with {ended.status}:\n{ended.stderr}"
        return ended

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path


def command_line(folder: Path) -> CommandLine:
    """A command line below ``folder`` (a test's temporary folder)."""
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    return CommandLine(work, home)


def joined(words: Sequence[str]) -> str:
    """The words as one would type them."""
    return " ".join(f"'{word}'" if " " in word else word for word in words)
