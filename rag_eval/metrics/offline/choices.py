"""What a query lets choose from: "by air" and "by sea" of "Is the parcel sent by air or by sea?"."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from rag_eval.metrics.offline.asking import (
    NEGATING,
    around_or,
    asking_of,
    asks,
    ends_asking,
    wants_yes_or_no,
    without_unspaced_asking,
)
from rag_eval.metrics.offline.brief import small_stems
from rag_eval.metrics.offline.grounding import TELLING
from rag_eval.texts.words import NEGATION, STOP_WORDS, Reading, read_sentences, stem, stems_of, words


class _Choice(NamedTuple):
    """One stem of each option of a query that no other option has."""

    beside: frozenset[str]
    """Of the options right before and right behind "or"; only one of "Is it free or not?"."""
    earlier: AbstractSet[str]
    """Of those that stand further before it: "tea" of "Do you want tea, coffee or water?"."""


def options_left_out(said: AbstractSet[str], answer: str, query: str) -> AbstractSet[str] | None:
    """A stem of each option of the query that a response leaves out, if it takes one; None otherwise.

    `said` are its stems. One that has all options takes one if it joins them by something else than "or".
    """
    choice = _choice(query)
    if choice is None:
        return None
    said = said | function_words_chosen(answer, query)
    taken = said & choice.beside
    if taken and len(taken) == len(choice.beside) > 1:
        compares = len(said) > len(taken) and not ends_asking(answer) and around_or(answer) is None
        return frozenset() if compares else None
    if not taken and said.isdisjoint(choice.earlier):
        return None
    return (choice.beside | choice.earlier) - said


def takes_another_option(response: Reading, reference: Reading, query: str) -> bool:
    """Whether a response and a reference take different options of the query, and neither negates anything."""
    wanted = options_left_out(reference.stems, reference.text, query)
    given = options_left_out(response.stems, response.text, query) if wanted else None
    if not wanted or not given or wanted == given:
        return False
    return (NEGATING | {NEGATION}).isdisjoint(response.stems | reference.stems)


def function_words_chosen(text: str, query: str) -> AbstractSet[str]:
    """Stems of the options of a query that are function words, as far as a text has them: "off" of "on or off"."""
    choice = _choice(query)
    return choice.beside.intersection(stems_of(text)) if choice and choice.beside <= TELLING else frozenset()


@lru_cache(maxsize=2)  # like what else is known of a query
def _choice(query: str) -> _Choice | None:
    parts = around_or(query)
    if parts is None:
        return None
    *earlier, left = [part for part in _ENDS.split(_SENTENCE_ENDS.split(parts[0])[-1]) if words(part)] or [""]
    right = _ENDS_BEHIND.split(parts[1].lstrip(), maxsplit=1)[0]
    asking = asking_of(query)
    if not _asks(parts[1], query, asking):
        return None
    if asking and not wants_yes_or_no(asking):
        if any(_has_word(part, asking) for part in (left, right)):  # "Who sells nuts or bolts?"
            return None
        earlier = [part for part in earlier if not _has_word(part, asking)]
    small = small_stems(query)
    if around := _function_words(left, right, small):
        return _Choice(around, frozenset())
    before, behind = _content(left, small), _content(right, small)
    if before and set(words(right)) <= NEGATING | {NEGATION}:
        return _Choice(frozenset(before[-1:]), frozenset())
    first = _mark(reversed(before), behind)
    second = _mark(behind, before)
    if not first or not second:
        return None
    every = {*before, *behind}
    further = (_mark(reversed(_content(part, small)), every) for part in earlier)
    return _Choice(frozenset((first, second)), frozenset(filter(None, further)))


def _function_words(left: str, right: str, small: AbstractSet[str]) -> frozenset[str]:
    """Stems of the words right before and right behind "or", if both are function words: "on or off"."""
    around = frozenset((*stems_of(left)[-1:], *stems_of(right)[:1]))
    is_one = len(around) == len((left, right)) and around <= TELLING
    return around if is_one and not around.isdisjoint(_STOP_STEMS | small) else frozenset()


def _asks(behind: str, query: str, asking: Sequence[str]) -> bool:
    """Whether the sentence that goes on behind "or" is a question, with a mark or without one."""
    end = _SENTENCE_END.search(behind)
    if end:
        return ends_asking(behind[: end.end()])
    return asks(query) or words(query)[:1] == [*asking]


def _has_word(part: str, asking: Sequence[str]) -> bool:
    return any(word in words(part) or (not word.isascii() and word in part) for word in asking)


def _content(part: str, small: AbstractSet[str]) -> list[str]:
    found = chain.from_iterable(one.content for one in read_sentences(without_unspaced_asking(part)))
    listed = [each for each in found if each not in small]
    return listed or [stem(word) for word in words(part) if word not in STOP_WORDS]


def _mark(stems: Iterator[str] | Sequence[str], others: AbstractSet[str] | Sequence[str]) -> str:
    """The first of the stems that the others do not have, or empty."""
    return next((each for each in stems if each not in others and each != NEGATION), "")


_STOP_STEMS = frozenset(map(stem, STOP_WORDS))
_SENTENCE_END = re.compile(r"[.!?]+(?=\s|\Z)|[。！？]")
_SENTENCE_ENDS = re.compile(r"[.!?;:](?=\s)|[。！？；：]|\s[–—-]\s")
_ENDS = re.compile(r",(?=\s|$)|[，、]")
_ENDS_BEHIND = re.compile(rf"{_SENTENCE_ENDS.pattern}|{_ENDS.pattern}|[.!?]")
