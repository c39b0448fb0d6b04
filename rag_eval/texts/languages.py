"""Whether two texts are in one language and script, as far as short texts show it."""

import re
import unicodedata
from collections import Counter

_SCRIPTS_OF_MANY_LANGUAGES = frozenset({"LATIN", "CYRILLIC", "ARABIC", "DEVANAGARI"})
_COMMON = 1 / 6
"""Of the small words of the shorter text: so many are in another text of the same language and subject as well."""
_LOOKED_AT = 2_000
"""Characters."""


def have_one_language(text: str, other: str) -> bool:
    """Whether both have the same script and, where many languages share it, the small words of one language."""
    script = _script(text)
    if not script or script != _script(other):
        return False
    if script not in _SCRIPTS_OF_MANY_LANGUAGES:
        return True
    ours, theirs = _small_words(text), _small_words(other)
    return len(ours & theirs) >= max(1, _COMMON * min(len(ours), len(theirs)))


def _script(text: str) -> str:
    """The script of most letters, as their Unicode names begin; kana make a text Japanese. '' without letters."""
    letters = filter(str.isalpha, text[:_LOOKED_AT])
    scripts = Counter(unicodedata.name(letter, " ").partition(" ")[0] for letter in letters)
    if scripts["HIRAGANA"] or scripts["KATAKANA"]:
        return "HIRAGANA"
    return scripts.most_common(1)[0][0] if scripts else ""


def _small_words(text: str) -> set[str]:
    """Words in small letters: names look alike in all languages."""
    return {word for word in _WORD.findall(text) if not word[0].isupper()}


_WORD = re.compile(r"[^\W\d_]{2,}")
