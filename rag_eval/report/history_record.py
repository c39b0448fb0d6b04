"""This run's entry in the history: its values by case, and then its line."""

import csv
import errno
import gzip
import io
import os
from contextlib import suppress
from pathlib import Path

from rag_eval.errors import OutputError
from rag_eval.records import CaseResult, RunFacts
from rag_eval.results.findings import Findings
from rag_eval.results.run_history import CASE_COLUMNS, LINES, case_row, cases_path, run_line
from rag_eval.results.summary import Summary
from rag_eval.store.lock import locked
from rag_eval.store.replacement import Replacement, output_errors

_OPTION = "--history"
_PATIENCE = 60.0
"""Seconds. Whoever holds the lock is adding a line."""


class HistoryRecord:
    """An entry in the making. `finish` adds it to the history, `discard` leaves the history as it was."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self._folder = folder
        self._replacement = Replacement(cases_path(folder, run_id), option=_OPTION)
        try:
            with output_errors(folder, _OPTION):
                self._file = self._replacement.path.open("wb")
                # Without a name and a time: equal runs have equal files.
                self._packed = gzip.GzipFile("", "wb", fileobj=self._file, mtime=0)
                self._text = io.TextIOWrapper(self._packed, encoding="utf-8", newline="")
                self._rows = csv.writer(self._text)
                self._rows.writerow(CASE_COLUMNS)
        except OutputError:
            self._replacement.discard()
            raise

    def add(self, result: CaseResult) -> None:
        with output_errors(self._folder, _OPTION):
            self._rows.writerow(case_row(result))

    def finish(self, summary: Summary, findings: Findings, facts: RunFacts) -> Path:
        """Add the last run of the findings' history. Returns the path of the lines."""
        if findings.history is None:
            raise ValueError("the findings have no history")
        with output_errors(self._folder, _OPTION):
            self._text.close()
            self._file.close()
        self._replacement.commit()
        path = self._folder / LINES
        with locked(path, patience=_PATIENCE), output_errors(path, _OPTION):
            _append(path, run_line(findings.history.runs[-1]))
        return path

    def discard(self) -> None:
        with suppress(OSError, ValueError):  # what is still in a buffer may not fit on the disk
            self._text.close()
        with suppress(OSError):
            self._file.close()
        self._replacement.discard()


def _append(path: Path, line: str) -> None:
    """Add a whole line or, where that fails, nothing. What a killed writer left of one is closed first."""
    with path.open("ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        is_open = False
        if size:
            file.seek(size - 1)
            is_open = file.read(1) != b"\n"
        data = b"\n" * is_open + line.encode("utf-8", "surrogatepass") + b"\n"
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise
