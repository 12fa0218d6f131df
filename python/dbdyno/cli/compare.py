"""``dbdyno compare``: who is faster, by how much, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import click

from dbdyno.analysis.comparison import Comparison, compare_targets
from dbdyno.analysis.summary import Cell, cells
from dbdyno.analysis.verdict import Answer
from dbdyno.cli.output import say, tell, tell_json, tell_table
from dbdyno.cli.words import as_json, store
from dbdyno.model.errors import UsageError, nearest
from dbdyno.model.units import format_ms, format_rate
from dbdyno.record.entries import CampaignEntry, TrialEntry
from dbdyno.record.store import Store
from dbdyno.report.jsonfile import comparison_json
from dbdyno.report.material import compare_all, same_database
from dbdyno.report.sentences import answer, change, evidence, interval, sentence
from dbdyno.report.words import Words


@dataclass(frozen=True)
class Side:
    """One of two things to compare: some trials under one label."""

    campaign: CampaignEntry
    target: str
    label: str
    trials: tuple[TrialEntry, ...]


@click.command(short_help="Who is faster, by how much, how sure.")
@click.argument("first", metavar="CAMPAIGN[/TARGET]")
@click.argument("second", metavar="[CAMPAIGN[/TARGET]]", required=False)
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of the answer.")
@store
@as_json
@click.pass_context
def command(ctx: click.Context, first: str, second: str | None, lang: str, store: str | None, as_json: bool) -> None:
    """Compare the targets of a campaign, or two campaigns target by target.

    The first one named (or the campaign's baseline) is what the other is compared with. Exit status: 0 when every
    workload has an answer (faster, slower, no difference larger than X), 1 when one cannot be told.

    \b
    dbdyno compare quickstart-1
    dbdyno compare upgrade-1 upgrade-2
    dbdyno compare upgrade-1/old upgrade-1/new
    """
    with Store.open(store) as opened:
        entries, found = _compared(opened, first, second)
    if as_json:
        tell_json({"comparisons": [comparison_json(comparison) for comparison in found]})
    else:
        words = Words(lang)
        summed = cells(entries)
        for number, comparison in enumerate(found):
            if number:
                tell()
            _tell(comparison, summed, words)
    if any(comparison.overall.answer is Answer.CANNOT_TELL and not comparison.mixed for comparison in found):
        ctx.exit(1)


def _compared(opened: Store, first: str, second: str | None) -> tuple[list[TrialEntry], list[Comparison]]:
    if second is None:
        campaign_id, slash, _ = first.partition("/")
        campaign = opened.campaign(campaign_id)
        if slash:
            raise UsageError(f"{first} is one side; name the other one too, or the campaign {campaign.id} alone")
        if len(campaign.plan.target) < 2:
            raise UsageError(f"campaign {campaign.id} has one target; name a second campaign to compare it with")
        entries = opened.trials(campaign.id)
        found = compare_all(entries, campaign.plan.baseline_name, pair=campaign.plan.order == "interleaved")
        return entries, _some(found, campaign.id, campaign.id)
    couples = _couples(_sides(opened, first), _sides(opened, second), first, second)
    entries = []
    found = []
    for left, right in couples:
        trials = [*left.trials, *right.trials]
        pair = left.campaign.id == right.campaign.id and left.campaign.plan.order == "interleaved"
        same = same_database(trials, left.label, right.label)
        found += compare_targets(cells(trials), left.label, right.label, pair=pair, same_database=same)
        entries += trials
        for remark in _unlike(left, right):
            say(f"note: {remark}")
    return entries, _some(found, first, second)


def _unlike(left: Side, right: Side) -> list[str]:
    """What was asked of the two sides differently: figures are compared only with that beside them."""
    found = []
    firsts = [{}, {}]  # type: list[dict[str, TrialEntry]]
    for side, first in zip((left, right), firsts, strict=True):
        for entry in side.trials:
            first.setdefault(entry.trial.workload, entry)
    for workload in (name for name in firsts[0] if name in firsts[1]):
        trials = [first[workload].trial for first in firsts]
        asked = [{**trial.options, **asdict(replace(trial.load, seed=0, connections=1))} for trial in trials]
        for name in dict.fromkeys([*asked[0], *asked[1]]):
            values = [each.get(name, "default") for each in asked]
            if values[0] != values[1]:
                words = " and ".join("none" if value is None else str(value) for value in values)
                found.append(f"{workload} ran with different {name}: {words}")
        programs = {first[workload].outcome.program for first in firsts if first[workload].outcome}  # type: ignore[union-attr]
        if not found and len(programs) > 1:
            found.append(f"{workload} ran different programs (its source has changed)")
    return found


def _some(found: list[Comparison], first: str, second: str) -> list[Comparison]:
    if not found:
        raise UsageError(f"{first} and {second} have no workload in common that ran on both sides")
    return found


def _sides(opened: Store, name: str) -> list[Side]:
    """The sides that ``CAMPAIGN`` (all its targets) or ``CAMPAIGN/TARGET`` names."""
    campaign_id, slash, wanted = name.partition("/")
    campaign = opened.campaign(campaign_id)
    known = [target.name for target in campaign.plan.target]
    if slash and wanted not in known:
        raise UsageError(f"campaign {campaign.id} has no target {wanted!r}{nearest(wanted, known)}")
    entries = opened.trials(campaign.id)
    return [
        Side(
            campaign,
            target,
            f"{campaign.id}/{target}",
            tuple(
                replace(entry, trial=replace(entry.trial, target=f"{campaign.id}/{target}"))
                for entry in entries
                if entry.trial.target == target
            ),
        )
        for target in ([wanted] if slash else known)
    ]


def _couples(left: list[Side], right: list[Side], first: str, second: str) -> list[tuple[Side, Side]]:
    """Who is compared with whom: one with one, otherwise those of the same name."""
    if len(left) == len(right) == 1:
        if left[0].label == right[0].label:
            raise UsageError(f"{first} and {second} are the same trials")
        return [(left[0], right[0])]
    if left[0].campaign.id == right[0].campaign.id:
        raise UsageError(f"{first} and {second} overlap; name a target on each side, or the campaign alone")
    by_name = {side.target: side for side in right}
    couples = [(side, by_name[side.target]) for side in left if side.target in by_name]
    if not couples:
        raise UsageError(
            f"{first} and {second} have no target of the same name; say CAMPAIGN/TARGET on each side "
            f"({', '.join(side.label for side in (*left, *right))})"
        )
    return couples


def _tell(comparison: Comparison, summed: Sequence[Cell], words: Words) -> None:
    tell(f"{comparison.workload}: {sentence(comparison, words)}")
    more = evidence(comparison, words)
    if more:
        tell(more)
    latency = comparison.metric == "p95"
    sides = {
        side: {cell.connections: cell for cell in summed if (cell.workload, cell.target) == (comparison.workload, side)}
        for side in (comparison.baseline, comparison.other)
    }

    def figure(side: str, count: int) -> str:
        cell = sides[side].get(count)
        if cell is None:
            return "–"
        if latency:
            return format_ms(cell.response.p95) if cell.response is not None else "–"
        return format_rate(cell.mean_tps) if cell.mean_tps is not None else "–"

    unit = "p95 ms" if latency else "tps"
    rows = [
        (
            str(count),
            figure(comparison.baseline, count),
            figure(comparison.other, count),
            change(verdict.ratio) if verdict.ratio is not None else "–",
            interval(verdict, words) or "–",
            answer(verdict, words),
        )
        for count, verdict in comparison.cells.items()
    ]
    confidence = words.percent(next(iter(comparison.cells.values())).confidence) if rows else ""
    head = ["c", f"{comparison.baseline} {unit}", f"{comparison.other} {unit}", "change", f"{confidence} interval", ""]
    tell_table(head, rows, left=(5,))
