"""What the options about reading files say, for a command that reads two."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.console import warn
from rag_eval.cli.standard_input import received
from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.tables.record_files import ReadOptions


@contextmanager
def opened(
    paths: tuple[Path, Path],
    roles: Sequence[str],
    tell: Callable[[str], object],
    options: Mapping[str, Any],
) -> Iterator[tuple[Path, Path, "ReadOptions"]]:
    """The files of a command that reads two, and how they are read.

    `roles` are those that a column may have, `tell` takes a line for each file about how it was read, `options` are
    the values of their options.
    """
    from rag_eval.tables.columns import roles_of
    from rag_eval.tables.delimited import TextForm
    from rag_eval.tables.input_files import WITH_SHEETS
    from rag_eval.tables.record_files import ReadOptions
    from rag_eval.tables.selection import Selection

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
