"""The Excel report: three sheets, written as the results come and moved into place once they are complete."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from rag_eval.errors import OutputError
from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.case_table import CASES, RenderedCases, append_rendered, case_table
from rag_eval.report.charts import MOST_BOTS
from rag_eval.report.column import Place, ReportTable, StreamedTable
from rag_eval.report.columns import score_headers
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.evidence import append_evidence
from rag_eval.report.extra_columns import FAILED_CRITERIA
from rag_eval.report.spool import CaseSpool
from rag_eval.report.styles import Formats
from rag_eval.report.tables import BOTS, EVIDENCE, STANDINGS, FinishedRun, report_tables
from rag_eval.report.worksheet import SHEET_LINKS, SHEET_ROWS, SheetTable, WrittenSheet, fits_sheet
from rag_eval.results.findings import Findings
from rag_eval.results.summary import Summary
from rag_eval.results.verdict import verdict
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.texts.display import shorten

_Lines = Callable[[CaseResult | None], Iterable[Any]]


class ExcelReport:
    """A report in the making. `finish` or `discard` ends it; until then the target is untouched."""

    def __init__(
        self,
        target: Path,
        facts: RunFacts,
        asked: Collection[str] = (),
        *,
        sheet_rows: int = SHEET_ROWS,
        rendered: RenderedCases | None = None,
    ) -> None:
        """`asked` names optional tables, see report_tables. `sheet_rows` are as many as a sheet can have, the header's
        included.

        Cases that come from `rendered` are not rendered again. It must not be given for a run with evidence, or with
        more cases than a sheet can have.
        """
        self._target = target
        self._replacement = Replacement(target)
        self._tables = report_tables(facts, asked)
        from rag_eval.report.book import StreamedWorkbook, workbook_errors

        try:
            with workbook_errors(target):
                names = [table.name for table in self._tables]
                self._workbook = StreamedWorkbook(self._replacement.path, names, Scratch(target))
        except OutputError:
            self._replacement.discard()
            raise
        self._formats = Formats(self._workbook.book)
        fits = fits_sheet(facts, sheet_rows)
        self._spool = None if fits else CaseSpool(facts.bots, sheet_rows - 1)
        reason = self._reason if self._spool else None
        sheet = self._workbook.sheets[CASES.name]
        self._cases = case_table(sheet, facts, self._formats, sheet_rows, reason)
        self._ahead = 0  # cases that are written and were not yet added
        if rendered:
            self._formats.fix_numbers()
            rendered.take = self._append_rendered
        self._headers = score_headers(facts)
        self._evidence: SheetTable[Any] | None = None
        self._streams: list[tuple[StreamedTable[Any], SheetTable[Any], _Lines]] = []
        for table in self._tables:
            if table is EVIDENCE:
                self._evidence = self._open(EVIDENCE, facts)
            elif isinstance(table, StreamedTable) and table is not CASES:
                self._streams.append((table, self._open(table, facts, sheet_rows), table.lines(facts)))

    def _open(
        self, table: StreamedTable[Any], facts: RunFacts, sheet_rows: int = SHEET_ROWS
    ) -> SheetTable[Any]:
        sheet, columns = self._workbook.sheets[table.name], table.columns(facts)
        return SheetTable(sheet, columns, self._formats, table.header_height, table.line_height, sheet_rows)

    @property
    def left_out(self) -> Sequence[str]:
        """What does not fit, one sentence each; complete once the report is finished."""
        cut_texts = self._cases.cut_texts + sum(sheet.cut_texts for _, sheet, _ in self._streams)
        sentences = [
            self._spool.cut_note if self._spool else "",
            _cut_texts(cut_texts),
            *(_rows_left_out(sheet, table) for table, sheet, _ in self._streams),
            _rows_left_out(self._evidence, EVIDENCE) if self._evidence else "",
        ]
        return [*filter(None, sentences)]

    def add(self, result: CaseResult) -> None:
        """Write one row of the first sheet, and the evidence if it is wanted; later if not all cases fit."""
        with output_errors(self._target):
            self._stream(result)
            if self._ahead:
                self._ahead -= 1
            elif self._spool:
                self._spool.add(result)
            else:
                self._append(result)

    def _stream(self, result: CaseResult | None) -> None:
        for _, sheet, lines in self._streams:
            for line in lines(result):
                sheet.append(line)

    def _append_rendered(self, rendered: Any, results: Sequence[CaseResult]) -> None:
        with output_errors(self._target):
            self._workbook.add_rows(append_rendered(self._cases, rendered, results))
        self._ahead += len(results)

    def _append(self, result: CaseResult) -> None:
        links = append_evidence(self._evidence, result, self._cases, self._headers) if self._evidence else {}
        self._cases.append(result, links)

    def _reason(self, _: CaseResult) -> str:
        return self._spool.reason if self._spool else ""

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the summaries, check the file and move it into place; returns where it is.

        `facts` are those at the end of the run: usage, notes, and why it is partial if it is.
        """
        from rag_eval.report.book import check_readable, workbook_errors

        book, sheets = self._workbook.book, self._workbook.sheets
        with workbook_errors(self._target):
            for result in self._spool.chosen() if self._spool else ():
                self._append(result)
            self._cases.finish(CASES.frozen)
            self._cases.print_up_to("Row")
            if self._evidence:
                self._evidence.finish(EVIDENCE.frozen)
            self._stream(None)
            for table, sheet, _ in self._streams:
                sheet.finish(table.frozen)
            run = FinishedRun(facts, summary, findings, self._places(facts), self._limits())
            for each in self._tables:
                if isinstance(each, ReportTable):
                    WrittenSheet(book, sheets[each.name], self._formats, each).write(run)
            said = verdict(facts, summary, findings)
            for each in self._tables:
                has_charts = each in (BOTS, STANDINGS) and len(facts.bots) <= MOST_BOTS
                set_up_page(sheets[each.name], facts, said, is_one_page=has_charts)
            book.set_properties(_properties(facts, said.answer))
            if self._spool:
                self._spool.close()
            self._workbook.close()
        check_readable(self._replacement.path, self._target, list(sheets))
        return self._replacement.commit()

    def _places(self, facts: RunFacts) -> dict[str, Place]:
        """The headers of the columns with scores, by measure."""
        if not facts.has_labels:
            return {}
        headers = {**self._headers, **dict.fromkeys(facts.criteria, FAILED_CRITERIA)}
        return {name: Place(CASES.name, 0, self._cases.column(header)) for name, header in headers.items()}

    def _limits(self) -> list[str]:
        """Everything that the workbook does not have, one sentence each."""
        return [*self._cases.notes.limits_reached(), *self._links_left_out(), *self.left_out]

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._spool:
            self._spool.close()
        self._workbook.abandon()
        self._replacement.discard()

    def _links_left_out(self) -> list[str]:
        full = [
            f"Links to cases on the sheet {table.name}"
            for table, sheet, _ in self._streams
            if _is_full(sheet)
        ]
        if self._evidence and (_is_full(self._evidence) or _is_full(self._cases)):
            full.append("Links to and from the evidence")
        return [f"{links} end after {SHEET_LINKS:,} on a sheet." for links in full]


def _is_full(sheet: SheetTable[Any]) -> bool:
    return sheet.links >= SHEET_LINKS


def _cut_texts(count: int) -> str:
    several = f"{count:,} texts are longer than a cell can be and were cut." if count else ""
    return "1 text is longer than a cell can be and was cut." if count == 1 else several


def _rows_left_out(sheet: SheetTable[Any], table: StreamedTable[Any]) -> str:
    full = f"Sheet {table.name} is full: {sheet.left_out:,} {table.noun} did not fit."
    return full if sheet.left_out else ""


def _properties(facts: RunFacts, subject: str) -> dict[str, Any]:
    return {
        "title": f"RAG Eval report: {shorten(facts.input_name, 80)}",
        "subject": shorten(subject, 200),
        "author": "RAG Eval",
        "keywords": "PARTIAL" if facts.partial else "",
        "comments": f"Judged by {shorten(facts.judge, 180)}, RAG Eval {shorten(facts.version, 40)}",
        "created": facts.started.astimezone(UTC).replace(tzinfo=None),
    }
