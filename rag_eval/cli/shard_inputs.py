"""The files that a run in shards reads, and the folder that it writes to."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from rag_eval.cli.options import Options
from rag_eval.errors import InputError
from rag_eval.tables.input_files import SUFFIXES


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
    """Where the run goes. Raises InputError for a name that is not one of a folder."""
    if output is None:
        if len(inputs) > 1 or (_is_pattern(inputs[0]) and not inputs[0].exists()):
            raise InputError("several files are judged in shards, into a folder; name it with -o")
        if not inputs[0].name.strip("."):
            raise InputError(f"{inputs[0]}: a run in shards writes a folder; name it with -o")
        return inputs[0].with_name(f"{inputs[0].stem}_report")
    if output.suffix.lower() == ".xlsx" or output.is_file():
        raise InputError(
            f"{output}: a run in shards writes a folder, with report.xlsx in it; give -o the name of a folder"
        )
    return output
