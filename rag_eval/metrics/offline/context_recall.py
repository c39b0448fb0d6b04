"""Context recall: how much of the reference stands in the chunks."""

from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar

from rag_eval.metrics.base import Metric
from rag_eval.metrics.offline.grounding import ground, number_factor
from rag_eval.records import Case, Evidence, Score
from rag_eval.text import Reading, quote, read, read_sentences

FOUND_FROM = 0.5
"""A sentence counts as found from this score on. It colours the evidence and never enters the score."""


class OfflineContextRecall(Metric):
    name: ClassVar[str] = "context_recall"
    explanation: ClassVar[str] = (
        "The mean over the reference's sentences of the share of their content words and adjacent word pairs "
        "that stand in the chunks, lowered by up to half for numbers that do not."
    )

    async def judge(self, case: Case) -> Score:
        sentences = read_sentences(case.reference or "")
        if not sentences:
            return Score.not_applicable(self.name, "the ground truth holds no word")
        chunks = [read(chunk) for chunk in case.chunks or ()]
        judged = [_found(sentence, chunks) for sentence in sentences]
        return Score.scored(
            self.name, fmean(value for value, _ in judged), evidence=tuple(e for _, e in judged)
        )


def _found(sentence: Reading, chunks: Sequence[Reading]) -> tuple[float, Evidence]:
    share, missing = ground(sentence, chunks)
    value = share * number_factor(sentence, missing)
    found = value >= FOUND_FROM
    reason = f"not in the chunks: {quote(sentence, missing)}" if missing else ""
    return value, Evidence(
        "reference sentence", sentence.text, "found" if found else "missing", found, reason
    )
