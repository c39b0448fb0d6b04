"""In a worker process: rows of the sheet "Per-Query Metrics", rendered for the process that writes the workbook.

XlsxWriter has no documented way to take over rows that another process has rendered. What is used of its inside is in
this module, in `book` and in `Formats.fix_numbers`: the file of rows, the row that is being written, and how
a cell is written.
"""

from collections.abc import Callable, Sequence
from io import BytesIO, StringIO

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.book import RowSheet, deflated
from rag_eval.report.case_table import Rendered, case_table
from rag_eval.report.notes import Note, SheetNotes
from rag_eval.report.styles import Formats, Look
from rag_eval.store.codec import decode


def open_renderer(spec: bytes) -> Callable[[int, Sequence[CaseResult]], Rendered]:
    """What renders results, given the number of cases of the run that come before them."""
    book = Workbook(BytesIO(), {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    worksheet = book.add_worksheet(worksheet_class=RowSheet)
    worksheet.constant_memory = True  # only now, so that it has no file
    worksheet.fh = worksheet.row_data_fh = StringIO()
    formats = Formats(book)
    formats.fix_numbers()
    table = case_table(worksheet, decode(RunFacts, spec), formats)

    def render(before: int, results: Sequence[CaseResult]) -> Rendered:
        worksheet.fh = worksheet.row_data_fh = StringIO()
        worksheet.previous_row = before + 1
        table.lines, table.cut_texts = before, 0
        table.notes = notes = _NotePlaces(worksheet)
        for result in results:
            table.append(result)
        _end_row(worksheet, table.lines + 1, formats)
        return deflated(worksheet.fh.getvalue().encode("utf-8")), table.cut_texts, notes.places

    return render


class _NotePlaces(SheetNotes):
    """Keeps where notes would be: only the process that writes knows which are kept."""

    def __init__(self, worksheet: Worksheet) -> None:
        super().__init__(worksheet)
        self.places: list[tuple[int, int, str, float]] = []

    def add(self, row: int, column: int, note: Note) -> None:
        self.places.append((row, column, note.kind.name, note.weight))


def _end_row(worksheet: Worksheet, following: int, formats: Formats) -> None:
    """Have XlsxWriter write the row before `following`, as it does when that one is begun."""
    worksheet.write_blank(following, 0, None, formats[Look.TEXT])
    worksheet.table.clear()
