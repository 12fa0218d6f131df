"""The command line: one module a sub-command. Data goes to stdout, talk to stderr.

Exit status: 0 done; 1 the run or comparison failed its own terms; 2 the words were wrong; 130 interrupted,
results kept.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


class CtrlCError(KeyboardInterrupt):
    """Ctrl-C. Not KeyboardInterrupt itself: where that one passes through code run from a string (every dataclass
    that is being imported), Python ends the process by the signal, even if the exception is caught later."""


def main() -> int:
    """Entry point ``dbdyno``. Returns the exit status."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup and the like stay as they are
            signal.signal(signal.SIGINT, _raise)
        from dbdyno.cli.argv_secrets import hide_passwords

        words = hide_passwords()  # before anything slow is imported: until here the title shows what was typed
        from dbdyno.cli.app import run_words

        status = run_words(words)
        _ignore_ctrl_c()
    except KeyboardInterrupt:
        _ignore_ctrl_c()
        sys.stderr.write("dbdyno: interrupted\n")
        return 130
    return status


def _ignore_ctrl_c() -> None:
    """The status is settled: one more Ctrl-C while Python shuts down must not replace it by death from a signal."""
    if signal.getsignal(signal.SIGINT) is _raise:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _raise(_number: int, frame: FrameType | None) -> None:
    """End by an exception; in an import, whose callbacks print one and go on, at once: nothing is under way there."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"dbdyno: interrupted\n")
            os._exit(130)
        frame = frame.f_back
    raise CtrlCError
