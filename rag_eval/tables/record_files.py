"""Files of records, one after the other and with their cells as they are, of all the formats that tables have.

For files whose columns a caller knows by name. Spreadsheets of bots and their answers are read by `workbook`.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias

from rag_eval.errors import TableError
from rag_eval.tables.bounds import MAX_CELL, MAX_COLUMNS, Room, too_long
from rag_eval.tables.cells import BadCell, column_letter
from rag_eval.tables.content import PARQUET, WORKBOOK, check_content
from rag_eval.tables.delimited import BoundedLines, long_cells_allowed
from rag_eval.tables.input_files import check_is_file
from rag_eval.tables.nested import records_of_document
from rag_eval.tables.parquet import ParquetTable, open_parquet
from rag_eval.tables.sheets import open_reader, open_sheet, value_rows

Rows: TypeAlias = Iterator[tuple[int, Sequence[Any]]]


class Records(NamedTuple):
    """A file that lies open: the names of its columns, and how to walk over some of them."""

    names: Sequence[str]
    rows: Callable[[Sequence[int]], Rows]
    """The positions of columns → for each row its number in the file and its cells there. Can be called once."""
    blank: list[int]
    """Numbers of the blank rows below the header that were passed over so far: the first thousand."""


@contextmanager
def open_records(path: Path) -> Iterator[Records]:
    """Raises TableError, also while rows are read, for a file that cannot be read."""
    opener = _FORMATS.get(path.suffix.lower())
    if opener is None:
        raise TableError(f"{path.name}: is none of the formats that are read: {', '.join(_FORMATS)}")
    check_is_file(path, TableError)
    try:
        path.open("rb").close()  # whatever its format, a missing file is told of in the same words
        with opener(path) as records:
            if len(records.names) > MAX_COLUMNS:
                raise TableError(
                    f"{path.name}: has {len(records.names):,} columns, more than the {MAX_COLUMNS:,} allowed; remove "
                    "those that are not needed"
                )
            yield records
    except UnicodeDecodeError as error:
        raise TableError(f"{path.name}: is not UTF-8; save it as UTF-8") from error
    except _UNREADABLE as error:
        raise TableError(
            f"{path.name}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def listed(names: Sequence[str]) -> str:
    """Names of columns for a message: the first of them, long ones cut; 'none' for none."""
    shown = [name if len(name) <= 60 else f"{name[:59]}…" for name in names[:_MOST_NAMED]]
    return ", ".join([*shown, *(["…"] if len(names) > _MOST_NAMED else [])]) or "none"


_MOST_NAMED = 40

_UNREADABLE = (OSError, ValueError, RecursionError, csv.Error)


def row_unit(path: Path) -> str:
    """What the numbers of a file's rows count: 'line' or 'row'."""
    return "line" if path.suffix.lower() in (".tsv", ".csv", ".jsonl") else "row"


def find_column(path: Path, names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Position of the one column with a wanted name, whatever its case and separators; None without any.

    Raises TableError for two of them.
    """
    plain = {_plain(name) for name in wanted}
    found = [position for position, name in enumerate(names) if _plain(name) in plain]
    if len(found) > 1:
        both = " and ".join(repr(names[position][:60]) for position in found[:10])
        raise TableError(f"{path.name}: the columns {both} mean the same; keep one of them")
    return found[0] if found else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name


class Problems:
    """What is wrong with a file, one line each, up to a number that somebody would read."""

    _SHOWN = 20
    _LONGEST = 1_000
    """Characters of a line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def add(self, line: str) -> None:
        self._count += 1
        if self._count <= self._SHOWN:
            self._lines.append(line if len(line) <= self._LONGEST else f"{line[: self._LONGEST]}…")

    def raise_if_any(self) -> None:
        hidden = self._count - len(self._lines)
        if self._count:
            raise TableError([*self._lines, *([f"… and {hidden:,} more like these"] if hidden else [])])


# --- formats ----------------------------------------------------------------------------------------------------


def _encoding(path: Path) -> str:
    """UTF-8, or UTF-16 if the file begins with its mark."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


@contextmanager
def _delimited(path: Path) -> Iterator[Records]:
    # Documents of more than the csv module's 131,072 characters stand in context columns.
    with path.open(encoding=_encoding(path), newline="") as file, long_cells_allowed():
        lines = _comma_separated(path, file) if path.suffix.lower() == ".csv" else _tab_separated(path, file)
        names = next(lines, (0, []))[1]
        blank: list[int] = []
        yield Records(names, lambda columns: _delimited_rows(lines, len(names), columns, blank), blank)


_Lines: TypeAlias = Iterator[tuple[int, list[str]]]
"""The cells of each record, after the number of the line that it ends in."""


def _comma_separated(path: Path, file: TextIO) -> _Lines:
    """Or by semicolons, as spreadsheet programs write where the comma is the decimal sign: the header has no comma."""
    header = file.readline()
    separator = ";" if ";" in header and "," not in header else ","
    lines = BoundedLines(path, chain([header], file), separator)
    for cells in csv.reader(lines, delimiter=separator, strict=True):
        yield lines.number, cells
        lines.begin_record()


def _tab_separated(path: Path, file: TextIO) -> _Lines:
    """A line without quotes is cut at its tabs, which takes a fraction of the time that the csv module needs."""
    lines = BoundedLines(path, file, "\t")
    for line in lines:
        if '"' not in line:
            cells = line.rstrip("\r\n").split("\t")
        else:
            # a quoted cell may hold line ends, so that its record takes further lines from the file
            cells = next(csv.reader(chain([line], lines), delimiter="\t", strict=True))
        yield lines.number, cells
        lines.begin_record()


def _delimited_rows(lines: _Lines, width: int, columns: Sequence[int], blank: list[int]) -> Rows:
    for number, cells in lines:
        if not any(cells):
            _add_blank(blank, number)
        elif len(cells) == width:
            yield (
                number,
                [_bounded(cells[column], f"line {number}, column {column + 1}") for column in columns],
            )
        else:
            raise ValueError(f"line {number} has {len(cells)} cells, but the header has {width}")


def _bounded(cell: Any, place: str) -> Any:
    if isinstance(cell, str) and len(cell) > MAX_CELL:
        raise ValueError(f"{place} {too_long(len(cell))}")
    return cell


def _add_blank(blank: list[int], number: int) -> None:
    if len(blank) < _MOST_BLANK:
        blank.append(number)


_MOST_BLANK = 1_000
"""Blank rows that are remembered, from the top; fewer are ever named."""


@contextmanager
def _json_lines(path: Path) -> Iterator[Records]:
    with path.open(encoding=_encoding(path)) as file:
        yield _objects(_parsed_lines(file))


def _parsed_lines(file: TextIO) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, 1):
        if not line.isspace():
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {error}") from None
            yield number, record


@contextmanager
def _json_array(path: Path) -> Iterator[Records]:
    """The records of a list, wherever the document has it; or, as some tools write, a record in each line."""
    records, where = records_of_document(path)
    if where is None:
        with _json_lines(path) as lines:
            yield lines
        return
    yield _objects(enumerate(records, 1))


def _objects(records: Iterator[tuple[int, Any]]) -> Records:
    """Objects as a table whose columns are the keys of the first one."""
    head = list(islice(records, 1))
    names = [str(name) for _, record in head if isinstance(record, dict) for name in record]
    return Records(names, lambda columns: _object_rows(chain(head, records), [names[c] for c in columns]), [])


def _object_rows(records: Iterable[tuple[int, Any]], keys: Sequence[str]) -> Rows:
    for number, record in records:
        if not (isinstance(record, dict) and all(key in record for key in keys)):
            raise ValueError(f"number {number} is not an object with {' and '.join(map(repr, keys))}")
        yield number, [_bounded(record[key], f"number {number}, {key!r}") for key in keys]


@contextmanager
def _excel(path: Path) -> Iterator[Records]:
    check_content(path, WORKBOOK)
    with open_reader(path, _room(path)) as reader:
        if not reader.sheets:
            raise TableError(f"{path.name}: has no sheet with cells")
        rows = _every_row(value_rows(path, reader.rows(reader.sheets[0], [])))
        header: Sequence[Any] = next((cells for _, cells in rows if not _is_blank(cells)), ())
        names = [_header_text(cell) for cell in header]
        blank: list[int] = []
        yield Records(names, lambda columns: _excel_rows(rows, columns, blank), blank)


def _room(path: Path) -> Room:
    return Room(path.name, path.stat().st_size)


def _header_text(cell: object) -> str:
    return "" if cell is None or isinstance(cell, BadCell) else str(cell)


def _every_row(rows: Iterable[tuple[int, list[Any]]]) -> Iterator[tuple[int, list[Any]]]:
    """The rows with those between them that the sheet leaves out."""
    before = 0
    for number, cells in rows:
        yield from ((skipped, []) for skipped in range(before + 1, number))
        before = number
        yield number, cells


def _excel_rows(rows: Iterable[tuple[int, list[Any]]], columns: Sequence[int], blank: list[int]) -> Rows:
    for number, row in rows:
        cells = [row[column] if column < len(row) else None for column in columns]
        for column, cell in zip(columns, cells, strict=True):
            if isinstance(cell, BadCell):
                raise ValueError(f"row {number}, column {column_letter(column)} {cell.problem}")
        if _is_blank(row):
            _add_blank(blank, number)
        else:
            yield number, cells


def _is_blank(row: Sequence[Any]) -> bool:
    return all(cell is None for cell in row)


@contextmanager
def _parquet(path: Path) -> Iterator[Records]:
    check_content(path, PARQUET)
    with open_parquet(path, _room(path)) as table:
        yield Records(table.names, lambda columns: _parquet_rows(table, columns), [])


def _parquet_rows(table: ParquetTable, columns: Sequence[int]) -> Rows:
    for number, values in enumerate(table.rows(columns), 1):
        pairs = zip(columns, values, strict=True)
        yield number, [_bounded(value, f"row {number}, column {column + 1}") for column, value in pairs]


@contextmanager
def _spreadsheet(path: Path) -> Iterator[Records]:
    """An .xls or .ods file: all its cells are texts."""
    with open_sheet(path) as sheet:
        header: Sequence[Any] = next((cells for _, cells in sheet.rows), ())
        rows = _every_row(((number, [cell or None for cell in cells]) for number, cells in sheet.rows))
        blank: list[int] = []
        names = [_header_text(cell) for cell in header]
        yield Records(names, lambda columns: _excel_rows(rows, columns, blank), blank)


_FORMATS: Mapping[str, Callable[[Path], AbstractContextManager[Records]]] = {
    ".tsv": _delimited,
    ".csv": _delimited,
    ".json": _json_array,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".xlsx": _excel,
    ".xlsm": _excel,
    ".xls": _spreadsheet,
    ".ods": _spreadsheet,
    ".parquet": _parquet,
}
