"""The Excel report: three sheets, written as the results come and moved into place once they are complete."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any

from rag_eval.errors import OutputError
from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.alignment_sheet import DISAGREEMENTS, agreement_columns, disagreement_columns
from rag_eval.report.alignment_sheet import SHEET as ALIGNMENT
from rag_eval.report.baseline_sheet import SHEET as BASELINE
from rag_eval.report.baseline_sheet import write_changes
from rag_eval.report.case_table import RenderedCases, append_rendered, case_table
from rag_eval.report.charts import MOST_BOTS
from rag_eval.report.check import check_readable
from rag_eval.report.column import Column, Item, Place
from rag_eval.report.columns import score_headers
from rag_eval.report.core_sheets import HEADER_HEIGHT, set_up_page, write_bots, write_standings
from rag_eval.report.evidence import SHEET as EVIDENCE
from rag_eval.report.evidence import EvidenceLine, append_evidence, evidence_columns
from rag_eval.report.extra_metrics import FAILED_CRITERIA
from rag_eval.report.history_sheet import SHEET as HISTORY
from rag_eval.report.history_sheet import write_history
from rag_eval.report.retrieval_sheet import SHEET as RETRIEVAL
from rag_eval.report.retrieval_sheet import retrieval_columns
from rag_eval.report.rubric_sheet import SHEET as RUBRIC
from rag_eval.report.rubric_sheet import pass_rate_columns, pass_rate_lines
from rag_eval.report.side_by_side import SHEET as SIDE_BY_SIDE
from rag_eval.report.side_by_side import SideBySide, query_table
from rag_eval.report.slices import SHEET as SLICES
from rag_eval.report.slices import write_slices
from rag_eval.report.spool import CaseSpool
from rag_eval.report.styles import LINE_HEIGHT, Formats
from rag_eval.report.worksheet import SHEET_LINKS, SHEET_ROWS, SheetTable
from rag_eval.results.findings import Findings, verdict
from rag_eval.results.summary import Summary
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement, check_writable, output_errors
from rag_eval.texts.display import shorten

__all__ = ["ExcelReport", "check_writable"]

CASES, BOTS, STANDINGS = "Per-Query Metrics", "Bot Summary", "Leaderboard"


class ExcelReport:
    """A report in the making. `finish` or `discard` ends it; until then the target is untouched."""

    def __init__(
        self,
        target: Path,
        facts: RunFacts,
        *,
        has_evidence: bool = False,
        has_slices: bool = False,
        has_baseline: bool = False,
        has_side_by_side: bool = False,
        has_history: bool = False,
        sheet_rows: int = SHEET_ROWS,
        rendered: RenderedCases | None = None,
    ) -> None:
        """`sheet_rows` are as many as a sheet can have, the header's included.

        Cases that come from `rendered` are not rendered again. It must not be given for a run with evidence, or with
        more cases than a sheet can have.
        """
        self._target = target
        self._replacement = Replacement(target)
        optional = {
            RUBRIC: bool(facts.rubric),
            RETRIEVAL: facts.has_gold,
            ALIGNMENT: facts.has_labels,
            DISAGREEMENTS: facts.has_labels,
            BASELINE: has_baseline,
            HISTORY: has_history,
            SIDE_BY_SIDE: has_side_by_side,
            SLICES: has_slices,
            EVIDENCE: has_evidence,
        }
        names = [CASES, BOTS, STANDINGS, *(name for name, is_wanted in optional.items() if is_wanted)]
        from rag_eval.report.book import StreamedWorkbook, workbook_errors

        try:
            with workbook_errors(target):
                self._workbook = StreamedWorkbook(self._replacement.path, names, Scratch(target))
        except OutputError:
            self._replacement.discard()
            raise
        self._formats = Formats(self._workbook.book)
        sheet = self._workbook.sheets[CASES]
        self._spool = self._open_spool(facts, sheet_rows - 1)
        reason = self._reason if self._spool else None
        self._cases = case_table(sheet, facts, self._formats, sheet_rows, reason)
        self._ahead = 0  # cases that are written and were not yet added
        if rendered:
            self._formats.fix_numbers()
            rendered.take = self._append_rendered
        self._headers = score_headers(facts)
        self._queries: SheetTable[Sequence[CaseResult]] | None = None
        self._side_by_side: SideBySide | None = None
        if has_side_by_side:
            sheet = self._workbook.sheets[SIDE_BY_SIDE]
            self._queries = query_table(sheet, self._formats, facts, sheet_rows)
            self._side_by_side = SideBySide(self._queries.append)
        self._evidence: SheetTable[EvidenceLine] | None = None
        if has_evidence:
            sheet = self._workbook.sheets[EVIDENCE]
            self._evidence = SheetTable(
                sheet, evidence_columns(), self._formats, HEADER_HEIGHT, 3 * LINE_HEIGHT
            )

    @property
    def left_out(self) -> Sequence[str]:
        """What does not fit, one sentence each; complete once the report is finished."""
        cut_texts = self._cases.cut_texts + (self._queries.cut_texts if self._queries else 0)
        sentences = [
            self._spool.cut_note if self._spool else "",
            _cut_texts(cut_texts),
            _rows_left_out(self._queries, SIDE_BY_SIDE, "queries"),
            _rows_left_out(self._evidence, EVIDENCE, "pieces of evidence"),
        ]
        return [*filter(None, sentences)]

    def add(self, result: CaseResult) -> None:
        """Write one row of the first sheet, and the evidence if it is wanted; later if not all cases fit."""
        with output_errors(self._target):
            if self._side_by_side:
                self._side_by_side.add(result)
            if self._ahead:
                self._ahead -= 1
            elif self._spool:
                self._spool.add(result)
            else:
                self._append(result)

    def _append_rendered(self, rendered: Any, results: Sequence[CaseResult]) -> None:
        import openpyxl  # noqa: F401 - what the check at the end needs, now that others work as well

        with output_errors(self._target):
            self._workbook.add_rows(append_rendered(self._cases, rendered, results))
        self._ahead += len(results)

    def _append(self, result: CaseResult) -> None:
        links = append_evidence(self._evidence, result, self._cases, self._headers) if self._evidence else {}
        self._cases.append(result, links)

    def _open_spool(self, facts: RunFacts, capacity: int) -> CaseSpool | None:
        """None if every case fits, so that cases are written as they come."""
        if facts.rows * len(facts.bots) <= capacity:
            return None
        with output_errors(self._target):
            return CaseSpool(self._workbook.scratch.name, facts.bots, capacity)

    def _reason(self, _: CaseResult) -> str:
        return self._spool.reason if self._spool else ""

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the summaries, check the file and move it into place; returns where it is.

        `facts` are those at the end of the run: usage, notes, and why it is partial if it is.
        """
        from rag_eval.report.book import workbook_errors

        book, sheets = self._workbook.book, self._workbook.sheets
        with workbook_errors(self._target):
            for result in self._spool.chosen() if self._spool else ():
                self._append(result)
            self._cases.finish(frozen=3)
            self._cases.print_up_to("Row")
            if self._evidence:
                self._evidence.finish(frozen=3)
            if self._queries and self._side_by_side:
                self._side_by_side.finish()
                self._queries.finish(frozen=2)
            self._write_optional(sheets, summary, findings, facts)
            write_bots(book, sheets[BOTS], self._formats, facts, summary, findings)
            limits = [*self._cases.notes.limits_reached(), *self._links_left_out(), *self.left_out]
            write_standings(book, sheets[STANDINGS], self._formats, facts, summary, findings, limits)
            for name, sheet in sheets.items():
                has_charts = name in (BOTS, STANDINGS) and len(facts.bots) <= MOST_BOTS
                set_up_page(sheet, facts, is_one_page=has_charts)
            book.set_properties(_properties(facts, verdict(summary, findings)))
            if self._spool:
                self._spool.close()
            self._workbook.close()
        check_readable(self._replacement.path, self._target, list(sheets))
        return self._replacement.commit()

    def _write_optional(
        self, sheets: Mapping[str, Any], summary: Summary, findings: Findings, facts: RunFacts
    ) -> None:
        """The sheets that only some runs have, but for the evidence, which is written as it comes."""
        if RUBRIC in sheets:
            self._fill(sheets[RUBRIC], pass_rate_columns(facts), pass_rate_lines(findings.pass_rates), 30, 2)
        if RETRIEVAL in sheets:
            self._fill(sheets[RETRIEVAL], retrieval_columns(facts), findings.retrieval.items(), 44, 1)
        if ALIGNMENT in sheets and (alignment := findings.alignment):
            headers = {**self._headers, **dict.fromkeys(facts.criteria, FAILED_CRITERIA)}
            places = {name: Place(CASES, 0, self._cases.column(header)) for name, header in headers.items()}
            self._fill(sheets[ALIGNMENT], agreement_columns(facts), alignment.agreements, 44, 2)
            columns = disagreement_columns(facts, places)
            self._fill(sheets[DISAGREEMENTS], columns, alignment.disagreements, 30, 2, 2 * LINE_HEIGHT)
        if SLICES in sheets:
            write_slices(sheets[SLICES], self._formats, facts, summary)
        if BASELINE in sheets:
            write_changes(
                sheets[BASELINE], self._formats, facts, findings.changes or (), findings.beside_changes
            )

        if HISTORY in sheets and findings.history:
            write_history(
                self._workbook.book, sheets[HISTORY], self._formats, findings.history, findings.since_last
            )

    def _fill(
        self,
        sheet: Any,
        columns: Sequence[Column[Item]],
        items: Iterable[Item],
        header_height: float,
        frozen: int,
        line_height: float = 18,
    ) -> None:
        table = SheetTable(sheet, columns, self._formats, header_height, line_height)
        for item in items:
            table.append(item)
        table.finish(frozen)

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._spool:
            with suppress(OSError):  # what is still in a buffer may not fit on the disk
                self._spool.close()
        self._workbook.abandon()
        self._replacement.discard()

    def _links_left_out(self) -> list[str]:
        if not self._evidence or max(self._evidence.links, self._cases.links) < SHEET_LINKS:
            return []
        return [f"Links to and from the evidence end after {SHEET_LINKS:,} on a sheet."]


def _cut_texts(count: int) -> str:
    several = f"{count:,} texts are longer than a cell can be and were cut." if count else ""
    return "1 text is longer than a cell can be and was cut." if count == 1 else several


def _rows_left_out(table: SheetTable[Any] | None, sheet: str, what: str) -> str:
    return (
        f"Sheet {sheet} is full: {table.left_out:,} {what} did not fit." if table and table.left_out else ""
    )


def _properties(facts: RunFacts, subject: str) -> dict[str, Any]:
    return {
        "title": f"RAG Eval report: {shorten(facts.input_name, 80)}",
        "subject": shorten(subject, 200),
        "author": "RAG Eval",
        "keywords": "PARTIAL" if facts.partial else "",
        "comments": f"Judged by {shorten(facts.judge, 180)}, RAG Eval {shorten(facts.version, 40)}",
        "created": facts.started.astimezone(UTC).replace(tzinfo=None),
    }
