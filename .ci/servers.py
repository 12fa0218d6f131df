"""servers.py smoke HOME: start and remove every kind of managed server, one after the other, and say how long it
took. servers.py remove HOME: stop and remove whatever runs there."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from dbdyno.model.errors import DbdynoError
from dbdyno.targets import managed


def smoke(home: Path) -> int:
    failed = 0
    for kind, there in managed.available().items():
        began = time.monotonic()
        try:
            if there.reason:
                raise DbdynoError(there.reason)
            server = managed.start(kind, home=home)
            print(f"{kind:<12} {server.version:<36} started in {time.monotonic() - began:.1f} s", flush=True)
            managed.remove(server.name, home=home)
        except DbdynoError as error:
            print(f"{kind:<12} FAILED: {error}", flush=True)
            failed = 1
    return failed


def remove(home: Path) -> int:
    for place in [home, *home.glob("gw*")]:  # the tests' workers have homes of their own
        for server in managed.listing(place):
            if server.running:
                print(f"still running, stopped now: {server.name} in {place}")
            managed.remove(server.name, home=place)
    return 0


if __name__ == "__main__":
    sys.exit({"smoke": smoke, "remove": remove}[sys.argv[1]](Path(sys.argv[2])))
