"""Columns that are not used although they look as if they should be. Nothing that matters is left out in silence."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from rag_eval.tables.bounds import MAX_BOT_NAME, first_of
from rag_eval.tables.cells import Cell, JsonText, cell_at, is_blank
from rag_eval.tables.column_uses import (
    LONG,
    ONE,
    WIDE,
    WORDS,
    Asked,
    Columns,
    ColumnUse,
    map_option,
    matches,
)
from rag_eval.tables.likely_bots import HINTED, NAMED, NEARLY_PREFIXED, is_about, likely_bots
from rag_eval.tables.names import (
    CONTEXT,
    QUERY,
    REFERENCE,
    RESPONSE,
    UNUSED,
    is_answer,
    likely_role,
    meanings,
)

ROWS_SEEN = 50
_LONG = 80
"""Characters on average from which on texts are long."""
_SENTENCE = 20
"""The same for texts that may be responses by nothing else."""
_SHORT = 40
"""The same for texts below which a few that are repeated are categories."""
_PLAIN = re.compile(r"[\d.,:/%+\-\sTZ]*|true|false|yes|no", re.IGNORECASE | re.ASCII)
"""Numbers, dates and flags: no role is filled by these."""
_SPACE = re.compile(r"\S\s+\S")


class _Seen(NamedTuple):
    """The cells of a column that hold something, in the first rows."""

    lengths: tuple[int, ...]
    """Of the texts, numbers and the like left out."""
    is_plain: bool
    """Most are numbers, dates and flags."""
    is_spaced: bool
    """Most have several words."""
    has_spaces: bool
    is_category: bool
    """A few short texts are repeated."""
    is_structure: bool
    """Most are lists or objects."""
    mean: float
    """Characters."""


class FirstRows:
    """What the cells of each column look like."""

    def __init__(self, rows: Sequence[tuple[int, Sequence[Cell]]] = ()) -> None:
        self._rows = rows
        self.seen = cache(self._seen)

    def is_blank(self, index: int) -> bool:
        """Whether none of the rows has anything in the column, and there are rows."""
        return bool(self._rows) and all(is_blank(cell_at(cells, index)) for _, cells in self._rows)

    def _seen(self, index: int | None) -> _Seen:
        found = ("" if index is None else cell_at(cells, index) for _, cells in self._rows)
        cells = [cell for cell in found if isinstance(cell, str) and cell]
        texts = [cell for cell in cells if not (len(cell) < 40 and _PLAIN.fullmatch(cell))]
        spaced = sum(_SPACE.search(cell, 0, 1_000) is not None for cell in cells)
        structures = sum(isinstance(cell, JsonText) or cell.lstrip()[:1] in ("[", "{") for cell in cells)
        mean = sum(map(len, cells)) / len(cells) if cells else 0.0
        return _Seen(
            lengths=tuple(map(len, texts)),
            is_plain=2 * len(texts) < len(cells),
            is_spaced=2 * spaced > len(cells),
            has_spaces=spaced > 0,
            is_category=len(cells) >= 4 and 4 * len({*cells}) <= len(cells) and mean < _SHORT,
            is_structure=2 * structures > len(cells),
            mean=mean,
        )

    def may_be_responses(self, index: int, others: int | None) -> bool:
        """Whether a column has texts that may be responses: numbers and single words only if `others` are such, too."""
        its, like = self.seen(index), self.seen(others)
        is_code = its.is_category and not its.has_spaces
        return its.mean > 0 and its.is_plain <= like.is_plain and is_code <= like.is_category

    def are_like(self, index: int, others: int | None) -> bool:
        """The same, and the texts are not a few short ones, or single words among sentences."""
        its, like = self.seen(index), self.seen(others)
        return (
            self.may_be_responses(index, others)
            and its.is_category <= like.is_category
            and its.has_spaces >= like.is_spaced
            and 4 * its.mean >= like.mean
        )

    def are_as_long(self, index: int, others: int | None, least: float) -> bool:
        """The same, and they are half as long, and have `least` characters, so that they may be whatever their name."""
        its = self.seen(index)
        is_long = its.mean >= max(least, self.seen(others).mean / 2)
        return self.are_like(index, others) and not its.is_structure and is_long


class LeftOut(NamedTuple):
    """Columns without a use that may be responses of bots, by their position."""

    nearly: Mapping[int, ColumnUse]
    """Their names nearly have the prefix."""
    named: Mapping[int, ColumnUse]
    """Their names say so as well, or in another way."""
    hinted: Mapping[int, ColumnUse]
    """The same, with words that may mean something else, or without looking much like responses."""
    lengthy: Mapping[int, ColumnUse]
    """Only their texts say so."""


def left_out(
    uses: Mapping[int, ColumnUse],
    asked: Asked,
    rows: FirstRows,
    others: int | None,
    *,
    kept: Collection[int] = (),
    least: float = _SENTENCE,
    with_blank: bool = False,
) -> LeftOut:
    """The columns that nobody set aside; those without any text only if `with_blank`: a bot that never answered.

    `others` is the column that these would be like, if there is one, and `least` how many characters texts have that
    may be responses whatever the name of their column.
    """
    ignored = [each.column for each in asked.named if each.role == "ignore"]
    unused = {
        index: use
        for index, use in uses.items()
        if use.role == UNUSED
        and index not in kept
        and len(use.header) <= MAX_BOT_NAME
        and not any(matches(use.header, column) for column in ignored)
    }
    kinds = likely_bots({index: use.header for index, use in unused.items()}, asked.prefix)
    blank = {index for index in kinds if with_blank and rows.is_blank(index)}
    possible = {index for index in kinds if rows.may_be_responses(index, others)}
    possible |= {index for index in blank if kinds[index] != HINTED}
    nearly = {index for index in possible if kinds[index] == NEARLY_PREFIXED}
    named = nearly | {
        index
        for index in possible
        if kinds[index] == NAMED and (index in blank or rows.are_like(index, others))
    }
    doubtful = {
        index for index, kind in kinds.items() if kind == NEARLY_PREFIXED and rows.seen(index).lengths
    }
    hinted = (possible | doubtful) - named
    lengthy = {
        index
        for index, use in unused.items()
        if rows.are_as_long(index, others, least)
        and not is_about(use.header)
        and not likely_role(use.header, (QUERY, REFERENCE, CONTEXT))
    }
    return LeftOut(
        *(
            {index: unused[index] for index in sorted(its)}
            for its in (nearly, named, hinted, lengthy - named - hinted)
        )
    )


class UnusedColumns:
    """Says which columns have no use although they look as if they should have one."""

    def __init__(self, columns: Columns, asked: Asked, rows: FirstRows) -> None:
        ignored = [each.column for each in asked.named if each.role == "ignore"]
        self._columns = columns
        self._rows = rows
        self._looked_at = {
            index: use
            for index, use in zip(columns.positions, columns.uses, strict=True)
            if use.role == UNUSED and not any(matches(use.header, column) for column in ignored)
        }
        others = next(iter(columns.responses.values()), None)
        self._left_out = left_out(self._looked_at, asked, rows, others, with_blank=True)

    def warnings(self) -> list[str]:
        """One for each column, the first of them, with the option that would use it."""
        missing = [role for role, index in self._roles() if index is None]
        found = (self._warning(index, use, missing) for index, use in self._looked_at.items())
        return first_of([warning for warning in found if warning])

    def _roles(self) -> Iterator[tuple[str, int | None]]:
        yield REFERENCE, self._columns.reference
        yield CONTEXT, next(iter(self._columns.contexts.values()), None)

    def _warning(self, index: int, use: ColumnUse, missing: Sequence[str]) -> str:
        lengths, shape = self._rows.seen(index).lengths, self._columns.shape
        if self._is_copy(use):
            return ""
        if shape != LONG and (index in self._left_out.named or index in self._left_out.hinted):
            return self._sentence(use, "looks like the responses of a bot and was not used", [RESPONSE])
        if not lengths:
            return ""
        roles = {meaning.role for meaning in meanings(use.header, has_prefixed=shape == WIDE)}
        others = [role for role in missing if role == REFERENCE]
        if use.why and roles & {QUERY, REFERENCE, CONTEXT, RESPONSE}:
            role = next(iter(roles & {QUERY, REFERENCE, CONTEXT, RESPONSE}))
            wanted = [RESPONSE, *others] if role == RESPONSE else [role]
            return self._sentence(use, f"looks like the {role} and was not used, because {use.why}", wanted)
        if shape == WIDE and is_answer(use.header):
            return self._sentence(use, "looks like a response and was not used", [RESPONSE, *others])
        if role := likely_role(use.header, missing):
            return self._sentence(
                use, f"looks like the {role} and was not used; no column is the {role}", [role]
            )
        if shape == ONE and index in self._left_out.lengthy:
            return self._sentence(
                use, "contains texts like those of the responses and was not used", [RESPONSE, *missing]
            )
        is_long = sum(lengths) / len(lengths) >= _LONG
        if is_long and missing and shape != LONG:
            is_structure = self._rows.seen(index).is_structure
            may_be_bot = shape == ONE and not is_structure and not is_about(use.header)
            return self._sentence(
                use,
                f"contains long texts and was not used; no column is the {' or the '.join(missing)}",
                [RESPONSE, *missing] if may_be_bot else missing,
            )
        return ""

    def _is_copy(self, use: ColumnUse) -> bool:
        """Whether a field is called as one that is used and less deep: promptfoo writes its tests twice."""
        ends = {name.rpartition(".")[2] for name in self._columns.headers.values() if "." in name}
        return bool(use.why) and "." in use.header and use.header.rpartition(".")[2] in ends

    @staticmethod
    def _sentence(use: ColumnUse, problem: str, roles: Sequence[str]) -> str:
        options = " or ".join(map_option(use, WORDS[role]) for role in roles)
        return (
            f"Column {use} {problem}. To use it, add {options}; to silence this, {map_option(use, 'ignore')}."
        )
