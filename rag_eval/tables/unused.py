"""Columns that are not used although they look as if they should be. Nothing that matters is left out in silence."""

import re
from collections.abc import Collection, Iterator, Sequence

from rag_eval.tables.bounds import first_of
from rag_eval.tables.cells import Cell, cell_at
from rag_eval.tables.column_uses import LONG, WIDE, WORDS, Columns, ColumnUse, Named, map_option, matches
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

_ROWS_SEEN = 50
_LONG = 80
"""Characters on average from which on texts are long."""
_PLAIN = re.compile(r"[\d.,:/%+\-\sTZ]*|true|false|yes|no", re.IGNORECASE | re.ASCII)
"""Numbers, dates and flags: no role is filled by these."""


class UnusedColumns:
    """Looks at the first rows of the columns that have no use."""

    def __init__(self, columns: Columns, named: Collection[Named]) -> None:
        ignored = [each.column for each in named if each.role == "ignore"]
        self._columns = columns
        self._looked_at = {
            index: use
            for index, use in zip(columns.positions, columns.uses, strict=True)
            if use.role == UNUSED and not any(matches(use.header, column) for column in ignored)
        }
        self._texts: dict[int, list[int]] = {index: [] for index in self._looked_at}
        """Lengths of the texts, numbers and the like left out."""
        self._left = _ROWS_SEEN

    def see(self, cells: Sequence[Cell]) -> None:
        if self._left <= 0 or not self._looked_at:
            return
        self._left -= 1
        for index, lengths in self._texts.items():
            cell = cell_at(cells, index)
            if isinstance(cell, str) and cell and not (len(cell) < 40 and _PLAIN.fullmatch(cell)):
                lengths.append(len(cell))

    def warnings(self) -> list[str]:
        """One for each column, the first of them, with the option that would use it."""
        missing = [role for role, index in self._roles() if index is None]
        found = (self._warning(use, self._texts[index], missing) for index, use in self._looked_at.items())
        return first_of([warning for warning in found if warning])

    def _roles(self) -> Iterator[tuple[str, int | None]]:
        yield REFERENCE, self._columns.reference
        yield CONTEXT, next(iter(self._columns.contexts.values()), None)

    def _warning(self, use: ColumnUse, lengths: Sequence[int], missing: Sequence[str]) -> str:
        if not lengths or self._is_copy(use):
            return ""
        roles = {meaning.role for meaning in meanings(use.header, has_prefixed=self._columns.shape == WIDE)}
        if use.why and roles & {QUERY, REFERENCE, CONTEXT, RESPONSE}:
            role = next(iter(roles & {QUERY, REFERENCE, CONTEXT, RESPONSE}))
            return self._sentence(use, f"looks like the {role} and was not used, because {use.why}", [role])
        if self._columns.shape == WIDE and is_answer(use.header):
            others = [role for role in missing if role == REFERENCE]
            return self._sentence(use, "looks like a response and was not used", [RESPONSE, *others])
        if role := likely_role(use.header, missing):
            return self._sentence(
                use, f"looks like the {role} and was not used; no column is the {role}", [role]
            )
        is_long = sum(lengths) / len(lengths) >= _LONG
        if is_long and missing and self._columns.shape != LONG:
            return self._sentence(
                use,
                f"contains long texts and was not used; no column is the {' or the '.join(missing)}",
                missing,
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
