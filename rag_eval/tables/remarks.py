"""What is worth saying about cells that could be read, one sentence a column. Nothing here is an error."""

import re
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.tables.cells import (
    EXCEL_LIMIT,
    Area,
    Cell,
    column_letter,
)
from rag_eval.tables.names import called
from rag_eval.texts.display import counted

if TYPE_CHECKING:
    from rag_eval.tables.columns import Columns, ColumnUse

BROKEN_LIST, CUT, LIST_OF_RESPONSES, ALTERNATIVES = "broken list", "cut", "list of responses", "alternatives"
UNUSED_MESSAGES, UNANSWERED, NOT_FINITE, HALF_PAIR = (
    "unused messages",
    "unanswered",
    "not finite",
    "half pair",
)
_SENTENCES = {
    BROKEN_LIST: "what looks like a list cannot be read as one and was taken as plain text in row {rows}; write lists "
    'as JSON: ["chunk 1", "chunk 2"].',
    CUT: f"exactly {EXCEL_LIMIT:,} characters in row {{rows}}, so Excel probably cut the text; export it again as "
    ".csv, .jsonl or .parquet.",
    LIST_OF_RESPONSES: "a list of several texts in row {rows} was taken as one response. If these are ground truths, "
    "give the column this role with --map COLUMN=reference.",
    ALTERNATIVES: "several ground truths in row {rows}; the first one counts. Put the one that should count first.",
    UNUSED_MESSAGES: "{count} not used (row {rows}): of several answers to a question, the last one is the response.",
    UNANSWERED: "questions without an answer after them, which were not judged: {number} (row {rows}). If the bot was "
    "asked and did not answer, end the chat with an empty message of the bot.",
    NOT_FINITE: "NaN or Infinity in row {rows} was read as blank; write the text in quotes, or null for none.",
    HALF_PAIR: "half a character, such as a cut emoji, in row {rows} was read as U+FFFD (\ufffd); export the texts "
    "again.",
}


class Remarks:
    """Rows with a remarkable cell, by what is remarkable and by the name of the column."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, list[int]]] = {kind: defaultdict(list) for kind in _SENTENCES}
        self._messages: Counter[tuple[str, str]] = Counter()
        """Those of chats that are left out, by what is remarkable and by the name of the column."""

    def add(self, kind: str, column: str, row: int) -> None:
        self._rows[kind][column].append(row)

    def add_messages(self, kind: str, messages: int, column: str, row: int) -> None:
        """Messages of a chat that are left out, if there are some."""
        if messages:
            self._messages[kind, column] += messages
            self.add(kind, column, row)

    def warnings(self) -> Iterator[str]:
        for kind, columns in self._rows.items():
            for column, rows in columns.items():
                messages = self._messages[kind, column]
                count = f"{counted(messages, 'message')} {'is' if messages == 1 else 'are'}"
                sentence = _SENTENCES[kind].format(rows=first_ten(rows), count=count, number=f"{messages:,}")
                yield f"Column {column}: {sentence}"


class Missing:
    """Rows without a response of some bots, in a file of conversations that differ between them."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = defaultdict(list)
        self._incomplete = 0

    def add(self, number: int, bots: Sequence[str]) -> None:
        """The first row of a query, and the bots without a response to it after the same messages of the user."""
        self._incomplete += 1
        for bot in bots:
            self._rows[bot].append(number)

    def warnings(self, rows: int) -> Iterator[str]:
        """`rows` is how many queries there are."""
        for bot, numbers in self._rows.items():
            yield (
                f"Bot '{bot[:60]}' has no response to {len(numbers):,} of {rows:,} queries after the same messages of "
                f"the user (row {first_ten(numbers)}). These cases are not applicable. If the bot was asked and did "
                "not answer, add its answer as an empty one."
            )
        if not self._incomplete:
            return
        common = rows - self._incomplete
        yield (
            f"The bots are compared over the {common:,} of {rows:,} queries that all of them answered after the same "
            "messages of the user. To compare more, send the messages of one bot's users to the other bots as well."
            if common
            else "The bots cannot be compared: no query has a response of all of them after the same messages of the "
            "user. Send the messages of one bot's users to the other bots as well."
        )


class Failures:
    """Rows in which a column says that the call of a bot failed, and the responses that are empty for that."""

    def __init__(self, use: "ColumnUse", kind: str) -> None:
        """`use` is a column of error texts or of states, or that of the responses that are marked, as `kind` says."""
        self.letter = use.letter if kind == OF_MARKS else ""
        """Of the responses of the only bot that is meant; '' for all bots."""
        self._use = use
        self._kind = kind
        self._rows = array("Q")
        self._words: dict[str, None] = {}
        """Of a state: what says that a call failed. Of a text: what says that none did."""
        self._empty: list[int] = []
        self._count = 0
        self._of_queries: set[int] = set()
        """All rows of the queries with an empty response, whoever's they are."""
        self._is_exact = True
        """Whether a condition leaves out these rows only."""

    def look(self, row: int, cell: Cell) -> None:
        """Take a cell of the column; rows in ascending order."""
        word = cell.strip() if isinstance(cell, str) else ""
        said = word.casefold()
        if self._kind == OF_STATES:
            if said in _FAILED:
                self._words[word] = None
                self.add(row)
        elif said in _NO_ERROR or said.replace(".", "").isdigit():
            self._words[word] = None
        else:
            self.add(row)

    def add(self, row: int) -> None:
        self._rows.append(row)

    def take(self, responses: Sequence[tuple[int, bool]], rows: Sequence[int]) -> bool:
        """Count the responses of one query: the row of each, and whether it is empty. Whether any counts."""
        told = [(row, is_empty, self._is_failed(row)) for row, is_empty in responses]
        empty = [row for row, is_empty, is_failed in told if is_empty and is_failed]
        if self._kind == OF_MARKS:  # the condition is that the response is not empty
            self._is_exact = self._is_exact and all(failed for _, is_empty, failed in told if is_empty)
        else:
            self._is_exact = self._is_exact and (bool(empty) or not any(failed for _, _, failed in told))
        self._count += len(empty)
        if empty:
            self._of_queries.update(rows)
            self._empty += dict.fromkeys(empty)
        return bool(empty)

    def _is_failed(self, row: int) -> bool:
        place = bisect_left(self._rows, row)
        return place < len(self._rows) and self._rows[place] == row

    def warnings(self, header: Sequence[Cell], *, by_rows: bool, is_selected: bool) -> Iterator[str]:
        """`by_rows` says that each bot has rows of its own, `is_selected` that --rows was given."""
        if not self._count:
            return
        option = self._condition(header)
        if by_rows:  # without the row of one bot, its query would lack a response
            option = "" if is_selected else _all_but(self._of_queries)
        what = {
            OF_MARKS: "has an error in place of an answer",
            OF_STATES: f"is {' or '.join(self._words)}",
        }.get(self._kind, "has a text")
        is_one = self._count == 1
        counts = "it counts as an empty answer" if is_one else "they count as empty answers"
        yield (
            f"{counted(self._count, 'response')} {'is' if is_one else 'are'} empty where column {self._use} {what} "
            f"(row {first_ten(self._empty)}); {counts}. To leave such rows out, "
            + (f"add {option}." if option else "remove them from the file.")
        )

    def _condition(self, header: Sequence[Cell]) -> str:
        """The option that leaves out these rows only; '' if there is none."""
        name = self._use.header
        names = {place: cell for place, cell in enumerate(header) if isinstance(cell, str)}
        is_plain = len(name) < _LONGEST_NAME and not re.search(r"[=!~<>'\n\r]", name)
        word = "" if self._kind == OF_MARKS else next(iter(self._words), "")
        if not (self._is_exact and is_plain and len(self._words) < 2 and len(called(name, names)) == 1):
            return ""
        return f"--where '{name} {'=' if self._kind == OF_ERRORS else '!='} {word}'"


OF_ERRORS, OF_STATES, OF_MARKS = "errors", "states", "marks"
"""Kinds of columns that tell of failures."""
_FAILED = ("error", "failed", "failure")
_NO_ERROR = ("", "none", "null", "nan", "n/a", "-", "false", "no", "no error")
_LONGEST_NAME = 100


def _all_but(rows: Collection[int]) -> str:
    """The option that reads all rows but these; '' for a long one."""
    spans, first = [], 1
    for row in sorted(rows):
        if row > first:
            spans.append(f"{first}-{row - 1}" if row - 1 > first else str(first))
        first = row + 1
    return f"--rows {','.join([*spans, f'{first}-'])}" if len(spans) < _MOST_SPANS else ""


_MOST_SPANS = 20


class Repeats:
    """Rows that say the same as an earlier one, or ask the same. Of each row it keeps a number and two hashes."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._hashes = array("q")
        self._queries = array("q")

    def add(self, number: int, texts: Sequence[str], query: object) -> None:
        """A row of the file and everything that is judged of it, the place in its conversation among it.

        Rows with the same `query` are answers to one question, which are not independent.
        """
        self._numbers.append(number)
        self._hashes.append(hash(tuple(texts)))
        self._queries.append(hash(query))

    def warnings(self, names_of_bots: str) -> Iterator[str]:
        """`names_of_bots` says how to read a column that may have them; '' if none has."""
        repeated, asked = map(_repeated, (self._hashes, self._queries))
        if repeated:
            rows = [self._numbers[place] for place in repeated[:11]]
            verb = "repeats" if len(rows) == 1 else "repeat"
            yield (
                f"{counted(len(repeated), 'row')} {verb} an earlier row with the same query, responses, ground truth "
                f"and context: row {first_ten(rows)}. Repeated rows count again, which makes differences seem more "
                "significant than they are; delete them."
            )
        again = sorted({*asked}.difference(repeated))
        if len(again) >= (1 if names_of_bots else max(_FEW, _MANY * len(self._numbers))):
            rows = [self._numbers[place] for place in again[:11]]
            others = f"{names_of_bots} Otherwise these rows" if names_of_bots else "They"
            yield (
                f"{len(again):,} of {counted(len(self._numbers), 'row')} ask the query of an earlier row again, and "
                f"have other responses: row {first_ten(rows)}. {others} count as independent queries, which makes "
                "differences seem more significant than they are; add a column conversation_id with one number for "
                "all rows of a query, or keep one of them."
            )


_FEW, _MANY = 5, 0.1
"""So many rows, and such a share of them, make intervals noticeably too narrow."""


def _repeated(hashes: "array[int]") -> list[int]:
    """The places of those that an earlier one is equal to, in order."""
    import numpy as np

    _, first = np.unique(np.frombuffer(hashes, dtype=np.int64), return_index=True)
    places: list[int] = np.delete(np.arange(len(hashes)), first).tolist()
    return places


def merge_warnings(
    merged: Sequence[Area], columns: "Columns", first_row: int, last_row: int
) -> Iterator[str]:
    """Only the first of merged cells holds their text; the others are blank, which would count against a bot.

    A name that spans the rows of a header, of which `first_row` is the last, is read as it is meant.
    """
    touched = [
        area
        for area in sorted(merged)
        if area.first_row <= last_row
        and area.last_row >= first_row
        and not (area.first_row < first_row == area.last_row and area.first_column == area.last_column)
        and any(area.first_column <= index + 1 <= area.last_column for index in columns.used)
    ]
    if touched:
        places = [f"{column_letter(area.first_column - 1)}{area.first_row}" for area in touched]
        yield (
            f"Merged cells are read as their first cell, the others as blank (at {first_ten(places)}); "
            "unmerge them and repeat the text where it belongs."
        )


def cut_warnings(cut: int, read: int) -> Iterator[str]:
    if cut:
        yield (
            f"{counted(cut, 'row')} beyond the first {read:,} left out; "
            "raise max_rows in [evaluation] to have them judged."
        )


def header_warnings(rows: Sequence[int]) -> Iterator[str]:
    """Tables that were put below each other, as files that were joined, have their header again."""
    if rows:
        verb, read = ("repeats", "was") if len(rows) == 1 else ("repeat", "were")
        yield f"{counted(len(rows), 'row')} {verb} the header and {read} not read as a case: row {first_ten(rows)}."


def short_warnings(rows: Sequence[int]) -> Iterator[str]:
    """A text with line ends that stands in no quotes is torn into rows that look like others."""
    if rows:
        yield (
            f"Fewer cells than the header has: row {first_ten(rows)}. Missing cells were read as blank; "
            "if a line break split a text, put the text in double quotes."
        )


def text_in_object(use: "ColumnUse", field: str, rows: Sequence[int], condition: str = "") -> str:
    """About rows with a text in a column of objects, which was read as a field. `condition` would leave them out."""
    remedy = f" with --where '{condition}'" if condition else ""
    return (
        f"Column {use}: the text in row {first_ten(rows)} was read as '{field[:60]}', because other rows have an "
        f"object there. If it is not an answer, such as an error message, clear it, or leave the row out{remedy}."
    )


def first_ten(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items[:10]) + (", …" if len(items) > 10 else "")
