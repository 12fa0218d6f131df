"""A wrong plan gives every error at once, in the user's words; a right one means what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.campaign.oneoff import oneoff_plan
from dbdyno.campaign.planerrors import toml_keys
from dbdyno.campaign.planfile import parse_plan, read_plan, shipped_plan
from dbdyno.campaign.trials import estimate_s, expand
from dbdyno.model.errors import UsageError
from dbdyno.model.masking import holds_literal_password, mask_passwords, without_password
from dbdyno.model.plan import Plan, PlanHooks, PlanTarget, PlanWorkload

REPOSITORY = Path(__file__).resolve().parents[2]

GOOD = """
name = "nightly"
rounds = 2
connections = [1, 4]
duration = "1m30s"
warmup = "500ms"
[[target]]
name = "a"
url = "sqlite:///a.db"
[[target]]
name = "b"
url = "sqlite:////tmp/b.db?synchronous=off"
[[workload]]
name = "oltp_point_select"
options = { table_size = 1000 }
[[workload]]
name = "oltp_read_write"
label = "rw"
"""


def plan_of(text: str, *overrides: str, folder: Path = Path("/plans")) -> Plan:
    return parse_plan(text, "plan.toml", folder, overrides)[0]


def errors_of(text: str, *overrides: str) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse_plan(text, "plan.toml", Path("/plans"), overrides)
    return str(caught.value).splitlines()


BAD = """
name = "a b"
conections = [1]
connections = [0, 4, 4]
rounds = "three"
duration = "fast"
transactions = 5
isolation = "read commited"
order = "random"
rate = -1
baseline = "sqllite"
interval = "1ms"
seed = true
ignore_errors = 5.5

[[target]]
name = "sqlite"
url = "sqlite:///x.db?synchronus=full"

[[target]]
name = "sqlite"
ulr = "sqlite://joe:hunter2@h/db"

[[target]]
name = "my"
url = "sqlit://joe:hunter2@h/db"
server = "postgresql"

[[target]]
name = "pg"
server = "postgresq"
options = { a = [1] }

[[workload]]
name = "oltp_read_wrte"

[[workload]]
name = "oltp_read_write"
options = { table_sise = 5, tables = 0, rand_type = "unifrm" }

[[workload]]
name = "./nowhere.py"
lable = "x"

[hooks]
before_trail = "x"
after_trial = "client --password=hunter2"
"""

# ruff: noqa: E501
GOLDEN = """\
plan.toml: name: 'a b' is not a name; letters, digits and _ . + @ # : - are allowed, at most 64, no blanks
plan.toml: conections: unknown key; did you mean 'connections'?
plan.toml: connections: 0 is too small; it must be at least 1
plan.toml: connections: 4 is there twice
plan.toml: rounds: 'three' is not a whole number
plan.toml: duration: 'fast' is not a duration; write for example 30s, 1.5m, 200ms or 1h30m
plan.toml: transactions: a trial ends by duration or by transactions; leave one of the two out
plan.toml: isolation: 'read commited' is unknown; did you mean 'read committed'?
plan.toml: order: 'random' is unknown; allowed: blocks, interleaved
plan.toml: rate: -1 is too small; it must be more than 0
plan.toml: baseline: no target is named 'sqllite'; did you mean 'sqlite'?
plan.toml: interval: '1ms' is too small; it must be at least 0.01 s
plan.toml: seed: true is not a whole number
plan.toml: ignore_errors: 5.5 is not a list; write for example ignore_errors = ["1062"]
plan.toml: target: two targets are named 'sqlite'; names must differ
plan.toml: target.0.url: the URL's parameter 'synchronus' is unknown; did you mean 'synchronous'?
plan.toml: target.1.ulr: unknown key; did you mean 'url'?
plan.toml: target.1.url: missing; write url = "scheme://user@host:port/database" or server = "NAME"
plan.toml: target.2.server: a target has a url or a server, not both
plan.toml: target.2.url: unknown kind of database 'sqlit'; did you mean 'sqlite'?
plan.toml: target.3.options.a: [1] is not a text, a number, true or false
plan.toml: target.3.server: no managed server 'postgresq'; did you mean 'postgresql'?
plan.toml: workload.0.name: unknown workload 'oltp_read_wrte' (a file is written ./file.py); did you mean 'oltp_read_write'?
plan.toml: workload.1.options.table_sise: workload oltp_read_write has no option 'table_sise'; did you mean 'table_size'?
plan.toml: workload.1.options.tables: option tables = 0 is too small; it must be at least 1
plan.toml: workload.1.options.rand_type: option rand_type = 'unifrm' is unknown; did you mean 'uniform'?
plan.toml: workload.2.lable: unknown key; did you mean 'label'?
plan.toml: workload.2.name: workload file /plans/nowhere.py does not exist
plan.toml: hooks.before_trail: unknown key; did you mean 'before_trial'?
plan.toml: hooks.after_trial: a password is written out; take it from an environment variable
plan.toml: round: unknown key; did you mean 'rounds'?
"""


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_HOME", str(tmp_path / "home"))


def test_every_error_of_a_plan_is_said_at_once() -> None:
    assert errors_of(BAD, "round=5") == GOLDEN.splitlines()


def test_an_empty_plan_says_what_has_to_be_there() -> None:
    assert errors_of("") == [
        'plan.toml: name: missing; write name = "…"',
        "plan.toml: target: missing; add a [[target]] with a name and a url",
        "plan.toml: workload: missing; add a [[workload]] with a name",
        "plan.toml: connections: missing; write for example connections = [1, 4, 16]",
        'plan.toml: duration: missing; write for example duration = "30s", or transactions = 1000',
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = "x\nrounds = 1', "plan.toml:1:10: Illegal character '\\n'"),
        ("rounds = 1\nrounds = 2\n", "plan.toml:2:11: Cannot overwrite a value"),
        ("connections = [1,\n", "plan.toml: at the end: Invalid value"),
        ("connections 1\n", "plan.toml:1:13: Expected '=' after a key in a key/value pair"),
    ],
)
def test_what_is_not_toml_is_said_with_its_line(text: str, line: str) -> None:
    assert errors_of(text) == [line]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("connections=", "connections: is empty; write for example connections = [1, 4, 16]"),
        ("connections=1,x", "connections: 'x' is not a whole number"),
        ("rounds=1.5", "rounds: 1.5 is not a whole number"),
        ("rate=nan", "rate: nan is not a finite number"),
        ("duration=0", "duration: 0 is too small; it must be more than 0 s"),
        ("target.9.url=x", "--set target.9.url: there is no target.9; the plan has 2, counted from 0"),
        ("target.c.url=x", "--set target.c.url: no target is named 'c'; allowed: a, b"),
        ("target.0=5", "--set target.0: name a key of one of them, like target.0.name or target.*.options.KEY"),
        ("name.x=4", "--set name.x: name is not a table"),
        ("=4", "--set =4: is not KEY=VALUE, like rounds=5 or target.0.url=scheme://host/db"),
        ("rounds", "--set rounds: is not KEY=VALUE, like rounds=5 or target.0.url=scheme://host/db"),
        ("target.0.options.a=1", "target.0.options: only a managed server (server = …) has options"),
        ("workload.rw.name=", "workload.1.name: is empty; write name = \"…\""),
        ("workload.1.label=oltp_point_select", "workload: two workloads are labelled 'oltp_point_select'; set label = \"…\" apart"),
    ],
)  # fmt: skip
def test_overrides_are_judged_like_the_file(change: str, line: str) -> None:
    assert errors_of(GOOD, change) == [f"plan.toml: {line}"]


def test_a_plan_means_what_it_says() -> None:
    plan = plan_of(GOOD)
    assert (plan.duration_s, plan.warmup_s, plan.interval_s, plan.rounds) == (90.0, 0.5, 1.0, 2)
    assert [target.url for target in plan.target] == ["sqlite:////plans/a.db", "sqlite:////tmp/b.db?synchronous=off"]
    assert [(workload.label, dict(workload.options)) for workload in plan.workload] == [
        ("oltp_point_select", {"table_size": 1000}),
        ("rw", {}),
    ]
    assert plan.baseline_name == "a"


def test_overrides_change_what_they_name() -> None:
    plan = plan_of(
        GOOD, "rounds=5", "transactions=100", "connections=2", "target.b.url=sqlite:///c.db",
        "workload.*.options.tables=3", "workload.rw.options.rand_type=uniform", "isolation=serializable",
        "hooks.before_trial=sync", "target.0.server=postgresql", "ignore_errors=08006,1062",
    )  # fmt: skip
    assert (plan.rounds, plan.transactions, plan.duration_s, plan.connections) == (5, 100, None, (2,))
    assert (plan.target[0].url, plan.target[0].server) == (None, "postgresql")
    assert plan.target[1].url == "sqlite:////plans/c.db"
    assert [dict(workload.options) for workload in plan.workload] == [
        {"table_size": 1000, "tables": 3},
        {"tables": 3, "rand_type": "uniform"},
    ]
    assert (plan.hooks.before_trial, plan.isolation, plan.ignore_errors) == ("sync", "serializable", ("08006", "1062"))


def test_a_plan_survives_the_store() -> None:
    plan = plan_of(GOOD, "rate=500", "ignore_errors=[1062]")
    assert Plan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan


def test_home_is_dbdynos_own_folder(tmp_path: Path) -> None:
    plan = plan_of(GOOD, "target.a.url=sqlite:///{home}/q.db")
    assert plan.target[0].url == f"sqlite:///{tmp_path}/home/q.db"


def test_a_workload_file_is_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dbdyno.workload import Workload, transaction\n"
        "class Mine(Workload):\n    @transaction\n    def event(self, db, rand):\n        db.row('SELECT 1')\n"
    )
    plan = plan_of(GOOD, "workload.rw.name=./mine.py", folder=tmp_path)
    assert plan.workload[1].name == str(tmp_path / "mine.py")


def test_the_kept_text_has_no_password_and_says_what_was_overridden() -> None:
    _, text = parse_plan(
        GOOD.replace("sqlite:///a.db", "postgresql://joe:hunter2@h/db"), "p", Path("/"), ["name=other"]
    )
    assert "hunter2" not in text
    assert "postgresql://joe:***@h/db" in text
    assert text.endswith("\n\n# --set name=other\n")


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "nightly.toml").write_text("")
    with pytest.raises(UsageError, match=r"nihgtly\.toml does not exist; did you mean 'nightly\.toml'"):
        read_plan(tmp_path / "nihgtly.toml")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_plan(tmp_path)


@pytest.mark.parametrize("name", ["quickstart", "sysbench", "pgbench"])
def test_shipped_plans_are_right(name: str) -> None:
    plan, _ = read_plan(REPOSITORY / "plans" / f"{name}.toml")
    assert plan.name == name


def test_every_key_of_a_plan_is_explained() -> None:
    text = (REPOSITORY / "plans" / "README.md").read_text()
    for table in (Plan, PlanTarget, PlanWorkload, PlanHooks):
        for key in set(toml_keys(table)) - {"target", "workload", "hooks"}:
            assert f"`{key}`" in text, key


def test_quickstart_in_the_package_is_the_one_in_plans() -> None:
    assert shipped_plan("quickstart").read_text() == (REPOSITORY / "plans" / "quickstart.toml").read_text()


def test_quickstart_takes_less_than_its_minute_and_a_half() -> None:
    seconds = estimate_s(read_plan(shipped_plan("quickstart"))[0])
    assert seconds is not None
    assert seconds < 80


# The matrix


def cells(plan: Plan) -> list[tuple[int, str, int, str]]:
    return [(trial.round, trial.workload, trial.connections, trial.target) for trial in expand(plan, "c-1")]


def test_rounds_are_interleaved_and_the_targets_take_turns_in_beginning() -> None:
    assert cells(plan_of(GOOD)) == [
        (number, workload, count, target)
        for number, targets in ((1, "ab"), (2, "ba"))
        for workload in ("oltp_point_select", "rw")
        for count in (1, 4)
        for target in targets
    ]


def test_blocks_finish_a_target_before_the_next() -> None:
    order = [target for _, _, _, target in cells(plan_of(GOOD, "order=blocks"))]
    assert order == ["a"] * 8 + ["b"] * 8


def test_both_orders_run_the_same_trials_with_the_same_ids() -> None:
    interleaved, blocks = (expand(plan_of(GOOD, f"order={order}"), "c-1") for order in ("interleaved", "blocks"))
    assert {(trial.id, trial.load) for trial in interleaved} == {(trial.id, trial.load) for trial in blocks}
    assert [trial.number for trial in interleaved] == list(range(1, 17))
    assert len({trial.id for trial in interleaved}) == 16
    assert interleaved[0].id == "c-1/oltp_point_select/a/c1/r1"


def test_the_targets_of_a_cell_meet_the_same_values_and_no_two_cells_do() -> None:
    seeds: dict[tuple[str, int, int], set[int]] = {}
    for trial in expand(plan_of(GOOD, "seed=7"), "c-1"):
        seeds.setdefault((trial.workload, trial.connections, trial.round), set()).add(trial.load.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)
    assert seeds["oltp_point_select", 1, 1] == {7}


# One-off


def test_a_oneoff_is_a_plan_whose_text_gives_the_same_plan() -> None:
    plan, text = oneoff_plan(
        "oltp_read_write", "sqlite:///x.db", connections=[1, 8], options={"table-size": "1_000", "auto_inc": "off"},
        rate=100, isolation=None, rounds=2, ignore_errors=["a\"b\\c"],
    )  # fmt: skip
    assert parse_plan(text, "p", Path("/")) == (plan, text)
    assert (plan.connections, plan.rate, plan.duration_s, plan.rounds) == ((1, 8), 100.0, 10.0, 2)
    assert plan.target[0].name == "x"
    assert dict(plan.workload[0].options) == {"table-size": 1000, "auto_inc": False}


@pytest.mark.parametrize(
    ("workload", "target", "settings", "sentence"),
    [
        ("oltp_read_wrte", "sqlite:///x.db", {}, "unknown workload 'oltp_read_wrte' (a file is written ./file.py); did you mean 'oltp_read_write'"),
        ("oltp_read_write", "sqlit:///x.db", {}, "unknown kind of database 'sqlit'; did you mean 'sqlite'?"),
        ("oltp_read_write", "postgresq", {}, "no managed server 'postgresq'; did you mean 'postgresql'?"),
        ("oltp_read_write", "sqlite:///x.db", {"options": {"tabels": 1}}, "has no option 'tabels'; did you mean 'tables'?"),
        ("oltp_read_write", "sqlite:///x.db", {"duration": "1s", "transactions": 5}, "leave one of the two out"),
        ("oltp_read_write", "sqlite:///x.db", {"connections": [0]}, "connections: 0 is too small; it must be at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_oneoff_is_one_clear_sentence(
    workload: str, target: str, settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        oneoff_plan(workload, target, **settings)  # type: ignore[arg-type]
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


# Passwords


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("mysql://joe:pw@h:3306/db", "mysql://joe@h:3306/db"),
        ("mysql://joe:p@w:/?#x@h1:1,h2/db?a=b", "mysql://joe@h1:1,h2/db?a=b"),
        ("oceanbase://joe@tenant#cluster:pw@h/db", "oceanbase://joe@tenant#cluster@h/db"),
        ("mysql://joe@h:3306/db", "mysql://joe@h:3306/db"),
        ("mysql://h:3306/db", "mysql://h:3306/db"),
        ("sqlite:////a:b@c/x.db", "sqlite:////a:b@c/x.db"),
        ("sqlite:///x.db", "sqlite:///x.db"),
        ("postgresql", "postgresql"),
    ],
)
def test_passwords_are_cut_out_of_urls(url: str, clean: str) -> None:
    assert without_password(url) == clean


@given(st.text(st.characters(exclude_characters="\"'", exclude_categories=("Z", "C")), min_size=4))
def test_no_password_survives_masking(password: str) -> None:
    secret = f"hunter2{password}"
    assert "hunter2" not in mask_passwords(f'url = "mysql://joe:{secret}@h/db"')
    assert without_password(f"mysql://joe:{secret}@h/db") == "mysql://joe@h/db"


@pytest.mark.parametrize(
    ("command", "literal"),
    [
        ("client --password=hunter2", True),
        ("MYSQL_PWD=hunter2 client", True),
        ("PGPASSWORD='hunter2' psql", True),
        ("curl http://joe:hunter2@host/drop", True),
        ('client --password="$SECRET"', False),
        ("PGPASSWORD=$SECRET psql", False),
        ("PWD=/tmp sync", False),
        ("sync; echo 3 > /proc/sys/vm/drop_caches", False),
    ],
)
def test_hooks_with_a_password_written_out_are_refused(command: str, literal: bool) -> None:
    assert holds_literal_password(command) is literal


def test_settings_that_hold_a_password_are_masked() -> None:
    masked = mask_passwords('{"primary_conninfo":"host=a password=hunter2 user=b","password_encryption":"scram"}')
    assert masked == '{"primary_conninfo":"host=a password=*** user=b","password_encryption":"scram"}'
