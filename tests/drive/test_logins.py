"""The engine gets in wherever a user's password is right, by each of the servers' ways, and says why it does not."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from tests.drive.driving import Read, drive, make_table

from dbdyno.model.errors import RunError
from dbdyno.targets.family import Connection
from dbdyno.targets.target import Target, open_target

PASSWORD, WRONG = "geheim-1", "geheim-2"


@pytest.fixture
def mysql(mysql_url: str) -> Iterator[tuple[Target, Connection]]:
    yield from at(mysql_url)


@pytest.fixture
def mariadb(mariadb_url: str) -> Iterator[tuple[Target, Connection]]:
    yield from at(mariadb_url)


@pytest.fixture
def postgresql(postgresql_url: str) -> Iterator[tuple[Target, Connection]]:
    yield from at(postgresql_url)


def at(url: str) -> Iterator[tuple[Target, Connection]]:
    target = open_target(url)
    make_table(target)
    control = target.control()
    yield target, control
    control.close()


def url_of(target: Target, user: str, password: str, more: str = "tls=disable") -> str:
    where = target.address.endpoints[0]
    scheme = str(target.address).partition(":")[0]
    return f"{scheme}://{user}:{password}@{where.host}:{where.port}/{target.address.database}?{more}"


def gets_in(url: str, connections: int = 1) -> None:
    outcome, _ = drive(Read(), url, connections=connections, transactions=2 * connections)
    assert outcome.state == "done", outcome.reason
    assert outcome.counts.committed == 2 * connections


def refused(url: str) -> str:
    with pytest.raises(RunError) as caught:
        drive(Read(), url, connections=3, transactions=3)
    assert WRONG not in str(caught.value)
    return str(caught.value)


def make_user(control: Connection, database: str, how: str) -> None:
    control.execute("DROP USER IF EXISTS 'engine_user'@'%'")
    control.execute(f"CREATE USER 'engine_user'@'%' IDENTIFIED {how}")
    control.execute(f"GRANT ALL ON {database}.* TO 'engine_user'@'%'")


def test_caching_sha2_lets_in_by_rsa_by_tls_and_from_the_servers_cache(mysql: tuple[Target, Connection]) -> None:
    target, control = mysql
    for more in ("tls=disable", "tls=require"):
        make_user(control, target.address.database, f"WITH caching_sha2_password BY '{PASSWORD}'")
        url = url_of(target, "engine_user", PASSWORD, more)
        refused(url_of(target, "engine_user", WRONG, more))
        gets_in(url, connections=8)  # the server's cache is empty: the password goes over RSA or TLS
        gets_in(url, connections=8)  # now a hash is enough
    refused(url_of(target, "engine_user", WRONG))
    control.execute("DROP USER 'engine_user'@'%'")


@pytest.mark.parametrize("plugin", ["ed25519", "mysql_native_password"])
def test_mariadbs_plugins_let_in(mariadb: tuple[Target, Connection], plugin: str) -> None:
    target, control = mariadb
    if plugin == "ed25519":
        control.execute("INSTALL SONAME 'auth_ed25519'")
    make_user(control, target.address.database, f"VIA {plugin} USING PASSWORD('{PASSWORD}')")
    gets_in(url_of(target, "engine_user", PASSWORD), connections=4)
    refused(url_of(target, "engine_user", WRONG))
    control.execute("DROP USER 'engine_user'@'%'")
    if plugin == "ed25519":
        control.execute("UNINSTALL SONAME 'auth_ed25519'")


@pytest.mark.parametrize("method", ["scram-sha-256", "md5", "password"])
def test_postgresqls_methods_let_in(postgresql: tuple[Target, Connection], method: str) -> None:
    target, control = postgresql
    hba = Path(control.fetch("SELECT current_setting('hba_file')")[0][0])
    before = hba.read_text()
    try:
        control.execute(f"SET password_encryption = '{'md5' if method == 'md5' else 'scram-sha-256'}'")
        control.execute("DROP ROLE IF EXISTS engine_user")
        control.execute(f"CREATE ROLE engine_user LOGIN PASSWORD '{PASSWORD}'")
        control.execute("GRANT SELECT ON drive_accounts TO engine_user")
        hba.write_text(f"host all engine_user 127.0.0.1/32 {method}\n{before}")
        control.fetch("SELECT pg_reload_conf()")
        gets_in(url_of(target, "engine_user", PASSWORD), connections=8)
        refused(url_of(target, "engine_user", WRONG))
    finally:
        hba.write_text(before)
        control.fetch("SELECT pg_reload_conf()")
        control.execute("DROP OWNED BY engine_user")
        control.execute("DROP ROLE engine_user")


def certificates(folder: Path) -> dict[str, Path]:
    """An authority of ours; a certificate for 127.0.0.1 signed by it; one signed by itself; a stranger."""
    now = datetime.datetime.now(datetime.UTC)
    keys, files = {}, {}

    def issue(name: str, issuer: str, authority: bool) -> None:
        keys[name] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by)
            .public_key(keys[name].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .sign(keys[issuer], hashes.SHA256())
        )
        files[name] = folder / f"engine-{name}.pem"
        files[name].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        files[f"{name} key"] = folder / f"engine-{name}-key.pem"
        files[f"{name} key"].write_bytes(
            keys[name].private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    issue("authority", "authority", True)
    issue("signed", "authority", False)
    issue("alone", "alone", True)
    issue("stranger", "stranger", True)
    return files


def test_certificates_are_verified_as_asked(mysql: tuple[Target, Connection], tmp_path: Path) -> None:
    target, control = mysql
    folder = Path(control.fetch("SELECT @@datadir")[0][0])
    owner = folder.stat()
    files = certificates(folder)
    for file in files.values():
        os.chown(file, owner.st_uid, owner.st_gid)
    before = control.fetch("SELECT @@ssl_ca, @@ssl_cert, @@ssl_key")[0]

    def serve(ca: str, certificate: str, key: str) -> None:
        for name, value in (("ssl_ca", ca), ("ssl_cert", certificate), ("ssl_key", key)):
            control.execute(f"SET GLOBAL {name} = '{value}'")
        control.execute("ALTER INSTANCE RELOAD TLS")

    def at_host(host: str, mode: str, authority: str) -> str:
        url = str(target.address).replace("127.0.0.1", host)
        return f"{url}?tls={mode}&tls_ca={files[authority]}"

    try:
        for served, trusted in (("signed", "authority"), ("alone", "alone")):
            serve(str(files[trusted]), str(files[served]), str(files[f"{served} key"]))
            for mode in ("verify-ca", "verify-full"):
                gets_in(at_host("127.0.0.1", mode, trusted))
                assert "TLS" in refused(at_host("127.0.0.1", mode, "stranger"))
            gets_in(at_host("localhost", "verify-ca", trusted))
            assert "TLS" in refused(at_host("localhost", "verify-full", trusted))  # it names 127.0.0.1 only
    finally:
        serve(*before)
        for file in files.values():
            file.unlink()
