"""Databases and stores that are not as they should be: the exact sentence, the exit status, nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.command_line import CommandLine, Ended
from tests.servers.pool import Pool

from dbdyno.targets.target import open_target

BENCH = ("bench", "oltp_point_select")
SMALL = ("-n", "20", "--opt", "table_size=100")


def on_a_small_disk(dbdyno: CommandLine, size: str, *words: str, options: str = "") -> Ended:
    """Run the command where the folder ``disk`` is a file system of that size of its own."""
    unshare = shutil.which("unshare")
    mine = [unshare or "unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    works = subprocess.run([*mine, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    if unshare is None or works.returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system of his own")
    disk = dbdyno.folder / "disk"
    disk.mkdir(exist_ok=True)
    line = f'mount -t tmpfs -o size={size},mode=777 none "$0" && {options or "true"} && exec "$@"'
    done = subprocess.run(
        [*mine, "sh", "-c", line, str(disk), sys.executable, "-m", "dbdyno", *words],
        cwd=dbdyno.folder,
        env=dbdyno.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_a_full_disk_under_the_store(dbdyno: CommandLine) -> None:
    dbdyno.ok("prepare", "oltp_point_select", "sqlite:///a.db", "--opt", "table_size=100")
    words = (*BENCH, "sqlite:///a.db", "-d", "20s", "--interval", "10ms", "--opt", "table_size=100")
    end = on_a_small_disk(dbdyno, "200k", *words, "--store", "disk/s.db")
    assert end.status == 1
    assert "Traceback" not in end.stderr
    assert end.stderr.splitlines()[-1] == (
        "dbdyno: the store disk/s.db is full: there is no room left on its disk; make room and resume, "
        "nothing finished is lost"
    )


def test_a_full_disk_under_the_database(dbdyno: CommandLine) -> None:
    end = on_a_small_disk(dbdyno, "200k", "prepare", "oltp_point_select", "sqlite:///disk/a.db")
    assert end.status == 1
    assert "Traceback" not in end.stderr
    assert "full" in end.stderr.splitlines()[-1]


def test_a_read_only_store(dbdyno: CommandLine) -> None:
    end = on_a_small_disk(
        dbdyno,
        "1m",
        *(*BENCH, "sqlite:///a.db", *SMALL, "--store", "disk/s.db"),
        options='mount -o remount,ro "$0"',
    )
    assert end.status == 1
    assert end.stderr == ("dbdyno: the store disk/s.db is read-only; make it writable or choose another with --store\n")


def test_a_second_process_on_the_same_store(dbdyno: CommandLine) -> None:
    words = (*BENCH, "sqlite:///a.db", "--opt", "table_size=100", "--store", "s.db")
    first = dbdyno.start(*words, "-d", "60s")
    try:
        lock = dbdyno.folder / "s.db.lock"
        deadline = time.monotonic() + 60
        while not lock.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.2)
        second = dbdyno.run(*words, "-n", "10")
        assert second.status == 1
        assert second.stderr == (
            f"dbdyno: another dbdyno (process {first.pid}) is writing to the store {dbdyno.folder}/s.db; "
            "wait for it, or choose another store with --store\n"
        )
        assert dbdyno.run("list", "--store", "s.db").status == 0, "a reader is always welcome"
    finally:
        first.kill()
        first.communicate()


def test_an_unreadable_store(dbdyno: CommandLine) -> None:
    dbdyno.write("s.db", "not a database, but longer than a hundred bytes: " + "x" * 200)
    end = dbdyno.run("list", "--store", "s.db")
    assert (end.status, end.stderr) == (
        1,
        "dbdyno: the store s.db is not a SQLite database; choose another path with --store\n",
    )


def test_an_unknown_database(dbdyno: CommandLine, target_url: str) -> None:
    address = open_target(target_url).address
    if not address.endpoints:
        pytest.skip("a file has no databases")
    end = dbdyno.run(*BENCH, target_url.replace("/dbdyno", "/no_such_database"), *SMALL)
    assert end.status == 1
    assert "Traceback" not in end.stderr
    lines = end.stderr.splitlines()
    assert len(lines) == 1
    assert "no_such_database" in lines[0]
    assert "has no database 'no_such_database'; create it with: CREATE DATABASE" in lines[0]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(kind)) for kind in ("mariadb", "mysql", "seekdb")]
)
def test_a_wrong_password(dbdyno: CommandLine, kind: str, pool: Pool, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue(f"{kind}_url")
    control = open_target(url).control()
    try:
        control.execute("CREATE USER IF NOT EXISTS 'locked'@'%' IDENTIFIED BY 'the right one'")
    finally:
        control.close()
    wrong = url.replace("root@", "locked:the%20wrong%20one@")
    end = dbdyno.run(*BENCH, wrong, *SMALL)
    assert end.status == 1
    assert len(end.stderr.splitlines()) == 1
    assert "password" in end.stderr
    assert "locked" in end.stderr
    assert "wrong one" not in end.stderr
    assert "wrong%20one" not in end.stderr


def test_a_report_that_cannot_be_written_leaves_the_results(dbdyno: CommandLine) -> None:
    dbdyno.write("reports", "a file where a folder should be")
    dbdyno.write(
        "plan.toml",
        'name = "p"\nconnections = [1]\ntransactions = 10\n'
        '[[target]]\nname = "a"\nurl = "sqlite:///a.db"\n'
        '[[workload]]\nname = "oltp_point_select"\noptions = { table_size = 100 }\n',
    )
    end = dbdyno.run("run", "plan.toml")
    assert end.status == 1
    assert end.stderr.splitlines()[-1].endswith(
        "the results are in the store dbdyno.db, write the report elsewhere with: dbdyno report p-1 -o FOLDER"
    )
    assert Path(dbdyno.ok("report", "p-1", "-o", "elsewhere").stdout.splitlines()[0]) == Path("elsewhere/report.html")
