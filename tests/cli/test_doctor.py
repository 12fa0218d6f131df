"""``dbdyno doctor``: a trap that is set is found, and the command that is printed, executed as it stands, mends it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from tests.command_line import CommandLine, Ended
from tests.servers.pool import Pool

from dbdyno.targets import managed
from dbdyno.targets.managed import ManagedServer

PASSWORD = "Zx9-q4w-unmistakable"
Finding = dict[str, Any]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Servers with settings of their own."""
    folder = tmp_path / "servers-home"
    yield folder
    for server in managed.listing(folder):
        managed.remove(server.name, home=folder)


def doctor(dbdyno: CommandLine, home: Path, *words: str) -> tuple[Ended, dict[str, Finding]]:
    """How it ended, and its findings by name."""
    ended = dbdyno.run("doctor", *words, "--json", env={"DBDYNO_HOME": str(home)})
    assert ended.status in (0, 1), ended.stderr
    found = {each["what"]: each for each in ended.json["findings"]}
    assert ended.status == any(each["verdict"] == "bad" for each in found.values())
    return ended, found


def sql(server: ManagedServer, text: str) -> None:
    """Run statements as somebody who pastes them would, one after the other."""
    for statement in filter(None, (part.strip() for part in text.split(";"))):
        if server.family == "postgresql":
            with psycopg.connect(server.url, autocommit=True) as pg:
                pg.execute(statement.encode())
        else:
            with (
                closing(pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True)) as raw,
                raw.cursor() as cursor,
            ):
                cursor.execute(statement)


def shell(dbdyno: CommandLine, home: Path, command: str) -> None:
    """Run a command as printed, with ``dbdyno`` on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = dbdyno.environment({"DBDYNO_HOME": str(home), "PATH": path})
    subprocess.run(["bash", "-c", command], env=environment, check=True, capture_output=True, timeout=100)


def mend(dbdyno: CommandLine, home: Path, server: ManagedServer, finding: Finding) -> None:
    """Do what a finding says."""
    assert finding["mend"], finding
    if finding["mend_in"] == "SQL":
        sql(server, finding["mend"])
    else:
        assert finding["mend_in"] == "the shell"
        shell(dbdyno, home, finding["mend"])


@pytest.mark.needs("mariadb")
def test_limits_and_query_cache_are_found_and_mended_as_printed(dbdyno: CommandLine, home: Path) -> None:
    traps = {
        "max_connections": "10",
        "query_cache_type": "1",
        "query_cache_size": "1M",
        "max_prepared_stmt_count": "16",
        "general_log": "1",
        "innodb-io-capacity": "333",
    }
    server = managed.start("mariadb", "trapped", traps, home=home)
    words = ("trapped", "-w", "oltp_read_write", "--opt", "tables=4", "-c", "1,64")
    _, found = doctor(dbdyno, home, *words)
    names = ("connections", "prepared statements", "query cache", "statement logs")
    assert {name: found[name]["verdict"] for name in names} == dict.fromkeys(names, "bad")
    assert found["prepared statements"]["needed"] == "2,304: 64 connections × 36 texts"
    assert found["redo log"]["verdict"] == "warn"

    # The run itself says so before it begins; it runs all the same.
    small = ("bench", "oltp_read_write", "trapped", "-c", "4", "-n", "8", "--opt", "table_size=100")
    said = dbdyno.ok(*small, env={"DBDYNO_HOME": str(home)}).stderr
    assert "note: trapped: prepared statements: max_prepared_stmt_count = 16" in said
    assert "note: trapped: query cache" in said
    assert "note: trapped: connections" not in said

    for name in names:
        mend(dbdyno, home, server, found[name])
    assert "note: trapped" not in dbdyno.ok(*small, env={"DBDYNO_HOME": str(home)}).stderr
    # A restart that mends one thing takes back nothing that was mended without, and nothing that the user set.
    mend(dbdyno, home, server, found["redo log"])
    _, found = doctor(dbdyno, home, *words)
    assert {name: found[name]["verdict"] for name in names} == dict.fromkeys(names, "ok")
    assert found["redo log"]["verdict"] == "ok"
    again = managed.find("trapped", home=home)
    assert again is not None
    assert again.options["innodb-io-capacity"] == "333"


def test_an_ordinary_users_limit_is_found_and_the_password_is_in_no_word(
    dbdyno: CommandLine, home: Path, pool: Pool, mariadb_url: str
) -> None:
    server = pool.server("mariadb")
    sql(server, f"CREATE OR REPLACE USER bench@'127.0.0.1' IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS 5")
    sql(server, "GRANT ALL ON dbdyno.* TO bench@'127.0.0.1'")
    url = f"mysql://bench:{PASSWORD}@127.0.0.1:{server.port}/dbdyno"
    ended, found = doctor(dbdyno, home, url, "-c", "16", "-w", "oltp_read_write")
    text = dbdyno.run("doctor", url, "-c", "16", env={"DBDYNO_HOME": str(home)})
    assert PASSWORD not in ended.stdout + ended.stderr + text.stdout + text.stderr
    assert found["user's connections"]["verdict"] == "bad"
    mend(dbdyno, home, server, found["user's connections"])
    _, found = doctor(dbdyno, home, url, "-c", "16")
    assert "user's connections" not in found


@pytest.mark.needs("postgresql")
def test_each_place_of_a_setting_is_mended_where_it_was_made(dbdyno: CommandLine, home: Path) -> None:
    server = managed.start("postgresql", "trapped", {"max_connections": "20"}, home=home)
    sql(server, "ALTER SYSTEM SET log_statement = 'all'; ALTER SYSTEM SET autovacuum = off; SELECT pg_reload_conf()")
    sql(server, "ALTER DATABASE dbdyno SET statement_timeout = 100; ALTER ROLE dbdyno SET log_duration = on")
    words = ("trapped", "-w", "tpcb_like", "-c", "64")
    ended, found = doctor(dbdyno, home, *words)
    verdicts = [(each["verdict"], each["found"]) for each in ended.json["findings"] if each["what"] == "statement logs"]
    assert verdicts == [("bad", "log_statement = all"), ("bad", "log_duration = on")]
    names = ("connections", "autovacuum", "time-outs")
    assert [found[name]["verdict"] for name in names] == ["bad", "warn", "warn"]
    for finding in ended.json["findings"]:
        if finding["what"] in (*names, "statement logs"):
            mend(dbdyno, home, server, finding)
    _, found = doctor(dbdyno, home, *words)
    assert (
        found["connections"]["verdict"] == found["autovacuum"]["verdict"] == found["statement logs"]["verdict"] == "ok"
    )
    assert "time-outs" not in found


def test_a_role_with_few_connections_is_found_and_mended(
    dbdyno: CommandLine, home: Path, pool: Pool, postgresql_url: str
) -> None:
    server = pool.server("postgresql")
    sql(server, 'DROP ROLE IF EXISTS "Bench"')
    sql(server, 'CREATE ROLE "Bench" LOGIN CONNECTION LIMIT 3')
    url = f"postgresql://Bench@127.0.0.1:{server.port}/dbdyno"
    _, found = doctor(dbdyno, home, url, "-c", "16")
    assert found["role's connections"]["verdict"] == "bad"
    mend(dbdyno, home, server, found["role's connections"])
    _, found = doctor(dbdyno, home, url, "-c", "16")
    assert "role's connections" not in found


def test_too_few_open_files_are_found_and_mended_in_the_same_shell(dbdyno: CommandLine) -> None:
    command = [sys.executable, "-m", "dbdyno", "doctor", "sqlite:///a.db", "-c", "100"]
    script = f"""
        ulimit -Sn 128
        {" ".join(command)} > before.txt
        grep -A4 "^bad   client's open files:" before.txt
        eval "$(grep 'ulimit -n [0-9]*$' before.txt)"
        {" ".join(command)} > after.txt
        grep "client's open files  " after.txt
    """
    done = subprocess.run(
        ["bash", "-c", script], cwd=dbdyno.folder, env=dbdyno.environment(), capture_output=True, text=True, timeout=60
    )
    *before, after = done.stdout.splitlines()
    assert "too many open files" in " ".join(before), done.stderr
    assert after.startswith("ok "), done.stdout


def test_a_busy_machine_is_said(dbdyno: CommandLine, home: Path) -> None:
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(len(os.sched_getaffinity(0)))
    ]
    try:
        _, found = doctor(dbdyno, home, "sqlite:///a.db")
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert found["CPU"]["verdict"] == "bad"
    assert "others' work" in found["CPU"]["found"]


def test_text_and_json_say_the_same(dbdyno: CommandLine, home: Path) -> None:
    ended, _ = doctor(dbdyno, home, "sqlite:///a.db", "-w", "oltp_read_write", "-c", "8")
    text = dbdyno.run("doctor", "sqlite:///a.db", "-w", "oltp_read_write", "-c", "8").stdout
    for finding in ended.json["findings"]:
        if finding["what"] in ("writers", "isolation", "durability", "client's open files"):
            for part in ("verdict", "what", "found", "needed", "mend"):
                assert (finding[part] or "") in text
            assert (finding["why"] or "") in " ".join(text.split())
