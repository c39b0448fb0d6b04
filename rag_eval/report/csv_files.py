"""The report's tables as CSV files (RFC 4180, UTF-8 with a byte order mark), safe to open in a spreadsheet program."""

import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Generic

from rag_eval.records import CaseResult, RunFacts
from rag_eval.report.column import Column, Item, ReportTable, StreamedTable, Value
from rag_eval.report.outputs import FinishedRun
from rag_eval.report.tables import TABLES, report_tables
from rag_eval.results.findings import Findings
from rag_eval.results.summary import Summary
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.texts.display import formula_safe, printable

FILES = tuple(table.file_name for table in TABLES)
"""Those that a run can have."""
_OPTION = "--csv"


class CsvReport:
    """CSV files that are being written. Files of an earlier run stay as they are until `finish` replaces them."""

    def __init__(self, folder: Path, facts: RunFacts, asked: Collection[str] = ()) -> None:
        """`asked` names optional tables, see report_tables."""
        self._folder = folder
        self._wanted = report_tables(facts, asked)
        self._is_new = not folder.exists()
        with output_errors(folder, _OPTION):
            folder.mkdir(parents=True, exist_ok=True)
        self._tables: list[_CsvTable[Any]] = []
        self._streams: list[tuple[_CsvTable[Any], Callable[[CaseResult | None], Iterable[Any]]]] = []
        with ExitStack() as undo:
            undo.callback(self.discard)
            for table in self._wanted:
                if isinstance(table, StreamedTable):
                    file = self._open(table.file_name, table.columns(facts))
                    self._streams.append((file, table.lines(facts)))
            undo.pop_all()

    def add(self, result: CaseResult | None) -> None:
        for file, lines in self._streams:
            for line in lines(result):
                file.append(line)

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Write the summaries and move all files to their places. Returns the folder. Raises OutputError."""
        self.add(None)
        run = FinishedRun(facts, summary, findings)
        for table in self._wanted:
            if isinstance(table, ReportTable):
                file = self._open(table.file_name, table.columns(run))
                for line in table.lines(run):
                    file.append(line)
        for file in self._tables:
            file.close()
        for file in self._tables:
            file.replacement.commit()
        return self._folder

    def discard(self) -> None:
        """Remove the unfinished files, and the folder if it is new."""
        for table in self._tables:
            table.discard()
        if self._is_new:
            with suppress(OSError):
                self._folder.rmdir()

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
