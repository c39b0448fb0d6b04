"""Faithfulness: how much of the response stands in the chunks."""

from typing import ClassVar

from rag_eval.metrics.metric import Metric
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.metrics.offline.scripts import count_words
from rag_eval.metrics.offline.support import support
from rag_eval.records import Case, Score
from rag_eval.texts.words import has_words, read, read_claim

MOST_WORDS_OF_A_MERE_REFUSAL = 16
"""Content words; a longer one mostly says something of the matter as well."""


class OfflineFaithfulness(Metric):
    name: ClassVar[str] = "faithfulness"
    explanation: ClassVar[str] = (
        "The share of the response's content words (two thirds) and of its adjacent word pairs (a third) that "
        "occur in the chunks, lowered for numbers and names found neither there nor in the query and for "
        "negations of what the chunks say. A short refusal claims nothing: not applicable."
    )

    async def judge(self, case: Case) -> Score:
        if not has_words(case.response):
            return Score.not_applicable(self.name, "the response holds no word")
        if _only_declines(case.response):
            return Score.not_applicable(self.name, "the response declines to answer and claims nothing")
        found = support(case.response, case.chunks or (), stated=read(case.query).stems)
        evidence = tuple(one.evidence("sentence", "supported", "not supported") for one in found.sentences)
        return Score.scored(self.name, found.value, evidence=evidence)


def _only_declines(response: str) -> bool:
    claim = read_claim(response)
    if not claim.sentences or count_words(claim.whole.content) > MOST_WORDS_OF_A_MERE_REFUSAL:
        return False
    return all(map(is_refusal, claim.sentences))
