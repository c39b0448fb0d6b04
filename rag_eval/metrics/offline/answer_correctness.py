"""Answer correctness: how much the response says what the reference says."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from rag_eval.metrics.base import Metric
from rag_eval.metrics.offline.grounding import ground
from rag_eval.metrics.offline.wording import query_stems, similar_share
from rag_eval.records import Case, Evidence, Score
from rag_eval.text import Reading, quote, read_claim, stems_of

MOST_WORDS_OF_A_SHORT_REFERENCE = 8
"""Up to so many content words a reference is a name, date or phrase that the response may wrap in a sentence."""


class OfflineAnswerCorrectness(Metric):
    name: ClassVar[str] = "answer_correctness"
    explanation: ClassVar[str] = (
        "For a reference of at most 8 content words the share of them that the response holds; for a longer one "
        "the balance (F1) of how much of the reference stands in the response and the other way round."
    )

    async def judge(self, case: Case) -> Score:
        reference, response = read_claim(case.reference or "").whole, read_claim(case.response).whole
        asked = query_stems(case.query)
        if len(reference.content) <= MOST_WORDS_OF_A_SHORT_REFERENCE:
            return self._by_words(reference, response, asked)
        return self._by_balance(reference, response, asked)

    def _by_words(self, reference: Reading, response: Reading, asked: frozenset[str]) -> Score:
        wanted, given = reference.stems, response.stems
        if not wanted:
            wanted, given = set(stems_of(reference.text)), set(stems_of(response.text))
        if not wanted:
            return Score.not_applicable(self.name, "the ground truth holds no word")
        share, missing = similar_share(wanted - asked or wanted, given)
        return Score.scored(self.name, share, evidence=(_reference_evidence(reference, missing),))

    def _by_balance(self, reference: Reading, response: Reading, asked: frozenset[str]) -> Score:
        recall, missing, _ = ground(reference, (response,), asked)
        precision, extra, _ = ground(response, (reference,))
        both = precision + recall
        value = 2 * precision * recall / both if both else 0.0
        return Score.scored(
            self.name,
            value,
            evidence=(_reference_evidence(reference, missing), _response_evidence(response, extra)),
        )


def _reference_evidence(reference: Reading, missing: AbstractSet[str]) -> Evidence:
    reason = f"not in the response: {quote(reference, missing)}" if missing else ""
    return Evidence("reference", reference.text, "missing words" if missing else "found", not missing, reason)


def _response_evidence(response: Reading, extra: AbstractSet[str]) -> Evidence:
    reason = f"not in the reference: {quote(response, extra)}" if extra else ""
    return Evidence(
        "response", response.text, "more words" if extra else "in the reference", not extra, reason
    )
