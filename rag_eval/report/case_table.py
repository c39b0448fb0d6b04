"""The table of the sheet "Per-Query Metrics", and how rows come into it that worker processes have rendered."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.column import StreamedTable
from rag_eval.report.columns import case_columns
from rag_eval.report.notes import Note, NoteKind
from rag_eval.report.styles import LINE_HEIGHT, Formats
from rag_eval.report.worksheet import CASE_SHEET, SHEET_ROWS, SheetTable, fits_sheet
from rag_eval.store.codec import encode

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

    from rag_eval.report.book import Piece

CASES = StreamedTable(
    name=CASE_SHEET,
    columns=case_columns,
    lines=lambda _: lambda result: (result,) if result else (),
    noun="cases",
    line_height=6 * LINE_HEIGHT,
    frozen=3,
)
_MOST_WHOLE = 500
"""Cases that are as high as their texts; a height of its own for each row costs memory for each."""
Rendered = tuple["Piece", int, Sequence[tuple[int, int, str, float]]]
"""The XML of rows, how many of their texts were cut, and place, kind and weight of each note: values for a pipe."""


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
        CASES.header_height,
        CASES.line_height,
        sheet_rows,
        group_of=lambda result: result.case.row,
        is_whole=facts.rows * len(facts.bots) <= _MOST_WHOLE,
    )


class RenderedCases:
    """Passes on the rows that the workers of a run render of their results."""

    task = "rag_eval.report.renderer:open_renderer"

    def __init__(self, facts: RunFacts) -> None:
        self.spec = encode(facts)
        self.take: Callable[[Rendered, Sequence[CaseResult]], None] = lambda *_: None
        """Is given the rows of some cases and their results, in the order of the run; whoever writes them sets it."""
        self.suffice = False
        """Whether nothing else is written of a case; then it need not be added to the outputs."""

    @classmethod
    def of(cls, facts: RunFacts, *, has_evidence: bool) -> Self | None:
        """None where the rows depend on what else is written."""
        return cls(facts) if fits_sheet(facts) and not has_evidence else None


def append_rendered(
    table: SheetTable[CaseResult], rendered: Rendered, results: Sequence[CaseResult]
) -> "Piece":
    """Add the lines of `results`, which were rendered for this place of a table with the same columns.

    Returns their XML, which is not written yet.
    """
    xml, cut_texts, notes = rendered
    first = table.lines + 1
    table.lines += len(results)
    table.cut_texts += cut_texts
    table.worksheet.dim_rowmax = table.lines
    for row, column, kind, weight in notes:
        table.notes.add(row, column, _note(table, column, results[row - first], kind, weight))
    return xml


def _note(table: SheetTable[CaseResult], column: int, result: CaseResult, kind: str, weight: float) -> Note:
    """Put into words only if it is kept."""

    def words() -> str:
        note = table.columns[column].cell(result).note
        return note.text if note else ""

    return Note(words, NoteKind[kind], weight)
