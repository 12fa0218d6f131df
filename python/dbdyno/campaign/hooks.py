"""Hooks: the plan's own commands around the campaign and around every trial."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from dbdyno.drive import Stop
from dbdyno.model.errors import Interrupted, RunError
from dbdyno.model.masking import mask_passwords
from dbdyno.model.trial import Trial

_LAST_BYTES = 4096


def campaign_variables(campaign: str) -> dict[str, str]:
    """What a hook around the campaign finds in its environment."""
    return {"DBDYNO_CAMPAIGN": campaign}


def trial_variables(trial: Trial, address: str, state: str = "") -> dict[str, str]:
    """What a hook around a trial finds; the URL is without its password, the state only there afterwards."""
    found = {
        "DBDYNO_CAMPAIGN": trial.campaign,
        "DBDYNO_TRIAL": trial.id,
        "DBDYNO_TARGET": trial.target,
        "DBDYNO_WORKLOAD": trial.workload,
        "DBDYNO_CONNECTIONS": str(trial.connections),
        "DBDYNO_ROUND": str(trial.round),
        "DBDYNO_URL": address,
    }
    return {**found, "DBDYNO_STATE": state} if state else found


def run_hook(name: str, command: str | None, variables: Mapping[str, str], stop: Stop) -> None:
    """Run a hook by the shell and wait for it; its output is kept from the terminal.

    The first Ctrl-C does not reach it (what it changed may have to be changed back); the second ends it.

    Raises:
        RunError: it ended with a status other than 0; with the last line of its output.
        Interrupted: it was ended.
    """
    if command is None:
        return
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        try:
            status = _waited(process, stop)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if status != 0:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_BYTES))
            lines = [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]
            said = f": {mask_passwords(lines[-1])}" if lines else " and said nothing"
            ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise RunError(f"the hook {name} {ended}{said}")


def _waited(process: subprocess.Popen[bytes], stop: Stop) -> int:
    while True:
        try:
            return process.wait(0.1)
        except subprocess.TimeoutExpired:
            if stop.immediate:
                raise Interrupted("stopped while a hook ran") from None
