"""What a column of a sheet is, and the kinds of columns that several sheets have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rag_eval.records import Outcome, RunFacts, Score
from rag_eval.report.notes import Note
from rag_eval.report.styles import Look
from rag_eval.results.summary import Mean

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval


class _OfBot(Protocol):
    """Anything about one bot."""

    @property
    def bot(self) -> str: ...


Item = TypeVar("Item")
BotItem = TypeVar("BotItem", bound=_OfBot)
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Place:
    """A cell that a link leads to: made of our own names and numbers only."""

    sheet: str
    row: int
    """Counted from 0, as the column."""
    column: int


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell shows. Without a value it is empty, whatever its look."""

    value: Value
    look: Look
    note: Note | None = None
    link: "Place | None" = None
    count: int | None = None
    """What a mean was taken over, shown after it in brackets."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """A column of a sheet whose lines are `Item`s."""

    header: str
    width: float
    """In characters."""
    cell: Callable[[Item], Cell]
    header_look: Look = Look.NUMBER_HEADER
    about: str = ""
    """What a reader should know about the column; a note on its header."""
    threshold: str = ""
    """Name of the score whose threshold colours the column; empty when none does."""
    is_hidden: bool = False
    """There for a chart alone."""
    is_folded: bool = False
    """In an outline group that is closed until the reader opens it."""
    count: Callable[[Item], int] | None = None
    """What each mean of the column was taken over. Sheets show it in the cell, CSV files in a column of its own."""


NUMBER_WIDTH = 7.0
"""Of a column of numbers, in characters; its header wraps."""


def plain_column(
    header: str,
    width: float,
    look: Look,
    value: Callable[[Item], Value],
    about: str = "",
    *,
    is_folded: bool = False,
) -> Column[Item]:
    """A column whose cells all look the same."""
    header_look = Look.NUMBER_HEADER if look in _NUMBERS else Look.HEADER
    return Column(
        header, width, lambda item: Cell(value(item), look), header_look, about, is_folded=is_folded
    )


def interval_columns(
    what: str,
    width: float,
    look: Look,
    interval_of: Callable[[Item], "Interval | None"],
    about: str = "",
) -> tuple[Column[Item], Column[Item]]:
    """The two ends of a 95 % interval; empty where there is none."""

    def column(name: str, end: Callable[["Interval"], float]) -> Column[Item]:
        def value(item: Item) -> Value:
            interval = interval_of(item)
            return end(interval) if interval else None

        return plain_column(f"{what} 95 % {name}".lstrip(), width, look, value, about)

    return column("low", lambda interval: interval.low), column("high", lambda interval: interval.high)


def name_width(facts: RunFacts) -> int:
    """Of a column with the names of the bots."""
    return min(32, max([12, *(len(bot) + 2 for bot in facts.bots)]))


def mean_cell(mean: Mean, rqs: Mean) -> Cell:
    """A mean, with its count and a note on what is missing if it is not over the queries of the row's RQS."""
    if mean.scored == rqs.scored:
        return Cell(mean.value, Look.SCORE)
    return Cell(mean.value, Look.SCORE, Note(_counts(mean)), count=mean.scored)


def look_of(score: Score) -> Look:
    """Of a cell with a score's value."""
    return _LOOK_OF_OUTCOME[score.outcome]


def _counts(mean: Mean) -> str:
    others = [
        f"{count:,} {word}"
        for count, word in ((mean.failed, "failed"), (mean.not_applicable, "not applicable"))
        if count
    ]
    return f"Mean of {mean.scored:,} scored" + (f"; {', '.join(others)}" if others else "") + "."


_NUMBERS = {Look.SCORE, Look.RQS, Look.GAP, Look.COUNT, Look.PERCENT, Look.MARK, Look.UNRELIABLE}
_LOOK_OF_OUTCOME = {
    Outcome.SCORED: Look.SCORE,
    Outcome.NOT_APPLICABLE: Look.NOT_APPLICABLE,
    Outcome.FAILED: Look.FAILED,
}
