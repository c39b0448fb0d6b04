"""How much of a text stands in other texts: the one measure that most offline metrics share."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from rag_eval.metrics.offline.scripts import has_spaced_sentences, is_found_inside
from rag_eval.texts.words import (
    NEGATION,
    STOP_WORDS,
    Reading,
    read_all,
    read_sentences,
    stem,
    stems_of,
    words,
)

WORD_WEIGHT = 2 / 3
"""What single words weigh in a share; the rest is for adjacent pairs, which know the order of words."""
_CERTAIN = 2
"""What a number, code or name of a short text counts if it is missing."""
WORDING = 0.4
"""What a word of a short text counts if it is nowhere in the evidence: it may be another word for the same."""


@dataclass(slots=True)  # a NamedTuple takes twice as long to make, and there is one for each sentence
class Grounding:
    """What of a text was found in the evidence."""

    share: float
    """0..1: how much of its content words and, with a third of the weight, of its adjacent word pairs was found."""
    missing: AbstractSet[str]
    """Stems found nowhere in the evidence."""
    missing_pairs: AbstractSet[tuple[str, str]]
    """Neighbours that are neighbours nowhere in the evidence."""


class Understood(NamedTuple):
    """How a short text is compared."""

    stems: AbstractSet[str] = frozenset()
    """Words that are not compared."""
    certain: AbstractSet[str] = frozenset()
    """Numbers, codes and names: if they are missing, they count _CERTAIN, and any other word WORDING."""
    restated: AbstractSet[str] = frozenset()
    """Words of amounts that the evidence writes in another way."""
    is_in_order: bool = False
    """Whether the neighbours of compared words count as well."""
    weight: float = 1.0
    """0..1: how far the text is compared like any other: 0 if it is short, 1 if it is not."""


NOTHING_UNDERSTOOD = Understood()


def ground(
    claim: Reading,
    evidence: Iterable[Reading],
    understood: Understood = NOTHING_UNDERSTOOD,
    wrong: AbstractSet[str] = frozenset(),
) -> Grounding:
    """How much of `claim` is in `evidence`; a claim of function words only ("Off.") is compared by these.

    The `wrong` stems are missing, though the evidence has them.
    """
    counted = claim.stems - UNCOUNTED
    if not counted or said_by_function_words(claim):
        counted = set(said_by_function_words(claim) or stems_of(claim.text))
        missing = counted.difference(*(stems_of(reading.text) for reading in evidence)) | (wrong & counted)
        return Grounding(1 - len(missing) / len(counted) if counted else 0.0, missing, frozenset())
    pairs = claim.pairs
    missing, missing_pairs = counted, pairs
    for reading in evidence:
        missing = missing - reading.stems
        missing_pairs = missing_pairs - reading.pairs
    missing = missing - understood.restated if understood.restated else missing
    if not "".join(missing).isascii():
        sought = filter(is_found_inside, missing)
        missing = missing - {word for word in sought if any(word in reading.text for reading in evidence)}
    if wrong:
        missing = missing | (wrong & counted)
        missing_pairs = missing_pairs | {pair for pair in pairs if not wrong.isdisjoint(pair)}
    return _grounding(counted, missing, pairs, missing_pairs, understood)


def said_by_function_words(claim: Reading) -> frozenset[str]:
    """Stems of what a claim without any content word says: "off" of "It is off."; none of any other claim.

    If none of its words says more than another, as in "The Who", they are all that it says.
    """
    if not STOP_WORDS.issuperset(claim.stems) or any(claim.stems_by_piece):
        return frozenset()
    own = frozenset(stems_of(claim.text))
    return own & TELLING or own


def ground_part(part: Reading, whole: Grounding, understood: Understood) -> Grounding:
    """The grounding of a sentence, from that of the text that it belongs to."""
    counted = (part.stems - UNCOUNTED or part.stems) if NEGATION in part.stems else part.stems
    pairs = part.pairs
    return _grounding(counted, counted & whole.missing, pairs, pairs & whole.missing_pairs, understood)


def _grounding(
    counted: AbstractSet[str],
    missing: AbstractSet[str],
    pairs: AbstractSet[tuple[str, str]],
    missing_pairs: AbstractSet[tuple[str, str]],
    understood: Understood,
) -> Grounding:
    share = 1 - len(missing) / len(counted)
    if pairs:
        share = WORD_WEIGHT * share + (1 - WORD_WEIGHT) * (1 - len(missing_pairs) / len(pairs))
    if understood.weight == 1 or not (new := counted - understood.stems):
        return Grounding(share, missing, missing_pairs)
    missing_new = missing & new
    n_certain = len(missing_new & understood.certain)
    n_found = len(new) - len(missing_new)
    is_told = n_found > 1 or not understood.certain.isdisjoint(new - missing_new)
    lost = _CERTAIN * n_certain + (WORDING if is_told else 1) * (len(missing_new) - n_certain)
    of_new = n_found / (n_found + lost)
    if understood.is_in_order and (new_pairs := {pair for pair in pairs if set(pair) <= new}):
        of_new = WORD_WEIGHT * of_new + (1 - WORD_WEIGHT) * (
            1 - len(new_pairs & missing_pairs) / len(new_pairs)
        )
    share = understood.weight * share + (1 - understood.weight) * of_new
    return Grounding(share, missing if understood.weight else missing_new, missing_pairs)


@lru_cache(maxsize=16)  # the chunks of a row, of which most need not be taken apart
def sentences_in(chunk: str) -> list[Reading]:
    """The sentences of a chunk; of Thai and Lao, which mark none, clauses."""
    return [part for sentence in read_sentences(chunk) for part in _clauses(sentence)]


def sentences_of_likely(
    chunks: tuple[str, ...], is_likely: Callable[[AbstractSet[str]], bool]
) -> Iterator[Reading]:
    """The sentences of the chunks whose stems are such that one of their sentences may matter."""
    for chunk, reading in zip(chunks, read_all(chunks), strict=True):
        if is_likely(reading.stems):
            yield from sentences_in(chunk)


def _clauses(sentence: Reading) -> list[Reading]:
    """The sentence; of a script that only puts spaces between sentences, its stretches between spaces.

    A short stretch belongs to the one before it: there are spaces around numbers and names, too.
    """
    if sentence.text.isascii() or not has_spaced_sentences(sentence.text):
        return [sentence]
    starts: list[int] = []
    length = _SHORTEST_CLAUSE
    for place, piece in enumerate(sentence.pieces):
        if length >= _SHORTEST_CLAUSE:
            starts.append(place)
            length = 0
        length += len(piece)
    if len(starts) > 1 and length < _SHORTEST_CLAUSE:
        starts.pop()
    return [
        Reading(" ".join(sentence.pieces[start:end]), list(chain(*sentence.stems_by_piece[start:end])))
        for start, end in pairwise([*starts, len(sentence.pieces)])
    ]


_SHORTEST_CLAUSE = 20
"""Characters of a Thai or Lao clause."""
TELLING = frozenset(
    map(
        stem,
        words("""
            all any both each few more most only same other above after before below between down during in off on out
            over through under until up once again here there now
            an aus auf ab vor nach mit | avant après sur sous avec | antes después sobre bajo con
        """),
    )
)
"""Stems of function words of four languages that may be the answer to a query, as no article or pronoun is."""
UNCOUNTED = frozenset((NEGATION,))
"""It says nothing by itself; where it matters it has rules of its own."""
