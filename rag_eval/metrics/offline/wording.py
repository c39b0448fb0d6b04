"""What a query is about, and words that are found though they are spelled a little otherwise."""

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import NamedTuple

from rag_eval.metrics.offline.asking import small_words_of, without_unspaced_asking
from rag_eval.metrics.offline.scripts import is_short, is_unspaced
from rag_eval.texts.words import NEGATION, STOP_WORDS, numbers, read, stem, stems_of, words

PREFIX = 4
"""Two words of one root are taken to share so many letters at the beginning."""
_SIMILAR = 0.8
"""What a word counts that is only found by its beginning."""
_MOST_LENGTH_DIFFERENCE = 3
_SYLLABLES = 2
"""In Korean a letter is a syllable, so fewer are enough."""
_ROOT_LETTERS = 3
"""Arabic roots have three letters."""
_ASKING = frozenset(
    ("many", "much", "long", "far", "often", "old", "name", "describ", "defin", "explain", "tell", NEGATION)
)
_HANGUL = re.compile("[\uac00-\ud7a3]")
_PARTICLE = re.compile("(?<=.)(?:에서|에게|으로|까지|부터|은|는|이|가|을|를|의|에|로|와|과|도|만)$")
_HAS_ROOTS = re.compile("[\u0600-\u06ff\uac00-\ud7a3]")
_ARABIC = re.compile("[وفبك]?(?:ال|لل)(?=\\w{2})|(?=[\u0600-\u06ff])")
"""The article, with what is written together with it, or nothing before a word of that script."""


class Likeness(NamedTuple):
    """How well wanted words are found."""

    wanted: AbstractSet[str]
    missing: AbstractSet[str]
    """Those that are found in no way."""
    alike: AbstractSet[str]
    """Those that are found only in another form."""

    @property
    def share(self) -> float:
        """0..1: share of the words found, where one in another form counts _SIMILAR."""
        return 1 - _lost(len(self.missing), len(self.alike)) / len(self.wanted)

    def exactly(self) -> "Likeness":
        """The same with the words in another form counted as missing."""
        return Likeness(self.wanted, self.missing | self.alike, frozenset()) if self.alike else self

    def share_beside(self, asked: AbstractSet[str], weight: float) -> float:
        """0..1: the same share where each word of the query weighs only `weight`.

        A word of the query that is left out is understood, as far as the other words are found.
        """
        if asked.isdisjoint(self.wanted) or asked >= self.wanted:
            return self.share
        n_asked, missing_asked, alike_asked = (
            len(words & asked) if words else 0 for words in (self.wanted, self.missing, self.alike)
        )
        n_new = len(self.wanted) - n_asked
        lost_asked = _lost(missing_asked, alike_asked)
        found_new = 1 - _lost(len(self.missing) - missing_asked, len(self.alike) - alike_asked) / n_new
        return (n_new * found_new + weight * (n_asked - lost_asked * (1 - found_new))) / (
            n_new + weight * n_asked
        )


def _lost(missing: int, alike: int) -> float:
    return missing + (1 - _SIMILAR) * alike


def raised(share: float, by: float) -> float:
    """A share on the scale of another kind of text: 0 and 1 stay, what is between them rises, most where it is low."""
    return share * (1 + by) / (1 + by * share)


@lru_cache(maxsize=2)
def query_stems(query: str) -> AbstractSet[str]:
    """What the query is about: its content words without those that only ask; all its words if none is left."""
    if query.isascii() and not small_words_of(query.lower().split()):  # most often English, so without delay
        return read(query).stems - _ASKING or frozenset(stems_of(query))
    asked = words(without_unspaced_asking(query))
    small = STOP_WORDS | small_words_of(asked)
    content = frozenset(stem(word) for word in asked if word not in small)
    return content - _ASKING or frozenset(stems_of(query))


def find_similar(wanted: AbstractSet[str], given: AbstractSet[str]) -> Likeness:
    """Which of the wanted words are given, in the same or in another form; at least one must be wanted."""
    missing = wanted - given
    alike = _alike(missing, wanted - missing, given) if missing else frozenset[str]()
    return Likeness(wanted, missing - alike, alike)


def find_exactly(wanted: AbstractSet[str], given: AbstractSet[str]) -> Likeness:
    """The same for words in the same form only."""
    return Likeness(wanted, wanted - given, frozenset())


def _alike(missing: AbstractSet[str], found: Collection[str], given: AbstractSet[str]) -> set[str]:
    joined = "".join(missing)
    # A number or a code is equal to another one or different from it.
    varied = missing if joined.isalpha() else missing - set(numbers(missing))
    beginnings = {word[:PREFIX] for word in varied if len(word) >= PREFIX}
    # Looking through all of the text at once tells fast that most beginnings do not occur.
    written = " ".join(["", *given]) if beginnings else ""
    shared = {beginning for beginning in beginnings if f" {beginning}" in written}
    candidates = [word for word in given if word[:PREFIX] in shared] if shared else []
    alike = {word for other in candidates for word in missing if _is_alike(word, other)}
    if not joined.isascii():
        alike |= _alike_by_root(missing, given) | _alike_by_neighbours(missing, found, given)
    return alike


def _is_alike(word: str, other: str) -> bool:
    return word[:PREFIX] == other[:PREFIX] and abs(len(word) - len(other)) <= _MOST_LENGTH_DIFFERENCE


def _alike_by_root(missing: AbstractSet[str], given: AbstractSet[str]) -> set[str]:
    """Words of Korean and Arabic that differ in what is written together with them."""
    if not _HAS_ROOTS.search("".join(missing)):
        return set()
    sought = {word: root for word in missing if (root := _root(word))}
    roots = {root for word in given if (root := _root(word))}
    roots |= {root[0] for root in roots if _HANGUL.match(root)}
    return {word for word, root in sought.items() if root in roots}


def _root(word: str) -> str:
    """The beginning of a Korean or Arabic word without article and particle; empty for any other word."""
    if _HANGUL.match(word):
        return _PARTICLE.sub("", word)[:_SYLLABLES]
    if article := _ARABIC.match(word):
        return word[article.end() :][:_ROOT_LETTERS]
    return ""


def _alike_by_neighbours(
    missing: AbstractSet[str], found: Collection[str], given: AbstractSet[str]
) -> set[str]:
    """Groups of characters that reach from one found word into another, and too short ones that occur."""
    sought = [word for word in missing if is_unspaced(word)]
    if not sought:
        return set()
    known = [word for word in found if is_unspaced(word)]
    heads = {word[:end] for word in known for end in range(1, len(word))}
    tails = {word[start:] for word in known for start in range(1, len(word))}
    short = set(filter(is_short, sought))
    written = " ".join(filter(is_unspaced, given)) if short else ""
    return {word for word in sought if (word in written if word in short else _reaches(word, tails, heads))}


def _reaches(word: str, tails: AbstractSet[str], heads: AbstractSet[str]) -> bool:
    return any(word[:cut] in tails and word[cut:] in heads for cut in range(1, len(word)))
