"""Which rows of a file are read: --where, --rows and --random-rows. Conditions are parsed here, never run as code."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import NamedTuple, TypeVar

from rag_eval.errors import InputError, TableError
from rag_eval.tables.cells import BadCell, Cell, cell_at
from rag_eval.tables.names import CURRENCIES, TIMES, called, nearest
from rag_eval.texts.display import counted

Item = TypeVar("Item")

_SEED = 20_240_501


class Condition(NamedTuple):
    """One --where."""

    column: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raises InputError for anything but NAME OP VALUE."""
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise InputError(
                f"--where: {text[:80]!r} is not a condition; expected 'NAME OP VALUE', OP one of {' '.join(_OPERATORS)}"
            )
        quoted, name, operator, value = found.groups()
        if value[:1] in tuple("=!~<>"):
            raise InputError(
                f"--where: {text[:80]!r}: {operator}{value[:1]} is not an operator; expected one of "
                f"{' '.join(_OPERATORS)}, or quotes around the value"
            )
        value, operator = value.strip(), "=" if operator == "==" else operator
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        return cls(quoted or name.strip(), operator, value[1:-1] if is_quoted else value)

    @property
    def is_of_number(self) -> bool:
        """Whether the value is a number, or blank, which a missing one is equal to."""
        return not self.value or _number(self.value) is not None

    @property
    def is_miswritten(self) -> bool:
        """Whether the value is a number in another notation, which would be compared as text, even with numbers."""
        if self.operator in ("=", "!=", "~") or self.is_of_number or len(self.value) > 100:
            return False
        found = _OTHER_NUMBER.fullmatch(self.value)
        return found is not None and (found[1].casefold() in ("", *TIMES) or found[1].upper() in CURRENCIES)

    def holds(self, cell: Cell) -> bool:
        """Two numbers are compared as numbers, all else as text; `~` finds a part of it in any case."""
        if isinstance(cell, BadCell):
            return False
        if self.operator == "~":
            return self.value.casefold() in cell.casefold()
        ours, theirs = _number(cell), _number(self.value)
        if theirs is not None and _DECIMAL_COMMA.fullmatch(cell.strip()):
            ours = _number(cell.replace(",", "."))
        if ours is not None and theirs is not None:
            return _COMPARED[self.operator](_order(ours, theirs))
        is_ordered = self.operator not in ("=", "!=")
        if is_ordered and (not cell or theirs is not None):
            return False  # neither a blank cell nor a word is below or above a number
        return _COMPARED[self.operator](_order(cell.strip(), self.value))


_OPERATORS = ("=", "!=", "~", "<", "<=", ">", ">=")
_CONDITION = re.compile(r"\s*(?:'([^']+)'|([^=!~<>]+?))\s*(!=|<=|>=|==?|~|<|>)(.*)", re.DOTALL)
_COMPARED: Mapping[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_OTHER_NUMBER = re.compile(
    r"[^\w.,]{0,3}(?:\d+\.?\d*|\d{1,3}(?:\.\d{3}){2,}|\d[\d.]*[,'’\s][\d.,'’\s]*)([^\W\d]*)\W{0,3}"
)
"""With a decimal comma, marks between thousands, or a unit; neither a version such as 1.10.3 nor a level such as 2a."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


_DECIMAL_COMMA = re.compile(r"[+-]?(?:0?,\d+|\d{4,},\d+|\d+,(?:\d{1,2}|\d{4,}))", re.ASCII)
_DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+", re.ASCII)
"""1,234 is a number of 1 or of 1000, depending on who wrote it."""


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if len(text) < 400 and _NUMBER.fullmatch(text) else None


def _order(one: float | str, other: float | str) -> int:
    return (one > other) - (one < other)  # type: ignore[operator] # both are of one kind


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that are wanted; all of them by default."""

    rows: tuple[tuple[int, int], ...] = ()
    """First and last numbers, as messages count the rows."""
    random_rows: int | None = None
    where: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, rows: str | None, random_rows: int | None, where: Sequence[str]) -> "Selection":
        """From the options. Raises InputError for one that cannot be read."""
        return cls(
            () if rows is None else tuple(map(_span, rows.split(","))),
            random_rows,
            tuple(map(Condition.parse, where)),
        )

    def __bool__(self) -> bool:
        return bool(self.rows or self.where or self.random_rows)

    def words(self) -> tuple[str, ...]:
        """What is wanted, in the order in which it is applied."""
        spans = ", ".join(
            str(first) if first == last else f"{first}-{last if last < _END else ''}"
            for first, last in self.rows
        )
        return (
            *(f"{each.column} {each.operator} {each.value}" for each in self.where),
            *([f"rows {spans}"] if spans else []),
            *([counted(self.random_rows, "random row")] if self.random_rows else []),
        )

    def chosen(
        self, place: str, header: Sequence[Cell], rows: Iterator[tuple[int, Sequence[Cell]]]
    ) -> Iterator[tuple[int, Sequence[Cell]]]:
        """The rows that --where and --rows leave. Raises TableError for a column that is not there."""
        if not self.where and not self.rows:
            return rows
        conditions = [(self._column(place, header, each), each) for each in self.where]
        for column, each in conditions:
            rows = _with_texts(rows, place, column, each) if each.is_miswritten else rows
            is_of_order = each.operator in ("<", "<=", ">", ">=") and _number(each.value) is not None
            rows = _without_doubt(rows, place, column, each) if is_of_order else rows
        return (
            (number, cells)
            for number, cells in rows
            if (not self.rows or any(first <= number <= last for first, last in self.rows))
            and all(each.holds(cell_at(cells, column)) for column, each in conditions)
        )

    @staticmethod
    def _column(place: str, header: Sequence[Cell], condition: Condition) -> int:
        names = {index: cell for index, cell in enumerate(header) if isinstance(cell, str) and cell}
        found = called(condition.column, names)
        if len(found) == 1:
            return found[0]
        fault = (
            "could be several columns"
            if found
            else f"is not a column{nearest(condition.column, names.values())}"
        )
        raise TableError(f"{place}: --where: '{condition.column[:60]}' {fault}")


def _with_texts(
    rows: Iterator[tuple[int, Sequence[Cell]]], place: str, column: int, condition: Condition
) -> Iterator[tuple[int, Sequence[Cell]]]:
    """The rows, unless one of them has a number in this column."""
    for number, cells in rows:
        cell = cell_at(cells, column)
        if isinstance(cell, str) and _number(cell) is not None:
            raise TableError(
                f"{place}, row {number}: --where: {condition.value[:40]!r} cannot be compared with {cell}, a number of "
                f"'{condition.column[:60]}'; write it as a number such as 0.5 or 1000, without a unit"
            )
        yield number, cells


def _without_doubt(
    rows: Iterator[tuple[int, Sequence[Cell]]], place: str, column: int, condition: Condition
) -> Iterator[tuple[int, Sequence[Cell]]]:
    """The rows, unless a number in this column can be read in two ways."""
    for number, cells in rows:
        cell = cell_at(cells, column)
        if isinstance(cell, str) and _DOUBTFUL.fullmatch(cell.strip()):
            raise TableError(
                f"{place}, row {number}: --where: '{cell[:40]}' in '{condition.column[:60]}' may have a decimal comma "
                "or marks between thousands; write it with a decimal point, or without marks"
            )
        yield number, cells


EVERYTHING = Selection()


def sampled(items: Iterator[Item], count: int | None) -> Iterator[Item]:
    """So many of the items at random, in their order, always the same ones; all of them for None."""
    return items if count is None else _sample(items, count)


def _sample(items: Iterator[Item], count: int) -> Iterator[Item]:
    rng = random.Random(_SEED)  # noqa: S311 - a sample, not a secret
    heap: list[tuple[float, int, Item]] = []
    for number, item in enumerate(items):
        key = -rng.random()
        if len(heap) < count:
            heappush(heap, (key, number, item))
        elif key > heap[0][0]:
            heapreplace(heap, (key, number, item))
    yield from (item for _, _, item in sorted(heap, key=lambda entry: entry[1]))


_END = 10**9


def _span(text: str) -> tuple[int, int]:
    found = _SPAN.fullmatch(text.strip())
    first, last = 1, 0
    if found and text.strip(" -"):
        first, last = int(found[1] or 1), int(found[3] or (_END if found[2] else found[1]))
    if last < first:
        raise InputError(f"--rows: {text[:40]!r} is not a range of rows; expected FIRST-LAST such as 2-101")
    return first, last


_SPAN = re.compile(r"(\d{1,9})?(-)?(\d{1,9})?")
