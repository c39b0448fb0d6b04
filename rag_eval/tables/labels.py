"""Human labels: what a person wrote about a response, as a number. Pure."""

import re

_YES, _NO = ("yes", "true", "pass"), ("no", "false", "fail")


def parse_score(text: str) -> float:
    """A metric's label, 0..1. ValueError for anything else, such as 80 or 0,8."""
    if _DECIMAL.fullmatch(text.strip()) and 0.0 <= (value := float(text)) <= 1.0:
        return value
    raise ValueError(f"{_shown(text)} is not a label; expected a number from 0 to 1")


def parse_verdict(text: str) -> float:
    """A criterion's label: 1.0 for yes, true, pass and 1, 0.0 for no, false, fail and 0, in any case."""
    word = text.strip().casefold()
    if word in _YES or _ONE.fullmatch(word):
        return 1.0
    if word in _NO or _ZERO.fullmatch(word):
        return 0.0
    raise ValueError(f"{_shown(text)} is not a label; expected yes or no (or true, false, pass, fail, 1, 0)")


_ONE, _ZERO = re.compile(r"1(?:\.0+)?"), re.compile(r"0(?:\.0+)?")
"""Data frames write whole numbers with a fraction in a column where some are missing."""
_DECIMAL = re.compile(r"(?:\d++(?:\.\d++)?|\.\d++)(?:e-\d++)?", re.ASCII | re.IGNORECASE)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
