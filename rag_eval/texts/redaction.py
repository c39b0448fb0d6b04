"""Personal data in texts that are about to leave the machine: replaced by marks, and counted.

What is recognised is meant to be certain rather than complete: a number that may be a date, a price, a range or an
id stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace

from rag_eval.records import Case, Row

EMAIL, PHONE = "email", "phone"
_CUSTOM = "redacted"
"""What stands in the mark of the user's own pattern."""

_EMAIL = (
    # From the first character that may belong to an address, so that a long word is looked at once.
    r"(?<![\w.%+'-])(?P<kept>[.%+'-]*+)\w[\w.%+'-]*+@(?:[\w-]++\.)+(?:xn--[\w-]+|[^\W\d_]{2,})"
)
_GAP = r"(?:[ ]?[/‐‑–-][ ]?|[ .\u00a0\u202f]|\)[ .-]?|[ ]?\()"
_PHONE = rf"""(?xi)
    (?<![\w$€£¥#+]) (?<!\w[-_/]) (?<!\d[.:])
    (?:
        \+ [ ]? \(? \d (?:{_GAP}?\d){{6,14}}                             # +49 30 1234567, +14155550123
      | (?!\d{{1,2}}[./-]\d{{1,2}}[./-](?:19|20)\d\d(?!\d))              # no 01.05.2024
        (?!\d{{1,2}}[./](?:19|20)\d\d(?!\d))                             # no 05/2024
        (?!\d++(?!{_GAP}\d))                                            # no 0123456789
        (?:\((?=\d+\)))? 0\d (?:{_GAP}?\d){{5,13}}                         # 030 1234567, (0171) 123-4567
      | \( (?!(?:19|20)\d\d\)) \d{{2,5}} \) [ ]? \d{{3,5}} [ .-] \d{{3,5}}   # (555) 123-4567
      | (?:1[ .-])? \d{{3}} [ .-] \d{{3}} [ .-] \d{{4}}                  # 555-123-4567
      | 1[3-9]\d [ -] \d{{4}} [ -] \d{{4}}                               # 138 1234 5678
      | (?<!,) [2-9]\d\d - (?!\d\d00) \d{{4}}                            # 555-1234, but no range 500-1000
    )
    (?: [ ]? (?:x|ext\.?) [ ]? \d{{1,5}} )?
    (?!\w) (?![-_]\w) (?![.:]\d)
    """
_PATTERNS = {EMAIL: _EMAIL, PHONE: _PHONE}  # compiled where they are needed: few runs redact
KINDS = tuple(_PATTERNS)
_NAMES = {EMAIL: "e-mail addresses", PHONE: "phone numbers", _CUSTOM: "matches of redact_pattern"}


class Redactor:
    """Replaces what it was told to. The same text always becomes the same text."""

    def __init__(self, kinds: Collection[str] = (), pattern: str = "") -> None:
        """`kinds` are some of KINDS, `pattern` is a regular expression, empty for none."""
        self.counts: Counter[str] = Counter()
        """Replacements by kind; those in a text that occurs several times count once."""
        self._patterns = {kind: re.compile(_PATTERNS[kind]) for kind in KINDS if kind in kinds}
        if pattern:
            self._patterns[_CUSTOM] = re.compile(pattern)
        self._texts: dict[str, str] = {}
        self._chunks: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._patterns)

    def row(self, row: Row) -> Row:
        if not self:
            return row
        return replace(row, query=self.text(row.query), cases=tuple(map(self.case, row.cases)))

    def case(self, case: Case) -> Case:
        """The case as others may see it; chunks that cases share stay shared."""
        if not self:
            return case
        return replace(
            case,
            query=self.text(case.query),
            response=self.text(case.response),
            reference=None if case.reference is None else self.text(case.reference),
            chunks=None if case.chunks is None else self._all(case.chunks),
            history=tuple(replace(turn, content=self.text(turn.content)) for turn in case.history),
        )

    def text(self, text: str) -> str:
        """Addresses and numbers first, so that the user's pattern cannot tear one in two."""
        if text not in self._texts:
            redacted = text
            for kind, pattern in self._patterns.items():
                redacted = pattern.sub(self._mark(kind), redacted)
            self._texts[text] = redacted
        return self._texts[text]

    @property
    def subjects(self) -> str:
        """What is looked for, in words."""
        return ", ".join(_NAMES[kind] for kind in self._patterns)

    def summary(self) -> str:
        """What was replaced, in one sentence."""
        found = ", ".join(f"{_NAMES[kind]}: {self.counts[kind]}" for kind in self._patterns)
        return f"Redacted before anything was sent, each distinct text counted once: {found}."

    def _all(self, chunks: tuple[str, ...]) -> tuple[str, ...]:
        if chunks not in self._chunks:
            self._chunks[chunks] = tuple(map(self.text, chunks))
        return self._chunks[chunks]

    def _mark(self, kind: str) -> Callable[[re.Match[str]], str]:
        def mark(found: re.Match[str]) -> str:
            if not found[0]:
                return ""  # a pattern may match between two characters, where there is nothing to hide
            self.counts[kind] += 1
            return f"{found.groupdict().get('kept', '') if kind == EMAIL else ''}[{kind}]"

        return mark
