"""An API key does not get into a report, though an endpoint quotes it."""


def masked(text: str, secret: str) -> str:
    """The text with [key] in place of the secret and of every piece of it of 8 or more characters."""
    size = min(8, len(secret))
    pieces = {secret[start : start + size] for start in range(len(secret) - size + 1)} - {""}
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
