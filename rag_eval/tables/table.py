"""A file to a table of cases. All problems of a file are reported together, with their places and remedies."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval.errors import MOST_LISTED, TableError, first_of
from rag_eval.records import Row
from rag_eval.tables.cells import Cell, cell_at, column_letter
from rag_eval.tables.chunking import (
    AUTO,
)
from rag_eval.tables.columns import (
    MESSAGES,
    ROLES,
    WIDE,
    WORDS,
    Asked,
    Columns,
    ColumnUse,
    Named,
    map_option,
    matches,
)
from rag_eval.tables.delimited import FOUND_OUT, TextForm
from rag_eval.tables.grouping import Unit, group
from rag_eval.tables.header import is_readable, other_shape, read_header, turned_table, whole_header
from rag_eval.tables.input_files import WITH_SHEETS
from rag_eval.tables.messages import Messages, find_messages
from rag_eval.tables.names import (
    QUERY,
    REFERENCE,
    RESPONSE,
    UNUSED,
    after_prefix,
    field_with,
    folded,
    meaning_of,
    names_bots,
    squeezed,
)
from rag_eval.tables.remarks import (
    Remarks,
    cut_warnings,
    first_ten,
    header_warnings,
    merge_warnings,
    short_warnings,
    text_in_object,
)
from rag_eval.tables.row_reader import RowReader
from rag_eval.tables.rows import Lines, Rows
from rag_eval.tables.selection import EVERYTHING, Selection, sampled
from rag_eval.tables.sheets import Sheet, open_sheet, place_of
from rag_eval.tables.unfolding import (
    Fields,
    columns_of_objects,
    failures_in,
    field_of_text,
    fields_of,
    unfolded,
    with_answers,
    with_plain_texts,
    with_texts_in_fields,
    with_whole_contexts,
)
from rag_eval.tables.unused import ROWS_SEEN, FirstRows, UnusedColumns
from rag_eval.texts.citations import Habit
from rag_eval.texts.display import counted


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that was read from a spreadsheet."""

    path: Path
    sheet: str
    """Empty for formats without sheets."""
    columns: tuple[ColumnUse, ...]
    """Every column with a header, from left to right, those that are not used included."""
    bots: tuple[str, ...]
    """From left to right."""
    rows: Sequence[Row]
    blank_rows: int
    """Rows without any text in a used column, between the header and the last row that has some."""
    cut_rows: int
    """Rows beyond `max_rows` that are not blank."""
    chunks: int
    """Context chunks in all rows; those of a shared cell count once."""
    layout: str
    """How a text file is written: its separator and encoding."""
    dropped_items: int
    """Items of JSON lists in context cells that hold nothing; those of a shared cell count once."""
    warnings: tuple[str, ...]
    shape: str
    """In words."""
    context_cells: Mapping[str, int]
    """How many context cells were read by which rule; shared cells count once."""
    selection: tuple[str, ...]
    """What was asked for instead of all rows, in the order in which it was applied."""
    has_documents: bool
    """Whether both gold and retrieved documents are there."""
    with_history: int
    """Rows with earlier turns of a conversation."""
    habits: Mapping[str, Habit]
    """How each bot uses brackets, over all rows."""
    decimals: Mapping[str, str] = field(default_factory=dict)
    """Decimal separators of columns with latency and cost, by their squeezed names; '' where no cell tells."""
    earlier_bots: tuple[str, ...] = ()
    """Of another file, with earlier answers."""

    @property
    def reading(self) -> dict[str, Any]:
        """How the file was read, in values that JSON knows."""
        return {
            "shape": self.shape,
            "layout": self.layout,
            "columns": [asdict(use) for use in self.columns],
            "context_cells": dict(self.context_cells),
            "selection": list(self.selection),
            "warnings": list(self.warnings),
        }


def read_table(
    path: Path,
    *,
    sheet: str | None = None,
    prefix: str = "Bot_",
    delimiter: str = AUTO,
    max_rows: int = 200,
    keep: Collection[str] = (),
    criteria: Collection[str] = (),
    form: TextForm = FOUND_OUT,
    on_row: Callable[[], None] = lambda: None,
    named: Sequence[Named] = (),
    bot_name: str = "",
    selection: Selection = EVERYTHING,
    header_row: int | None = None,
    units: Mapping[str, str] | None = None,
    decimals: Mapping[str, str] | None = None,
) -> Table:
    """Read the first visible sheet, or the named one. Raises TableError with every problem that was found.

    The header is the first row that is not blank, or that with the number `header_row`; with 0 there is none, and the
    columns are called by their letters. `prefix` marks the columns with responses, `delimiter` is how
    one context cell separates its chunks. `keep` names further columns whose texts the cases carry, `criteria` the
    criteria of a rubric that human labels may speak of. `form` is how a text file is written. `on_row` is called after
    each row, so that somebody can be told that a large file is being read. `named` gives columns roles, `bot_name`
    names the bot of a table with one column of responses, `selection` says which rows are wanted. `units` are those of
    latency and cost, by role, where the header does not name them; `decimals` are decimal separators of their columns
    that other files tell, as `Table.decimals` has them.
    """
    asked = Asked(
        prefix=prefix,
        keep=keep,
        criteria=criteria,
        named=named,
        bot_name=bot_name,
        units=units or {},
        decimals=decimals or {},
    )
    how = _How(path, sheet, delimiter, max_rows, form, selection, header_row)
    found = _read_once(how, asked, on_row)
    while not isinstance(found, Table):
        asked = replace(asked, faults={**asked.faults, **found})
        found = _read_once(how, asked, lambda: None)
    return found


class _How(NamedTuple):
    """How a file is read."""

    path: Path
    sheet: str | None
    delimiter: str
    max_rows: int
    form: TextForm
    selection: Selection
    header_row: int | None


def _read_once(how: _How, asked: Asked, on_row: Callable[[], None]) -> Table | Mapping[int, str]:
    """The table; or, if another column may take their place, those that have no latency or cost after all.

    These by position, with the reason.
    """
    path, sheet, delimiter, max_rows, form, selection, header_row = how
    with open_sheet(path, sheet, form, header_row) as opened:
        place = place_of(path, opened.name)
        number, header = next(opened.rows, (0, ()))
        if not header:
            unreadable = first_of(opened.problems)
            raise TableError(unreadable or f"{place}: is empty; expected a header and rows below it")
        is_given = header_row is not None or not number  # records have no row with headers
        last, header, opened = _whole_header(number, header, opened, asked, is_given=is_given)
        opened = replace(opened, rows=with_plain_texts(opened.rows))
        opened, asked = _with_texts_of_objects(header, opened, asked)
        messages, header, opened, asked = _with_answers(place, header, opened, asked)
        header, opened, asked = _with_fields(path, header, opened, asked, (form, header_row, last))
        first = list(islice(opened.rows, ROWS_SEEN))
        opened = replace(opened, rows=chain(first, opened.rows))
        rows = FirstRows(first)
        try:
            columns = read_header(place, header, asked, rows)
        except TableError as error:
            shape, is_all = other_shape(
                place,
                number,
                header,
                first,
                asked,
                separators=opened.separators,
                is_given=is_given,
                is_text=path.suffix.lower() not in WITH_SHEETS,
            )
            # The right columns may well be on a sheet that was not read.
            problems = [*filter(None, [shape]), *([] if is_all else error.problems), *opened.warnings]
            raise TableError(problems, () if shape else error.roles) from None
        if turned := turned_table(place, header, first, asked, is_readable=True):
            raise TableError(turned)
        lines = Lines(path.name, path.stat().st_size, shares=opened.shares_texts)
        reader = RowReader(place, columns, delimiter, asked.criteria, opened.room, lines, asked.decimals)
        unused = UnusedColumns(columns, asked, rows)
        if messages is None:
            marks, told = failures_in(columns, header, first)
            reader.failures = [*(each.failures for each in marks.values()), *told.values()]
            if reader.failures:
                opened = replace(opened, rows=with_answers(opened.rows, marks, told))
        known = _Opened(path, place, opened, last, header, columns, unused, selection, messages)
        return _table_of(known, reader, max_rows, on_row)


def _whole_header(
    number: int, header: Sequence[Cell], opened: Sheet, asked: Asked, *, is_given: bool
) -> tuple[int, Sequence[Cell], Sheet]:
    """The number of the last row of the header, the header, and the sheet below it, which says how many rows it has."""
    first = list(islice(opened.rows, ROWS_SEEN))
    header, count, may_be_case = whole_header(header, first, asked, is_given=is_given)
    rows = chain(first[count:], opened.rows)
    if not count:
        return number, header, replace(opened, rows=rows)
    last = first[count - 1][0]
    note = f"Rows {number} {'and' if count == 1 else 'to'} {last} were read as the header."
    if may_be_case:
        note = f"Row {last} repeats the header and was not read as a case; to read it, add --header-row {number}."
    return last, header, replace(opened, rows=rows, warnings=(*opened.warnings, note))


def _with_texts_of_objects(header: Sequence[Cell], opened: Sheet, asked: Asked) -> tuple[Sheet, Asked]:
    """The table with a value of records that stands where others have an object, as the field with its role.

    The column of such values keeps them for --where, and is not used.
    """
    places = {name: index for index, name in enumerate(header) if isinstance(name, str)}
    moved, notes = {}, []
    for name, rows in opened.mixed.items():
        if any(matches(name, each.column) for each in asked.named):
            continue
        paths = [path[len(name) + 1 :] for path in places if path.startswith(f"{name}.")]
        part = f"{name}.{field_of_text(_role_of(name, asked), paths)}"
        if part in places:
            moved[places[name]] = places[part]
            use = ColumnUse(column_letter(places[name]), name, "")
            condition = f"{name} = " if re.fullmatch(r"[\w.-]+", name) else ""
            notes.append(text_in_object(use, part, rows, condition))
    wholes = [Named(str(header[index]), "ignore", "its fields are columns") for index in moved]
    left = {name: rows for name, rows in opened.mixed.items() if places[name] not in moved}
    sheet = replace(
        opened,
        rows=with_texts_in_fields(opened.rows, moved) if moved else opened.rows,
        mixed=left,
        warnings=(*opened.warnings, *notes),
    )
    return sheet, replace(asked, named=(*asked.named, *wholes))


def _role_of(name: str, asked: Asked) -> str:
    """What the whole name of an object says; '' for nothing."""
    if after_prefix(name, asked.prefix) and not names_bots(name):
        return RESPONSE
    meaning = meaning_of(name, has_prefixed=False)
    return meaning.role if meaning else ""


def _with_answers(
    place: str, header: Sequence[Cell], opened: Sheet, asked: Asked
) -> tuple[Messages | None, Sequence[Cell], Sheet, Asked]:
    """The table with a row for each answer, if its rows are messages; any other table as it is."""
    first = list(islice(opened.rows, ROWS_SEEN))
    opened = replace(opened, rows=chain(first, opened.rows))
    messages = None if is_readable(header, asked) else find_messages(place, header, first, asked, opened.room)
    if messages is None:
        return None, header, opened, asked
    rows = messages.rows(opened.rows)
    return messages, messages.header, replace(opened, rows=rows), messages.asked(asked)


def _with_fields(
    path: Path, header: Sequence[Cell], opened: Sheet, asked: Asked, given: tuple[TextForm, int | None, int]
) -> tuple[Sequence[Cell], Sheet, Asked]:
    """The table with a column for each field of those columns that hold objects as texts, in every row of the file.

    Of columns with the prefix of bots these are only fields that somebody named. `given` says how the file is written,
    which row the header was said to be in, and which is its last.
    """
    names = {index: name for index, name in enumerate(header) if isinstance(name, str)}
    of_bots = {
        index for index, name in names.items() if after_prefix(name, asked.prefix) and not names_bots(name)
    }
    named = {
        index: each for index, name in names.items() for each in asked.named if matches(name, each.column)
    }
    texts = {index for index, each in named.items() if ROLES[each.role] in (QUERY, REFERENCE, RESPONSE)}
    parts = {
        index
        for index, name in names.items()
        if name and any(folded(each.column).startswith(f"{folded(name)}.") for each in asked.named)
    }
    with_chats = not of_bots and not _has_responses(header, asked)
    roles = {ROLES[each.role] for each in named.values()} | _roles_by_name(header)
    columns, rows = columns_of_objects(
        header,
        opened.rows,
        with_chats=with_chats,
        with_truth=REFERENCE in roles,
        given=texts | of_bots | parts,
        named=asked.named,
    )
    columns = [
        index
        for index in columns
        if index in texts or (index not in named and (not of_bots or index in of_bots | parts))
    ]
    opened = replace(opened, rows=rows)
    if not columns:
        return header, opened, asked
    form, header_row, last = given
    with open_sheet(path, opened.name or None, form, header_row) as again:
        below = with_plain_texts(dropwhile(lambda row: row[0] <= last, again.rows))
        odd: dict[int, Fields] = {}
        fields = fields_of(columns, header, below, texts | of_bots | parts, asked.named, odd)
    uses = {index: ColumnUse(column_letter(index), names[index], "") for index in columns}
    _refuse_objects(place_of(path, opened.name), uses, {index: named[index] for index in texts}, fields)
    notes = [
        *_no_objects(
            {uses[index]: its for index, its in odd.items() if index not in texts | of_bots}, with_chats
        )
    ]
    if of_bots:
        notes += _take_named_fields(uses, fields, asked, of_bots, texts)
    fields = {index: its for index, its in fields.items() if its.paths and index not in texts}
    notes += (
        text_in_object(uses[index], f"{names[index]}.{its.text_path}", its.texts)
        for index, its in fields.items()
        if its.texts
    )
    folded_ones = [Named(names[index], "ignore", "its fields are columns") for index in fields]
    header, rows = unfolded(header, opened.rows, fields)
    asked = replace(asked, named=(*asked.named, *folded_ones))
    return header, replace(opened, rows=rows, warnings=(*opened.warnings, *notes)), asked


def _no_objects(columns: Mapping[ColumnUse, Fields], with_chats: bool) -> Iterator[str]:
    """About columns whose first cells are objects and that are read as they are, all the same."""
    for use, its in columns.items():
        meaning = meaning_of(use.header, has_prefixed=False)
        field = field_of_text(meaning.role, its.paths) if meaning else ""
        if with_chats:
            yield (
                f"Column {use} begins with chats or objects and was not used, because the text in row {its.texts[0]} "
                "is not one; correct or clear the cell, or leave the row out of the file."
            )
        elif meaning and field and meaning.role in WORDS:
            part = replace(use, header=f"{use.header}.{field}")
            yield (
                f"Column {use}: objects with a field '{field}' in row {first_ten(its.objects)} were read as texts, as "
                f"most cells are not objects. To read the field, add {map_option(part, WORDS[meaning.role])}."
            )


def _take_named_fields(
    uses: Mapping[int, ColumnUse],
    fields: Mapping[int, Fields],
    asked: Asked,
    of_bots: Collection[int],
    texts: Collection[int],
) -> Iterator[str]:
    """Leaves only those fields that somebody named; yields what is said about the columns of bots without one."""
    for index in fields.keys() - texts:
        use, every = uses[index], fields[index].paths
        fields[index].paths = {
            each: None
            for each in every
            if any(matches(f"{use.header}.{each}", one.column) for one in asked.named)
        }
        if index in of_bots and not fields[index].paths and (field := field_with(RESPONSE, every)):
            part = ColumnUse("", f"{use.header}.{field}", "")
            yield (
                f"Column {use} contains objects with a field '{field}', and each whole object was read as the "
                f"response. To read the field, add {map_option(part, 'bot')}."
            )


def _refuse_objects(
    place: str, uses: Mapping[int, ColumnUse], texts: Mapping[int, Named], fields: Mapping[int, Fields]
) -> None:
    """Raise TableError for columns that somebody says to be texts, while a field of their objects is the text."""
    problems = []
    for index in texts.keys() & fields.keys():
        use, said, paths = uses[index], texts[index], [*fields[index].paths]
        field = field_with(ROLES[said.role], paths) or field_with(RESPONSE, paths)
        if field:
            shown = ", ".join(f"'{each[:60]}'" for each in paths[:10])
            option = map_option(replace(use, header=f"{use.header}.{field}"), said.role)
            problems.append(
                f"{place}: column {use} contains objects with the fields {shown}, not texts; add {option} instead of "
                f"{said.origin}"
            )
    if problems:
        raise TableError(first_of(problems))


def _has_responses(header: Sequence[Cell], asked: Asked) -> bool:
    """Whether a column has responses, and nobody said that a field of a chat has some."""
    names = [name for name in header if isinstance(name, str) and name]
    given = [each.column for each in asked.named if each.role == "bot"]
    if given:
        fields = tuple(f"{name}." for name in names)
        return not any(column.startswith(fields) for column in given)
    return RESPONSE in _roles_by_name(header)


def _roles_by_name(header: Sequence[Cell]) -> set[str]:
    names = (name for name in header if isinstance(name, str) and name)
    return {meaning.role for name in names if (meaning := meaning_of(name, has_prefixed=False))}


class _Opened(NamedTuple):
    """A file whose header was read."""

    path: Path
    place: str
    sheet: Sheet
    header_row: int
    header: Sequence[Cell]
    columns: Columns
    unused: UnusedColumns
    selection: Selection
    messages: Messages | None
    """If each row of the file is one."""


def _table_of(
    opened: _Opened, reader: RowReader, max_rows: int, on_row: Callable[[], None]
) -> Table | Mapping[int, str]:
    columns, sheet, selection = opened.columns, opened.sheet, opened.selection
    walk = _Walk(columns, opened.header if opened.header_row else ())
    shape, units = _units(opened, walk, reader)
    cut_rows = reader.read_all(sampled(units, selection.random_rows), max_rows, on_row)
    reader.report_broken_lists()
    reader.settle_amounts()
    last_row = (
        reader.last_row if shape == WIDE or not walk.numbers else walk.numbers[-1]
    ) or opened.header_row
    merged = tuple(merge_warnings(sheet.merged, columns, opened.header_row, last_row))
    _raise_problems(opened, reader, merged, is_selected=bool(selection and walk.numbers))
    settled = {use.letter: use for use in reader.settled()}
    if columns.has_spare and (faults := {letter: use.why for letter, use in settled.items() if use.why}):
        return {index: faults[use.letter] for index, use in columns.uses.items() if use.letter in faults}
    blank_rows = walk.blank_between(opened.header_row, last_row)
    messages = opened.messages
    if messages:
        shape = MESSAGES
        blank_rows -= bisect_right(messages.others, last_row)
    return Table(
        path=opened.path,
        sheet=sheet.name,
        columns=tuple(settled.get(use.letter, use) for use in columns.uses.values()),
        bots=tuple(reader.columns.responses),
        rows=Rows(reader.lines, reader.columns, reader.amounts),
        blank_rows=blank_rows,
        cut_rows=cut_rows,
        chunks=reader.chunks,
        layout=sheet.layout,
        dropped_items=reader.dropped_items,
        warnings=(
            *cut_warnings(cut_rows, len(reader.lines)),
            *sheet.warnings,
            *columns.warnings,
            *header_warnings(walk.headers),
            *opened.unused.warnings(),
            *_odd_values(sheet, columns),
            *reader.warnings(opened.unused.names_of_bots()),
            *_failed(opened, reader),
            *(messages.warnings() if messages else ()),
            *short_warnings([number for number in sheet.short if number <= last_row]),
            *merged,
        ),
        shape=shape,
        context_cells=dict(reader.kinds.most_common()),
        selection=selection.words(),
        has_documents=columns.gold is not None and (bool(columns.retrieved) or reader.has_ids),
        with_history=reader.with_history,
        habits=reader.habits,
        decimals=reader.decimals,
    )


def _odd_values(sheet: Sheet, columns: Columns) -> Iterator[str]:
    remarks = Remarks()
    names = {use.header: str(use) for use in columns.used.values()}
    for header, rows in sheet.mixed.items():
        if header in names:
            yield (
                f"Column {names[header]}: only row {first_ten(rows)} has a text there. The objects of other rows were "
                f"read as blank; to read a field of them, give it a role, as in --map '{header}.FIELD=bot'."
            )
    for (header, kind), rows in sheet.odd.items():
        for row in rows if header in names else ():
            remarks.add(kind, names[header], row)
    yield from remarks.warnings()


def _failed(opened: _Opened, reader: RowReader) -> Iterator[str]:
    by_rows = opened.columns.bot is not None and len(reader.columns.responses) > 1
    for failures in reader.failures:
        yield from failures.warnings(opened.header, by_rows=by_rows, is_selected=bool(opened.selection.rows))


def _units(opened: _Opened, walk: "_Walk", reader: RowReader) -> tuple[str, Iterator[Unit]]:
    """The shape of the table, and what would be the rows of a wide one."""
    columns, path = opened.columns, opened.path
    chosen = opened.selection.chosen(
        opened.place, opened.header, walk.rows(opened.unused.counted(opened.sheet.rows))
    )
    if columns.parts:  # only now, so that --where and a header that is repeated are compared with the cells
        chosen = with_whole_contexts(chosen, columns, reader.delimiter)
    if columns.shape == WIDE:
        return WIDE, (Unit(number, cells, _SAME) for number, cells in chosen)
    grouped = group(opened.place, chosen, columns, Lines(path.name, path.stat().st_size), reader.report)
    reader.regard(grouped.columns, has_passages=grouped.has_passages)
    return grouped.shape, grouped.units


_SAME: Mapping[int, int] = {}


def _raise_problems(opened: _Opened, reader: RowReader, merged: Sequence[str], *, is_selected: bool) -> None:
    """Raise TableError for a table with problems, or without rows. A blank query may well be a merged one."""
    problems = [*opened.sheet.problems, *reader.problems]
    count = len(opened.sheet.problems) + reader.problem_count
    if not problems and not len(reader.lines):
        what = "nothing to judge"
        if opened.selection:
            what = "no row is selected by " + ", ".join(opened.selection.words())
        count = 1
        problems = [
            f"{opened.place}: no row below the header (row {opened.header_row}) contains a value; {what}"
            if not is_selected
            else f"{opened.place}: {what}; check --where, --rows and --random-rows"
        ]
    if problems:
        raise TableError([*first_of(problems, count), *merged])


_LONGEST_NAME_OF_QUERY = 100
"""Characters; a longer text is not compared with the name of its column."""


class _Walk:
    """Passes over the rows that hold something, and remembers which they are."""

    def __init__(self, columns: Columns, header: Sequence[Cell]) -> None:
        """Rows that say the same as the `header` are not given; it is () for a table that has none in a row."""
        self._columns = columns
        self._names = [squeezed(str(cell)) for cell in header]
        self.numbers = array("Q")
        self.headers: list[int] = []
        """The rows that repeat the header, as between tables that were put below each other."""

    def rows(self, rows: Iterator[tuple[int, Sequence[Cell]]]) -> Iterator[tuple[int, Sequence[Cell]]]:
        for number, cells in rows:
            if not self._columns.is_blank(cells):
                self.numbers.append(number)
                if self._is_header(cells):
                    self.headers.append(number)
                else:
                    yield number, cells

    def _is_header(self, cells: Sequence[Cell]) -> bool:
        query = self._columns.query
        text = cell_at(cells, query)
        if not self._names or not isinstance(text, str) or len(text) > _LONGEST_NAME_OF_QUERY:
            return False
        if squeezed(text) != self._names[query]:
            return False
        said = {place: squeezed(str(cell)) for place, cell in enumerate(cells) if cell}
        return len(said) > 1 and said.items() <= dict(enumerate(self._names)).items()

    def blank_between(self, header_row: int, last_row: int) -> int:
        return last_row - header_row - bisect_right(self.numbers, last_row)


def describe(table: Table) -> list[str]:
    """What was read, in plain lines: counts, what each column is used as, blank rows. No warnings."""
    place = place_of(table.path, table.sheet) + (f" ({table.layout})" if table.layout else "")
    bots = f"{counted(len(table.bots), 'bot')} ({', '.join(table.bots)})"
    lines = [f"{place}: {counted(len(table.rows), 'row')}, {bots}, {counted(table.chunks, 'context chunk')}"]
    if table.shape != WIDE:
        lines.append(f"  read as {table.shape}")
    unused = [column for column in table.columns if column.role == UNUSED]
    untold = set(unused[MOST_LISTED:])
    lines += [f"  {column.described}" for column in table.columns if column not in untold]
    if untold:
        lines.append(f"  {counted(len(untold), 'more column')} -> {UNUSED}")
    if table.context_cells:
        told = ", ".join(f"{kind} ({number:,})" for kind, number in table.context_cells.items())
        lines.append(f"  context cells: {told}")
    if table.with_history:
        lines.append(f"  earlier turns: in {counted(table.with_history, 'row')}")
    if table.selection:
        lines.append(f"  selected: {'; then '.join(table.selection)}")
    if table.blank_rows:
        lines.append(f"{counted(table.blank_rows, 'blank row')} skipped")
    return lines
