"""Passwords among the words of a command: found, masked, and gone from the process title."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.cli.argv_secrets import masked, passwords_in, scrub
from dbdyno.targets.url import parse_address


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("postgresql://u:secret@h/db", "postgresql://u:***@h/db"),
        (
            "mysql://u@tenant#cluster:se:cr@et@h:2881/db?tls=require",
            "mysql://u@tenant#cluster:***@h:2881/db?tls=require",
        ),
        ("--store=postgresql+psycopg://u:secret@h/db", "--store=postgresql+psycopg://u:***@h/db"),
        ("target.0.url=mysql://:secret@h/db", "target.0.url=mysql://:***@h/db"),
        ("postgresql://u:a/b?c#d@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h/db?user=u&password=secret&x=1", "postgresql://h/db?user=u&password=***&x=1"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("sqlite:///a:b.db", "sqlite:///a:b.db"),
        ("name:word@place", "name:word@place"),
    ],
)
def test_a_password_in_a_word_is_masked_and_nothing_else(word: str, shown: str) -> None:
    assert masked(word) == shown


@given(st.text(st.characters(codec="utf-8", exclude_characters="%", exclude_categories=("Cs", "Cc")), min_size=1))
def test_what_the_target_takes_for_a_password_is_what_is_masked(password: str) -> None:
    url = f"mysql://user:{password}@host:3306/db"
    address = parse_address(url, 3306)
    assert address.password is not None
    assert address.password.reveal() in passwords_in([url])
    assert masked(url) == "mysql://user:***@host:3306/db"


def test_a_percent_encoded_password_is_recognised_in_both_spellings() -> None:
    assert passwords_in(["postgresql://u:p%40ss@h/db"]) == {"p%40ss", "p@ss"}


def test_scrubbing_leaves_no_part_of_a_longer_password() -> None:
    assert scrub("login as long-secret or secret", {"secret", "long-secret"}) == "login as *** or ***"


def test_the_title_and_environment_of_a_running_command_hold_no_password(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from dbdyno.cli.argv_secrets import hide_passwords\n"
        "words = hide_passwords()\n"
        "print(open('/proc/self/cmdline').read().replace(chr(0), ' '))\n"
        "print('distinct-secret-word' in open('/proc/self/environ').read())\n"
        "print(words == sys.argv[1:], words)\n"
    )
    words = ["bench", "mysql://u:distinct-secret-word@127.0.0.1:1/db", "--opt", "a=b c", "日本", ""]
    done = subprocess.run(
        [sys.executable, str(program), *words], capture_output=True, text=True, check=True, timeout=60
    )
    title, environment, given_words = done.stdout.splitlines()
    assert "mysql://u:***@127.0.0.1:1/db --opt a=b c 日本" in title
    assert "distinct-secret-word" not in title
    assert environment == "False"
    assert given_words == f"True {words}"
