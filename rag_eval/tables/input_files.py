"""Files that are about to be read: their suffixes, what is refused before it is opened, and what one may hold at most.

A small file must not cost much memory or time, whoever wrote it.
"""

import errno
import os
import stat
from pathlib import Path
from sys import getsizeof

from rag_eval.errors import InputError, TableError

WORKBOOK, OPEN_DOCUMENT, OLD_EXCEL = (
    "an Excel workbook",
    "an OpenDocument file",
    "an old Excel (97-2003) file",
)
TEXT, PARQUET = "a text file", "a Parquet file"
SUFFIXES = {
    ".xlsx": WORKBOOK,
    ".xlsm": WORKBOOK,
    ".xls": OLD_EXCEL,
    ".ods": OPEN_DOCUMENT,
    ".csv": TEXT,
    ".tsv": TEXT,
    ".parquet": PARQUET,
    ".jsonl": TEXT,
    ".ndjson": TEXT,
    ".json": TEXT,
}
"""The files that are read, with what they contain."""
WITH_SHEETS = tuple(suffix for suffix, content in SUFFIXES.items() if content not in (TEXT, PARQUET))

MAX_CONFIGURATION = 256 * 1024
"""Bytes of a file that people write by hand: a configuration, a rubric."""


def check_is_file(path: Path, error: type[InputError] = InputError, name: str = "") -> None:
    """Raise `error` for a folder, pipe, device or socket, and for a link that leads back to itself.

    `name` is how the message calls it, the path by default. A file that is not there, or closed to us, is for whoever
    opens it to report.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise error(
                f"{name or path}: is a symbolic link that leads back to itself; name a file"
            ) from None
        return
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise error(f"{name or path}: is a {kind}, not a file; {_REMEDIES.get(kind, 'name a file')}")


_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
_REMEDIES = {"folder": "name a file in it", "pipe": "write what comes through it to a file first"}


def check_is_small(path: Path, error: type[InputError], name: str = "") -> None:
    """Raise `error` for a file of more bytes than people write by hand: its parsers are made for such ones."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return
    if size > MAX_CONFIGURATION:
        raise error(
            f"{name or path}: has {size:,} bytes, more than the {MAX_CONFIGURATION:,} allowed; is it the right file?"
        )


MAX_CELL = 1_000_000
"""Characters in one cell: thirty times what Excel allows, and longer than what most judges can read."""
MAX_COLUMNS = 5_000
"""Columns with a header."""
MAX_BOTS = 200
MAX_BOT_NAME = 1_000
"""Characters."""


def too_long(length: int) -> str:
    """What is wrong with a cell of so many characters, to be put after its name."""
    return f"has {length:,} characters, more than the {MAX_CELL:,} allowed; shorten it, or split it into several rows"


class Room:
    """Memory for the content of one file, in proportion to its size on disk.

    A file grows when it is read: it was compressed, its cells share a text, or its rows are short.
    """

    def __init__(self, name: str, file_size: int) -> None:
        """`name` is how messages call the file, `file_size` is in bytes."""
        self._name = name
        self._most = self._left = 100_000_000 + 40 * file_size

    def take(self, size: int) -> None:
        """Raises TableError when no room is left for `size` bytes."""
        self._left -= size
        if self._left < 0:
            raise TableError(
                f"{self._name}: its content takes more than {self._most / 1e6:,.0f} MB of memory, far more than its "
                "size on disk; split the file, or lower max_rows in [evaluation]"
            )

    def take_text(self, text: str) -> None:
        self.take(getsizeof(text))
