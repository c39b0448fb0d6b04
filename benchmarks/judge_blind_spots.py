"""What faithfulness and context recall notice when a supported text is made wrong on purpose.

    python benchmarks/judge_blind_spots.py FIXTURES_DIR

Supported texts (label 1) are changed in one way each, with a seed; a judge that sees the fault scores the
changed text lower. FIXTURES_DIR holds faithfulness.jsonl and context_recall.jsonl.
"""

import random
import re
from collections.abc import Callable
from typing import NamedTuple


class Supported(NamedTuple):
    """A text that people found supported by the chunks."""

    dataset: str
    query: str
    text: str
    chunks: tuple[str, ...]


Change = Callable[[Supported, random.Random, list[Supported]], str | None]


def negate(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """'not' after the first auxiliary verb of a random sentence that has one; an existing negation is removed."""
    places = list(_AUXILIARY.finditer(item.text))
    if not places:
        return None
    place = rng.choice(places)
    if place.group(2):
        return item.text[: place.end(1)] + item.text[place.end() :]
    return item.text[: place.end()] + " not" + item.text[place.end() :]


def change_number(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One number that the chunks state becomes another one of as many digits that they do not state."""
    stated = set(_NUMBER.findall(" ".join(item.chunks)))
    places = [place for place in _NUMBER.finditer(item.text) if place.group() in stated]
    if not places:
        return None
    place = rng.choice(places)
    digits = len(place.group())
    choices = [n for n in map(str, range(10 ** (digits - 1), 10**digits)) if n not in stated]
    return item.text[: place.start()] + rng.choice(choices) + item.text[place.end() :] if choices else None


def exchange_number(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One number becomes another number of the same chunks."""
    stated = set(_NUMBER.findall(" ".join(item.chunks)))
    places = [place for place in _NUMBER.finditer(item.text) if place.group() in stated]
    choices = sorted(stated - set(_NUMBER.findall(item.text)))
    if not places or not choices:
        return None
    place = rng.choice(places)
    return item.text[: place.start()] + rng.choice(choices) + item.text[place.end() :]


def replace_name(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """One name inside a sentence becomes a name of another text that the chunks do not hold."""
    places = list(_NAME.finditer(item.text))
    stated = " ".join(item.chunks)
    strangers = [name for name in _NAME.findall(rng.choice(others).text) if name not in stated]
    if not places or not strangers:
        return None
    place = rng.choice(places)
    return item.text[: place.start()] + rng.choice(strangers) + item.text[place.end() :]


def append_sentence(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """A sentence of another text is added."""
    stranger = rng.choice([other for other in others if other.chunks != item.chunks])
    return f"{item.text.rstrip()} {_SENTENCE_END.split(stranger.text.strip())[0]}"


def swap_words(item: Supported, rng: random.Random, others: list[Supported]) -> str | None:
    """Two different names or numbers of one sentence change places; without two of them, two longer words do."""
    for pattern in (_NAME_OR_NUMBER, _LONGER_WORD):
        places = list(pattern.finditer(item.text))
        pairs = [(a, b) for a in places for b in places if a.end() < b.start() and a.group() != b.group()]
        if pairs:
            a, b = rng.choice(pairs)
            return (
                item.text[: a.start()]
                + b.group()
                + item.text[a.end() : b.start()]
                + a.group()
                + item.text[b.end() :]
            )
    return None


CHANGES: dict[str, Change] = {
    "negation inserted or removed": negate,
    "number changed": change_number,
    "number taken from elsewhere in the chunks": exchange_number,
    "name replaced": replace_name,
    "unsupported sentence appended": append_sentence,
    "two words swapped": swap_words,
}

_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|has|have|had|does|did|do|may|must|should)\b( not\b)?"
)
_NUMBER = re.compile(r"(?<![\w.,])\d{1,4}(?![\w,]|\.\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_NAME_OR_NUMBER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}|(?<![\w.,])\d{1,4}(?![\w,]|\.\d)")
_LONGER_WORD = re.compile(r"\b[a-z]{5,}\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
