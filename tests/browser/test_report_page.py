"""The report in a real browser: charts are drawn, phones do not scroll sideways, night is dark, paper has it all."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.chromium import Browser, executable
from tests.report import builder

from dbdyno.report.build import build_document
from dbdyno.report.html import render_html
from dbdyno.report.material import Material
from dbdyno.report.words import Words

pytestmark = pytest.mark.needs("chromium")

# Sweeps of two workloads, two charts each, and the course over time.
CHARTS = 5


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = executable()
    assert program is not None
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outcomes = {"rw/serverdb/c16/r1": {"outages": (builder.OUTAGE,)}}
    built = builder.entries(outcomes=outcomes)
    made = Material(built.campaign, tuple(built.trials), built.samples.__getitem__, Words("en"))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(build_document(made), made.words), encoding="utf-8")
    return path


def paths_drawn(browser: Browser) -> list[int]:
    """Of each chart, the number of paths that have a stroke of a series' colour."""
    script = """[...document.querySelectorAll('.plot')].map(plot =>
        [...plot.querySelectorAll('svg path')].filter(path => (path.getAttribute('d') || '').length > 20).length)"""
    return list(browser.value(script))


def test_charts_are_drawn_without_a_complaint_or_a_request(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.open(page)
    drawn = paths_drawn(browser)
    assert len(drawn) == CHARTS
    assert min(drawn) >= 4  # two sides, each a line and its points
    assert browser.complaints() == []
    assert browser.requests() == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_phone_does_not_scroll_sideways(browser: Browser, page: Path, width: int) -> None:
    browser.emulate(width, 844)
    browser.open(page)
    assert browser.value("document.documentElement.scrollWidth") == width
    widths = browser.value("[...document.querySelectorAll('.plot svg')].map(svg => svg.getBoundingClientRect().width)")
    assert len(widths) == CHARTS
    assert max(widths) <= width


def test_night_is_dark_and_charts_follow(browser: Browser, page: Path) -> None:
    def brightness(of: str) -> float:
        red, green, blue = map(int, re.findall(r"\d+", of)[:3])
        return (red + green + blue) / 3

    browser.emulate(dark=True)
    browser.open(page)
    assert brightness(browser.value("getComputedStyle(document.body).backgroundColor")) < 50
    assert brightness(browser.value("getComputedStyle(document.body).color")) > 180
    labels = browser.value("[...document.querySelectorAll('.plot svg text')].map(t => getComputedStyle(t).fill)")
    assert labels
    assert min(brightness(label) for label in labels) > 120
    browser.emulate(dark=False)  # the reader's lamp goes on: no reload
    browser.wait_frame()
    labels = browser.value("[...document.querySelectorAll('.plot svg text')].map(t => getComputedStyle(t).fill)")
    assert max(brightness(label) for label in labels) < 120


def test_choosing_another_trial_draws_it(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.open(page)
    legend = "[...document.querySelectorAll('.timeline svg text')].map(t => t.textContent).join(' | ')"
    before = browser.value(legend)
    assert "serverdb · 16 connections · round 1" in before
    assert "outage 08006" in before
    assert "warm-up" in before
    browser.value("""(() => {
        const select = document.querySelectorAll('.timeline select')[1];
        const option = [...select.options].find(o => o.textContent === 'serverdb · 4 connections · round 3');
        select.value = option.value;
        select.dispatchEvent(new Event('change'));
    })()""")
    browser.wait_frame()
    after = browser.value(legend)
    assert "serverdb · 4 connections · round 3" in after
    assert "outage" not in after


def test_charts_keep_their_room_before_they_are_drawn(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.open(page)
    heights = "[...document.querySelectorAll('.plot')].map(plot => plot.getBoundingClientRect().height)"
    drawn = browser.value(heights)
    browser.value("document.querySelectorAll('.plot').forEach(plot => plot.replaceChildren())")
    assert browser.value(heights) == drawn


def test_every_table_has_a_caption_and_heads_with_a_scope(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.open(page)
    assert browser.value("[...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)")
    assert browser.value("[...document.querySelectorAll('th')].every(th => th.scope)")
    assert browser.value("[...document.querySelectorAll('select')].every(s => s.labels.length === 1)")
    assert browser.value("[...document.querySelectorAll('.plot')].every(p => p.getAttribute('aria-label'))")


def test_paper_has_the_charts_and_the_folded_details(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.emulate(dark=True)
    browser.open(page)
    data = browser.pdf(tmp_path / "report.pdf")
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 3
    # Curves are vector paths in the page's content: count the strokes ("S") of all streams.
    strokes = 0
    for match in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            content = zlib.decompress(match[1])
        except zlib.error:
            continue
        strokes += len(re.findall(rb"\nS\b", content))
    assert strokes > 40
    browser.emulate()
    # What a reader at the screen had folded is folded again.
    assert browser.value("document.querySelectorAll('details[open]').length") == 0


def test_printing_opens_folded_details(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.open(page)
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    folds = "[...document.querySelectorAll('details')].map(fold => fold.open)"
    assert browser.value(folds)
    assert all(browser.value(folds))
    browser.value("window.dispatchEvent(new Event('afterprint'))")
    assert not any(browser.value(folds))


def test_reads_without_javascript(browser: Browser, page: Path) -> None:
    browser.emulate()
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page, draws=False)
        # The page's own scripts are off; the debugger's still run.
        assert browser.value("document.querySelectorAll('.plot svg').length") == 0
        text = browser.value("document.body.innerText")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "It depends on the number of connections" in text
    assert "The charts need JavaScript" in text
