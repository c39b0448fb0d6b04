"""What a short answer says together with its query: "Yes." to "Is parking free?", "Goethe" to "Who wrote Faust?".

It leaves out what is understood, and carries words that say nothing new: "it costs", "in the year". Words of a long
answer are taken as they are.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from rag_eval.metrics.offline.asking import (
    ALLOWING,
    CLOSED,
    COURTESY,
    FORBIDDING,
    NEGATING,
    OPEN,
    OPENING_VERBS,
    PERMITTING,
    WITHOUT,
    YES_OR_NO,
    asking_of,
    beginning_yes_or_no,
    ends_asking,
    negates_unspaced,
    polar_stems,
    small_words_of,
    unspaced_yes_or_no,
    wants_yes_or_no,
)
from rag_eval.metrics.offline.grounding import NOTHING_UNDERSTOOD, Understood
from rag_eval.metrics.offline.kinds import asks_for_person, expected_kind
from rag_eval.metrics.offline.scripts import count_words, is_pair
from rag_eval.metrics.offline.wording import find_similar
from rag_eval.texts.words import NEGATION, STOP_WORDS, has_words, read_claim, sentences, stem, stems_of, words

SHORT = 6
"""Content words. In a text of so many, a missing word that is understood does not count at all."""
LONG = 10
"""In a text of so many, it counts like any other; between them in proportion."""
_LONGEST = 200
"""Characters. A longer text is not short."""


def is_brief(text: str) -> bool:
    """Whether a text is so short that it may be an answer of a few words."""
    return len(text) <= _LONGEST


def understood(text: str, query: str, others: Sequence[str]) -> Understood:
    """Which words of a text need not be found in the others: those of the query, and those that carry an answer.

    Only if the query asks for something, and the text says more than these words.
    """
    if not is_brief(text):
        return NOTHING_UNDERSTOOD
    own = read_claim(text).whole
    weight = min(1.0, max(0.0, (count_words(own.content) - SHORT) / (LONG - SHORT)))
    if weight == 1:
        return NOTHING_UNDERSTOOD
    light = _said_by_asking(query) | given_names(text, query, others)
    if light and not text.isascii():
        light |= reaching(own.stems, query, others)
    return Understood(light, weight) if own.stems - light else NOTHING_UNDERSTOOD


def reaching(stems: AbstractSet[str], query: str, others: Sequence[str]) -> frozenset[str]:
    """Pairs of characters that reach from a word of the others into one of the query, or into one that says nothing.

    Those that the others have are none: they are found.
    """
    pairs = list(filter(is_pair, stems))
    if not pairs:
        return frozenset()
    said = _CARRYING_CHARACTERS.union(query)
    known = said.union(*others)
    return frozenset(
        pair
        for pair in pairs
        if known.issuperset(pair) and not said.isdisjoint(pair) and not any(pair in other for other in others)
    )


@lru_cache(maxsize=2)
def _said_by_asking(query: str) -> frozenset[str]:
    """Stems of the words of a query that asks for something, and of those that may carry the answer to it.

    What a query for yes or no says is not understood: it may be wrong.
    """
    if polar_stems(query):
        return carrying(query) | YES_OR_NO
    asking = asking_of(query)
    if not asking or wants_yes_or_no(asking) or not _is_one_question(query, asking):
        return frozenset()
    return frozenset(stems_of(query)) | carrying(query)


@lru_cache(maxsize=2)
def carrying(query: str) -> frozenset[str]:
    """Stems of words that may carry the answer: small words of the query's language, and by the expected kind."""
    kind = expected_kind(query)
    listed = kind.carrying if kind else _OF_CHOICES if asking_of(query) == ["which"] else frozenset()
    return small_stems(query) | listed


@lru_cache(maxsize=2)
def small_stems(query: str) -> frozenset[str]:
    """Stems of the small words of the query's language but negations; none for English, whose texts have none left."""
    return frozenset(map(stem, small_words_of(words(query)) - NEGATING))


def given_names(name: str, query: str, others: Iterable[str]) -> frozenset[str]:
    """Stems of the given names of whom the query asks for, if one of the others has the family name without any."""
    parts = name.strip(_MARKS).split()
    if not 2 <= len(parts) <= _MOST_NAMES or not asks_for_person(query):
        return frozenset()
    small = [part for part in parts if not part[0].isupper()]
    is_name = parts[-1] not in small or len(small) == len(parts)  # in small letters, any may be a name
    if not is_name or not _PARTICLES | set(parts if len(small) == len(parts) else ()) >= set(small):
        return frozenset()
    if not STOP_WORDS.isdisjoint(map(str.lower, parts)):
        return frozenset()
    asked = frozenset(words(query))
    if not asked.isdisjoint(words(parts[-1])):
        return frozenset()
    known = frozenset(words(name)) | asked | STOP_WORDS
    if not any(_has_family_name(parts[-1], other, known) for other in others):
        return frozenset()
    return frozenset(stems_of(" ".join(parts[:-1]))) - frozenset(stems_of(parts[-1]))


def in_short(target: str, query: str, chunks: Sequence[str]) -> str | None:
    """What to look for in chunks: the family name of whom the query asks for, nothing more for a yes or no."""
    said = stance(target, query)
    if said and said.is_bare:
        return None
    return target.split()[-1] if given_names(target, query, chunks) else target


def _has_family_name(family: str, text: str, known: frozenset[str]) -> bool:
    """Whether the text has it without the given name of another person before it, or a longer name."""
    pieces = text.split()
    is_lower = text.islower()
    wanted = stems_of(family)
    for place, piece in enumerate(pieces):
        if stems_of(piece) != wanted:
            continue
        before = pieces[place - 1] if place else ""
        after = next(iter(pieces[place + 1 :]), "")
        is_other = _is_name(before, known, is_lower=is_lower) and before[-1] not in _ENDS
        is_longer = piece[-1] not in _ENDS and _is_name(after, known, is_lower=is_lower)
        if not is_other and not is_longer:
            return True
    return False


def _is_name(piece: str, known: frozenset[str], *, is_lower: bool) -> bool:
    """Whether it may be a part of a name that is not known. In a text without capitals, any word may."""
    return bool(piece) and (is_lower or piece[0].isupper()) and not known.issuperset(words(piece))


# Yes or no


def _is_one_question(query: str, asking: Sequence[str]) -> bool:
    """Whether it has a question mark or begins with an asking word, and is one sentence: a chat says more."""
    return (ends_asking(query) or words(query)[:1] == [*asking]) and len(sentences(query)) == 1


class Stance(NamedTuple):
    """What a text says to a query for yes or no."""

    affirms: bool
    is_bare: bool
    """It says nothing else than words of the query."""
    is_word: bool = False
    """It says nothing else but small words: "Yes, you can."."""


@lru_cache(maxsize=4)
def stance(text: str, query: str) -> Stance | None:
    """None for another query, and for a text that says neither."""
    asked = polar_stems(query) if "?" in query or "？" in query else None
    if not asked:
        return None
    if not text.isascii() and is_brief(text) and (affirms := unspaced_yes_or_no(text, query)) is not None:
        return Stance(affirms, is_bare=True, is_word=True)
    affirms, rest = beginning_yes_or_no(text)
    if affirms is not None:
        content = _content(words(rest), query) - COURTESY if is_brief(rest) else None
        is_bare = content is not None and content <= asked | {NEGATION}
        empty = PERMITTING if affirms else PERMITTING | _DENYING
        is_word = not has_words(rest) or (content is not None and content <= empty)
        return Stance(affirms, is_bare or is_word, is_word)
    if not is_brief(text) or ends_asking(text):
        return None
    own = words(text)
    if not own or own[0] in OPENING_VERBS or own == [*_words_of_query(query)[0]]:
        return None
    content = _content(own, query)
    if find_similar(asked, content).missing:
        return None
    return Stance(not _negates(text, query, asked), is_bare=content <= asked | {NEGATION})


def polar_support(affirms: bool, query: str, chunks: tuple[str, ...]) -> tuple[float, bool, AbstractSet[str]]:
    """How far (0..1) a sentence of the chunks says the query's words, if it says them; and which words it lacks.

    The flag says whether it says the opposite: it negates them, and the answer is yes, or the other way round.
    """
    asked = polar_stems(query)
    best = (0.0, False, asked)
    for chunk in chunks:
        for sentence in read_claim(chunk).sentences:
            found = find_similar(asked, sentence.stems)
            share = found.share
            if found.missing and share and _speaks_of_leave(sentence.stems, asked):
                share = min(1.0, share + 1 / len(asked))
            if share > best[0]:
                is_opposite = _negates(sentence.text, query, asked) == affirms
                best = (share, is_opposite, found.missing)
    return best


def _speaks_of_leave(stems: AbstractSet[str], asked: AbstractSet[str]) -> bool:
    """Whether one of the words stands for one of the query's: "allowed" for "bring", "closed" for "open"."""
    return not stems.isdisjoint(ALLOWING | _DENYING - {NEGATION}) or (
        not asked.isdisjoint(OPEN) and not stems.isdisjoint(CLOSED)
    )


@lru_cache(maxsize=2)
def _words_of_query(query: str) -> tuple[tuple[str, ...], AbstractSet[str]]:
    """Its words, and the small words of its language."""
    own = words(query)
    return tuple(own), small_words_of(own)


def _content(own: Sequence[str], query: str) -> set[str]:
    """Stems of those of a text's words that say something."""
    _, small = _words_of_query(query)
    return {stem(word) for word in own if word not in STOP_WORDS and word not in small}


def _negates(text: str, query: str, asked: AbstractSet[str]) -> bool:
    """Whether a negation is before one of the asked words, with at most one word between them; or it is forbidden.

    A negation before a word that allows, such as "not allowed", is one of all that is asked, as "closed" is of "open".
    """
    asking, small_words = _words_of_query(query)
    small = ((STOP_WORDS | small_words) - NEGATING) | WITHOUT.intersection(asking)
    own = [word for word in words(text) if word not in small]
    if any(word in FORBIDDING and stem(word) not in asked for word in own):
        return True
    if not query.isascii() and not text.isascii() and _negates_unspaced(text, asked):
        return True
    is_open = not asked.isdisjoint(OPEN)
    for place, word in enumerate(own):
        if is_open and stem(word) in CLOSED:
            near = {stem(each) for each in own[place + 1 : place + 3] or own[max(0, place - 3) : place]}
            if len(find_similar(asked, near).missing) < len(asked):
                return True
        if word in NEGATING or stem(word) == NEGATION:
            following = {stem(each) for each in own[place + 1 : place + 3]}
            if word not in WITHOUT and not following.isdisjoint(ALLOWING):
                return True
            if following and len(find_similar(following, asked).missing) < len(following):
                return True
    return False


def _negates_unspaced(text: str, asked: AbstractSet[str]) -> bool:
    """Whether the clause of a text in Chinese or Japanese that has most of the asked words negates them."""
    pairs = list(filter(is_pair, asked))
    if not pairs:
        return False
    clause = max(_CLAUSE_ENDS.split(text), key=lambda each: sum(pair in each for pair in pairs))
    return negates_unspaced(clause)


_CLAUSE_ENDS = re.compile("[，、,；;]")
_DENYING = frozenset(map(stem, FORBIDDING)) | {NEGATION}
_OF_CHOICES = frozenset(("one", "ones", "come"))
"""Stems of what may stand for words of the query: "the blue one", "it comes in blue"."""
_CARRYING_CHARACTERS = frozenset("的是在有了于於为為共约約从從到和与與名人はがをにでとものすまいら")
"""Of Chinese and Japanese: characters of words that say nothing new."""
_MOST_NAMES = 5
_MARKS = " .,;:!?\"'“”"
_PARTICLES = frozenset(words("von van de da di la le der den del dos du zu bin ibn al"))
_ENDS = ".,;:!?"
