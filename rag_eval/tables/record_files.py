"""Files of records, one after the other and with their cells as they are: .tsv, .csv, .json, .jsonl, .xlsx, .parquet.

For files whose columns a caller knows by name. Spreadsheets of bots and their answers are read by `workbook`.
"""

import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias
from xml.etree.ElementTree import ParseError, iterparse

from rag_eval.errors import TableError, how_to_install

Rows: TypeAlias = Iterator[tuple[int, Sequence[Any]]]


class Records(NamedTuple):
    """A file that lies open: the names of its columns, and how to walk over some of them."""

    names: Sequence[str]
    rows: Callable[[Sequence[int]], Rows]
    """The positions of columns → for each row its number in the file and its cells there. Can be called once."""
    blank: list[int]
    """Numbers of the blank rows below the header that were passed over so far."""


@contextmanager
def open_records(path: Path) -> Iterator[Records]:
    """Raises TableError, also while rows are read, for a file that cannot be read."""
    opener = _FORMATS.get(path.suffix.lower())
    if opener is None:
        raise TableError(f"{path.name}: is none of the formats that are read: {', '.join(_FORMATS)}")
    try:
        with opener(path) as records:
            yield records
    except UnicodeDecodeError as error:
        raise TableError(f"{path.name}: is not UTF-8; save it as UTF-8") from error
    except _UNREADABLE as error:
        raise TableError(
            f"{path.name}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


_UNREADABLE = (OSError, ValueError, RecursionError, csv.Error, zipfile.BadZipFile, ParseError)


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
        both = " and ".join(repr(names[position]) for position in found)
        raise TableError(f"{path.name}: the columns {both} mean the same; keep one of them")
    return found[0] if found else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum()) or name


class Problems:
    """What is wrong with a file, one line each, up to a number that somebody would read."""

    _SHOWN = 20

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def add(self, line: str) -> None:
        self._count += 1
        if self._count <= self._SHOWN:
            self._lines.append(line)

    def raise_if_any(self) -> None:
        hidden = self._count - len(self._lines)
        if self._count:
            raise TableError([*self._lines, *([f"… and {hidden:,} more like these"] if hidden else [])])


# --- formats ----------------------------------------------------------------------------------------------------


@contextmanager
def _delimited(path: Path) -> Iterator[Records]:
    # The limit is the process's, and documents of more than its 131,072 characters stand in context columns.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = _comma_separated(file) if path.suffix.lower() == ".csv" else _tab_separated(file)
        names = next(lines, (0, []))[1]
        blank: list[int] = []
        yield Records(names, lambda columns: _delimited_rows(lines, len(names), columns, blank), blank)


_LONGEST_CELL = 2**24

_Lines: TypeAlias = Iterator[tuple[int, list[str]]]
"""The cells of each record, after the number of the line that it ends in."""


def _comma_separated(file: TextIO) -> _Lines:
    """Or by semicolons, as spreadsheet programs write where the comma is the decimal sign: the header has no comma."""
    header = file.readline()
    separator = ";" if ";" in header and "," not in header else ","
    reader = csv.reader(chain([header], file), delimiter=separator, strict=True)
    for cells in reader:
        yield reader.line_num, cells


def _tab_separated(file: TextIO) -> _Lines:
    """A line without quotes is cut at its tabs, which takes a fraction of the time that the csv module needs."""
    number = 0
    for line in file:
        number += 1
        if '"' not in line:
            yield number, line.rstrip("\r\n").split("\t")
            continue
        # a quoted cell may hold line ends, so that its record takes further lines from the file
        reader = csv.reader(chain([line], file), delimiter="\t", strict=True)
        cells = next(reader)
        number += reader.line_num - 1
        yield number, cells


def _delimited_rows(lines: _Lines, width: int, columns: Sequence[int], blank: list[int]) -> Rows:
    for number, cells in lines:
        if not any(cells):
            blank.append(number)
        elif len(cells) == width:
            yield number, [cells[column] for column in columns]
        else:
            raise ValueError(f"line {number} has {len(cells)} cells, but the header has {width}")


@contextmanager
def _json_lines(path: Path) -> Iterator[Records]:
    with path.open(encoding="utf-8-sig") as file:
        yield _objects(_parsed_lines(file))


def _parsed_lines(file: TextIO) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, 1):
        if not line.isspace():
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is no JSON: {error}") from None
            yield number, record


@contextmanager
def _json_array(path: Path) -> Iterator[Records]:
    records = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(records, list):
        raise ValueError("expected a JSON list of objects")
    yield _objects(enumerate(records, 1))


def _objects(records: Iterator[tuple[int, Any]]) -> Records:
    """Objects as a table whose columns are the keys of the first one."""
    head = list(islice(records, 1))
    names = [str(name) for _, record in head if isinstance(record, dict) for name in record]
    return Records(names, lambda columns: _object_rows(chain(head, records), [names[c] for c in columns]), [])


def _object_rows(records: Iterable[tuple[int, Any]], keys: Sequence[str]) -> Rows:
    for number, record in records:
        if not (isinstance(record, dict) and all(key in record for key in keys)):
            raise ValueError(f"number {number} is no object with {' and '.join(map(repr, keys))}")
        yield number, [record[key] for key in keys]


@contextmanager
def _excel(path: Path) -> Iterator[Records]:
    from openpyxl import load_workbook

    _refuse_bomb(path)
    try:
        workbook = load_workbook(path, read_only=True, data_only=True)
    except KeyError as error:
        raise TableError(f"{path.name}: is no Excel workbook: {error}") from error
    with closing(workbook):
        sheet: Any = workbook.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its own size may be wrong
        numbered = enumerate(sheet.iter_rows(values_only=True), 1)
        _, header = next((each for each in numbered if not _is_blank(each[1])), (0, ()))
        names = ["" if name is None else str(name) for name in header]
        unknown = _formulas_without_result(path, sheet._worksheet_path)
        blank: list[int] = []
        yield Records(names, lambda columns: _excel_rows(numbered, columns, unknown, blank), blank)


def _refuse_bomb(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > _LARGEST_WORKBOOK:
        raise TableError(
            f"{path.name}: unpacks to {size / 1e6:,.0f} MB, over the {_LARGEST_WORKBOOK / 1e6:,.0f} MB "
            "that are read; save it as .csv, .jsonl or .parquet"
        )


_LARGEST_WORKBOOK = 500_000_000


_ROW, _CELL, _FORMULA, _VALUE = (
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{tag}" for tag in ("row", "c", "f", "v")
)


def _formulas_without_result(path: Path, part: str) -> Set[tuple[int, int]]:
    """Row and column, counted from 1 and from 0, of formulas that no spreadsheet program has computed yet.

    Their cells read as blank, which would count as nothing retrieved. A result that is an empty text has a type.
    """
    from openpyxl.utils.cell import coordinate_to_tuple

    found = set()
    with zipfile.ZipFile(path) as archive, archive.open(part) as xml:
        for _, element in iterparse(xml):  # noqa: S314 - as openpyxl does; expat limits entities
            if element.tag == _CELL:
                is_formula = element.find(_FORMULA) is not None and element.get("t") != "str"
                if is_formula and not element.findtext(_VALUE) and (place := element.get("r")):
                    row, column = coordinate_to_tuple(place)
                    found.add((row, column - 1))
                element.clear()
            elif element.tag == _ROW:
                element.clear()
    return found


def _excel_rows(
    rows: Iterable[tuple[int, tuple[Any, ...]]],
    columns: Sequence[int],
    unknown: Set[tuple[int, int]],
    blank: list[int],
) -> Rows:
    for number, row in rows:
        if unknown and any((number, column) in unknown for column in columns):
            raise ValueError(
                f"row {number} has a formula whose result was never stored; open the file in Excel and save it"
            )
        if _is_blank(row):
            blank.append(number)
        else:
            yield number, [row[column] if column < len(row) else None for column in columns]


def _is_blank(row: tuple[Any, ...]) -> bool:
    return all(cell is None for cell in row)


@contextmanager
def _parquet(path: Path) -> Iterator[Records]:
    try:
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise TableError(
            f"{path.name}: reading Parquet needs pyarrow; install it with {how_to_install('parquet')}"
        ) from error
    with ParquetFile(path) as file:
        names = file.schema_arrow.names
        yield Records(names, lambda columns: _parquet_rows(file, [names[column] for column in columns]), [])


def _parquet_rows(file: Any, names: Sequence[str]) -> Rows:
    number = 0
    for batch in file.iter_batches(batch_size=4096, columns=list(names)):
        for cells in zip(*(batch[name].to_pylist() for name in names), strict=True):
            number += 1
            yield number, cells


_FORMATS: Mapping[str, Callable[[Path], AbstractContextManager[Records]]] = {
    ".tsv": _delimited,
    ".csv": _delimited,
    ".json": _json_array,
    ".jsonl": _json_lines,
    ".xlsx": _excel,
    ".parquet": _parquet,
}
