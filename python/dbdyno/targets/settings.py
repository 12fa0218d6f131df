"""Server variables as they are kept on the record: everything but secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dbdyno.targets.url import Address

# Names whose values are, or may contain, credentials: connection strings, commands with logins, key material.
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|credential|conninfo|private_key|access_key|_token$|api_key|_command$|init_connect",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|://[^/\s:@]*:[^@\s]+@|password\s*=", re.IGNORECASE)
# Shorter passwords occur in innocent values (a password "1" in "100") and would blank the record.
_TELLING_LENGTH = 4


def kept(variables: Iterable[tuple[object, object]], address: Address) -> dict[str, str]:
    """Variables without secrets, values as text. Dropped by name, by form, and where the login's password stands."""
    password = address.password.reveal() if address.password is not None else ""
    telling = password if len(password) >= _TELLING_LENGTH else ""
    result: dict[str, str] = {}
    for name, value in variables:
        text = "" if value is None else value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        if _SECRET_NAME.search(str(name)) or _SECRET_VALUE.search(text) or (telling and telling in text):
            continue
        result[str(name)] = text
    return result
