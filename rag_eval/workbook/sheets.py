"""A spreadsheet file to rows of text, whatever its format. Streams, and knows nothing about columns' meanings."""

import csv
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from rag_eval.errors import TableError
from rag_eval.workbook.cells import BadCell, Cell, cell_text, column_letter, is_blank
from rag_eval.workbook.content import (
    OLD_EXCEL,
    OPEN_DOCUMENT,
    PARQUET,
    PROTECTED,
    TEXT,
    WORKBOOK,
    check_content,
    damage_reported,
)

MAX_CSV_CELL = 10_000_000
"""Characters in one cell of a CSV file; an unclosed quote ends here, not at the end of memory."""


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
    check_content(path, content)
    with opener(path, name) as sheet:
        yield sheet


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
        if not all(map(is_blank, cells)):
            yield number, cells


# --- .xlsx, .xlsm -----------------------------------------------------------------------------------------------


@contextmanager
def _open_workbook(path: Path, name: str | None) -> Iterator[Sheet]:
    from openpyxl.reader.excel import ExcelReader

    with damage_reported(path), _openpyxl_silent():
        reader = ExcelReader(path, read_only=True, data_only=True, keep_links=False)
        reader.read()
    book = reader.wb
    try:
        sheets = [(sheet.title, sheet.sheet_state == "visible") for sheet in book.worksheets]
        chosen, notes = _choose(path, sheets, name)
        with damage_reported(path):
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
    from openpyxl.utils.cell import range_boundaries

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
        with damage_reported(path), _openpyxl_silent():
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

    with damage_reported(path, CalamineError):
        try:
            book = CalamineWorkbook.from_path(path)
        except PasswordError:
            raise TableError(
                f"{path.name}: is {PROTECTED}; open it, remove the password and save it again"
            ) from None
    with book:
        sheets = [
            (sheet.name, sheet.visible == SheetVisibleEnum.Visible)
            for sheet in book.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet
        ]
        chosen, notes = _choose(path, sheets, name)
        with damage_reported(path, CalamineError):
            sheet = book.get_sheet_by_name(chosen)
        # calamine's rows begin at row 1, but at the first column that holds anything.
        margin = [""] * (sheet.start[1] if sheet.start else 0)
        rows = (margin + [cell_text(value) for value in row] for row in sheet.iter_rows())
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
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(path, encoding)
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
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TableError(
            f"{path.name}: reading Parquet needs pyarrow; pip install rag-eval[parquet]"
        ) from None
    with damage_reported(path, ArrowException):
        file = ParquetFile(path)
    with file:
        header = [file.schema_arrow.names]
        rows = chain(header, _parquet_rows(path, file))
        yield Sheet("", _with_text(rows))


def _parquet_rows(path: Path, file: Any) -> Iterator[list[str]]:
    batches = file.iter_batches(batch_size=500)
    while True:
        with damage_reported(path):
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
    ".xlsx": (WORKBOOK, _open_workbook),
    ".xlsm": (WORKBOOK, _open_workbook),
    ".xls": (OLD_EXCEL, _open_with_calamine),
    ".ods": (OPEN_DOCUMENT, _open_with_calamine),
    ".csv": (TEXT, _open_delimited),
    ".tsv": (TEXT, _open_delimited),
    ".parquet": (PARQUET, _open_parquet),
}
