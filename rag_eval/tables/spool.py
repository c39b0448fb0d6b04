"""Rows in a temporary file, so that memory does not grow with the input. Written once, read as often as wanted.

A row is a list of plain values (marshal). The file has no name, belongs to this user only (0600) and goes with the
process; a small one stays in memory. A long value that a row shares with one shortly before it is written once.
"""

import marshal
import tempfile
import weakref
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from rag_eval.errors import OutputError, TableError

_IN_MEMORY = 2**20
"""Bytes up to which no file is made."""
_BLOCK = 2**18
_SHARED = 200
"""Characters from which on a value is worth sharing."""
_RECENT = 4_000_000
"""Characters of the values that may be shared with coming rows."""
_VALUE = "v"


class Spool:
    """Lists of texts, numbers, None, and lists of such; but no bare number in the place of a shared value."""

    def __init__(self, name: str, file_size: int, *, shares: bool = False) -> None:
        """`name` is how messages call the input, `file_size` its size in bytes.

        `shares` says that a small file may hold one long value for many rows; looking for such ones takes time.
        """
        self._name = name
        self._shares = shares
        self._most = 1_000_000_000 + 40 * file_size
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="rag-eval-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._starts = array("Q")
        self._end = 0
        self._waiting: list[bytes] = []
        self._known: dict[str, int] = {}
        self._recent: deque[tuple[str, int]] = deque()
        self._recent_size = self._count = 0

    def __len__(self) -> int:
        return len(self._starts)

    def share(self, found: Iterable[tuple[str, Any]]) -> list[Any]:
        """What stands in the next line for values, each given with the text that it comes from: it, or a reference."""
        if not self._shares:
            return [value for _, value in found]
        return [self._share(text, value) for text, value in found]

    def _share(self, text: str, value: Any) -> Any:
        if len(text) < _SHARED:
            return value
        if (known := self._known.get(text)) is not None:
            return known
        number = self._known[text] = self._count
        self._count += 1
        self._recent.append((text, number))
        self._recent_size += len(text)
        return {_VALUE: value}

    def add(self, values: Sequence[Any]) -> None:
        line = _packed([self._oldest(), *values] if self._shares else values)
        self._starts.append(self._end)
        self._end += len(line)
        if self._end > self._most:
            raise TableError(
                f"{self._name}: takes more than {self._most / 1e9:,.0f} GB when it is read, far more than its size on "
                "disk; split the file, or lower max_rows in [evaluation]"
            )
        self._waiting.append(line)
        if len(self._waiting) == _LINES_AT_ONCE or len(line) > _BLOCK:
            self._flush()
        while self._recent_size > _RECENT:
            text, _ = self._recent.popleft()
            self._recent_size -= len(text)
            del self._known[text]

    def __iter__(self) -> Iterator[list[Any]]:
        """The lines from the first on, each with the values it shares in place."""
        self._flush()
        if not self._shares:
            yield from map(_unpacked, self._lines())
            return
        self._forget()
        values: dict[int, Any] = {}
        oldest = count = 0
        for line in self._lines():
            first, *row = _unpacked(line)
            for place, value in enumerate(row):
                if isinstance(value, dict):
                    its = value[_VALUE]
                    row[place] = values[count] = tuple(its) if isinstance(its, list) else its
                    count += 1
                elif isinstance(value, int) and place:
                    row[place] = values[value]
            for number in range(oldest, first):
                values.pop(number, None)
            oldest = first
            yield row

    def at(self, number: int) -> list[Any]:
        """One line, of a spool that shares nothing."""
        self._flush()
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self._end
        self._file.seek(start)
        return _unpacked(self._file.read(end - start))

    def _oldest(self) -> int:
        return self._recent[0][1] if self._recent else self._count

    def _forget(self) -> None:
        """Nothing is added while somebody reads, so nothing more is shared."""
        self._known.clear()
        self._recent.clear()
        self._recent_size = 0

    def _flush(self) -> None:
        if not self._waiting:
            return
        lines = b"".join(self._waiting)
        self._waiting.clear()
        try:
            self._file.seek(0, 2)
            self._file.write(lines)
        except OSError as error:
            raise OutputError(
                f"writing {self._name} to temporary disk space failed: {error.strerror or error}; free some space in "
                f"{tempfile.gettempdir()}, or set TMPDIR to another folder"
            ) from error

    def _lines(self) -> Iterator[bytes]:
        block, begin = b"", 0
        for start, end in zip(self._starts, chain(islice(self._starts, 1, None), [self._end]), strict=True):
            if end > begin + len(block):
                self._file.seek(start)
                block, begin = self._file.read(max(_BLOCK, end - start)), start
            yield block[start - begin : end - begin]


_LINES_AT_ONCE = 200


def _packed(values: Any) -> bytes:
    try:
        return marshal.dumps(values)
    except ValueError:  # a text of another class
        return marshal.dumps(_plain(values))


def _unpacked(line: bytes) -> list[Any]:
    values: list[Any] = marshal.loads(line)  # noqa: S302 - from a file without a name that only we write
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {_VALUE: _plain(value[_VALUE])}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
