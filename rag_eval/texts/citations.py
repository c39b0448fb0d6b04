"""Citations in a response: numbers in square brackets that name chunks of its context. Pure, and without a judge.

`rag_eval.texts.brackets` knows their forms and places; `(1)`, `a[0]`, code, formulas and years are none. Whether a bot
cites at all, and whether it counts chunks from 0 or from 1, is known from all of its responses together: see `Habit`.
"""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import accumulate
from typing import NamedTuple

from rag_eval.texts.brackets import (
    SOURCE_NAME,
    SOURCES,
    Mark,
    begins_with_mark,
    has_number,
    leads_in,
    marks,
    unmasked,
)
from rag_eval.texts.source_lists import without_lists_of_sources
from rag_eval.texts.words import sentences


class Habit(NamedTuple):
    """How one bot uses brackets: counts over its responses that have several chunks to cite."""

    responses: int = 0
    bracketed: int = 0
    """Responses with a number in brackets, of whatever kind."""
    citing: int = 0
    """Responses with a number in brackets that names a chunk."""
    first: int = 0
    """Responses that cite 0, which only a bot that counts from 0 can mean."""
    last: int = 0
    """Responses that cite the number of chunks, which only a bot that counts from 1 can mean."""
    leading: int = 0
    """Responses that cite before each sentence, as in "[2] Returns are free. [1] Loans last four weeks."."""
    numbered: int = 0
    """Responses that cite so, or number steps, as in "[1] Returns are free. [2] Loans last four weeks."."""

    def plus(self, other: "Habit") -> "Habit":
        return Habit(*(mine + others for mine, others in zip(self, other, strict=True)))

    @property
    def cites(self) -> bool:
        """Most responses with numbers in brackets use them as citations, and these are more than a rare exception."""
        citing = self._all_citing
        return 2 * citing > self.bracketed and _SOMETIMES * citing >= self.responses

    @property
    def is_doubtful(self) -> bool:
        """The bot does not count as one that cites, although more than a few of its responses name chunks."""
        return not self.cites and self.citing >= _A_FEW and _SOMETIMES * self.citing >= self.responses

    @property
    def is_usual(self) -> bool:
        """The bot cites so often that a response without a citation is worth a flag."""
        return self.cites and _OFTEN * self._all_citing >= self.responses

    @property
    def _all_citing(self) -> int:
        """Of a bot that cites before its sentences, those count that could also be numbered steps."""
        return self.citing + (self.numbered if self.leads else 0)

    @property
    def base(self) -> int:
        """The number of the first chunk: 0 or 1."""
        return 0 if self.first > self.last and _OFTEN * self.first >= self.citing else 1

    @property
    def leads(self) -> bool:
        """The bot cites before its sentences, in responses that begin with a citation."""
        return self.leading > 0 and _OFTEN * self.leading >= self.citing


_OFTEN, _SOMETIMES = 4, 10
"""One response of so many."""
_A_FEW = 3
"""Responses that may name a chunk by chance."""


def joined(first: Mapping[str, Habit], second: Mapping[str, Habit]) -> dict[str, Habit]:
    """The habits over two parts of one input, by bot."""
    bots = dict.fromkeys((*first, *second))
    return {bot: first.get(bot, Habit()).plus(second.get(bot, Habit())) for bot in bots}


class Citation(NamedTuple):
    """One number that a sentence cites."""

    number: int
    """As the response writes it."""
    chunk: int
    """Rank of the chunk, from 1; 0 if there is no such chunk."""
    statement: str
    """The part of the sentence between it and another citation, which is the whole sentence if there is none."""


class CitingSentence(NamedTuple):
    """A sentence of a response and what it cites."""

    text: str
    """Without citations."""
    marked: str
    """With the ranks of the cited chunks in brackets, from 1, in place of the response's own numbers."""
    citations: tuple[Citation, ...]
    """Each chunk once."""

    @property
    def chunks(self) -> tuple[int, ...]:
        """Ranks of the cited chunks that exist, in the order in which they are cited."""
        return tuple(each.chunk for each in self.citations if each.chunk)


def habit_of(response: str, chunks: Sequence[str] | None) -> Habit:
    """What one response adds to the habit of its bot."""
    if not chunks or len(chunks) == 1 or not response.strip():
        return Habit()
    if not has_number(response):
        return Habit(1)
    labels = _labels(chunks)
    known = labels or dict.fromkeys(range(len(chunks) + 1), 0)
    plain = unmasked(response)
    leads = leads_in(plain)
    found = [
        mark for mark in marks(plain, leads=leads, chunks=chunks) if not _is_copied(response, mark, chunks)
    ]
    cited = {number for mark in found for number in mark.numbers} & known.keys()
    is_index = any(mark.is_index for mark in found)
    if not cited and begins_with_mark(plain):
        before = {
            number for mark in marks(plain, leads=True, chunks=chunks) for number in mark.numbers
        } & known.keys()
        return Habit(1, 1, numbered=int(bool(before)))
    return Habit(
        1,
        1,
        int(bool(cited)),
        int(not labels and (is_index or 0 in cited)),
        int(not labels and not is_index and len(chunks) in cited),
        int(leads),
    )


def citing_sentences(
    response: str, chunks: Sequence[str], base: int, *, leads: bool = False
) -> list[CitingSentence]:
    """The sentences of a response of a bot that cites, with their citations.

    `base` is the number of its first chunk. `leads` says that the bot cites before its sentences, in responses that
    begin with a citation. Entries of a list of sources are left out.
    """
    ranks = _labels(chunks) or {number: number - base + 1 for number in range(base, base + len(chunks))}
    copied = {int(number) for chunk in chunks for number in _COPIED.findall(chunk)}
    far = _FAR * max(len(chunks), *ranks, 1)
    cited = [
        (mark, numbers)
        for mark in marks(unmasked(response), leads=leads, chunks=chunks)
        if (numbers := _cited(mark, ranks, copied, far)) and not _is_copied(response, mark, chunks)
    ]
    plain = without_lists_of_sources(_with_placeholders(response, [mark for mark, _ in cited]), _PLACEHOLDER)
    numbers_of = [numbers for _, numbers in cited]
    found: list[CitingSentence] = []
    for sentence in sentences(plain):
        text = _without(sentence)
        if _LISTS_SOURCES.match(text) and not _NAMES_SOURCES.fullmatch(text):
            continue
        read = _read(sentence, numbers_of, ranks)
        if found and read.citations and _NAMES_SOURCES.fullmatch(read.text):
            before = found.pop()  # "Source: [1]" belongs to what it follows
            more = [each._replace(statement=before.text) for each in read.citations]
            marked = before.marked + "".join(f" [{each.chunk}]" for each in more if each.chunk)
            read = CitingSentence(before.text, marked, _once((*before.citations, *more)))
        found.append(read)
    return found


def _read(sentence: str, numbers_of: Sequence[Sequence[int]], ranks: Mapping[int, int]) -> CitingSentence:
    parts = _PLACEHOLDER.split(sentence)
    places = list(map(int, parts[1::2]))
    statements = _cited_parts([_said(part) for part in parts[::2]])
    citations = [
        Citation(number, ranks.get(number, 0), statement)
        for place, statement in zip(places, statements, strict=True)
        for number in numbers_of[place]
    ]
    marked = _PLACEHOLDER.sub(
        lambda place: "".join(
            f" [{ranks[number]}]" for number in numbers_of[int(place[1])] if number in ranks
        ),
        sentence,
    ).lstrip()
    text = _without(sentence)
    if len({each.statement for each in citations}) == 1:
        citations = [each._replace(statement=text) for each in citations]
    return CitingSentence(text, marked, _once(citations))


def _said(part: str) -> str:
    """What stands between two citations; nothing if it only joins them, as in "[1] and [2]"."""
    said = _without(part).strip(_BETWEEN)
    return "" if said.lower() in _AND else said


def _cited_parts(parts: Sequence[str]) -> list[str]:
    """Between two parts of a sentence is a citation: for each, the part that it is for.

    It is the last one with words before it; or the next one after it, if the sentence begins with a citation.
    """
    before = list(accumulate(parts[:-1], _kept))
    if not before or not (_NAMES_SOURCES.fullmatch(parts[0]) or _REFERS.fullmatch(parts[0])):
        return before
    after = list(accumulate(reversed(parts[1:]), _kept))
    return [later or earlier for earlier, later in zip(before, reversed(after), strict=True)]


def _kept(earlier: str, part: str) -> str:
    return part or earlier


def _once(citations: Sequence[Citation]) -> tuple[Citation, ...]:
    first: dict[tuple[int, int], Citation] = {}
    for each in citations:
        first.setdefault((each.chunk, 0 if each.chunk else each.number), each)
    return tuple(first.values())


# Numbers


def _labels(chunks: Sequence[str]) -> dict[int, int]:
    """The ranks of the chunks by the numbers that they begin with; none unless each has one of its own."""
    found = [_LABEL.match(chunk) for chunk in chunks]
    labels = {int(label[1]): rank for rank, label in enumerate(found, 1) if label}
    return labels if len(labels) == len(chunks) else {}


_LABEL = re.compile(rf"\s*\[ ?(?:\^|{SOURCE_NAME})?(0|[1-9]\d{{0,2}}) ?\]")


def _cited(mark: Mark, ranks: Mapping[int, int], copied: Set[int], far: int) -> Sequence[int]:
    """The numbers of a mark if it is a citation, whether or not there are such chunks; otherwise none.

    `copied` are the numbers in brackets in the chunks' own texts, such as those of an encyclopedia. A number above
    `far` is something else, such as a year.
    """
    numbers: list[int] = []
    for first, last in mark.ranges:
        if first < last and first not in ranks:
            return ()
        numbers += [number for number in range(first, last) if number in ranks]
        numbers.append(last)
    unknown = [number for number in numbers if number not in ranks]
    return () if any(number > far or number == 0 or number in copied for number in unknown) else numbers


def _is_copied(response: str, mark: Mark, chunks: Sequence[str]) -> bool:
    """Whether a chunk has the mark after the same words: the response quotes it with its own references."""
    words = response[max(0, mark.start - _QUOTED) : mark.end]
    return len(words) > mark.end - mark.start and any(words in chunk for chunk in chunks)


_QUOTED = 12
"""Characters before a mark."""
_FAR = 10
"""So many times the number of chunks."""
_COPIED = re.compile(r"\[(\d{1,3})\]")


# Sentences

_NAMES_SOURCES = re.compile(rf"\W*(?:{SOURCES}\W*)?", re.IGNORECASE)
_REFERS = re.compile(
    r"(?:as\s+)?(?:stated|described|shown|explained|said|noted|mentioned|seen|set out|listed|specified|reported)"
    r"\s+(?:in|by|at|under)|based on|per|wie\s+in|gemäß|comme\s+indiqué\s+dans|como\s+se\s+(?:indica|dice)\s+en",
    re.IGNORECASE,
)
"""Words that lead to a citation and are no statement, as in "As stated in [1], …"."""
_AND = frozenset(
    (
        "and", "und", "et", "y", "e", "en", "och", "oraz", "и", "和", "及", "と", "및", "و", "-", "–",
        "or", "oder", "ou", "o", "или", "或",
    )
)  # fmt: skip
"""Words between two citations that are for the same words."""
_LISTS_SOURCES = re.compile(rf"\W*{SOURCES}\W*[:：]|\W*\[\^?\d+\]", re.IGNORECASE)


_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_STRAY = re.compile(f"[{_OPEN}{_CLOSE}]")
_ENDING = ".!?…。！？؟।,;\"'”’»)*_"
_BETWEEN = " \t,;.:&()"
_JOINT = re.compile(
    rf"{_CLOSE}[ \t,;&]*(?:{'|'.join(map(re.escape, sorted(_AND)))})[ \t,;&]*{_OPEN}", re.IGNORECASE
)
"""What joins two citations for the same words."""
_EMPTY = re.compile(rf"\s*\(\s*(?:{SOURCES}\s*:?)?\s*\)", re.IGNORECASE)


def _with_placeholders(response: str, marks: Sequence[Mark]) -> str:
    """The response with a placeholder in place of each mark, before the full stop of the sentence that it follows."""
    parts: list[str] = []
    last, punctuation = 0, ""
    for number, mark in enumerate(marks):
        between = _STRAY.sub(" ", response[last : mark.start])
        if mark.leads:
            parts += (punctuation, between)
            punctuation = ""
        elif between.strip(" \t,;&") or not parts:
            parts.append(punctuation)
            kept = between.rstrip()
            bare = kept.rstrip(_ENDING)
            punctuation = kept[len(bare) :]
            parts.append(bare.rstrip())
        parts.append(f"{_OPEN}{number}{_CLOSE}")
        last = mark.end
    return "".join((*parts, punctuation, _STRAY.sub(" ", response[last:])))


def _without(sentence: str) -> str:
    return " ".join(_EMPTY.sub("", _PLACEHOLDER.sub("", _JOINT.sub(_CLOSE + _OPEN, sentence))).split())
