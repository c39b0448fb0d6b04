"""What an input file may hold at most. A small file must not cost much memory or time, whoever wrote it."""

from collections.abc import Sequence
from sys import getsizeof

from rag_eval.errors import TableError

MAX_CELL = 1_000_000
"""Characters in one cell: thirty times what Excel allows, and longer than what most judges can read."""
MAX_COLUMNS = 5_000
"""Columns with a header."""
MAX_BOTS = 200
MAX_BOT_NAME = 1_000
"""Characters."""


def too_long(length: int) -> str:
    """What is wrong with a cell of so many characters, to be put after its name."""
    return f"has {length:,} characters, more than the {MAX_CELL:,} allowed; shorten it, or split it into several rows"


def first_of(messages: Sequence[str], count: int | None = None) -> list[str]:
    """The first messages, as many as somebody would read, and how many more there are: `count` in all, if given."""
    more = (len(messages) if count is None else count) - MOST_LISTED
    return [*messages[:MOST_LISTED], *([f"and {more:,} more like these"] if more > 0 else [])]


MOST_LISTED = 20


class Room:
    """Memory for the content of one file, in proportion to its size on disk.

    A file grows when it is read: it was compressed, its cells share a text, or its rows are short.
    """

    def __init__(self, name: str, file_size: int) -> None:
        """`name` is how messages call the file, `file_size` is in bytes."""
        self._name = name
        self._most = self._left = 100_000_000 + 40 * file_size

    def take(self, size: int) -> None:
        """Raises TableError when no room is left for `size` bytes."""
        self._left -= size
        if self._left < 0:
            raise TableError(
                f"{self._name}: its content takes more than {self._most / 1e6:,.0f} MB of memory, far more than its "
                "size on disk; split the file, or lower max_rows in [evaluation]"
            )

    def take_text(self, text: str) -> None:
        self.take(getsizeof(text))
