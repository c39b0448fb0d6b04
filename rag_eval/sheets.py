"""A spreadsheet file to rows of text, whatever its format. Streams, and knows nothing about columns' meanings.

Files are looked at before they are parsed: is the content what the name says, is it protected, would it unpack
to more than memory should hold.
"""

import csv
import json
import mmap
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from rag_eval.errors import TableError

MAX_UNPACKED = 500 * 2**20
"""Bytes that a zipped workbook may unpack to."""
MAX_RATIO = 200
"""Unpacked ÷ packed size beyond which a workbook of more than 100 MB is taken for a zip bomb."""
MAX_CSV_CELL = 10_000_000
"""Characters in one cell of a CSV file; an unclosed quote ends here, not at the end of memory."""


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell that holds no value that could be judged."""

    problem: str
    """What is wrong and what to do, to be put after the name of the cell."""


Cell = str | BadCell


class Area(NamedTuple):
    """A block of cells, counted from 1, ends included."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """One opened sheet."""

    name: str
    """Empty for formats without sheets."""
    rows: Iterator[tuple[int, Sequence[Cell]]]
    """Row number, counted from 1, and cells from column A on; rows without any text are left out."""
    layout: str = ""
    """What was detected about the file, such as its separator and encoding."""
    merged: tuple[Area, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    """Rows that cannot be read, each with its place; filled while `rows` is consumed."""


@contextmanager
def open_sheet(path: Path, name: str | None = None) -> Iterator[Sheet]:
    """Open the named sheet, by default the first visible one. Raises TableError for a file that cannot be read."""
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise TableError(
            f"{path.name}: cannot read files of type '{suffix}'; use one of {' '.join(_FORMATS)}"
        )
    content, opener = _FORMATS[suffix]
    _check_content(path, content)
    with opener(path, name) as sheet:
        yield sheet


def cell_text(value: object) -> str:
    """A cell's value as text. Text stays exactly as it is; nothing (and NaN) is ''.

    Numbers lose a trailing '.0', booleans are TRUE and FALSE, a date is 2024-05-01 and with a time of day
    2024-05-01 13:30:00, a duration is hours:minutes:seconds, lists and structures (Parquet) are JSON.
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return _number_text(value)
        case datetime():
            is_day = value.time() == time() and value.tzinfo is None
            return value.date().isoformat() if is_day else value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _duration_text(value)
        case list() | dict():
            return json.dumps(value, ensure_ascii=False, default=cell_text)
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


def column_letter(index: int) -> str:
    """The letters of a column counted from 0: A, B, …, Z, AA, …"""
    letters = ""
    index += 1
    while index:
        index, remainder = divmod(index - 1, 26)
        letters = chr(ord("A") + remainder) + letters
    return letters


def _number_text(value: float) -> str:
    if value != value:  # NaN: how Parquet files of data frames spell a missing value
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _duration_text(value: timedelta) -> str:
    seconds = abs(value) // timedelta(seconds=1)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


# --- what the file is -------------------------------------------------------------------------------------------

_WORKBOOK, _OPEN_DOCUMENT, _OLD_EXCEL = (
    "an Excel workbook",
    "an OpenDocument file",
    "an old Excel (97-2003) file",
)
_TEXT, _PARQUET = "a text file", "a Parquet file"
_PROTECTED, _EMPTY, _DAMAGED = (
    "a workbook protected with a password",
    "an empty file",
    "a damaged or incomplete file",
)
_REMEDIES = {
    _WORKBOOK: "rename it to .xlsx",
    _OPEN_DOCUMENT: "rename it to .ods",
    _OLD_EXCEL: "rename it to .xls",
    _TEXT: "rename it to .csv, or open it in a spreadsheet program and save it as .xlsx",
    _PARQUET: "rename it to .parquet",
    _EMPTY: "export or download it again",
    _DAMAGED: "export or download it again",
}


def _check_content(path: Path, expected: str) -> None:
    try:
        content = _content(path)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from error
    if content == _PROTECTED:
        raise TableError(
            f"{path.name}: is {content}; open it in Excel, remove the password and save it again"
        )
    if content != expected:
        remedy = _REMEDIES.get(content, "open it in a spreadsheet program and save it as .xlsx")
        raise TableError(f"{path.name}: is {content}, not {expected}; {remedy}")
    if expected in (_WORKBOOK, _OPEN_DOCUMENT):
        _check_unpacked_size(path)


def _content(path: Path) -> str:
    """What the first bytes of the file say that it is."""
    with path.open("rb") as file:
        head = file.read(1024)
        if not head.strip():
            return _EMPTY
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return _zip_content(path)
        if head.startswith(b"\xd0\xcf\x11\xe0"):
            return _ole_content(file)
    if head.startswith(b"PAR1"):
        return _PARQUET
    if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|table|\?xml)", head, re.IGNORECASE):
        return "an HTML or XML page"
    is_utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    return _TEXT if is_utf16 or b"\0" not in head else "a file of an unknown kind"


def _zip_content(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        return _DAMAGED
    if "[Content_Types].xml" in names:
        return _WORKBOOK
    return _OPEN_DOCUMENT if "content.xml" in names else "a zip archive"


def _ole_content(file: IO[bytes]) -> str:
    """Excel wraps a protected .xlsx into the container of the old format, as a stream with this name."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_protected = content.find("EncryptedPackage".encode("utf-16-le")) >= 0
    return _PROTECTED if is_protected else _OLD_EXCEL


def _check_unpacked_size(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    megabytes = unpacked // 2**20
    if unpacked > MAX_UNPACKED:
        raise TableError(
            f"{path.name}: would unpack to {megabytes} MB, more than the {MAX_UNPACKED // 2**20} MB allowed; "
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
def _damage_reported(path: Path, *more: type[Exception]) -> Iterator[None]:
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


def _choose(
    path: Path, sheets: Sequence[tuple[str, bool]], wanted: str | None
) -> tuple[str, tuple[str, ...]]:
    """The sheet to read, of (name, visible) pairs, and what to say about the others."""
    names = [name for name, _ in sheets]
    if wanted is not None:
        for name in names:
            if name.casefold() == wanted.strip().casefold():
                return name, ()
        raise TableError(f"{path.name}: no sheet '{wanted}'; it has {_quoted(names)}")
    visible = [name for name, is_visible in sheets if is_visible]
    if not visible:
        raise TableError(f"{path.name}: has no visible sheet; name one with --sheet, it has {_quoted(names)}")
    notes = []
    if len(visible) > 1:
        notes.append(
            f"Sheet '{visible[0]}' was read, the first of several; not read: {_quoted(visible[1:])} (see --sheet)."
        )
    if len(visible) < len(names):
        hidden = [name for name, is_visible in sheets if not is_visible]
        notes.append(f"Hidden sheets were not read: {_quoted(hidden)} (see --sheet).")
    return visible[0], tuple(notes)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def _with_text(rows: Iterable[Sequence[Cell]]) -> Iterator[tuple[int, Sequence[Cell]]]:
    """The rows that hold anything, numbered from 1."""
    for number, cells in enumerate(rows, 1):
        if any(isinstance(cell, BadCell) or cell.strip() for cell in cells):
            yield number, cells


# --- .xlsx, .xlsm -----------------------------------------------------------------------------------------------


@contextmanager
def _open_workbook(path: Path, name: str | None) -> Iterator[Sheet]:
    from openpyxl.reader.excel import ExcelReader  # type: ignore[import-untyped]

    with _damage_reported(path), _openpyxl_silent():
        reader = ExcelReader(path, read_only=True, data_only=True, keep_links=False)
        reader.read()
    book = reader.wb
    try:
        sheets = [(sheet.title, sheet.sheet_state == "visible") for sheet in book.worksheets]
        chosen, notes = _choose(path, sheets, name)
        with _damage_reported(path):
            parts = {sheet.name: relation.target for sheet, relation in reader.parser.find_sheets()}
            with reader.archive.open(parts[chosen]) as xml:
                hidden = _read_hidden_facts(xml)
        rows = _workbook_rows(path, book[chosen], hidden.uncached)
        yield Sheet(chosen, _with_text(rows), merged=hidden.merged, warnings=notes)
    finally:
        book.close()


class _HiddenFacts(NamedTuple):
    """What openpyxl's read-only mode does not tell about a sheet."""

    uncached: frozenset[str]
    """Cells with a formula whose result is not stored, such as 'B7'."""
    merged: tuple[Area, ...]


def _read_hidden_facts(xml: IO[bytes]) -> _HiddenFacts:
    from openpyxl.utils.cell import range_boundaries  # type: ignore[import-untyped]

    uncached, merged = set(), []
    # The parser that openpyxl itself uses; expat limits what entities may expand to.
    for _, element in ElementTree.iterparse(xml):  # noqa: S314
        tag = element.tag.rpartition("}")[2]
        if tag == "c" and _is_uncached(element):
            uncached.add(element.get("r", ""))
        elif tag == "mergeCell":
            first_column, first_row, last_column, last_row = range_boundaries(element.get("ref", ""))
            merged.append(Area(first_row, first_column, last_row, last_column))
        elif tag == "row":
            element.clear()
    return _HiddenFacts(frozenset(uncached), tuple(merged))


def _is_uncached(cell: ElementTree.Element) -> bool:
    """A formula with no result; an empty text (type 'str') is a result."""
    return cell.find("{*}f") is not None and not cell.findtext("{*}v") and cell.get("t") != "str"


def _workbook_rows(path: Path, sheet: Any, uncached: frozenset[str]) -> Iterator[list[Cell]]:
    sheet.reset_dimensions()  # writers get them wrong, and read-only mode would drop the rows beyond
    rows = sheet.iter_rows()
    number = 0
    while True:
        with _damage_reported(path), _openpyxl_silent():
            block = list(islice(rows, 500))
        if not block:
            return
        for cells in block:
            number += 1
            yield [_workbook_cell(cell, number, index, uncached) for index, cell in enumerate(cells)]


def _workbook_cell(cell: Any, row: int, index: int, uncached: frozenset[str]) -> Cell:
    value = cell.value
    if value is None:
        if uncached and f"{column_letter(index)}{row}" in uncached:
            return BadCell("a formula without a stored result; open the file in Excel and save it")
        return ""
    if cell.data_type == "e":
        return BadCell(f"the error value {value}; correct the formula or clear the cell")
    # A carriage return cannot stand in the file's XML, so Excel spells it like this.
    return value.replace("_x000D_", "\r") if isinstance(value, str) else cell_text(value)


@contextmanager
def _openpyxl_silent() -> Iterator[None]:
    """openpyxl warns about everything that it would lose on saving; nothing is saved here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- .xls, .ods -------------------------------------------------------------------------------------------------


@contextmanager
def _open_with_calamine(path: Path, name: str | None) -> Iterator[Sheet]:
    from python_calamine import (
        CalamineError,
        CalamineWorkbook,
        PasswordError,
        SheetTypeEnum,
        SheetVisibleEnum,
    )

    with _damage_reported(path, CalamineError):
        try:
            book = CalamineWorkbook.from_path(path)
        except PasswordError:
            raise TableError(
                f"{path.name}: is {_PROTECTED}; open it, remove the password and save it again"
            ) from None
    with book:
        sheets = [
            (sheet.name, sheet.visible == SheetVisibleEnum.Visible)
            for sheet in book.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet
        ]
        chosen, notes = _choose(path, sheets, name)
        with _damage_reported(path, CalamineError):
            sheet = book.get_sheet_by_name(chosen)
        rows = ([cell_text(value) for value in row] for row in sheet.iter_rows())
        merged = tuple(
            Area(first_row + 1, first_column + 1, last_row + 1, last_column + 1)
            for (first_row, first_column), (last_row, last_column) in sheet.merged_cell_ranges or ()
        )
        yield Sheet(chosen, _with_text(rows), merged=merged, warnings=notes)


# --- .csv, .tsv -------------------------------------------------------------------------------------------------


@contextmanager
def _open_delimited(path: Path, name: str | None) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    encoding = _encoding(path)
    separator = _separator(path, encoding)
    notes: tuple[str, ...] = ()
    if encoding == "cp1252":
        notes = ("The file is no UTF-8 and was read as Windows-1252; check accented letters in the report.",)
    problems: list[str] = []
    with path.open(encoding=encoding, newline="") as file, _long_cells_allowed():
        rows = _delimited_rows(path, csv.reader(file, delimiter=separator, strict=True), problems)
        layout = f"separated by {_SEPARATORS[separator]}, {_ENCODINGS[encoding]}"
        yield Sheet("", _with_text(rows), layout=layout, warnings=notes, problems=problems)


_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}


def _encoding(path: Path) -> str:
    """The first encoding that can decode the whole file."""
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16"
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            with path.open(encoding=encoding) as text:
                while text.read(2**20):
                    pass
        except UnicodeDecodeError:
            continue
        return encoding
    raise TableError(f"{path.name}: the text is neither UTF-8 nor Windows-1252; save it as 'CSV UTF-8'")


def _separator(path: Path, encoding: str) -> str:
    """The separator that cuts the header into the most cells; a comma when none cuts it at all."""

    def header_width(separator: str) -> int:
        with path.open(encoding=encoding, newline="") as file:
            try:
                return next((len(row) for row in csv.reader(file, delimiter=separator) if any(row)), 0)
            except csv.Error:
                return 0

    return max(_SEPARATORS, key=header_width)


@contextmanager
def _long_cells_allowed() -> Iterator[None]:
    """The csv module's limit is one for the whole process, so it is put back."""
    limit = csv.field_size_limit(MAX_CSV_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _delimited_rows(path: Path, reader: Any, problems: list[str]) -> Iterator[list[str]]:
    """The records. One with more cells than the header is a problem: its text was torn at a separator."""
    width = 0
    for number in count(1):
        try:
            row = next(reader, None)
        except (csv.Error, UnicodeDecodeError) as error:
            problems.append(f"{path.name}, row {number} (line {reader.line_num}): {error}; check the quotes")
            return
        if row is None:
            return
        width = width or (len(row) if any(cell.strip() for cell in row) else 0)
        if any(cell.strip() for cell in row[width:]):
            problems.append(
                f"{path.name}, row {number} (line {reader.line_num}): {len(row)} cells, but the header has {width}; "
                "put text that contains the separator or line ends between double quotes"
            )
            row = []
        yield row


# --- .parquet ---------------------------------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path, name: str | None) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    try:
        from pyarrow import ArrowException  # type: ignore[import-untyped]
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    except ImportError:
        raise TableError(
            f"{path.name}: reading Parquet needs pyarrow; pip install rag-eval[parquet]"
        ) from None
    with _damage_reported(path, ArrowException):
        file = ParquetFile(path)
    with file:
        header = [file.schema_arrow.names]
        rows = chain(header, _parquet_rows(path, file))
        yield Sheet("", _with_text(rows))


def _parquet_rows(path: Path, file: Any) -> Iterator[list[str]]:
    batches = file.iter_batches(batch_size=500)
    while True:
        with _damage_reported(path):
            batch = next(batches, None)
            if batch is None:
                return
            columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield [cell_text(value) for value in values]


def _refuse_sheet_name(path: Path, name: str | None) -> None:
    if name is not None:
        raise TableError(f"{path.name}: {path.suffix} files have no sheets; leave out --sheet '{name}'")


_FORMATS: dict[str, tuple[str, Callable[[Path, str | None], AbstractContextManager[Sheet]]]] = {
    ".xlsx": (_WORKBOOK, _open_workbook),
    ".xlsm": (_WORKBOOK, _open_workbook),
    ".xls": (_OLD_EXCEL, _open_with_calamine),
    ".ods": (_OPEN_DOCUMENT, _open_with_calamine),
    ".csv": (_TEXT, _open_delimited),
    ".tsv": (_TEXT, _open_delimited),
    ".parquet": (_PARQUET, _open_parquet),
}
