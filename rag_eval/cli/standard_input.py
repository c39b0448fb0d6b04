"""The input from standard input: written to a temporary file first, because it is read more than once."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_eval.errors import InputError, OutputError
from rag_eval.store.leftovers import Scratch
from rag_eval.tables.input_files import SUFFIXES

FORMATS = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)


@contextmanager
def received(path: Path, kind: str | None, target: Path) -> Iterator[Path]:
    """The file to read: `path` itself, or what standard input brings if it is '-', for as long as it is needed.

    `target` is the output that it is for. Raises InputError without the type of the file.
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
