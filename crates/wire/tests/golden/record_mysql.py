"""MySQL's protocol, spoken plainly enough that every byte of the server can be written down."""

from __future__ import annotations

import hashlib
import socket
import struct
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

PASSWORD = "golden"
# LONG_PASSWORD, FOUND_ROWS, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, MULTI_RESULTS,
# PS_MULTI_RESULTS, PLUGIN_AUTH
CLASSIC = 1 | 2 | 4 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 18 | 1 << 19
DEPRECATE_EOF = 1 << 24
NATIVE, CACHING_SHA2 = "mysql_native_password", "caching_sha2_password"

# Column type; the literal that fills it; the text, the binary and the engine's value that must be read.
# `{}` stands for the text itself.
TYPES: list[tuple[str, str, str, str, str]] = [
    ("TINYINT", "-128", "-128", "Int({})", "int {}"),
    ("TINYINT UNSIGNED", "255", "255", "UInt({})", "int {}"),
    ("SMALLINT", "-32768", "-32768", "Int({})", "int {}"),
    ("SMALLINT UNSIGNED", "65535", "65535", "UInt({})", "int {}"),
    ("MEDIUMINT", "-8388608", "-8388608", "Int({})", "int {}"),
    ("MEDIUMINT UNSIGNED", "16777215", "16777215", "UInt({})", "int {}"),
    ("INT", "-2147483648", "-2147483648", "Int({})", "int {}"),
    ("INT UNSIGNED", "4294967295", "4294967295", "UInt({})", "int {}"),
    ("BIGINT", "-9223372036854775808", "-9223372036854775808", "Int({})", "int {}"),
    ("BIGINT UNSIGNED", "9223372036854775807", "9223372036854775807", "UInt({})", "int {}"),
    ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615", "UInt({})", "decimal {}"),
    ("FLOAT", "0.1", "0.1", "Float({})", "float {}"),
    ("DOUBLE", "-0.1", "-0.1", "Double({})", "float {}"),
    ("DECIMAL(20,4)", "-12345.6700", "-12345.6700", 'Bytes(b"{}")', "decimal {}"),
    ("DECIMAL(28,0)", "9999999999999999999999999999", "9999999999999999999999999999", 'Bytes(b"{}")', "decimal {}"),
    ("DATE", "'2024-02-29'", "2024-02-29", 'Temporal("{}")', "timestamp 1709164800000000"),
    ("DATE", "'1969-12-31'", "1969-12-31", 'Temporal("{}")', "timestamp -86400000000"),
    ("DATETIME", "'2024-02-29 00:00:00'", "2024-02-29 00:00:00", 'Temporal("{}")', "timestamp 1709164800000000"),
    ("DATETIME", "'1999-12-31 23:59:59'", "1999-12-31 23:59:59", 'Temporal("{}")', "timestamp 946684799000000"),
    (
        "DATETIME(6)",
        "'2024-02-29 12:30:05.000250'",
        "2024-02-29 12:30:05.000250",
        'Temporal("{}")',
        "timestamp 1709209805000250",
    ),
    (
        "TIMESTAMP(3) NULL",
        "'2024-02-29 12:30:05.125'",
        "2024-02-29 12:30:05.125",
        'Temporal("{}000")',
        "timestamp 1709209805125000",
    ),
    ("TIME", "'-838:59:59'", "-838:59:59", 'Temporal("{}")', 'str "{}"'),
    ("TIME", "'00:00:00'", "00:00:00", 'Temporal("{}")', 'str "{}"'),
    ("TIME(6)", "'01:02:03.000004'", "01:02:03.000004", 'Temporal("{}")', 'str "{}"'),
    ("YEAR", "2155", "2155", "UInt({})", "int {}"),
    ("CHAR(5)", "'ab'", "ab", 'Bytes(b"{}")', 'str "{}"'),
    ("VARCHAR(20)", "'grün €'", "grün €", 'Bytes(b"gr\\xc3\\xbcn \\xe2\\x82\\xac")', 'str "{}"'),
    ("VARCHAR(20)", "''", "", 'Bytes(b"")', 'str ""'),
    ("VARCHAR(300)", "REPEAT('x', 300)", "x" * 300, 'Bytes(b"{}")', 'str "{}"'),
    ("TEXT", "'long'", "long", 'Bytes(b"{}")', 'str "{}"'),
    ("BINARY(4)", "x'00ff0027'", "\\x00ff0027", 'Bytes(b"\\0\\xff\\0\'")', "bytes 00ff0027"),
    ("VARBINARY(9)", "x'fe00'", "\\xfe00", 'Bytes(b"\\xfe\\0")', "bytes fe00"),
    ("BLOB", "x'fb0aff'", "\\xfb0aff", 'Bytes(b"\\xfb\\n\\xff")', "bytes fb0aff"),
    ("BIT(10)", "b'1000000001'", "\\x0201", 'Bytes(b"\\x02\\x01")', "bytes 0201"),
    ("ENUM('a','b')", "'b'", "b", 'Bytes(b"{}")', 'str "{}"'),
    ("SET('a','b','c')", "'a,c'", "a,c", 'Bytes(b"{}")', 'str "{}"'),
    ("JSON", """'{"k": 1}'""", '{"k": 1}', 'Bytes(b"{\\"k\\": 1}")', 'str "{\\"k\\": 1}"'),
]
VECTOR = (
    "VECTOR(2)",
    "STRING_TO_VECTOR('[1,2]')",
    "\\x0000803f00000040",
    'Bytes(b"\\0\\0\\x80?\\0\\0\\0@")',
    "bytes 0000803f00000040",
)

Turn = tuple[str, str]


class Client:
    """One connection; ``turns`` is what passed since the list was emptied."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=20)
        self.turns: list[Turn] = []
        self.sequence = 0

    def packet(self) -> bytes:
        """The server's next packet."""
        head = self.exactly(4)
        payload = self.exactly(int.from_bytes(head[:3], "little"))
        self.sequence = head[3] + 1
        if self.turns and self.turns[-1][0] == "server":
            self.turns[-1] = ("server", self.turns[-1][1] + (head + payload).hex())
        else:
            self.turns.append(("server", (head + payload).hex()))
        return payload

    def exactly(self, length: int) -> bytes:
        """That many bytes."""
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data

    def send(self, payload: bytes) -> None:
        """A packet of ours."""
        packet = len(payload).to_bytes(3, "little") + bytes([self.sequence % 256]) + payload
        self.turns.append(("client", packet.hex()))
        self.socket.sendall(packet)

    def log_in(self, user: str, password: str, database: str, capabilities: int, plugin: str = "") -> bytes:
        """Greeting to OK or ERR; the last packet. ``plugin``: what the client begins with."""
        greeting = self.packet()
        end = greeting.index(0, 1) + 1
        nonce = greeting[end + 4 : end + 12] + greeting[end + 31 : end + 43]
        plugin = plugin or greeting[end + 44 :].rstrip(b"\0").decode()
        self.send(
            struct.pack("<IIB23x", capabilities | 8, 1 << 24, 45)
            + user.encode() + b"\0"
            + lengthy(answer(plugin, password, nonce))
            + database.encode() + b"\0" + plugin.encode() + b"\0"
        )  # fmt: skip
        while True:
            reply = self.packet()
            if reply[0] in (0x00, 0xFF):
                return reply
            if reply[0] == 0xFE:
                name, nonce = reply[1:].rstrip(b"\0").split(b"\0", 1)
                plugin = name.decode()
                self.send(answer(plugin, password, nonce))
            elif reply == b"\x01\x04":
                self.send(b"\x02")
                key = serialization.load_pem_public_key(self.packet()[1:])
                assert isinstance(key, rsa.RSAPublicKey)
                secret = bytes(a ^ nonce[i % 20] for i, a in enumerate(password.encode() + b"\0"))
                oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
                self.send(key.encrypt(secret, oaep))

    def ask(self, payload: bytes, deprecate_eof: bool) -> list[bytes]:
        """A command and the packets of its answer."""
        self.turns, self.sequence = [], 0
        self.send(payload)
        packets = [self.packet()]
        if payload[0] == 0x16 and packets[0][0] == 0:
            columns, parameters = struct.unpack_from("<HH", packets[0], 5)
            for count in (parameters, columns):
                packets += [self.packet() for _ in range(count + (count > 0 and not deprecate_eof))]
            return packets
        while True:
            if packets[-1][0] not in (0x00, 0xFF):
                packets += [self.packet() for _ in range(packets[-1][0] + (not deprecate_eof))]
                while True:
                    packets.append(self.packet())
                    if packets[-1][0] == 0xFF or (packets[-1][0] == 0xFE and len(packets[-1]) < 100):
                        break
            if not more_results(packets[-1]):
                return packets
            packets.append(self.packet())


def lengthy(data: bytes) -> bytes:
    """With its length in one byte before it."""
    return bytes([len(data)]) + data


def more_results(packet: bytes) -> bool:
    """Whether the status of an OK or EOF packet (small figures only) says so."""
    if packet[0] == 0xFF:
        return False
    return bool(packet[3] & 8)


def answer(plugin: str, password: str, nonce: bytes) -> bytes:
    """What the plug-in sends for the nonce."""
    word, nonce = password.encode(), nonce[:20]
    if not word:
        return b""
    if plugin == NATIVE:
        one = hashlib.sha1(word).digest()
        mask = hashlib.sha1(nonce + hashlib.sha1(one).digest()).digest()
    else:
        one = hashlib.sha256(word).digest()
        mask = hashlib.sha256(hashlib.sha256(one).digest() + nonce).digest()
    return bytes(a ^ b for a, b in zip(one, mask, strict=True))


def record(address: tuple[str, int], user: str, database: str) -> dict[str, Any]:
    """All exchanges of one server."""
    admin = Client(address)
    greeting = admin.log_in(user, "", database, CLASSIC)
    assert greeting[0] == 0, greeting
    version = bytes.fromhex(admin.turns[0][1])[5:].split(b"\0")[0].decode()
    types = [*TYPES, VECTOR] if version.startswith("9.") else TYPES

    def run(sql: str, *allowed: int) -> None:
        last = admin.ask(b"\x03" + sql.encode(), deprecate_eof=False)[-1]
        code = int.from_bytes(last[1:3], "little") if last[0] == 0xFF else 0
        assert code == 0 or code in allowed, (sql, last)

    run("DROP TABLE IF EXISTS golden")
    run("SET time_zone = '+00:00'")
    declared = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(types))
    run(f"CREATE TABLE golden (id INT PRIMARY KEY, {declared})")
    run(f"INSERT INTO golden VALUES (1, {', '.join(literal for _, literal, *_ in types)})")
    run("INSERT INTO golden (id) VALUES (2)")
    run("DROP PROCEDURE IF EXISTS golden_two")
    run("CREATE PROCEDURE golden_two() BEGIN SELECT 1 AS one; SELECT 'b' AS two; END")
    run("DROP USER IF EXISTS golden")
    run(f"CREATE USER golden IDENTIFIED BY '{PASSWORD}'")
    run(f"GRANT ALL ON {database}.* TO golden")
    run("FLUSH PRIVILEGES")

    exchanges: list[dict[str, Any]] = []

    def log_in(name: str, password: str, plugin: str, capabilities: int) -> Client:
        client = Client(address)
        last = client.log_in("golden", password, database, capabilities, plugin)
        exchanges.append(
            {"name": name, "ask": "login", "capabilities": capabilities, "password": password,
             "accepted": last[0] == 0, "turns": client.turns}
        )  # fmt: skip
        return client

    other = CACHING_SHA2 if version.startswith(("5.", "10.", "11.")) else NATIVE
    log_in("the account's first login", PASSWORD, "", CLASSIC)
    log_in("a later login", PASSWORD, "", CLASSIC)
    log_in("a client that begins with another plug-in", PASSWORD, other, CLASSIC)
    log_in("a wrong password", "wrong", "", CLASSIC)
    texts = [text for _, _, text, _, _ in types]
    values = {
        "text": [["1", *texts], ["2", *[None] * len(types)]],
        "binary": [
            ["Int(1)", *[binary.replace("{}", text) for _, _, text, binary, _ in types]],
            ["Int(2)", *["Null"] * len(types)],
        ],
        "engine": [
            ["int 1", *[engine.replace("{}", text) for _, _, text, _, engine in types]],
            ["int 2", *["null"] * len(types)],
        ],
    }
    for mode, capabilities in (("classic", CLASSIC), ("without EOF packets", CLASSIC | DEPRECATE_EOF)):
        client = Client(address)
        last = client.log_in("golden", PASSWORD, database, capabilities)
        assert last[0] == 0, last
        modern = capabilities & DEPRECATE_EOF != 0 and offers(client.turns[0][1], DEPRECATE_EOF)
        agreed = capabilities if modern else CLASSIC

        def exchange(name: str, ask: str, payload: bytes, **expected: object) -> list[bytes]:
            packets = client.ask(payload, modern)  # noqa: B023
            exchanges.append(
                {"name": f"{name}, {mode}", "ask": ask, "capabilities": agreed,  # noqa: B023
                 **expected, "turns": client.turns}  # noqa: B023
            )  # fmt: skip
            return packets

        def query(name: str, sql: str, **expected: object) -> None:
            exchange(name, "query", b"\x03" + sql.encode(), statement=sql, **expected)

        query("UTC", "SET time_zone = '+00:00'", answer="Done { rows: 0, matched: 0 }")
        sql = "SELECT * FROM golden WHERE id > ? ORDER BY id"
        head = exchange("prepare", "prepare", b"\x16" + sql.encode(), statement=sql, parameters=1,
                        columns=len(types) + 1)[0]  # fmt: skip
        run_it = b"\x17" + head[1:5] + b"\0\x01\0\0\0" + b"\0\x01\x08\0" + bytes(8)
        exchange("every type, binary", "execute", run_it, statement=sql, answer="Done { rows: 2, matched: 0 }",
                 binary=values["binary"], rows=values["engine"])  # fmt: skip
        query("every type, text", "SELECT * FROM golden ORDER BY id", answer="Done { rows: 2, matched: 0 }",
              text=values["text"], rows=values["engine"])  # fmt: skip
        query("no row", "SELECT id FROM golden WHERE id = 3", answer="Done { rows: 0, matched: 0 }", text=[], rows=[])
        query("rows matched and left as they are", "UPDATE golden SET c0 = -128 WHERE id = 1",
              answer="Done { rows: 0, matched: 1 }")  # fmt: skip
        query("a syntax error", "SELEC 1", error=[1064, "42000"])
        query("a duplicate key", "INSERT INTO golden (id) VALUES (1)", error=[1062, "23000"])
        query("an unknown table", "SELECT * FROM golden_none", error=[1146, "42S02"])
        exchange("an error of prepare", "prepare", b"\x16SELECT nothing FROM golden", error=[1054, "42S22"])
        query("an error behind rows", "SELECT id, IF(id = 2, (SELECT 1 UNION SELECT 2), 0) FROM golden ORDER BY id",
              error=[1242, "21000"])  # fmt: skip
        query("begin", "BEGIN", answer="Done { rows: 0, matched: 0 }", in_transaction=True)
        query("commit", "COMMIT", answer="Done { rows: 0, matched: 0 }", in_transaction=False)
        query("two results and their OK", "CALL golden_two()", answer="Done { rows: 2, matched: 0 }",
              rows=[["int 1"], ['str "b"']])  # fmt: skip
    run("DROP USER golden")
    run("DROP TABLE golden")
    run("DROP PROCEDURE golden_two")
    return {"server": version, "plugin": other_than(other), "exchanges": exchanges}


def other_than(plugin: str) -> str:
    """The plug-in that the account has."""
    return NATIVE if plugin == CACHING_SHA2 else CACHING_SHA2


def offers(greeting: str, capability: int) -> bool:
    """Whether the server's greeting has it."""
    data = bytes.fromhex(greeting)[4:]
    end = data.index(0, 1) + 1
    low, high = struct.unpack_from("<H", data, end + 13)[0], struct.unpack_from("<H", data, end + 18)[0]
    return bool((low | high << 16) & capability)
