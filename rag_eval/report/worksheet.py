"""One sheet's table: the header in row 1, then a line for each item, written as they come."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic

from rag_eval.records import TOXICITY, RunFacts
from rag_eval.report.annotations import THRESHOLD_NAMES, Stack
from rag_eval.report.column import Cell, Column, Item, Place, ReportTable, Source
from rag_eval.report.notes import Note, SheetNotes, lines_of
from rag_eval.report.styles import HEAT, LINE_HEIGHT, Formats, Look
from rag_eval.texts.display import cut_to_cell, fits_cell, printable, shorten

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

CASE_SHEET = "Per-Query Metrics"
SHEET_ROWS = 1_048_576
"""As many as a sheet can have."""
_LETTERS = 1.05
"""Of running text on a unit of a column's width, which is that of a digit; words at the end of lines leave room."""
_MOST_HEIGHT = 409
"""Of a row, in points."""
SHEET_LINKS = 65_530
"""As many as a sheet can have."""


def fits_sheet(facts: RunFacts, sheet_rows: int = SHEET_ROWS) -> bool:
    """Whether every case has its line on the sheet of cases, in the order of the results. `sheet_rows` include the
    header."""
    return facts.rows * len(facts.bots) < sheet_rows


class SheetTable(Generic[Item]):
    """Writes rows from top to bottom and keeps none of them."""

    def __init__(
        self,
        worksheet: "Worksheet",
        columns: Sequence[Column[Item]],
        formats: Formats,
        header_height: float,
        line_height: float,
        sheet_rows: int = SHEET_ROWS,
        sheet_links: int = SHEET_LINKS,
        group_of: Callable[[Item], object] | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        """Heights are in points. Lines are drawn between groups of rows if `group_of` says what they are.

        If the table `is_whole`, a line is as high as its texts, so that print cuts none; that is for small tables.
        """
        self.worksheet = worksheet
        self.columns = columns
        self.lines = 0
        """Written so far."""
        self.cut_texts = 0
        """Texts that were longer than a cell."""
        self.left_out = 0
        """Items for which the sheet had no row left."""
        self.links = 0
        """Cells that lead to another one."""
        self.notes = SheetNotes(worksheet)
        self._formats = formats
        self._sheet_rows = sheet_rows
        self._sheet_links = sheet_links
        self._group_of = group_of
        self._line_height = line_height if is_whole else None
        self._default_height, self._header_height = line_height, header_height
        self._group: object = None
        self._begins_group: bool | None = None
        worksheet.set_default_row(line_height)  # a height of its own for each row would cost memory for each
        worksheet.set_row(0, header_height)
        self._write_header()

    def append(self, item: Item, links: Mapping[int, Place] = MappingProxyType({})) -> None:
        """Write one line; `links` are further ones than the columns' own, by the index of the column."""
        if self.lines + 1 >= self._sheet_rows:
            self.left_out += 1
            return
        self.lines += 1
        if self._group_of:
            group = self._group_of(item)
            self._begins_group, self._group = group != self._group and self.lines > 1, group
        cells = [column.cell(item) for column in self.columns]
        for index, cell in enumerate(cells):
            self._write(self.lines, index, cell._replace(link=links[index]) if index in links else cell)
        if self._line_height:
            self._heighten(cells, self._line_height)

    def _heighten(self, cells: Sequence[Cell], least: float) -> None:
        shown = zip(self.columns, cells, strict=True)
        lines = max(
            lines_of(cell.value.split("\n"), column.width * _LETTERS)
            for column, cell in shown
            if isinstance(cell.value, str) and not (column.is_folded or column.is_hidden)
        )
        if lines * LINE_HEIGHT > least:
            self.worksheet.set_row(self.lines, min(lines * LINE_HEIGHT, _MOST_HEIGHT))

    def finish(self, frozen: int) -> None:
        """Add what goes over the whole table; the header and the first `frozen` columns stay in sight."""
        self.worksheet.freeze_panes(1, frozen)
        self.worksheet.autofilter(0, 0, self.lines, len(self.columns) - 1)
        if self.lines:
            self._add_threshold_rules()

    def add_heat(self, headers: Sequence[str]) -> None:
        """Colour the numbers (0..1) of these columns, darker for lower; red below the threshold still shows."""
        for index in map(self.column, headers):
            scale = {
                "type": "2_color_scale",
                "min_type": "num",
                "max_type": "num",
                "min_value": 0,
                "max_value": 1,
            }
            colours = {"min_color": HEAT, "max_color": "#FFFFFF"}
            self.worksheet.conditional_format(1, index, self.lines, index, scale | colours)

    def print_up_to(self, header: str) -> None:
        """Print no column after this one; folded columns are not printed either."""
        self.worksheet.print_area(0, 0, self.lines, self.column(header))

    def print_on_pages(self, below: tuple[int, int], last_row: int) -> None:
        """Print the columns on several pages, the first one on each, if one page would show them too small.

        `below` is the size of what floats below the table, in pixels, and `last_row` where that ends: it is on the
        first page or on one of its own, and on none if no page shows it as a whole.
        """
        widths = [
            0 if column.is_folded or column.is_hidden else round(7 * column.width + 5)
            for column in self.columns
        ]
        if sum(widths) <= _PAGE_WIDTH / _LEAST_SCALE:
            return
        most = max(round(_PAGE_WIDTH / _LEAST_SCALE / _WIDER), below[0])
        starts = [0, *_page_starts(self.columns, widths, most, below[0]), len(widths)]
        pages = [(0, self.lines, first, end - 1) for first, end in pairwise(starts)]
        width = max(widths[0] + sum(widths[first:end]) for first, end in pairwise(starts))
        page_height = _PAGE_HEIGHT * width / _PAGE_WIDTH
        header, table = self._header_height * 4 / 3, self._default_height * 4 / 3 * self.lines
        if header + table + below[1] <= page_height:
            pages[0] = (0, last_row, *pages[0][2:])
        elif header + below[1] <= page_height:
            pages.append((self.lines + 1, last_row, *pages[0][2:]))
        areas = []
        for first_row, last, first, end in pages:
            self.worksheet.print_area(first_row, first, last, end)
            areas.append(self.worksheet.print_area_range)
        self.worksheet.print_area_range = ",".join(areas)
        self.worksheet.repeat_columns(0)

    def column(self, header: str) -> int:
        """Index of the column with that header."""
        return [column.header for column in self.columns].index(header)

    def _write_header(self) -> None:
        for index, column in enumerate(self.columns):
            is_closed = index > 0 and self.columns[index - 1].is_folded and not column.is_folded
            options = {
                "hidden": column.is_hidden or column.is_folded,
                "level": int(column.is_folded),
                "collapsed": is_closed,  # the sign that opens the group is above the column after it
            }
            self.worksheet.set_column(index, index, column.width, None, options)
            note = Note(column.about) if column.about else None
            self._write(0, index, Cell(column.header, column.header_look, note))

    def _write(self, row: int, index: int, cell: Cell) -> None:
        words = "" if cell.over is None else f" ({cell.over:,})"
        style = self._formats.of(cell.look, words, begins_group=self._begins_group if row else None)
        if cell.link and self.links < self._sheet_links:
            self._link(row, index, cell.link)
        if isinstance(cell.value, str) and cell.value:
            self._write_text(row, index, cell.value, style)
        elif isinstance(cell.value, int | float):
            self.worksheet._write_number(row, index, cell.value, style)
        else:
            self.worksheet._write_blank(row, index, None, style)
        if cell.note:
            self.notes.add(row, index, cell.note)

    def _link(self, row: int, index: int, place: Place) -> None:
        """Make the cell a link. Its value must be written afterwards, over the text that a link comes with."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        self.links += 1
        url = f"internal:'{place.sheet}'!{xl_rowcol_to_cell(place.row, place.column)}"
        self.worksheet.write_url(row, index, url, self._formats[Look.LINK], string=" ")

    def _write_text(self, row: int, index: int, value: str, style: "Format") -> None:
        text = printable(value)
        if not fits_cell(text):
            self.cut_texts += 1
            text = cut_to_cell(text)
        write_text(self.worksheet, row, index, text, style, self._formats.run)

    def _add_threshold_rules(self) -> None:
        from xlsxwriter.utility import xl_rowcol_to_cell

        for index, column in enumerate(self.columns):
            if not column.threshold:
                continue
            cell = xl_rowcol_to_cell(1, index)
            sign = ">=" if column.threshold == TOXICITY else "<"
            limit = THRESHOLD_NAMES[column.threshold]
            # Not the simpler rule "cell value less than": that one takes an empty cell for 0.
            rule = f"=AND(ISNUMBER({cell}),{cell}{sign}{limit})"
            # Where two decimals contradict the colour, a third is shown: 0.62 is red if it is 0.619.
            hidden = f"=AND(ISNUMBER({cell}),(ROUND({cell},2)<{limit})<>({cell}<{limit}))"
            for criteria, look in ((rule, self._formats.below), (hidden, self._formats.exact)):
                self.worksheet.conditional_format(
                    1, index, self.lines, index, {"type": "formula", "criteria": criteria, "format": look}
                )


_LEAST_SCALE = 0.65
"""Of a page: texts of 10 points are still 6.5 points high."""
_WIDER = 4 / 3
"""As wide can programs make columns that lack the font of the sheet."""
_PAGE_WIDTH, _PAGE_HEIGHT = 1015, 620
"""Of an A4 page in landscape, inside its margins, in pixels."""


def _page_starts(columns: Sequence[Column[Item]], widths: Sequence[int], most: int, least: int) -> list[int]:
    """The columns that begin pages after the first one, which is at least so wide; no page is wider than `most`.

    An interval is on the page of its figure, and the first column is on each page.
    """
    starts: list[int] = []
    width = widths[0]
    for index in range(1, len(columns)):
        ends = (each for each in range(index + 1, len(columns)) if not columns[each].header.endswith(_TIED))
        group = sum(widths[index : next(ends, len(columns))])
        is_free = not columns[index].header.endswith(_TIED) and (starts or width >= least)
        if is_free and group and width + group > most:
            starts.append(index)
            width = widths[0]
        width += widths[index]
    return starts


_TIED = (" low", " high")


@dataclass(frozen=True, slots=True)
class WrittenSheet(Generic[Source, Item]):
    """A sheet of a workbook that is being written, and the table that it shows."""

    book: "Workbook"
    worksheet: "Worksheet"
    formats: Formats
    table: ReportTable[Source, Item]

    def write(self, source: Source) -> None:
        """The table, and what is to stand around it."""
        if self.table.write:
            self.table.write(self, source)
            return
        filled = self.fill(source)
        if notes := self.table.notes(source):
            box = Stack(self.worksheet, filled.lines + 1, _BOX_WIDTH)
            box.add_text("\n".join(shorten(sentence, 300) for sentence in notes), {"size": 10})

    def fill(self, source: Source, line_height: float | None = None) -> SheetTable[Item]:
        """The table only, with another height of its lines if one is given."""
        table, height = self.table, self.table.line_height if line_height is None else line_height
        columns = table.columns(source)
        filled = SheetTable(
            self.worksheet, columns, self.formats, table.header_height, height, group_of=table.group_of
        )
        for line in table.lines(source):
            filled.append(line)
        filled.finish(table.frozen)
        return filled


_BOX_WIDTH = 900
"""In pixels."""


def write_text(
    worksheet: "Worksheet", row: int, column: int, text: str, style: "Format", run: "Format"
) -> None:
    """Write printable text from data as text, whatever it looks like; `run` is a format of its characters."""
    if text.startswith("<r>") and text.endswith("</r>"):
        # XlsxWriter takes such a text for XML of its own making and lets it through unescaped.
        # Split in two runs it is built, and so escaped, by XlsxWriter itself.
        worksheet.write_rich_string(row, column, text[:1], run, text[1:], style)
    else:
        worksheet._write_string(
            row, column, text, style
        )  # without looking whether the row is a name such as A1
