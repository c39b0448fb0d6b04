"""Context precision: whether the useful chunks stand at the first ranks."""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import ClassVar, NamedTuple

from rag_eval.judge.calls import Call, gather, room_for
from rag_eval.metrics import ragas_prompts as prompts
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.case_verdicts import CaseVerdicts
from rag_eval.metrics.metric import NO_ANSWER, NO_CONTEXT, Metric, MetricInfo
from rag_eval.metrics.offline.brief import SHORT, has_no_answer, in_short
from rag_eval.metrics.offline.echo import without_echo, without_named_sources
from rag_eval.metrics.offline.scripts import count_words
from rag_eval.metrics.offline.wording import find_similar, query_stems
from rag_eval.records import Case, Evidence, FailureMode, Score
from rag_eval.texts.amounts import restated
from rag_eval.texts.words import Reading, has_words, read_all, read_claim, stems_of


class _ContextPrecision(Metric):
    """Average precision of the chunks' usefulness in rank order; 0 when no chunk is useful.

    A chunk is useful for arriving at the reference or, where the row has none, at the response.
    """

    name = "context_precision"

    def settle(self, case: Case) -> Score | None:
        if case.chunks is None:
            return Score.not_applicable(self.name, NO_CONTEXT)
        if not case.chunks:
            return Score.scored(self.name, 0.0, "empty context: nothing was retrieved")
        if case.reference is None and not case.has_response:
            return Score.not_applicable(
                self.name, "no ground truth and an empty response: nothing to judge by"
            )
        return None

    async def judge(self, case: Case) -> Score:
        answer = case.response if case.reference is None else case.reference
        chunks = case.chunks or ()
        verdicts = await gather(
            Call(
                task="context_precision.chunk",
                messages=prompts.usefulness_prompt(case.query, chunk, answer, case.history),
                reply_type=replies.ContextVerdict,
                max_tokens=512,
                room=room_for(),
            )
            for chunk in chunks
        )
        return _by_verdicts(case, [(bool(each.verdict), each.reason) for each in verdicts])


def _from_verdicts(case: Case, verdicts: CaseVerdicts) -> Score:
    numbers = range(1, len(case.chunks or ()) + 1)
    return _by_verdicts(case, [(number in verdicts.useful_chunks, "") for number in numbers])


def _by_verdicts(case: Case, verdicts: Sequence[tuple[bool, str]]) -> Score:
    """`verdicts` has for each chunk whether it is useful, and why."""
    evidence = tuple(
        Evidence("chunk", chunk, "useful" if is_useful else "not useful", is_useful, reason, rank=rank)
        for rank, (chunk, (is_useful, reason)) in enumerate(zip(case.chunks or (), verdicts, strict=True), 1)
    )
    reason = "judged against the response" if case.reference is None else ""
    value = average_precision([is_useful for is_useful, _ in verdicts])
    return Score.scored(_ContextPrecision.name, value, reason, evidence)


USEFUL_FROM = 0.39
"""A chunk is useful from this relevance on."""
_TARGET_WEIGHT = 0.75
_COSINE_WEIGHT = 0.5
_COSINE_SCALE = 1.5
"""A chunk says much beside what is sought, so that two thirds are a full likeness."""
_FEWEST_NEW_WORDS = 3
"""A sentence of the reference is sought on its own when it says at least so many words that the query does not."""


class _OfflineContextPrecision(_ContextPrecision):
    explanation: ClassVar[str] = (
        "Average precision over the ranks. A chunk is useful if it contains enough words of the best matching "
        "reference sentence (without a reference: of the response) and of the query, given its length."
    )

    async def judge(self, case: Case) -> Score:
        case = without_named_sources(case)
        target = case.reference or without_echo(case.response, case.query) or case.response
        chunks = case.chunks or ()
        if has_no_answer(case.reference, case.query, chunks):
            return Score.not_applicable(self.name, NO_ANSWER)
        return _score(self.name, case.query, in_short(target, case.query, chunks), chunks)


def chunk_relevance(query: str, target: str | None, chunks: Sequence[str]) -> list[float]:
    """0..1 per chunk: how much it helps to arrive at `target`; by the query's words alone without a target."""
    asked = query_stems(query)
    sought = _sought(target, asked) if target and has_words(target) else []
    query_words = _seek(asked, frozenset())
    whole = read_claim(target or "").whole
    wanted = asked | whole.stems
    readings = read_all(tuple(chunks))
    if target and len(whole.content) <= SHORT:
        missing = whole.stems.difference(*(chunk.stems for chunk in readings))
        if equal := restated(target, chunks, missing):
            readings = tuple(_with_amounts(chunk, target, equal) for chunk in readings)
    return [
        (1 - _COSINE_WEIGHT) * _held(chunk, query_words, sought) + _COSINE_WEIGHT * _likeness(chunk, wanted)
        for chunk in readings
    ]


def _with_amounts(chunk: Reading, target: str, missing: AbstractSet[str]) -> Reading:
    """With those missing stems of the target's amounts that the chunk writes in another way."""
    equal = restated(target, (chunk.text,), missing)
    return Reading(chunk.text, [*chunk.content, *sorted(equal)]) if equal else chunk


def average_precision(verdicts: Sequence[int]) -> float:
    """Σ P@k · v_k ÷ Σ v_k over the ranks k, exact; 0.0 when no verdict is 1.

    Source: Manning, Raghavan, Schütze: Introduction to Information Retrieval, 8.4.
    """
    found = 0
    total = 0.0
    for rank, verdict in enumerate(verdicts, 1):
        if verdict:
            found += 1
            total += found / rank
    return total / found if found else 0.0


@lru_cache(maxsize=2)  # the bots of a row often share query, reference and chunks
def _score(name: str, query: str, target: str | None, chunks: tuple[str, ...]) -> Score:
    relevance = chunk_relevance(query, target, chunks)
    useful = [value >= USEFUL_FROM for value in relevance]
    evidence = [
        Evidence(
            "chunk",
            chunk,
            "useful" if is_useful else "not useful",
            is_useful,
            f"relevance {value:.2f}",
            rank=rank,
        )
        for rank, (chunk, value, is_useful) in enumerate(zip(chunks, relevance, useful, strict=True), 1)
    ]
    return Score.scored(name, average_precision(useful), evidence=tuple(evidence))


class _Sought(NamedTuple):
    """Something that a useful chunk says."""

    words: AbstractSet[str]
    pairs: AbstractSet[tuple[str, str]]
    is_ascii: bool

    def share_in(self, stems: AbstractSet[str], pairs: AbstractSet[tuple[str, str]]) -> float:
        """0..1: how much of it is among the words and pairs of a chunk."""
        # Of other scripts than the plain one, endings matter more.
        is_plain, wanted = self.is_ascii, self.words
        words = len(wanted & stems) / len(wanted) if is_plain else find_similar(wanted, stems).share
        return (words + len(self.pairs & pairs) / len(self.pairs)) / 2 if self.pairs else words


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
    stems, pairs = chunk.stems, chunk.pairs
    asked_share = asked.share_in(stems, pairs) if asked.words else 0.0
    if not sought:
        return asked_share
    best = max([one.share_in(stems, pairs) for one in sought])
    return _TARGET_WEIGHT * best + (1 - _TARGET_WEIGHT) * asked_share


def _likeness(chunk: Reading, wanted: AbstractSet[str]) -> float:
    """Cosine (0..1) of the words of the chunk and of the words wanted, which a long chunk lowers, scaled."""
    if not wanted or not chunk.stems:
        return 0.0
    cosine = len(wanted & chunk.stems) / math.sqrt(len(wanted) * len(chunk.stems))
    return min(1.0, _COSINE_SCALE * cosine)


INFO = MetricInfo(
    name="context_precision",
    about="Whether relevant chunks rank above irrelevant ones, 0 to 1. "
    "Judged against the response if the row has no ground truth.",
    weight=0.075,
    threshold=0.3,
    offline_threshold=0.47,
    failure=FailureMode.RETRIEVAL_FAILURE,
    llm=_ContextPrecision,
    from_verdicts=_from_verdicts,
    offline=_OfflineContextPrecision,
)
