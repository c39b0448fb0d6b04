"""The kind of answer that a query asks for: a number, a date or a name."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rag_eval.texts.words import STOP_WORDS, normalise, words


class _Kind(NamedTuple):
    """A kind of answer: its name, the queries that ask for it, and whether a response to a query gives it."""

    name: str
    asked: re.Pattern[str]
    is_given: Callable[[str, str], bool]


@lru_cache(maxsize=2)
def expected_kind(query: str) -> _Kind | None:
    """What the query asks for, or None when its wording does not tell. English wording only."""
    wording = normalise(query)
    return next((kind for kind in _KINDS if kind.asked.search(wording)), None)


def _gives_name(response: str, query: str) -> bool:
    """A capitalised word that is neither in the query nor a function word; other scripts pass."""
    if not response.isascii():
        return True
    capitalised = (name.lower() for name in _CAPITALISED.findall(response))
    return any(name not in STOP_WORDS and name not in _words_of(query) for name in capitalised)


@lru_cache(maxsize=2)
def _words_of(query: str) -> frozenset[str]:
    return frozenset(words(query))


_NUMBER = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|several|percent)\b"
)
_DATE = re.compile(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|century|decade)\b"
)
_CAPITALISED = re.compile(r"\b[A-Z][\w'\-]+")
_KINDS = (
    _Kind(
        "number",
        re.compile(
            r"\bhow (?:many|much|long|far|old|often|tall|big|large|high|deep)\b"
            r"|\b(?:what|which) (?:percent|percentage|number|amount)\b"
        ),
        lambda response, _: bool(_NUMBER.search(normalise(response))),
    ),
    _Kind(
        "date",
        re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|century|decade)\b"),
        lambda response, _: bool(_DATE.search(normalise(response))),
    ),
    _Kind(
        "name",
        re.compile(
            r"\b(?:who|whom|whose|where)\b|\b(?:what|which) (?:city|country|state|place|county|town|river|team|company"
            r"|person|actor|singer|band)\b"
        ),
        _gives_name,
    ),
)
