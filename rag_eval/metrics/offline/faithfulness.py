"""Faithfulness: how much of the response stands in the chunks."""

from typing import ClassVar

from rag_eval.metrics.base import Metric
from rag_eval.metrics.offline.grounding import Support, explain, support
from rag_eval.records import Case, Evidence, Score
from rag_eval.text import Reading, read, read_sentences

SUPPORTED_FROM = 0.5
"""A sentence counts as supported from this value on. It colours the evidence and never enters the score."""


class OfflineFaithfulness(Metric):
    name: ClassVar[str] = "faithfulness"
    explanation: ClassVar[str] = (
        "The mean of two shares, of the response's content words and of its adjacent word pairs that stand in "
        "the chunks, lowered for numbers and names found neither there nor in the query and for contradicted "
        "negations."
    )

    async def judge(self, case: Case) -> Score:
        chunks = [read(chunk) for chunk in case.chunks or ()]
        stated = read(case.query).stems
        response = read(case.response)
        sentences = read_sentences(case.response) or (response,)
        value = support(response, chunks, stated, len(sentences)).value
        evidence = tuple(_evidence(sentence, support(sentence, chunks, stated)) for sentence in sentences)
        return Score.scored(self.name, value, evidence=evidence)


def _evidence(sentence: Reading, found: Support) -> Evidence:
    is_supported = found.value >= SUPPORTED_FROM
    verdict = "supported" if is_supported else "not supported"
    return Evidence("sentence", sentence.text, verdict, is_supported, explain(sentence, found))
