"""Verdicts in words. Also what ``dbdyno compare`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analysis.comparison import Comparison
from dbdyno.analysis.verdict import Answer, Reason, Verdict
from dbdyno.model.units import format_percent
from dbdyno.report.document import Tone
from dbdyno.report.words import Words

MARKS = {Answer.FASTER: "▲", Answer.SLOWER: "▼", Answer.NO_DIFFERENCE: "=", Answer.CANNOT_TELL: "?"}


def change(ratio: float) -> str:
    """A ratio as growth in per cent with a real minus sign: ``"−3.4 %"``. A non-breaking space holds it together."""
    return format_percent(ratio).replace("-", "−").replace(" ", "\N{NO-BREAK SPACE}")


def size(limit: float) -> str:
    """A difference without direction: 0.034 → ``"3.4 %"``."""
    return change(1 + limit).lstrip("+")


def tone(verdict: Verdict) -> Tone:
    """How an answer is coloured."""
    tones: dict[Answer, Tone] = {Answer.FASTER: "faster", Answer.SLOWER: "slower"}
    return tones.get(verdict.answer, "quiet")


def answer(verdict: Verdict, words: Words) -> str:
    """One or two words for a table: ``"▲ faster"``, ``"= within 3.4 %"``, ``"? cannot tell"``."""
    keys = {
        Answer.FASTER: "short.faster",
        Answer.SLOWER: "short.slower",
        Answer.NO_DIFFERENCE: "short.no_difference",
        Answer.CANNOT_TELL: "short.cannot_tell",
    }
    text = words(keys[verdict.answer], limit=size(verdict.limit or 0.0))
    return f"{MARKS[verdict.answer]} {text}"


def interval(verdict: Verdict, words: Words) -> str:
    """``"+1.2 % to +3.4 %"``; empty without an interval."""
    if verdict.low is None or verdict.high is None:
        return ""
    return words("interval", low=change(verdict.low), high=change(verdict.high))


def sentence(comparison: Comparison, words: Words) -> str:
    """The answer for one workload: who is faster, by how much, how sure. Swapping the sides swaps it."""
    overall = comparison.overall
    names = {"other": comparison.other, "baseline": comparison.baseline}
    if comparison.mixed:
        return words(
            "sentence.mixed",
            **names,
            faster=_places(comparison, comparison.faster_at, words),
            slower=_places(comparison, comparison.slower_at, words),
        )
    fields = {
        **names,
        "metric": words(f"metric.{comparison.metric}"),
        "change": change(overall.ratio) if overall.ratio is not None else "–",
        "interval": interval(overall, words),
        "limit": size(overall.limit or 0.0),
        "confidence": words.percent(overall.confidence),
    }
    if overall.answer is Answer.CANNOT_TELL:
        key = {
            Reason.NO_ROUNDS: "sentence.no_rounds",
            Reason.ONE_ROUND: "sentence.one_round",
            Reason.NOTHING_COMMITTED: "sentence.nothing_committed",
            Reason.WIDE: "sentence.wide",
            Reason.SAME_DATABASE: "sentence.same_database",
        }.get(overall.reason, "sentence.arithmetic")
    else:
        key = f"sentence.{overall.answer.name.lower()}"
    return words(key, **fields)


def evidence(comparison: Comparison, words: Words) -> str:
    """What stands behind the sentence: means over which connection counts, rounds, and where it does not hold."""
    parts = []
    overall = comparison.overall
    if comparison.mixed and overall.ratio is not None:
        parts.append(
            words(
                "evidence.mixed",
                change=change(overall.ratio),
                interval=interval(overall, words),
                confidence=words.percent(overall.confidence),
            )
        )
    if comparison.metric == "p95":
        parts.append(words("evidence.p95"))
    if overall.rounds:
        counts = words.listed([str(count) for count in comparison.compared])
        key = "evidence.geometric" if len(comparison.compared) > 1 else "evidence.single"
        parts.append(words(key, counts=counts))
        key = "evidence.paired" if overall.paired else "evidence.unpaired"
        parts.append(words.count(key, overall.rounds))
    if not comparison.mixed and len(comparison.compared) > 1:
        parts += _exceptions(comparison, words)
    if comparison.left_out:
        counts = words.listed([str(count) for count in comparison.left_out])
        parts.append(words("evidence.left_out", counts=counts))
    return words.sentences(parts)


def _exceptions(comparison: Comparison, words: Words) -> list[str]:
    """Connection counts whose own answer is another one than the overall answer.

    An opposite direction is claimed at the joint confidence only; that a count shows nothing by itself is said as
    the table says it, at its own.
    """
    overall, found = comparison.overall, []
    if overall.reason is Reason.SAME_DATABASE:
        return []
    opposite = comparison.slower_at if overall.answer is Answer.FASTER else comparison.faster_at
    if overall.decided:
        open_at = [count for count in comparison.compared if not comparison.cells[count].decided]
        if open_at and len(open_at) < len(comparison.compared):
            counts = words.listed([str(count) for count in open_at])
            found.append(words("evidence.open_at", counts=counts))
        elif open_at:
            found.append(words("evidence.only_together"))
        if opposite:
            key = "evidence.slower_at" if overall.answer is Answer.FASTER else "evidence.faster_at"
            found.append(words(key, other=comparison.other, places=_places(comparison, opposite, words)))
        return found
    for key, places in (("evidence.faster_at", comparison.faster_at), ("evidence.slower_at", comparison.slower_at)):
        if places:
            found.append(words(key, other=comparison.other, places=_places(comparison, places, words)))
    return found


def _places(comparison: Comparison, counts: Sequence[int], words: Words) -> str:
    """``"1 connection (+3.4 %) and 4 connections (+8.1 %)"``."""
    shown = []
    for count in counts:
        ratio = comparison.joint[count].ratio
        shown.append(f"{words.count('connections', count)} ({change(ratio) if ratio is not None else '–'})")
    return words.listed(shown)
