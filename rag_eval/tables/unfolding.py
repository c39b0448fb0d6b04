"""Columns of objects written as text, such as `input` and `output` of traces, to a column for each field.

A chat is an object too, of a query and a response, if the table has no other responses.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from rag_eval.tables.cells import ABSENT, Cell, JsonText, cell_at
from rag_eval.tables.chats import last_turn
from rag_eval.tables.names import CONTEXT, QUERY, REFERENCE, RESPONSE, meaning_of
from rag_eval.tables.nested import flattened, structure
from rag_eval.tables.sheets import value_cell

Rows = Iterator[tuple[int, Sequence[Cell]]]

_PEEKED = 20
"""Rows that are looked at first: in nearly all files no column is one of objects."""
_ROLES = frozenset((QUERY, REFERENCE, RESPONSE, CONTEXT))


def columns_of_objects(
    header: Sequence[Cell], rows: Rows, *, with_chats: bool, given: Collection[int] = ()
) -> tuple[list[int], Rows]:
    """The columns that have a role by their names and begin with objects, as far as the first rows tell; all rows.

    So do `given` ones, whatever their names.
    """
    first = list(islice(rows, _PEEKED))
    found = [
        index
        for index, name in enumerate(header)
        if isinstance(name, str) and (index in given or _has_role(name))
        if fields_of([index], header, iter(first), given)
    ]
    return [index for index in found if _is_wanted(index, first, with_chats)], chain(first, rows)


def _is_wanted(column: int, rows: Sequence[tuple[int, Sequence[Cell]]], with_chats: bool) -> bool:
    """Whether its fields are to be columns: those of chats only if somebody answers, and if that is asked for."""
    turns = [turn for _, cells in rows if (turn := _turn(cell_at(cells, column))) is not None]
    return not turns or (with_chats and any(RESPONSE in turn for turn in turns))


def fields_of(
    columns: Sequence[int], header: Sequence[Cell], rows: Rows, given: Collection[int]
) -> dict[int, list[str]]:
    """The paths of the fields of each column of objects: every cell is one or blank, and some field has a role.

    Of `given` columns no field needs one.
    """
    paths: dict[int, dict[str, None]] = {index: {} for index in columns}
    for _, cells in rows:
        for index in list(paths):
            cell = cell_at(cells, index)
            found = _object(cell) if cell else {}
            if found is None:
                del paths[index]
            else:
                paths[index].update(dict.fromkeys(found))
    return {
        index: list(its)
        for index, its in paths.items()
        if index in given or any(_has_role(f"{header[index]}.{path}") for path in its)
    }


def _has_role(name: str) -> bool:
    meaning = meaning_of(name, has_prefixed=False)
    return meaning is not None and meaning.role in _ROLES


def unfolded(header: Sequence[Cell], rows: Rows, fields: dict[int, list[str]]) -> tuple[list[Cell], Rows]:
    """The header and the rows with further columns for the fields, named by their paths."""
    added = [(index, path) for index, paths in fields.items() for path in paths]
    names = [f"{header[index]}.{path}" for index, path in added]
    return [*header, *names], (
        (number, [*cells, *[""] * (len(header) - len(cells)), *_values(cells, added)])
        for number, cells in rows
    )


def _values(cells: Sequence[Cell], added: Sequence[tuple[int, str]]) -> Iterator[Cell]:
    objects = {
        index: _object(cell_at(cells, index)) or {} for index in dict.fromkeys(index for index, _ in added)
    }
    for index, path in added:
        yield value_cell(objects[index][path]) if path in objects[index] else ABSENT


def _object(cell: Cell) -> dict[str, Any] | None:
    """The values by path, of an object as JSON or Python writes it, or of a chat's last turn; None for others."""
    if (turn := _turn(cell)) is not None:
        return dict(turn)
    if isinstance(cell, JsonText):
        return None
    value = structure(cell, "{", "}")
    return (
        flattened(value) if isinstance(value, dict) and all(isinstance(key, str) for key in value) else None
    )


def _turn(cell: Cell) -> dict[str, str] | None:
    value = structure(cell, "[", "]")
    return {} if value == [] else last_turn(value)
