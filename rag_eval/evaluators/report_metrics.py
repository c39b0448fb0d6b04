"""The chunk-graded evaluators as metrics of a spreadsheet run, with its rules for what is not applicable."""

from rag_eval.evaluators.chunk_precision import ChunkPrecision, ChunkRelevance
from rag_eval.evaluators.context_recall import ChunkRecallEvaluation, ContextRecall
from rag_eval.metrics.metric import Metric
from rag_eval.records import Case, Evidence, Score


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
