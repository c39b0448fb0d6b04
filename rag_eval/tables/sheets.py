"""A spreadsheet file to rows of text, whatever its format. Streams, and knows nothing about columns' meanings."""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError

from rag_eval.errors import TableError
from rag_eval.tables.cells import (
    ABSENT,
    ERROR,
    NEVER_CALCULATED,
    UNCACHED,
    Area,
    BadCell,
    Cell,
    ChatMessage,
    SheetMarks,
    UnitRuns,
    as_cell,
    as_message,
    cell_text,
    column_letter,
    error_value,
    with_unit,
)
from rag_eval.tables.content import PROTECTED, check_content, damage_reported
from rag_eval.tables.delimited import FOUND_OUT, SEPARATORS, TextForm, open_records
from rag_eval.tables.input_files import MAX_CELL, SUFFIXES, Room, check_is_file, too_long
from rag_eval.tables.nested import leaf_paths
from rag_eval.tables.nested import open_records as open_nested
from rag_eval.tables.old_excel import extract_workbook
from rag_eval.tables.open_document import check_open_document
from rag_eval.tables.parquet import open_parquet
from rag_eval.texts.display import without_half_pairs

if TYPE_CHECKING:
    from rag_eval.tables.excel import Reader


@dataclass(frozen=True, slots=True)
class Sheet:
    """One opened sheet."""

    name: str
    """Empty for formats without sheets."""
    rows: Iterator[tuple[int, Sequence[Cell]]]
    """Row number, counted from 1, and cells from column A on, blank ones as ''; rows without any text are left out."""
    room: Room
    """For what is made of the cells."""
    layout: str = ""
    """How a text file is written: its separator and encoding."""
    merged: Sequence[Area] = ()
    """Of a workbook's sheet complete once `rows` are consumed."""
    warnings: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    """Rows that cannot be read, each with its place; filled while `rows` is consumed."""
    shares_texts: bool = True
    """Whether cells of a small file may share a long text."""
    short: Sequence[int] = ()
    """Rows of a text file that end before the header does; filled in the same way."""
    odd: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    """Rows of a file with records whose values are not read as they are, by the header and the kind of remark."""
    mixed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The first rows of such a file with a value where others have an object, by the header."""
    separators: str = ""
    """That could be the ones of a text file, if its separator was not given."""


@contextmanager
def open_sheet(
    path: Path, name: str | None = None, form: TextForm = FOUND_OUT, header_row: int | None = None
) -> Iterator[Sheet]:
    """Open the named sheet, by default the first visible one. Raises TableError for a file that cannot be read.

    `form` says how a text file is written; other formats know that themselves. The first of the rows is the header:
    that with the number `header_row`, by default the first that is not blank, and the letters of the columns for 0.
    """
    check_is_file(path, TableError)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        if not os.path.exists(path):
            raise TableError(f"{path}: there is no such file")
        raise TableError(
            f"{path.name}: cannot read files of type '{suffix}'; use one of {' '.join(SUFFIXES)}"
        )
    opener = _OPENERS[suffix]
    is_form_used = opener is _open_delimited
    check_content(path, SUFFIXES[suffix], is_encoding_known=is_form_used and bool(form.encoding))
    options = () if is_form_used else form.options
    if header_row is not None and opener in _WITH_FIELD_NAMES:
        options, header_row = (*options, "--header-row"), None
    notes = [f"{option} has no effect on {suffix} files." for option in options]
    with opener(path, name, form, header_row) as sheet:
        yield _headed(path, replace(sheet, warnings=(*sheet.warnings, *notes)), header_row)


def _headed(path: Path, sheet: Sheet, header_row: int | None) -> Sheet:
    """The sheet from its header on, which somebody said to be in this row."""
    if header_row is None:
        return sheet
    rows: Iterator[tuple[int, Sequence[Cell]]] = dropwhile(lambda row: row[0] < header_row, sheet.rows)
    if header_row == 0:
        first = list(islice(rows, ROWS_OF_TITLES))
        width = max((len(cells) for _, cells in first), default=0)
        rows = chain([(0, [column_letter(index) for index in range(width)])] if width else [], first, rows)
    else:
        header = next(rows, None)
        if header is None or header[0] != header_row:
            raise TableError(
                f"{place_of(path, sheet.name)}: row {header_row} is blank, so it cannot be the header; correct "
                "--header-row"
            )
        rows = chain([header], rows)
    told = f"header in row {header_row}" if header_row else "no header"
    return replace(sheet, rows=rows, layout=", ".join(filter(None, (sheet.layout, told))))


def place_of(path: Path, sheet: str) -> str:
    """How messages call a sheet, or a file without sheets."""
    return f"{path.name}, sheet '{sheet}'" if sheet else path.name


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
    some = list(islice(names, _MOST_NAMED + 1))
    more = [f"'{name}'" for name in some[:_MOST_NAMED]] + ["…"] * (len(some) > _MOST_NAMED)
    return ", ".join(more) or "none"


_MOST_NAMED = 40
"""Sheets in one message."""


_NO_MARKS = SheetMarks({}, UnitRuns())


def _with_text(
    rows: Iterable[tuple[int, Iterable[str]]], marks: SheetMarks = _NO_MARKS
) -> Iterator[tuple[int, Sequence[Cell]]]:
    """The rows that hold anything, with what is marked: bad cells are blank in `rows`, and numbers have no units."""
    bad, units = marks
    last = 0
    for number, texts in rows:
        cells = list(map(as_cell, texts))
        for column, unit in units.of_row(number):
            if column < len(cells):
                cells[column] = with_unit(cells[column], unit)
        if number in bad:
            _place(bad[number], cells)
        if any(cells):
            yield number, cells
        last = number
    for number in sorted(number for number in bad if number > last):
        yield number, _place(bad[number], [])


def _place(bad: Mapping[int, BadCell], cells: list[Cell]) -> list[Cell]:
    cells += [""] * (max(bad) + 1 - len(cells))
    for column, cell in bad.items():
        cells[column] = cell
    return cells


# --- .xlsx, .xlsm -----------------------------------------------------------------------------------------------


@contextmanager
def _open_workbook(path: Path, name: str | None, _: TextForm, header_row: int | None) -> Iterator[Sheet]:
    room = Room(path.name, path.stat().st_size)
    with open_reader(path, room) as reader:
        if reader.is_strict:
            raise TableError(
                f"{path.name}: is saved as 'Strict Open XML Spreadsheet'; save it as 'Excel Workbook (.xlsx)'"
            )
        sheets = [(sheet.name, sheet.is_visible) for sheet in reader.sheets]
        chosen, notes = _choose(path, sheets, name)
        sheet = next(sheet for sheet in reader.sheets if sheet.name == chosen)
        merged: list[Area] = []
        rows = _workbook_rows(path, reader.rows(sheet, merged), header_row)
        yield Sheet(chosen, rows, room, merged=merged, warnings=notes)


@contextmanager
def open_reader(path: Path, room: Room) -> Iterator["Reader"]:
    """The parts of a workbook around its cells, read. Raises TableError for a damaged one."""
    with damage_reported(path), _openpyxl_silent():
        from rag_eval.tables.excel import Reader

        reader = Reader(path, room, as_cell)
    try:
        yield reader
    finally:
        reader.close()


def _workbook_rows(
    path: Path, rows: Iterator[tuple[int, list[dict[str, Any]]]], header_row: int | None
) -> Iterator[tuple[int, list[Cell]]]:
    width = _LAST_COLUMN
    header_width = count = 0
    for number, found in _parsed_rows(path, rows):
        filled = {
            cell["column"]: text
            for cell in found
            if cell["column"] <= width and (text := _workbook_cell(cell))
        }
        if not filled:
            continue
        cells: list[Cell] = [""] * max(filled)
        for column, text in filled.items():
            cells[column - 1] = text
        yield number, cells
        count += number >= (header_row or 0)
        if count and (header_row == 0 or not header_width):
            header_width = max(header_width, len(cells))
        if count > ROWS_OF_TITLES:
            width = header_width  # what stands beside the table has no header, and would only make rows long


ROWS_OF_TITLES = 20
"""In which a header is looked for below what was taken for it."""
_LAST_COLUMN = 2**14


def value_rows(
    path: Path, rows: Iterator[tuple[int, list[dict[str, Any]]]]
) -> Iterator[tuple[int, list[Any]]]:
    """Number and values of each row that a `Reader` finds; a blank cell is None. TableError for a damaged sheet."""
    for number, found in _parsed_rows(path, rows):
        filled = [cell for cell in found if cell["value"] not in (None, "") or cell["data_type"] == UNCACHED]
        cells: list[Any] = [None] * max((cell["column"] for cell in filled), default=0)
        for cell in filled:
            cells[cell["column"] - 1] = _UNKNOWN if cell["data_type"] == UNCACHED else cell["value"]
        yield number, cells


_UNKNOWN = BadCell("has a formula whose result was never stored; open the file in Excel and save it")


def _parsed_rows(
    path: Path, rows: Iterator[tuple[int, list[dict[str, Any]]]]
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    while True:
        with damage_reported(path), _openpyxl_silent():
            block = _block(rows)
        if not block:
            return
        yield from block


def _block(rows: Iterator[tuple[int, list[dict[str, Any]]]]) -> list[tuple[int, list[dict[str, Any]]]]:
    """Several rows at once, because what is wrapped around each reading takes time; of wide ones fewer."""
    block = []
    cells = 0
    for row in rows:
        block.append(row)
        cells += 1 + len(row[1])
        if cells > _CELLS_OF_A_BLOCK:
            break
    return block


_CELLS_OF_A_BLOCK = 5_000


def _workbook_cell(cell: Mapping[str, Any]) -> Cell:
    value, kind = cell["value"], cell["data_type"]
    if kind == UNCACHED:
        return NEVER_CALCULATED
    if kind == ERROR and value is not None:
        return error_value(str(value))
    if kind == "s" and isinstance(value, str | BadCell):
        return value  # a cell already
    found = as_cell(cell_text(value))
    return with_unit(found, cell["unit"]) if "unit" in cell else found


@contextmanager
def _openpyxl_silent() -> Iterator[None]:
    """openpyxl warns about everything that it would lose on saving; nothing is saved here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- .xls, .ods -------------------------------------------------------------------------------------------------


@contextmanager
def _open_with_calamine(path: Path, name: str | None, *_: object) -> Iterator[Sheet]:
    from python_calamine import (
        CalamineError,
        CalamineWorkbook,
        PasswordError,
        SheetTypeEnum,
        SheetVisibleEnum,
    )

    room = Room(path.name, path.stat().st_size)
    with damage_reported(path, CalamineError, ExpatError):
        try:
            if path.suffix.lower() == ".ods":
                marks = check_open_document(path, room)
                book = CalamineWorkbook.from_path(path)
            else:
                content, in_order = extract_workbook(path, room)
                book = CalamineWorkbook.from_filelike(BytesIO(content))
                names = [sheet.name for sheet in book.sheets_metadata]
                marks = dict(zip(names, in_order, strict=False))
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
        read = _open_document_text if path.suffix.lower() == ".ods" else cell_text
        rows = enumerate(([*margin, *map(read, row)] for row in sheet.iter_rows()), 1)
        merged = tuple(
            Area(first_row + 1, first_column + 1, last_row + 1, last_column + 1)
            for (first_row, first_column), (last_row, last_column) in sheet.merged_cell_ranges or ()
        )
        yield Sheet(
            chosen, _with_text(rows, marks.get(chosen, _NO_MARKS)), room, merged=merged, warnings=notes
        )


def _open_document_text(value: object) -> str:
    """As `cell_text`, for a cell of an .ods file: calamine leaves what is no time of day as it is written."""
    if isinstance(value, str) and (duration := _DURATION.fullmatch(value)):
        sign, hours, minutes, seconds = duration.groups()
        return f"{sign}{int(hours)}:{minutes}:{seconds}"
    return cell_text(value)


_DURATION = re.compile(r"(-?)PT(\d{2,6})H(\d{2})M(\d{2})(?:[.,]\d+)?S")


# --- .csv, .tsv -------------------------------------------------------------------------------------------------


@contextmanager
def _open_delimited(path: Path, name: str | None, form: TextForm, header_row: int | None) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    with open_records(path, form, header_row) as file:
        yield Sheet(
            "",
            _with_text(file.rows),
            Room(path.name, path.stat().st_size),
            layout=file.layout,
            shares_texts=False,
            warnings=file.warnings,
            problems=file.problems,
            short=file.short,
            separators="" if form.separator else "".join(SEPARATORS),
        )


# --- .parquet ---------------------------------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path, name: str | None, *_: object) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    room = Room(path.name, path.stat().st_size)
    with open_parquet(path, room, lambda value: as_cell(cell_text(value))) as table:
        paths = [(place, path) for place, tree in enumerate(table.trees) for path in leaf_paths(tree)]
        header = [as_cell(".".join(path)) for _, path in paths]
        found = table.rows(range(len(table.names)))
        rows: Iterator[list[Cell]] = (list(map(_parquet_cell, values)) for values in found)
        if any(len(path) > 1 for _, path in paths):
            rows = ([_field_cell(values[place], path[1:]) for place, path in paths] for values in found)
        yield Sheet("", _filled(enumerate(chain([header], rows), 1)), room)


def _filled(rows: Iterable[tuple[int, list[Cell]]]) -> Iterator[tuple[int, Sequence[Cell]]]:
    """The rows that hold anything."""
    return ((number, cells) for number, cells in rows if any(cells))


def _field_cell(value: Any, path: Sequence[str]) -> Cell:
    """A cell of a column that is a structure: one of its fields."""
    for name in path:
        value = None if value is None else value[name]
    return as_cell(value) if path and isinstance(value, str) else _parquet_cell(value)


def _parquet_cell(value: object) -> Cell:
    if isinstance(value, str | BadCell):
        return value  # a cell already
    if isinstance(value, list | dict) and (length := _extent(value)) > MAX_CELL:
        return BadCell(too_long(length))
    return as_cell(cell_text(value))


def _extent(value: object) -> int:
    """About as many characters as a value takes when it is written."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(map(_extent, value.values())) + len(value)
    return sum(map(_extent, value)) + len(value) if isinstance(value, list | tuple) else 1


# --- .json, .jsonl ----------------------------------------------------------------------------------------------


@contextmanager
def _open_json(path: Path, name: str | None, *_: object) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    with open_nested(path) as records:
        rows = (
            (number, [value_cell(values[each]) if each in values else ABSENT for each in records.paths])
            for number, values in records.rows
        )
        header = [(0, [as_cell(without_half_pairs(each)) for each in records.paths])] if records.paths else []
        room = Room(path.name, path.stat().st_size)
        yield Sheet(
            "",
            _filled(chain(header, rows)),
            room,
            layout=records.layout,
            shares_texts=False,
            warnings=records.warnings,
            odd=records.odd,
            mixed={without_half_pairs(name): rows for name, rows in records.mixed.items()},
        )


def value_cell(value: object) -> Cell:
    """The cell of a value from JSON, or of a message in it."""
    if isinstance(value, str):
        cell = as_cell(value if value.isascii() else without_half_pairs(value))
        return as_message(cell, value) if isinstance(value, ChatMessage) else cell
    return _parquet_cell(value)


def _refuse_sheet_name(path: Path, name: str | None) -> None:
    if name is not None:
        raise TableError(f"{path.name}: {path.suffix} files have no sheets; leave out --sheet '{name}'")


_OPENERS: dict[str, Callable[[Path, str | None, TextForm, int | None], AbstractContextManager[Sheet]]] = {
    ".xlsx": _open_workbook,
    ".xlsm": _open_workbook,
    ".xls": _open_with_calamine,
    ".ods": _open_with_calamine,
    ".csv": _open_delimited,
    ".tsv": _open_delimited,
    ".parquet": _open_parquet,
    ".jsonl": _open_json,
    ".ndjson": _open_json,
    ".json": _open_json,
}
"""One for each of SUFFIXES."""
_WITH_FIELD_NAMES = (_open_json, _open_parquet)
"""Of formats in which every value has its name, so that no row is a header."""
