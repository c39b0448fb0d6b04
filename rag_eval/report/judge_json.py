"""The comparison of two judges as JSON: every number that the workbook has, and the scores of every case."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_eval.report.judge_tables import Runs
from rag_eval.results.judge_comparison import JudgeComparison, JudgeRun, MeasureComparison, headline
from rag_eval.results.paired import BANDS
from rag_eval.store.replacement import write_text

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
        "measures": {line.measure: _measure(line) for line in comparison.measures},
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
        "thresholds": {**facts.thresholds, "toxicity": facts.toxicity_threshold},
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


def _measure(line: MeasureComparison) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(asdict(line))
    return plain


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
