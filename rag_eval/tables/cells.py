"""Cells: their text, their names, those that hold nothing to judge, and human labels. Pure."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isnan
from typing import NamedTuple

from rag_eval.records import Turn
from rag_eval.tables.input_files import MAX_CELL, too_long


@dataclass(frozen=True, slots=True)
class BadCell:
    """A cell that holds no value that could be judged."""

    problem: str
    """What is wrong and what to do, to be put after the name of the cell."""


NEVER_CALCULATED = BadCell("a formula without a stored result; open the file in Excel and save it")


def error_value(shown: str) -> BadCell:
    """A cell with an error such as #REF!, by what it shows; '' if that is unknown."""
    return BadCell(f"the error value {shown[:60]}".rstrip() + "; correct the formula or clear the cell")


_BadCells = Mapping[int, Mapping[int, BadCell]]
"""By row, counted from 1, and column, counted from 0."""


class UnitRuns:
    """The units of a sheet's cells, in runs of rows: most columns have one."""

    def __init__(self) -> None:
        self._runs: dict[int, list[tuple[int, int, str]]] = {}
        """By column: first row, last row and unit."""

    def add(self, column: int, first: int, last: int, unit: str) -> bool:
        """Add rows, which are skipped unless they are below those of the column; whether that needs another run."""
        runs = self._runs.setdefault(column, [])
        if runs and first <= runs[-1][1]:
            return False
        is_longer = bool(runs) and runs[-1][1:] == (first - 1, unit)
        if is_longer:
            first, _, _ = runs.pop()
        runs.append((first, last, unit))
        return not is_longer

    def of_row(self, row: int) -> Iterator[tuple[int, str]]:
        """Column and unit of the cells of a row that have one."""
        for column, runs in self._runs.items():
            place = bisect_right(runs, row, key=lambda run: run[0]) - 1
            if place >= 0 and row <= runs[place][1]:
                yield column, runs[place][2]


class SheetMarks(NamedTuple):
    """What the reader of a spreadsheet leaves out: errors of a sheet's cells, and units of its numbers."""

    bad: _BadCells
    units: UnitRuns


class JsonText(str):
    """The text of a cell that was a list or a structure in the file, as JSON."""

    __slots__ = ()


class Measured(str):
    """The text of a cell that was a number or a duration in the file, with what the text may not say exactly."""

    __slots__ = ("number", "unit")
    number: float
    unit: str
    """ms for a duration; of a number the unit that its format shows, '' for none."""

    def __new__(cls, text: str, number: float, unit: str = "") -> "Measured":
        measured = super().__new__(cls, text)
        measured.number, measured.unit = number, unit
        return measured


class TimeOfDay(str):
    """The text of a cell that was a time of day in the file, with seconds."""

    __slots__ = ()


class _Absent(str):
    __slots__ = ()


ABSENT = _Absent()
"""A field that a record does not have: blank, and told apart from null where that matters."""

Cell = str | BadCell


class ChatMessage(str):
    """The text of a chat's message, with the turns before it.

    It knows how many other messages of the bot are `unused`, and how many of the user after it are `unanswered`.
    """

    __slots__ = ("earlier", "unanswered", "unused")
    earlier: tuple[Turn, ...]
    unused: int
    unanswered: int

    def __new__(
        cls, text: str, earlier: tuple[Turn, ...] = (), unused: int = 0, unanswered: int = 0
    ) -> "ChatMessage":
        message = super().__new__(cls, text)
        message.earlier, message.unused, message.unanswered = earlier, unused, unanswered
        return message


def as_message(cell: Cell, message: ChatMessage) -> Cell:
    """The cell with what is known of the message that it is, unless that is nothing, or it holds nothing."""
    known = message.earlier, message.unused, message.unanswered
    return ChatMessage(str(cell), *known) if any(known) and isinstance(cell, str) and cell else cell


def is_sentence(text: str) -> bool:
    """Whether a text ends like a sentence and has three words, so that it is hardly the name of something."""
    end = text.rstrip(" \n\"'»”)")[-1:]
    return end in tuple("。！？") or (end in tuple(".!?") and len(text.split(None, 3)) > 2)


EXCEL_LIMIT = 32_767
"""Characters that a cell of a workbook can hold; Excel cuts what is longer."""

ERROR, UNCACHED = "e", "uncached"
"""Types of an Excel workbook's cells: an error value; a formula whose result is not stored."""


class Area(NamedTuple):
    """A block of cells, counted from 1, ends included."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int


UNSEEN_SPACES = "\u00ad\u200b\u200e\u200f\u2060\ufeff"
"""What is copied along with a text and has no width: spaces, soft hyphens, marks of direction, byte order marks."""
_UNSEEN = f"{UNSEEN_SPACES}\u200c\u200d\u202a-\u202e\u2061-\u2064\u2066-\u2069"
_SEEN = re.compile(rf"[^\s{_UNSEEN}]")


def as_cell(text: str) -> Cell:
    """The text as a cell: '' if nothing in it can be seen, no-break and zero-width spaces included."""
    if len(text) > MAX_CELL:
        return BadCell(too_long(len(text)))
    return text if _SEEN.search(text) else ""


def is_blank(cell: Cell) -> bool:
    return cell == ""


def with_unit(cell: Cell, unit: str) -> Cell:
    """The cell, as one whose format shows the unit if it is a number."""
    return Measured(cell, cell.number, unit) if isinstance(cell, Measured) and not cell.unit else cell


def cell_at(cells: Sequence[Cell], index: int) -> Cell:
    """The cell, or '' where the row ends before it."""
    return cells[index] if index < len(cells) else ""


def cell_text(value: object) -> str:
    """A cell's value as text. Text stays exactly as it is; nothing (and NaN) is ''.

    Numbers lose a trailing '.0', booleans are TRUE and FALSE, a date is 2024-05-01 and with a time of day
    2024-05-01 13:30:00, a duration is hours:minutes:seconds, lists and structures (Parquet) are JSON.
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float() | Decimal():
            return _number_cell(value)
        case datetime():
            is_day = value.time() == time() and value.tzinfo is None
            return value.date().isoformat() if is_day else value.isoformat(sep=" ")
        case time() | timedelta():
            return _time_cell(value)
        case date():
            return value.isoformat()
        case list() | dict():
            return JsonText(json.dumps(value, ensure_ascii=False, default=cell_text))
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


_LARGEST = 2**53
"""Below it, whole numbers of a float are exact."""


def _number_cell(value: float | Decimal) -> str:
    if value.is_nan() if isinstance(value, Decimal) else isnan(value):
        return ""  # how Parquet files of data frames spell a missing value
    if not -_LARGEST < value < _LARGEST:
        return repr(value) if isinstance(value, float) else str(value)
    is_whole = isinstance(value, float) and value.is_integer()
    return Measured(str(int(value)) if is_whole else str(value), float(value))


def _time_cell(value: time | timedelta) -> str:
    """A time in the first hour of the day may be a duration as well."""
    if isinstance(value, timedelta):
        return Measured(_duration_text(value), value / _MILLISECOND, "ms")
    passed = timedelta(minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    text = value.isoformat()
    return TimeOfDay(text) if value.hour else Measured(text, passed / _MILLISECOND, "ms")


_MILLISECOND = timedelta(milliseconds=1)


def _duration_text(value: timedelta) -> str:
    seconds = abs(value) // timedelta(seconds=1)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def column_letter(index: int) -> str:
    """The letters of a column counted from 0: A, B, …, Z, AA, …"""
    letters = ""
    index += 1
    while index:
        index, remainder = divmod(index - 1, 26)
        letters = chr(ord("A") + remainder) + letters
    return letters


# --- Human labels: what a person wrote about a response, as a number ---

_YES, _NO = ("yes", "true", "pass"), ("no", "false", "fail")
_OF_SCORES = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Not pass and fail: a response that is toxic does not pass, and has 1."""


def parse_score(text: str) -> float:
    """A metric's label, 0..1, also with a decimal comma, as a percentage, or yes or no.

    ValueError for anything else, such as 80 or 0,8,1.
    """
    word = text.strip().casefold()
    if word in _OF_SCORES:
        return _OF_SCORES[word]
    whole = word.removesuffix("%").rstrip()
    number = whole.replace(",", ".", 1) if whole != word else _DECIMAL_COMMA.sub(r"\1.\2", word)
    scale = 100 if whole != word else 1
    if _DECIMAL.fullmatch(number) and 0.0 <= (value := float(number) / scale) <= 1.0:
        return value
    raise ValueError(f"{_shown(text)} is not a label; expected a number from 0 to 1, or yes or no")


def parse_verdict(text: str) -> float:
    """A criterion's label: 1.0 for yes, true, pass and 1, 0.0 for no, false, fail and 0, in any case."""
    word = text.strip().casefold()
    if word in _YES or _ONE.fullmatch(word):
        return 1.0
    if word in _NO or _ZERO.fullmatch(word):
        return 0.0
    raise ValueError(f"{_shown(text)} is not a label; expected yes or no (or true, false, pass, fail, 1, 0)")


_ONE, _ZERO = re.compile(r"1(?:[.,]0+)?"), re.compile(r"0(?:[.,]0+)?")
"""Data frames write whole numbers with a fraction in a column where some are missing."""
_DECIMAL_COMMA = re.compile(r"^(0|1(?=,0+$)),(\d+)$", re.ASCII)
"""Only of 0 to 1."""
_DECIMAL = re.compile(r"(?:\d++(?:\.\d++)?|\.\d++)(?:e-\d++)?", re.ASCII | re.IGNORECASE)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
