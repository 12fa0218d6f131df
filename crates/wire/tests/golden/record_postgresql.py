"""PostgreSQL's protocol, spoken plainly enough that every byte of the server can be written down."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import struct
from pathlib import Path
from typing import Any

PASSWORD = "golden"
CLIENT_NONCE = "fyko+d2lbbFgONRv9qkxdawL"
RULES = "host all golden_scram all scram-sha-256\nhost all golden_md5 all md5\nhost all golden_clear all password\n"

# Column type; the literal; its text; what wire reads out of the text and out of the binary form; the engine's value.
# `{}` stands for the text itself.
TYPES: list[tuple[str, str, str, str, str, str]] = [
    ("bool", "true", "t", "Bool(true)", "Bool(true)", "bool true"),
    ("int2", "-32768", "-32768", "Int({})", "Int({})", "int {}"),
    ("int4", "2147483647", "2147483647", "Int({})", "Int({})", "int {}"),
    ("int8", "-9223372036854775808", "-9223372036854775808", "Int({})", "Int({})", "int {}"),
    ("oid", "4294967295", "4294967295", "Int({})", "Int({})", "int {}"),
    ("float4", "0.1", "0.1", "Double({})", "Double({})", "float {}"),
    ("float8", "-1.5e-7", "-1.5e-07", "Double(-1.5e-7)", "Double(-1.5e-7)", "float -1.5e-7"),
    ("float8", "'infinity'", "Infinity", "Double(inf)", "Double(inf)", "float inf"),
    ("numeric(20,4)", "-12345.67", "-12345.6700", 'Text("{}")', 'Text("{}")', "decimal {}"),
    ("numeric", "0.00000012", "0.00000012", 'Text("{}")', 'Text("{}")', "decimal {}"),
    ("numeric", "700000000", "700000000", 'Text("{}")', 'Text("{}")', "decimal {}"),
    ("numeric", "0", "0", 'Text("{}")', 'Text("{}")', "decimal {}"),
    ("numeric(6,3)", "100", "100.000", 'Text("{}")', 'Text("{}")', "decimal {}"),
    ("text", "'grün €'", "grün €", 'Text("{}")', 'Text("{}")', 'str "{}"'),
    ("text", "''", "", 'Text("")', 'Text("")', 'str ""'),
    ("varchar(9)", "'tail  '", "tail  ", 'Text("{}")', 'Text("{}")', 'str "{}"'),
    ("char(5)", "'ab'", "ab   ", 'Text("{}")', 'Text("{}")', 'str "ab"'),
    ("name", "'golden'", "golden", 'Text("{}")', 'Text("{}")', 'str "{}"'),
    ("bytea", "'\\x00ff5c27'", "\\x00ff5c27", 'Text("\\{}")', 'Text("\\{}")', "bytes 00ff5c27"),
    ("date", "'2024-02-29'", "2024-02-29", 'Text("{}")', 'Text("{}")', "timestamp 1709164800000000"),
    ("date", "'1969-12-31'", "1969-12-31", 'Text("{}")', 'Text("{}")', "timestamp -86400000000"),
    ("timestamp", "'1999-12-31 23:59:59'", "1999-12-31 23:59:59", 'Text("{}")', 'Text("{}")',
     "timestamp 946684799000000"),
    ("timestamp", "'2024-02-29 12:30:05.00025'", "2024-02-29 12:30:05.00025", 'Text("{}")', 'Text("{}")',
     "timestamp 1709209805000250"),
    ("timestamptz", "'2024-02-29 12:30:05.5+00'", "2024-02-29 12:30:05.5+00", 'Text("{}")', 'Text("{}")',
     "timestamp 1709209805500000"),
    ("uuid", "'00000000-0000-0000-0000-0000000000ff'", "00000000-0000-0000-0000-0000000000ff", 'Text("{}")',
     'Bytes(b"' + "\\0" * 15 + '\\xff")', 'str "{}"'),
    ("jsonb", """'{"k": 1}'""", '{"k": 1}', 'Text("{\\"k\\": 1}")', 'Bytes(b"\\x01{\\"k\\": 1}")',
     'str "{\\"k\\": 1}"'),
]  # fmt: skip

Turn = tuple[str, str]


class Client:
    """One connection; ``turns`` is what passed since the list was emptied."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=20)
        self.turns: list[Turn] = []

    def message(self) -> tuple[bytes, bytes]:
        """The server's next message: its type and body."""
        head = self.exactly(5)
        body = self.exactly(int.from_bytes(head[1:], "big") - 4)
        said = (head + body).hex()
        if head[:1] == b"K":  # the secret that cancels this connection's statements is of no use to anybody
            said = head.hex() + "00000001" + "5a" * (len(body) - 4)
        if self.turns and self.turns[-1][0] == "server":
            self.turns[-1] = ("server", self.turns[-1][1] + said)
        else:
            self.turns.append(("server", said))
        return head[:1], body

    def exactly(self, length: int) -> bytes:
        """That many bytes."""
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data

    def send(self, data: bytes) -> None:
        """Bytes of ours."""
        self.turns.append(("client", data.hex()))
        self.socket.sendall(data)

    def log_in(self, user: str, password: str, database: str) -> bool:
        """Startup to ReadyForQuery or ErrorResponse; whether the server accepted."""
        words = b"".join(
            word.encode() + b"\0"
            for word in ("user", user, "database", database, "application_name", "golden", "client_encoding", "UTF8")
        )
        body = struct.pack(">I", 3 << 16) + words + b"\0"
        self.send(struct.pack(">I", len(body) + 4) + body)
        first = f"n=,r={CLIENT_NONCE}"
        while True:
            kind, body = self.message()
            if kind in (b"Z", b"E"):
                return kind == b"Z"
            code = int.from_bytes(body[:4], "big") if kind == b"R" else 0
            if code == 3:
                self.send(framed(b"p", password.encode() + b"\0"))
            elif code == 5:
                inner = hashlib.md5(password.encode() + user.encode()).hexdigest()
                outer = hashlib.md5(inner.encode() + body[4:8]).hexdigest()
                self.send(framed(b"p", f"md5{outer}\0".encode()))
            elif code == 10:
                data = f"n,,{first}".encode()
                self.send(framed(b"p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(data)) + data))
            elif code == 11:
                self.send(framed(b"p", proof(password, first, body[4:].decode())))

    def ask(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Messages of ours, and the server's up to ReadyForQuery."""
        self.turns = []
        self.send(data)
        messages = [self.message()]
        while messages[-1][0] != b"Z":
            messages.append(self.message())
        return messages


def proof(password: str, first: str, server: str) -> bytes:
    """The client's last message of SCRAM-SHA-256 (RFC 5802, section 3)."""
    fields = dict(field.split("=", 1) for field in server.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    bare = f"c=biws,r={fields['r']}"
    signed = hmac.digest(hashlib.sha256(key).digest(), f"{first},{server},{bare}".encode(), "sha256")
    return f"{bare},p={base64.b64encode(bytes(a ^ b for a, b in zip(key, signed, strict=True))).decode()}".encode()


def framed(kind: bytes, body: bytes) -> bytes:
    """A message."""
    return kind + struct.pack(">I", len(body) + 4) + body


def query(sql: str) -> bytes:
    """The simple protocol."""
    return framed(b"Q", sql.encode() + b"\0")


def flight(name: str, sql: str, parameters: list[bytes], binary: bool) -> bytes:
    """Parse (with a text), Describe, Bind, Execute, Sync."""
    out = b""
    if sql:
        out += framed(b"P", name.encode() + b"\0" + sql.encode() + b"\0\0\0")
        out += framed(b"D", b"S" + name.encode() + b"\0")
    values = b"".join(struct.pack(">I", len(value)) + value for value in parameters)
    formats = b"\0\x01\0\x01" if binary else b"\0\0"
    bind = b"\0" + name.encode() + b"\0\0\0" + struct.pack(">H", len(parameters)) + values + formats
    return out + framed(b"B", bind) + framed(b"E", b"\0\0\0\0\0") + framed(b"S", b"")


def record(address: tuple[str, int], user: str, database: str) -> dict[str, Any]:
    """All exchanges of one server."""
    admin = Client(address)
    assert admin.log_in(user, "", database), "the server's owner must get in without a password"

    def run(sql: str) -> str:
        messages = admin.ask(query(sql))
        assert all(kind != b"E" for kind, _ in messages), (sql, messages)
        rows = [body[6:].decode() for kind, body in messages if kind == b"D"]
        return rows[0] if rows else ""

    version = run("SHOW server_version").split()[0]
    rules = Path(run("SHOW hba_file"))
    before = rules.read_text(encoding="utf-8")
    run("DROP TABLE IF EXISTS golden")
    for way in ("scram", "md5", "clear"):
        run(f"DROP ROLE IF EXISTS golden_{way}")
        run(f"SET password_encryption = '{'md5' if way == 'md5' else 'scram-sha-256'}'")
        run(f"CREATE ROLE golden_{way} LOGIN PASSWORD '{PASSWORD}'")
    declared = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(TYPES))
    run(f"CREATE TABLE golden (id int PRIMARY KEY, {declared})")
    run(f"INSERT INTO golden VALUES (1, {', '.join(literal for _, literal, *_ in TYPES)})")
    run("INSERT INTO golden (id) VALUES (2)")
    exchanges: list[dict[str, Any]] = []

    def log_in(name: str, role: str, password: str) -> None:
        client = Client(address)
        accepted = client.log_in(role, password, database)
        exchanges.append({"name": name, "ask": "login", "user": role, "password": password, "accepted": accepted,
                          "turns": client.turns})  # fmt: skip

    try:
        rules.write_text(RULES + before, encoding="utf-8")
        run("SELECT pg_reload_conf()")
        run("SELECT pg_sleep(0.5)")
        for way in ("scram", "md5", "clear"):
            log_in(f"login, {way}", f"golden_{way}", PASSWORD)
        log_in("a wrong password", "golden_scram", "wrong")
        log_in("an unknown role", "golden_nobody", PASSWORD)
    finally:
        rules.write_text(before, encoding="utf-8")
        run("SELECT pg_reload_conf()")
        for way in ("scram", "md5", "clear"):
            run(f"DROP ROLE golden_{way}")

    client = Client(address)
    assert client.log_in(user, "", database)

    def exchange(name: str, ask: str, data: bytes, **expected: object) -> None:
        client.ask(data)
        exchanges.append({"name": name, "ask": ask, **expected, "turns": client.turns})

    def simple(name: str, sql: str, **expected: object) -> None:
        exchange(name, "query", query(sql), statement=sql, **expected)

    done = "Done {{ rows: {}, matched: {} }}".format
    engine = [
        ["int 1", *[value.replace("{}", text) for _, _, text, _, _, value in TYPES]],
        ["int 2", *["null"] * len(TYPES)],
    ]
    text = [
        ["Int(1)", *[value.replace("{}", text) for _, _, text, value, _, _ in TYPES]],
        ["Int(2)", *["Null"] * len(TYPES)],
    ]
    binary = [
        ["Int(1)", *[value.replace("{}", text) for _, _, text, _, value, _ in TYPES]],
        ["Int(2)", *["Null"] * len(TYPES)],
    ]
    sql = "SELECT * FROM golden WHERE id > $1 ORDER BY id"
    simple("UTC and a parameter's new value", "SET timezone = 'UTC'", answer=done(0, 0), parameter=["TimeZone", "UTC"])
    exchange("every type, prepared in the same flight", "statement", flight("s0", sql, [b"0"], binary=False),
             statement=sql, answer=done(2, 0), values=text, rows=engine)  # fmt: skip
    exchange("every type, prepared before", "statement again", flight("s0", "", [b"0"], binary=False),
             statement=sql, answer=done(2, 0), rows=engine)  # fmt: skip
    exchange("every type, binary", "binary", flight("s1", sql, [b"0"], binary=True), statement=sql, values=binary)
    simple(
        "every type, simple protocol", "SELECT * FROM golden ORDER BY id", answer=done(2, 0), values=text, rows=engine
    )
    simple("no row", "SELECT id FROM golden WHERE id = 3", answer=done(0, 0), values=[], rows=[])
    simple("rows matched and left as they are", "UPDATE golden SET c0 = true WHERE id = 1", answer=done(0, 1))
    simple("rows put in", "INSERT INTO golden (id) VALUES (3), (4)", answer=done(0, 2))
    simple("rows deleted", "DELETE FROM golden WHERE id > 2", answer=done(0, 2))
    simple("a syntax error", "SELEC 1", error="42601")
    simple("a duplicate key", "INSERT INTO golden (id) VALUES (1)", error="23505")
    exchange("an error of prepare", "statement", flight("s2", "SELECT nothing FROM golden", [], binary=False),
             statement="SELECT nothing FROM golden", error="42703")  # fmt: skip
    simple("an error behind rows", "SELECT 1 / (2 - id) FROM golden ORDER BY id", error="22012")
    simple("a notice", "DO $$ BEGIN RAISE NOTICE 'golden notice'; END $$", answer=done(0, 0), notice="golden notice")
    simple("nothing at all", "", answer=done(0, 0))
    simple("begin", "BEGIN", answer=done(0, 0), in_transaction=True)
    simple("an error in a transaction", "SELECT 1 / 0", error="22012", in_transaction=True)
    simple("refused in a failed transaction", "SELECT 1", error="25P02", in_transaction=True)
    simple("rollback", "ROLLBACK", answer=done(0, 0), in_transaction=False)
    simple("two statements at once", "SELECT 1; SELECT 'b'", answer=done(2, 0), rows=[["int 1"], ['str "b"']])
    run("DROP TABLE golden")
    return {"server": version, "exchanges": exchanges}
