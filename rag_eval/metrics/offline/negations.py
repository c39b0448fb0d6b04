"""Whether a text negates what the evidence says, or says what the evidence negates."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from rag_eval.texts.words import NEGATION, Reading, read_all


@lru_cache(maxsize=2)  # like `read_all`
def find_denied(chunks: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Pairs of words that the chunks never say together but with a negation between them."""
    readings = read_all(chunks)
    negating = [reading for reading in readings if NEGATION in reading.stems]
    between = frozenset([pair for reading in negating for pair in _around_negations(reading)])
    for reading in readings if between else ():
        between = between - reading.pairs
    return between


def _around_negations(reading: Reading) -> Iterator[tuple[str, str]]:
    words = reading.content
    place = 0
    for _ in range(words.count(NEGATION)):
        place = words.index(NEGATION, place) + 1
        if 1 < place < len(words):
            yield words[place - 2], words[place]


def denies(sentence: Reading, evidence: Sequence[Reading]) -> bool:
    """A negation of the sentence stands among words that the evidence says together without one."""
    padded = ["", "", *sentence.content, "", ""]
    places = [place for place, word in enumerate(padded) if word == NEGATION]
    return any(_is_denial(padded[place - 2 : place + 3], evidence) for place in places)


def _is_denial(window: Sequence[str], evidence: Sequence[Reading]) -> bool:
    """Whether the evidence says the words around a negation, two on either side, but never negates them.

    It says them when one from either side are neighbours there, or the two that follow it are and the one
    before it occurs.
    """
    second_before, before, negation, after, second_after = window
    negated = {(negation, after), (before, negation)}
    across = {(before, after), (second_before, after), (before, second_after)}
    pairs = [reading.pairs for reading in evidence]
    if not all(map(negated.isdisjoint, pairs)):
        return False
    if not all(map(across.isdisjoint, pairs)):
        return True
    follow = any((after, second_after) in known for known in pairs)
    return follow and any(before in reading.stems for reading in evidence)
