"""Context recall: how much of the reference stands in the chunks."""

from functools import lru_cache
from statistics import fmean
from typing import ClassVar

from rag_eval.metrics.metric import Metric
from rag_eval.metrics.offline.support import support
from rag_eval.records import Case, Score
from rag_eval.texts.words import has_words


class OfflineContextRecall(Metric):
    name: ClassVar[str] = "context_recall"
    explanation: ClassVar[str] = (
        "The mean over the reference's sentences of the share of their content words (two thirds) and adjacent "
        "word pairs (a third) that occur in the chunks, lowered for numbers and names that do not and for "
        "negations of what the chunks say."
    )

    async def judge(self, case: Case) -> Score:
        return _score(self.name, case.reference or "", case.chunks or ())


@lru_cache(maxsize=2)  # the bots of a row often share reference and chunks
def _score(name: str, reference: str, chunks: tuple[str, ...]) -> Score:
    if not has_words(reference):
        return Score.not_applicable(name, "the ground truth holds no word")
    sentences = support(reference, chunks).sentences
    evidence = tuple(one.evidence("reference sentence", "found", "missing") for one in sentences)
    # By length, so that a sentence cut in two, or a word behind the last full stop, changes little.
    lengths = [len(one.sentence.content) or 1 for one in sentences]
    return Score.scored(name, fmean((one.value for one in sentences), lengths), evidence=evidence)
