"""Options about reading files, which several commands have, and what they say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rag_eval.cli.console import warn
from rag_eval.cli.standard_input import FORMATS, received
from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.tables.record_files import ReadOptions

Command = TypeVar("Command", bound=Callable[..., Any])


def reading_options(example: str) -> Callable[[Command], Command]:
    """A decorator that gives a command these options. `example` is one of a column with its role."""
    options = (
        click.option("--sheet", metavar="NAME", help="Sheet to read.  [default: the first visible sheet]"),
        click.option(
            "--header-row",
            type=click.IntRange(min=0),
            metavar="N",
            help="Row with the headers; 0: none, columns are called A, B, …",
        ),
        click.option(
            "--encoding", metavar="NAME", help="Encoding of a .csv or .tsv file.  [default: detected]"
        ),
        click.option(
            "--sep", metavar="CHAR", help="Separator of a .csv file, or 'tab'.  [default: detected]"
        ),
        click.option(
            "--format", type=click.Choice(FORMATS), help="Type of the file that '-' (standard input) is."
        ),
        click.option(
            "--map", multiple=True, metavar="COLUMN=ROLE", help=f"Give a column a role, as in {example}."
        ),
        click.option(
            "--where",
            multiple=True,
            metavar="'NAME OP VALUE'",
            help="Read only rows that meet this condition.",
        ),
        click.option("--rows", metavar="FIRST-LAST", help="Read only these rows of the file."),
        click.option(
            "--random-rows",
            type=click.IntRange(min=1),
            metavar="N",
            help="Read N random rows, always the same.",
        ),
    )
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


@contextmanager
def opened(
    paths: tuple[Path, Path],
    roles: Sequence[str],
    tell: Callable[[str], object],
    options: Mapping[str, Any],
) -> Iterator[tuple[Path, Path, "ReadOptions"]]:
    """The files of a command that reads two, and how they are read.

    `roles` are those that a column may have, `tell` takes a line for each file about how it was read, `options` are
    the values of `reading_options`.
    """
    from rag_eval.tables import Selection, TextForm
    from rag_eval.tables.columns import roles_of
    from rag_eval.tables.input_files import WITH_SHEETS
    from rag_eval.tables.record_files import ReadOptions

    from_input = [path for path in paths if str(path) == "-"]
    if len(from_input) > 1:
        raise InputError("-: only one of the files can be standard input; name the other")
    kind, sheet = options["format"], options["sheet"]
    if kind is not None and not from_input:
        raise InputError(f"--format {kind} is for standard input, which is called '-'; leave it out")
    if sheet is not None and not any(path.suffix.lower() in WITH_SHEETS for path in paths):
        raise InputError(f"--sheet {sheet}: none of the files has sheets; leave it out")
    reading = ReadOptions(
        sheet=sheet,
        form=TextForm.parse(options["encoding"], options["sep"]),
        header_row=options["header_row"],
        named=roles_of(options["map"], roles),
        selection=Selection.parse(options["rows"], options["random_rows"], options["where"]),
        tell=tell,
        warn=warn,
    )
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(received(path, kind if path in from_input else None, Path("stdin")))
            for path in paths
        )
        yield first, second, reading
