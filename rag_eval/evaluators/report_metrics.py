"""Evaluators as metrics of a spreadsheet run: any of them, and the two that grade chunks."""

from collections.abc import Callable, Iterable
from operator import attrgetter

from rag_eval.evaluators.base import ContextEvaluation, Result
from rag_eval.evaluators.ready_made import (
    ChunkPrecision,
    ChunkRecallEvaluation,
    ChunkRelevance,
    ContextRecall,
)
from rag_eval.metrics.metric import Metric
from rag_eval.records import Case, Evidence, Score


def as_metric(
    evaluator: ContextEvaluation[Result],
    *,
    name: str,
    value: Callable[[Result], float | None] = attrgetter("score"),
    evidence: Callable[[Result, Case], Iterable[Evidence]] = lambda result, case: (),
    needs_context: bool = True,
) -> Metric:
    """A metric that calls `evaluator` with the query, response and chunks of a case.

    `value` turns the result into a number in 0..1, or into None if there is nothing to measure: the score is then not
    applicable. If the metric `needs_context`, a case without chunks is not applicable either, and costs no call.
    `evidence` turns the result into the items that the report lists.
    """

    class EvaluatorMetric(Metric):
        async def judge(self, case: Case) -> Score:
            if needs_context and not case.chunks:
                return Score.not_applicable(name, "there is no context to judge by")
            result = await evaluator.ask(
                case.query, case.response, case.chunks or (), task=name, history=case.history
            )
            measured = value(result)
            if measured is None:
                return Score.not_applicable(name, "there is nothing to measure")
            return Score.scored(name, measured, evidence=tuple(evidence(result, case)))

    EvaluatorMetric.name = name
    return EvaluatorMetric()


class AnswerCoverage(Metric):
    """Share of the relevant chunks whose information the response conveys.

    0 for an empty response. Not applicable without chunks, and when no chunk is relevant: a judge that calls
    everything irrelevant must not make a bot perfect.
    """

    name = "answer_coverage"

    async def judge(self, case: Case) -> Score:
        if not case.chunks:
            return Score.not_applicable(self.name, "there are no chunks that the response could cover")
        if not case.has_response:
            return Score.scored(self.name, 0.0, "empty response")
        result = await ContextRecall.ask(
            case.query, case.response, case.chunks, task=self.name, history=case.history
        )
        if not result.relevant_chunks:
            return Score.not_applicable(self.name, "no chunk is relevant to the query")
        evidence = tuple(_coverage(chunk, case.chunks) for chunk in result.evaluated_chunks)
        return Score.scored(self.name, result.score, evidence=evidence)


class ChunkRelevanceShare(Metric):
    """Share of the chunks that are relevant to the query. 0 for an empty context, as for context precision.

    The response is not shown to the judge, so that bots with the same chunks share one call.
    """

    name = "chunk_relevance"

    async def judge(self, case: Case) -> Score:
        if case.chunks is None:
            return Score.not_applicable(self.name, "the sheet has no context column for this bot")
        if not case.chunks:
            return Score.scored(self.name, 0.0, "empty context: nothing was retrieved")
        result = await ChunkPrecision.ask(case.query, None, case.chunks, task=self.name, history=case.history)
        evidence = tuple(_relevance(chunk, case.chunks) for chunk in result.graded_chunks)
        return Score.scored(self.name, result.score or 0.0, evidence=evidence)


def _coverage(found: ChunkRecallEvaluation, chunks: tuple[str, ...]) -> Evidence:
    text, rank = chunks[found.id_chunk], found.id_chunk + 1
    if not found.is_relevant:
        return Evidence("chunk", text, "not relevant", favourable=True, rank=rank)
    if found.is_included:
        return Evidence("chunk", text, "covered", favourable=True, rank=rank)
    return Evidence("chunk", text, "left out", favourable=False, reason=found.missing_info or "", rank=rank)


def _relevance(found: ChunkRelevance, chunks: tuple[str, ...]) -> Evidence:
    verdict = "relevant" if found.score else "not relevant"
    text, rank = chunks[found.id_chunk], found.id_chunk + 1
    return Evidence("chunk", text, verdict, found.score, found.reason, rank=rank)
