"""Columns of objects written as text, such as `input` and `output` of traces, to a column for each field.

A chat is an object too, of a query and a response, if the table has no other responses; also one written as a text with
speakers, if the column has queries by its name or is called so.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from rag_eval.tables.cells import ABSENT, Cell, JsonText, cell_at
from rag_eval.tables.chats import is_open, last_turn
from rag_eval.tables.names import CONTEXT, QUERY, REFERENCE, RESPONSE, folded, meaning_of
from rag_eval.tables.nested import flattened, structure
from rag_eval.tables.sheets import value_cell
from rag_eval.tables.speakers import turns_of_text

Rows = Iterator[tuple[int, Sequence[Cell]]]

_PEEKED = 20
"""Rows that are looked at first: in nearly all files no column is one of objects."""
_ROLES = frozenset((QUERY, REFERENCE, RESPONSE, CONTEXT))


def columns_of_objects(
    header: Sequence[Cell],
    rows: Rows,
    *,
    with_chats: bool,
    with_truth: bool = False,
    given: Collection[int] = (),
) -> tuple[list[int], Rows]:
    """The columns that have a role by their names and begin with objects, as far as the first rows tell; all rows.

    So do `given` ones, whatever their names. With ground truths, chats that all end with a question, and not with mere
    thanks, are those of a test set, whose truths are not for the answers before.
    """
    first = list(islice(rows, _PEEKED))
    names = {index: name for index, name in enumerate(header) if isinstance(name, str)}
    queries = {index for index, name in names.items() if _role(name) == QUERY}
    texts = queries or {index for index, name in names.items() if folded(name) in _CHATS}
    # Of chats the first one tells: a later cell that is none is to be named.
    told = {
        index: [row for row in first if cell_at(row[1], index)][:1]
        if with_chats and index in texts
        else first
        for index, name in names.items()
        if index in given or index in texts or _has_role(name)
    }
    found = [index for index, rows_of in told.items() if fields_of([index], header, iter(rows_of), given)]
    texts |= {*given}
    wanted = []
    for index in found:
        cells = [cell_at(its, index) for _, its in first]
        if _is_wanted(cells, with_chats, with_truth=with_truth, in_text=index in texts):
            wanted.append(index)
    return wanted, chain(first, rows)


_CHATS = frozenset(
    (
        "transcript", "transcripts", "chat", "chat transcript", "chat log", "conversation transcript", "dialogue",
        "dialog", "chatverlauf", "gesprächsverlauf", "transkript", "transcripción", "transcrição", "trascrizione",
        "对话", "對話", "会話",
    )
)  # fmt: skip
"""Names of columns with a whole chat in each cell, if no column has queries. As `folded` writes them."""


def _is_wanted(cells: Sequence[Cell], with_chats: bool, *, with_truth: bool, in_text: bool) -> bool:
    """Whether a column's fields are to be columns: those of chats only if somebody answers and that is asked for."""
    turns = {cell: turn for cell in cells if (turn := _turn(cell)) is not None}
    if not in_text and any(structure(cell, "[", "]") is None for cell in turns):
        return False
    answered = (
        cell for cell, turn in turns.items() if RESPONSE in turn and not (with_truth and is_open(_chat(cell)))
    )
    return not turns or (with_chats and any(True for _ in answered))


def fields_of(
    columns: Sequence[int],
    header: Sequence[Cell],
    rows: Rows,
    given: Collection[int],
    others: dict[int, int] | None = None,
) -> dict[int, list[str]]:
    """The paths of the fields of each column of objects: every cell is one or blank, and some field has a role.

    Of `given` columns no field needs one. `others` receives the number of the first row with anything else, by column.
    """
    paths: dict[int, dict[str, None]] = {index: {} for index in columns}
    for number, cells in rows:
        for index in list(paths):
            cell = cell_at(cells, index)
            found = _object(cell) if cell else {}
            if found is None:
                del paths[index]
                if others is not None:
                    others[index] = number
            else:
                paths[index].update(dict.fromkeys(found))
    return {
        index: list(its)
        for index, its in paths.items()
        if index in given or any(_has_role(f"{header[index]}.{path}") for path in its)
    }


def _has_role(name: str) -> bool:
    return _role(name) in _ROLES


def _role(name: str) -> str | None:
    meaning = meaning_of(name, has_prefixed=False)
    return meaning.role if meaning else None


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
    value = _chat(cell)
    return {} if value == [] else last_turn(value)


def _chat(cell: Cell) -> object:
    """The messages of a chat, as JSON, Python or a text writes them; anything else for other cells."""
    value = structure(cell, "[", "]")
    if value is None and isinstance(cell, str) and not isinstance(cell, JsonText):
        return [{"role": turn.role, "content": turn.content} for turn in turns_of_text(cell)] or None
    return value
