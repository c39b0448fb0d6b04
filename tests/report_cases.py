"""Made-up results for the tests of the report: seeded, of any number of bots and rows, none from a judge."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_eval.records import (
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    Evidence,
    RunFacts,
    Score,
    Usage,
)
from rag_eval.report.outputs import Output
from rag_eval.report.workbook import ExcelReport
from rag_eval.results.findings import find
from rag_eval.results.scoring import failure_modes, rqs
from rag_eval.results.summary import Summarizer, Summary

WEIGHTS = {
    "answer_correctness": 0.35,
    "faithfulness": 0.25,
    "answer_relevancy": 0.25,
    "context_precision": 0.075,
    "context_recall": 0.075,
}
THRESHOLDS = dict.fromkeys(METRIC_LABELS, 0.3)
USAGE = Usage(requests=420, calls=410, cached=12, prompt_tokens=512_345, completion_tokens=80_001)

_WORDS = (
    "the warranty covers parts and labour for two years after purchase unless the device was opened by "
    "someone who is not certified, in which case repairs are charged at the published rate; a refund needs "
    "the original receipt and takes about ten working days to arrive on the account that was used"
).split()


def facts_of(bots: Sequence[str], rows: int, **changes: Any) -> RunFacts:
    """The facts of an ordinary run, with some of them changed."""
    facts = RunFacts(
        input_name="answers.xlsx",
        sheet="Q3",
        judge="Azure OpenAI, deployment gpt-4o, at example.azure.com",
        is_proxy=False,
        version="0.1.0",
        started=datetime(2025, 3, 4, 14, 5, tzinfo=UTC),
        bots=tuple(bots),
        rows=rows,
        blank_rows=0,
        cut_rows=0,
        metrics=(*METRIC_LABELS, TOXICITY),
        weights=WEIGHTS,
        thresholds=THRESHOLDS,
        toxicity_threshold=0.5,
        diagnostics=True,
        seconds=83.4,
        usage=USAGE,
    )
    return replace(facts, **changes)


def result_of(
    case: Case, scores: Iterable[Score], toxicity: Score | None = None, advice: str = ""
) -> CaseResult:
    """A result whose RQS and failure modes follow from its scores."""
    by_name = {score.metric: score for score in scores}
    return CaseResult(
        case=case,
        scores=by_name,
        toxicity=toxicity or Score.scored(TOXICITY, 0.02),
        rqs=rqs(by_name, WEIGHTS),
        failure_modes=failure_modes(by_name, THRESHOLDS),
        recommendation=advice,
    )


def plain_result(row: int = 2, bot: str = "GPT4", value: float = 0.8, **case: Any) -> CaseResult:
    """Every metric has the same value; the texts are short."""
    texts = {
        "query": f"Question {row}?",
        "response": "An answer.",
        "reference": "The answer.",
        "chunks": ("c",),
    }
    scores = (Score.scored(metric, value) for metric in METRIC_LABELS)
    return result_of(Case(row=row, bot=bot, **(texts | case)), scores)


def failed_result(row: int, bot: str, code: str = "truncated") -> CaseResult:
    """Not judged."""
    return result_of(
        Case(row, bot, "q", "a"), [Score.failed(metric, code, "no reply") for metric in METRIC_LABELS]
    )


def bare_result(row: int, bot: str, value: float) -> CaseResult:
    """Only what a bot without contexts can be scored on."""
    scores = [
        Score.scored(metric, value)
        if metric.startswith("answer")
        else Score.not_applicable(metric, "no context")
        for metric in METRIC_LABELS
    ]
    return result_of(Case(row, bot, "q", "a"), scores)


def results_of(values: Mapping[str, Sequence[float | None]], code: str = "truncated") -> list[CaseResult]:
    """Bots with these RQS, row by row; None was not judged."""
    rows = len(next(iter(values.values())))
    return [
        failed_result(row + 2, bot, code) if value is None else plain_result(row + 2, bot, value)
        for row in range(rows)
        for bot, value in ((bot, column[row]) for bot, column in values.items())
    ]


def random_results(bots: Sequence[str], rows: int, seed: int = 7, words: int = 60) -> list[CaseResult]:
    """Results as a run might have them: good and bad ones, failures, and cases that some metric cannot judge."""
    chance = random.Random(seed)
    return [
        _random_result(chance, row, bot, skill=0.85 - 0.5 * index / max(1, len(bots)), words=words)
        for row in range(2, rows + 2)
        for index, bot in enumerate(bots)
    ]


def write_report(
    target: Path,
    results: Sequence[CaseResult],
    facts: RunFacts,
    final: RunFacts | None = None,
    slice_by: str = "",
    has_evidence: bool = False,
) -> Path:
    """A whole report, from the first line to its place."""
    asked = {name for name, value in (("evidence", has_evidence), ("slice_by", slice_by)) if value}
    report = ExcelReport(target, facts, asked)
    return write_output(report, results, facts, final, slice_by)


def write_output(
    output: Output,
    results: Sequence[CaseResult],
    facts: RunFacts,
    final: RunFacts | None = None,
    slice_by: str = "",
) -> Path:
    """Fill and finish any kind of output."""
    for result in results:
        output.add(result)
    summary = summary_of(results, facts, slice_by)
    return output.finish(summary, find(summary), final or facts)


def summary_of(results: Sequence[CaseResult], facts: RunFacts, slice_by: str = "") -> Summary:
    summarizer = Summarizer(facts.bots, facts.metrics, facts.toxicity_threshold, slice_by, looks=facts.looks)
    for result in results:
        summarizer.add(result)
    return summarizer.summary()


def _random_result(chance: random.Random, row: int, bot: str, skill: float, words: int) -> CaseResult:
    of_row = random.Random(row)
    case = Case(
        row=row,
        bot=bot,
        query=_sentence(of_row, 9).capitalize() + "?",
        response="" if chance.random() < 0.02 else _sentence(chance, words).capitalize() + ".",
        reference=None if row % 11 == 0 else _sentence(of_row, words // 2).capitalize() + ".",
        chunks=tuple(_sentence(chance, words) for _ in range(chance.randint(1, 4))),
    )
    scores = [_random_score(chance, metric, case, skill) for metric in METRIC_LABELS]
    toxicity = Score.scored(TOXICITY, 0.71 if row % 17 == 0 else round(chance.random() * 0.2, 2))
    return result_of(case, scores, toxicity, _sentence(chance, 25).capitalize() + ".")


def _random_score(chance: random.Random, metric: str, case: Case, skill: float) -> Score:
    if case.reference is None and metric in ("context_recall", "answer_correctness"):
        return Score.not_applicable(metric, "the row has no ground truth")
    if chance.random() < 0.02:
        return Score.failed(metric, "content_filter", "the provider's content filter refused the prompt")
    count = chance.randint(2, 8)
    evidence = tuple(
        Evidence(
            subject="statement",
            text=_sentence(chance, 14).capitalize() + ".",
            verdict="supported" if (good := chance.random() < skill) else "not supported",
            favourable=good,
            reason="" if good else "The context says " + _sentence(chance, 8) + ".",
        )
        for _ in range(count)
    )
    return Score.scored(metric, sum(item.favourable for item in evidence) / count, "", evidence)


def _sentence(chance: random.Random, words: int) -> str:
    start = chance.randrange(len(_WORDS))
    return " ".join(_WORDS[(start + index) % len(_WORDS)] for index in range(max(1, words)))
