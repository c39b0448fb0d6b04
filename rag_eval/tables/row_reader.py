"""The cells of a row: checked, split into chunks, and kept. Collects what is wrong with them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

from rag_eval.errors import MOST_LISTED, InputError, TableError
from rag_eval.records import Turn
from rag_eval.tables.cells import (
    ABSENT,
    EXCEL_LIMIT,
    BadCell,
    Cell,
    ChatMessage,
    JsonText,
    Measured,
    TimeOfDay,
    is_blank,
    parse_score,
    parse_verdict,
)
from rag_eval.tables.chunking import (
    AUTO,
    BLANK,
    JSON_LIST,
    LISTS,
    WHOLE,
    looks_like_broken_list,
    split_cell,
    what_joins,
    why_broken,
)
from rag_eval.tables.columns import WIDE, Columns, ColumnUse, map_option, unused_amounts
from rag_eval.tables.document_ids import parse_documents, rank_documents
from rag_eval.tables.grouping import Unit
from rag_eval.tables.input_files import Room
from rag_eval.tables.names import QUERY, REFERENCE, RESPONSE, UNUSED, holds_several, squeezed
from rag_eval.tables.nested import before_query, is_list_of_texts, query_of_chat, role_text, turns_of
from rag_eval.tables.number_formats import as_seen
from rag_eval.tables.remarks import (
    ALTERNATIVES,
    BROKEN_LIST,
    CUT,
    LIST_OF_RESPONSES,
    UNANSWERED,
    UNUSED_MESSAGES,
    Failures,
    Missing,
    Remarks,
    Repeats,
    first_ten,
)
from rag_eval.tables.rows import Lines
from rag_eval.tables.spending import Amounts, differing_units
from rag_eval.texts.citations import Habit, habit_of
from rag_eval.texts.display import counted, without_half_pairs

Value = TypeVar("Value")


_ROW_SIZE, _CASE_SIZE, _PART_SIZE = 250, 200, 60
"""Bytes that a row, a case, and a chunk or an id need, their texts not included."""


class _Context(NamedTuple):
    """What a context cell holds."""

    chunks: tuple[str, ...]
    dropped: int
    kind: str
    ids: tuple[str, ...] | None
    is_broken: bool
    """It looks like a list, and is none."""


_FEW_ROWS = 3
"""In fewer, a column may well be blank."""
_USUALLY = 0.9
"""The share of rows with more than a query and responses where one with a query only may be no case."""
_WORDY = 20
"""Characters on average from which on no bot happens to write just the ground truth."""
_TOTAL = re.compile(
    r"\s*(grand )?(totals?|sum|subtotal|averages?|mean|count|generated|exported|created|printed|summe|gesamt(summe)?"
    r"|durchschnitt|mittelwert|anzahl|erstellt|somme|moyenne|nombre|totale?s?|suma|promedio|media|somma|gemiddelde|totaal"
    r"|合計|总计|平均)\b(?!.*\?)",
    re.IGNORECASE,
)
_NAME_OF_FILE = re.compile(
    r"(?:https?://|www\.)\S+|[^\n]{1,200}\.(?:pdf|docx?|pptx?|xlsx?|html?|md|txt)(?:#\S*)?", re.IGNORECASE
)
_NUMBER = re.compile(r"[\d.,]+\s?%?")
_NO_CONTEXT = _Context((), 0, BLANK, None, is_broken=False)


_ONE_PASSAGE, _IN_COLUMNS = "passages of several rows", "passages of several columns"


_BAR = "'|' as deepeval writes it"


class RowReader:
    """Checks the cells of one row after the other and keeps what they hold; collects what is wrong with them."""

    def __init__(
        self,
        place: str,
        columns: Columns,
        delimiter: str,
        criteria: Collection[str],
        room: Room,
        lines: Lines,
        decimals: Mapping[str, str],
    ) -> None:
        """`decimals` are those of columns with latency and cost, see `Asked`."""
        self.lines = lines
        self.problems: list[str] = []
        """The first of them."""
        self.problem_count = 0
        self.chunks = 0
        self.dropped_items = 0
        self.last_row = 0
        self.kinds: Counter[str] = Counter()
        """Of context cells."""
        self.habits: dict[str, Habit] = {}
        """By bot."""
        self.has_ids = False
        """Whether chunks came with ids of their documents, and these count as the retrieved ones."""
        self._place = place
        self.delimiter = delimiter
        self._criteria = criteria
        self._room = room
        self._file_names = columns.names
        self._numbers: Mapping[int, int] = {}
        self._last: dict[int, tuple[str, object]] = {}
        """By column: the text that was parsed last, and its value or what is wrong with it."""
        self._broken: dict[int, list[tuple[int, str]]] = defaultdict(list)
        """By column: rows whose cell begins like a list and is none, and why."""
        self._with_lists: set[int] = set()
        self._with_chunks: Counter[int] = Counter()
        """By column of contexts: cells that hold some."""
        self._joined: dict[int, tuple[str, int]] = {}
        """What joins several chunks in all of them, as it seems, and how many these are."""
        self._with_names: Counter[int] = Counter()
        """Those of them with nothing but links and names of files, as long as these are all."""
        self._totals: list[int] = []
        """Rows without a response whose query begins like a total or a note below a table."""
        self._sums: list[int] = []
        """Rows with nothing but numbers next to such a query."""
        self._bare: list[int] = []
        """Other rows with nothing but a query."""
        self._with_more = 0
        """Rows with a ground truth, or with a context of several bots."""
        self._copies: dict[int, tuple[int, int, int]] = {}
        """By column of responses: how many are the ground truth of their row, of how many, and its characters."""
        self._decimals = decimals
        self._amounts: dict[str, Amounts] = {}
        """By the letter of a column with latency or cost."""
        self._remarks = Remarks()
        self._repeats = Repeats()
        self.failures: Sequence[Failures] = ()
        """What other columns say about empty responses."""
        self._missing = Missing()
        self._first_dropped = ""
        self._before: dict[int, tuple[Turn, ...]] = {}
        """By column: the turns before the message that was read last."""
        self.with_history = 0
        """Rows with earlier turns."""
        self.regard(columns, has_passages=False)

    def regard(self, columns: Columns, *, has_passages: bool) -> None:
        """From now on rows have these columns."""
        self.columns = columns
        self._names = columns.names
        self._has_passages = has_passages
        self._spent = sorted({index for its in columns.spent.values() for index in its.values()})
        for index in self._spent:
            use = columns.used[index]
            self._amounts.setdefault(
                use.letter, Amounts(use.role, use.unit, self._decimals.get(squeezed(use.header), ""))
            )
        self._used = sorted(columns.used.keys() - {*self._spent} | {*columns.kept.values()})
        self._contexts = sorted({*columns.contexts.values()})
        self._documents = sorted(columns.documents)
        # In the order in which a line has them.
        self._roles = {
            columns.query: QUERY,
            **({} if columns.reference is None else {columns.reference: REFERENCE}),
            **dict.fromkeys(columns.responses.values(), RESPONSE),
        }
        self._plural = {
            index
            for index, role in self._roles.items()
            if role == REFERENCE and holds_several(columns.used[index].header)
        }
        self._texts = frozenset((*self._roles, *self._contexts))
        shared = self._contexts if len(columns.responses) > len(self._contexts) else []
        self._not_by_bots = [
            index for index in (columns.reference, columns.gold, *shared) if index is not None
        ]
        self._judged = [*self._roles, *self._contexts, *self._documents]
        self._takes_ids = columns.gold is not None and not columns.retrieved
        self._histories = sorted({*columns.histories.values()})
        self._width = max(columns.used, default=-1) + 1
        self._alone = frozenset(() if columns.shape == WIDE else columns.responses.values())
        self._as_they_are = {
            index for index in self._used if index not in self._plural and index not in self._alone
        }
        """Columns whose texts are taken as they are unless they look like another kind of cell."""

    def read_all(self, units: Iterator[Unit], max_rows: int, on_row: Callable[[], None]) -> int:
        """How many rows beyond `max_rows` there are, which are not looked at."""
        cut_rows = 0
        for unit in units:
            if len(self.lines) == max_rows:
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
        if len(cells) < self._width:
            cells = [*cells, *[""] * (self._width - len(cells))]
        texts = {
            index: cell
            if type(cell := cells[index]) is str
            and len(cell) != EXCEL_LIMIT
            and index in self._as_they_are
            and not (index == columns.query and cell.lstrip().startswith("["))
            else self._text(number, index, cell)
            for index in self._used
        }
        if is_blank(cells[columns.query]):
            self._report(
                number, columns.query, "is blank, but the row is not; add the query or clear the row"
            )
        missing = {
            index for index in columns.responses.values() if texts[index] is ABSENT and columns.queries
        }
        if missing:
            self._missing.add(number, [bot for bot, index in columns.responses.items() if index in missing])
        self._take_failures(number, texts, missing)
        # Read once a column, so that bots share what their row has in common.
        contexts = [self._context(number, index, texts[index]) for index in self._contexts]
        documents = [
            self._parsed(number, index, texts[index], self._ids_of(index)) for index in self._documents
        ]
        chunks = {index: each.chunks for index, each in zip(self._contexts, contexts, strict=True)}
        given = {bot: index for bot, index in columns.responses.items() if index not in missing}
        for bot, index in given.items():
            habit = habit_of(texts[index], chunks.get(columns.contexts.get(bot, -1)))
            self.habits[bot] = self.habits.get(bot, Habit()).plus(habit)
        self._look_at(number, texts, given)
        said = [(texts[index], None if index in missing else texts[index]) for index in self._roles]
        chunked = [
            (texts[index], context.chunks) for index, context in zip(self._contexts, contexts, strict=True)
        ]
        named = [(texts[index], ids) for index, ids in zip(self._documents, documents, strict=True)]
        values: list[Any] = [
            number,
            *self.lines.share("text", said),
            *self.lines.share("context", chunked),
            *self.lines.share("documents", named),
            *self.lines.share("text", [(texts[index], texts[index]) for index in columns.kept.values()]),
        ]
        if columns.human:
            values.append(self._labels(number, texts))
        if self._spent:
            values.append(self._spendings(number, cells))
        if self._takes_ids:
            ids = [context.ids for context in contexts]
            self.has_ids = self.has_ids or any(ids)
            values.append(ids)
        talk = self._talk(number, cells, texts)
        self._repeats.add(
            number,
            [*(texts[index] for index in self._judged), repr(talk)],
            number if talk else self._asked(texts),
        )
        values.append(talk)
        self.lines.add(values)

    def _look_at(self, number: int, texts: Mapping[int, str], given: Mapping[str, int]) -> None:
        """Whether a row reads like a total, and whether responses are copies of the ground truth."""
        has_more = any(texts[index].strip() for index in self._not_by_bots)
        self._with_more += has_more
        responses = [text for index in given.values() if (text := texts[index].strip())]
        is_alone = not has_more and not any(texts[index].strip() for index in self._contexts)
        query = texts[self.columns.query].rstrip(" :")
        total = None if responses and not _NUMBER.fullmatch(responses[0]) else _TOTAL.match(query)
        if total and not responses:
            self._totals.append(number)
        elif total and (is_alone or total.end() == len(query)) and self._has_only_numbers(texts):
            self._sums.append(number)
        elif is_alone and not responses:
            self._bare.append(number)
        truth = "" if self.columns.reference is None else texts[self.columns.reference].strip()
        for index in self._alone & {*given.values()} if truth else ():  # others are called bots by somebody
            same, compared, length = self._copies.get(index, (0, 0, 0))
            is_same = texts[index].strip() == truth
            self._copies[index] = same + is_same, compared + 1, length + len(truth)

    def _has_only_numbers(self, texts: Mapping[int, str]) -> bool:
        """Next to the query."""
        others = (
            text for index in self._judged if index != self.columns.query if (text := texts[index].strip())
        )
        return all(map(_NUMBER.fullmatch, others))

    def _take_failures(self, number: int, texts: Mapping[int, str], missing: Collection[int]) -> None:
        """The first column that tells of a failure counts for an empty response."""
        if not self.failures:
            return
        responses = [
            (self.columns.used[index].letter, self._numbers.get(index, number), not texts[index])
            for index in self.columns.responses.values()
            if index not in missing
        ]
        rows = [number, *self._numbers.values()]
        is_told = False
        for each in self.failures:
            its = [(row, is_empty) for letter, row, is_empty in responses if each.letter in ("", letter)]
            if each.letter or not is_told:
                is_told = each.take(its, rows) or is_told

    def _talk(self, number: int, cells: Sequence[Cell], texts: Mapping[int, str]) -> list[Any] | None:
        """Ids of the conversation, and the turns before the query: of each bot, or once if all have the same."""
        columns = self.columns
        query = texts[columns.query]
        shared = self._before.pop(columns.query, ())
        for place in columns.queries.values():
            self._remark_messages(cells[place], self._names[columns.query], self._numbers.get(place, number))
        own = {index: self._turns(number, index, cells[index], query) for index in self._histories}
        said = []
        for bot in columns.responses:
            asked = cells[columns.queries[bot]] if columns.queries else None
            before = (
                asked.earlier if isinstance(asked, ChatMessage) else shared if asked is not ABSENT else ()
            )
            said.append(own.get(columns.histories.get(bot, -1)) or before)
        ids = {bot: texts[index].strip() for bot, index in columns.conversations.items()}
        conversations = [*ids.values()] if len({*ids.values()}) > 1 else [*ids.values(), ""][:1]
        if not any(said):
            return [conversations] if any(conversations) else None
        self.with_history += 1
        kept = said[:1] if all(each == said[0] for each in said) else said
        return [
            conversations,
            *([[turn.role, without_half_pairs(turn.content)] for turn in turns] for turns in kept),
        ]

    def _asked(self, texts: Mapping[int, str]) -> tuple[str, ...]:
        """What tells one question from another: a query such as "Sum it up" asks something else of another context."""
        reference = "" if self.columns.reference is None else texts[self.columns.reference].strip()
        about = [reference] if reference else [texts[index] for index in self._contexts]
        return (texts[self.columns.query], *about)

    def _turns(self, number: int, index: int, cell: Cell, query: str) -> tuple[Turn, ...]:
        turns = (
            None if isinstance(cell, BadCell) else self._parsed(number, index, cell, self._turns_of(index))
        )
        return before_query(turns or (), query)

    def _turns_of(self, index: int) -> Callable[[str], tuple[Turn, ...]]:
        """Reads a cell of the column. Some rows must not be judged with their turns and others without."""

        def read(text: str) -> tuple[Turn, ...]:
            try:
                return turns_of(text)
            except ValueError as error:
                ignore = map_option(self.columns.used[index], "ignore")
                raise ValueError(
                    f"{error}; or clear the cell, or add {ignore} to judge all rows without earlier turns"
                ) from None

        return read

    def report_broken_lists(self) -> None:
        """What begins like a list and is none is an error where other cells of the column are lists."""
        for index, found in sorted(self._broken.items()):
            if index in self._with_lists:
                for number, why in found:
                    self._report(number, index, why)

    def warnings(self, names_of_bots: str) -> Iterator[str]:
        """What could be read and is worth a look. To be asked once, after the last row.

        `names_of_bots` is about a column that may have them, see `Repeats`.
        """
        for index, found in sorted(self._broken.items()):
            for number, _ in found:
                self._remarks.add(BROKEN_LIST, self._names[index], number)
        yield from self._missing.warnings(len(self.lines))
        yield from self._remarks.warnings()
        yield from self._repeats.warnings(names_of_bots)
        if len(self.lines) >= _FEW_ROWS:
            yield from self._blanks()
        for use in self.settled():
            amounts = self._amounts[use.letter]
            if amounts.fault:
                yield unused_amounts(use)
            else:
                yield from (f"Column {use}: {remark}" for remark in amounts.remarks())
        if self.dropped_items:
            yield (
                f"{counted(self.dropped_items, 'item')} of JSON lists of chunks dropped, being null or blank; "
                f"the first in {self._first_dropped}."
            )

    def _on_contexts(self) -> Iterator[str]:
        """Columns of contexts whose cells may have been meant as something else."""
        for index in self._contexts:
            count = self._with_chunks[index]
            use = self.columns.used[index]
            if not count:
                yield (
                    f"Column {use} has no chunk in any row, which counts as nothing retrieved. If no context was "
                    f"recorded, add {map_option(use, 'ignore')}."
                )
            elif count < _FEW_ROWS:
                continue
            elif self._with_names[index] == count:
                yield (
                    f"Column {use} has nothing but links or names of files, which support no statement. If the texts "
                    f"that were retrieved are not recorded, add {map_option(use, 'ignore')}."
                )
            elif self._joined.get(index, ("", 0))[1] == count:
                yield f"Column {self._names[index]}: {self._joined[index][0]}."

    def _blanks(self) -> Iterator[str]:
        """What is blank, counts against a bot, and may never have been meant to."""
        yield from dict.fromkeys(self._on_contexts())  # of several bots, one column may be meant
        for index, (same, compared, length) in self._copies.items():
            if same == compared >= _FEW_ROWS and length >= _WORDY * compared:
                use = self.columns.used[index]
                yield (
                    f"Column {use} was read as the response of a bot, and is the ground truth, word for word, in every "
                    f"row. Unless it is meant so, add {map_option(use, 'ignore')}, and name the right column with "
                    "--map COLUMN=bot."
                )
        if self._totals:
            yield (
                f"No bot has a response in row {first_ten(self._totals)}, whose query reads like a total or a note. "
                "This counts against each bot; delete what is not a query."
            )
        others = len(self.lines) - len(self._bare) - len(self._sums)
        if not others or self._with_more < _USUALLY * others:
            return
        if self._sums:
            yield (
                f"Nothing but numbers is next to the query in row {first_ten(self._sums)}, which reads like a total. "
                "It was read as a case of each bot; delete what is not a query."
            )
        if self._bare:
            yield (
                f"Nothing but a query is in row {first_ten(self._bare)}. This counts against each bot; delete notes "
                "and headings."
            )

    def _text(self, number: int, index: int, cell: Cell) -> str:
        role = self._roles.get(index)
        if index in self._alone and isinstance(cell, str) and is_list_of_texts(cell):
            self._remark(LIST_OF_RESPONSES, number, index)
        if role == QUERY:
            cell = query_of_chat(cell)
        if role is not None and (isinstance(cell, JsonText) or index in self._plural):
            cell, is_one_of_several = role_text(role, cell)
            if is_one_of_several:
                self._remark(ALTERNATIVES, number, index)
        if isinstance(cell, BadCell):
            self._report(number, index, cell.problem)
            return ""
        if role is not None and isinstance(cell, ChatMessage):
            self._before[index] = cell.earlier
            if role != QUERY or not self.columns.queries:
                self._remark_messages(cell, self._names[index], self._numbers.get(index, number))
        if len(cell) == EXCEL_LIMIT:
            self._remark(CUT, number, index)
        if not isinstance(cell, ChatMessage | Measured | TimeOfDay):
            return cell
        return as_seen(cell) if index in self._texts else str(cell)

    def _remark_messages(self, cell: Cell, name: str, row: int) -> None:
        """Those of a chat that are left out."""
        if isinstance(cell, ChatMessage):
            self._remarks.add_messages(UNUSED_MESSAGES, cell.unused, name, row)
            self._remarks.add_messages(UNANSWERED, cell.unanswered, name, row)

    def _remark(self, kind: str, number: int, index: int) -> None:
        self._remarks.add(kind, self._names[index], self._numbers.get(index, number))

    def _context(self, number: int, index: int, text: str) -> _Context:
        found = self._parsed(number, index, text, self._split) or _NO_CONTEXT
        if found.is_broken:
            self._broken[index].append((number, why_broken(text)))
        elif found.kind in LISTS:
            self._with_lists.add(index)
        if found.dropped:
            self._first_dropped = self._first_dropped or f"row {number}, column {self._names[index]}"
        self.dropped_items += found.dropped
        if self.columns.parts and EXCEL_LIMIT in map(len, found.chunks):
            self._remark(CUT, number, index)
        self.chunks += len(found.chunks)
        if found.chunks:
            self.kinds[found.kind] += 1
            self._with_chunks[index] += 1
            is_only_names = self._with_names[index] == self._with_chunks[index] - 1
            if is_only_names and all(map(_NAME_OF_FILE.fullmatch, found.chunks)):
                self._with_names[index] += 1
            joined, count = self._joined.get(index, ("", 0))
            if found.kind == WHOLE and count == self._with_chunks[index] - 1 and (what := what_joins(text)):
                self._joined[index] = what, count + 1 if what == joined else 1
        return found

    def _split(self, text: str) -> _Context:
        if isinstance(text, JsonText) and text.startswith("{"):
            text = f"[{text}]"
        found = split_cell(text, self.delimiter if not isinstance(text, JsonText) else AUTO)
        if self.columns.joined_by_bar and self.delimiter == AUTO and found.kind not in LISTS and "|" in text:
            found = split_cell(text, "|")._replace(kind=_BAR)
        self._room.take(_PART_SIZE * len(found.chunks))
        is_broken = self.delimiter == AUTO and found.kind not in LISTS and looks_like_broken_list(text)
        ids = rank_documents(found.ids) if found.ids and self._takes_ids else None
        kind = found.kind
        if found.kind == JSON_LIST and (self._has_passages or self.columns.parts):
            kind = _ONE_PASSAGE if self._has_passages else _IN_COLUMNS
        return _Context(found.chunks, found.dropped, kind, ids, is_broken)

    def _ids_of(self, index: int) -> Callable[[str], tuple[str, ...]]:
        """Reads a cell of the column. Retrieved documents may as well be texts."""

        def read(text: str) -> tuple[str, ...]:
            try:
                ids = parse_documents(text)
            except (ValueError, InputError) as error:
                if index not in self.columns.retrieved.values() or self._contexts:
                    raise
                context = map_option(self.columns.used[index], "context")
                raise InputError(f"{error}; if the column contains texts, add {context}") from None
            self._room.take(_PART_SIZE * len(ids))
            return ids

        return read

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

    def _spendings(self, number: int, cells: Sequence[Cell]) -> list[tuple[int, float | str, str]]:
        """The cells with latency and cost that have a value: position, number and unit."""
        found = []
        for index in self._spent:
            if is_blank(cell := cells[index]):
                continue
            letter, row = self.columns.used[index].letter, self._numbers.get(index, number)
            amounts = self._amounts[letter]
            try:
                if amount := amounts.add(row, cell):
                    found.append((index, *amount))
            except ValueError as error:
                if letter in self.columns.guessed:
                    amounts.fault = amounts.fault or f"row {row}, {error}"
                else:
                    self._report(number, index, str(error))
        return found

    def settle_amounts(self) -> None:
        """Decide which columns have latency and cost, and in which units. To be done once, after the last row.

        What is wrong with them is an error, unless only the name says what they are.
        """
        has_commas = any(amounts.decimals == "," for amounts in self._amounts.values())
        for index, use in self.columns.used.items():
            amounts = self._amounts.get(use.letter)
            if amounts is None or amounts.fault or not (problem := amounts.settle(has_commas=has_commas)):
                continue
            row, what = problem
            if use.letter in self.columns.guessed:
                amounts.fault = f"row {row}, {what}"
            else:
                self.report(row, index, what, self._names)
        for role in self.columns.spent:
            its = {letter: amounts for letter, amounts in self._amounts.items() if amounts.role == role}
            for letter, why in differing_units(its, self.columns.guessed):
                its[letter].fault = why
                if letter not in self.columns.guessed:
                    use = next(use for use in self.columns.used.values() if use.letter == letter)
                    self._add_problem(
                        f"{self._place}: column {use} cannot be the {role} that it was given: {why}"
                    )
        for letter, amounts in self._amounts.items():
            if letter in self.columns.guessed:
                amounts.fault = amounts.fault or amounts.missing()

    def settled(self) -> Iterator[ColumnUse]:
        """The columns with latency and cost as they are used, and those that are not, after all."""
        for letter, use in {use.letter: use for use in self.columns.used.values()}.items():
            amounts = self._amounts.get(letter)
            if amounts is None:
                continue
            if amounts.is_used or (not amounts.fault and letter not in self.columns.guessed):
                yield replace(use, unit=amounts.unit)
            else:
                yield ColumnUse(letter, use.header, UNUSED, why=amounts.fault)

    @property
    def decimals(self) -> dict[str, str]:
        """Decimal separators of the columns with latency and cost, as `Asked` has them; '' where no cell tells."""
        names = {use.letter: squeezed(use.header) for use in self.columns.used.values()}
        found = {names[letter]: amounts.decimals for letter, amounts in self._amounts.items()}
        return {name: sign for name, sign in found.items() if sign is not None}

    @property
    def amounts(self) -> dict[int, Amounts]:
        """By position: the columns with latency and cost that are used."""
        return {
            index: amounts
            for index, use in self.columns.used.items()
            if (amounts := self._amounts.get(use.letter)) and amounts.is_used
        }

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
        name = (names or self._file_names)[index]
        self._add_problem(f"{self._place}, row {number}, column {name}: {problem}")

    def _add_problem(self, problem: str) -> None:
        self.problem_count += 1
        if len(self.problems) < MOST_LISTED:
            self.problems.append(problem)
