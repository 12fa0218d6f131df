"""What the READMEs show works as they show it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.command_line import CommandLine

from dbdyno.campaign.planfile import read_plan
from dbdyno.cli import app
from dbdyno.targets.registry import family_of_scheme
from dbdyno.targets.url import split_scheme

ROOT = Path(__file__).parents[2]
README = ("README.md", "README.zh.md")


def block(name: str, first: str) -> str:
    """The indented block of a README that begins with that line, without the indent and the commands after it."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    start = lines.index(f"    {first}")
    found = []
    for line in lines[start:]:
        if line and not line.startswith("    "):
            break
        if line.startswith("    dbdyno "):
            break
        found.append(line[4:])
    return "\n".join(found) + "\n"


def commands(name: str) -> list[str]:
    """Every command line of a README."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("    dbdyno ")]


@pytest.mark.parametrize("name", README)
def test_the_workload_of_ones_own_runs_and_its_check_holds(dbdyno: CommandLine, name: str) -> None:
    dbdyno.write("mine.py", block(name, "# mine.py"))
    bench = next(line for line in commands(name) if "./mine.py" in line and line.startswith("dbdyno bench"))
    ended = dbdyno.ok(*shlex.split(bench)[1:], "-n", "200", "--json")
    assert ended.json["trials"][0]["committed"] == 200
    check = next(line for line in commands(name) if line.startswith("dbdyno check ./mine.py"))
    assert "ok      money" in dbdyno.ok(*shlex.split(check)[1:]).stdout


@pytest.mark.parametrize("name", README)
def test_the_plan_is_a_plan(tmp_path: Path, name: str) -> None:
    path = tmp_path / "upgrade.toml"
    path.write_text(block(name, "# upgrade.toml"), encoding="utf-8")
    plan, _ = read_plan(path)
    assert len(plan.target) == 2


@pytest.mark.parametrize("name", README)
def test_every_url_is_one_of_a_family(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    urls = set(re.findall(r"[a-z]+://[^\s`）)\"]+", text)) - {"https://"}
    databases = [url for url in urls if not url.startswith("http")]
    assert len(databases) >= 6
    for url in databases:
        parts = split_scheme(url)
        assert parts is not None
        family_of_scheme(parts[0]).parse(url)


@pytest.mark.parametrize("name", README)
def test_every_command_and_option_exists(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in commands(name):
        _, command, *words = shlex.split(line)
        assert command in app.COMMANDS, line
        app.run_words([command, "--help"])
        known = capsys.readouterr().out
        for word in words:
            if word.startswith("-"):
                assert re.search(rf"(^|\s|,){re.escape(word)}\b", known), f"{line}: no option {word}"


@pytest.mark.parametrize("name", README)
def test_every_link_leads_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / link).exists(), f"{name} links to {link}"
