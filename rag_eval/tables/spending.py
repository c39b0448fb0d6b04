"""What a bot spends on a response, latency and cost: which columns have it, and the numbers in their cells.

A name is only a guess: a column that has something else than numbers has no role by it. A role that somebody gave to
a column stays, and then every cell must be a number.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from rag_eval.tables.names import LATENCY, TIMES, TOKENS, Spending, folded, spendings_of


class SpendingColumn(NamedTuple):
    """A column that has, or may have, the latency or the cost of a bot."""

    place: int
    header: str
    role: str
    """The one that was given; '' if only the name may give it one."""


class Assigned(NamedTuple):
    """The use of a column, or why it has none."""

    role: str
    owner: str
    """Name of the bot; '' for a column of all responses."""
    unit: str = ""
    why: str = ""
    """Why it has no use; '' for one that has."""


_SEVERAL = "another column could be it as well"
_UNITS_DIFFER = "the columns of its kind have different units"
DOUBTS = (_SEVERAL, _UNITS_DIFFER)
"""How reasons begin that are worth a warning."""
_Rank = tuple[bool, bool, int]
"""Whether it was given, in money, and a plain column: the lowest counts."""


def assigned(
    columns: Collection[SpendingColumn], bots: Mapping[str, str], units: Mapping[str, str], *, is_shared: bool
) -> dict[int, Assigned]:
    """What each column with latency or cost is, by its position; columns of unknown bots are absent.

    `bots` are the names by their spellings, folded; `units` were given by role. `is_shared` says that a column without
    the name of a bot belongs to the response of its row. Of several columns whose names could give them one role, none
    has it, but money goes before tokens, and a plain column before the field of a record.
    """
    found: dict[tuple[str, str], list[tuple[_Rank, SpendingColumn, Assigned]]] = defaultdict(list)
    left_out: dict[int, Assigned] = {}
    for column in columns:
        use, rank = _read(column, bots)
        if use is None:
            continue
        use = use._replace(unit=units.get(use.role, use.unit))
        if not use.owner and not is_shared:
            left_out[column.place] = use._replace(
                why=f"it names no bot, as {use.role.capitalize()}_<bot> does"
            )
        else:
            found[use.role, use.owner].append(((not column.role, *rank), column, use))
    uses: dict[int, Assigned] = {}
    for candidates in found.values():
        best = min(rank for rank, _, _ in candidates)
        first = [column for rank, column, _ in candidates if rank == best]
        for its_rank, column, use in candidates:
            if its_rank != best:
                left_out[column.place] = use._replace(why=f"'{first[0].header[:60]}' is the {use.role}")
            elif len(first) > 1 and not column.role:
                left_out[column.place] = use._replace(why=_SEVERAL)
            else:
                uses[column.place] = use
    given = {column.place for column in columns if column.role}
    return {**left_out, **uses, **_other_units(uses, given)}


def _read(column: SpendingColumn, bots: Mapping[str, str]) -> tuple[Assigned | None, tuple[bool, int]]:
    """The use that a name or somebody gives, with the rank of the name; None for no use."""
    readings = spendings_of(column.header)
    if column.role:
        readings = [each for each in readings if each.role == column.role]
        return _given(column, readings, bots), (False, 1)
    reading = next((each for each in readings if not each.owner or each.owner in bots), None)
    if reading is None:
        return None, (False, 1)
    use = Assigned(reading.role, bots.get(reading.owner, ""), reading.unit)
    return use, reading.rank


def _given(column: SpendingColumn, readings: Collection[Spending], bots: Mapping[str, str]) -> Assigned:
    """Of the bot that is the rest of a known name, or the longest one in any other."""
    for each in readings:
        if each.owner in bots:
            return Assigned(column.role, bots[each.owner], each.unit)
    name = folded(column.header)
    owners = [bot for bot in bots if re.search(rf"(?<!\w){re.escape(bot)}(?!\w)", name)]
    unit = next((each.unit for each in readings if not each.owner), "")
    return Assigned(column.role, bots[max(owners, key=len)] if owners else "", unit)


def _other_units(uses: Mapping[int, Assigned], given: Collection[int]) -> dict[int, Assigned]:
    """The columns whose units differ, without a use; those that somebody gave a role go before those with a name, and
    money before tokens."""
    changed: dict[int, Assigned] = {}
    for role in {use.role for use in uses.values()}:
        its = {index: use for index, use in uses.items() if use.role == role}
        units = {unit_of(role, use.unit) for use in its.values()}
        if len(units) < 2:
            continue
        tokens = {index for index, use in its.items() if use.unit in TOKENS and index not in given}
        if len(units) == 2 and tokens and len(tokens) < len(its):
            changed |= {
                index: its[index]._replace(why="the cost of another bot is in money") for index in tokens
            }
            continue
        shown = " and ".join(sorted(f"'{unit}'" if unit else "no unit" for unit in units))
        why = f"{_UNITS_DIFFER} ({shown}); name one unit in all headers"
        agree = len({unit_of(role, use.unit) for index, use in its.items() if index in given}) < 2
        changed |= {
            index: use._replace(why=why) for index, use in its.items() if not (agree and index in given)
        }
    return changed


def unit_of(role: str, unit: str) -> str:
    """The unit of the values that are read from a column with this one: times are in ms, a cost stays as it is."""
    return "ms" if role == LATENCY and folded(unit) in TIMES else unit


def scale_of(role: str, unit: str) -> float:
    """What a number of a column is multiplied with to be in `unit_of` it."""
    return TIMES.get(folded(unit), 1.0) if role == LATENCY else 1.0


# --- Numbers in cells ---------------------------------------------------------------------------------------------

_GAP = "'’\u00a0\u202f "
_POINT = re.compile(
    rf"\+?(?:[1-9]\d{{0,2}}(?:[,{_GAP}]\d{{3}})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:e[+-]?\d{{1,3}})?",
    re.ASCII | re.IGNORECASE,
)
_COMMA = re.compile(
    rf"\+?(?:[1-9]\d{{0,2}}(?:[.{_GAP}]\d{{3}})+|\d+)(?:,\d+)?(?:e[+-]?\d{{1,3}})?", re.ASCII | re.IGNORECASE
)
_LONGEST = 60
"""Characters of a cell that can be a number."""
_TOO_LARGE = 1e15
_HUNDREDS = 3
"""Digits of a whole number next to which a point may separate thousands."""


def _with_point(text: str) -> float | None:
    if len(text) > _LONGEST or not _POINT.fullmatch(text):
        return None
    return float(re.sub(f"[,{_GAP}]", "", text))


def _with_comma(text: str) -> float | None:
    if len(text) > _LONGEST or not _COMMA.fullmatch(text):
        return None
    return float(re.sub(f"[.{_GAP}]", "", text).replace(",", "."))


def is_number(text: str) -> bool:
    """Whether a cell is a number, with a decimal point or a decimal comma."""
    bare = text.strip().lstrip("-−")
    return _with_point(bare) is not None or _with_comma(bare) is not None


class Numbers:
    """The cells of one column, numbers from 0 on. Only all of them together tell whether a comma is a decimal comma."""

    def __init__(self, scale: float = 1.0) -> None:
        """`scale` is what each number is multiplied with."""
        self._scale = scale
        self._point = self._comma = True
        self._has_comma = self._has_hundreds = False
        self._differing: tuple[int, str] | None = None
        """The first cell that is another number with each of them."""
        self._last: tuple[int, str] | None = None
        """The cell that decided between them."""

    def add(self, row: int, text: str) -> str:
        """What is wrong with a cell, to be put after its name; '' for nothing."""
        bare = text.strip()
        point, comma = _with_point(bare), _with_comma(bare)
        if point is None and comma is None:
            if is_number(bare):
                return f"{_quoted(bare)} is below 0; correct it or clear the cell"
            return f"{_quoted(bare)} is not a number; write one such as 1240 or 0.5, or clear the cell"
        if max(point or 0.0, comma or 0.0) >= _TOO_LARGE:
            return f"{_quoted(bare)} is too large; correct it or clear the cell"
        self._has_comma |= "," in bare
        self._has_hundreds |= bare.isdigit() and len(bare) >= _HUNDREDS
        was_point, was_comma = self._point, self._comma
        self._point &= point is not None
        self._comma &= comma is not None
        if not self._point and not self._comma:
            self._point, self._comma = was_point, was_comma
            row_before, before = self._last or (row, bare)
            return (
                f"{_quoted(bare)} has another decimal separator than {_quoted(before)} in row {row_before}; "
                "use one for all cells"
            )
        if (self._point, self._comma) != (was_point, was_comma):
            self._last = row, bare
        if point != comma and self._differing is None and None not in (point, comma):
            self._differing = row, bare
        return ""

    def doubt(self) -> tuple[int, str] | None:
        """The row, and what is wrong with its cell, if nothing tells what a comma or point means; None otherwise.

        Next to 980, 1.240 may well be 1240.
        """
        is_odd = self._has_comma or self._has_hundreds
        if not (self._point and self._comma and is_odd and self._differing):
            return None
        row, text = self._differing
        thousands, fraction = _with_point(text), _with_comma(text)
        return (
            row,
            f"{_quoted(text)} could be {thousands:.12g} or {fraction:.12g}; write it as one of the two",
        )

    def value(self, text: str) -> float:
        """The number of a cell that was added without a problem."""
        found = (_with_point if self._point else _with_comma)(text.strip())
        return (found or 0.0) * self._scale


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
