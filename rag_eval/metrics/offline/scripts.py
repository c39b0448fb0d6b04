"""How many words a text has when some of its tokens are only overlapping groups of characters."""

import re
from collections.abc import Collection

_UNSPACED = re.compile(
    "(?P<two>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])"
    "|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
)
_HANGUL = re.compile("[\uac00-\ud7a3]")
_OF_TWO_CHARACTERS = 0.5
"""A word of Chinese or Japanese has some two characters, so it gives two pairs."""
_OF_FOUR_CHARACTERS = 0.25
"""A word of Thai, Lao, Khmer or Burmese has four characters or more."""


def is_unspaced(word: str) -> bool:
    """Whether the word is a group of characters of a script without spaces."""
    return _UNSPACED.match(word) is not None


def is_pair(word: str) -> bool:
    """Whether the word is a pair of Chinese or Japanese characters."""
    match = _UNSPACED.match(word)
    return match is not None and match["two"] is not None and len(word) > 1


def has_spaced_sentences(text: str) -> bool:
    """Whether the text is Thai or Lao, which put a space between sentences and no full stop."""
    return _THAI_OR_LAO.search(text) is not None


def is_short(word: str) -> bool:
    """Whether a group of characters is smaller than groups of its script are, as in a text of one character."""
    match = _UNSPACED.match(word)
    return match is not None and len(word) < (2 if match["two"] else 3)


def is_found_inside(word: str) -> bool:
    """Whether the word may be found as a part of a longer one: a too short group, or a Korean word with particles."""
    return _HANGUL.match(word) is not None or is_short(word)


def count_words(tokens: Collection[str]) -> float:
    """The number of words that these tokens stand for; each counts 1 in scripts with spaces."""
    if "".join(tokens).isascii():
        return len(tokens)
    return sum(map(_weight, tokens))


def _weight(token: str) -> float:
    match = _UNSPACED.match(token)
    if match is None:
        return 1.0
    return _OF_TWO_CHARACTERS if match["two"] else _OF_FOUR_CHARACTERS


_THAI_OR_LAO = re.compile("[\u0e00-\u0eff]")
