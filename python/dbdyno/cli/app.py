"""The command ``dbdyno``: finds the sub-command, and turns every way of ending into a sentence and a status."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Sequence

import click

from dbdyno.cli.argv_secrets import passwords_around, passwords_in
from dbdyno.cli.output import flush, forget_unwritten, never_say, say
from dbdyno.cli.words import take_password, usage_sentence
from dbdyno.model.errors import DbdynoError, Interrupted, nearest

#: Sub-commands in the order of the help, each with what the help says of it: the first sentence of the command's
#: own text, here as well so that ``dbdyno --help`` need not import them all. Each is the object ``command`` of the
#: module of that name.
COMMANDS = {
    "quickstart": "Compare two embedded databases: no server, about a minute.",
    "doctor": "What would spoil a run on a database, and how to mend it.",
    "bench": "Run a workload on a database; throughput and latency.",
    "run": "Run a plan, say who is faster, write the report.",
    "resume": "Go on with an interrupted or killed campaign.",
    "prepare": "Make and fill a workload's tables.",
    "check": "Check a workload's data.",
    "cleanup": "Drop a workload's tables.",
    "list": "List the campaigns of a store.",
    "show": "Show the figures of a campaign or of one trial.",
    "compare": "Who is faster, by how much, how sure.",
    "report": "Write the report of a campaign.",
    "export": "The figures of a campaign as CSV or JSON.",
    "workloads": "List the workloads, or the options of one.",
    "server": "Start and stop databases of dbdyno's own.",
}
#: Modules that cannot have their command's name.
_MODULES = {"list": "list_campaigns"}


class Commands(click.Group):
    """Loads a sub-command's module when it is needed, so that ``dbdyno server list`` imports no statistics."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"dbdyno.cli.{_MODULES.get(name, name)}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"unknown command {name!r}{nearest(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Keep what ended a command from click, which has endings of its own for these."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted") from error
        except BrokenPipeError as error:
            raise _NobodyReadsError from error


class _NobodyReadsError(Exception):
    """The reader of stdout (head, a closed pager) has had enough."""


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with 'dbdyno quickstart': it needs no server. 'dbdyno COMMAND --help' has examples.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="dbdyno", prog_name="dbdyno", message="%(prog)s %(version)s")
def command(debug: bool) -> None:
    """A dynamometer for OLTP databases: load data, drive transactions, measure, compare, report."""


def run_words(words: Sequence[str]) -> int:
    """Run the command with these words and return the exit status; never raises, never shows a password."""
    never_say(passwords_in(words) | passwords_around())
    take_password()
    debug = "--debug" in words

    def complain(sentence: str) -> None:
        say(f"dbdyno: {sentence}")

    try:
        status = command.main(args=_global_options_first(words), prog_name="dbdyno", standalone_mode=False)
        flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.UsageError as error:
        complain(usage_sentence(error))
        return 2
    except DbdynoError as error:
        _trace(debug)
        complain(_one_paragraph(str(error)))
        return error.exit_status
    except (KeyboardInterrupt, click.Abort):
        _trace(debug)
        complain("interrupted")
        return 130
    except (BrokenPipeError, _NobodyReadsError):
        return 0
    except Exception as error:
        _trace(debug)
        how = "with the traceback above" if debug else "with what the same command prints under --debug"
        complain(f"a mistake in dbdyno, please report it {how}: {type(error).__name__}: {error}")
        return 1
    finally:
        forget_unwritten()


def _global_options_first(words: Sequence[str]) -> list[str]:
    """``--debug`` may stand anywhere: it is what people append when something failed."""
    if "--debug" not in words or "--" in words:
        return list(words)
    return ["--debug", *(word for word in words if word != "--debug")]


def _one_paragraph(text: str) -> str:
    """First line as it is; further lines (a plan's errors, the tail of a log) indented below it."""
    lines = text.strip().splitlines() or ["no reason given"]
    return "\n".join([lines[0], *(f"  {line.strip()}" for line in lines[1:])])


def _trace(debug: bool) -> None:
    if debug:
        say(traceback.format_exc().rstrip())
