"""The Excel report, written as the results come and moved into place once it is complete; a workbook of some cases."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from rag_eval.errors import OutputError
from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.annotations import THRESHOLD_NAMES
from rag_eval.report.case_table import CASES, RenderedCases, append_rendered, case_table
from rag_eval.report.charts import MOST_BOTS
from rag_eval.report.column import Place, ReportTable, StreamedTable
from rag_eval.report.columns import score_headers
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.evidence import append_evidence
from rag_eval.report.extra_columns import FAILED_CRITERIA
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.styles import Formats, Look
from rag_eval.report.tables import BOTS, EVIDENCE, STANDINGS, report_tables
from rag_eval.report.worksheet import SHEET_LINKS, SHEET_ROWS, SheetTable, WrittenSheet, fits_sheet
from rag_eval.results.findings import Findings
from rag_eval.results.row_choice import ScoredCases
from rag_eval.results.summary import Summary
from rag_eval.results.verdict import verdict
from rag_eval.store.codec import NumberTable, Spool
from rag_eval.store.leftovers import Scratch
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.texts.display import printable, shorten

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
        if rendered and self._streams:
            rendered.suffice = False

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


_MOST_CHOSEN = 20_000
"""Cases of a sheet that cannot have all: more of them nobody reads, and other files have every case."""


class CaseSpool:
    """Told of every result in order; holds a few bytes for each in memory, the rest on disk."""

    def __init__(self, bots: Sequence[str], capacity: int) -> None:
        """`capacity` is how many cases the sheet can have."""
        self.reason = ""
        """Why the case that `chosen` gave last is there: WORST or RANDOM; empty if every case is."""
        self._capacity = capacity
        self.most = min(capacity, _MOST_CHOSEN)
        """Cases of the sheet if it cannot have all."""
        self._numbers = {bot: number for number, bot in enumerate(bots)}
        self._results: Spool[CaseResult] = Spool(CaseResult, "the cases")
        self._file: Spool[bytes] = Spool(bytes, "the scores of the cases")
        self._columns = NumberTable({"row": "I", "bot": "H", "rqs": "d"}, self._file)
        self._last_row: int | None = None
        self._place = -1

    def add(self, result: CaseResult) -> None:
        self._place += result.case.row != self._last_row
        self._last_row = result.case.row
        last = self._columns.last
        last["row"].append(self._place)
        last["rqs"].append(math.nan if result.rqs is None else result.rqs)
        last["bot"].append(self._numbers[result.case.bot])
        self._columns.end_entry()
        self._results.add(result)

    @property
    def cut_note(self) -> str:
        """A sentence on what the sheet leaves out; empty if all cases fit."""
        cases = len(self._columns)
        if cases <= self._capacity:
            return ""
        return (
            f"Sheet Per-Query Metrics has at most {self.most:,} of {cases:,} cases, because a sheet cannot have all: "
            "half of them queries with the lowest RQS of a bot, half random queries (column Selection). All means are "
            "over all cases. JSON and CSV have every case; a baseline uses only the random ones of the sheet."
        )

    def chosen(self) -> Iterator[CaseResult]:
        """The cases that fit, in the order of the input: all of them, or those of the worst rows and of random ones."""
        import numpy as np

        is_cut = len(self._columns) > self._capacity
        rows, bots, rqs = map(self._columns.column, ("row", "bot", "rqs"))
        columns = (np.frombuffer(column, column.typecode) for column in (rows, bots, rqs))
        reasons = ScoredCases(*columns).fitting(self.most) if is_cut else []
        del bots, rqs
        for case, row in enumerate(rows):
            self.reason = reasons[row] if is_cut else ""
            if self.reason or not is_cut:
                yield self._results.at(case)

    def close(self) -> None:
        self._results.close()
        self._file.close()


_SELECTION = "Selection"


def write_cases(
    target: Path, facts: RunFacts, results: Iterable[CaseResult], about: Sequence[str]
) -> tuple[int, int]:
    """Write the cases in the order given. Returns how many were written, and how many the sheet had no room for.

    `about` are sentences on what the selection is; a line with the number of cases is put before them. Raises
    OutputError.
    """
    from rag_eval.report.book import new_workbook

    with new_workbook(target, [CASES.name, _SELECTION]) as workbook:
        sheet, selection = workbook.sheets.values()
        formats = Formats(workbook.book)
        table = case_table(sheet, facts, formats)
        for result in results:
            table.append(result)
        for score, name in THRESHOLD_NAMES.items():
            if score in facts.metrics:
                workbook.book.define_name(name, f"={facts.all_thresholds[score]!r}")
        table.finish(CASES.frozen)
        selection.set_column(0, 0, 110)
        for number, line in enumerate([f"{table.lines:,} cases", *about]):
            selection.write_string(number, 0, printable(line), formats[Look.TEXT])
        set_up_page(sheet, facts)
    return table.lines, table.left_out
