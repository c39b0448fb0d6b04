"""How much of a text stands in other texts: the one measure that most offline metrics share."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from rag_eval.metrics.offline.scripts import is_found_inside
from rag_eval.texts.words import NEGATION, Reading, stems_of

WORD_WEIGHT = 2 / 3
"""What single words weigh in a share; the rest is for adjacent pairs, which know the order of words."""


class Grounding(NamedTuple):
    """What of a text was found in the evidence."""

    share: float
    """0..1: how much of its content words and, with a third of the weight, of its adjacent word pairs was found."""
    missing: AbstractSet[str]
    """Stems found nowhere in the evidence."""
    missing_pairs: AbstractSet[tuple[str, str]]
    """Neighbours that are neighbours nowhere in the evidence."""


class Understood(NamedTuple):
    """Words that need not be found."""

    stems: AbstractSet[str] = frozenset()
    weight: float = 1.0
    """0..1: what one of them counts if it is missing; any other word counts 1."""


NOTHING_UNDERSTOOD = Understood()


def ground(
    claim: Reading, evidence: Iterable[Reading], understood: Understood = NOTHING_UNDERSTOOD
) -> Grounding:
    """How much of `claim` is in `evidence`; a claim of function words only ("The Who") is compared by all words."""
    counted = claim.stems - UNCOUNTED
    if not counted:
        counted = set(stems_of(claim.text))
        missing = counted.difference(*(stems_of(reading.text) for reading in evidence))
        return Grounding(1 - len(missing) / len(counted) if counted else 0.0, missing, frozenset())
    missing, missing_pairs = counted, claim.pairs
    for reading in evidence:
        missing = missing - reading.stems
        missing_pairs = missing_pairs - reading.pairs
    if not "".join(missing).isascii():
        sought = filter(is_found_inside, missing)
        missing = missing - {word for word in sought if any(word in reading.text for reading in evidence)}
    return _grounding(counted, missing, claim.pairs, missing_pairs, understood)


def ground_part(part: Reading, whole: Grounding, understood: Understood = NOTHING_UNDERSTOOD) -> Grounding:
    """The grounding of a sentence, from that of the text that it belongs to."""
    counted = (part.stems - UNCOUNTED or part.stems) if NEGATION in part.stems else part.stems
    return _grounding(
        counted, counted & whole.missing, part.pairs, part.pairs & whole.missing_pairs, understood
    )


def _grounding(
    counted: AbstractSet[str],
    missing: AbstractSet[str],
    pairs: AbstractSet[tuple[str, str]],
    missing_pairs: AbstractSet[tuple[str, str]],
    understood: Understood,
) -> Grounding:
    light = missing & understood.stems if understood.stems else None
    if light and light != counted:
        return _with_light(light, counted, missing, pairs, missing_pairs, understood.weight)
    share = 1 - len(missing) / len(counted)
    if pairs:
        share = WORD_WEIGHT * share + (1 - WORD_WEIGHT) * (1 - len(missing_pairs) / len(pairs))
    return Grounding(share, missing, missing_pairs)


def _with_light(
    light: AbstractSet[str],
    counted: AbstractSet[str],
    missing: AbstractSet[str],
    pairs: AbstractSet[tuple[str, str]],
    missing_pairs: AbstractSet[tuple[str, str]],
    weight: float,
) -> Grounding:
    """The same where a missing word among `light`, and a missing pair with one, count only `weight`."""
    left = len(light) * (1 - weight)
    share = 1 - (len(missing) - left) / (len(counted) - left)
    left = sum(not light.isdisjoint(pair) for pair in missing_pairs) * (1 - weight)
    if len(pairs) > left:
        found = 1 - (len(missing_pairs) - left) / (len(pairs) - left)
        share = WORD_WEIGHT * share + (1 - WORD_WEIGHT) * found
    return Grounding(share, missing if weight else missing - light, missing_pairs)


UNCOUNTED = frozenset((NEGATION,))
"""It says nothing by itself; where it matters it has rules of its own."""
