"""An Excel workbook: its sheets, and the cells of one of them as openpyxl's parser reads cells.

The parts around the cells are read here, because openpyxl reads all that a workbook may have, as a whole.
Imported only where a workbook is opened, because openpyxl is heavy.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from openpyxl.styles.numbers import builtin_format_code, is_date_format, is_timedelta_format
from openpyxl.utils.cell import column_index_from_string, range_boundaries
from openpyxl.utils.datetime import CALENDAR_MAC_1904, WINDOWS_EPOCH
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import (
    ARC_CONTENT_TYPES,
    ARC_CORE,
    ARC_STYLE,
    ARC_WORKBOOK,
    CONTYPES_NS,
    DCORE_NS,
    PKG_REL_NS,
    REL_NS,
    SHARED_STRINGS,
    SHEET_MAIN_NS,
    XLSM,
    XLSX,
    XLTM,
    XLTX,
)

from rag_eval.errors import TableError
from rag_eval.tables.cells import ERROR, UNCACHED, Area, Cell
from rag_eval.tables.input_files import Room
from rag_eval.tables.number_formats import shown_unit
from rag_eval.tables.package import Package
from rag_eval.texts.display import shorten

(
    _ROW, _MERGED, _FORMULA, _INLINE, _STRING, _RUN, _PLAIN, _SHEET, _PROPERTIES, _FORMATS, _STYLES
) = (
    f"{{{SHEET_MAIN_NS}}}{tag}"
    for tag in (
        "row", "mergeCell", "f", "is", "si", "r", "t", "sheet", "workbookPr", "numFmts", "cellXfs"
    )
)  # fmt: skip
_OVERRIDE, _DEFAULT = f"{{{CONTYPES_NS}}}Override", f"{{{CONTYPES_NS}}}Default"
_DESCRIPTION = f"{{{DCORE_NS}}}description"
_RELATION = f"{{{PKG_REL_NS}}}Relationship"
_LONGEST_FORMAT = 1_000
"""Characters of a number format that are looked at; Excel allows 255."""
_MOST_MERGED = 100_000
"""Merged areas that are noticed."""


class WorkSheet(NamedTuple):
    """What a workbook says of one of its sheets."""

    name: str
    is_visible: bool
    part: str


class Reader:
    """An open workbook. What a damaged one makes it raise is nearly anything."""

    def __init__(self, path: Path, room: Room, as_cell: Callable[[str], Cell]) -> None:
        """`as_cell` is what each text becomes; a shared one is taken once, however many cells have it."""
        self._package = Package(path)
        self._name = path.name
        self._room = room
        self._as_cell = as_cell
        try:
            parts = _parts(self._package)
            workbook = _workbook_part(parts)
            self.is_strict = _is_strict(self._package, workbook)
            self.description = _read_description(self._package)
            self.sheets, self._epoch = _read_workbook(self._package, workbook)
            self._dates, self._durations, self._units = _read_styles(self._package)
            strings = parts.overrides.get(SHARED_STRINGS)
            self._strings = (
                []
                if strings is None
                else [self._text(element) for element in self._package.elements(strings, (_STRING,))]
            )
        except BaseException:
            self._package.close()
            raise

    def close(self) -> None:
        self._package.close()

    def rows(self, sheet: WorkSheet, merged: list[Area]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Number and cells of each row that the sheet has; a cell is a mapping with column, value and data_type.

        A number whose format shows a unit has it as `unit`. Merged areas, which stand behind all rows, are added to
        `merged`.
        """
        parser = _Cells(
            None,  # type: ignore[arg-type] # rows are handed to it one by one
            self._strings,  # type: ignore[arg-type] # whatever stands in the list becomes the value of a cell
            data_only=True,
            epoch=self._epoch,
            date_formats=self._dates,
            timedelta_formats=self._durations,
        )
        parser.text_of, parser.cell_of, parser.units = self._text, self._cell, self._units
        parser.place = f"{self._name}, sheet '{sheet.name}'"
        last = 0
        for element in self._package.elements(sheet.part, (_ROW, _MERGED)):
            if element.tag == _MERGED:
                if len(merged) < _MOST_MERGED:
                    merged.append(_area(element.get("ref", "")))
                continue
            number, cells = parser.parse_row(element)
            if number <= last:
                raise ValueError(f"row {number} is below row {last}")
            last = number
            yield number, cells

    def _text(self, element: Element) -> Cell:
        """What a string says: its plain text and those of its formatted runs, without the aids to reading (rPh)."""
        # Nearly all strings are a plain text.
        text = element[0].text if len(element) == 1 and element[0].tag == _PLAIN else None
        if text is None:
            text = "".join(
                each.text or "" for path in (_PLAIN, f"{_RUN}/{_PLAIN}") for each in element.findall(path)
            )
        return self._cell(text)

    def _cell(self, text: str) -> Cell:
        cell = self._as_cell(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), text) if "_x" in text else text)
        self._room.take_text(cell if isinstance(cell, str) else "")
        return cell


class _Cells(WorkSheetParser):
    text_of: Callable[[Element], Cell]
    cell_of: Callable[[str], Cell]
    units: Mapping[int, str]
    """By style."""
    place: str
    """Of the sheet, in messages."""

    def parse_row(self, row: Any) -> tuple[int, list[dict[str, Any]]]:
        number, cells = super().parse_row(row)
        self.row_dimensions.clear()  # heights and styles of rows, which nobody asks for
        return number, cells

    def parse_cell(self, element: Element) -> dict[str, Any]:
        """A cell as openpyxl reads it, but for texts, and formulas without a result."""
        kind = element.get("t", "n")
        if kind == "s":
            return self._shared_cell(element)
        inline = element.find(_INLINE) if kind == "inlineStr" else None
        if inline is not None:
            element.remove(inline)
        try:
            cell: dict[str, Any] = super().parse_cell(element)
        except ValueError:
            place = f"{self.place}, cell {shorten(element.get('r', '?'), 40)}"
            shown = shorten(element.findtext(_VALUE) or "", 40)
            raise TableError(
                f"{place}: '{shown}' is not a {_KINDS.get(kind, 'value')}; correct the cell, or empty it"
            ) from None
        value = cell["value"]
        if inline is not None:
            cell.update(value=self.text_of(inline), data_type="s")
        elif isinstance(value, str) and kind != ERROR:
            cell["value"] = self.cell_of(value)
        elif value is None and kind != "str" and element.find(_FORMULA) is not None:
            cell["data_type"] = UNCACHED  # of type 'str' it would be an empty text, which is a result
        elif unit := self.units.get(cell["style_id"]):
            cell["unit"] = unit
        return cell

    def _shared_cell(self, element: Element) -> dict[str, Any]:
        """Most cells are such ones, so they go the shortest way."""
        place = element.get("r")
        self.col_counter = column_index_from_string(place.rstrip(_DIGITS)) if place else self.col_counter + 1
        text = element.findtext(_VALUE)
        value = None
        if text:
            number = int(text)
            if number < 0:
                raise IndexError("the number of a shared text is below 0")
            value = self.shared_strings[number]
        elif element.find(_FORMULA) is not None:
            return {"column": self.col_counter, "value": None, "data_type": UNCACHED}
        return {"column": self.col_counter, "value": value, "data_type": "s"}


_KINDS = {"n": "number", "b": "truth value", "d": "date"}
_DIGITS = "0123456789"
_VALUE = f"{{{SHEET_MAIN_NS}}}v"

# What cannot stand in the file's XML is spelled by its code, such as _x000D_, and so is an underscore before what
# only looks like that (ECMA-376, part 1, 22.9.2.19).
_ESCAPE = re.compile("_x(?!D[89A-F])([0-9A-F]{4})_", re.IGNORECASE)


class _Parts(NamedTuple):
    """Names of parts by the type of their content."""

    overrides: Mapping[str, str]
    defaults: frozenset[str]
    """Types that files are of by their suffix alone."""


def _parts(package: Package) -> _Parts:
    overrides: dict[str, str] = {}
    defaults = set()
    for element in package.elements(ARC_CONTENT_TYPES, (_OVERRIDE, _DEFAULT)):
        kind = element.get("ContentType", "")
        if element.tag == _DEFAULT:
            defaults.add(kind)
        else:
            overrides.setdefault(kind, element.get("PartName", "").removeprefix("/"))
    return _Parts(overrides, frozenset(defaults))


def _workbook_part(parts: _Parts) -> str:
    kinds = (XLTM, XLTX, XLSM, XLSX)
    for kind in kinds:
        if kind in parts.overrides:
            return parts.overrides[kind]
    if parts.defaults.isdisjoint(kinds):
        raise LookupError("no workbook in the file")
    return str(ARC_WORKBOOK)  # some programs give the type to all XML


def _is_strict(package: Package, workbook: str) -> bool:
    """Whether the names of its parts are those of ISO/IEC 29500 Strict, in which no sheet is found."""
    with package.opened(workbook) as xml:
        return b"http://purl.oclc.org/ooxml/" in xml.read(2**16)


def _read_workbook(package: Package, part: str) -> tuple[list[WorkSheet], Any]:
    """The sheets with cells, in their order, and the day from which days are counted."""
    folder, name = posixpath.split(part)
    relations = {
        element.get("Id"): element.attrib.copy()
        for element in package.elements(posixpath.join(folder, "_rels", f"{name}.rels"), (_RELATION,))
    }
    sheets, epoch = [], WINDOWS_EPOCH
    for element in package.elements(part, (_SHEET, _PROPERTIES)):
        if element.tag == _PROPERTIES:
            if element.get("date1904", "0") not in ("0", "false", "f"):
                epoch = CALENDAR_MAC_1904
        elif identifier := element.get(f"{{{REL_NS}}}id"):
            relation = relations[identifier]
            target = relation["Target"]
            is_absolute = target.startswith("/")
            target = target[1:] if is_absolute else posixpath.normpath(posixpath.join(folder, target))
            if target in package.names and "chartsheet" not in relation.get("Type", ""):
                is_visible = element.get("state", "visible") == "visible"
                sheets.append(WorkSheet(element.get("name", ""), is_visible, target))
    return sheets, epoch


def _read_description(package: Package) -> str:
    """The comments among the properties of the file."""
    if ARC_CORE not in package.names:
        return ""
    found = [element.text or "" for element in package.elements(ARC_CORE, (_DESCRIPTION,))]
    return found[0] if found else ""


def _read_styles(package: Package) -> tuple[set[int], set[int], dict[int, str]]:
    """The styles of cells whose numbers are dates, of those the ones that are durations, and the units of others."""
    formats: dict[int, str] = {}
    styles: list[int] = []
    if ARC_STYLE in package.names:
        for element in package.elements(ARC_STYLE, (_FORMATS, _STYLES)):
            if element.tag == _FORMATS:
                formats = {int(each.get("numFmtId", 0)): each.get("formatCode", "") for each in element}
            else:
                styles = [int(each.get("numFmtId", 0)) for each in element]
    codes = {kind: formats.get(kind, builtin_format_code(kind) or "")[:_LONGEST_FORMAT] for kind in {*styles}}
    dates = {kind for kind, code in codes.items() if is_date_format(code)}
    durations = {kind for kind, code in codes.items() if is_timedelta_format(code)}
    units = {kind: unit for kind, code in codes.items() if kind not in dates and (unit := shown_unit(code))}
    return (
        {number for number, kind in enumerate(styles) if kind in dates},
        {number for number, kind in enumerate(styles) if kind in durations},
        {number: units[kind] for number, kind in enumerate(styles) if kind in units},
    )


def _area(reference: str) -> Area:
    """Where a reference such as B2:C4 is; a whole row or column has no bounds of its own in the other direction."""
    first_column, first_row, last_column, last_row = range_boundaries(reference)
    return Area(first_row or 1, first_column or 1, last_row or 1_048_576, last_column or 16_384)
