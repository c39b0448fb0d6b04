"""The scores of a retrieval evaluation as a file: a workbook, a CSV for spreadsheets, or lines of JSON.

The file has one row per query, written as the scores come, and replaces the target once it is complete.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from rag_eval.errors import InputError
from rag_eval.report.check import check_readable
from rag_eval.report.column import Cell, Column
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import SheetTable
from rag_eval.retrieval import DEFAULT_CUTOFFS, QueryIds, RetrievalScores, RetrievalSummary, label_of
from rag_eval.retrieval.from_files import AnyPath, evaluate_files
from rag_eval.store.leftovers import Scratch, sweep
from rag_eval.store.replacement import Replacement, output_errors
from rag_eval.tables.record_files import AS_FOUND, ReadOptions
from rag_eval.texts.display import decimals, enumerated, formula_safe


def write_retrieval(
    results: AnyPath,
    references: AnyPath,
    output: AnyPath,
    cutoffs: Iterable[int] = DEFAULT_CUTOFFS,
    reading: ReadOptions = AS_FOUND,
) -> tuple[RetrievalSummary, Path]:
    """Score every reference and write the scores to `output` (.xlsx, .csv or .jsonl), in the order of the references.

    Returns the summary, and the path of the file, which is next to `output` if another program has that open. Raises
    InputError for files that cannot be used, and OutputError if the output cannot be written; an earlier file stays.
    """
    target, wanted = Path(output), tuple(sorted(set(cutoffs)))
    opener = _FORMATS.get(target.suffix.lower())
    if opener is None:
        raise InputError(
            f"{target.name}: scores need a file name that ends in {enumerated(tuple(_FORMATS), 'or')}"
        )
    if os.path.realpath(target) in map(os.path.realpath, (results, references)):
        raise InputError(f"{target.name}: is an input; choose another name with --output")
    sweep([target])
    replacement = Replacement(target)
    try:
        with (
            output_errors(target),
            Scratch(target) as scratch,
            opener(replacement.path, wanted, scratch) as writer,
        ):
            summary = evaluate_files(results, references, wanted, writer.add, reading)
            writer.finish(summary)
        if opener is _workbook:
            check_readable(replacement.path, target, (RETRIEVAL, SUMMARY))
        return summary, replacement.commit()
    finally:
        replacement.discard()


def summary_lines(summary: RetrievalSummary) -> list[str]:
    """The means and the numbers of queries as lines of plain text. Query ids are not made safe for a terminal."""
    width = max(len(label_of(name)) for name in summary.means)
    table = [
        f"{label_of(name):<{width}}  {decimals(mean, 4):>6}  {summary.scored:>7,}"
        for name, mean in summary.means.items()
    ]
    counts = [
        f"{what}: {ids.count:,}" + (f" ({_examples(ids)})" if ids.examples else "")
        for what, ids in _counts(summary)
    ]
    return [f"{'Measure':<{width}}  {'Mean':>6}  {'Queries':>7}", *table, "", *counts]


def _counts(summary: RetrievalSummary) -> Iterator[tuple[str, QueryIds]]:
    yield "Scored", QueryIds(summary.scored)
    yield "Not applicable, without gold documents", summary.not_applicable
    yield "References without a result, scored as nothing retrieved", summary.without_result
    if summary.selection:
        yield "Results without a selected reference, left out", summary.without_reference
    else:
        yield "Results without a reference, left out", summary.without_reference


def _examples(ids: QueryIds) -> str:
    return ", ".join(ids.examples) + (", …" if ids.count > len(ids.examples) > 0 else "")


class _Writer(Protocol):
    """Writes every query, then the summary."""

    def add(self, scores: RetrievalScores) -> None: ...
    def finish(self, summary: RetrievalSummary) -> None: ...


# --- lines of JSON ----------------------------------------------------------------------------------------------


@contextmanager
def _json_lines(path: Path, cutoffs: tuple[int, ...], _scratch: str) -> Iterator["_JsonLines"]:
    with path.open("w", encoding="utf-8") as file:
        yield _JsonLines(file.write, cutoffs)


class _JsonLines:
    def __init__(self, write: Callable[[str], object], cutoffs: tuple[int, ...]) -> None:
        self._write = write
        self._cutoffs = cutoffs

    def add(self, scores: RetrievalScores) -> None:
        counts = scores.hit_ranks, scores.retrieved_docs_count, scores.gold_docs_count, scores.has_result
        self._write(f'{{"qid": {json.dumps(scores.qid)}, {_line_after_qid(*counts, self._cutoffs)}')

    def finish(self, summary: RetrievalSummary) -> None:
        """Nothing to write: the file has only the queries."""


@lru_cache(maxsize=4096)
def _line_after_qid(
    hits: tuple[int, ...], retrieved: int, gold: int, has_result: bool, cutoffs: tuple[int, ...]
) -> str:
    """Cached, because many queries share it and writing it costs more than all the arithmetic."""
    fields = _fields(RetrievalScores("", hits, retrieved, gold, has_result), cutoffs)
    return json.dumps(fields).removeprefix("{") + "\n"


def _fields(scores: RetrievalScores, cutoffs: tuple[int, ...]) -> Mapping[str, bool | int | float | None]:
    """The members of a query after its id. Measures are None if it has no gold documents."""
    return {
        "has_result": scores.has_result,
        "retrieved_docs_count": scores.retrieved_docs_count,
        "gold_docs_count": scores.gold_docs_count,
        "correct_docs_count": scores.correct_docs_count,
        **scores.values(cutoffs),
    }


# --- CSV --------------------------------------------------------------------------------------------------------


@contextmanager
def _csv(path: Path, cutoffs: tuple[int, ...], _scratch: str) -> Iterator["_Csv"]:
    # With a byte order mark, or Excel takes the ids for another encoding.
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        yield _Csv(csv.writer(file), cutoffs)


class _Csv:
    def __init__(self, writer: Any, cutoffs: tuple[int, ...]) -> None:
        self._writer = writer
        self._cutoffs = cutoffs
        writer.writerow(["qid", *_fields(RetrievalScores.of("", (), ()), cutoffs)])

    def add(self, scores: RetrievalScores) -> None:
        self._writer.writerow([formula_safe(scores.qid), *_fields(scores, self._cutoffs).values()])

    def finish(self, summary: RetrievalSummary) -> None:
        """Nothing to write: the file has only the queries."""


# --- workbook ---------------------------------------------------------------------------------------------------

RETRIEVAL, SUMMARY = "Retrieval", "Summary"


@contextmanager
def _workbook(path: Path, cutoffs: tuple[int, ...], scratch: str) -> Iterator["_Workbook"]:
    from xlsxwriter import Workbook

    from rag_eval.report.book import unwrapped_errors

    book = Workbook(path, {"constant_memory": True, "tmpdir": scratch})
    book.use_zip64()
    writer = _Workbook(book, cutoffs)
    try:
        with unwrapped_errors():
            yield writer
            book.close()
    finally:
        writer.close_scratch()


class _Workbook:
    def __init__(self, book: Any, cutoffs: tuple[int, ...]) -> None:
        self._formats = Formats(book)
        self._sheets = [book.add_worksheet(name) for name in (RETRIEVAL, SUMMARY)]
        self._queries = SheetTable(self._sheets[0], _query_columns(cutoffs), self._formats, 44, 18)

    def add(self, scores: RetrievalScores) -> None:
        self._queries.append(scores)

    def finish(self, summary: RetrievalSummary) -> None:
        self._queries.finish(frozen=1)
        lines = SheetTable(self._sheets[1], _SUMMARY_COLUMNS, self._formats, 30, 18)
        for line in _summary_items(summary, self._queries.left_out):
            lines.append(line)
        lines.finish(frozen=1)
        for sheet in self._sheets:
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
            sheet.repeat_rows(0)

    def close_scratch(self) -> None:
        """Close the files with the rows: not every system removes a file that is open."""
        for sheet in self._sheets:
            with suppress(OSError):  # what is still in a buffer may not fit on the disk
                sheet.row_data_fh.close()  # closing the workbook would write it


def _query_columns(cutoffs: tuple[int, ...]) -> list[Column[RetrievalScores]]:
    def measure(name: str) -> Column[RetrievalScores]:
        return Column(label_of(name), 10.5, lambda scores: _measure_cell(scores.values(cutoffs)[name]))

    def count(header: str, value: Callable[[RetrievalScores], int | None]) -> Column[RetrievalScores]:
        return Column(header, 10.5, lambda scores: Cell(value(scores), Look.COUNT))

    return [
        Column("Query ID", 40, lambda scores: Cell(scores.qid, Look.NAME), Look.HEADER),
        *(measure(name) for name in RetrievalScores.of("", (), ()).values(cutoffs)),
        count("Retrieved Docs", lambda scores: scores.retrieved_docs_count),
        count("Gold Docs", lambda scores: scores.gold_docs_count),
        count("Correct Docs", lambda scores: scores.correct_docs_count),
        count("First Hit at Rank", lambda scores: next(iter(scores.hit_ranks), None)),
        Column("Has Result?", 9, lambda scores: Cell("YES" if scores.has_result else "NO", Look.WORD)),
    ]


def _measure_cell(value: float | None) -> Cell:
    return Cell(None, Look.NOT_APPLICABLE) if value is None else Cell(value, Look.SCORE)


_SummaryItem = tuple[str, Cell, Cell, str]
"""Name of a measure or count, its mean, its number of queries, and examples of query ids."""

_SUMMARY_COLUMNS: Sequence[Column[_SummaryItem]] = (
    Column("Measure", 52, lambda item: Cell(item[0], Look.WORD), Look.HEADER),
    Column("Mean", 10, lambda item: item[1]),
    Column("Queries", 10, lambda item: item[2]),
    Column("Examples", 70, lambda item: Cell(item[3], Look.TEXT), Look.HEADER),
)


def _summary_items(summary: RetrievalSummary, left_out: int) -> Iterator[_SummaryItem]:
    for name, mean in summary.means.items():
        yield label_of(name), _measure_cell(mean), Cell(summary.scored, Look.COUNT), ""
    nothing = Cell(None, Look.WORD)
    for what, ids in _counts(summary):
        yield what, nothing, Cell(ids.count, Look.COUNT), _examples(ids)
    if summary.selection:
        yield "Selection of references", nothing, nothing, "; then ".join(summary.selection)
    if left_out:
        yield (
            f"In the means, but not on sheet {RETRIEVAL}: too many rows",
            nothing,
            Cell(left_out, Look.COUNT),
            "",
        )


_FORMATS: Mapping[str, Callable[[Path, tuple[int, ...], str], Any]] = {
    ".xlsx": _workbook,
    ".csv": _csv,
    ".jsonl": _json_lines,
}
