"""The rows of a sheet to cases. All problems of a file are reported together, with their places and remedies."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from rag_eval.errors import InputError, TableError
from rag_eval.records import Case, Row
from rag_eval.tables.bounds import MOST_LISTED, Room, first_of
from rag_eval.tables.cells import Area, BadCell, Cell, cell_at, column_letter, is_blank
from rag_eval.tables.chunking import AUTO, looks_like_broken_json, split_cell
from rag_eval.tables.delimited import FOUND_OUT, TextForm
from rag_eval.tables.document_ids import parse_documents
from rag_eval.tables.header import UNUSED, Columns, ColumnUse, looks_like_header, read_header
from rag_eval.tables.labels import parse_score, parse_verdict
from rag_eval.tables.sheets import ROWS_OF_TITLES, open_sheet

Value = TypeVar("Value")

_ROW_SIZE, _CASE_SIZE, _PART_SIZE = 250, 200, 60
"""Bytes that a row, a case, and a chunk or an id need, their texts not included."""


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
    rows: tuple[Row, ...]
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
) -> Table:
    """Read the first visible sheet, or the named one. Raises TableError with every problem that was found.

    The header is the first row that is not blank. `prefix` marks the columns with responses, `delimiter` is how
    one context cell separates its chunks. `keep` names further columns whose texts the cases carry, `criteria` the
    criteria of a rubric that human labels may speak of. `form` is how a text file is written. `on_row` is called after
    each row, so that somebody can be told that a large file is being read.
    """
    with open_sheet(path, sheet, form) as opened:
        place = _place(path, opened.name)
        header_row, header = next(opened.rows, (0, ()))
        if not header:
            unreadable = first_of(opened.problems)
            raise TableError(unreadable or f"{place}: is empty; expected a header and rows below it")
        try:
            columns = read_header(place, header, prefix, keep, criteria)
        except TableError as error:
            # The right columns may well stand further down, or on a sheet that was not read.
            below = _header_below(place, header_row, opened.rows, prefix)
            raise TableError([*error.problems, *below, *opened.warnings]) from None
        reader = _RowReader(place, columns, delimiter, criteria, opened.room)
        last_row, cut_rows = reader.read_all(opened.rows, header_row, max_rows, on_row)
    problems = [*opened.problems, *reader.problems]
    count = len(opened.problems) + reader.problem_count
    if not reader.rows and not problems:
        problems = [f"{place}: no row below the header (row {header_row}) holds anything; nothing to judge"]
        count = 1
    merged = tuple(_merge_warnings(opened.merged, columns, header_row, last_row))
    if problems:
        raise TableError([*first_of(problems, count), *merged])  # a blank query may well be a merged one
    return Table(
        path=path,
        sheet=opened.name,
        columns=columns.uses,
        bots=tuple(columns.responses),
        rows=tuple(reader.rows),
        blank_rows=last_row - header_row - len(reader.rows),
        cut_rows=cut_rows,
        chunks=reader.chunks,
        layout=opened.layout,
        dropped_items=reader.dropped_items,
        warnings=(
            *_cut_warnings(cut_rows, len(reader.rows)),
            *opened.warnings,
            *columns.warnings,
            *reader.warnings(),
            *_short_warnings([number for number in opened.short if number <= last_row]),
            *merged,
        ),
    )


def describe(table: Table) -> list[str]:
    """What was read, in plain lines: counts, what each column is used as, blank rows. No warnings."""
    place = _place(table.path, table.sheet) + (f" ({table.layout})" if table.layout else "")
    bots = f"{_count(len(table.bots), 'bot')} ({', '.join(table.bots)})"
    lines = [f"{place}: {_count(len(table.rows), 'row')}, {bots}, {_count(table.chunks, 'context chunk')}"]
    unused = [column for column in table.columns if column.role == UNUSED]
    untold = set(unused[MOST_LISTED:])
    for column in table.columns:
        if column in untold:
            continue
        about = f" for {column.metric}" if column.metric else ""
        owner = f" of {column.bot}" if column.bot is not None else ""
        lines.append(f"  {column} -> {column.role}{about}{owner}")
    if untold:
        lines.append(f"  {_count(len(untold), 'more column')} -> {UNUSED}")
    if table.blank_rows:
        lines.append(f"{_count(table.blank_rows, 'blank row')} skipped")
    return lines


def _header_below(
    place: str, taken: int, rows: Iterator[tuple[int, Sequence[Cell]]], prefix: str
) -> Iterator[str]:
    """Where the header is when a title or a date stands above it, in row `taken`."""
    for number, cells in islice(rows, ROWS_OF_TITLES):
        if looks_like_header(cells, prefix):
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
    is_broken: bool
    """It looks like a JSON list, and is none."""


_NO_CONTEXT = _Context((), 0, is_broken=False)


class _RowReader:
    """Turns the cells of one row after the other into cases, and collects what is wrong with them."""

    def __init__(
        self, place: str, columns: Columns, delimiter: str, criteria: Collection[str], room: Room
    ) -> None:
        self.rows: list[Row] = []
        self.problems: list[str] = []
        """The first of them."""
        self.problem_count = 0
        self.chunks = 0
        self.dropped_items = 0
        self._place = place
        self._columns = columns
        self._used = sorted(columns.names)
        self._contexts = sorted({*columns.contexts.values()})
        self._documents = sorted(columns.documents)
        self._delimiter = delimiter
        self._criteria = criteria
        self._room = room
        self._last: dict[int, tuple[str, object]] = {}
        """By column: the text that was parsed last, and its value or what is wrong with it."""
        self._broken_json: dict[int, list[int]] = defaultdict(list)
        self._first_dropped = ""

    def read_all(
        self,
        rows: Iterator[tuple[int, Sequence[Cell]]],
        header_row: int,
        max_rows: int,
        on_row: Callable[[], None],
    ) -> tuple[int, int]:
        """Number of the last row that was read, and how many beyond `max_rows` were not."""
        last_row, cut_rows = header_row, 0
        for number, cells in rows:
            if self._columns.is_blank(cells):
                continue
            if len(self.rows) == max_rows:
                cut_rows += 1
                continue
            self._read(number, cells)
            last_row = number
            on_row()
        return last_row, cut_rows

    def _read(self, number: int, cells: Sequence[Cell]) -> None:
        columns = self._columns
        self._room.take(_ROW_SIZE + _CASE_SIZE * len(columns.responses))
        texts = {index: self._text(number, index, cell_at(cells, index)) for index in self._used}
        query = texts[columns.query]
        if is_blank(cell_at(cells, columns.query)):
            self._report(
                number, columns.query, "is blank, but the row is not; add the query or clear the row"
            )
        # Read once a column, so that bots share what their row has in common.
        chunks = {index: self._chunks(number, index, texts[index]) for index in self._contexts}
        documents = {index: self._parsed(number, index, texts[index], self._ids) for index in self._documents}
        labels = self._labels(number, texts)
        kept = {name: texts[index] for name, index in columns.kept.items()}
        cases = tuple(
            Case(
                row=number,
                bot=bot,
                query=query,
                response=texts[index],
                reference=None if columns.reference is None else texts[columns.reference] or None,
                chunks=chunks.get(columns.contexts.get(bot, -1)),
                gold_ids=documents.get(-1 if columns.gold is None else columns.gold),
                retrieved_ids=documents.get(columns.retrieved.get(bot, -1)),
                human=labels[bot],
                columns=kept,
            )
            for bot, index in columns.responses.items()
        )
        self.rows.append(Row(number, query, cases))

    def warnings(self) -> Iterator[str]:
        for index, rows in sorted(self._broken_json.items()):
            yield (
                f"Column {self._columns.names[index]}: what looks like a JSON list cannot be read as one and was "
                f"taken as plain text in row {_first_ten(rows)}."
            )
        if self.dropped_items:
            yield (
                f"{_count(self.dropped_items, 'item')} of JSON lists of chunks dropped, being null or blank; "
                f"the first in {self._first_dropped}."
            )

    def _text(self, number: int, index: int, cell: Cell) -> str:
        if isinstance(cell, BadCell):
            self._report(number, index, cell.problem)
            return ""
        return cell

    def _chunks(self, number: int, index: int, text: str) -> tuple[str, ...]:
        chunks, dropped, is_broken = self._parsed(number, index, text, self._cut) or _NO_CONTEXT
        if is_broken:
            self._broken_json[index].append(number)
        if dropped:
            self._first_dropped = self._first_dropped or f"row {number}, column {self._columns.names[index]}"
        self.dropped_items += dropped
        self.chunks += len(chunks)
        return chunks

    def _cut(self, text: str) -> "_Context":
        chunks, dropped = split_cell(text, self._delimiter)
        self._room.take(_PART_SIZE * len(chunks))
        return _Context(chunks, dropped, self._delimiter == AUTO and looks_like_broken_json(text))

    def _ids(self, text: str) -> tuple[str, ...]:
        ids = parse_documents(text)
        self._room.take(_PART_SIZE * len(ids))
        return ids

    def _labels(self, number: int, texts: Mapping[int, str]) -> dict[str, dict[str, float]]:
        """What people said about the row, by bot and metric; blank cells are left out."""
        if not self._columns.human:
            none: dict[str, float] = {}
            return {bot: none for bot in self._columns.responses}  # noqa: C420 - one for all of them saves memory
        labels: dict[str, dict[str, float]] = {bot: {} for bot in self._columns.responses}
        for metric, indexes in self._columns.human.items():
            parse = parse_verdict if metric in self._criteria else parse_score
            found = {
                index: self._parsed(number, index, texts[index], parse)
                for index in sorted({*indexes.values()})
                if texts[index]
            }
            for bot, index in indexes.items():
                if (label := found.get(index)) is not None:
                    labels[bot][metric] = label
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
        self.problem_count += 1
        if len(self.problems) < MOST_LISTED:
            self.problems.append(
                f"{self._place}, row {number}, column {self._columns.names[index]}: {problem}"
            )


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
