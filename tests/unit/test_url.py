"""Target URLs: what a user may write, and that a password in them is never shown again."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.model.errors import UsageError
from dbdyno.targets.registry import FAMILIES, family_of_scheme
from dbdyno.targets.target import open_target
from dbdyno.targets.url import Address, Endpoint, Secret, parse_address


def parse(url: str) -> Address:
    return family_of_scheme(url.partition("://")[0]).parse(url)


@pytest.mark.parametrize(
    ("url", "user", "password", "endpoints", "database"),
    [
        ("mysql://root@127.0.0.1:3306/test", "root", None, [("127.0.0.1", 3306)], "test"),
        ("mysql://root@db.example", "root", None, [("db.example", 3306)], ""),
        ("mysql://u:p@h1:4000,h2:4001,h3/db", "u", "p", [("h1", 4000), ("h2", 4001), ("h3", 3306)], "db"),
        ("postgresql://u@[::1]:5433/db", "u", None, [("::1", 5433)], "db"),
        ("postgres://u@[fe80::1]/db", "u", None, [("fe80::1", 5432)], "db"),
        ("oceanbase://root@sys#obcluster@10.0.0.1:2883/test", "root@sys#obcluster", None, [("10.0.0.1", 2883)], "test"),
        ("oceanbase://root%40sys%23c@h/test", "root@sys#c", None, [("h", 2881)], "test"),
        ("oceanbase://u@t:p#w@h/test", "u@t", "p#w", [("h", 2881)], "test"),
        ("tidb://root@h/test", "root", None, [("h", 4000)], "test"),
        ("mysql://u:p@ss:w/o?r#d@h/db", "u", "p@ss:w/o?r#d", [("h", 3306)], "db"),
        ("mysql://us%3Aer:p%25%40@h/d%40b", "us:er", "p%@", [("h", 3306)], "d@b"),
        ("mysql://u:@h/db", "u", "", [("h", 3306)], "db"),
        ("mysql:///db", "", None, [("127.0.0.1", 3306)], "db"),
        ("mysql://localhost/数据库", "", None, [("localhost", 3306)], "数据库"),
    ],
)
def test_a_url_means_what_it_says(
    url: str, user: str, password: str | None, endpoints: list[tuple[str, int]], database: str
) -> None:
    address = parse(url)
    assert address.user == user
    assert (address.password.reveal() if address.password else None) == password
    assert [(endpoint.host, endpoint.port) for endpoint in address.endpoints] == endpoints
    assert address.database == database


def test_a_socket_is_a_parameter_or_a_percent_encoded_host() -> None:
    assert parse("mysql://root@localhost/db?socket=/run/mysqld/m.sock").endpoints[0].socket == "/run/mysqld/m.sock"
    assert parse("postgresql://u@%2Fvar%2Frun/db").endpoints == (Endpoint("localhost", 5432, "/var/run"),)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root@127.0.0.1:3306/test",
        "oceanbase://root@sys#obcluster@10.0.0.1:2883,10.0.0.2:2883/test",
        "postgresql://u@[::1]:5433/db?tls=verify-ca&tls_ca=/etc/ca.pem",
        "mysql://u@127.0.0.1:3306/db?socket=/run/mysqld/m.sock",
        "postgresql://u@%2Fvar%2Frun:5432/db",
        "mysql://us%3Aer@h:3306/d%40b",
        "sqlite:///relative.db",
        "sqlite:////absolute/path.db?synchronous=normal",
    ],
)
def test_a_url_is_printed_as_it_may_be_typed_again(url: str) -> None:
    assert str(parse(url)) == url
    assert parse(str(parse(url))) == parse(url)


@given(
    user=st.text(min_size=1).filter(lambda text: "\x00" not in text),
    database=st.text().filter(lambda text: "\x00" not in text),
)
def test_any_user_and_database_survive_printing_and_parsing(user: str, database: str) -> None:
    address = Address("mysql", user, None, (Endpoint("h", 1),), database)
    again = parse_address(str(address), 3306)
    assert (again.user, again.database) == (user, database)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://root@h:port/db", "port"),
        ("mysql://root@h:0/db", "1 to 65535"),
        ("mysql://root@h:99999/db", "1 to 65535"),
        ("mysql://root@h1,,h2/db", "host is missing"),
        ("mysql://root@[::1/db", "[::1]"),
        ("mysql://:geheim@h/db", "no user"),
        ("mysql://root@h/db?password=geheim", "does not belong"),
        ("mysql://root@h/db?tsl=require", "'tls'"),
        ("mysql://root@h/db?tls=requires", "'require'"),
        ("sqlite://file.db", "three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "in-memory"),
        ("sqlite:///a.db?synchronous=on", "synchronous=on"),
        ("sqlite:///a.db?sync=off", "'sync'"),
        ("sqlite:///a.db?busy_timeout=fast", "milliseconds"),
        ("sqlite:///a.db?journal_mode=wall", "'wal'"),
        ("postgre://u@h/db", "'postgres'"),
        ("oracle://u@h/db", "unknown kind of database"),
    ],
)
def test_a_wrong_url_is_one_sentence_that_says_what_would_be_right(url: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_target(url)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "geheim" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:geheim",  # the @ was forgotten: the password stands where the port is expected
        "mysql://root:geheim/db",
        "mysql://root:[geheim]@[::1/db",
        "mysql://root:geheim@h:geheim/db",
        "mysql://root:geheim@h/db?passwd=geheim",
    ],
)
def test_a_malformed_url_is_not_repeated_because_it_may_hold_the_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_target(url)
    assert "geheim" not in str(caught.value)


def test_a_password_is_shown_by_nothing_that_prints_or_stores() -> None:
    address = parse("mysql://u:geheim@h/db")
    secret = address.password
    assert secret is not None
    shown = [str(address), repr(address), str(secret), f"{secret!s:>10}", "%s" % secret, repr([secret])]  # noqa: UP031
    assert "geheim" not in "".join(shown)
    for store in (pickle.dumps, copy.deepcopy, json.dumps, dataclasses.asdict):
        with pytest.raises(TypeError):
            store(address)  # type: ignore[operator]
    assert address.with_password("other") != address
    assert address.with_database("x").password == Secret("geheim")


def test_the_password_comes_from_the_url_then_the_question_then_the_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MYSQL_PWD", "from-mysql-pwd")
    monkeypatch.delenv("DBDYNO_PASSWORD", raising=False)

    def found(url: str, answer: str | None = None) -> str | None:
        ask = None if answer is None else lambda prompt: answer
        password = open_target(url, ask_password=ask).address.password
        return password.reveal() if password else None

    assert found("mysql://u@h/db") == "from-mysql-pwd"
    monkeypatch.setenv("DBDYNO_PASSWORD", "from-ours")
    assert found("mysql://u@h/db") == "from-ours"
    assert found("mysql://u@h/db", answer="typed") == "typed"
    assert found("mysql://u:given@h/db", answer="typed") == "given"
    assert found("mysql://u:@h/db") == ""
    monkeypatch.delenv("MYSQL_PWD")
    monkeypatch.delenv("DBDYNO_PASSWORD")
    assert found("mysql://u@h/db") is None


def test_every_family_has_its_schemes_to_itself() -> None:
    schemes = [scheme for family in FAMILIES.values() for scheme in family.schemes]
    assert len(schemes) == len(set(schemes))
    assert all(family.name in family.schemes for family in FAMILIES.values())
    assert all(family_of_scheme(scheme) is family for family in FAMILIES.values() for scheme in family.schemes)


def test_naming_a_file_imports_no_servers_driver() -> None:
    """What a command costs to start: the drivers take longer to import than most commands run."""
    program = (
        "import sys\n"
        "from dbdyno.targets.target import open_target\n"
        "open_target('sqlite:///a.db')\n"
        "print([name for name in ('psycopg', 'pymysql') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
