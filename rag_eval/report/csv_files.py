"""The report's tables as CSV files (RFC 4180, UTF-8 with a byte order mark), safe to open in a spreadsheet program."""

import csv
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Generic

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.alignment_sheet import agreement_columns, disagreement_columns
from rag_eval.report.baseline_sheet import change_columns
from rag_eval.report.column import Column, Item, Value
from rag_eval.report.columns import bot_columns, case_columns, score_headers, standing_columns
from rag_eval.report.evidence import evidence_columns, evidence_lines
from rag_eval.report.history_sheet import history_columns
from rag_eval.report.retrieval_sheet import retrieval_columns
from rag_eval.report.rubric_sheet import pass_rate_columns, pass_rate_lines
from rag_eval.report.side_by_side import SideBySide, query_columns
from rag_eval.report.slices import slice_columns, slice_lines
from rag_eval.results.findings import Findings
from rag_eval.results.run_history import bots_in_time
from rag_eval.results.summary import Summary
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.texts.display import formula_safe, printable

CASES, BOTS, STANDINGS = NAMES = ("per-query-metrics.csv", "bot-summary.csv", "leaderboard.csv")
RUBRIC, RETRIEVAL, ALIGNMENT, DISAGREEMENTS, BASELINE, HISTORY, SIDE_BY_SIDE, SLICES, EVIDENCE = OPTIONAL = (
    *("rubric.csv", "retrieval.csv", "human-alignment.csv", "disagreements.csv"),
    *("vs-baseline.csv", "history.csv", "side-by-side.csv", "slices.csv", "evidence.csv"),
)
"""Written only if the report has the sheet of that name."""
FILES = (*NAMES, *OPTIONAL)
_OPTION = "--csv"


class CsvReport:
    """CSV files that are being written. Files of an earlier run stay as they are until `finish` replaces them."""

    def __init__(
        self,
        folder: Path,
        facts: RunFacts,
        *,
        has_evidence: bool = False,
        has_slices: bool = False,
        has_side_by_side: bool = False,
    ) -> None:
        self._folder = folder
        self._headers = score_headers(facts)
        self._has_slices = has_slices
        self._is_new = not folder.exists()
        with output_errors(folder, _OPTION):
            folder.mkdir(parents=True, exist_ok=True)
        self._tables: list[_CsvTable[Any]] = []
        with ExitStack() as undo:
            undo.callback(self.discard)
            self._cases = self._open(CASES, case_columns(facts))
            self._evidence = self._open(EVIDENCE, evidence_columns()) if has_evidence else None
            self._side_by_side: SideBySide | None = None
            if has_side_by_side:
                self._side_by_side = SideBySide(self._open(SIDE_BY_SIDE, query_columns(facts)).append)
            undo.pop_all()

    def add(self, result: CaseResult) -> None:
        self._cases.append(result)
        if self._side_by_side:
            self._side_by_side.add(result)
        if self._evidence:
            for line in evidence_lines(result, self._headers):
                self._evidence.append(line)

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the summaries and move all files to their places. Returns the folder. Raises OutputError."""
        self._write(BOTS, bot_columns(facts, summary, findings), summary.bots)
        self._write(STANDINGS, standing_columns(facts, summary, findings), summary.standings)
        if findings.pass_rates:
            self._write(RUBRIC, pass_rate_columns(facts), list(pass_rate_lines(findings.pass_rates)))
        if findings.retrieval:
            self._write(RETRIEVAL, retrieval_columns(facts), list(findings.retrieval.items()))
        if findings.alignment:
            self._write(ALIGNMENT, agreement_columns(facts), findings.alignment.agreements)
            self._write(DISAGREEMENTS, disagreement_columns(facts), findings.alignment.disagreements)
        if findings.changes is not None:
            self._write(BASELINE, change_columns(facts), findings.changes)
        if findings.history:
            self._write(HISTORY, history_columns(), bots_in_time(findings.history, findings.since_last))
        if self._has_slices:
            self._write(SLICES, slice_columns(facts), list(slice_lines(summary)))
        if self._side_by_side:
            self._side_by_side.finish()
        for table in self._tables:
            table.close()
        for table in self._tables:
            table.replacement.commit()
        return self._folder

    def discard(self) -> None:
        """Remove the unfinished files, and the folder if it is new."""
        for table in self._tables:
            table.discard()
        if self._is_new:
            with suppress(OSError):
                self._folder.rmdir()

    def _write(self, name: str, columns: Sequence[Column[Item]], items: Sequence[Item]) -> None:
        table = self._open(name, columns)
        for item in items:
            table.append(item)

    def _open(self, name: str, columns: Sequence[Column[Item]]) -> "_CsvTable[Item]":
        table = _CsvTable(self._folder / name, columns)
        self._tables.append(table)
        table.write_header()
        return table


class _CsvTable(Generic[Item]):
    """One file: a header, then a row for each item."""

    def __init__(self, target: Path, columns: Sequence[Column[Item]]) -> None:
        self.replacement = Replacement(target, option=_OPTION)
        self._target = target
        self._columns = [column for column in columns if not column.is_hidden]
        self._counts = [(column.header, column.count) for column in self._columns if column.count]
        self._file = self.replacement.path.open("w", encoding="utf-8-sig", newline="")
        # Every text in quotes: a separator of another country's Excel would otherwise split it into cells.
        self._writer = csv.writer(self._file, quoting=csv.QUOTE_NONNUMERIC)

    def write_header(self) -> None:
        counts = [f"{header} Scored" for header, _ in self._counts]
        self._writerow([*(column.header for column in self._columns), *counts])

    def append(self, item: Item) -> None:
        counts = [count(item) for _, count in self._counts]
        self._writerow([*(column.cell(item).value for column in self._columns), *counts])

    def close(self) -> None:
        with output_errors(self._target, _OPTION):
            self._file.close()

    def discard(self) -> None:
        with suppress(OSError):  # what is still in a buffer may not fit on the disk
            self._file.close()
        self.replacement.discard()

    def _writerow(self, values: Sequence[Value]) -> None:
        with output_errors(self._target, _OPTION):
            self._writer.writerow(
                [printable(formula_safe(value)) if isinstance(value, str) else value for value in values]
            )
