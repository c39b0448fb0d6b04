"""An Excel workbook by openpyxl's parsers: one pass over each part, and what its read-only mode leaves out.

Imported only where a workbook is opened, because openpyxl is heavy.
"""

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, iterparse

from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.cell import range_boundaries
from openpyxl.worksheet._reader import WorkSheetParser
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS, XLSM, XLSX

from rag_eval.tables.cells import UNCACHED, Area

_ROW, _MERGED, _FORMULA, _INLINE, _STRING, _RUN, _PLAIN = (
    f"{{{SHEET_MAIN_NS}}}{tag}" for tag in ("row", "mergeCell", "f", "is", "si", "r", "t")
)


class Reader(ExcelReader):
    """The reader of the parts that all sheets share."""

    def __init__(self, path: Any) -> None:
        super().__init__(path, read_only=True, data_only=True, keep_links=False)

    def read_strings(self) -> None:
        """The texts of the shared strings; the reader's own way makes several objects of each first."""
        package: Any = self.package
        part = package.find(SHARED_STRINGS)
        if part is not None:
            with self.archive.open(part.PartName[1:]) as xml:
                self.shared_strings = [
                    _text(element)
                    for _, element in iterparse(xml)  # noqa: S314 - as in the reader; expat limits entities
                    if element.tag == _STRING
                ]

    def is_strict(self) -> bool:
        """Whether the names of its parts are those of ISO/IEC 29500 Strict, in which no sheet is found."""
        package: Any = self.package
        part = package.find(XLSX) or package.find(XLSM)
        return part is not None and b"http://purl.oclc.org/ooxml/" in self.archive.read(part.PartName[1:])

    def rows(self, sheet: str, merged: list[Area]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Number and cells of each row that the sheet has; a cell is a mapping with column, value and data_type.

        Merged areas, which stand behind all rows, are added to `merged`.
        """
        paths = {each.name: relation.target for each, relation in self.parser.find_sheets()}
        book: Any = self.wb
        with self.archive.open(paths[sheet]) as xml:
            parser = _Cells(
                xml,
                self.shared_strings,
                data_only=True,
                epoch=book.epoch,
                date_formats=book._date_formats,
                timedelta_formats=book._timedelta_formats,
            )
            element: Any
            last = 0
            for _, element in iterparse(xml):  # noqa: S314 - as above
                if element.tag == _ROW:
                    number, cells = parser.parse_row(element)
                    if number <= last:
                        raise ValueError(f"row {number} stands below row {last}")
                    last = number
                    yield number, cells
                    element.clear()
                elif element.tag == _MERGED:
                    merged.append(_area(element.get("ref", "")))


class _Cells(WorkSheetParser):
    def parse_cell(self, element: Element) -> dict[str, Any]:
        """A cell as openpyxl reads it, but for texts that are not shared, and formulas without a result."""
        inline = element.find(_INLINE) if element.get("t") == "inlineStr" else None
        if inline is not None:
            element.remove(inline)
        cell: dict[str, Any] = super().parse_cell(element)
        if inline is not None:
            cell.update(value=_text(inline), data_type="s")
        elif cell["value"] is None and element.get("t") != "str" and element.find(_FORMULA) is not None:
            cell["data_type"] = UNCACHED  # of type 'str' it would be an empty text, which is a result
        return cell


def _text(element: Element) -> str:
    """What a string says: its plain text and those of its formatted runs, without the aids to reading (rPh)."""
    text = element[0].text if len(element) == 1 and element[0].tag == _PLAIN else None  # nearly all there are
    if text is None:
        text = "".join(
            each.text or "" for path in (_PLAIN, f"{_RUN}/{_PLAIN}") for each in element.findall(path)
        )
    element.clear()
    return text


def _area(reference: str) -> Area:
    """Where a reference such as B2:C4 is; a whole row or column has no bounds of its own in the other direction."""
    first_column, first_row, last_column, last_row = range_boundaries(reference)
    return Area(first_row or 1, first_column or 1, last_row or 1_048_576, last_column or 16_384)
