"""Signals: one asks to finish, two to stop, three end it whatever happens."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from dbdyno.cli.interrupt import FINISHING, STOPPING, stopping
from dbdyno.drive.job import Stop


def _until(condition: object, timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_to_finish_and_the_second_stops(number: signal.Signals) -> None:
    stop, said = Stop(), list[str]()
    with stopping(stop, said.append):
        os.kill(os.getpid(), number)
        _until(lambda: stop.requested)
        assert not stop.immediate
        os.kill(os.getpid(), number)
        _until(lambda: stop.immediate)
        _until(lambda: len(said) == 2)
    assert said == [FINISHING, STOPPING]


def test_a_third_ctrl_c_ends_what_does_not_stop() -> None:
    with stopping(Stop(), lambda _text: None):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        with pytest.raises(KeyboardInterrupt):
            _ctrl_c_and_wait()


def _ctrl_c_and_wait() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


def test_a_main_thread_that_holds_the_very_lock_is_not_deadlocked() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock, self.requested = threading.Lock(), False

        def request(self) -> None:
            with self.lock:
                self.requested = True

        now = request

    stop = Locked()
    with stopping(stop, lambda _text: None):
        with stop.lock:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)  # a handler that took the lock here would wait for ever
            assert not stop.requested
        _until(lambda: stop.requested)


def test_afterwards_ctrl_c_is_pythons_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping(Stop(), lambda _text: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
