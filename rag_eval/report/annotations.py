"""What stands around a table: editable thresholds to its right, and what floats over the empty cells below it."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_eval.records import METRIC_LABELS, TOXICITY, RunFacts
from rag_eval.report.notes import Note, SheetNotes, lines_of
from rag_eval.report.styles import FONT, PALE, Formats, Look
from rag_eval.texts.display import printable

if TYPE_CHECKING:
    from xlsxwriter.chart import Chart
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

SCORE_LABELS: Mapping[str, str] = {**METRIC_LABELS, TOXICITY: "Toxicity"}
THRESHOLD_NAMES = {score: f"Thr_{label.replace(' ', '_')}" for score, label in SCORE_LABELS.items()}
"""The defined name of each threshold's cell, by score."""


class ThresholdCells:
    """One editable cell for each threshold, named, in row 2 to the right of a table.

    Only there: further down it would be a row of the table to a program that reads it. Row 1 has its name, or to
    such a program it would be a column without one.
    """

    def __init__(self, worksheet: "Worksheet", column: int, formats: Formats, facts: RunFacts) -> None:
        self._values = [
            (score, facts.all_thresholds[score]) for score in SCORE_LABELS if score in facts.metrics
        ]
        self._worksheet = worksheet
        self._column = column
        self._formats = formats

    def write_header(self) -> None:
        """In row 1, before any other row is written."""
        last = self._column + len(self._values) - 1
        self._worksheet.set_column(self._column, last, _THRESHOLD_WIDTH)
        for column, (score, _) in enumerate(self._values, self._column):
            header = f"Threshold {SCORE_LABELS[score]}"
            self._worksheet.write_string(0, column, header, self._formats[Look.NUMBER_HEADER])

    def write(self, workbook: "Workbook", notes: SheetNotes) -> None:
        """In the row that is being written, the second."""
        from xlsxwriter.utility import xl_rowcol_to_cell

        for column, (score, value) in enumerate(self._values, self._column):
            is_toxicity = score == TOXICITY
            style = self._formats[Look.INPUT_FROM if is_toxicity else Look.INPUT]
            self._worksheet.write_number(1, column, value, style)
            words = "at or above" if is_toxicity else "below"
            notes.add(1, column, Note(_ABOUT_THRESHOLD.format(SCORE_LABELS[score], words)))
            cell = xl_rowcol_to_cell(1, column, row_abs=True, col_abs=True)
            workbook.define_name(THRESHOLD_NAMES[score], f"='{self._worksheet.name}'!{cell}")


_THRESHOLD_WIDTH = 10
"""In characters."""
_ABOUT_THRESHOLD = (
    "{} {} this number is red. You can type another number: the red cells of all sheets update, "
    "failure modes and counts do not."
)


class Stack:
    """Charts and boxes of text of one width, one under the other below a table. Lengths are in pixels.

    There they are seen without scrolling; the cells under them stay empty, so that programs read the table alone.
    """

    GAP = 12

    def __init__(self, worksheet: "Worksheet", row: int, width: int, left: int = 0) -> None:
        """Begins with the first row below the table, at a distance from the left edge of the sheet."""
        self._worksheet = worksheet
        self._row = row
        self._left = left
        self.width = width
        self._y = self.GAP

    def last_row(self, row_height: float) -> int:
        """Index of the row in which what is there ends, with rows as high as this, in points."""
        return self._row + math.ceil(self._y / (row_height * 4 / 3))

    @property
    def height(self) -> int:
        """From the table to the end of what is there."""
        return self._y

    def add_charts(self, charts: Mapping[str, "Chart"], height: int, columns: int = 1) -> None:
        """Put charts, by their alternative text, side by side under what is there already."""
        width = (self.width - self.GAP * (columns - 1)) // columns
        for index, (alt_text, chart) in enumerate(charts.items()):
            chart.set_size({"width": width, "height": height})
            floating = self._floating(alt_text, x=index * (width + self.GAP))
            self._worksheet.insert_chart(self._row, 0, chart, floating)
        self._y += height + self.GAP

    def add_text(self, text: str, font: Mapping[str, Any]) -> None:
        """Put a box of text under what is there already, as high as the text needs."""
        size = font["size"]
        letter = (0.62 if font.get("bold") else 0.57) * size
        height = 14 + round(1.62 * size * lines_of(text.split("\n"), self.width / letter))
        look = {"font": {"name": FONT, **font}, "fill": {"color": PALE}, "line": {"none": True}}
        self._worksheet.insert_textbox(
            self._row,
            0,
            printable(text),
            {"width": self.width, "height": height, **look, **self._floating(printable(text))},
        )
        self._y += height

    def _floating(self, alt_text: str, x: int = 0) -> dict[str, Any]:
        # object_position 2: it moves with the end of the table, but filtering rows does not squeeze it
        return {
            "x_offset": self._left + x,
            "y_offset": self._y,
            "description": alt_text,
            "object_position": 2,
        }
