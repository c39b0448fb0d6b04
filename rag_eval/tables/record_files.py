"""Files whose columns a caller knows by name, such as ids and verdicts: read as every other table, record by record."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rag_eval.errors import MOST_LISTED, InputError, TableError, first_of
from rag_eval.tables.cells import BadCell, Cell, cell_at, column_letter
from rag_eval.tables.columns import ColumnUse, Named, listed, matches
from rag_eval.tables.delimited import FOUND_OUT, TextForm
from rag_eval.tables.input_files import MAX_COLUMNS, WITH_SHEETS
from rag_eval.tables.names import nearest, squeezed
from rag_eval.tables.selection import EVERYTHING, Selection, sampled
from rag_eval.tables.sheets import Sheet, open_sheet, place_of

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What somebody says about a file, and who hears how it was read."""

    sheet: str | None = None
    """Of a file that has sheets."""
    form: TextForm = FOUND_OUT
    header_row: int | None = None
    """Where it is not the first that is not blank; 0 for none."""
    named: Sequence[Named] = ()
    """The columns of roles, which are any words that the caller of `Records.column` uses."""
    selection: Selection = EVERYTHING
    tell: Callable[[str], object] = lambda _: None
    warn: Callable[[str], object] = lambda _: None


AS_FOUND = ReadOptions()


@contextmanager
def open_records(path: Path, reading: ReadOptions = AS_FOUND) -> Iterator["Records"]:
    """Raises TableError, also while rows are read, for a file that cannot be read."""
    name = reading.sheet if path.suffix.lower() in WITH_SHEETS else None
    with open_sheet(path, name, reading.form, reading.header_row) as sheet:
        yield Records(path, sheet, reading)


class Records:
    """A file that lies open."""

    def __init__(self, path: Path, sheet: Sheet, reading: ReadOptions) -> None:
        self._sheet = sheet
        self._reading = reading
        self._header_row, self._header = next(sheet.rows, (0, ()))
        self.place = place_of(path, sheet.name)
        """How messages call the file."""
        self.names = [cell if isinstance(cell, str) else "" for cell in self._header]
        self.named: set[Named] = set()
        """What was said about columns and turned out to speak of one of this file."""
        self._problems: list[str] = []
        self._count = 0
        if len(self.names) > MAX_COLUMNS:
            raise TableError(
                f"{self.place}: has {len(self.names):,} columns, more than the {MAX_COLUMNS:,} allowed; remove those "
                "that are not needed"
            )

    def column(self, role: str, *groups: Sequence[str]) -> int | None:
        """The position of the column with a role: the one that was said to have it, or that has a wanted name.

        A group of names counts only if none before it fits; of a single one the exact spelling is preferred. Raises
        TableError for two columns.
        """
        said: dict[int, None] = {}
        for each in self._reading.named:
            found = [
                position for position, name in enumerate(self.names) if name and matches(name, each.column)
            ]
            if each.role == role and found:
                self.named.add(each)
                said.update(dict.fromkeys(found))
        if said:
            return self._one_of([*said])
        for group in groups:
            plain = {squeezed(name) for name in group}
            found = [position for position, name in enumerate(self.names) if squeezed(name) in plain]
            if len(group) == 1 and self.names.count(group[0]) == 1:
                return self.names.index(group[0])
            if found:
                return self._one_of(found)
        return None

    def _one_of(self, positions: Sequence[int]) -> int:
        if len(positions) > 1:
            both = " and ".join(self.called(position) for position in positions[:10])
            raise TableError(f"{self.place}: the columns {both} mean the same; keep one of them")
        return positions[0]

    @property
    def is_selected(self) -> bool:
        """Whether only some rows are wanted."""
        return bool(self._reading.selection)

    def called(self, column: int) -> str:
        """How messages call a column."""
        return str(self._use(column))

    def _use(self, column: int) -> ColumnUse:
        return ColumnUse(column_letter(column), self.names[column], "")

    def columns(self) -> str:
        """Its columns for a message: the first of them; 'none' for none."""
        return listed([self._use(position) for position in range(len(self.names))]) or "none"

    def tell(self, roles: Sequence[tuple[int | None, str]]) -> None:
        """Say how the file was read: its form, and what each column is that has not the name of its role."""
        layout = f" ({self._sheet.layout})" if self._sheet.layout else ""
        uses = [
            f"{self.called(column)} -> {role}"
            for column, role in roles
            if column is not None and squeezed(self.names[column]) != squeezed(role)
        ]
        chosen = [f"selected: {'; then '.join(words)}"] if (words := self._reading.selection.words()) else []
        self._reading.tell(
            "; ".join([f"{self.place}{layout}{': ' if uses else ''}{', '.join(uses)}", *chosen])
        )

    def rows(self, columns: Sequence[int], if_blank: str = "") -> Iterator[tuple[int, Sequence[Cell]]]:
        """For each selected row its number in the file, and its cells in some columns. Can be walked over once.

        `if_blank` is what is wrong with blank rows between others, if anything is. Afterwards raises TableError with
        everything that was wrong, also with what was reported meanwhile.
        """
        selection = self._reading.selection
        chosen = selection.chosen(self.place, self._header, self._walk(if_blank))
        is_empty = True
        for number, cells in sampled(chosen, selection.random_rows):
            is_empty = False
            yield number, [cell_at(cells, column) for column in columns]
        for number in self._sheet.short:
            self._add(
                f"{self.place}, row {number}: has fewer cells than the header; add the missing ones, and put a text "
                "with line breaks in double quotes"
            )
        for note in self._sheet.warnings:
            self._reading.warn(note)
        if self._count or self._sheet.problems:
            problems = [*self._sheet.problems, *self._problems]
            raise TableError(first_of(problems, self._count + len(self._sheet.problems)))
        if is_empty and selection:
            raise TableError(
                f"{self.place}: no row is selected by {', '.join(selection.words())}; check --where, --rows and "
                "--random-rows"
            )

    def _walk(self, if_blank: str) -> Iterator[tuple[int, Sequence[Cell]]]:
        before = self._header_row
        for number, cells in self._sheet.rows:
            if if_blank and number > before + 1:
                self.report(before + 1, if_blank)
            before = number
            yield number, cells

    def parsed(self, number: int, column: int, cell: Cell, parse: Callable[[str], Value]) -> Value | None:
        """The value of a cell; None for one without, which is reported."""
        problem = cell.problem if isinstance(cell, BadCell) else ""
        if isinstance(cell, str):
            try:
                return parse(cell)
            except (ValueError, InputError) as error:
                problem = str(error)
        self.report(number, problem, column)
        return None

    def report(self, number: int, problem: str, column: int | None = None) -> None:
        """Something is wrong with a row, or with its cell in a column."""
        where = "" if column is None else f", column {self.called(column)}"
        self._add(f"{self.place}, row {number}{where}: {problem}")

    def _add(self, problem: str) -> None:
        self._count += 1
        if len(self._problems) < MOST_LISTED:
            self._problems.append(problem)


def check_named(reading: ReadOptions, *files: Records) -> None:
    """Raise TableError for what was said about columns if no file has one such, in its role."""
    known = dict.fromkeys(name for file in files for name in file.names if name)
    if problems := [
        f"{each.origin}: '{each.column[:60]}' is not a column with ids or verdicts there{nearest(each.column, known)}"
        for each in reading.named
        if not any(each in file.named for file in files)
    ]:
        raise TableError(first_of(problems))
