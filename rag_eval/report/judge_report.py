"""The comparison of two judges as a workbook and as JSON."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.report.annotations import Stack
from rag_eval.report.core_sheets import set_up_page
from rag_eval.report.judge_tables import (
    AGREEMENT,
    DISAGREEMENTS,
    ComparedJudges,
    Runs,
    evidence_text,
    properties_text,
    summary_lines,
    tables_of,
)
from rag_eval.report.notes import lines_of
from rag_eval.report.styles import BLUE, LINE_HEIGHT, Formats
from rag_eval.report.worksheet import WrittenSheet
from rag_eval.results.judge_comparison import JudgeComparison, JudgeRun, headline
from rag_eval.results.paired import BANDS
from rag_eval.results.verdict import unfit_words
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import shorten

if TYPE_CHECKING:
    from rag_eval.report.book import StreamedWorkbook


_BOX_WIDTH = 1040
"""In pixels."""


def write_workbook(target: Path, comparison: JudgeComparison, runs: Runs) -> Path:
    """Write the workbook, check it and move it to `target`. Returns where it is. Raises OutputError."""
    from rag_eval.report.book import new_workbook

    with new_workbook(target, [table.name for table in tables_of(comparison)]) as workbook:
        _fill(workbook, comparison, runs)
    return workbook.place


def _fill(workbook: "StreamedWorkbook", comparison: JudgeComparison, runs: Runs) -> None:
    book, formats, judges = workbook.book, Formats(workbook.book), ComparedJudges(comparison, runs)
    facts, filled = judges.facts, {}
    sheets = {table: workbook.sheets[table.name] for table in tables_of(comparison)}
    for table, worksheet in sheets.items():
        height = _line_height(comparison) if table is DISAGREEMENTS else None
        filled[table] = WrittenSheet(book, worksheet, formats, table).fill(judges, height)
    partial = [
        f"PARTIAL: {run.letter}: {shorten(run.facts.partial, 200)}" for run in runs if run.facts.partial
    ]
    partial += [f"{run.letter}: {unfit_words(run.facts)}" for run in runs if unfit_words(run.facts)]
    stack = Stack(sheets[AGREEMENT], filled[AGREEMENT].lines + 1, _BOX_WIDTH)
    stack.add_text(
        "\n".join([*partial, headline(comparison, *runs)]), {"size": 12, "bold": True, "color": BLUE}
    )
    stack.add_text("\n".join(shorten(each, 400) for each in _details(comparison, runs)), {"size": 10})
    for table, worksheet in sheets.items():
        set_up_page(worksheet, facts, is_one_page=table is AGREEMENT)
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


FORMAT = "rag-eval-judge-comparison/1"


def write_json(target: Path, comparison: JudgeComparison, runs: Runs) -> Path:
    """Write the document as a whole. Returns its path. Raises OutputError."""
    document = {
        "format": FORMAT,
        "status": "partial" if any(run.facts.partial for run in runs) else "complete",
        "sentence": headline(comparison, *runs),
        "input": runs[0].facts.input_name,
        "rows": comparison.rows,
        "cases": comparison.cases,
        "judges": {run.letter.lower(): _judge(run) for run in runs},
        "decisions": {**_plain(asdict(comparison.overall)), "left_out": comparison.undecided},
        "kappa_bands": BANDS,
        "measures": {line.measure: _plain(asdict(line)) for line in comparison.measures},
        "ranking": [asdict(line) for line in comparison.ranking],
        "verdicts": dict(zip("ab", comparison.verdicts, strict=True)),
        "human": [
            {
                **_plain(asdict(line)),
                "error_difference": line.error_difference,
                "kappa_difference": line.kappa_gain,
            }
            for line in comparison.human
        ],
        **({"preferences": _plain(asdict(comparison.preferences))} if comparison.preferences else {}),
        "disagreements": [asdict(line) | {"gap": line.gap} for line in comparison.disagreements],
        "scores": {name: list(_scores(name, comparison, runs)) for name in comparison.scores},
    }
    return write_text(
        target, json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n", "--json"
    )


def _judge(run: JudgeRun) -> dict[str, Any]:
    facts = run.facts
    return {
        "name": run.name,
        "judge": facts.judge,
        "settings": dict(run.settings),
        "partial": facts.partial,
        "thresholds": facts.all_thresholds,
        "thresholds_from": facts.thresholds_from,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "uncounted": run.uncounted,
        "cost": run.cost,
        "cost_per_1000_rows": run.cost_per_1000,
        "currency": facts.currency,
        "paid": 0.0 if facts.is_proxy else facts.usage.cost_now,
        "seconds": facts.seconds,
        "calls": facts.usage.calls,
        "cached": facts.usage.cached,
        "failed": facts.usage.failed,
        "failures": dict(facts.usage.failures),
        "notes": list(facts.notes),
    }


def _plain(value: Any) -> Any:
    """Intervals as [low, high]."""
    if isinstance(value, Mapping):
        if value.keys() == {"low", "high"}:
            return [value["low"], value["high"]]
        return {str(name): _plain(each) for name, each in value.items()}
    return value


def _scores(name: str, comparison: JudgeComparison, runs: Runs) -> Any:
    pairs, bots = comparison.scores[name], runs[0].facts.bots
    for row, bot, a, b, human in zip(pairs.rows, pairs.bots, *pairs.columns, strict=True):
        numbers = {"a": a, "b": b, "human": human}
        yield {
            "row": row,
            "bot": "" if name == "toxicity" else bots[bot],
            **{key: None if math.isnan(number) else number for key, number in numbers.items()},
        }
