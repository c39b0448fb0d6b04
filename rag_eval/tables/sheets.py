"""A spreadsheet file to rows of text, whatever its format. Streams, and knows nothing about columns' meanings."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rag_eval.errors import TableError, how_to_install
from rag_eval.tables.cells import ERROR, UNCACHED, Area, BadCell, Cell, cell_text, is_blank
from rag_eval.tables.content import (
    OLD_EXCEL,
    OPEN_DOCUMENT,
    PARQUET,
    PROTECTED,
    TEXT,
    WORKBOOK,
    check_content,
    damage_reported,
)
from rag_eval.tables.delimited import FOUND_OUT, TextForm, open_records


@dataclass(frozen=True, slots=True)
class Sheet:
    """One opened sheet."""

    name: str
    """Empty for formats without sheets."""
    rows: Iterator[tuple[int, Sequence[Cell]]]
    """Row number, counted from 1, and cells from column A on; rows without any text are left out."""
    layout: str = ""
    """How a text file is written: its separator and encoding."""
    merged: Sequence[Area] = ()
    """Of a workbook's sheet complete once `rows` are consumed."""
    warnings: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    """Rows that cannot be read, each with its place; filled while `rows` is consumed."""
    short: Sequence[int] = ()
    """Rows of a text file that end before the header does; filled in the same way."""


@contextmanager
def open_sheet(path: Path, name: str | None = None, form: TextForm = FOUND_OUT) -> Iterator[Sheet]:
    """Open the named sheet, by default the first visible one. Raises TableError for a file that cannot be read.

    `form` says how a text file is written; other formats know that themselves.
    """
    suffix = path.suffix.lower()
    if suffix not in _CONTENTS:
        raise TableError(
            f"{path.name}: cannot read files of type '{suffix}'; use one of {' '.join(_CONTENTS)}"
        )
    content = _CONTENTS[suffix]
    if content == TEXT:
        check_content(path, content, is_encoding_known=bool(form.encoding))
        with _open_delimited(path, name, form) as sheet:
            yield sheet
        return
    check_content(path, content)
    notes = [f"{option} has no effect on {suffix} files." for option in form.options]
    with _OPENERS[content](path, name) as sheet:
        yield replace(sheet, warnings=(*sheet.warnings, *notes))


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
    return _holding_text(enumerate(rows, 1))


def _holding_text(rows: Iterable[tuple[int, Sequence[Cell]]]) -> Iterator[tuple[int, Sequence[Cell]]]:
    return ((number, cells) for number, cells in rows if not all(map(is_blank, cells)))


# --- .xlsx, .xlsm -----------------------------------------------------------------------------------------------


@contextmanager
def _open_workbook(path: Path, name: str | None) -> Iterator[Sheet]:
    with damage_reported(path), _openpyxl_silent():
        from rag_eval.tables.excel import Reader

        reader = Reader(path)
        reader.read()
    book = reader.wb
    try:
        if reader.is_strict():
            raise TableError(
                f"{path.name}: is saved as 'Strict Open XML Spreadsheet'; save it as 'Excel Workbook (.xlsx)'"
            )
        sheets = [(sheet.title, sheet.sheet_state == "visible") for sheet in book.worksheets]
        chosen, notes = _choose(path, sheets, name)
        merged: list[Area] = []
        rows = _workbook_rows(path, reader.rows(chosen, merged))
        yield Sheet(chosen, _holding_text(rows), merged=merged, warnings=notes)
    finally:
        book.close()


def _workbook_rows(
    path: Path, rows: Iterator[tuple[int, list[dict[str, Any]]]]
) -> Iterator[tuple[int, list[Cell]]]:
    while True:
        with damage_reported(path), _openpyxl_silent():
            block = list(islice(rows, 500))
        if not block:
            return
        for number, found in block:
            cells: list[Cell] = [""] * max((cell["column"] for cell in found), default=0)
            for cell in found:
                cells[cell["column"] - 1] = _workbook_cell(cell["value"], cell["data_type"])
            yield number, cells


def _workbook_cell(value: object, kind: str) -> Cell:
    if kind == UNCACHED:
        return BadCell("a formula without a stored result; open the file in Excel and save it")
    if kind == ERROR and value is not None:
        return BadCell(f"the error value {value}; correct the formula or clear the cell")
    return _ESCAPE.sub(_escaped, value) if isinstance(value, str) and "_x" in value else cell_text(value)


# What cannot stand in the file's XML is spelled by its code, such as _x000D_, and so is an underscore before what
# only looks like that (ECMA-376, part 1, 22.9.2.19).
_ESCAPE = re.compile("_x(?!D[89A-F])([0-9A-F]{4})_", re.IGNORECASE)


def _escaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


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
        read = _open_document_text if path.suffix.lower() == ".ods" else cell_text
        rows = (margin + [read(value) for value in row] for row in sheet.iter_rows())
        merged = tuple(
            Area(first_row + 1, first_column + 1, last_row + 1, last_column + 1)
            for (first_row, first_column), (last_row, last_column) in sheet.merged_cell_ranges or ()
        )
        yield Sheet(chosen, _with_text(rows), merged=merged, warnings=notes)


def _open_document_text(value: object) -> str:
    """As `cell_text`, for a cell of an .ods file: calamine leaves what is no time of day as it is written."""
    if isinstance(value, str) and (duration := _DURATION.fullmatch(value)):
        sign, hours, minutes, seconds = duration.groups()
        return f"{sign}{int(hours)}:{minutes}:{seconds}"
    return cell_text(value)


_DURATION = re.compile(r"(-?)PT(\d{2,6})H(\d{2})M(\d{2})(?:[.,]\d+)?S")


# --- .csv, .tsv -------------------------------------------------------------------------------------------------


@contextmanager
def _open_delimited(path: Path, name: str | None, form: TextForm) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    with open_records(path, form) as file:
        yield Sheet(
            "",
            _with_text(file.rows),
            layout=file.layout,
            warnings=file.warnings,
            problems=file.problems,
            short=file.short,
        )


# --- .parquet ---------------------------------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path, name: str | None) -> Iterator[Sheet]:
    _refuse_sheet_name(path, name)
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TableError(
            f"{path.name}: reading Parquet needs pyarrow; install it with {how_to_install('parquet')}"
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


_CONTENTS = {
    ".xlsx": WORKBOOK,
    ".xlsm": WORKBOOK,
    ".xls": OLD_EXCEL,
    ".ods": OPEN_DOCUMENT,
    ".csv": TEXT,
    ".tsv": TEXT,
    ".parquet": PARQUET,
}
_OPENERS: dict[str, Callable[[Path, str | None], AbstractContextManager[Sheet]]] = {
    WORKBOOK: _open_workbook,
    OLD_EXCEL: _open_with_calamine,
    OPEN_DOCUMENT: _open_with_calamine,
    PARQUET: _open_parquet,
}
