"""Ctrl-C once: finish what must be kept. Twice: stop now. Three times: give up even that.

Signals arrive through a wake-up pipe that a thread reads, so that nothing is locked or printed inside a signal
handler (the main thread may hold the very lock at that moment).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

from dbdyno.cli import CtrlCError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

FINISHING = "finishing: what was measured is being kept; Ctrl-C again stops at once"
STOPPING = "stopping now"


class Stoppable(Protocol):
    """What can be asked to stop: the drive's Stop."""

    def request(self) -> None: ...

    def now(self) -> None: ...


class Presses:
    """How often the user (or the system) asked."""

    def __init__(self, stop: Stoppable, say: Callable[[str], None]) -> None:
        self._stop, self._say = stop, say
        self.count = 0

    def press(self) -> None:
        """One more request to stop."""
        self.count += 1
        if self.count == 1:
            self._stop.request()
            self._say(FINISHING)
        elif self.count == 2:
            self._stop.now()
            self._say(STOPPING)


@contextmanager
def stopping(stop: Stoppable, say: Callable[[str], None]) -> Iterator[Presses]:
    """Within the block, SIGINT, SIGTERM and SIGHUP ask ``stop``; a third one raises KeyboardInterrupt.

    Outside of the main thread (a program that embeds dbdyno) signals are left alone.
    """
    presses = Presses(stop, say)
    if threading.current_thread() is not threading.main_thread():
        yield presses
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def watch() -> None:
        while True:
            received = os.read(reading, 64)
            if not received or 0 in received:
                return
            for number in received:
                if number in _SIGNALS:
                    presses.press()

    arrived = 0

    def handler(_number: int, _frame: FrameType | None) -> None:
        nonlocal arrived  # the wake-up pipe told the thread already
        arrived += 1
        if arrived > 2:
            raise CtrlCError

    watcher = threading.Thread(target=watch, name="dbdyno-signals", daemon=True)
    watcher.start()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    ignored = {number for number, was in before.items() if was == signal.SIG_IGN}  # nohup stays nohup
    try:
        for number in before:
            if number not in ignored:
                signal.signal(number, handler)
        yield presses
    finally:
        for number, was in before.items():
            if number not in ignored:
                signal.signal(number, was)
        signal.set_wakeup_fd(before_fd)
        with suppress(OSError):
            os.write(writing, b"\0")
        watcher.join(timeout=2)
        os.close(writing)
        os.close(reading)
