"""Answer relevancy: whether the response addresses the query."""

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import ClassVar

from rag_eval.metrics.metric import DECLINES, Metric
from rag_eval.metrics.offline.expected import expected_kind
from rag_eval.metrics.offline.refusal import is_refusal
from rag_eval.metrics.offline.scripts import count_words, is_pair
from rag_eval.metrics.offline.wording import find_similar, query_stems, raised
from rag_eval.records import Case, Evidence, Score
from rag_eval.texts.words import Reading, quote, read, read_claim, stems_of

MOST_WORDS_OF_A_SHORT_RESPONSE = 8
"""Up to so many content words a response is judged together with the chunk sentence that it comes from."""
WRONG_KIND_FACTOR = 0.5
"""What is left of the score when the query asks for a number, a date or a name, and the response has none."""
PAIRS_RAISED_BY = 0.5
"""Half of the pairs of characters reach from one word into the next, and those differ from text to text."""
_LEAST_SHARE_OF_SOURCE = 0.5
"""A chunk sentence is taken for the source of a short response that it holds so much of."""


class OfflineAnswerRelevancy(Metric):
    name: ClassVar[str] = "answer_relevancy"
    explanation: ClassVar[str] = (
        "The share of the query's content words that the response (or, when it is short, the chunk sentence it "
        "comes from) takes up, halved when the expected kind of answer is missing; 0 for a refusal or an echo."
    )

    async def judge(self, case: Case) -> Score:
        asked = query_stems(case.query)
        if not asked:
            return Score.not_applicable(self.name, "the query holds no word")
        response = read_claim(case.response).whole
        said = response.stems or set(stems_of(case.response))
        if settled := _worthless(response, said, case.query):
            return Score.scored(self.name, 0.0, settled)
        found = find_similar(asked, said)
        share, missing = found.share, found.missing
        if not case.query.isascii() and any(map(is_pair, asked)):
            share = raised(share, PAIRS_RAISED_BY)
        if share < 1 and case.chunks and count_words(said) <= MOST_WORDS_OF_A_SHORT_RESPONSE:
            share = max(share, _share_by_source(asked, said, case.chunks))
        kind = expected_kind(case.query)
        if kind is None or kind.is_given(case.response, case.query):
            return Score.scored(self.name, share, evidence=_evidence(case.query, missing))
        reason = f"the query asks for a {kind.name}, the response gives none"
        return Score.scored(self.name, share * WRONG_KIND_FACTOR, reason, _evidence(case.query, missing))


def _worthless(response: Reading, said: set[str], query: str) -> str:
    """Why the response cannot address any query, or empty."""
    if not said:
        return "the response holds no word"
    if is_refusal(response):
        return DECLINES
    known = read(query).stems if response.stems else set(stems_of(query))
    return "the response only repeats the query" if said <= known else ""


def _share_by_source(asked: AbstractSet[str], said: set[str], chunks: tuple[str, ...]) -> float:
    """Best share of the asked words in a chunk sentence, weighted with how much of the response it holds."""
    best = 0.0
    for sentence in _sentences(chunks):
        held = len(said & sentence.stems) / len(said)
        if held >= _LEAST_SHARE_OF_SOURCE:
            best = max(best, held * find_similar(asked, sentence.stems).share)
    return best


@lru_cache(maxsize=2)  # like `read_all`
def _sentences(chunks: tuple[str, ...]) -> list[Reading]:
    return [sentence for chunk in chunks for sentence in read_claim(chunk).sentences]


def _evidence(query: str, missing: AbstractSet[str]) -> tuple[Evidence, ...]:
    reason = f"not taken up: {quote(read(query), missing)}" if missing else ""
    verdict = "partly addressed" if missing else "addressed"
    return (Evidence("query", query, verdict, not missing, reason),)
