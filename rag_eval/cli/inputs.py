"""The input files of a command: standard input, pairs of files, and the folders and patterns of a run in shards."""

import glob
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.cli.console import warn
from rag_eval.cli.options import FORMATS, Options
from rag_eval.errors import InputError, OutputError
from rag_eval.store.leftovers import Scratch
from rag_eval.tables.input_files import SUFFIXES

if TYPE_CHECKING:
    from rag_eval.tables.record_files import ReadOptions


@contextmanager
def received(path: Path, kind: str | None, target: Path) -> Iterator[Path]:
    """The file to read: `path` itself, or what standard input brings if it is '-', for as long as it is needed.

    Standard input is written to a temporary file, because it is read more than once. `target` is the output that it is
    for. Raises InputError without the type of the file.
    """
    if str(path) != "-":
        if kind is not None:
            remedy = (
                "leave it out"
                if path.suffix.lower() == f".{kind}"
                else f"rename {path.name} to {path.stem}.{kind}"
            )
            raise InputError(f"--format {kind} is for standard input; {remedy}")
        yield path
        return
    if kind is None:
        raise InputError(f"-: name the type of the file with --format ({', '.join(FORMATS)})")
    if sys.stdin is None:
        raise InputError("-: there is no standard input; name a file")
    with Scratch(target) as folder:
        copy = Path(folder, f"stdin.{kind}")
        try:
            with copy.open("xb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        except OSError as error:
            raise OutputError(
                f"copying standard input to {folder} failed: {error.strerror}; free some space, or set TMPDIR to "
                "another folder"
            ) from error
        yield copy


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


def is_sharded(inputs: Sequence[Path], options: Options) -> bool:
    """Whether this is a run in shards: it was asked for, or the input is more than one file."""
    if options.engine or options.address or options.shard_rows or len(inputs) > 1:
        return True
    return inputs[0].is_dir() or (_is_pattern(inputs[0]) and not inputs[0].exists())


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path))


def files_of(inputs: Sequence[Path], folder: Path) -> list[Path]:
    """The files that are read, in order: those named, those in a folder, those that a pattern finds.

    Raises InputError where there is none. `folder` is that of the run, of which nothing is read.
    """
    found: list[Path] = []
    for path in inputs:
        if str(path) == "-":
            raise InputError("-: standard input cannot be judged in shards; write it to a file first")
        several = None
        if path.is_dir():
            several = sorted(each for each in path.iterdir() if each.suffix.lower() in SUFFIXES)
        elif _is_pattern(path) and not path.exists():
            several = sorted(map(Path, glob.glob(str(path), recursive=True)))
        if several is not None:
            several = [each for each in several if each.is_file() and not each.name.startswith((".", "~$"))]
            if not several:
                raise InputError(f"{path}: contains no input file; expected one of {', '.join(SUFFIXES)}")
        found += [path] if several is None else several
    real = Path(os.path.realpath(folder))
    if inside := [path for path in found if real in Path(os.path.realpath(path)).parents]:
        raise InputError(f"{inside[0]}: is in the folder that the run writes to; use another -o")
    unique: dict[str, Path] = {}
    for path in found:  # a file with two names would be judged twice
        unique.setdefault(os.path.realpath(path), path)
    return list(unique.values())


def folder_of(inputs: Sequence[Path], output: Path | None) -> Path:
    """Where the run goes. Raises InputError for a name that is none of a folder, and for inputs that are not there."""
    missing = [path for path in inputs if str(path) != "-" and not path.exists() and not _is_pattern(path)]
    if len(inputs) > 1 and missing:  # such as the value of an option that takes none
        raise InputError(f"{missing[0]}: there is no such input file; correct the name, or leave it out")
    if output is None:
        if len(inputs) > 1 or (_is_pattern(inputs[0]) and not inputs[0].exists()):
            raise InputError("several files are judged in shards, into a folder; name it with -o")
        if not inputs[0].name.strip("."):
            raise InputError(f"{inputs[0]}: a run in shards writes a folder; name it with -o")
        return inputs[0].with_name(f"{inputs[0].stem}_report")
    if output.suffix.lower() == ".xlsx" or output.is_file():
        why = "several files are judged in shards, into" if len(inputs) > 1 else "a run in shards writes"
        raise InputError(f"{output}: {why} a folder, with report.xlsx in it; give -o the name of a folder")
    return output
