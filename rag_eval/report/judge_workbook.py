"""The comparison of two judges as a workbook."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rag_eval.report.annotations import Stack
from rag_eval.report.check import check_readable
from rag_eval.report.column import Column, Item
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.judge_tables import (
    Runs,
    decision_table,
    disagreement_columns,
    evidence_text,
    human_columns,
    judge_table,
    measure_columns,
    properties_text,
    ranking_columns,
    summary_lines,
)
from rag_eval.report.notes import lines_of
from rag_eval.report.styles import BLUE, LINE_HEIGHT, Formats
from rag_eval.report.worksheet import SheetTable
from rag_eval.results.findings import unfit_words
from rag_eval.results.judge_comparison import JudgeComparison, headline
from rag_eval.store.replacement import Replacement
from rag_eval.texts.display import shorten

AGREEMENT, DECISIONS, JUDGES, RANKING, LABELS, DISAGREEMENTS = (
    "Agreement",
    "Decisions",
    "Judges",
    "Ranking",
    "Human Labels",
    "Disagreements",
)
_BOX_WIDTH = 1040
"""In pixels."""


def write_workbook(target: Path, comparison: JudgeComparison, runs: Runs) -> Path:
    """Write the workbook, check it and move it to `target`. Returns where it is. Raises OutputError."""
    from xlsxwriter import Workbook

    from rag_eval.report.book import workbook_errors

    replacement = Replacement(target)
    names = [AGREEMENT, DECISIONS, JUDGES, RANKING, *([LABELS] if comparison.human else []), DISAGREEMENTS]
    try:
        with workbook_errors(target):
            book = Workbook(replacement.path)
            _fill(book, names, comparison, runs)
            book.close()
        check_readable(replacement.path, target, names)
        return replacement.commit()
    finally:
        replacement.discard()


def _fill(book: Any, names: Sequence[str], comparison: JudgeComparison, runs: Runs) -> None:
    formats, facts = Formats(book), next((run.facts for run in runs if run.facts.partial), runs[0].facts)
    sheets = {name: book.add_worksheet(name) for name in names}

    def fill(
        name: str, columns: Sequence[Column[Item]], items: Iterable[Item], height: float, lines: int = 1
    ) -> Any:
        table = SheetTable(sheets[name], columns, formats, 2 * LINE_HEIGHT, height)
        for item in items:
            table.append(item)
        table.finish(lines)
        return table

    table = fill(AGREEMENT, measure_columns(), comparison.measures, 18)
    fill(DECISIONS, *decision_table(comparison), 18)
    fill(JUDGES, *judge_table(comparison, runs), 2 * LINE_HEIGHT)
    fill(RANKING, ranking_columns(facts), comparison.ranking, 18)
    if LABELS in sheets:
        fill(LABELS, human_columns(), comparison.human, 18)
    fill(DISAGREEMENTS, disagreement_columns(facts), comparison.disagreements, _line_height(comparison), 3)
    partial = [
        f"PARTIAL: {run.letter}: {shorten(run.facts.partial, 200)}" for run in runs if run.facts.partial
    ]
    partial += [f"{run.letter}: {unfit_words(run.facts)}" for run in runs if unfit_words(run.facts)]
    stack = Stack(sheets[AGREEMENT], table.lines + 1, _BOX_WIDTH)
    stack.add_text(
        "\n".join([*partial, headline(comparison, *runs)]), {"size": 12, "bold": True, "color": BLUE}
    )
    stack.add_text("\n".join(shorten(each, 400) for each in _details(comparison, runs)), {"size": 10})
    for name, sheet in sheets.items():
        set_up_page(sheet, facts, is_one_page=name == AGREEMENT)
    book.set_properties(
        {
            "title": f"RAG Eval comparison of judges: {shorten(facts.input_name, 80)}",
            "subject": shorten(headline(comparison, *runs), 200),
            "author": "RAG Eval",
            "keywords": "PARTIAL" if partial else "",
            "comments": f"{properties_text(runs)}, RAG Eval {shorten(facts.version, 40)}",
        }
    )


def _line_height(comparison: JudgeComparison) -> float:
    """Of all disagreements, in points: that of the longest evidence, up to a limit."""
    texts = [evidence_text(score) for line in comparison.disagreements for score in (line.a, line.b)]
    lines = max([lines_of(text.split("\n"), _EVIDENCE_LINE) for text in texts], default=1)
    return LINE_HEIGHT * min(max(lines, 2), _MOST_LINES)


_EVIDENCE_LINE = 64
"""Characters on one line of evidence."""
_MOST_LINES = 8


def _details(comparison: JudgeComparison, runs: Runs) -> list[str]:
    name = shorten(runs[0].facts.input_name, 80)
    return [
        *summary_lines(comparison, runs),
        f"Compared: {comparison.cases:,} cases in {comparison.rows:,} rows of {name}.",
    ]
