"""Context precision: whether the useful chunks stand at the first ranks."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import ClassVar, NamedTuple

from rag_eval.metrics.metric import Metric
from rag_eval.metrics.offline.scripts import count_words
from rag_eval.metrics.offline.wording import find_similar, query_stems
from rag_eval.records import Case, Evidence, Score
from rag_eval.texts.words import Reading, has_words, read_all, read_claim, stems_of

USEFUL_FROM = 0.39
"""A chunk is useful from this relevance on."""
_TARGET_WEIGHT = 0.75
_COSINE_WEIGHT = 0.5
_COSINE_SCALE = 1.5
"""A chunk says much beside what is sought, so that two thirds are a full likeness."""
_FEWEST_NEW_WORDS = 3
"""A sentence of the reference is sought on its own when it says at least so many words that the query does not."""


class OfflineContextPrecision(Metric):
    name: ClassVar[str] = "context_precision"
    explanation: ClassVar[str] = (
        "Average precision over the ranks, where a chunk is useful when it holds enough of the best matching "
        "reference sentence (of the response, without a reference) and of the query's words for its length."
    )

    async def judge(self, case: Case) -> Score:
        return _score(self.name, case.query, case.reference or case.response, case.chunks or ())


def chunk_relevance(query: str, target: str | None, chunks: Sequence[str]) -> list[float]:
    """0..1 per chunk: how much it helps to arrive at `target`; by the query's words alone without a target."""
    asked = query_stems(query)
    sought = _sought(target, asked) if target and has_words(target) else []
    query_words = _seek(asked, frozenset())
    wanted = asked | read_claim(target or "").whole.stems
    return [
        (1 - _COSINE_WEIGHT) * _held(chunk, query_words, sought) + _COSINE_WEIGHT * _likeness(chunk, wanted)
        for chunk in read_all(tuple(chunks))
    ]


def average_precision(useful: Sequence[bool]) -> float:
    """Mean over the useful ranks of the precision up to that rank; 0 when none is useful."""
    hits = 0
    total = 0.0
    for rank, is_useful in enumerate(useful, 1):
        if is_useful:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


@lru_cache(maxsize=2)  # the bots of a row often share query, reference and chunks
def _score(name: str, query: str, target: str, chunks: tuple[str, ...]) -> Score:
    relevance = chunk_relevance(query, target, chunks)
    useful = [value >= USEFUL_FROM for value in relevance]
    evidence = tuple(map(_evidence, range(1, len(chunks) + 1), chunks, relevance, useful))
    return Score.scored(name, average_precision(useful), evidence=evidence)


class _Sought(NamedTuple):
    """Something that a useful chunk says."""

    words: AbstractSet[str]
    pairs: AbstractSet[tuple[str, str]]
    is_ascii: bool

    def share_in(self, chunk: Reading) -> float:
        if self.is_ascii:
            words = len(self.words & chunk.stems) / len(self.words)
        else:  # endings matter more than in English
            words = find_similar(self.words, chunk.stems).share
        return (words + len(self.pairs & chunk.pairs) / len(self.pairs)) / 2 if self.pairs else words


def _sought(target: str, asked: AbstractSet[str]) -> list[_Sought]:
    """The whole target, and those of its sentences that say something of their own."""
    whole, sentences = read_claim(target)
    if not whole.stems:
        return [_seek(set(stems_of(target)), set())]
    many = sentences if len(sentences) > 1 else ()
    own = [one for one in many if count_words(one.stems - asked) >= _FEWEST_NEW_WORDS]
    return [_seek(reading.stems - asked or reading.stems, reading.pairs) for reading in (*own, whole)]


def _seek(words: AbstractSet[str], pairs: AbstractSet[tuple[str, str]]) -> _Sought:
    return _Sought(words, pairs, "".join(words).isascii())


def _held(chunk: Reading, asked: _Sought, sought: Sequence[_Sought]) -> float:
    """Share (0..1) of what is sought that the chunk holds, however much else it says."""
    asked_share = asked.share_in(chunk) if asked.words else 0.0
    if not sought:
        return asked_share
    best = max([one.share_in(chunk) for one in sought])
    return _TARGET_WEIGHT * best + (1 - _TARGET_WEIGHT) * asked_share


def _likeness(chunk: Reading, wanted: AbstractSet[str]) -> float:
    """Cosine (0..1) of the words of the chunk and of the words wanted, which a long chunk lowers, scaled."""
    if not wanted or not chunk.stems:
        return 0.0
    cosine = len(wanted & chunk.stems) / math.sqrt(len(wanted) * len(chunk.stems))
    return min(1.0, _COSINE_SCALE * cosine)


def _evidence(rank: int, chunk: str, relevance: float, useful: bool) -> Evidence:
    reason = f"relevance {relevance:.2f}"
    return Evidence("chunk", chunk, "useful" if useful else "not useful", useful, reason, rank=rank)
