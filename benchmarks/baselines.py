"""Well-known ways to compare a text with evidence, computed here so that the judge has something to beat.

Every baseline is a function of a claim and its evidence; higher means more alike. `Corpus` gives those that
need to know how rare a word is.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable

_TOKEN = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def k_precision(claim: str, evidence: str) -> float:
    """Share of the claim's tokens that occur in the evidence."""
    known = set(tokens(evidence))
    own = tokens(claim)
    return sum(token in known for token in own) / len(own) if own else 0.0


def token_f1(claim: str, evidence: str) -> float:
    """Harmonic mean of token precision and recall, with counts."""
    own, other = Counter(tokens(claim)), Counter(tokens(evidence))
    return _f1((own & other).total(), own.total(), other.total())


def rouge_l(claim: str, evidence: str) -> float:
    """F1 of the longest common subsequence of tokens."""
    own, other = tokens(claim), tokens(evidence)
    return _f1(_common_subsequence(own, other), len(own), len(other))


def chrf(claim: str, evidence: str, longest: int = 6) -> float:
    """Mean F1 of character n-grams, n from 1 to 6, white space left out."""
    own, other = "".join(claim.lower().split()), "".join(evidence.lower().split())
    scores = []
    for n in range(1, longest + 1):
        mine, theirs = _ngrams(own, n), _ngrams(other, n)
        scores.append(_f1((mine & theirs).total(), mine.total(), theirs.total()))
    return sum(scores) / longest


class Corpus:
    """Word rarity over a collection of texts, for TF-IDF and BM25."""

    def __init__(self, texts: Iterable[str]) -> None:
        documents = [set(tokens(text)) for text in texts]
        self._count = len(documents)
        self._frequency = Counter(token for document in documents for token in document)
        self._mean_length = sum(map(len, documents)) / max(1, self._count)

    def tf_idf(self, claim: str, evidence: str) -> float:
        """Cosine of the two TF-IDF vectors."""
        own, other = self._vector(claim), self._vector(evidence)
        norms = math.hypot(*own.values()) * math.hypot(*other.values())
        return sum(weight * other.get(token, 0.0) for token, weight in own.items()) / norms if norms else 0.0

    def bm25(self, claim: str, evidence: str, k: float = 1.2, b: float = 0.75) -> float:
        """BM25 of the claim as a query for the evidence."""
        found = Counter(tokens(evidence))
        length = k * (1 - b + b * found.total() / self._mean_length)
        return sum(
            self._idf(token) * found[token] * (k + 1) / (found[token] + length)
            for token in set(tokens(claim))
        )

    def _vector(self, text: str) -> dict[str, float]:
        return {token: count * self._idf(token) for token, count in Counter(tokens(text)).items()}

    def _idf(self, token: str) -> float:
        frequency = self._frequency[token]
        return math.log(1 + (self._count - frequency + 0.5) / (frequency + 0.5))


def _f1(common: int, own: int, other: int) -> float:
    return 2 * common / (own + other) if common else 0.0


def _ngrams(text: str, n: int) -> Counter[str]:
    return Counter(text[place : place + n] for place in range(len(text) - n + 1))


def _common_subsequence(own: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence, one bit a token of `own` (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for place, token in enumerate(own):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(own)) - 1
    unmatched = full
    for token in other:
        matched = unmatched & places.get(token, 0)
        unmatched = (unmatched + matched | unmatched - matched) & full
    return len(own) - unmatched.bit_count()
