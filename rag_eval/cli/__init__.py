"""The command line: the one place that reads arguments and the environment, prints, and ends the process."""

import atexit
import gc
import logging
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from rag_eval import __version__
from rag_eval.cli.console import same_command_with, standard_streams, warn
from rag_eval.cli.signals import Terminated, terminable
from rag_eval.errors import (
    ExitCode,
    InputError,
    OutputError,
    RagEvalError,
    TableError,
    describe_obstacle,
)

log = logging.getLogger(__name__)

_COMMANDS = {
    "run": "rag_eval.cli.run",
    "compare-judges": "rag_eval.cli.compare_judges",
    "review": "rag_eval.cli.review",
    "retrieval": "rag_eval.cli.retrieval",
    "rubric": "rag_eval.cli.rubric",
    "history": "rag_eval.cli.history",
    "cache": "rag_eval.cli.cache",
    "init": "rag_eval.cli.init",
    "doctor": "rag_eval.cli.doctor",
    "completion": "rag_eval.cli.completion",
    "shard": "rag_eval.cli.parts:shard",
    "report": "rag_eval.cli.parts:report",
    "cases": "rag_eval.cli.parts:cases",
}
"""Modules by the name of their command; each has it as `command`, or as what is named behind the colon."""


def main() -> NoReturn:
    """The console command rag-eval. `rag-eval FILE` is short for `rag-eval run FILE`."""
    with standard_streams():
        _end(rag_eval)


def standalone() -> NoReturn:
    """The script: the same commands, but its help is that of `run`."""
    with standard_streams():
        _end(script)


class _Commands(click.Group):
    """Commands that are imported when they are named, and `run` when none is."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name or "command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Done before anything else is parsed, so that options of `run` may come before the file."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if args and args[0] not in own | _COMMANDS.keys():
            if not ctx.resilient_parsing:
                _refuse_mistyped(args[0], ctx)
            args = ["run", *args]
        return super().parse_args(ctx, args)


def _refuse_mistyped(word: str, ctx: click.Context) -> None:
    """Raise UsageError for a word that is like a command and is not a file."""
    if not re.fullmatch(r"[A-Za-z]+(-[a-z]+)*", word) or os.path.exists(word):
        return
    from difflib import get_close_matches

    begun = [name for name in _COMMANDS if name.startswith(word.lower())]
    near = begun or get_close_matches(word.lower(), _COMMANDS, 1, 0.75)
    hint = f"; did you mean '{near[0]}'?" if near else "; name a file with its ending, such as answers.xlsx"
    raise click.UsageError(f"{word}: there is no such command, file or folder{hint}", ctx)


class _Script(_Commands):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["run"])

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What `run` says of itself, because that is what the script is there for, then the commands."""
        from rag_eval.cli.run import command

        command.format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("rag-eval", cls=_Commands, context_settings=_HELP)
@click.version_option(__version__, prog_name="rag-eval")
def rag_eval() -> None:
    """Compare the answers of chatbots and write an Excel report.

    rag-eval ANSWERS.xlsx is short for rag-eval run ANSWERS.xlsx. To show the options of a command, run rag-eval COMMAND
    --help.
    """


@click.group("rag_eval_standalone.py", cls=_Script, context_settings=_HELP)
@click.version_option(__version__, prog_name="rag-eval")
def script() -> None:
    """The same for the script."""


_FOR_PACKAGES = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""Variables of numpy and pydantic, unless they are set. Threads of numpy wait busily, for sums that take no time in one
thread; for plugins, pydantic looks through every package that is installed.
"""


def _end(command: click.Command) -> NoReturn:
    """Run a command and end the process with one of the documented exit codes."""
    # Else the interpreter looks through all that is left before it ends: half a second.
    atexit.register(gc.freeze)
    # What is read lives on; looking through it all the time doubles the reading. Imports alone make up to 250,000
    # objects.
    gc.set_threshold(300_000, 50, 100)
    for name, value in _FOR_PACKAGES.items():
        os.environ.setdefault(name, value)
    if not _has_working_folder():
        warn("The working directory was deleted; change to a folder that exists")
        sys.exit(ExitCode.USAGE)
    try:
        with terminable():
            command(standalone_mode=False)
    except click.exceptions.Exit as finished:
        sys.exit(finished.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        with suppress(OutputError):
            click.echo(error.format_message())
        sys.exit(ExitCode.USAGE)
    except click.ClickException as error:
        warn(f"{_on_one_line(error.format_message())}{_where_to_look(error)}")
        sys.exit(ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error.__cause__ or error
        _warn_of_notes(cause)
        sys.exit(ExitCode.TERMINATED if isinstance(cause, Terminated) else ExitCode.INTERRUPTED)
    except RagEvalError as error:
        _warn_of_problems(error)
        _warn_of_notes(error)
        sys.exit(error.exit_code)
    except Exception as bug:
        if problem := describe_obstacle(bug):
            warn(problem)
            _warn_of_notes(bug)
            sys.exit(ExitCode.USAGE)
        log.debug("internal error", exc_info=bug)
        warn(f"internal error ({type(bug).__name__}: {bug}); --debug shows where. Paid replies are kept.")
        _warn_of_notes(bug)
        sys.exit(ExitCode.STOPPED)
    sys.exit(ExitCode.COMPLETE)


def _warn_of_problems(error: RagEvalError) -> None:
    for problem in error.problems if isinstance(error, InputError) else [str(error)]:
        warn(problem)
    if isinstance(error, TableError) and error.roles:
        warn(f"To have these columns judged, run: {same_command_with(error.roles)}")


def _warn_of_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        warn(note)


def _on_one_line(message: str) -> str:
    """click lists choices one below the other."""
    return re.sub(r"\s*\n\s*", " ", message)


def _where_to_look(error: click.ClickException) -> str:
    """The help of the command that was called, under the name that it was called by."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see {ctx.command_path} --help)" if ctx else ""


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True
