"""Reports of campaigns: what a reader is told, and what a hostile server cannot do to them.

DBDYNO_GOLDEN=write pytest tests/report      writes the golden files anew; read the difference before committing it
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.report import builder

from dbdyno.model.errors import RunError, UsageError
from dbdyno.model.sample import Counts, Health
from dbdyno.record.store import Store
from dbdyno.report import write_report
from dbdyno.report.build import build_document
from dbdyno.report.document import Notice, Statement
from dbdyno.report.html import render_html
from dbdyno.report.jsonfile import trial_json
from dbdyno.report.markdown import render_markdown
from dbdyno.report.material import Material
from dbdyno.report.words import LANGUAGES, TABLE, Words

HERE = Path(__file__).parent
SMALL = builder.plan(connections=[1], rounds=2, duration="0.4s", warmup="0s")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>|`*[a](http://x.example)\u2028\"'&amp;"


def material(lang: str = "en", **how: Any) -> Material:
    built = builder.entries(**how)
    return Material(built.campaign, tuple(built.trials), built.samples.__getitem__, Words(lang))


def statements(of: Material) -> list[Statement]:
    return [block for block in build_document(of).sections[0].blocks if isinstance(block, Statement)]


def notices(of: Material, *, warning: bool) -> str:
    blocks = build_document(of).sections[0].blocks
    return "\n".join(block.text for block in blocks if isinstance(block, Notice) and block.warning == warning)


def one_sided(factor: float) -> builder.Speed:
    """Both scale alike; the server is ``factor`` times as fast."""

    def speed(target: str, workload: str, connections: int) -> tuple[float, float]:
        tps = 500.0 * connections**0.5 * (factor if target == "serverdb" else 1.0)
        return tps, connections / tps * 900

    return speed


@pytest.mark.parametrize("lang", LANGUAGES)
def test_whole_markdown_report_reads_as_agreed(lang: str) -> None:
    outcomes = {
        "rw/serverdb/c16/r2": {"outages": (builder.OUTAGE,), "notes": ("one statement was not prepared",)},
        "ps/filedb/c16/r1": {"health": Health(0.5, 0.97, 11.2, bound=True, why="the client used 97 % of a core")},
    }
    text = render_markdown(build_document(material(lang, outcomes=outcomes)))
    golden = HERE / "golden" / f"report.{lang}.md"
    if os.environ.get("DBDYNO_GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_swapping_baseline_and_other_swaps_the_sentence() -> None:
    forward = statements(material(speed=one_sided(1.5)))
    backward = statements(material(speed=one_sided(1.5), of=builder.plan(baseline="serverdb")))
    for one, two in zip(forward, backward, strict=True):
        assert one.sentence.startswith("serverdb is faster than filedb: +")
        assert two.sentence.startswith("filedb is slower than serverdb: −")
        assert (one.tone, two.tone) == ("faster", "slower")
        growth, shrinkage = (float(re.findall(r"[+−]([\d.]+)", each.sentence)[0]) for each in (one, two))
        assert (1 + growth / 100) * (1 - shrinkage / 100) == pytest.approx(1, abs=0.002)


def test_sweep_whose_direction_changes_says_so_the_same_from_both_sides() -> None:
    forward = statements(material())[0].sentence
    backward = statements(material(of=builder.plan(baseline="serverdb")))[0].sentence
    assert re.search(r"serverdb is faster than filedb at 4 .* and 16 .*, slower at 1 connection", forward)
    assert re.search(r"filedb is faster than serverdb at 1 connection .*, slower at 4 .* and 16", backward)


def test_target_against_itself_is_never_faster_even_when_figures_differ() -> None:
    environments = {name: builder.environment("serverdb") for name in ("filedb", "serverdb")}
    found = material(speed=one_sided(1.5), environments=environments)
    for statement in statements(found):
        assert "are the same database" in statement.sentence
        assert statement.tone == "quiet"
    assert "▲" not in render_markdown(build_document(found))


def test_same_server_with_another_setting_is_not_the_same_database() -> None:
    changed = builder.environment("serverdb")
    changed["server"]["settings"] = {**changed["server"]["settings"], "shared_buffers": "1GB"}
    environments = {"filedb": changed, "serverdb": builder.environment("serverdb")}
    found = material(speed=one_sided(1.5), environments=environments)
    assert all("is faster" in statement.sentence for statement in statements(found))
    text = render_markdown(build_document(found))
    assert "| shared_buffers | 1GB | 128MB |" in text
    assert "| work_mem | 4MB | 4MB |" not in text


def test_one_round_gives_no_verdict_but_says_how_to_get_one() -> None:
    found = statements(material(of=builder.plan(rounds=1), speed=one_sided(3)))
    assert all(each.sentence.startswith("Cannot tell") and "three" in each.sentence for each in found)


def test_unequal_durability_is_a_warning() -> None:
    loose = builder.environment("serverdb", durable_commit=False, durability={"fsync": "off"})
    found = material(environments={"serverdb": loose})
    assert "COMMIT is durable on filedb, not on serverdb" in notices(found, warning=True)
    assert "a crash may lose committed transactions (fsync = off)" in notices(found, warning=False)


def test_bound_client_and_shared_process_stand_beside_the_answer() -> None:
    health = Health(0.5, 0.99, 11.0, bound=True, why="the client used 99 % of a core")
    found = material(outcomes={"rw/serverdb/c16/r1": {"health": health}})
    assert "rw · serverdb · 16 connections: the client used 99 % of a core" in notices(found, warning=True)
    assert "filedb shares the process" in notices(found, warning=False)


def test_sides_driven_by_different_drives_are_told_and_equal_ones_are_not() -> None:
    assert "serverdb by the load engine, filedb through a Python driver" in notices(material(), warning=False)
    built = builder.entries(of=SMALL)
    alike = {
        entry.trial.id.split("/", 1)[1]: {"drive": "engine 0.1.0, one epoll loop"}
        for entry in built.trials
        if entry.trial.target == "filedb"
    }
    assert alike
    assert "driven differently" not in notices(material(of=SMALL, outcomes=alike), warning=False)


def test_interrupted_campaign_reports_what_there_is() -> None:
    found = material(skip=["rw/filedb/c16/r3", "ps/serverdb/c1/r2"])
    assert "34 of 36 trials" in notices(found, warning=True)
    assert all(statement.tone != "quiet" for statement in statements(found))


def test_failed_trial_is_no_evidence_and_its_reason_is_told() -> None:
    failed = {"state": "failed", "reason": "the server went away", "counts": Counts(scheduled=10, failed=10)}
    found = material(outcomes={"rw/serverdb/c4/r1": failed})
    cell = next(each for each in found.cells if (each.workload, each.target, each.connections) == ("rw", "serverdb", 4))
    assert sorted(cell.tps_by_round) == [2, 3]
    text = render_markdown(build_document(found))
    assert "rw/serverdb/c4/r1: the server went away" in text
    assert "0.00 (failed)" in text


def test_asked_rate_compares_latency_and_says_so() -> None:
    def speed(target: str, workload: str, connections: int) -> tuple[float, float]:
        return 300.0, 4.0 if target == "filedb" else 2.0

    found = statements(material(of=builder.plan(rate=300.0), speed=speed))
    assert all(re.match(r"serverdb is faster than filedb: −\d+\.\d\s% p95 latency", each.sentence) for each in found)


def test_three_targets_are_each_compared_with_the_baseline() -> None:
    targets = [{"name": name, "url": f"sqlite:///{name}.db"} for name in ("old", "new", "tuned")]
    environments = {
        name: {**builder.environment("filedb"), "address": f"sqlite:///{name}.db"} for name in ("old", "new", "tuned")
    }

    def speed(target: str, workload: str, connections: int) -> tuple[float, float]:
        tps = {"old": 500.0, "new": 800.0, "tuned": 300.0}[target]
        return tps, connections / tps * 900

    found = statements(material(of=builder.plan(target=targets), speed=speed, environments=environments))
    assert [each.sentence.split(":")[0] for each in found[:2]] == ["new is faster than old", "tuned is slower than old"]


def test_single_target_is_described_without_a_comparison() -> None:
    found = material(of=builder.plan(target=[{"name": "filedb", "url": "sqlite:///x.db"}]))
    assert "transactions per second" in statements(found)[0].sentence
    assert "baseline" not in render_markdown(build_document(found))


class Elements(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "srcset", "poster") and not (value or "").startswith("#"):
                self.loads.append(f"{tag} {name}={value}")
            if name.startswith("on"):
                self.handlers.append(f"{tag} {name}={value}")


def elements(page: str) -> Elements:
    parsed = Elements()
    parsed.feed(page)
    return parsed


def test_page_loads_nothing_from_anywhere() -> None:
    found = material()
    page = render_html(build_document(found), found.words)
    assert elements(page).loads == ["link href=data:,"]
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def hostile(lang: str = "en") -> Material:
    """A campaign whose server, plan, source and errors try to break out."""
    surroundings = builder.environment("serverdb", version=HOSTILE, comment=HOSTILE, isolation=HOSTILE)
    surroundings["server"]["settings"] = {HOSTILE: HOSTILE, "fsync": HOSTILE}
    surroundings["server"]["durability"] = {"fsync": HOSTILE}
    outcome = {"errors": {HOSTILE: 3}, "notes": (HOSTILE,), "reason": HOSTILE, "state": "failed", "drive": HOSTILE}
    return material(
        lang,
        environments={"serverdb": surroundings},
        outcomes={"rw/serverdb/c16/r1": outcome},
        plan_text=f"# ``` {HOSTILE}\n",
    )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_hostile_texts_stay_texts_in_html(lang: str) -> None:
    found = hostile(lang)
    parsed = elements(render_html(build_document(found), found.words))
    assert parsed.scripts == 3  # the data, the charts' library, our own
    assert parsed.handlers == []
    assert parsed.loads == ["link href=data:,"]


def test_hostile_texts_stay_texts_in_markdown() -> None:
    text = render_markdown(build_document(hostile()))
    outside = re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", text)
    assert not re.search(r"(?<!\\)<(script|img)", outside)
    assert not re.search(r"(?<!\\)\]\(http", outside)
    widths = {line.count("|") - line.count(r"\|") for line in outside.splitlines() if r"\|" in line and line[0] == "|"}
    assert widths <= {3, 5, 7, 8, 9, 10, 11, 12}


def test_page_of_a_quickstart_is_of_modest_size() -> None:
    found = material()
    assert len(render_html(build_document(found), found.words).encode()) < 1_200_000


def test_long_series_are_thinned_without_losing_transactions() -> None:
    of = builder.plan(duration="200s", connections=[1], rounds=1)
    found = material(of=of, speed=lambda *_: (50.0, 5.0))
    page = render_html(build_document(found), found.words)
    data = json.loads(page.split('id="report-data">')[1].split("</script>")[0])
    trial = data["charts"][-1]["trials"][0]
    assert len(trial["begin"]) <= 602
    entry = found.trials[0]
    assert entry.outcome is not None
    lengths = trial["seconds"] if isinstance(trial["seconds"], list) else [trial["seconds"]] * len(trial["begin"])
    shown = sum(
        tps * seconds for tps, seconds, begin in zip(trial["tps"], lengths, trial["begin"], strict=True) if begin >= 0
    )
    assert shown == pytest.approx(entry.outcome.counts.committed, rel=0.001)


def test_every_format_is_written_and_says_the_same(tmp_path: Path) -> None:
    campaign = builder.build(tmp_path / "store.db", SMALL)
    with Store.open(str(tmp_path / "store.db")) as store:
        written = write_report(store, campaign, tmp_path / "out" / "deep")
        entries = store.trials(campaign)
        samples = sum(len(store.samples(entry.id)) for entry in entries)
    assert set(written) == {"html", "md", "csv", "json"}
    document = json.loads(written["json"].read_text(encoding="utf-8"))
    rows = list(csv.DictReader(io.StringIO(written["csv"].read_text(encoding="utf-8"))))
    assert len(document["trials"]) == len(rows) == len(entries) == 8
    for row, trial in zip(rows, document["trials"], strict=True):
        assert float(row["tps"]) == trial["tps"]
        assert float(row["response_p95_ms"]) == trial["latency_ms"]["p95"]
    sampled = list(csv.DictReader(io.StringIO((tmp_path / "out/deep/samples.csv").read_text(encoding="utf-8"))))
    assert len(sampled) == samples
    assert {comparison["workload"] for comparison in document["comparisons"]} == {"rw", "ps"}


def test_json_of_a_trial_has_every_promised_field_in_every_state() -> None:
    found = material(skip=["rw/filedb/c1/r1"])
    promised = {
        *("workload", "target", "connections", "round", "seconds", "committed", "rolled_back", "failed", "unknown"),
        *("skipped", "retries", "reconnects", "tps", "qps", "latency_ms", "service_ms", "errors", "generator"),
        *("id", "state", "reason", "unfinished", "scheduled", "lag_ms", "statements", "rate", "drive", "program"),
        "started",
    }
    for entry in found.trials[:2]:
        made = trial_json(entry)
        assert promised <= set(made)
        assert set(made["latency_ms"]) == {"mean", "p50", "p95", "p99", "p999", "max"} == set(made["service_ms"])
        assert {"cpu_us_per_query", "cpu_share", "bound"} <= set(made["generator"])
    pending = trial_json(found.trials[0])
    assert (pending["state"], pending["tps"], pending["latency_ms"]["p95"]) == ("pending", None, None)


def test_csv_cells_cannot_be_formulas(tmp_path: Path) -> None:
    outcome = {"reason": "=cmd|' /C calc'!A0", "state": "failed"}
    campaign = builder.build(tmp_path / "store.db", SMALL, outcomes={"rw/filedb/c1/r1": outcome})
    with Store.open(str(tmp_path / "store.db")) as store:
        written = write_report(store, campaign, tmp_path, formats=["csv"])
    rows = list(csv.DictReader(io.StringIO(written["csv"].read_text(encoding="utf-8"))))
    assert rows[0]["reason"].startswith("'=")


def test_unknown_format_and_language_get_a_sentence(tmp_path: Path) -> None:
    campaign = builder.build(tmp_path / "store.db", SMALL)
    with Store.open(str(tmp_path / "store.db")) as store:
        with pytest.raises(UsageError, match="did you mean 'html'"):
            write_report(store, campaign, tmp_path, formats=["htm"])
        with pytest.raises(UsageError, match="no reports in 'fr'"):
            write_report(store, campaign, tmp_path, lang="fr")
        (tmp_path / "file").write_text("")
        with pytest.raises(RunError, match="cannot be written"):
            write_report(store, campaign, tmp_path / "file")


def test_both_languages_fill_in_the_same_fields() -> None:
    for key, texts in TABLE.items():
        english, chinese = (set(re.findall(r"{(\w+)", text)) for text in texts)
        assert english == chinese, key


def test_chinese_report_has_no_english_heading() -> None:
    words = Words("zh")
    for key in TABLE:
        if key.startswith(("heading.", "caption.", "sentence.")):
            assert re.search(r"[\u4e00-\u9fff]", words(key, **dict.fromkeys(re.findall(r"{(\w+)", TABLE[key][1]), "x")))


def test_machine_that_was_busy_with_something_else_is_a_warning() -> None:
    surroundings = builder.environment("filedb")
    surroundings["client"]["load_average"] = [9.5, 4.0, 2.0]
    assert "load average 9.5 on 2 cores" in notices(material(environments={"filedb": surroundings}), warning=True)
    assert "load average" not in notices(material(), warning=True)


def test_facts_that_move_from_trial_to_trial_are_ranges_not_machines() -> None:
    free = iter(range(1, 1000))
    built = builder.entries(of=SMALL)
    for entry in built.trials:
        entry.environment["client"]["memory_available_bytes"] = next(free) * 2**30  # type: ignore[index]
    made = Material(built.campaign, tuple(built.trials), built.samples.__getitem__, Words("en"))
    text = render_markdown(build_document(made))
    assert text.count("**Client machine") == 1
    assert "- Memory available: 1.0 GiB to 8.0 GiB" in text
