"""Columns of objects written as text, such as `input` and `output` of traces, to a column for each field.

A chat is an object too, of a query and a response, if the table has no other responses; also one written as a text with
speakers, if the column has queries by its name or is called so. Responses of promptfoo are taken out of what it writes
around them.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from rag_eval.errors import MOST_LISTED, InputError
from rag_eval.tables.cells import ABSENT, BadCell, Cell, JsonText, cell_at, is_blank
from rag_eval.tables.chats import is_open, last_turn
from rag_eval.tables.chunking import DELIMITER, LISTS, PIPES, split_cell
from rag_eval.tables.columns import ROLES, Columns, ColumnUse, Named, matches
from rag_eval.tables.names import (
    CONTEXT,
    KEPT,
    QUERY,
    REFERENCE,
    RESPONSE,
    UNUSED,
    field_with,
    folded,
    meaning_of,
    names_errors,
    names_state,
    squeezed,
)
from rag_eval.tables.nested import flattened, structure
from rag_eval.tables.remarks import OF_ERRORS, OF_MARKS, OF_STATES, Failures
from rag_eval.tables.sheets import value_cell
from rag_eval.tables.speakers import turns_of_text
from rag_eval.texts.display import without_half_pairs

Rows = Iterator[tuple[int, Sequence[Cell]]]

_PEEKED = 20
"""Rows that are looked at first: in nearly all files no column is one of objects."""
_ROLES = frozenset((QUERY, REFERENCE, RESPONSE, CONTEXT))


def columns_of_objects(
    header: Sequence[Cell],
    rows: Rows,
    *,
    with_chats: bool,
    with_truth: bool,
    given: Collection[int],
    named: Sequence[Named],
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
    found = [
        index for index, rows_of in told.items() if fields_of([index], header, iter(rows_of), given, named)
    ]
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


class Fields:
    """What the cells of a column of objects hold."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        """Of the fields."""
        self.objects: list[int] = []
        """The numbers of the first rows with an object."""
        self.texts: list[int] = []
        """The same, with anything else."""
        self.text_path = ""
        """The field that such a text stands for; '' if it cannot be told."""
        self._objects = self._others = 0
        self._has_chats = False

    def add(self, number: int, cell: Cell) -> None:
        if not cell:
            return
        found = _object(cell)
        if found is not None:
            self._objects += 1
            if len(self.objects) <= MOST_LISTED:
                self.objects.append(number)
            self._has_chats = self._has_chats or _turn(cell) is not None
            self.paths.update(dict.fromkeys(found))
        elif not _is_nothing(cell):
            self._others += 1
            if len(self.texts) <= MOST_LISTED:
                self.texts.append(number)

    @property
    def is_hopeless(self) -> bool:
        """Whether no further row can make the column one of objects."""
        return self._has_chats and bool(self._others)

    def are_objects(self, header: str, role: str | None, named: Sequence[Named], *, at_first: bool) -> bool:
        """Whether all cells are objects, or most are and the others can stand for the field with the role.

        That is a field that somebody named, if there is one; then the others may be most. So may the first cells.
        """
        if not self._others:
            return True
        if self._has_chats:
            return False
        said = [each.column for each in named if ROLES[each.role] in _OF_TEXTS]
        asked = (path for path in self.paths if any(matches(f"{header}.{path}", each) for each in said))
        self.text_path = next(asked, "")
        if not self.text_path and role in _OF_TEXTS and (at_first or self._objects > self._others):
            self.text_path = field_of_text(role, self.paths)
        return bool(self.text_path)


def field_of_text(role: str, paths: Collection[str]) -> str:
    """Of the fields of an object, by their paths, the one that a text in its place stands for; '' for none."""
    return field_with(role, paths) or (field_with(RESPONSE, paths) if role == REFERENCE else "")


_OF_TEXTS = (QUERY, REFERENCE, RESPONSE)


def _is_nothing(cell: Cell) -> bool:
    """Whether the cell is how an object that is missing is written among others."""
    return isinstance(cell, str) and cell.strip().casefold() in ("null", "none", "nan", '""')


def fields_of(
    columns: Sequence[int],
    header: Sequence[Cell],
    rows: Rows,
    given: Collection[int],
    named: Sequence[Named],
    others: dict[int, Fields] | None = None,
) -> dict[int, Fields]:
    """The fields of each column of objects: most cells are one or blank, and some field has a role.

    Of `given` columns no field needs one. `others` receives the columns that turn out to be none of objects; without
    it, the rows are only the first ones.
    """
    every = {index: Fields() for index in columns}
    open_ones = dict(every)
    for number, cells in rows:
        for index, its in [*open_ones.items()]:
            its.add(number, cell_at(cells, index))
            if its.is_hopeless:
                del open_ones[index]
    found = {}
    for index, its in every.items():
        name = str(header[index])
        role = next((ROLES[each.role] for each in named if matches(name, each.column)), None)
        role = role or (RESPONSE if index in given else _role(name))
        if not its.are_objects(name, role, named, at_first=others is None):
            if others is not None:
                others[index] = its
        elif index in given or any(_has_role(f"{name}.{path}") for path in its.paths):
            found[index] = its
    return found


def _has_role(name: str) -> bool:
    return _role(name) in _ROLES


def _role(name: str) -> str | None:
    meaning = meaning_of(name, has_prefixed=False)
    return meaning.role if meaning else None


def unfolded(header: Sequence[Cell], rows: Rows, fields: Mapping[int, Fields]) -> tuple[list[Cell], Rows]:
    """The header and the rows with further columns for the fields, named by their paths."""
    added = [(index, path) for index, its in fields.items() for path in its.paths]
    names = [f"{header[index]}.{path}" for index, path in added]
    texts = {index: its.text_path for index, its in fields.items() if its.text_path}
    return [*header, *names], (
        (number, [*cells, *[""] * (len(header) - len(cells)), *_values(cells, added, texts)])
        for number, cells in rows
    )


def _values(
    cells: Sequence[Cell], added: Sequence[tuple[int, str]], texts: Mapping[int, str]
) -> Iterator[Cell]:
    objects = {index: _object(cell_at(cells, index)) for index in dict.fromkeys(index for index, _ in added)}
    for index, path in added:
        values, cell = objects[index], cell_at(cells, index)
        if values is not None:
            yield value_cell(values[path]) if path in values else ABSENT
        else:
            yield cell if texts.get(index) == path and not _is_nothing(cell) else ABSENT


def with_plain_texts(rows: Rows) -> Rows:
    """The rows with the texts that JSON strings stand for, in columns whose first cells are nothing else.

    A single such column without escapes may have answers that are quotations: "To be or not to be".
    """
    first = list(islice(rows, _PEEKED))
    columns = {index for _, cells in first for index, cell in enumerate(cells) if cell}
    encoded = [
        index for index in columns if all(_decoded(cell) is not None for cell in _cells_of(first, index))
    ]
    is_sure = len(encoded) > 1 or any(
        _ESCAPE.search(str(cell)) for index in encoded for cell in _cells_of(first, index)
    )
    rows = chain(first, rows)
    return _decode(rows, encoded) if is_sure else rows


def _cells_of(rows: Sequence[tuple[int, Sequence[Cell]]], index: int) -> Iterator[Cell]:
    return (cell for _, cells in rows if (cell := cell_at(cells, index)))


def _decode(rows: Rows, columns: Sequence[int]) -> Rows:
    for number, cells in rows:
        decoded = {index: text for index in columns if (text := _decoded(cell_at(cells, index))) is not None}
        yield number, [decoded.get(index, cell) for index, cell in enumerate(cells)]


_ESCAPE = re.compile(r"""\\(?:["\\/u]|n(?![a-z]))""")
"""What JSON writes and a quotation hardly has. In a path such as "C:\\new", it is no end of a line."""


def _decoded(cell: Cell) -> str | None:
    """The text of a JSON string such as "Four\\nweeks."; None for other cells."""
    if type(cell) is not str or len(cell) < len('""') or cell[0] != '"' or cell[-1] != '"':
        return None
    try:
        return without_half_pairs(json.loads(cell))
    except ValueError:
        return None


def with_texts_in_fields(rows: Rows, moved: Mapping[int, int]) -> Rows:
    """The rows of records, with what stands in place of an object as its field: `moved` gives the columns of both."""
    for number, cells in rows:
        filled = [*cells]
        for whole, part in moved.items():
            filled[part] = filled[part] or filled[whole]
        yield number, filled


def with_whole_contexts(rows: Rows, columns: Columns, delimiter: str) -> Rows:
    """The rows with the chunks of contexts in several columns as a list in the first of them."""
    width = max(map(max, columns.parts)) + 1
    for number, cells in rows:
        filled = [*cells, *[""] * (width - len(cells))]
        for its in columns.parts:
            filled[its[0]] = _whole_context({columns.uses[index]: filled[index] for index in its}, delimiter)
        yield number, filled


def _whole_context(cells: Mapping[ColumnUse, Cell], delimiter: str) -> Cell:
    texts = []
    for use, cell in cells.items():
        if isinstance(cell, BadCell):
            return BadCell(f"in {use}, {cell.problem}")
        if isinstance(cell, JsonText):
            texts.append(json.loads(cell))
        elif not is_blank(cell):
            texts += _chunks_of(str(cell), delimiter)
    return JsonText(json.dumps(texts, ensure_ascii=False)) if texts else ""


def _chunks_of(text: str, delimiter: str) -> Sequence[str]:
    """Of a list, and those with || or a delimiter between them; any other text is one, also one with paragraphs."""
    try:
        found = split_cell(text, delimiter)
    except InputError:  # a list that cannot be read is a text
        return [text]
    return found.chunks if found.kind in (*LISTS, PIPES, DELIMITER) else [text]


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


# --- Calls that failed, and what promptfoo writes around a response ----------------------------------------------


class _Marks(NamedTuple):
    """A column of responses in a .csv of promptfoo."""

    failures: Failures
    state: int | None = None
    """The column with PASS, FAIL or ERROR; None if each response begins with that."""
    reason: int | None = None
    """The column that says why."""

    def answer(self, cell: str, cells: Sequence[Cell]) -> str | None:
        """The response in a cell of the row; None for an error."""
        if self.state is None:
            return _marked_answer(cell)
        if cell_at(cells, self.state) == "ERROR":
            return None
        reason = "" if self.reason is None else cell_at(cells, self.reason)
        return cell.removeprefix(f"{reason}{_RULE}") if reason else cell


def failures_in(
    columns: Columns, header: Sequence[Cell], first: Sequence[tuple[int, Sequence[Cell]]]
) -> tuple[dict[int, _Marks], dict[int, Failures]]:
    """The columns that tell of calls that failed, by their position: those of responses, and those without a use."""
    marks = {
        index: _Marks(Failures(columns.uses[index], OF_MARKS), *places)
        for index in columns.responses.values()
        if index in columns.uses and (places := _verdicts(header, index, first)) is not None
    }
    states = {each.state for each in marks.values()}
    told = {}
    for index, use in columns.uses.items():
        if use.role in (UNUSED, KEPT) and index not in states:
            kind = OF_ERRORS if names_errors(use.header) else OF_STATES if names_state(use.header) else ""
            if kind:
                told[index] = Failures(use, kind)
    return marks, told


def _verdicts(
    header: Sequence[Cell], index: int, first: Sequence[tuple[int, Sequence[Cell]]]
) -> tuple[int | None, int | None] | None:
    """Where the verdicts of a column of responses are, and the reasons; None for a column without verdicts."""
    if not _PROMPTED.match(str(header[index])):
        return None
    if squeezed(str(cell_at(header, index + 1))) == "status":
        words = {str(cell_at(cells, index + 1)) for _, cells in first} - {""}
        names = {squeezed(str(cell_at(header, place))): place for place in range(index + 5, index, -1)}
        return (index + 1, names.get("graderreason")) if words and words <= _VERDICTS else None
    texts = [str(cell) for _, cells in first if (cell := cell_at(cells, index))]
    return (None, None) if texts and all(map(_MARK.match, texts)) else None


_PROMPTED = re.compile(r"\[[^\]]*[^\]\s][^\]]*\] .")
"""A provider and a prompt."""
_VERDICTS = {"PASS", "FAIL", "ERROR"}
_MARK = re.compile(r"\[(PASS|FAIL|ERROR)\](?P<score> \((?:\d|undefined)[^\n]*\)(?=\s*\n|\Z))?\s*")
_REASON = re.compile(r"(?:\A|\n\n)(?:Pass|Fail) Reason: ")
_RULE = "\n---\n"
"""What stands between the reason and the response, of older versions."""


def with_answers(rows: Rows, marks: Mapping[int, _Marks], told: Mapping[int, Failures]) -> Rows:
    """The rows with bare responses. `marks` and `told` receive those of calls that failed."""
    for number, cells in rows:
        for index, failures in told.items():
            failures.look(number, cell_at(cells, index))
        bare: list[Cell] = [*cells] if marks else []
        for index, its in marks.items():
            cell = cell_at(cells, index)
            if isinstance(cell, str) and cell:
                answer = its.answer(cell, cells)
                bare[index] = answer or ""
                if answer is None:
                    its.failures.add(number)
        yield number, bare or cells


def _marked_answer(cell: str) -> str | None:
    """The response in a cell with a verdict before it and mostly a reason behind it; None for an error."""
    text = cell.replace("\r\n", "\n")
    found = _MARK.match(text)
    if found is None:
        return cell
    if found[1] == "ERROR":
        return None
    text = text[found.end() :]
    if found[1] == "FAIL" and not found["score"]:
        return text.partition(_RULE)[2] or text
    *_, last = [None, *_REASON.finditer(text)]
    if last is None:
        return text.strip()
    reason = text[last.end() :].strip()
    text = text[: last.start()].strip().removeprefix(f"{reason}{_RULE}")
    return None if found[1] == "FAIL" and text == reason else text
