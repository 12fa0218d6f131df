"""Families without their server: products told apart, errors understood, SQL written, passwords found, secrets kept."""

from __future__ import annotations

import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import psycopg
import pymysql
import pytest
from tests.fake import FakeServer

from dbdyno.targets.family import ErrorClass
from dbdyno.targets.mysql import facts as mysql_facts
from dbdyno.targets.mysql import passwords as mysql_passwords
from dbdyno.targets.mysql.values import ENCODERS, ENCODERS_WITHOUT_BACKSLASHES, bind
from dbdyno.targets.oceanbase import facts as oceanbase_facts
from dbdyno.targets.postgresql import facts as postgresql_facts
from dbdyno.targets.postgresql import passwords as postgresql_passwords
from dbdyno.targets.postgresql.connect import numbered
from dbdyno.targets.registry import FAMILIES
from dbdyno.targets.settings import kept
from dbdyno.targets.sqlite import facts as sqlite_facts
from dbdyno.targets.target import open_target
from dbdyno.workload.table import BIGINT, INT, Column, ForeignKey, Index, Table, char

RETRYABLE, IGNORABLE, LOST, FATAL = (
    ErrorClass.RETRYABLE,
    ErrorClass.IGNORABLE,
    ErrorClass.LOST,
    ErrorClass.FATAL,
)

# version, version_comment, another variable; the product, its number
PRODUCTS = [
    ("5.7.44-log", "MySQL Community Server (GPL)", "innodb_locks_unsafe_for_binlog", "mysql", (5, 7, 44)),
    ("8.0.36", "MySQL Community Server - GPL", "", "mysql", (8, 0, 36)),
    ("8.4.3", "MySQL Enterprise Server - Commercial", "", "mysql", (8, 4, 3)),
    ("9.7.4-2", "(Debian)", "", "mysql", (9, 7, 4)),
    ("8.0.99-house", "Source distribution", "", "mysql", (8, 0, 99)),
    ("10.11.19-MariaDB-0+deb12u1", "Debian 12", "aria_block_size", "mariadb", (10, 11, 19)),
    ("5.5.5-10.6.12-MariaDB", "mariadb.org binary distribution", "", "mariadb", (10, 6, 12)),
    ("11.4.2", "behind a proxy", "aria_block_size", "mariadb", (11, 4, 2)),
    ("8.0.35-27", "Percona Server (GPL), Release 27, Revision 2f8eeab2", "", "percona", (8, 0, 35)),
    ("8.4.4-4", "GreatSQL (GPL), Release 4, Revision d73de75905d", "", "greatsql", (8, 4, 4)),
    ("8.0.32-26", "GreatSQL, Release 26, Revision 444164cf324", "", "greatsql", (8, 0, 32)),
    ("8.0.33-v24-txsql-22.6.2-20240930", "Source distribution", "", "tdsql", (8, 0, 33)),
    ("8.0.26", "Source distribution", "tdstore_version", "tdstore", (8, 0, 26)),
    ("8.0.28", "Source distribution", "aurora_version", "aurora", (8, 0, 28)),
    ("8.0.11-TiDB-v7.5.1", "TiDB Server (Apache License 2.0) Community Edition", "", "tidb", (7, 5, 1)),
    ("5.7.25-TiDB-v6.1.0-alpha", "TiDB Server", "", "tidb", (6, 1, 0)),
    ("5.7.25-OceanBase_CE-v4.2.1.8", "OceanBase_CE 4.2.1.8 (r108000) (Built x)", "", "oceanbase", (4, 2, 1, 8)),
    ("5.7.25-OceanBase seekdb-v1.4.0.0", "OceanBase 4.3.5.3 seekdb (r1.4.0.0)", "", "seekdb", (1, 4, 0, 0)),
    ("5.6.25", "OceanBase 4.1.0.0 (r1000)", "ob_query_timeout", "oceanbase", (4, 1, 0, 0)),
]


@pytest.mark.parametrize(("version", "comment", "variable", "flavour", "number"), PRODUCTS)
def test_products_of_the_mysql_protocol_are_told_apart(
    version: str, comment: str, variable: str, flavour: str, number: tuple[int, ...]
) -> None:
    found = mysql_facts.tell_apart(
        {"version": version, "version_comment": comment, **({variable: "1"} if variable else {})}
    )
    assert (found.flavour, found.number, found.text, found.comment) == (flavour, number, version, comment)


@pytest.mark.parametrize(
    ("scheme", "version", "comment", "flavour"),
    [
        ("mysql", "8.4.4-4", "GreatSQL (GPL), Release 4, Revision d73de75905d", "greatsql"),
        ("mysql", "8.0.33-v24-txsql-22.6.2-20240930", "Source distribution", "tdsql"),
        ("tidb", "8.0.11-TiDB-v7.5.1", "TiDB Server", "tidb"),
        ("mysql", "8.0.11-TiDB-v7.5.1", "TiDB Server", "tidb"),
        ("oceanbase", "5.7.25-OceanBase_CE-v4.2.1.8", "OceanBase_CE 4.2.1.8", "oceanbase"),
    ],
)
def test_a_server_that_calls_itself_so_is_described_over_the_wire(
    scheme: str, version: str, comment: str, flavour: str
) -> None:
    variables = {
        "version": version,
        "version_comment": comment,
        "transaction_isolation": "READ-COMMITTED",
        "innodb_flush_log_at_trx_commit": "1",
        "sync_binlog": "0",
        "log_bin": "ON",
        "report_password": "geheim",
    }
    rules = [
        {
            "match": "SHOW GLOBAL VARIABLES",
            "columns": [{"name": "n", "type": "text"}, {"name": "v", "type": "text"}],
            "rows": [list(pair) for pair in variables.items()],
        },
        {"match": "SHOW PARAMETERS", "error": {"code": 1227, "message": "not granted"}},
        {"match": "innodb_", "error": {"code": 1109, "message": "Unknown table"}},
        {"match": "TABLE_SPACE_USAGE", "error": {"code": 1146, "message": "no such table"}},
        {"match": "SELECT SUM", "columns": [{"name": "s", "type": "int"}], "rows": [[4096]]},
    ]
    with FakeServer("mysql", rules=rules, server_version=version) as server:
        target = open_target(f"{scheme}://{server.user}@127.0.0.1:{server.port}/{server.database}")
        found, capabilities, facts = target.describe()
    assert (found.family, found.flavour) == (scheme, flavour)
    assert facts.version == found
    assert facts.isolation == "read committed"
    assert facts.database_bytes == 4096
    assert "report_password" not in facts.settings
    if flavour in ("greatsql", "tdsql"):
        assert facts.durable_commit is False  # the binary log is not synced
    if flavour == "tidb":  # whatever InnoDB's variables say there
        assert facts.durable_commit is None
    assert capabilities.storage_engines == (scheme == "mysql")


@pytest.mark.parametrize(
    ("scheme", "user", "command"),
    [
        ("mysql", "root", "KILL QUERY"),
        ("oceanbase", "root@tenant#cluster", "KILL QUERY"),
        ("tidb", "root", "KILL TIDB QUERY"),
    ],
)
def test_cancelling_says_the_familys_own_word_from_another_connection(scheme: str, user: str, command: str) -> None:
    """On TiDB behind a balancer a plain KILL may end somebody else's statement."""
    with FakeServer("mysql", rules=[{"match": "SELECT SLEEP", "delay_ms": 1500}]) as server:
        connection = open_target(f"{scheme}://{user}@127.0.0.1:{server.port}/fake").connect()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(connection.fetch, "SELECT SLEEP(1)")
            time.sleep(0.3)
            connection.cancel()
            running.result(timeout=10)
        number = connection.raw.thread_id()  # type: ignore[attr-defined]
        connection.close()
        kills = [entry for entry in server.recorded() if entry.sql.startswith("KILL")]
    assert [(entry.conn, entry.sql) for entry in kills] == [(2, f"{command} {number}")]


def test_a_connection_that_nobody_can_cancel_is_cut() -> None:
    """The server answers no second login: the wait ends all the same."""
    with FakeServer(
        "mysql",
        rules=[{"match": "SELECT SLEEP", "fault": "silence"}],
        connect={"fault": "silence", "nth": 2},
    ) as server:
        target = open_target(f"mysql://u@127.0.0.1:{server.port}/fake")
        connection = target.connect()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(connection.fetch, "SELECT SLEEP(1)")
            time.sleep(0.3)
            connection.cancel()
            error = running.exception(timeout=10)
        connection.close()
    assert error is not None
    assert target.family.classify(error).kind is LOST


@pytest.mark.parametrize("protocol", ["mysql", "postgresql"])
@pytest.mark.parametrize("fault", ["reset", "half_packet", "garbage"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_broken_answer_loses_the_connection_and_no_more(
    protocol: Literal["mysql", "postgresql"], fault: str, nth: int
) -> None:
    with FakeServer(protocol, rules=[{"match": "SELECT broken", "fault": fault, "nth": nth}]) as server:
        target = open_target(server.url)
        connection = target.connect()
        if nth == 2:  # prepared by then
            connection.fetch("SELECT broken")
        with pytest.raises((pymysql.err.Error, psycopg.Error)) as caught:
            connection.fetch("SELECT broken")
        assert target.family.classify(caught.value).kind is LOST
        with pytest.raises((pymysql.err.Error, psycopg.Error)) as caught:
            connection.fetch("SELECT 1")
        assert target.family.classify(caught.value).kind is LOST
        connection.close()


def test_a_pooler_that_takes_no_options_is_told_by_statements() -> None:
    refused = {"code": "08P01", "message": "unsupported startup parameter: options"}
    with FakeServer("postgresql", connect={"fault": "error", "error": refused, "nth": 1}) as server:
        open_target(server.url).connect(isolation="repeatable read").close()
        assert server.statements() == [
            "SET TimeZone = 'UTC'",
            "SET DateStyle = 'ISO'",
            "SET default_transaction_isolation = 'repeatable read'",
        ]


@pytest.mark.parametrize(
    ("banner", "flavour"),
    [
        ("PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc", "postgresql"),
        ("PostgreSQL 16.4 (Debian 16.4-1)", "postgresql"),
        ("CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)", "cockroachdb"),
        ("PostgreSQL 11.2-YB-2.19.3.0-b0 on x86_64", "yugabytedb"),
        ("PostgreSQL 9.2.4 (openGauss 5.0.0 build a07d57c3)", "opengauss"),
    ],
)
def test_products_of_the_postgresql_protocol_are_told_apart(banner: str, flavour: str) -> None:
    assert postgresql_facts.tell_apart("16.4", banner).flavour == flavour
    assert postgresql_facts.tell_apart("16.4 (Debian 16.4-1)", banner).number == (16, 4)
    assert postgresql_facts.tell_apart("19devel", banner).number == (19,)


# -- durability


@pytest.mark.parametrize(
    ("settings", "durable"),
    [
        ({"innodb_flush_log_at_trx_commit": "1", "log_bin": "OFF", "sync_binlog": "0"}, True),
        ({"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}, True),
        ({"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "0"}, False),
        ({"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF", "sync_binlog": "1"}, False),
        ({"innodb_flush_log_at_trx_commit": "0", "log_bin": "ON", "sync_binlog": "1"}, False),
        ({"innodb_flush_log_at_trx_commit": "3", "log_bin": "OFF"}, True),
        ({"innodb_flush_log_at_trx_commit": "1", "innodb_flush_method": "nosync"}, False),
        ({}, None),
    ],
)
def test_mysql_durability_is_told_from_the_settings(settings: dict[str, str], durable: bool | None) -> None:
    assert mysql_facts.durable(settings) is durable


@pytest.mark.parametrize(
    ("fsync", "synchronous_commit", "durable"),
    [
        ("on", "on", True),
        ("on", "local", True),
        ("on", "remote_apply", True),
        ("on", "off", False),
        ("off", "on", False),
    ],
)
def test_postgresql_durability_is_told_from_the_settings(fsync: str, synchronous_commit: str, durable: bool) -> None:
    assert postgresql_facts.durable({"fsync": fsync, "synchronous_commit": synchronous_commit}) is durable


@pytest.mark.parametrize(
    ("mode", "synchronous", "durable"),
    [
        ("wal", "full", True),
        ("wal", "extra", True),
        ("wal", "normal", False),
        ("wal", "off", False),
        ("delete", "full", False),
        ("delete", "extra", True),
        ("truncate", "full", True),
        ("memory", "full", False),
    ],
)
def test_sqlite_durability_is_told_from_the_pragmas(tmp_path: Path, mode: str, synchronous: str, durable: bool) -> None:
    target = open_target(f"sqlite:///{tmp_path}/d.db?journal_mode={mode}&synchronous={synchronous}")
    _, _, facts = target.describe()
    assert (facts.durability["journal_mode"], facts.durability["synchronous"]) == (mode, synchronous)
    assert facts.durable_commit is durable
    assert sqlite_facts.durable(facts.settings) is durable


# -- errors


@pytest.mark.parametrize(
    ("family", "number", "kind"),
    [
        ("mysql", 1213, RETRYABLE), ("mysql", 1205, RETRYABLE), ("mysql", 1020, RETRYABLE), ("mysql", 3101, RETRYABLE),
        ("mysql", 1062, IGNORABLE), ("mysql", 1317, IGNORABLE), ("mysql", 3024, IGNORABLE), ("mysql", 1452, IGNORABLE),
        ("mysql", 2006, LOST), ("mysql", 2013, LOST), ("mysql", 2055, LOST), ("mysql", 1053, LOST),
        ("mysql", 1927, LOST), ("mysql", 4031, LOST), ("mysql", 1290, FATAL), ("mysql", 1146, FATAL),
        ("mysql", 1064, FATAL), ("mysql", 1142, FATAL), ("mysql", 9007, FATAL), ("mysql", 4012, FATAL),
        ("oceanbase", 4012, RETRYABLE), ("oceanbase", 6001, RETRYABLE), ("oceanbase", 6002, RETRYABLE),
        ("oceanbase", 6005, RETRYABLE), ("oceanbase", 1213, RETRYABLE), ("oceanbase", 1062, IGNORABLE),
        ("oceanbase", 4031, FATAL), ("oceanbase", 8001, LOST), ("oceanbase", 4184, FATAL), ("oceanbase", 2013, LOST),
        ("tidb", 9007, RETRYABLE), ("tidb", 8022, RETRYABLE), ("tidb", 8002, RETRYABLE), ("tidb", 8028, RETRYABLE),
        ("tidb", 1205, RETRYABLE), ("tidb", 1062, IGNORABLE), ("tidb", 8004, FATAL), ("tidb", 2013, LOST),
    ],
)  # fmt: skip
def test_error_numbers_have_their_class(family: str, number: int, kind: ErrorClass) -> None:
    error = FAMILIES[family].classify(pymysql.err.OperationalError(number, "two\nlines"))
    assert (error.code, error.kind) == (str(number), kind)
    assert error.message.endswith("two lines")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_full_disk_is_said_in_words(family: str, tmp_path: Path) -> None:
    error: Exception
    if family == "sqlite":
        connection = open_target(f"sqlite:///{tmp_path}/full.db").connect()
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("PRAGMA max_page_count = 4")
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
        error = caught.value
    elif family == "postgresql":
        error = psycopg.errors.DiskFull("could not extend file")
    else:
        error = pymysql.err.OperationalError(4184 if family == "oceanbase" else 1021, "Server out of disk space")
    understood = FAMILIES[family].classify(error)
    assert understood.kind is FATAL
    assert "disk is full" in understood.message


# -- SQL


TABLE = Table(
    "sbtest1",
    (Column("id", INT, auto=True), Column("k", INT, default=0), Column("c", char(120), default="")),
    key=("id",),
    engine="innodb",
    partition="id",
    suffix="/* end */",
)


def test_create_table_is_written_as_each_family_wants_it() -> None:
    written = {name: family.dialect.create_table(TABLE) for name, family in FAMILIES.items()}
    assert written["mysql"] == [
        "CREATE TABLE sbtest1 (\n  id INTEGER NOT NULL AUTO_INCREMENT,\n  k INTEGER DEFAULT 0 NOT NULL,\n"
        "  c CHAR(120) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) ENGINE = innodb"
        " PARTITION BY HASH (id) PARTITIONS 16 /* end */"
    ]
    assert written["oceanbase"] == written["tidb"] == [written["mysql"][0].replace("ENGINE = innodb ", "")]
    assert written["postgresql"][0] == (
        "CREATE TABLE sbtest1 (\n  id SERIAL NOT NULL,\n  k INTEGER DEFAULT 0 NOT NULL,\n"
        "  c CHAR(120) DEFAULT '' NOT NULL,\n  PRIMARY KEY (id)\n) PARTITION BY HASH (id) /* end */"
    )
    assert len(written["postgresql"]) == 17
    assert "id INTEGER NOT NULL,\n" in written["sqlite"][0]


def test_indexes_and_foreign_keys_are_written() -> None:
    table = Table(
        "child",
        (Column("id", BIGINT), Column("order", INT)),
        ("id",),
        foreign=(ForeignKey("fk", ("order",), "parent", ("id",)),),
    )
    dialect = FAMILIES["mysql"].dialect
    assert dialect.create_index(table, Index("k", ("order", "id"), unique=True)) == (
        "CREATE UNIQUE INDEX k ON child (`order`, id)"
    )
    assert dialect.add_foreign_keys(table) == [
        "ALTER TABLE child ADD CONSTRAINT fk FOREIGN KEY (`order`) REFERENCES parent (id)"
    ]
    sqlite = FAMILIES["sqlite"].dialect
    assert sqlite.add_foreign_keys(table) == []
    assert 'CONSTRAINT fk FOREIGN KEY ("order") REFERENCES parent (id)' in sqlite.create_table(table)[0]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_quoted_name_cannot_end_its_quotes(family: str) -> None:
    dialect = FAMILIES[family].dialect
    mark = "`" if family in ("mysql", "oceanbase", "tidb") else '"'
    assert dialect.quote("plain_1") == "plain_1"
    assert dialect.quote(f"a{mark}b") == f"{mark}a{mark}{mark}b{mark}"
    with pytest.raises(TypeError):
        dialect.literal(object())


def test_question_marks_become_numbers_only_where_they_are_parameters() -> None:
    assert numbered("SELECT '?', ? -- ?\n, ?") == b"SELECT '?', $1 -- ?\n, $2"


def test_values_are_bound_into_the_text_of_a_statement() -> None:
    values: list[Any] = [1, "it's\\", None, 1.5, Decimal("1E+2"), True, b"\x00'", datetime(2024, 1, 2)]
    text = bind("VALUES (" + ", ".join("?" * len(values)) + ")", values, ENCODERS)
    assert text == (b"VALUES (1, 'it\\'s\\\\', NULL, 1.5e0, 100, 1, _binary X'0027', '2024-01-02 00:00:00.000000')")
    assert bind("SELECT ?", ["it's\\"], ENCODERS_WITHOUT_BACKSLASHES) == b"SELECT 'it''s\\'"
    for wrong in ([], [1, 2], [object()], [float("nan")]):
        if wrong:
            with pytest.raises(pymysql.err.ProgrammingError):
                bind("SELECT ?", wrong, ENCODERS)


# -- the families' own password files


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    os.chmod(path, mode)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "PGPASSFILE", "MYSQL_PWD"):
        monkeypatch.delenv(name, raising=False)


PGPASS = r"""# comment
db.example:5433:app:ann:first
*:*:*:we\:ird:col\:on:and\\slash
[::1]:*:*:bob:never
localhost:5432:*:sock:socket-password
*:5432:app:*:fallback
"""


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("postgresql://ann@db.example:5433/app", "first"),
        ("postgresql://ann@db.example:5433/other", None),
        ("postgresql://we%3Aird@anywhere/x", "col:on:and\\slash"),
        ("postgresql://sock@%2Ftmp/x", "socket-password"),
        ("postgresql://who@h/app", "fallback"),
        ("postgresql://app@h", "fallback"),  # the database is named like the user
        ("postgresql://who@h/other", None),
    ],
)
def test_pgpass_is_read_as_libpq_reads_it(tmp_path: Path, url: str, password: str | None) -> None:
    write(tmp_path / ".pgpass", PGPASS)
    assert FAMILIES["postgresql"].password_from_file(FAMILIES["postgresql"].parse(url), tmp_path) == password


def test_a_pgpass_that_others_may_read_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = FAMILIES["postgresql"].parse("postgresql://u@h/db")
    assert postgresql_passwords.find(address, tmp_path) is None
    write(tmp_path / ".pgpass", "*:*:*:*:open", mode=0o644)
    assert postgresql_passwords.find(address, tmp_path) is None
    write(tmp_path / "elsewhere", "*:*:*:*:named")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "elsewhere"))
    assert postgresql_passwords.find(address, tmp_path) == "named"
    monkeypatch.setenv("PGPASSWORD", "variable")
    assert postgresql_passwords.find(address, tmp_path) == "variable"


@pytest.mark.parametrize(
    ("text", "url", "password"),
    [
        ("[client]\npassword=plain", "mysql://u@h/db", "plain"),
        ('[client]\npassword = "with # and \\" quote"', "mysql://u@h/db", "with # and \\"),
        ("[client]\npassword='a#b'\n", "mysql://u@h/db", "a#b"),
        ("[client]\npassword=word # a comment", "mysql://u@h/db", "word"),
        ("[client]\npassword=a\\sb\\\\c", "mysql://u@h/db", "a b\\c"),
        ("[mysqld]\npassword=server\n[client]\nuser=u", "mysql://u@h/db", None),
        ("[client]\nuser=u\nhost=h\nport=3306\npassword=mine", "mysql://u@h/db", "mine"),
        ("[client]\nuser=other\npassword=mine", "mysql://u@h/db", None),
        ("[client]\nhost=elsewhere\npassword=mine", "mysql://u@h/db", None),
        ("[client]\nport=3307\npassword=mine", "mysql://u@h/db", None),
        ("[client]\nhost=localhost\npassword=mine", "mysql://u@127.0.0.1/db", "mine"),
        ("[client]\nsocket=/s\npassword=mine", "mysql://u@localhost/db?socket=/s", "mine"),
        ("[client]\npassword=first\n[mysql]\npassword=second", "mysql://u@h/db", "second"),
        ("; nothing\n!include /etc/x\nno-group=1", "mysql://u@h/db", None),
        ("[client]\npassword=tidb", "tidb://u@h/db", "tidb"),
        ("[client]\npassword=ob", "oceanbase://u@t#c@h/db", "ob"),
    ],
)
def test_my_cnf_is_read_as_the_clients_read_it(tmp_path: Path, text: str, url: str, password: str | None) -> None:
    write(tmp_path / ".my.cnf", text)
    family = FAMILIES[url.partition("://")[0]]
    assert family.password_from_file(family.parse(url), tmp_path) == password


def test_a_my_cnf_that_everybody_may_write_is_ignored(tmp_path: Path) -> None:
    write(tmp_path / ".my.cnf", "[client]\npassword=planted", mode=0o666)
    assert mysql_passwords.find(FAMILIES["mysql"].parse("mysql://u@h/db"), tmp_path) is None


# -- what is kept of the server's settings


def test_secrets_among_the_servers_variables_are_not_kept() -> None:
    address = FAMILIES["postgresql"].parse("postgresql://u:geheim@h/db")
    settings = {
        "shared_buffers": "128MB",
        "primary_conninfo": "host=a password=x",
        "ssl_passphrase_command": "echo x",
        "archive_command": "curl -u me:pw",
        "default_password_lifetime": "0",
        "proxy_url": "http://me:pw@proxy",
        "note": "our geheim stands here",
        "key": "-----BEGIN RSA PRIVATE KEY-----",
        "empty": None,
        "bytes": b"abc",
    }
    assert kept(settings.items(), address) == {"shared_buffers": "128MB", "empty": "", "bytes": "abc"}


def test_a_short_password_does_not_blank_every_setting_it_occurs_in() -> None:
    address = FAMILIES["mysql"].parse("mysql://u:1@h/db")
    assert kept({"max_connections": "151"}.items(), address) == {"max_connections": "151"}


def test_a_clusters_counters_come_from_its_statistics() -> None:
    class Cluster:
        def fetch(self, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
            if "sqlstat" in sql:
                raise pymysql.err.ProgrammingError(1146, "no such table")
            return [("sql select count", Decimal(5)), ("trans commit count", Decimal(2)), ("rpc packet in", Decimal(9))]

    address = FAMILIES["oceanbase"].parse("oceanbase://u@h/db")
    counted = oceanbase_facts.counters(Cluster(), address)  # type: ignore[arg-type]
    assert counted == {"select": 5, "commit": 2}
