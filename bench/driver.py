"""One run of the load engine in a process of its own, told line by line: what the benchmark measures as dbdyno.

Standard output has JSON lines: ``{"ready": true}`` when everything is loaded and no connection is open yet, one line
for each sample (``queries`` and ``committed`` in it, ``connected`` at its end), one with the outcome.
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import sys
import threading
from types import FrameType
from typing import Any

from dbdyno.drive import EngineDrive, Job, Stop
from dbdyno.model.errors import DbdynoError
from dbdyno.model.sample import Sample
from dbdyno.model.trial import Load
from dbdyno.targets.target import open_target
from dbdyno.workload.source import load_workload


def say(entry: dict[str, Any]) -> None:
    """One line, at once."""
    print(json.dumps(entry), flush=True)


def on_sample(sample: Sample) -> None:
    """A sample as a line."""
    say(
        {
            "second": sample.second,
            "seconds": sample.seconds,
            "queries": sample.counts.queries,
            "committed": sample.counts.committed,
            "connected": sample.connected,
        }
    )


def main() -> None:
    """Run the job that the words ask for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("url")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--transactions", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds of a sample")
    parser.add_argument("--arrivals", default="poisson")
    parser.add_argument("--opt", action="append", default=[])
    arguments = parser.parse_args()
    target = open_target(arguments.url)
    options = dict(option.split("=", 1) for option in arguments.opt)
    load = Load(
        connections=arguments.connections,
        duration_s=arguments.seconds,
        transactions=arguments.transactions,
        interval_s=arguments.interval,
        rate=arguments.rate,
        arrivals=arguments.arrivals,
    )
    stop = Stop()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.now()

    signal.signal(signal.SIGTERM, end)
    try:
        job = Job(target, load_workload(arguments.workload, options), load, target.capabilities())
        say({"ready": True, "threads": threading.active_count()})
        outcome = EngineDrive().run(job, on_sample, stop)
    except DbdynoError as error:
        sys.exit(f"driver: {error}")
    say(
        {
            "state": outcome.state,
            "reason": outcome.reason,
            "seconds": outcome.seconds,
            "scheduled": outcome.counts.scheduled,
            "committed": outcome.counts.committed,
            "unfinished": outcome.counts.unfinished,
            "queries": outcome.counts.queries,
            "errors": dict(outcome.errors),
            "response": base64.b64encode(outcome.response).decode(),
            "service": base64.b64encode(outcome.service).decode(),
            "lag": base64.b64encode(outcome.lag).decode(),
        }
    )


if __name__ == "__main__":
    main()
