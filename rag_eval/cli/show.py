"""--show: how the first rows of a file are understood, role by role and chunk by chunk."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rag_eval.tables.spending import unit_of
from rag_eval.texts.display import counted, shorten

if TYPE_CHECKING:
    from rag_eval.records import Case
    from rag_eval.tables.table import Table

_ROWS, _TURNS, _CHUNKS, _CHARACTERS = 3, 6, 10, 200


def show_rows(table: "Table") -> Iterator[str]:
    """Lines for the terminal. Texts are shortened; what is blank and what is not there are told apart."""
    units = {use.role: unit_of(use.role, use.unit) for use in table.columns}
    for row in islice(table.rows, _ROWS):
        yield f"Row {row.number}"
        is_shared = len({case.history for case in row.cases}) == 1
        if is_shared:
            yield from _turns(row.cases[0])
        yield from _field("query", row.query)
        yield from _field("reference", row.cases[0].reference)
        seen: tuple[str, ...] | None = None
        for case in row.cases:
            yield f"  {case.bot}"
            if not is_shared:
                yield from _turns(case, "  ")
            if case.is_missing:
                yield "    response: none in the file"
                continue
            yield from _field("  response", case.response)
            if case.chunks is not None and case.chunks is seen:
                yield "    context: as above"
            else:
                yield from _context(case)
            seen = case.chunks
            for name, value in case.spent.items():
                yield f"    {name}: {value:,.12g} {units[name]}".rstrip()
    if len(table.rows) > _ROWS:
        yield f"… and {len(table.rows) - _ROWS:,} more rows. Nothing was judged."
    else:
        yield "Nothing was judged."


def _turns(case: "Case", indent: str = "") -> Iterator[str]:
    """The last of the earlier turns."""
    if not case.history:
        return
    left_out = len(case.history) - _TURNS
    yield f"  {indent}earlier turns: {len(case.history):,}" + (
        f", the last {_TURNS}:" if left_out > 0 else ""
    )
    for turn in case.history[-_TURNS:]:
        yield f"    {indent}[{turn.role}] {_short(turn.content)}"


def _context(case: "Case") -> Iterator[str]:
    if case.chunks is None:
        yield "    context: no column"
        return
    yield f"    context: {counted(len(case.chunks), 'chunk')}"
    for rank, chunk in enumerate(case.chunks[:_CHUNKS], 1):
        yield f"      [{rank}] {_short(chunk)}"
    if len(case.chunks) > _CHUNKS:
        yield f"      … and {len(case.chunks) - _CHUNKS:,} more"
    for name, ids in (("gold documents", case.gold_ids), ("retrieved documents", case.retrieved_ids)):
        if ids is not None:
            yield f"    {name}: {_short(', '.join(ids)) or '(none)'}"


def _field(name: str, text: str | None) -> Iterator[str]:
    yield f"  {name}: {'(none)' if text is None else _short(text) or '(blank)'}"


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _CHARACTERS)
