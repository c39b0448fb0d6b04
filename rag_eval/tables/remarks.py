"""What is worth saying about cells that could be read, one sentence a column. Nothing here is an error."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rag_eval.tables.cells import (
    EXCEL_LIMIT,
    Area,
    column_letter,
)
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


class Repeats:
    """Rows that say the same as an earlier one. Of each row it keeps a number and a hash."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._hashes = array("q")

    def add(self, number: int, texts: Sequence[str]) -> None:
        """A row of the file and everything that is judged of it, the place in its conversation among it."""
        self._numbers.append(number)
        self._hashes.append(hash(tuple(texts)))

    def warnings(self) -> Iterator[str]:
        import numpy as np

        _, first = np.unique(np.frombuffer(self._hashes, dtype=np.int64), return_index=True)
        repeated = np.delete(np.arange(len(self._hashes)), first)
        if len(repeated):
            rows = [self._numbers[place] for place in repeated[:11]]
            verb = "repeats" if len(rows) == 1 else "repeat"
            yield (
                f"{counted(len(repeated), 'row')} {verb} an earlier row with the same query, responses, ground truth "
                f"and context: row {first_ten(rows)}. Repeated rows count again, which makes differences seem more "
                "significant than they are; delete them."
            )


def merge_warnings(
    merged: Sequence[Area], columns: "Columns", first_row: int, last_row: int
) -> Iterator[str]:
    """Only the first of merged cells holds their text; the others are blank, which would count against a bot."""
    touched = [
        area
        for area in merged
        if area.first_row <= last_row
        and area.last_row >= first_row
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
        f"object there. If it is no answer, such as an error message, clear it, or leave the row out{remedy}."
    )


def first_ten(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items[:10]) + (", …" if len(items) > 10 else "")
