"""What a table and its columns are in every output, and the kinds of columns that several tables have."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from rag_eval.records import CaseResult, Outcome, RunFacts, Score
from rag_eval.report.notes import Note
from rag_eval.report.styles import LINE_HEIGHT, Look
from rag_eval.results.summary import Mean

if TYPE_CHECKING:
    from rag_eval.report.worksheet import WrittenSheet
    from rag_eval.results.intervals import Interval


class _OfBot(Protocol):
    """Anything about one bot."""

    @property
    def bot(self) -> str: ...


Item = TypeVar("Item")
Source = TypeVar("Source")
"""What the lines of a table are taken from."""
BotItem = TypeVar("BotItem", bound=_OfBot)
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Place:
    """A cell that a link leads to: made of our own names and numbers only."""

    sheet: str
    row: int
    """Counted from 0, as the column."""
    column: int


class Cell(NamedTuple):
    """What one cell shows. Without a value it is empty, whatever its look. A tuple, which is made fast."""

    value: Value
    look: Look
    note: Note | None = None
    link: "Place | None" = None
    over: int | None = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """How a page shows a table."""

    title: str
    rank: int = 0
    """Parts with a lower one come first; those with the same are in the order of the tables."""
    is_open: bool = True
    """Or folded until the reader opens it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnyTable:
    """What tables have in common. Heights are in points."""

    name: str
    """Of its sheet; the name of its CSV file follows from it."""
    is_wanted: Callable[[RunFacts, Collection[str]], bool] = lambda facts, asked: True
    """By the facts of a run, and by what was asked for: keys of [report], and "baseline" if the run has one."""
    header_height: float = 3 * LINE_HEIGHT
    line_height: float = LINE_HEIGHT
    frozen: int = 2
    """Columns that stay in sight."""

    @property
    def file_name(self) -> str:
        return f"{self.name.lower().replace(' ', '-')}.csv"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportTable(AnyTable, Generic[Source, Item]):
    """A table that is written once its source is complete."""

    columns: Callable[[Source], Sequence[Column[Item]]]
    lines: Callable[[Source], Iterable[Item]]
    group_of: Callable[[Item], object] | None = None
    """Lines are drawn on the sheet between groups of rows."""
    notes: Callable[[Source], Sequence[str]] = lambda source: ()
    """Sentences below the table."""
    write: "Callable[[WrittenSheet[Source, Item], Source], object] | None" = None
    """Writes a sheet that has more than the table and the notes."""
    page: PagePart | None = None
    """None if the page does not show it."""
    json: Mapping[str, Callable[[Source], object]] = field(default_factory=dict)
    """Members of the JSON document."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedTable(AnyTable, Generic[Item]):
    """A table that is written while the results come."""

    columns: Callable[[RunFacts], Sequence[Column[Item]]]
    lines: Callable[[RunFacts], Callable[[CaseResult | None], Iterable[Item]]]
    """Makes a function that is told of every result in order, and of None at the end, and returns the lines which that
    completes."""
    noun: str
    """What a line is, in the plural."""


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


def narrow_column(
    header: str, look: Look, value: Callable[[Item], Value], about: str = "", *, is_folded: bool = False
) -> Column[Item]:
    """A plain column as wide as a number."""
    return plain_column(header, NUMBER_WIDTH, look, value, about, is_folded=is_folded)


def grey_column(
    header: str, width: float, look: Look, value: Callable[[Item], float | None], about: str = ""
) -> Column[Item]:
    """A column of numbers that is grey where there is none."""
    return Column(header, width, lambda item: grey_without(value(item), look), about=about)


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
    return Cell(mean.value, Look.SCORE, Note(_counts(mean)), over=mean.scored)


def mean_column(
    metric: str,
    label: str,
    facts: RunFacts,
    mean_of: Callable[[Item], Mean],
    rqs_of: Callable[[Item], Mean],
) -> Column[Item]:
    """The means of a metric, one a line; grey when it is switched off."""
    if metric not in facts.metrics:
        return switched_off(label)

    def cell(item: Item) -> Cell:
        return mean_cell(mean_of(item), rqs_of(item))

    return Column(
        label,
        NUMBER_WIDTH,
        cell,
        about=_ABOUT_COUNT,
        threshold=metric,
        count=lambda item: mean_of(item).scored,
    )


def amount_cell(value: float | None, note: Note | None = None, count: int | None = None) -> Cell:
    """A latency or a cost, or a difference of two; empty where it is not known."""
    look = Look.LARGE_AMOUNT if value is not None and abs(value) >= _LARGE else Look.AMOUNT
    return Cell(value, look, note, over=count)


_LARGE = 100


def grey_without(value: float | None, look: Look) -> Cell:
    """A cell that is grey where there is no value."""
    return Cell(value, Look.NOT_APPLICABLE if value is None else look)


def switched_off(header: str, *, is_folded: bool = False) -> Column[Item]:
    """A grey column, for a metric that the run does not have."""
    return Column(
        header,
        NUMBER_WIDTH,
        lambda _: Cell(None, Look.NOT_APPLICABLE),
        about="Switched off.",
        is_folded=is_folded,
    )


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


_ABOUT_COUNT = (
    "Mean over the same queries as RQS. If it is over other queries, their number follows in brackets."
)
_NUMBERS = {Look.SCORE, Look.RQS, Look.GAP, Look.COUNT, Look.PERCENT, Look.MARK, Look.UNRELIABLE}
_LOOK_OF_OUTCOME = {
    Outcome.SCORED: Look.SCORE,
    Outcome.NOT_APPLICABLE: Look.NOT_APPLICABLE,
    Outcome.FAILED: Look.FAILED,
}
