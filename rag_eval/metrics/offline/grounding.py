"""How much of a text stands in other texts: the one measure that most offline metrics share.

Plain word overlap does not see that one wrong word can turn a sentence around. So a text is marked down
beyond its share when a number or a name of its own is not found, and when it denies what the evidence says.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from rag_eval.text import NEGATION, Reading, is_number, names, quote, stems_of

PENALTY = 0.5
"""Share of the score that is lost when all numbers, all names or all sentences of a text are found wrong."""


class Grounding(NamedTuple):
    """What of a text was found in the evidence."""

    share: float
    """0..1: mean of the share of its content words and the share of its adjacent word pairs that were found."""
    missing: AbstractSet[str]
    """Stems found nowhere in the evidence."""


class Support(NamedTuple):
    """How well the evidence supports a text."""

    value: float
    """0..1: the share that was found, marked down for wrong numbers, wrong names and denials."""
    missing: AbstractSet[str]
    """Stems found nowhere in the evidence."""
    denials: int
    """Negations in the text where the evidence says the same without one."""


def ground(claim: Reading, evidence: Iterable[Reading], aside: AbstractSet[str] = frozenset()) -> Grounding:
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


def support(
    claim: Reading, evidence: Sequence[Reading], stated: AbstractSet[str] = frozenset(), sentences: int = 1
) -> Support:
    """How well `evidence` supports a claim of so many sentences; what is `stated` elsewhere is not held against it."""
    share, missing = ground(claim, evidence)
    denials = count_denials(claim.content, evidence) if NEGATION in claim.stems else 0
    wrong = missing - stated if missing else missing
    if wrong:
        share *= _number_factor(claim, wrong) * _name_factor(claim, wrong)
    return Support(share * (1 - PENALTY * min(1.0, denials / sentences)), missing, denials)


def explain(claim: Reading, found: Support) -> str:
    """Why a claim is not fully supported, in plain words; empty when nothing was found wrong."""
    reasons = []
    if found.missing:
        reasons.append(f"not in the chunks: {quote(claim, found.missing)}")
    if found.denials:
        reasons.append("negated here, but not in the chunks")
    return "; ".join(reasons)


def count_denials(content: Sequence[str], evidence: Sequence[Reading]) -> int:
    """Negations whose words stand in the evidence without a negation.

    A negation is looked at with its two neighbours on either side. It denies the evidence when the evidence
    never negates them, and has neighbours from both sides next to each other, or the two that follow it in
    a text that also holds the one before.
    """
    padded = ["", "", *content, "", ""]
    places = [place for place, word in enumerate(padded) if word == NEGATION]
    return sum(_denies(padded[place - 2 : place + 3], evidence) for place in places)


def _denies(window: Sequence[str], evidence: Sequence[Reading]) -> bool:
    second_before, before, negation, after, second_after = window
    pairs = [reading.pairs for reading in evidence]
    if any((negation, after) in known or (before, negation) in known for known in pairs):
        return False
    across = ((before, after), (second_before, after), (before, second_after))
    if any(pair in known for known in pairs for pair in across):
        return True
    follows = any((after, second_after) in known for known in pairs)
    return follows and any(before in reading.stems for reading in evidence)


def _number_factor(claim: Reading, wrong: AbstractSet[str]) -> float:
    wrong_numbers = sum(map(is_number, wrong))
    if not wrong_numbers:
        return 1.0
    return 1 - PENALTY * wrong_numbers / sum(map(is_number, claim.stems))


def _name_factor(claim: Reading, wrong: AbstractSet[str]) -> float:
    """A name of several words is wrong when one of them is."""
    all_names = names(claim.text)
    wrong_names = sum(not wrong.isdisjoint(name) for name in all_names)
    return 1 - PENALTY * wrong_names / len(all_names) if wrong_names else 1.0


def _ground_every_word(claim: Reading, evidence: Iterable[Reading]) -> Grounding:
    counted = set(stems_of(claim.text))
    missing = counted.difference(*(stems_of(reading.text) for reading in evidence))
    return Grounding(1 - len(missing) / len(counted) if counted else 0.0, missing)


_NEGATIONS = frozenset((NEGATION,))
