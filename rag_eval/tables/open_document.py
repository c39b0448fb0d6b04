"""What an .ods file would take once it is read, counted before it is: repeated cells and spaces are written once.

The reader leaves errors blank and numbers without their currency, so these are looked for here as well.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat
from zipfile import ZipFile

from rag_eval.errors import TableError
from rag_eval.tables.cells import NEVER_CALCULATED, BadCell, SheetMarks, UnitRuns, error_value
from rag_eval.tables.input_files import Room
from rag_eval.tables.names import TIMES
from rag_eval.tables.number_formats import PERCENT, currency, shown_unit

_CONTENT, _MANIFEST = "content.xml", "META-INF/manifest.xml"
_LARGEST_MANIFEST = 2**20
_BLOCK = 2**16
_LONGEST_PIECE = 8 * 2**20
"""Bytes of one text, comment or tag; a cell may hold far less."""
_CELL_SIZE = 64
"""Bytes that the reader needs for a cell, text not included: it builds the whole rectangle, and copies it once."""
_MARK_SIZE = 200
_ERROR = re.compile(r"#(?:NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A)|Err:\d+")
"""What a formula shows that failed. Only LibreOffice says in the file that this is no text."""
_LONGEST_ERROR = 60


def check_open_document(path: Path, room: Room) -> Mapping[str, SheetMarks]:
    """Take the room that the cells of all sheets need. Raises TableError if there is not enough.

    The errors and units of each sheet by its name.
    """
    with ZipFile(path) as archive:
        names = archive.namelist()
        if _MANIFEST in names and archive.getinfo(_MANIFEST).file_size > _LARGEST_MANIFEST:
            raise TableError(_hostile(path))
        scan = _Scan(path, room)
        with archive.open(_CONTENT) as xml:
            while block := xml.read(_BLOCK):
                scan.feed(block)
    return scan.marks


def _hostile(path: Path) -> str:
    return (
        f"{path.name}: contains far more than the size of the file suggests; copy the table into a new spreadsheet, "
        "or save it as .csv"
    )


class _Scan:
    """Follows the elements of the content. Their names are compared as they are written, as the reader does."""

    def __init__(self, path: Path, room: Room) -> None:
        self._path = path
        self._room = room
        self._left = 1_500_000 + path.stat().st_size * 6 // 10
        """Elements that may still come. Real sheets have far less than one in each byte of their file."""
        self._piece = 0
        self._height = self._width = self._waiting_rows = 0
        self._row_repeats = self._row_width = self._row_text = self._waiting_cells = 0
        self._cell_repeats = self._cell_text = 0
        self._has_value = False
        self._is_formula = self._is_error = self._has_result = self._is_note = False
        self._shown = ""
        """The beginning of the cell's text, comments left out."""
        self.marks: dict[str, SheetMarks] = {}
        self._bad: dict[int, dict[int, BadCell]] = {}
        self._units = UnitRuns()
        self._bad_of_row: list[tuple[int, int, BadCell]] = []
        """First column, number of columns, and what is wrong with them."""
        self._units_of_row: list[tuple[int, int, str]] = []
        """The same, with their unit."""
        self._attributes: dict[str, str] = {}
        """Of the cell."""
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text

    def feed(self, block: bytes) -> None:
        self._piece += len(block)
        self._parser.Parse(block)
        if self._piece > _LONGEST_PIECE:
            self._refuse()

    def _refuse(self, *_: Any) -> None:
        raise TableError(_hostile(self._path))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._piece = 0
        self._left -= 1
        if self._left < 0:
            self._refuse()
        if name in _CELLS:
            self._cell_repeats = _count(attributes, "table:number-columns-repeated")
            self._cell_text = 0
            self._has_value = "office:value-type" in attributes
            self._is_formula = "table:formula" in attributes
            self._is_error = attributes.get("calcext:value-type") == "error"
            self._attributes = attributes
            self._has_result, self._shown = self._has_value, ""
        elif name == "text:s":
            self._cell_text += _count(attributes, "text:c")
        elif name == "text:p" and not self._is_note:
            self._has_result = True
        elif name == "office:annotation":
            self._is_note = True
        elif name == "table:table-row":
            self._row_repeats = _count(attributes, "table:number-rows-repeated")
            self._row_width = self._row_text = self._waiting_cells = 0
            self._bad_of_row.clear()
            self._units_of_row.clear()
        elif name == "table:table":
            self._height = self._width = self._waiting_rows = 0
            self._bad, self._units = {}, UnitRuns()
            self.marks.setdefault(attributes.get("table:name", ""), SheetMarks(self._bad, self._units))

    def _add_text(self, text: str) -> None:
        self._cell_text += len(text.encode())
        if not self._is_note and len(self._shown) < _LONGEST_ERROR:
            self._shown += text[:_LONGEST_ERROR]

    def _end(self, name: str) -> None:
        self._piece = 0
        if name in _CELLS:
            self._end_cell()
        elif name == "office:annotation":
            self._is_note = False
        elif name == "table:table-row":
            self._end_row()

    def _end_cell(self) -> None:
        """Blank cells count only with one behind them that is not."""
        if bad := self._bad_cell():
            self._bad_of_row.append((self._row_width + self._waiting_cells, self._cell_repeats, bad))
        elif self._has_value and (unit := _unit(self._attributes, self._shown)):
            self._units_of_row.append((self._row_width + self._waiting_cells, self._cell_repeats, unit))
        if self._has_value or self._cell_text or bad:
            self._row_width += self._waiting_cells + self._cell_repeats
            self._row_text += self._cell_repeats * self._cell_text
            self._waiting_cells = 0
        else:
            self._waiting_cells += self._cell_repeats

    def _bad_cell(self) -> BadCell | None:
        if self._is_error or (self._is_formula and _ERROR.fullmatch(self._shown)):
            return error_value(self._shown)
        return NEVER_CALCULATED if self._is_formula and not self._has_result else None

    def _end_row(self) -> None:
        """So do blank rows."""
        if self._bad_of_row:
            self._add_bad_cells()
        if self._units_of_row:
            self._add_units()
        if not self._row_width:
            self._waiting_rows += self._row_repeats
            return
        before = self._height * self._width
        self._height += self._waiting_rows + self._row_repeats
        self._width = max(self._width, self._row_width)
        self._waiting_rows = 0
        cells = self._height * self._width - before
        self._room.take(cells * _CELL_SIZE + self._row_repeats * self._row_text)

    def _add_bad_cells(self) -> None:
        count = self._row_repeats * sum(repeats for _, repeats, _ in self._bad_of_row)
        self._room.take(count * _MARK_SIZE)
        first = self._height + self._waiting_rows + 1
        for number in range(first, first + self._row_repeats):
            self._bad.setdefault(number, {}).update(
                (column, bad)
                for start, repeats, bad in self._bad_of_row
                for column in range(start, start + repeats)
            )

    def _add_units(self) -> None:
        first = self._height + self._waiting_rows + 1
        last = first + self._row_repeats - 1
        for start, repeats, unit in self._units_of_row:
            for column in range(start, start + repeats):
                if self._units.add(column, first, last, unit):
                    self._room.take(_MARK_SIZE)


_CELLS = frozenset(("table:table-cell", "table:covered-table-cell"))


def _count(attributes: dict[str, str], name: str) -> int:
    """1 where nothing is repeated; what is no number is for the reader to refuse."""
    text = attributes.get(name, "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 1


def _unit(attributes: Mapping[str, str], shown: str) -> str:
    """The unit in which a number is shown; '' for none, and for a cell that is not a number."""
    kind = attributes["office:value-type"]
    if kind == "percentage":
        return PERCENT
    if kind == "currency" and (sign := attributes.get("office:currency")):
        return currency(sign)
    if kind not in ("float", "currency") or _BARE.fullmatch(shown):
        return ""
    unit = shown_unit(_DIGITS.sub("0", shown))
    is_whole = unit not in TIMES or _is_shown_whole(attributes.get("office:value", ""), shown)
    return unit if is_whole else ""


def _is_shown_whole(value: str, shown: str) -> bool:
    """Whether a number is shown as it is, but for rounding, and not in thousands."""
    digits = "".join(_DIGITS.findall(shown))
    decimals = len("".join(_DIGITS.findall(re.split("[.,]", shown)[-1])))
    readings = [(float(digits or "0"), 0), (float(digits or "0") / 10**decimals, decimals)]
    try:
        return any(abs(abs(float(value)) - number) <= 0.51 / 10**places for number, places in readings)
    except ValueError:
        return False


_BARE = re.compile(r"[-\u2212\d.,]*", re.ASCII)
"""What is shown of a number without a unit."""
_DIGITS = re.compile("[0-9]")
