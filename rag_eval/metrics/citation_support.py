"""Citations: whether the chunks that a response cites support what it says, and whether it cites what it says.

Two measures come from the same findings. Precision is the share of citations whose chunk supports the statement, recall
the share of supported statements with a citation that supports them. They enter neither RQS nor the failure modes.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from math import fsum
from typing import NamedTuple, Self

from pydantic import ValidationInfo, model_validator

from rag_eval.judge.calls import EARLIER_TURNS, Call, Message, room_for, with_history
from rag_eval.judge.replies import A_REASON, incomplete
from rag_eval.metrics.metric import NO_CONTEXT, Metric
from rag_eval.metrics.numbered import DATA_ONLY
from rag_eval.metrics.offline.support import SUPPORTED_FROM, Support, own_shares, support
from rag_eval.metrics.omissions import claims_among, claims_nothing
from rag_eval.metrics.reply_types import StrictReply, Verdict
from rag_eval.records import (
    CITATION_LABELS,
    NO_CITATIONS,
    NO_SUCH_CHUNK,
    WRONG_CHUNK,
    Case,
    Evidence,
    Score,
)
from rag_eval.texts.citations import CitingSentence, Habit, citing_sentences
from rag_eval.texts.words import has_words, read

PRECISION, RECALL = CITATION_LABELS


def citation_metrics(habits: Mapping[str, Habit], *, is_proxy: bool) -> tuple[Metric, ...]:
    """Precision and recall for the bots that cite, by their habits; none if no bot does."""
    citing = {bot: habit for bot, habit in habits.items() if habit.cites}
    find = _compared if is_proxy else _asked
    return tuple(_Citations(name, citing, find) for name in CITATION_LABELS) if citing else ()


class _Found(NamedTuple):
    """What is known of one statement: a sentence that cites, or claims something."""

    sentence: CitingSentence
    values: Mapping[int, float]
    """By the rank of each cited chunk, how well it supports what it is cited for: 0..1."""
    covered: float
    """How well all cited chunks together support the sentence: 0..1."""
    best: float
    """How well the sentence is supported at all, by cited or other chunks: 0..1."""
    other: int
    """Rank of a chunk that supports the sentence and is not cited in it; 0 if none was found."""
    reason: str = ""

    @property
    def is_misled(self) -> bool:
        """The cited chunks do not support the sentence, and another one does."""
        return bool(self.values) and self.covered < SUPPORTED_FROM and self.other > 0


_Find = Callable[[Case, Sequence[CitingSentence]], Awaitable[Sequence[_Found]]]
"""What is known of each of the sentences, of which one or more cite a chunk that exists."""


class _Citations(Metric):
    """Citation precision or recall."""

    needs_every_chunk = True

    def __init__(self, name: str, habits: Mapping[str, Habit], find: _Find) -> None:
        """`habits` are those of the bots that cite; other bots are not applicable."""
        self.name = name
        self._habits = habits
        self._find = find

    def settle(self, case: Case) -> Score | None:
        reason = self._why_not(case)
        if reason:
            return Score.not_applicable(self.name, reason)
        statements = self._statements(case)
        cited = [each for each in statements if each.citations]
        if not cited:
            return self._without_citations(case, statements)
        if any(each.chunks for each in cited):
            return None
        if self.name == RECALL:
            missing = (Evidence("statement", each.text, "not cited", favourable=False) for each in statements)
            return Score.scored(RECALL, 0.0, "no citation names a chunk that exists", tuple(missing))
        return Score.scored(PRECISION, 0.0, evidence=_no_such_chunk(case, cited))

    def _why_not(self, case: Case) -> str:
        if case.bot not in self._habits:
            return "this bot does not cite chunks by number"
        if not case.has_response:
            return "empty response: there is nothing to cite"
        if case.chunks is None:
            return NO_CONTEXT
        return "the context is one chunk, so its parts cannot be cited" if len(case.chunks) == 1 else ""

    def _without_citations(self, case: Case, statements: Sequence[CitingSentence]) -> Score:
        if self.name == PRECISION:
            return Score.not_applicable(self.name, "the response cites nothing")
        if not statements or claims_nothing(case.response):
            return Score.not_applicable(self.name, "the response makes no statement")
        if not self._habits[case.bot].is_usual:
            return Score.not_applicable(self.name, "the response cites nothing, and this bot rarely does")
        missing = (Evidence("statement", each.text, NO_CITATIONS, favourable=False) for each in statements)
        return Score.scored(self.name, 0.0, NO_CITATIONS, tuple(missing))

    async def judge(self, case: Case) -> Score:
        statements = self._statements(case)
        found = await self._find(case, statements)
        return _precision(case, found) if self.name == PRECISION else _recall(found)

    def _statements(self, case: Case) -> list[CitingSentence]:
        habit = self._habits[case.bot]
        return _statements(case.response, case.chunks or (), habit.base, habit.leads)


@lru_cache(maxsize=2)  # both measures read them, before and after the call
def _statements(response: str, chunks: tuple[str, ...], base: int, leads: bool) -> list[CitingSentence]:
    """The sentences that cite or claim something."""
    found = citing_sentences(response, chunks, base, leads=leads)
    every = [each for each in found if has_words(each.text)]
    claiming = set(claims_among([each.text for each in every]))
    return [each for each in every if each.citations or each.text in claiming]


# Scores


def _precision(case: Case, found: Sequence[_Found]) -> Score:
    values = [
        each.values[citation.chunk] if citation.chunk else 0.0
        for each in found
        for citation in each.sentence.citations
    ]
    evidence = tuple(
        _citation_evidence(case, each, number, rank)
        for each in found
        for number, rank, _ in each.sentence.citations
    )
    return Score.scored(PRECISION, fsum(values) / len(values), evidence=evidence)


def _citation_evidence(case: Case, found: _Found, number: int, rank: int) -> Evidence:
    text = found.sentence.text
    if not rank:
        return _no_chunk(case, text, number)
    if found.values[rank] > _PARTLY:
        return Evidence("citation", text, "supported", favourable=True, rank=rank)
    if found.values[rank] >= SUPPORTED_FROM:
        return Evidence(
            "citation", text, "supported in part", favourable=True, reason=found.reason, rank=rank
        )
    reason = found.reason
    if found.is_misled:
        reason = f"cites chunk {rank}, but chunk {found.other} supports it" + (
            f": {reason}" if reason else ""
        )
    verdict = WRONG_CHUNK if found.is_misled else "not supported"
    return Evidence("citation", text, verdict, favourable=False, reason=reason, rank=rank)


def _no_such_chunk(case: Case, cited: Sequence[CitingSentence]) -> tuple[Evidence, ...]:
    return tuple(_no_chunk(case, each.text, citation.number) for each in cited for citation in each.citations)


def _no_chunk(case: Case, text: str, number: int) -> Evidence:
    reason = f"cites [{number}], but there are {len(case.chunks or ()) or 'no'} chunks"
    return Evidence("citation", text, NO_SUCH_CHUNK, favourable=False, reason=reason)


def _recall(found: Sequence[_Found]) -> Score:
    supported = [each for each in found if each.best >= SUPPORTED_FROM]
    if not supported:
        return Score.not_applicable(RECALL, "no statement is supported, so no citation could support one")
    value = fsum(min(each.covered, each.best) for each in supported) / fsum(each.best for each in supported)
    return Score.scored(RECALL, min(1.0, value), evidence=tuple(map(_statement_evidence, supported)))


def _statement_evidence(found: _Found) -> Evidence:
    if found.covered >= SUPPORTED_FROM:
        rank = max(found.values, key=found.values.__getitem__)
        return Evidence(
            "statement", found.sentence.text, "supported by its citation", favourable=True, rank=rank
        )
    verdict = "supporting chunk not cited" if found.values else "not cited"
    return Evidence("statement", found.sentence.text, verdict, favourable=False, rank=found.other or None)


# By words


async def _compared(case: Case, statements: Sequence[CitingSentence]) -> Sequence[_Found]:
    return _compare(case.query, case.chunks or (), tuple(statements))


@lru_cache(maxsize=2)
def _compare(query: str, chunks: tuple[str, ...], statements: tuple[CitingSentence, ...]) -> Sequence[_Found]:
    stated = frozenset(read(query).stems)

    def by(text: str, ranks: Sequence[int]) -> Support:
        return support(text, tuple(chunks[rank - 1] for rank in ranks), stated=stated)

    # Chunk by chunk, so that each is taken apart once.
    alone = [[by(each.text, [rank]) for each in statements] for rank in range(1, len(chunks) + 1)]
    found = []
    for place, each in enumerate(statements):
        by_rank = {rank: supports[place] for rank, supports in enumerate(alone, 1)}
        covered = _together(each.text, {rank: by_rank[rank] for rank in each.chunks}, by)
        values: dict[int, float] = {}
        for statement, ranks in _cited_for(each).items():
            if statement == each.text or len(read(statement).stems) < _LEAST:
                values |= _values({rank: by_rank[rank] for rank in ranks}, covered)
            else:
                own = {rank: by(statement, [rank]) for rank in ranks}
                values |= _values(own, _together(statement, own, by))
        others = {rank: own.value for rank, own in by_rank.items() if rank not in each.chunks}
        other = max(others, key=others.__getitem__, default=0)
        is_support = bool(other) and others[other] >= SUPPORTED_FROM
        best = max(covered, *(own.value for own in by_rank.values()))
        found.append(_Found(each, values, covered, best, other if is_support else 0))
    return found


def _cited_for(sentence: CitingSentence) -> Mapping[str, Sequence[int]]:
    """The ranks of the chunks that each part of the sentence cites."""
    ranks: dict[str, list[int]] = {}
    for each in sentence.citations:
        if each.chunk:
            ranks.setdefault(each.statement, []).append(each.chunk)
    return ranks


def _together(
    statement: str, alone: Mapping[int, Support], by: Callable[[str, Sequence[int]], Support]
) -> float:
    """How well all the chunks that are cited for a statement support it; 0 if there are none."""
    if len(alone) > 1:
        return by(statement, list(alone)).value
    return max((each.value for each in alone.values()), default=0.0)


def _values(alone: Mapping[int, Support], together: float) -> dict[int, float]:
    """How well each of the chunks that are cited for one statement supports it: by itself, or as a part of them all.

    If all together support the statement, a chunk counts as much as they do, provided that what only this chunk has of
    it is at least half of an equal share; with less, it counts in proportion.
    """
    values = {rank: each.value for rank, each in alone.items()}
    if len(values) == 1 or together < SUPPORTED_FROM:
        return values
    own = own_shares(list(alone.values()))
    return {
        rank: max(value, min(together, _FULL * len(values) * share))
        for (rank, value), share in zip(values.items(), own, strict=True)
    }


_LEAST = 3
"""Content words of a part of a sentence that can be compared by itself."""
_FULL = 2
"""An equal share of a statement among its chunks, over the share from which on a chunk counts fully."""


# By an LLM judge


class CitedChunk(StrictReply):
    chunk: int
    supports: Verdict


class SentenceCitations(StrictReply):
    sentence: int
    cited: list[CitedChunk]
    together: Verdict
    other: int
    reason: str


class CitationVerdicts(StrictReply):
    sentences: list[SentenceCitations]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        cites: Mapping[int, Sequence[int]] = about.get("cites") or {1: (1,)}  # type: ignore[assignment]
        return cls(
            sentences=[
                SentenceCitations(
                    sentence=number,
                    cited=[CitedChunk(chunk=rank, supports=0) for rank in ranks],
                    together=0,
                    other=0,
                    reason=A_REASON,
                )
                for number, ranks in cites.items()
            ]
        )

    @model_validator(mode="after")
    def _agrees_with_the_case(self, info: ValidationInfo) -> Self:
        if info.context is not None:
            _check(self.sentences, info.context["cites"], info.context["chunks"])
        return self


def _check(entries: Sequence[SentenceCitations], cites: Mapping[int, Sequence[int]], chunks: int) -> None:
    """Raises ValueError for a reply that leaves out or invents something, or contradicts itself.

    A judge may write an entry for each citation of a sentence.
    """
    for each in entries:
        if each.sentence not in cites:
            raise ValueError(
                f"there is no sentence {each.sentence}; they are numbered from 1 to {len(cites)}"
            )
        for rank in (each.other, *(cited.chunk for cited in each.cited)):
            if not 0 <= rank <= chunks:
                raise ValueError(f"there is no chunk {rank}; they are numbered from 1 to {chunks}")
    for number, ranks in cites.items():
        own = [each for each in entries if each.sentence == number]
        if not own:
            raise incomplete(f"there is no entry for sentence {number}")
        verdicts = {(cited.chunk, cited.supports) for each in own for cited in each.cited}
        judged = {rank for rank, _ in verdicts}
        if missing := [rank for rank in ranks if rank not in judged]:
            raise incomplete(f"sentence {number} cites chunk {missing[0]}, on which there is no verdict")
        if len(verdicts) > len(judged) or any((each.other, 0) in verdicts for each in own):
            raise incomplete(f"a chunk has two verdicts on sentence {number}")
        if ranks and any(each.together for each in own) and not any(supports for _, supports in verdicts):
            raise incomplete(f"no chunk supports sentence {number}, but all together do")


async def _asked(case: Case, statements: Sequence[CitingSentence]) -> Sequence[_Found]:
    reply = await _call(case, statements)
    return [
        _judged(each, [entry for entry in reply.sentences if entry.sentence == number])
        for number, each in enumerate(statements, 1)
    ]


def _judged(sentence: CitingSentence, entries: Sequence[SentenceCitations]) -> _Found:
    verdicts = {cited.chunk: float(cited.supports) for entry in entries for cited in entry.cited}
    supporting = [rank for rank, supports in verdicts.items() if supports]
    supporting += [entry.other for entry in entries if entry.other]
    other = next((rank for rank in supporting if rank not in sentence.chunks), 0)
    is_whole = any(entry.together for entry in entries)
    covered = max((verdicts[rank] for rank in sentence.chunks), default=0.0) * (1.0 if is_whole else _PARTLY)
    values = {
        each.chunk: verdicts[each.chunk]
        * (_PARTLY if each.statement == sentence.text and not is_whole else 1.0)
        for each in sentence.citations
        if each.chunk
    }
    reason = "; ".join(dict.fromkeys(entry.reason for entry in entries if entry.reason.strip()))
    return _Found(sentence, values, covered, max(covered, float(other > 0)), other, reason)


_PARTLY = 0.5
"""What a chunk counts that supports a part of a sentence, if the cited chunks leave another part unsupported."""


def _call(case: Case, statements: Sequence[CitingSentence]) -> Call[CitationVerdicts]:
    """One for both measures: the scheduler makes equal calls once."""
    document = with_history(
        case,
        {
            "query": case.query,
            "chunks": {str(rank): chunk for rank, chunk in enumerate(case.chunks or (), 1)},
            "response": {str(number): each.marked for number, each in enumerate(statements, 1)},
        },
    )
    instructions = f"{_INSTRUCTIONS}\n{EARLIER_TURNS}" if case.history else _INSTRUCTIONS
    return Call(
        task="citations.verdicts",
        messages=(
            Message("system", instructions),
            Message("user", json.dumps(document, ensure_ascii=False)),
        ),
        reply_type=CitationVerdicts,
        agrees_with={
            "cites": {number: each.chunks for number, each in enumerate(statements, 1)},
            "chunks": len(case.chunks or ()),
        },
        max_tokens=4096,
        room=room_for(each.text for each in statements)
        + _A_CITATION * sum(len(each.chunks) for each in statements),
        numbered={
            "sentence": len(statements),
            "chunk": len(case.chunks or ()),
            "other": len(case.chunks or ()),
        },
    )


_A_CITATION = 16
"""Tokens of a verdict on it."""
_INSTRUCTIONS = f"""\
You check the citations in a chatbot's response by the texts of the user message only, not by what you know.
{DATA_ONLY}
The sentences of the response are numbered. [n] in a sentence cites chunk n for the words before it, \
or for those after it if it begins the sentence.
Reply with a JSON object:
{{"sentences": [{{"sentence": number, "cited": [{{"chunk": number, "supports": 0 or 1}}, ...], \
"together": 0 or 1, "other": number, "reason": text}}, ...]}}
One entry for each sentence, also for one without citations. Leave out no sentence and no citation.
"cited": one entry for each chunk that the sentence cites; "supports": 1 if this chunk says what it is cited for, or a \
part of it that the sentence needs; otherwise 0. Empty if the sentence cites nothing.
"together": 1 if the cited chunks together say everything that the sentence claims; 0 if they leave a part of it \
unsupported, or if the sentence cites nothing.
"other": number of a chunk that the sentence does not cite and that supports it; 0 if there is none, or if the \
sentence claims nothing.
"reason": a few words if a cited chunk does not support the sentence or "together" is 0; otherwise empty."""
