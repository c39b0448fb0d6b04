"""Context recall: how much of the reference stands in the chunks."""

from functools import lru_cache
from statistics import fmean
from typing import ClassVar

from rag_eval.metrics.base import Metric
from rag_eval.metrics.offline.grounding import Support, explain, support
from rag_eval.records import Case, Evidence, Score
from rag_eval.text import Reading, read, read_sentences

FOUND_FROM = 0.5
"""A sentence counts as found from this value on. It colours the evidence and never enters the score."""


class OfflineContextRecall(Metric):
    name: ClassVar[str] = "context_recall"
    explanation: ClassVar[str] = (
        "The mean over the reference's sentences of the share of their content words and adjacent word pairs "
        "that stand in the chunks, lowered for numbers and names that do not and for contradicted negations."
    )

    async def judge(self, case: Case) -> Score:
        return _score(self.name, case.reference or "", case.chunks or ())


@lru_cache(maxsize=64)  # the bots of a row often share reference and chunks
def _score(name: str, reference: str, chunks: tuple[str, ...]) -> Score:
    sentences = read_sentences(reference) or (read(reference),)
    evidence = [read(chunk) for chunk in chunks]
    found = [support(sentence, evidence) for sentence in sentences]
    value = fmean(one.value for one in found)
    return Score.scored(name, value, evidence=tuple(map(_evidence, sentences, found)))


def _evidence(sentence: Reading, found: Support) -> Evidence:
    is_found = found.value >= FOUND_FROM
    verdict = "found" if is_found else "missing"
    return Evidence("reference sentence", sentence.text, verdict, is_found, explain(sentence, found))
