"""Cell notes: why a score is low, or why there is none, in plain words."""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from rag_eval.records import Evidence, Outcome, Score
from rag_eval.report.styles import FONT, PALE
from rag_eval.texts.display import decimals, digits_beside, printable, shorten

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

_NOTE_LIMIT = 600
"""Characters of a note on a low score."""


class NoteKind(Enum):
    """What a note is on, and how many of its kind a sheet carries at most."""

    LOW = ("scores below their threshold", 500)
    FAILED = ("failed scores", 1_000)
    NOT_APPLICABLE = ("scores that do not apply", 500)
    REMARK = ("remarks", math.inf)

    def __init__(self, words: str, limit: float) -> None:
        self.words = words
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Note:
    """What a note says. Of one kind, those with the greatest weight are kept."""

    words: str | Callable[[], str]
    """The text, or what builds it: most notes on low scores are not kept, and building them all takes long."""
    kind: NoteKind = NoteKind.REMARK
    weight: float = 0.0

    @property
    def text(self) -> str:
        return self.words if isinstance(self.words, str) else self.words()


def note_on(score: Score, threshold: float | None) -> Note | None:
    """Why `score` has no value, or what speaks against it when it is below `threshold`."""
    if score.outcome is Outcome.FAILED:
        return Note(
            lambda: f"Failed ({score.code}): {shorten(score.reason, _NOTE_LIMIT)}",
            NoteKind.FAILED,
        )
    if score.outcome is Outcome.NOT_APPLICABLE:
        return Note(
            lambda: f"Not applicable: {shorten(score.reason, _NOTE_LIMIT)}",
            NoteKind.NOT_APPLICABLE,
        )
    if score.value is None or threshold is None or score.value >= threshold or not _says_why(score):
        return None
    value = score.value
    return Note(
        lambda: (
            f"{decimals(value, digits_beside(threshold, value))}, below {decimals(threshold)}\n{_why(score)}"
        ),
        NoteKind.LOW,
        -value,
    )


def _says_why(score: Score) -> bool:
    """Whether anything speaks against the score, without its words."""
    is_seen = any(not item.favourable or item.reason.strip() for item in score.evidence)
    return is_seen or bool(printable(score.reason).strip())


def _why(score: Score) -> str:
    """A sentence can be supported where the whole text falls short; then what was not found in it speaks."""
    unfavourable = [item for item in score.evidence if not item.favourable]
    reason = shorten(score.reason, _NOTE_LIMIT)
    if unfavourable or reason:
        return _listed(unfavourable, score.evidence) or reason
    return _listed([item for item in score.evidence if item.reason.strip()], score.evidence)


class SheetNotes:
    """The notes of one sheet: of every kind the weightiest ones, up to the kind's limit."""

    def __init__(self, worksheet: "Worksheet") -> None:
        self._worksheet = worksheet
        self._kept: dict[NoteKind, list[tuple[float, int, int]]] = {kind: [] for kind in NoteKind}
        self._seen = dict.fromkeys(NoteKind, 0)

    def add(self, row: int, column: int, note: Note) -> None:
        """Write `note` on a cell of the row that is being written, if it is among the weightiest so far.

        Of equally weighty ones the earlier stays.
        """
        kept = self._kept[note.kind]
        self._seen[note.kind] += 1
        place = note.weight, -row, -column
        if len(kept) < note.kind.limit:
            heapq.heappush(kept, place)
        elif (lightest := heapq.heappushpop(kept, place)) is place:
            return
        else:
            self._take_back(-lightest[1], -lightest[2])
        _write_note(self._worksheet, row, column, note.text)

    def _take_back(self, row: int, column: int) -> None:
        """XlsxWriter has no way to add a note to a row once the next one is begun, but to remove one."""
        of_row = self._worksheet.comments[row]
        del of_row[column]
        if not of_row:  # what an empty one takes adds up
            del self._worksheet.comments[row]

    def limits_reached(self) -> tuple[str, ...]:
        """One sentence for each kind that had more notes than a sheet carries."""
        return tuple(
            f"Only the {len(kept):,} {'lowest' if kind is NoteKind.LOW else 'first'} of {self._seen[kind]:,} "
            f"{kind.words} have notes."
            for kind, kept in self._kept.items()
            if len(kept) < self._seen[kind]
        )


def _listed(against: Sequence[Evidence], evidence: Sequence[Evidence]) -> str:
    """What speaks against a score, grouped by verdict: '2 of 5 statements: not supported', then which."""
    against = sorted(against, key=_group)
    blocks = [
        _block(subject, verdict, list(items), sum(item.subject == subject for item in evidence))
        for (subject, verdict), items in groupby(against, key=_group)
    ]
    return "\n".join(blocks)


def _group(item: Evidence) -> tuple[str, str]:
    return item.subject, item.verdict


def _block(subject: str, verdict: str, items: Sequence[Evidence], total: int) -> str:
    heading = (
        f"{len(items)} of {total} {shorten(subject, 40)}{'s' if total != 1 else ''}: {shorten(verdict, 60)}"
    )
    lines = [_line(item) for item in items]
    if max(map(len, lines)) <= 24:
        return f"{heading}\n{_within_limit(lines, ', ')}"
    return f"{heading}\n{_within_limit([f'– {line}' for line in lines], chr(10))}"


def _line(item: Evidence) -> str:
    rank = f"#{item.rank} " if item.rank is not None else ""
    reason = f" ({shorten(item.reason, 120)})" if item.reason.strip() else ""
    return f"{rank}{shorten(item.text, 160)}{reason}"


def _within_limit(lines: Sequence[str], separator: str) -> str:
    """As many of `lines` as a note holds, at least one, and how many more there are."""
    kept = 1
    while kept < len(lines) and len(separator.join(lines[: kept + 1])) <= _NOTE_LIMIT:
        kept += 1
    left_out = len(lines) - kept
    return separator.join(lines[:kept]) + (f"\n… and {left_out} more" if left_out else "")


_WIDTH = 340
_CHARACTERS_A_LINE = 52
_LINE_HEIGHT = 16


def _write_note(worksheet: "Worksheet", row: int, column: int, text: str) -> None:
    worksheet.write_comment(
        row,
        column,
        printable(text),
        {
            "author": "RAG Eval",
            "width": _WIDTH,
            "height": 14 + _LINE_HEIGHT * lines_of(text.split("\n"), _CHARACTERS_A_LINE),
            "font_name": FONT,
            "font_size": 9,
            "color": PALE,
        },
    )


def lines_of(paragraphs: Iterable[str], characters: float) -> int:
    """How many lines the paragraphs take, about, when a line holds so many characters."""
    return sum(max(1, math.ceil(len(paragraph) / characters)) for paragraph in paragraphs)
