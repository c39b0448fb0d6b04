"""How much of a text stands in other texts: the one measure that most offline metrics share."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from rag_eval.text import NEGATION, Reading, is_number, stems_of

NUMBER_PENALTY = 0.5
"""Share of the score that a text loses when none of its numbers is found."""


class Grounding(NamedTuple):
    """What of a text was found in the evidence."""

    share: float
    """0..1: mean of the share of its content words and the share of its adjacent word pairs that were found."""
    missing: set[str]
    """Stems found nowhere in the evidence."""


def ground(claim: Reading, evidence: Iterable[Reading], aside: Collection[str] = ()) -> Grounding:
    """How much of `claim` stands in `evidence`; words `aside` count only when nothing else is left.

    A claim of function words alone ("The Who", "So it is") is compared by all of its words.
    """
    counted = claim.stems.difference(aside, _NEGATIONS)
    if not counted:
        return _ground_every_word(claim, evidence)
    missing, missing_pairs = counted, claim.pairs
    for reading in evidence:
        missing = missing - reading.stems
        missing_pairs = missing_pairs - reading.pairs
    words_found = 1 - len(missing) / len(counted)
    if not claim.pairs:
        return Grounding(words_found, missing)
    return Grounding((words_found + 1 - len(missing_pairs) / len(claim.pairs)) / 2, missing)


def number_factor(claim: Reading, missing: Collection[str], stated: Collection[str] = ()) -> float:
    """1 when every number of the claim is found or `stated` elsewhere, down to 1 - NUMBER_PENALTY."""
    lost = sum(is_number(word) and word not in stated for word in missing)
    if not lost:
        return 1.0
    return 1 - NUMBER_PENALTY * lost / sum(map(is_number, claim.stems))


def _ground_every_word(claim: Reading, evidence: Iterable[Reading]) -> Grounding:
    counted = set(stems_of(claim.text))
    missing = counted.difference(*(stems_of(reading.text) for reading in evidence))
    return Grounding(1 - len(missing) / len(counted) if counted else 0.0, missing)


_NEGATIONS = frozenset((NEGATION,))
