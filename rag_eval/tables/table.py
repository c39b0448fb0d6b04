"""The rows of a sheet to cases. All problems of a file are reported together, with their places and remedies."""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from rag_eval.errors import InputError, TableError
from rag_eval.records import Case, Row
from rag_eval.tables.bounds import MOST_LISTED, Room, first_of
from rag_eval.tables.cells import (
    EXCEL_LIMIT,
    Area,
    BadCell,
    Cell,
    JsonText,
    cell_at,
    column_letter,
    is_blank,
)
from rag_eval.tables.chunking import (
    AUTO,
    BLANK,
    JSON_LIST,
    LISTS,
    looks_like_broken_list,
    split_cell,
    why_broken,
)
from rag_eval.tables.delimited import FOUND_OUT, TextForm
from rag_eval.tables.document_ids import parse_documents, rank_documents
from rag_eval.tables.grouping import Unit, group
from rag_eval.tables.header import (
    WIDE,
    Asked,
    Columns,
    ColumnUse,
    Named,
    looks_like_header,
    read_header,
)
from rag_eval.tables.labels import parse_score, parse_verdict
from rag_eval.tables.names import QUERY, REFERENCE, RESPONSE, UNUSED, holds_several
from rag_eval.tables.nested import role_text
from rag_eval.tables.selection import Selection, sampled
from rag_eval.tables.sheets import ROWS_OF_TITLES, Sheet, open_sheet
from rag_eval.tables.spool import Spool
from rag_eval.tables.unused import UnusedColumns

Value = TypeVar("Value")

_ROW_SIZE, _CASE_SIZE, _PART_SIZE = 250, 200, 60
"""Bytes that a row, a case, and a chunk or an id need, their texts not included."""
EVERYTHING = Selection()


class Rows(Sequence[Row]):
    """The rows of a table, kept on disk. They can be walked over as often as wanted; each time they are made anew."""

    def __init__(self, spool: Spool, columns: Columns) -> None:
        self._spool = spool
        self._columns = columns

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[Row]:
        make = _RowMaker(self._columns).row
        return map(make, self._spool)

    def __getitem__(self, index: Any) -> Any:
        """Walks over all rows before it: for tests and for a look at the first ones."""
        if isinstance(index, slice) or index < 0:
            return tuple(self)[index]
        return next(islice(self, index, None))


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
    layout: str = ""
    """How a text file is written: its separator and encoding."""
    dropped_items: int = 0
    """Items of JSON lists in context cells that hold nothing; those of a shared cell count once."""
    warnings: tuple[str, ...] = ()
    shape: str = WIDE
    """In words."""
    context_cells: Mapping[str, int] = field(default_factory=dict)
    """How many context cells were read by which rule; shared cells count once."""
    selection: tuple[str, ...] = ()
    """What was asked for instead of all rows, in the order in which it was applied."""
    has_documents: bool = False
    """Whether both gold and retrieved documents are there."""

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
) -> Table:
    """Read the first visible sheet, or the named one. Raises TableError with every problem that was found.

    The header is the first row that is not blank. `prefix` marks the columns with responses, `delimiter` is how
    one context cell separates its chunks. `keep` names further columns whose texts the cases carry, `criteria` the
    criteria of a rubric that human labels may speak of. `form` is how a text file is written. `on_row` is called after
    each row, so that somebody can be told that a large file is being read. `named` gives columns roles, `bot_name`
    names the bot of a table with one column of responses, `selection` says which rows are wanted.
    """
    asked = Asked(prefix=prefix, keep=keep, criteria=criteria, named=named, bot_name=bot_name)
    with open_sheet(path, sheet, form) as opened:
        place = _place(path, opened.name)
        header_row, header = next(opened.rows, (0, ()))
        if not header:
            unreadable = first_of(opened.problems)
            raise TableError(unreadable or f"{place}: is empty; expected a header and rows below it")
        try:
            columns = read_header(place, header, asked)
        except TableError as error:
            # The right columns may well stand further down, or on a sheet that was not read.
            below = _header_below(place, header_row, opened.rows, asked)
            raise TableError([*error.problems, *below, *opened.warnings]) from None
        return _read_rows(
            _Reading(path, place, opened, columns, asked, selection),
            delimiter,
            header_row,
            header,
            max_rows,
            on_row,
        )


class _Reading(NamedTuple):
    """What is known once the header was read."""

    path: Path
    place: str
    sheet: Sheet
    columns: Columns
    asked: Asked
    selection: Selection


def _read_rows(
    reading: _Reading,
    delimiter: str,
    header_row: int,
    header: Sequence[Cell],
    max_rows: int,
    on_row: Callable[[], None],
) -> Table:
    path, place, opened, columns, asked, selection = reading
    size = path.stat().st_size
    unused = UnusedColumns(columns, asked.named)
    walk = _Walk(columns, unused)
    chosen = selection.chosen(place, header, walk.rows(opened.rows))
    shape = columns.shape
    spool = Spool(path.name, size, shares=opened.shares_texts)
    reader = _RowReader(place, columns, delimiter, asked.criteria, opened.room, spool)
    units: Iterator[Unit] = (Unit._make((*row, _SAME)) for row in chosen)
    if shape != WIDE:
        grouped = group(place, chosen, columns, Spool(path.name, size), reader.report)
        shape, units = grouped.shape, grouped.units
        reader.regard(grouped.columns, has_passages=grouped.has_passages)
    cut_rows = reader.read_all(sampled(units, selection.random_rows), max_rows, on_row)
    read = len(reader.spool)
    reader.report_broken_lists()
    problems = [*opened.problems, *reader.problems]
    count = len(opened.problems) + reader.problem_count
    if not read and not problems:
        what = "no row is selected by " + ", ".join(selection.words()) if selection else "nothing to judge"
        problems = [f"{place}: no row below the header (row {header_row}) holds anything; {what}"]
        if selection and walk.numbers:
            problems = [f"{place}: {what}; check --where, --rows and --random-rows"]
        count = 1
    last_row = reader.last_row or header_row
    if shape != WIDE and walk.numbers:
        last_row = walk.numbers[-1]
    merged = tuple(_merge_warnings(opened.merged, columns, header_row, last_row))
    if problems:
        raise TableError([*first_of(problems, count), *merged])  # a blank query may well be a merged one
    return Table(
        path=path,
        sheet=opened.name,
        columns=columns.uses,
        bots=tuple(reader.columns.responses),
        rows=Rows(reader.spool, reader.columns),
        blank_rows=walk.blank_between(header_row, last_row),
        cut_rows=cut_rows,
        chunks=reader.chunks,
        layout=opened.layout,
        dropped_items=reader.dropped_items,
        warnings=(
            *_cut_warnings(cut_rows, read),
            *opened.warnings,
            *columns.warnings,
            *unused.warnings(),
            *reader.warnings(),
            *_short_warnings([number for number in opened.short if number <= last_row]),
            *merged,
        ),
        shape=shape,
        context_cells=dict(reader.kinds.most_common()),
        selection=selection.words(),
        has_documents=columns.gold is not None and (bool(columns.retrieved) or reader.has_ids),
    )


_SAME: Mapping[int, int] = {}


class _Walk:
    """Passes over the rows that hold something, and remembers which they are."""

    def __init__(self, columns: Columns, unused: UnusedColumns) -> None:
        self._columns = columns
        self._unused = unused
        self.numbers = array("Q")

    def rows(self, rows: Iterator[tuple[int, Sequence[Cell]]]) -> Iterator[tuple[int, Sequence[Cell]]]:
        for number, cells in rows:
            if not self._columns.is_blank(cells):
                self._unused.see(cells)
                self.numbers.append(number)
                yield number, cells

    def blank_between(self, header_row: int, last_row: int) -> int:
        return last_row - header_row - bisect_right(self.numbers, last_row)


def describe(table: Table) -> list[str]:
    """What was read, in plain lines: counts, what each column is used as, blank rows. No warnings."""
    place = _place(table.path, table.sheet) + (f" ({table.layout})" if table.layout else "")
    bots = f"{_count(len(table.bots), 'bot')} ({', '.join(table.bots)})"
    lines = [f"{place}: {_count(len(table.rows), 'row')}, {bots}, {_count(table.chunks, 'context chunk')}"]
    if table.shape != WIDE:
        lines.append(f"  read as {table.shape}")
    unused = [column for column in table.columns if column.role == UNUSED]
    untold = set(unused[MOST_LISTED:])
    for column in table.columns:
        if column in untold:
            continue
        about = f" for {column.metric}" if column.metric else ""
        owner = f" of {column.bot}" if column.bot is not None else ""
        why = f" ({column.why})" if column.why and not column.is_used else ""
        lines.append(f"  {column} -> {column.role}{about}{owner}{why}")
    if untold:
        lines.append(f"  {_count(len(untold), 'more column')} -> {UNUSED}")
    if table.context_cells:
        told = ", ".join(f"{kind} ({number:,})" for kind, number in table.context_cells.items())
        lines.append(f"  context cells: {told}")
    if table.selection:
        lines.append(f"  selected: {'; then '.join(table.selection)}")
    if table.blank_rows:
        lines.append(f"{_count(table.blank_rows, 'blank row')} skipped")
    return lines


def _header_below(
    place: str, taken: int, rows: Iterator[tuple[int, Sequence[Cell]]], asked: Asked
) -> Iterator[str]:
    """Where the header is when a title or a date stands above it, in row `taken`."""
    for number, cells in islice(rows, ROWS_OF_TITLES):
        if looks_like_header(cells, asked):
            yield (
                f"{place}: row {taken} was taken for the header, being the first that is not blank, but row {number} "
                f"looks like it; delete the rows above row {number}"
            )
            return


def _place(path: Path, sheet: str) -> str:
    return f"{path.name}, sheet '{sheet}'" if sheet else path.name


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class _Context(NamedTuple):
    """What a context cell holds."""

    chunks: tuple[str, ...]
    dropped: int
    kind: str
    ids: tuple[str, ...] | None
    is_broken: bool
    """It looks like a list, and is none."""


_NO_CONTEXT = _Context((), 0, BLANK, None, is_broken=False)
_ONE_PASSAGE = "passages of several rows"
_BAR = "'|' as deepeval writes it"


class _RowReader:
    """Checks the cells of one row after the other and spools what they hold; collects what is wrong with them."""

    def __init__(
        self,
        place: str,
        columns: Columns,
        delimiter: str,
        criteria: Collection[str],
        room: Room,
        spool: Spool,
    ) -> None:
        self.spool = spool
        self.problems: list[str] = []
        """The first of them."""
        self.problem_count = 0
        self.chunks = 0
        self.dropped_items = 0
        self.last_row = 0
        self.kinds: Counter[str] = Counter()
        """Of context cells."""
        self.has_ids = False
        """Whether chunks came with ids of their documents, and these count as the retrieved ones."""
        self._place = place
        self._delimiter = delimiter
        self._criteria = criteria
        self._room = room
        self._file_names = columns.names
        self._numbers: Mapping[int, int] = {}
        self._last: dict[int, tuple[str, object]] = {}
        """By column: the text that was parsed last, and its value or what is wrong with it."""
        self._broken: dict[int, list[tuple[int, str]]] = defaultdict(list)
        """By column: rows whose cell begins like a list and is none, and why."""
        self._with_lists: set[int] = set()
        self._cut: dict[str, list[int]] = defaultdict(list)
        """Rows with a text of exactly as many characters as Excel leaves, by the name of their column."""
        self._alternatives: dict[str, list[int]] = defaultdict(list)
        self._first_dropped = ""
        self.regard(columns, has_passages=False)

    def regard(self, columns: Columns, *, has_passages: bool) -> None:
        """From now on rows have these columns."""
        self.columns = columns
        self._names = columns.names
        self._has_passages = has_passages
        self._used = sorted(columns.names)
        self._contexts = sorted({*columns.contexts.values()})
        self._documents = sorted(columns.documents)
        self._roles = {
            columns.query: QUERY,
            **({} if columns.reference is None else {columns.reference: REFERENCE}),
            **dict.fromkeys(columns.responses.values(), RESPONSE),
        }
        self._plural = {
            index
            for index, role in self._roles.items()
            if role == REFERENCE and holds_several(columns.headers.get(index, ""))
        }
        self._takes_ids = columns.gold is not None and not columns.retrieved

    def read_all(self, units: Iterator[Unit], max_rows: int, on_row: Callable[[], None]) -> int:
        """How many rows beyond `max_rows` there are, which are not looked at."""
        cut_rows = 0
        for unit in units:
            if len(self.spool) == max_rows:
                cut_rows += 1
                continue
            self._read(unit)
            self.last_row = unit.number
            on_row()
        return cut_rows

    def _read(self, unit: Unit) -> None:
        number, cells, self._numbers = unit
        columns = self.columns
        self._room.take(_ROW_SIZE + _CASE_SIZE * len(columns.responses))
        texts = {index: self._text(number, index, cell_at(cells, index)) for index in self._used}
        if is_blank(cell_at(cells, columns.query)):
            self._report(
                number, columns.query, "is blank, but the row is not; add the query or clear the row"
            )
        # Read once a column, so that bots share what their row has in common.
        contexts = [self._context(number, index, texts[index]) for index in self._contexts]
        documents = [self._parsed(number, index, texts[index], self._ids) for index in self._documents]
        share = self.spool.share
        values: list[Any] = [number, share(texts[columns.query], texts[columns.query])]
        if columns.reference is not None:
            values.append(share(texts[columns.reference], texts[columns.reference]))
        values += [share(texts[index], texts[index]) for index in columns.responses.values()]
        values += [
            share(texts[index], context.chunks)
            for index, context in zip(self._contexts, contexts, strict=True)
        ]
        values += [share(texts[index], ids) for index, ids in zip(self._documents, documents, strict=True)]
        values += [share(texts[index], texts[index]) for index in columns.kept.values()]
        if columns.human:
            values.append(self._labels(number, texts))
        if self._takes_ids:
            ids = [context.ids for context in contexts]
            self.has_ids = self.has_ids or any(ids)
            values.append(ids)
        self.spool.add(values)

    def report_broken_lists(self) -> None:
        """What begins like a list and is none is an error where other cells of the column are lists."""
        for index, found in sorted(self._broken.items()):
            if index in self._with_lists:
                for number, why in found:
                    self._report(number, index, why)

    def warnings(self) -> Iterator[str]:
        broken: dict[str, list[int]] = defaultdict(list)
        for index, found in sorted(self._broken.items()):
            broken[self._names[index]] += [number for number, _ in found]
        for name, rows in broken.items():
            yield (
                f"Column {name}: what looks like a list cannot be read as one and was taken as plain text "
                f'in row {_first_ten(rows)}; write lists as JSON: ["chunk 1", "chunk 2"].'
            )
        for name, rows in self._cut.items():
            yield (
                f"Column {name}: exactly {EXCEL_LIMIT:,} characters in row {_first_ten(rows)}, so Excel probably "
                "cut the text; export it again as .csv, .jsonl or .parquet."
            )
        for name, rows in self._alternatives.items():
            yield (
                f"Column {name}: several ground truths in row {_first_ten(rows)}; the first one counts. Put the "
                "one that should count first."
            )
        if self.dropped_items:
            yield (
                f"{_count(self.dropped_items, 'item')} of JSON lists of chunks dropped, being null or blank; "
                f"the first in {self._first_dropped}."
            )

    def _text(self, number: int, index: int, cell: Cell) -> str:
        if index in self._roles and (isinstance(cell, JsonText) or index in self._plural):
            cell, is_one_of_several = role_text(self._roles[index], cell)
            if is_one_of_several:
                self._alternatives[self._names[index]].append(self._numbers.get(index, number))
        if isinstance(cell, BadCell):
            self._report(number, index, cell.problem)
            return ""
        if len(cell) == EXCEL_LIMIT:
            self._cut[self._names[index]].append(self._numbers.get(index, number))
        return cell

    def _context(self, number: int, index: int, text: str) -> _Context:
        found = self._parsed(number, index, text, self._split) or _NO_CONTEXT
        if found.is_broken:
            self._broken[index].append((number, why_broken(text)))
        elif found.kind in LISTS:
            self._with_lists.add(index)
        if found.dropped:
            self._first_dropped = self._first_dropped or f"row {number}, column {self._names[index]}"
        self.dropped_items += found.dropped
        self.chunks += len(found.chunks)
        if found.chunks:
            self.kinds[found.kind] += 1
        return found

    def _split(self, text: str) -> _Context:
        if isinstance(text, JsonText) and text.startswith("{"):
            text = f"[{text}]"
        found = split_cell(text, self._delimiter if not isinstance(text, JsonText) else AUTO)
        if self.columns.joined_by_bar and self._delimiter == AUTO and found.kind not in LISTS and "|" in text:
            found = split_cell(text, "|")._replace(kind=_BAR)
        self._room.take(_PART_SIZE * len(found.chunks))
        is_broken = self._delimiter == AUTO and found.kind not in LISTS and looks_like_broken_list(text)
        ids = rank_documents(found.ids) if found.ids and self._takes_ids else None
        kind = _ONE_PASSAGE if self._has_passages and found.kind == JSON_LIST else found.kind
        return _Context(found.chunks, found.dropped, kind, ids, is_broken)

    def _ids(self, text: str) -> tuple[str, ...]:
        ids = parse_documents(text)
        self._room.take(_PART_SIZE * len(ids))
        return ids

    def _labels(self, number: int, texts: Mapping[int, str]) -> list[list[Any]]:
        """What people said about the row: bot, metric and value, the first two by position."""
        labels = []
        bots = {bot: place for place, bot in enumerate(self.columns.responses)}
        for place, (metric, indexes) in enumerate(self.columns.human.items()):
            parse = parse_verdict if metric in self._criteria else parse_score
            found = {
                index: self._parsed(number, index, texts[index], parse)
                for index in sorted({*indexes.values()})
                if texts[index]
            }
            labels += [
                [bots[bot], place, label]
                for bot, index in indexes.items()
                if (label := found.get(index)) is not None
            ]
        return labels

    def _parsed(self, number: int, index: int, text: str, parse: Callable[[str], Value]) -> Value | None:
        """The cell's value; None for one that cannot be parsed, which is reported.

        Rows often share a text, and then they share its value.
        """
        known, value = self._last.get(index, ("", None))
        if value is None or known != text:
            self._room.take_text(text)
            try:
                value = parse(text)
            except (ValueError, InputError) as error:
                if isinstance(error, TableError):  # no room
                    raise
                value = error
            self._last[index] = text, value
        if isinstance(value, Exception):
            self._report(number, index, str(value))
            return None
        return cast(Value, value)

    def _report(self, number: int, index: int, problem: str) -> None:
        self.report(self._numbers.get(index, number), index, problem, self._names)

    def report(self, number: int, index: int, problem: str, names: Mapping[int, str] | None = None) -> None:
        """`number` is a row of the file; `index` a column of it, unless other `names` are given."""
        self.problem_count += 1
        if len(self.problems) < MOST_LISTED:
            name = (names or self._file_names)[index]
            self.problems.append(f"{self._place}, row {number}, column {name}: {problem}")


class _RowMaker:
    """Makes rows of what was spooled."""

    def __init__(self, columns: Columns) -> None:
        self._bots = tuple(columns.responses)
        contexts, documents = sorted({*columns.contexts.values()}), sorted(columns.documents)
        self._has_reference = columns.reference is not None
        self._first_context = 2 + self._has_reference + len(self._bots)
        first_document = self._first_context + len(contexts)
        self._context_of = [
            _position(contexts, columns.contexts.get(bot), self._first_context) for bot in self._bots
        ]
        self._gold = _position(documents, columns.gold, first_document)
        self._retrieved_of = [
            _position(documents, columns.retrieved.get(bot), first_document) for bot in self._bots
        ]
        self._lists = range(self._first_context, first_document + len(documents))
        self._first_kept = first_document + len(documents)
        self._kept = tuple(columns.kept)
        self._metrics = tuple(columns.human)
        self._after_kept = self._first_kept + len(self._kept)
        self._takes_ids = columns.gold is not None and not columns.retrieved

    def row(self, values: list[Any]) -> Row:
        number, query = values[:2]
        for place in self._lists:
            values[place] = None if values[place] is None else _tuple(values[place])
        reference = (values[2] or None) if self._has_reference else None
        first = 2 + self._has_reference
        gold = None if self._gold is None else values[self._gold]
        kept = dict(zip(self._kept, values[self._first_kept :], strict=False))
        humans = self._humans(values)
        ids = values[-1] if self._takes_ids else ()
        cases = []
        for place, bot in enumerate(self._bots):
            context, retrieved = self._context_of[place], self._retrieved_of[place]
            retrieved_ids = None if retrieved is None else values[retrieved]
            if ids and context is not None:
                of_chunks = ids[context - self._first_context]
                retrieved_ids = of_chunks if of_chunks is None else tuple(of_chunks)
            cases.append(
                Case(
                    row=number,
                    bot=bot,
                    query=query,
                    response=values[first + place],
                    reference=reference,
                    chunks=None if context is None else values[context],
                    gold_ids=gold,
                    retrieved_ids=retrieved_ids,
                    human=humans[place],
                    columns=kept,
                )
            )
        return Row(number, query, tuple(cases))

    def _humans(self, values: list[Any]) -> Sequence[dict[str, float]]:
        if not self._metrics:
            none: dict[str, float] = {}
            return [none] * len(self._bots)
        humans: list[dict[str, float]] = [{} for _ in self._bots]
        for bot, metric, label in values[self._after_kept]:
            humans[bot][self._metrics[metric]] = label
        return humans


def _tuple(value: Any) -> tuple[str, ...]:
    """A value that rows share stays one object."""
    return value if isinstance(value, tuple) else tuple(value)


def _position(indexes: Sequence[int], index: int | None, first: int) -> int | None:
    return None if index is None else first + indexes.index(index)


def _merge_warnings(merged: Sequence[Area], columns: Columns, first_row: int, last_row: int) -> Iterator[str]:
    """Only the first of merged cells holds their text; the others are blank, which would count against a bot."""
    touched = [
        area
        for area in merged
        if area.first_row <= last_row
        and area.last_row >= first_row
        and any(area.first_column <= index + 1 <= area.last_column for index in columns.names)
    ]
    if touched:
        places = [f"{column_letter(area.first_column - 1)}{area.first_row}" for area in touched]
        yield (
            f"Merged cells are read as their first cell, the others as blank (at {_first_ten(places)}); "
            "unmerge them and repeat the text where it belongs."
        )


def _cut_warnings(cut: int, read: int) -> Iterator[str]:
    if cut:
        yield (
            f"{_count(cut, 'row')} beyond the first {read:,} left out; "
            "raise max_rows in [evaluation] to have them judged."
        )


def _short_warnings(rows: Sequence[int]) -> Iterator[str]:
    """A text with line ends that stands in no quotes is torn into rows that look like others."""
    if rows:
        yield (
            f"Fewer cells than the header has: row {_first_ten(rows)}. Missing cells were read as blank; "
            "if a line break split a text, put the text in double quotes."
        )


def _first_ten(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items[:10]) + (", …" if len(items) > 10 else "")
