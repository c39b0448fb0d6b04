"""The scores of a retrieval evaluation as a file: a workbook, a CSV for spreadsheets, or lines of JSON.

The file has one row per query, written as the scores come, and replaces the target once it is complete.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TextIO

from rag_eval.errors import InputError
from rag_eval.report.column import (
    AnyTable,
    Cell,
    Column,
    ReportTable,
    grey_column,
    grey_without,
    plain_column,
)
from rag_eval.report.styles import Formats, Look
from rag_eval.report.worksheet import SheetTable, WrittenSheet
from rag_eval.retrieval import DEFAULT_CUTOFFS, QueryIds, RetrievalScores, RetrievalSummary, label_of
from rag_eval.retrieval.from_files import AnyPath, evaluate_files
from rag_eval.store.leftovers import sweep
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
    write = _FORMATS.get(target.suffix.lower())
    if write is None:
        raise InputError(
            f"{target.name}: scores need a file name that ends in {enumerated(tuple(_FORMATS), 'or')}"
        )
    if os.path.realpath(target) in map(os.path.realpath, (results, references)):
        raise InputError(f"{target.name}: is an input; choose another name with --output")
    sweep([target])
    return write(target, wanted, lambda each: evaluate_files(results, references, wanted, each, reading))


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


_Each = Callable[[RetrievalScores], object]
"""Is given the scores of each query, in the order of the references."""
_Score = Callable[[_Each], RetrievalSummary]


def _write_text(
    target: Path,
    cutoffs: tuple[int, ...],
    score: _Score,
    *,
    begin: Callable[[TextIO, tuple[int, ...]], _Each],
    **options: str,
) -> tuple[RetrievalSummary, Path]:
    """A file that has only the queries; `options` are of open()."""
    replacement = Replacement(target)
    try:
        with output_errors(target), replacement.path.open("w", **options) as file:  # type: ignore[call-overload]
            summary = score(begin(file, cutoffs))
        return summary, replacement.commit()
    finally:
        replacement.discard()


# --- lines of JSON ----------------------------------------------------------------------------------------------


def _begin_json_lines(file: TextIO, cutoffs: tuple[int, ...]) -> _Each:
    def add(scores: RetrievalScores) -> None:
        counts = scores.hit_ranks, scores.retrieved_docs_count, scores.gold_docs_count, scores.has_result
        file.write(f'{{"qid": {json.dumps(scores.qid)}, {_line_after_qid(*counts, cutoffs)}')

    return add


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


def _begin_csv(file: TextIO, cutoffs: tuple[int, ...]) -> _Each:
    writer = csv.writer(file)
    writer.writerow(["qid", *_fields(RetrievalScores.of("", (), ()), cutoffs)])
    return lambda scores: writer.writerow([formula_safe(scores.qid), *_fields(scores, cutoffs).values()])


# --- workbook ---------------------------------------------------------------------------------------------------


def _write_workbook(target: Path, cutoffs: tuple[int, ...], score: _Score) -> tuple[RetrievalSummary, Path]:
    from rag_eval.report.book import new_workbook

    with new_workbook(target, [QUERIES.name, SUMMARY.name]) as workbook:
        queries_sheet, summary_sheet = workbook.sheets.values()
        formats = Formats(workbook.book)
        queries = SheetTable(
            queries_sheet, _query_columns(cutoffs), formats, QUERIES.header_height, QUERIES.line_height
        )
        summary = score(queries.append)
        queries.finish(QUERIES.frozen)
        finished = _Finished(summary, queries.left_out)
        WrittenSheet(workbook.book, summary_sheet, formats, SUMMARY).write(finished)
        for sheet in workbook.sheets.values():
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
            sheet.repeat_rows(0)
    return summary, workbook.place


def _query_columns(cutoffs: tuple[int, ...]) -> list[Column[RetrievalScores]]:
    def measure(name: str) -> Column[RetrievalScores]:
        return grey_column(label_of(name), 10.5, Look.SCORE, lambda scores: scores.values(cutoffs)[name])

    return [
        plain_column("Query ID", 40, Look.NAME, lambda scores: scores.qid),
        *(measure(name) for name in RetrievalScores.of("", (), ()).values(cutoffs)),
        plain_column("Retrieved Docs", 10.5, Look.COUNT, lambda scores: scores.retrieved_docs_count),
        plain_column("Gold Docs", 10.5, Look.COUNT, lambda scores: scores.gold_docs_count),
        plain_column("Correct Docs", 10.5, Look.COUNT, lambda scores: scores.correct_docs_count),
        plain_column(
            "First Hit at Rank", 10.5, Look.COUNT, lambda scores: next(iter(scores.hit_ranks), None)
        ),
        Column("Has Result?", 9, lambda scores: Cell("YES" if scores.has_result else "NO", Look.WORD)),
    ]


_SummaryItem = tuple[str, Cell, Cell, str]
"""Name of a measure or count, its mean, its number of queries, and examples of query ids."""

_SUMMARY_COLUMNS: Sequence[Column[_SummaryItem]] = (
    plain_column("Measure", 52, Look.WORD, lambda item: item[0]),
    Column("Mean", 10, lambda item: item[1]),
    Column("Queries", 10, lambda item: item[2]),
    plain_column("Examples", 70, Look.TEXT, lambda item: item[3]),
)


class _Finished(NamedTuple):
    summary: RetrievalSummary
    left_out: int
    """Queries that are not on their sheet."""


def _summary_items(finished: _Finished) -> Iterator[_SummaryItem]:
    summary, left_out = finished
    for name, mean in summary.means.items():
        yield label_of(name), grey_without(mean, Look.SCORE), Cell(summary.scored, Look.COUNT), ""
    nothing = Cell(None, Look.WORD)
    for what, ids in _counts(summary):
        yield what, nothing, Cell(ids.count, Look.COUNT), _examples(ids)
    if summary.selection:
        yield "Selection of references", nothing, nothing, "; then ".join(summary.selection)
    if left_out:
        yield (
            f"In the means, but not on sheet {QUERIES.name}: too many rows",
            nothing,
            Cell(left_out, Look.COUNT),
            "",
        )


QUERIES = AnyTable(name="Retrieval", header_height=44, line_height=18, frozen=1)
SUMMARY = ReportTable(
    name="Summary",
    columns=lambda _: _SUMMARY_COLUMNS,
    lines=_summary_items,
    header_height=30,
    line_height=18,
    frozen=1,
)
_FORMATS: Mapping[str, Callable[[Path, tuple[int, ...], _Score], tuple[RetrievalSummary, Path]]] = {
    ".xlsx": _write_workbook,
    # With a byte order mark, or Excel takes the ids for another encoding.
    ".csv": partial(_write_text, begin=_begin_csv, encoding="utf-8-sig", newline=""),
    ".jsonl": partial(_write_text, begin=_begin_json_lines, encoding="utf-8"),
}
