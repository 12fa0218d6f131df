"""One writing process for each store file: a lock on a file beside the database.

The kernel drops the lock with the process, so that a killed writer never blocks the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from dbdyno.model.errors import RunError


class WriterLock:
    """Held from construction to :meth:`release`. The file holds the pid, for the other one's sentence."""

    def __init__(self, database: Path) -> None:
        """Take the lock of that database.

        Raises:
            RunError: another process has it, or the folder cannot be written to.
        """
        self._path = database.with_name(database.name + ".lock")
        self._file = self._take(database)

    def _take(self, database: Path) -> int:
        while True:
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise RunError(
                    f"the store {database} cannot be written: its lock {self._path.name} cannot be made"
                    f" ({error.strerror}); choose a store in a folder that is yours with --store"
                ) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pid = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
                os.close(file)
                raise RunError(
                    f"another dbdyno (process {pid}) is writing to the store {database};"
                    " wait for it, or choose another store with --store"
                ) from None
            if self._is_still_there(file):
                os.ftruncate(file, 0)
                # A full disk keeps us from saying who we are, not from having the lock.
                with contextlib.suppress(OSError):
                    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
                return file
            os.close(file)  # its holder removed it between our open and our lock

    def _is_still_there(self, file: int) -> bool:
        try:
            return os.fstat(file).st_ino == os.stat(self._path).st_ino
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let the next one in, and leave no file behind."""
        if self._file >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._file)
            self._file = -1
