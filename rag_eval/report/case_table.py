"""The table of the sheet "Per-Query Metrics", and its rows as worker processes render them for the process that writes.

XlsxWriter has no documented way to take over rows that another process has rendered. What is used of its inside is in
this module and in `Formats.fix_numbers`: the file of rows, and the row that is being written.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.columns import case_columns
from rag_eval.report.core_sheets import HEADER_HEIGHT
from rag_eval.report.notes import Note, NoteKind, SheetNotes
from rag_eval.report.styles import LINE_HEIGHT, Formats, Look
from rag_eval.report.worksheet import SHEET_ROWS, SheetTable

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

_LINES = 5
"""Lines of text in a row."""
_UNSHOWN = {"started", "reading", "notes", "usage", "fallbacks", "left_out", "strata"}
"""Facts that no column of the table depends on."""
_Rendered = tuple[bytes, int, Sequence[tuple[int, int, str, float]]]
"""Rows as XML, how many of their texts were cut, and place, kind and weight of each note: values for a pipe."""


def case_table(
    worksheet: "Worksheet",
    facts: RunFacts,
    formats: Formats,
    sheet_rows: int = SHEET_ROWS,
    reason: Callable[[CaseResult], str] | None = None,
) -> SheetTable[CaseResult]:
    """One line per case; `reason` says why a case is there if not all of them fit."""
    return SheetTable(
        worksheet,
        case_columns(facts, reason),
        formats,
        HEADER_HEIGHT,
        _LINES * LINE_HEIGHT,
        sheet_rows,
        group_of=lambda result: result.case.row,
    )


class RenderedCases:
    """Passes on the rows that the workers of a run render of their results."""

    task = f"{__name__}:open_renderer"

    def __init__(self, facts: RunFacts) -> None:
        self.spec = TypeAdapter(RunFacts).dump_python(facts, exclude=_UNSHOWN)
        self.take: Callable[[_Rendered, Sequence[CaseResult]], None] = lambda *_: None
        """Is given the rows of some cases and their results, in the order of the run; whoever writes them sets it."""


def open_renderer(spec: dict[str, Any]) -> Callable[[int, Sequence[CaseResult]], _Rendered]:
    """In a worker process: what renders results, given the number of cases of the run that come before them."""
    from xlsxwriter import Workbook

    book = Workbook(BytesIO(), {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    worksheet = book.add_worksheet()
    worksheet.constant_memory = True  # only now, so that it has no file
    worksheet.fh = worksheet.row_data_fh = StringIO()
    formats = Formats(book)
    formats.fix_numbers()
    table = case_table(worksheet, RunFacts(**spec, started=datetime.now(UTC)), formats)

    def render(before: int, results: Sequence[CaseResult]) -> _Rendered:
        worksheet.fh = worksheet.row_data_fh = StringIO()
        worksheet.previous_row = before + 1
        table.lines, table.cut_texts = before, 0
        table.notes = notes = _NotePlaces(worksheet)
        for result in results:
            table.append(result)
        _end_row(worksheet, table.lines + 1, formats)
        return worksheet.fh.getvalue().encode("utf-8"), table.cut_texts, notes.places

    return render


class _NotePlaces(SheetNotes):
    """Keeps where notes would be: only the process that writes knows which are kept."""

    def __init__(self, worksheet: "Worksheet") -> None:
        super().__init__(worksheet)
        self.places: list[tuple[int, int, str, float]] = []

    def add(self, row: int, column: int, note: Note) -> None:
        self.places.append((row, column, note.kind.name, note.weight))


def append_rendered(
    table: SheetTable[CaseResult], formats: Formats, rendered: _Rendered, results: Sequence[CaseResult]
) -> None:
    """Add the lines of `results`, which were rendered for this place of a table with the same columns."""
    xml, cut_texts, notes = rendered
    worksheet, first = table.worksheet, table.lines + 1
    _end_row(worksheet, first, formats)
    worksheet.row_data_fh.flush()
    worksheet.row_data_fh.buffer.write(xml)
    table.lines += len(results)
    table.cut_texts += cut_texts
    worksheet.dim_rowmax = table.lines
    for row, column, kind, weight in notes:
        table.notes.add(row, column, _note(table, column, results[row - first], kind, weight))
    worksheet.previous_row = table.lines + 1


def _end_row(worksheet: "Worksheet", following: int, formats: Formats) -> None:
    """Have XlsxWriter write the row before `following`, as it does when that one is begun."""
    worksheet.write_blank(following, 0, None, formats[Look.TEXT])
    worksheet.table.clear()


def _note(table: SheetTable[CaseResult], column: int, result: CaseResult, kind: str, weight: float) -> Note:
    """Put into words only if it is kept."""

    def words() -> str:
        note = table.columns[column].cell(result).note
        return note.text if note else ""

    return Note(words, NoteKind[kind], weight)
