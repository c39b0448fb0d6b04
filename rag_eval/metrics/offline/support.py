"""How well chunks support a text, sentence by sentence.

Plain word overlap does not see that one wrong word can turn a sentence around. So a text is marked down
beyond its share when a number or a name of its own is not found, and when it denies what the chunks say.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from rag_eval.metrics.offline.brief import Stance, is_brief, polar_support, small_stems, stance, understood
from rag_eval.metrics.offline.choices import options_left_out
from rag_eval.metrics.offline.grounding import (
    NOTHING_UNDERSTOOD,
    UNCOUNTED,
    WORD_WEIGHT,
    Grounding,
    Understood,
    ground,
    ground_part,
    said_by_function_words,
    sentences_in,
)
from rag_eval.metrics.offline.scripts import has_spaced_sentences
from rag_eval.metrics.offline.wording import query_stems
from rag_eval.records import Evidence
from rag_eval.texts.amounts import in_asked_powers, in_other_units, other_codes
from rag_eval.texts.signs import opposite_numbers, restated_signs
from rag_eval.texts.words import (
    NEGATION,
    Reading,
    content_stems,
    names,
    numbers,
    quote,
    read,
    read_all,
    read_claim,
    stems_of,
)

_MOST_MISSING = 0.5
"""Share of the words of a statement. If a text has fewer of them, it cannot support it with a value that matters."""
PENALTY = 0.5
"""Share of the score that is lost when all numbers are wrong, when all names are, and when all sentences deny."""
SUPPORTED_FROM = 0.5
"""A sentence is called supported from this value on. It words the evidence and never enters a score."""


_PARTS = re.compile("[,;:()–—]")
_CONTRAST = re.compile(r", (?:not|nicht|pas|no) (?:\w+ ){0,2}\w+[.!]?$")
"""At the end: "the shop, not the customer"."""


class _Faults(NamedTuple):
    """Counts of what can be wrong in a text beside its plain words."""

    numbers: int
    """0 when none of them is wrong."""
    wrong_numbers: int
    names: int
    wrong_names: int
    sentences: int
    denials: int
    """Sentences that negate what the chunks say without a negation."""
    omissions: int
    """Sentences that say without a negation what the chunks negate."""

    @property
    def factor(self) -> float:
        """What is left of the score, above 0 up to 1."""
        if self is _FAULTLESS:
            return 1.0
        left = 1 - PENALTY * (self.denials + self.omissions) / self.sentences
        if self.wrong_numbers:
            left *= 1 - PENALTY * self.wrong_numbers / self.numbers
        if self.wrong_names:
            left *= 1 - PENALTY * self.wrong_names / self.names
        return left


_FAULTLESS = _Faults(0, 0, 0, 0, 1, 0, 0)
"""Of a sentence without any fault, whose numbers and names nobody has counted."""


@dataclass(slots=True)  # like a grounding
class _SentenceSupport:
    """One sentence and what the chunks say to it."""

    sentence: Reading
    grounding: Grounding
    faults: _Faults
    value: float
    """0..1: the share that was found, marked down by the faults."""
    asked: str = ""
    """The query, if the sentence says yes or no to it: what is missing are its words."""
    elsewhere: AbstractSet[str] = frozenset()
    """Stems that are in other sentences of the chunks than the rest."""
    different: AbstractSet[str] = frozenset()
    """Stems that count as missing though the chunks have them: with another sign, bound or unit, or in another code."""

    def evidence(self, subject: str, good: str, bad: str) -> Evidence:
        """The verdict `good` or `bad` on the sentence, and the words that speak against it."""
        supported = self.value >= SUPPORTED_FROM
        return Evidence(subject, self.sentence.text, good if supported else bad, supported, self._reason())

    def _reason(self) -> str:
        reasons = []
        if missing_stems := self.grounding.missing - self.different:
            missing = quote(read(self.asked) if self.asked else self.sentence, missing_stems)
            reasons.append(
                f"not in one sentence of the chunks: {missing}"
                if self.asked
                else f"not in the chunks: {missing}"
            )
        if different := self.grounding.missing & self.different:
            reasons.append(f"different in the chunks: {quote(self.sentence, different)}")
        if elsewhere := self.elsewhere - self.different:
            reasons.append(f"in another sentence of the chunks: {quote(self.sentence, elsewhere)}")
        if self.faults.denials:
            reasons.append("negated here, but not in the chunks")
        if self.faults.omissions:
            reasons.append("negated in the chunks, but not here")
        return "; ".join(reasons)


class Support(NamedTuple):
    """A text and what the chunks say to it."""

    value: float
    """0..1: `share`, marked down by the faults of the sentences."""
    share: float
    """0..1: how much of the whole text was found, plain words and word pairs alone."""
    sentences: Sequence[_SentenceSupport]


def support(
    text: str,
    chunks: tuple[str, ...],
    stated: AbstractSet[str] = frozenset(),
    query: str = "",
    *,
    is_response: bool = False,
) -> Support:
    """How well the chunks support a text; numbers and names `stated` elsewhere are not held against it.

    A short text is an answer to the query, if there is one. That of a response is in one sentence of the chunks.
    """
    claim, evidence = read_claim(text), read_all(chunks)
    said = stance(text, query)
    if said and said.is_word:
        return _polar(said, claim.whole, query, chunks)
    light = understood(text, query, chunks) if query else NOTHING_UNDERSTOOD
    if light.stems:
        stated = stated | light.stems
    if same := restated_signs(claim.whole, evidence) | _in_asked_powers(claim.whole, evidence, query):
        light = light._replace(restated=light.restated | same)
    different = _different(claim.whole, evidence, query)
    whole = ground(claim.whole, evidence, light, different)
    parts = [(part, ground_part(part, whole, light)) for part in claim.sentences] or [(claim.whole, whole)]
    may_be_wrong = numbers(whole.missing - stated)
    told = frozenset(numbers(claim.whole.stems) if may_be_wrong else ())
    denied = find_denied(chunks)
    sentences = []
    for part, grounding in parts:
        faults = _faults(part, grounding.missing - stated, told, evidence, denied)
        value = grounding.share * faults.factor
        sentences.append(_SentenceSupport(part, grounding, faults, value, different=different))
    if len(sentences) > 1:
        faults = _faults_of_all(sentences, told)
    elif is_response and (elsewhere := _put_together(claim.whole, light, chunks, small_stems(query))):
        left = 1 - PENALTY * (1 - light.weight)
        sentences = [replace(one, value=one.value * left, elsewhere=elsewhere) for one in sentences]
        return Support(whole.share * faults.factor * left, whole.share, sentences)
    return Support(whole.share * faults.factor, whole.share, sentences)


def _in_asked_powers(claim: Reading, evidence: Sequence[Reading], query: str) -> frozenset[str]:
    """Numbers of a claim that the evidence has in the thousands or millions that the query asks for."""
    whole = in_asked_powers(claim.stems, query)
    return frozenset(number for number in whole if any(whole[number] in each.stems for each in evidence))


def _different(claim: Reading, evidence: Sequence[Reading], query: str) -> AbstractSet[str]:
    """Stems of numbers and codes that the evidence has, but with another sign, bound or unit, or other letters."""
    others = [each.text for each in evidence]
    own = opposite_numbers(claim, evidence, query, small_stems(query)) | other_codes(claim.text, others)
    if not is_brief(claim.text):
        return own
    own |= _other_option(claim, others, query)
    has_shared = any(number in each.stems for number in numbers(claim.stems) for each in evidence)
    return own | in_other_units(claim.text, others) if has_shared else own  # told fast


def _other_option(claim: Reading, chunks: Iterable[str], query: str) -> AbstractSet[str]:
    """What a claim of function words says, if it takes an option of the query, and the chunks another one.

    Sentences with a word of the query tell: "At night the alarm must be off. It goes on at six."
    """
    said = said_by_function_words(claim)
    others = options_left_out(said, claim.text, query) if said else None
    if not others:
        return frozenset()
    asked = query_stems(query)
    near = [one for chunk in chunks for one in sentences_in(chunk) if not asked.isdisjoint(one.stems)]
    told = frozenset(chain.from_iterable(stems_of(one.text) for one in near))
    return frozenset() if told.isdisjoint(others) or not told.isdisjoint(said) else said


def _put_together(
    claim: Reading, light: Understood, chunks: tuple[str, ...], small: AbstractSet[str]
) -> frozenset[str]:
    """Words of a short answer in whose place the chunk sentence with most of its words has another one.

    So "second" of "the counter on the second floor", if the counter is on the ground floor and something else on the
    second one: between the same two neighbours, or, a number, beside the same one. Each part of the answer between
    marks such as commas is compared with a sentence of its own; what several sentences say may be said together.
    """
    if light.weight == 1 or has_spaced_sentences(claim.text):
        return frozenset()
    replaced: set[str] = set()
    for part in _PARTS.split(claim.text) if chunks else ():
        content = claim.content if part == claim.text else read_claim(part).whole.content
        own = [word for word in content if word not in small]
        nearest = _nearest(set(own), chunks) if len(own) > 1 else None
        if nearest:
            in_place = _in_places_of(own, [word for word in nearest.content if word not in small])
            replaced.update(word for word in in_place if word not in nearest.stems | light.restated)
    return frozenset(
        word
        for word in replaced
        if any(word in sentence.stems for chunk in chunks for sentence in sentences_in(chunk))
    )


def _nearest(own: AbstractSet[str], chunks: tuple[str, ...]) -> Reading | None:
    """The sentence with most of the words, the first of several; None if no chunk says anything."""
    best, most = None, -1
    for chunk, reading in zip(chunks, read_all(chunks), strict=True):
        for sentence in sentences_in(chunk) if len(own & reading.stems) > most else ():
            n_shared = len(own & sentence.stems)
            if n_shared > most:
                best, most = sentence, n_shared
    return best


def _in_places_of(own: Sequence[str], nearest: Sequence[str]) -> Iterator[str]:
    """Words between two neighbours that have another word between them in the nearest sentence; numbers beside one."""
    between, beside = set[tuple[str, str]](), set[tuple[str, str]]()
    for before, word, after in _with_neighbours(nearest):
        if word not in own:
            between.add((before, after))
            if numbers((word,)):
                beside |= {(before, ""), ("", after)}
    beside.discard(("", ""))
    for before, word, after in _with_neighbours(own):
        is_between = before and after and (before, after) in between
        if is_between or (numbers((word,)) and not beside.isdisjoint({(before, ""), ("", after)})):
            yield word


def _with_neighbours(content: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    padded = ["", *content, ""]
    return zip(padded, content, padded[2:], strict=False)


@lru_cache(
    maxsize=256
)  # the advice to a case asks, and the count of causes once the rows of its window are judged
def supports(text: str, statement: str, least: float) -> bool:
    """Whether a text supports a statement with a value of at least `least`. Told fast where too little is found."""
    said = content_stems(statement)
    if len(said - read_all((text,))[0].stems) > _MOST_MISSING * len(said):
        return False
    found = ground(read_claim(statement).whole, read_all((text,)))
    return found.share >= least and support(statement, (text,)).value >= least


def own_shares(supports: Sequence[Support]) -> list[float]:
    """Of each of several supports of one text, by different chunks: the share of the text that no other one has, 0..1.

    Words and pairs of words weigh what they weigh in a grounding. Chunks that have the same of the text count as one.
    """
    readings = [part.sentence for part in supports[0].sentences]
    words = frozenset(chain.from_iterable(each.stems for each in readings)) - UNCOUNTED
    pairs = frozenset(chain.from_iterable(each.pairs for each in readings))
    own_words = _only_in_one(
        [words.difference(*(part.grounding.missing for part in each.sentences)) for each in supports]
    )
    own_pairs = _only_in_one(
        [pairs.difference(*(part.grounding.missing_pairs for part in each.sentences)) for each in supports]
    )
    of_pairs = 1 - WORD_WEIGHT if pairs else 0.0
    return [
        (1 - of_pairs) * n_words / max(1, len(words)) + of_pairs * n_pairs / max(1, len(pairs))
        for n_words, n_pairs in zip(own_words, own_pairs, strict=True)
    ]


def _only_in_one(sets: Sequence[AbstractSet[object]]) -> list[int]:
    """How many members of each set are in no other; equal sets are one."""
    counts = Counter(chain.from_iterable(set(map(frozenset, sets))))
    return [sum(counts[member] == 1 for member in each) for each in sets]


def _polar(said: Stance, text: Reading, query: str, chunks: tuple[str, ...]) -> Support:
    """How well the chunks support a text that only says yes or no."""
    share, is_opposite, missing = polar_support(said.affirms, query, chunks)
    value = share * PENALTY if is_opposite else share
    grounding = Grounding(share, missing, frozenset())
    denials, omissions = (0, 1) if said.affirms else (1, 0)
    faults = _Faults(0, 0, 0, 0, 1, is_opposite * denials, is_opposite * omissions)
    return Support(value, share, [_SentenceSupport(text, grounding, faults, value, query)])


def _faults(
    sentence: Reading,
    wrong: AbstractSet[str],
    told: AbstractSet[str],
    evidence: Sequence[Reading],
    denied: AbstractSet[tuple[str, str]],
) -> _Faults:
    """`told` are the numbers of the whole text, found once for all of its sentences; none when all are right."""
    negates = NEGATION in sentence.stems
    is_denial = negates and not _CONTRAST.search(sentence.text) and denies(sentence, evidence)
    is_omission = not negates and not denied.isdisjoint(sentence.pairs)
    all_names = names(sentence) if wrong else ()
    n_wrong_names = len([name for name in all_names if not wrong.isdisjoint(name)]) if all_names else 0
    n_wrong_numbers = len(told & wrong) if told else 0
    if not (is_denial or is_omission or n_wrong_names or n_wrong_numbers):
        return _FAULTLESS
    # In the order of the fields: names of arguments take half as long again, for every sentence.
    return _Faults(
        len(told & sentence.stems),
        n_wrong_numbers,
        len(all_names or names(sentence)),
        n_wrong_names,
        1,
        is_denial,
        is_omission,
    )


def _faults_of_all(sentences: Sequence[_SentenceSupport], told: AbstractSet[str]) -> _Faults:
    """Those of a text, from those of its sentences."""
    faulty = [one.faults for one in sentences if one.faults is not _FAULTLESS]
    if not faulty:
        return _FAULTLESS
    _, wrong_numbers, _, wrong_names, _, denials, omissions = map(sum, zip(*faulty, strict=True))
    return _Faults(
        sum([len(told & one.sentence.stems) for one in sentences]) if wrong_numbers else 0,
        wrong_numbers,
        sum([one.faults.names or len(names(one.sentence)) for one in sentences]) if wrong_names else 0,
        wrong_names,
        len(sentences),
        denials,
        omissions,
    )


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
