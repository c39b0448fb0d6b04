"""Faithfulness: how much of the response stands in the chunks."""

from collections.abc import Sequence
from typing import ClassVar

from rag_eval.metrics.base import Metric
from rag_eval.metrics.offline.grounding import ground, number_factor
from rag_eval.records import Case, Evidence, Score
from rag_eval.text import Reading, quote, read, read_sentences

SUPPORTED_FROM = 0.5
"""A sentence counts as supported from this score on. It colours the evidence and never enters the score."""


class OfflineFaithfulness(Metric):
    name: ClassVar[str] = "faithfulness"
    explanation: ClassVar[str] = (
        "The mean of two shares, of the response's content words and of its adjacent word pairs that stand in "
        "the chunks, lowered by up to half for numbers that stand in neither the chunks nor the query."
    )

    async def judge(self, case: Case) -> Score:
        sentences = read_sentences(case.response)
        if not sentences:
            return Score.not_applicable(self.name, "the response holds no word")
        chunks = [read(chunk) for chunk in case.chunks or ()]
        query = read(case.query)
        value, _ = _groundedness(read(case.response), chunks, query)
        evidence = tuple(_sentence_evidence(sentence, chunks, query) for sentence in sentences)
        return Score.scored(self.name, value, evidence=evidence)


def _groundedness(claim: Reading, chunks: Sequence[Reading], query: Reading) -> tuple[float, set[str]]:
    share, missing = ground(claim, chunks)
    return share * number_factor(claim, missing, query.stems), missing


def _sentence_evidence(sentence: Reading, chunks: Sequence[Reading], query: Reading) -> Evidence:
    value, missing = _groundedness(sentence, chunks, query)
    supported = value >= SUPPORTED_FROM
    reason = f"not in the chunks: {quote(sentence, missing)}" if missing else ""
    return Evidence(
        "sentence", sentence.text, "supported" if supported else "not supported", supported, reason
    )
