"""What a query is about, and words that begin alike."""

from collections.abc import Collection
from functools import lru_cache

from rag_eval.text import NEGATION, read, stems_of

PREFIX = 4
"""Two words of one root are taken to share so many letters at the beginning."""
SIMILAR = 0.8
"""What a word counts that is only found by its beginning."""
_MOST_LENGTH_DIFFERENCE = 3
_ASKING = frozenset(
    ("many", "much", "long", "far", "often", "old", "name", "describ", "defin", "explain", "tell", NEGATION)
)


@lru_cache(maxsize=2)
def query_stems(query: str) -> frozenset[str]:
    """What the query is about: its content words without those that only ask; all its words if none is left."""
    return frozenset(read(query).stems - _ASKING) or frozenset(stems_of(query))


def similar_share(wanted: Collection[str], given: set[str]) -> tuple[float, set[str]]:
    """Share (0..1) of the words found, where a like beginning counts SIMILAR; and the words found neither way."""
    missing = set(wanted) - given
    if not missing:
        return 1.0, missing
    alike = _alike(missing, given)
    return (len(wanted) - len(missing) + SIMILAR * len(alike)) / len(wanted), missing - alike


def _alike(missing: set[str], given: set[str]) -> set[str]:
    beginnings = {word[:PREFIX] for word in missing if len(word) >= PREFIX}
    candidates = [word for word in given if word[:PREFIX] in beginnings]
    return {word for other in candidates for word in missing if _is_alike(word, other)}


def _is_alike(word: str, other: str) -> bool:
    return word[:PREFIX] == other[:PREFIX] and abs(len(word) - len(other)) <= _MOST_LENGTH_DIFFERENCE
