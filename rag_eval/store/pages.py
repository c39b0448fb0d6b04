"""Rows of a damaged SQLite file, page by page, as https://www.sqlite.org/fileformat2.html describes them.

SQLite itself reads a table as far as the first bad page. Python has no access to its recovery extension.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

_MAGIC = b"SQLite format 3\0"
_FRACTIONS = b"@  "
"""Bytes 21 to 23 of every header."""
_HEADER = 100
_USUAL_SIZE = 4096
_BRANCH, _LEAF = 2, 10
"""First byte of a page with rows, by whether pages below it have more of them."""
_NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its type."""
_NO_RECORD = (IndexError, ValueError, struct.error)
"""What comes of bytes that are no record. Text that is not UTF-8 is a ValueError, too."""

Cell = str | int | float | bytes | None


def page_sizes(file: BinaryIO) -> list[tuple[int, int]]:
    """Bytes of a page, and how many of them are used: as the header has it, and as is usual, should that be wrong."""
    file.seek(0)
    header = file.read(_HEADER).ljust(_HEADER, b"\0")
    size = int.from_bytes(header[16:18]) or _USUAL_SIZE
    size = 65536 if size == 1 else size
    is_possible = size >= 512 and size & (size - 1) == 0
    stated = [(size, size - header[20])] if is_possible and size - header[20] >= 480 else []
    return list(dict.fromkeys([*stated, (_USUAL_SIZE, _USUAL_SIZE)]))


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a file, from 1. The last one may be cut."""

    file: BinaryIO
    size: int
    usable: int

    def page(self, number: int) -> bytes:
        """What is missing of it is zeroes."""
        self.file.seek((number - 1) * self.size)
        return self.file.read(self.size).ljust(self.size, b"\0")[: self.usable]

    def count(self) -> int:
        return -(-self.file.seek(0, os.SEEK_END) // self.size)

    def free(self) -> set[int] | None:
        """The pages that are no longer used, which may hold deleted rows; None if not all of them are known."""
        header = self.page(1)
        if not header.startswith(_MAGIC) and header[21:24] != _FRACTIONS:  # one of them may be damaged
            return None
        following, expected = struct.unpack(">II", header[32:40])
        count, found = self.count(), set[int]()
        while 0 < following <= count and following not in found and len(found) < expected:
            found.add(following)
            page = self.page(following)
            following, length = struct.unpack(">II", page[:8])
            if length > self.usable // 4 - 2:
                return None
            found.update(struct.unpack(f">{length}I", page[8 : 8 + 4 * length]))
        return found if following == 0 and len(found) == expected else None

    def records(self, without: set[int]) -> Iterator[list[Cell]]:
        """Everything on any page that can be read as a row."""
        for number in range(2, self.count() + 1):  # the first one has the names of the tables
            page = self.page(number)
            if number in without or page[0] not in (_BRANCH, _LEAF):
                continue
            begin = 8 if page[0] == _LEAF else 12
            end = min(begin + 2 * int.from_bytes(page[3:5]), self.usable - 1)
            for place in range(begin, end, 2):
                with suppress(*_NO_RECORD):
                    start = int.from_bytes(page[place : place + 2])
                    yield _values(self._record(page, start if page[0] == _LEAF else start + 4))

    def _record(self, page: bytes, start: int) -> bytes:
        """The bytes of a row, those on further pages included."""
        length, start = _varint(page, start)
        if length > self.count() * self.size:
            raise ValueError(length)
        most = (self.usable - 12) * 64 // 255 - 23
        here = length
        if length > most:
            least = (self.usable - 12) * 32 // 255 - 23
            here = least + (length - least) % (self.usable - 4)
            here = here if here <= most else least
        parts = [page[start : start + here]]
        missing, end = length - here, start + here
        following, seen, count = int.from_bytes(page[end : end + 4]), set[int](), self.count()
        while missing > 0:
            if not 0 < following <= count or following in seen:  # a circle would be read for ever
                raise ValueError(following)
            seen.add(following)
            page = self.page(following)
            following = int.from_bytes(page[:4])
            parts.append(page[4 : 4 + missing])
            missing -= len(parts[-1])
        return b"".join(parts)


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where the next one begins."""
    number = 0
    for place in range(start, start + 8):
        number = number << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return number, place + 1
    return number << 8 | data[start + 8], start + 9


def _values(record: bytes) -> list[Cell]:
    length, place = _varint(record, 0)
    start, values = length, list[Cell]()
    while place < length:
        kind, place = _varint(record, place)
        size = (kind - 12) // 2 if kind >= 12 else 8 if kind == 7 else _NUMBERS.get(kind, 0)
        values.append(_value(kind, record[start : start + size]))
        start += size
    if start != len(record) or not values:
        raise ValueError(start)
    return values


def _value(kind: int, data: bytes) -> Cell:
    if kind >= 12:
        return data.decode() if kind % 2 else data
    if kind == 7:
        return float(struct.unpack(">d", data)[0])
    if kind in (8, 9):
        return kind - 8
    return int.from_bytes(data, signed=True) if kind in _NUMBERS else None
