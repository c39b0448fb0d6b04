"""An API key does not get into a report, though an endpoint quotes it."""

from functools import lru_cache

_PIECE = 8
"""Characters of a secret that are hidden wherever they stand together."""


def masked(text: str, secret: str) -> str:
    """The text with [key] in place of the secret and of every piece of it of 8 or more characters."""
    pieces = _pieces(secret)
    if not any(piece in text for piece in pieces):
        return text
    size = min(_PIECE, len(secret))
    covered = {
        place
        for start in range(len(text) - size + 1)
        if text[start : start + size] in pieces
        for place in range(start, start + size)
    }
    return "".join(
        "" if place in covered and place - 1 in covered else "[key]" if place in covered else letter
        for place, letter in enumerate(text)
    )


@lru_cache(maxsize=8)
def _pieces(secret: str) -> frozenset[str]:
    size = min(_PIECE, len(secret))
    return frozenset(secret[start : start + size] for start in range(len(secret) - size + 1)) - {""}
