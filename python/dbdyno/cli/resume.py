"""``dbdyno resume``: go on where a campaign stopped."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.campaign import runner
from dbdyno.campaign.trials import trial_s
from dbdyno.cli.output import say
from dbdyno.cli.running import Closing, close, watched
from dbdyno.cli.words import as_json, ask_password, closing, password_asker, store
from dbdyno.record.store import Store


@click.command(short_help="Go on with an interrupted or killed campaign.")
@click.argument("campaign")
@ask_password
@closing
@store
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    campaign: str,
    ask_password: bool,
    folder: str | None,
    report: bool,
    lang: str,
    store: str | None,
    as_json: bool,
) -> None:
    """Go on with a campaign that was interrupted or killed, at its first trial without a result.

    The plan is the one on the record. A password that came by the URL is not: give it by --ask-password,
    $DBDYNO_PASSWORD or the database's own file.

    \b
    dbdyno resume nightly-3
    """
    asker = password_asker(ask_password)
    with Store.open(store, write=True) as opened:
        before = opened.campaign(campaign)
        if all(state in ("done", "failed") for state in opened.states(campaign).values()):
            say(f"every trial of {campaign} has its result; nothing is run")
        entry = watched(
            lambda observer, stop: runner.resume(opened, campaign, observer=observer, stop=stop, ask_password=asker),
            trial_s(before.plan),
        )
        where = Path(folder or "") if report else None
        ctx.exit(close(opened, entry, Closing(where, lang, as_json, store).in_folder_of(entry.id)))
