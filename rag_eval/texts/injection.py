"""Marks of text that seems to address the judge rather than the reader. Pure, and never part of a score.

These are heuristics for a person who looks through the report: a flag says that a text is worth a look, and
the lack of one proves nothing. Instructions are looked for in English, German, French, Spanish, Portuguese,
Italian, Russian, Chinese and Japanese. The patterns are in injection.toml.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from rag_eval.records import Case, Row
from rag_eval.texts.words import compatible

INSTRUCTION = "instruction to the judge"
VERDICT = "planted verdict"
ROLE_MARKER = "role marker"
INVISIBLE = "invisible characters"


def flags_of(case: Case) -> tuple[str, ...]:
    """Every flag of a case after the part that it was found in, such as 'response: planted verdict'."""
    return tuple(f"{part}: {flag}" for part, text in _parts(case) for flag in find_flags(text))


def flags_in(rows: Iterable[Row]) -> dict[tuple[int, str], tuple[str, ...]]:
    """By row and bot: the flags of the cases that have some."""
    found = ((case, flags_of(case)) for row in rows for case in row.cases)
    return {(case.row, case.bot): flags for case, flags in found if flags}


def _parts(case: Case) -> Iterator[tuple[str, str]]:
    for number, turn in enumerate(case.history, 1):
        yield f"earlier turn {number}", turn.content
    yield "query", case.query
    yield "response", case.response
    yield "ground truth", case.reference or ""
    for rank, chunk in enumerate(case.chunks or (), 1):
        yield f"chunk {rank}", chunk


@lru_cache(maxsize=128)  # the bots of a row share their query, reference and often their chunks
def find_flags(text: str) -> tuple[str, ...]:
    """The kinds of marks that a text bears, each once and in a fixed order; () for an ordinary text.

    What is looked for is found through upper case, full-width letters, line breaks, and invisible characters
    inside words.
    """
    plain = _plain(text)
    words = _words_in(plain)
    found = [flag for flag, rules in _rules().items() if any(rule.applies_to(plain, words) for rule in rules)]
    if not text.isascii() and _hides_something(text):
        found.append(INVISIBLE)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern, and words of which it cannot do without one: looking for these first is many times faster."""

    words: frozenset[str]
    pattern: re.Pattern[str]

    def applies_to(self, plain: str, words: Set[str]) -> bool:
        """`words` are those of all rules that the text holds."""
        return not self.words.isdisjoint(words) and self.pattern.search(plain) is not None


def _plain(text: str) -> str:
    """The text in lower case and one form, without what cannot be seen."""
    if text.isascii():
        return text.lower()
    return compatible("NFKC", _UNSEEN.sub("", text)).lower().replace("’", "'")


def _words_in(plain: str) -> set[str]:
    """Those of all rules' words that a text holds."""
    return {word for word in _words(is_ascii=plain.isascii()) if word in plain}


def _hides_something(text: str) -> bool:
    text = _FLAG_EMOJI.sub("", text)
    return bool(_HIDDEN.search(text)) or bool(_DIRECTION.search(text) and not _RIGHT_TO_LEFT.search(text))


_ZERO_WIDTH = "\u200b-\u200d\u2060-\u2064\ufeff"
_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = re.compile(f"[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069{_ZERO_WIDTH}{_TAGS}{_SELECTORS}]")
_FLAG_EMOJI = re.compile(f"\U0001f3f4[{_TAGS}]+")
# Single zero-width characters have their place between Persian, Indic and Thai letters and in emoji, and the
# web is full of them at the ends of words. In the middle of a Latin word, or several in a row, they hide.
_HIDDEN = re.compile(
    f"[{_TAGS}\u202d\u202e]|(?<=[A-Za-z0-9])[{_ZERO_WIDTH}]+(?=[A-Za-z0-9])|[{_ZERO_WIDTH}]{{3}}"
    f"|[{_SELECTORS}]{{2}}"
)
_DIRECTION = re.compile("[\u202a\u202b\u2066-\u2069]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


@cache  # not while the module is imported: a run with the offline judge has no use for them
def _rules() -> Mapping[str, Sequence[_Rule]]:
    """By the mark that they stand for."""
    read = tomllib.loads(files(__package__).joinpath("injection.toml").read_text(encoding="utf-8"))
    parts: dict[str, str] = {}

    def filled_in(pattern: str) -> str:
        return re.sub(r"\{([A-Z_]+)\}", lambda name: parts[name[1]], pattern)

    for name, pattern in read["parts"].items():  # a part may name those before it
        parts[name] = filled_in(pattern)
    kinds = {INSTRUCTION: "instruction", VERDICT: "verdict", ROLE_MARKER: "role_marker"}
    return {
        mark: [
            _Rule(frozenset(rule["words"].split()), re.compile(filled_in(rule["pattern"])))
            for rule in read[kind]
        ]
        for mark, kind in kinds.items()
    }


@cache
def _words(*, is_ascii: bool) -> Sequence[str]:
    words = {word for rules in _rules().values() for rule in rules for word in rule.words}
    return sorted(word for word in words if word.isascii() or not is_ascii)
