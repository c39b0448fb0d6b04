"""What a file is, from its content: looked at before it is parsed.

Is it what its name says, is it protected, would it unpack to more than memory should hold.
"""

import mmap
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from rag_eval.errors import TableError
from rag_eval.tables.input_files import OLD_EXCEL, OPEN_DOCUMENT, PARQUET, TEXT, WORKBOOK

MAX_UNPACKED = 500 * 2**20
"""Bytes that a zipped workbook may unpack to."""
MAX_RATIO = 200
"""Unpacked ÷ packed size beyond which a workbook of more than 100 MB is taken for a zip bomb."""

PROTECTED, _EMPTY, _DAMAGED, _UNKNOWN = (
    "a workbook protected with a password",
    "an empty file",
    "a damaged or incomplete file",
    "a file of an unknown kind",
)
_REMEDIES = {
    WORKBOOK: "rename it to .xlsx",
    OPEN_DOCUMENT: "rename it to .ods",
    OLD_EXCEL: "rename it to .xls",
    TEXT: "rename it to .csv, or open it in a spreadsheet program and save it as .xlsx",
    PARQUET: "rename it to .parquet",
    _EMPTY: "export or download it again",
    _DAMAGED: "export or download it again",
}


def check_content(
    path: Path, expected: str, *, is_encoding_known: bool = False, most_unpacked: int = MAX_UNPACKED
) -> None:
    """Raise TableError unless the file, which is one, is what it should be, and unpacks to at most so many bytes.

    A text whose encoding is known may hold zero bytes, which are otherwise taken for a sign of something else.
    """
    try:
        content = _content(path)
    except FileNotFoundError:
        raise TableError(f"{path}: there is no such file") from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from error
    if content == _UNKNOWN and is_encoding_known:
        content = TEXT
    if content == PROTECTED:
        raise TableError(
            f"{path.name}: is {content}; open it in Excel, remove the password and save it again"
        )
    if content != expected:
        remedy = _REMEDIES.get(content, "open it in a spreadsheet program and save it as .xlsx")
        instead = "" if content == _EMPTY else f", not {expected}"
        raise TableError(f"{path.name}: is {content}{instead}; {remedy}")
    if expected in (WORKBOOK, OPEN_DOCUMENT):
        _check_unpacked_size(path, most_unpacked)


def _content(path: Path) -> str:
    """What the first bytes of the file say that it is."""
    with path.open("rb") as file:
        head = file.read(1024)
        while head and not head.strip():
            head = file.read(2**16)  # blank lines, which only a text can begin with
        if not head:
            return _EMPTY
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return _zip_content(path)
        if head.startswith(b"\xd0\xcf\x11\xe0"):
            return _ole_content(file)
    if head.startswith(b"PAR1"):
        return PARQUET
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|table|\?xml)", head, re.IGNORECASE):
        return "an HTML or XML page"
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return TEXT if is_utf16 or b"\0" not in head else _UNKNOWN


def _zip_content(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        return _DAMAGED
    if "[Content_Types].xml" in names:
        return WORKBOOK
    return OPEN_DOCUMENT if "content.xml" in names else "a zip archive"


def _ole_content(file: IO[bytes]) -> str:
    """Excel wraps a protected .xlsx into the container of the old format, as a stream with this name."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_protected = content.find("EncryptedPackage".encode("utf-16-le")) >= 0
    return PROTECTED if is_protected else OLD_EXCEL


def _check_unpacked_size(path: Path, most: int) -> None:
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    megabytes = unpacked // 2**20
    if unpacked > most:
        raise TableError(
            f"{path.name}: would unpack to {megabytes} MB, more than the {most // 2**20} MB allowed; "
            "remove the sheets that are not needed, or save it as .csv"
        )
    # Measured against the file itself: what the directory says about packed sizes may be made up.
    if megabytes > 100 and unpacked > MAX_RATIO * path.stat().st_size:
        raise TableError(
            f"{path.name}: would unpack to {megabytes} MB, more than {MAX_RATIO} times its size, as only a "
            "damaged or hostile file does; copy the table into a new workbook"
        )


# A damaged file makes the libraries raise nearly anything.
_DAMAGE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    ElementTree.ParseError,
    EOFError,
    OSError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
)


@contextmanager
def damage_reported(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Wrapped around calls of libraries only, so that a bug of ours is not taken for a damaged file."""
    expected = (*_DAMAGE, *more)
    try:
        yield
    except expected as error:
        reason = " ".join(str(error).split())[:200]
        raise TableError(
            f"{path.name}: is damaged or incomplete ({type(error).__name__}: {reason}); "
            "open it in a spreadsheet program and save it again"
        ) from error
