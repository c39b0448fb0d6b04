"""The table of an .xls file, out of its container, and what it would take once it is read.

An .xls file is a small file system (MS-CFB) with the workbook as one of its files (MS-XLS). The reader follows its
chains of sectors without end, unpacks macros, and copies each shared text into each cell. So it is given the workbook
in a new container, after its cells were counted. It leaves errors blank and numbers without their formats, so these are
looked for here.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rag_eval.tables.cells import NEVER_CALCULATED, BadCell, SheetMarks, UnitRuns, error_value
from rag_eval.tables.input_files import Room
from rag_eval.tables.number_formats import PERCENT, shown_unit

_NAMES = ("Workbook", "Book")
_LAST, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_MINI_SECTOR = 64
_ENTRY = 128
"""Bytes of an entry of the directory."""
_STREAM, _ROOT = 2, 5
"""Types of entries."""


def extract_workbook(path: Path, room: Room) -> tuple[bytes, list[SheetMarks]]:
    """A container with the workbook and nothing else; and the errors and units of each sheet, in their order.

    Raises ValueError for a damaged file, and TableError for one whose cells would take more than `room` has.
    """
    name, stream = _read_workbook(path.read_bytes())
    marks = _check(stream, room)
    return _container(name, stream), marks


# --- the container ----------------------------------------------------------------------------------------------


class _Sectors:
    """The sectors of a file, and which follows which."""

    def __init__(self, content: bytes, size: int, table: Sequence[int], first: int) -> None:
        self._content = content
        self._size = size
        self._table = table
        self._first = first

    def chain(self, start: int) -> bytes:
        """The content of the sectors from `start` on. ValueError for a chain that is a circle or leads outside."""
        parts: list[bytes] = []
        number = start
        while number != _LAST:
            if number >= len(self._table) or len(parts) >= len(self._table):
                raise ValueError("a chain of sectors has no end")
            begin = self._first + number * self._size
            parts.append(self._content[begin : begin + self._size])
            number = self._table[number]
        return b"".join(parts)


def _read_workbook(content: bytes) -> tuple[str, bytes]:
    """Name and content of the workbook's stream."""
    try:
        return _find_workbook(content)
    except struct.error:
        raise ValueError("the file ends too early") from None


def _find_workbook(content: bytes) -> tuple[str, bytes]:
    (shift,) = struct.unpack_from("<H", content, 30)
    if shift not in (9, 12):
        raise ValueError("sectors of an unknown size")
    directory_start, mini_limit, mini_start = struct.unpack_from("<I4xII", content, 48)
    size = 1 << shift
    sectors = _Sectors(content, size, _allocation(content, size), size)
    entries = dict(_entries(sectors.chain(directory_start)))
    for name in _NAMES:
        if name in entries:
            start, length = entries[name]
            if length >= mini_limit:
                return name, sectors.chain(start)[:length]
            minis = _numbers(sectors.chain(mini_start))
            return name, _Sectors(sectors.chain(entries[""][0]), _MINI_SECTOR, minis, 0).chain(start)[:length]
    raise ValueError("no workbook in the file")


def _allocation(content: bytes, size: int) -> list[int]:
    """For each sector the next one. The sectors that hold this are listed in the header and in a chain of their own."""
    most = len(content) // size + 1
    listed = list(struct.unpack_from("<109I", content, 76))
    (number,) = struct.unpack_from("<I", content, 68)
    while number < _FAT:
        if len(listed) > most:
            raise ValueError("a chain of sectors has no end")
        *further, number = _numbers(content[(number + 1) * size : (number + 2) * size]) or [_LAST]
        listed += further
    places = [number for number in listed if number < _FAT]
    if len(places) > most:
        raise ValueError("more sectors than the file has")
    return [item for place in places for item in _numbers(content[(place + 1) * size : (place + 2) * size])]


def _numbers(content: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4]))


def _entries(directory: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
    """First sector and length of each stream by name; that of the small streams, the root's, has the name ''."""
    for place in range(0, len(directory) - _ENTRY + 1, _ENTRY):
        length, kind = struct.unpack_from("<HB", directory, place + 64)
        found = struct.unpack_from("<II", directory, place + 116)
        if kind == _ROOT:
            yield "", found
        elif kind == _STREAM:
            yield directory[place : place + max(0, min(64, length) - 2)].decode("utf-16-le", "replace"), found


def _container(name: str, stream: bytes) -> bytes:
    """A file with one stream, in sectors of 4,096 bytes, of which the header can list the table of half a gigabyte."""
    size = 4096
    stream = stream.ljust(size, b"\0")  # a shorter one would have to be among the small streams
    data = -(-len(stream) // size)
    tables = 1
    while tables * (size // 4) < data + 1 + tables:
        tables += 1
    if tables > 109:
        raise ValueError("more than an .xls file can hold")
    chain = [*range(1, data), _LAST, _LAST, *[_FAT] * tables]
    table = struct.pack(f"<{tables * size // 4}I", *chain, *[_FREE] * (tables * size // 4 - len(chain)))
    listed = [*range(data + 1, data + 1 + tables), *[_FREE] * (109 - tables)]
    header = struct.pack(
        "<8s16xHHHHH6x9I109I",
        bytes.fromhex("d0cf11e0a1b11ae1"), 62, 4, 0xFFFE, 12, 6,
        1, tables, data, 0, 4096, _LAST, 0, _LAST, 0, *listed,
    )  # fmt: skip
    directory = _entry("Root Entry", _ROOT, 0, child=1) + _entry(name, _STREAM, len(stream))
    return b"".join(
        (header.ljust(size, b"\0"), stream.ljust(data * size, b"\0"), directory.ljust(size, b"\0"), table)
    )


def _entry(name: str, kind: int, length: int, child: int = _FREE) -> bytes:
    written = (name + "\0").encode("utf-16-le")
    return struct.pack("<64sHBBIII36xIQ", written, len(written), kind, 1, _FREE, _FREE, child, 0, length)


# --- the workbook -----------------------------------------------------------------------------------------------

_EOF, _WRITER, _BOUND_SHEET, _SHARED, _CONTINUE, _SHARED_CELL = 0x0A, 0x5C, 0x85, 0xFC, 0x3C, 0xFD
_FORMULA, _FLAG_OR_ERROR, _TEXT_RESULT = 0x06, 0x205, 0x207
_CELLS = frozenset((_FORMULA, 0xBD, 0xD6, 0xFD, 0x203, 0x204, _FLAG_OR_ERROR, 0x27E))
"""Records that begin with a row and a column, and hold a value."""
_SEVERAL_CELLS = 0xBD
"""That of them that ends with its last column."""
_NUMBERS = frozenset((_FORMULA, _SEVERAL_CELLS, 0x203, 0x27E))
"""Those of them that hold numbers."""
_BEGIN, _FORMAT, _STYLE, _VERSION = 0x809, 0x41E, 0xE0, 0x600
_BUILT_IN = {5: "$", 6: "$", 7: "$", 8: "$", 9: PERCENT, 10: PERCENT, 42: "$", 44: "$"}
"""Units of formats that a file need not describe (ECMA-376, part 1, 18.8.30)."""
_CELL_SIZE = 64
"""Bytes that the reader needs for a cell, text not included: it builds the rectangle twice, of values and formulas."""
_MARK_SIZE = 200
_ERRORS = {
    0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}  # fmt: skip
"""MS-XLS 2.5.10"""
_XLWT = b"None"
"""The user that xlwt names. It calculates nothing, and writes an empty text as the result of each formula."""


def _check(stream: bytes, room: Room) -> list[SheetMarks]:
    """Take the room that the cells of all sheets need: the reader reads all of them. The marks of each sheet."""
    lengths = _shared_lengths(stream)
    units = _units(stream)
    sheets: dict[int, _Sheet] = {}
    found = []
    is_by_xlwt = False
    for kind, begin, end in _records(stream, 0):
        if kind == _WRITER:
            is_by_xlwt = stream[begin:end].strip() == _XLWT
        elif kind == _BOUND_SHEET and end - begin >= 4:
            (place,) = struct.unpack_from("<I", stream, begin)
            if place not in sheets:
                sheets[place] = _scanned(stream, place, lengths, units, is_calculated=not is_by_xlwt)
            room.take(sheets[place].size)
            found.append(sheets[place].marks)
    return found


def _records(stream: bytes, place: int) -> Iterator[tuple[int, int, int]]:
    """Type of each record up to the end of a part of the workbook, and where its content begins and ends."""
    while place + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, place)
        yield kind, place + 4, min(place + 4 + length, len(stream))
        if kind == _EOF:
            return
        place += 4 + length


class _Sheet(NamedTuple):
    size: int
    """Bytes that it needs."""
    marks: SheetMarks


def _scanned(
    stream: bytes, place: int, lengths: Sequence[int], units: Mapping[int, str], *, is_calculated: bool
) -> _Sheet:
    rows: set[int] = set()
    bad: dict[int, dict[int, BadCell]] = defaultdict(dict)
    least, most, size = 2**16, -1, 0
    awaited: tuple[int, int] | None = None
    for kind, begin, end in _records(stream, place):
        size += end - begin
        if kind == _TEXT_RESULT:
            awaited = None
        if kind not in _CELLS or end - begin < 6:
            continue
        if awaited:
            bad[awaited[0] + 1][awaited[1]] = NEVER_CALCULATED
        row, column = struct.unpack_from("<HH", stream, begin)
        result = _result(kind, stream[begin + 6 : min(begin + 14, end)])
        awaited = (row, column) if result == _TEXT_FOLLOWS else None
        if isinstance(result, int):
            bad[row + 1][column] = error_value(_ERRORS.get(result, ""))
        elif result == _EMPTY_TEXT and not is_calculated:
            bad[row + 1][column] = NEVER_CALCULATED
        rows.add(row)
        least = min(least, column)
        most = max(most, column)
        if kind == _SEVERAL_CELLS:
            most = max(most, *struct.unpack_from("<H", stream, end - 2))
        elif kind == _SHARED_CELL and end - begin >= 10:
            (number,) = struct.unpack_from("<I", stream, begin + 6)
            size += sum(lengths[number : number + 1])
    if awaited:
        bad[awaited[0] + 1][awaited[1]] = NEVER_CALCULATED
    runs, count = _runs(stream, place, units) if units else (UnitRuns(), 0)
    size += _MARK_SIZE * (count + sum(map(len, bad.values())))
    height = max(rows, default=-1) - min(rows, default=0) + 1
    size += height * (most - least + 1) * _CELL_SIZE
    return _Sheet(size, SheetMarks(bad, runs))


def _units(stream: bytes) -> dict[int, str]:
    """The units that the formats of numbers show, by style; none for files of Excel 95 and earlier."""
    by_format = dict(_BUILT_IN)
    styles: list[int] = []
    for kind, begin, end in _records(stream, 0):
        content = stream[begin:end]
        if kind == _BEGIN and content[:2] != _VERSION.to_bytes(2, "little"):
            return {}
        if kind == _STYLE and len(content) >= 4:
            styles += struct.unpack_from("<H", content, 2)
        elif kind == _FORMAT and len(content) >= 5:
            (number,) = struct.unpack_from("<H", content)
            code = content[5:].decode("utf-16-le" if content[4] & 1 else "latin-1", "replace")
            by_format[number] = shown_unit(code)
    return {style: unit for style, number in enumerate(styles) if (unit := by_format.get(number, ""))}


def _runs(stream: bytes, place: int, units: Mapping[int, str]) -> tuple[UnitRuns, int]:
    """The units of a sheet's numbers, and how many runs they are."""
    runs, count = UnitRuns(), 0
    for kind, begin, end in _records(stream, place):
        if kind not in _NUMBERS or end - begin < 6:
            continue
        row, column = struct.unpack_from("<HH", stream, begin)
        for style_at in range(begin + 4, end - 2, 6) if kind == _SEVERAL_CELLS else (begin + 4,):
            (style,) = struct.unpack_from("<H", stream, style_at)
            if style in units:
                count += runs.add(column, row + 1, row + 1, units[style])
            column += 1
    return runs, count


_TEXT_FOLLOWS, _EMPTY_TEXT = "text follows", "empty text"


def _result(kind: int, content: bytes) -> int | str:
    """The code of an error; whether a formula's result is in the next records, or an empty text; '' for all else."""
    if kind == _FLAG_OR_ERROR and content[1:2] == b"\x01":
        return content[0]
    if kind != _FORMULA or content[6:8] != b"\xff\xff":
        return ""
    if content[0] == 2:
        return content[2]
    return {0: _TEXT_FOLLOWS, 3: _EMPTY_TEXT}.get(content[0], "")


def _shared_lengths(stream: bytes) -> list[int]:
    """Bytes of each shared text, three for a character at most."""
    blocks: list[tuple[int, int]] = []
    for kind, begin, end in _records(stream, 0):
        if kind == _SHARED and not blocks:
            blocks.append((begin + 8, end))
        elif kind == _CONTINUE and blocks:
            blocks.append((begin, end))
        elif blocks:
            break
    return list(_lengths(stream, blocks))


def _lengths(stream: bytes, blocks: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Walks over the texts, which go on in the next block where they do not fit into one (MS-XLS 2.5.293)."""
    number = 0
    place, end = blocks[0] if blocks else (0, 0)
    while number < len(blocks):
        if place + 3 > end:
            number += 1
            place, end = blocks[number] if number < len(blocks) else (0, 0)
            continue
        characters, flags = struct.unpack_from("<HB", stream, place)
        yield 3 * characters
        place += 3
        extra = 0
        if flags & 8 and place + 2 <= end:
            extra += 4 * struct.unpack_from("<H", stream, place)[0]
            place += 2
        if flags & 4 and place + 4 <= end:
            extra += struct.unpack_from("<I", stream, place)[0]
            place += 4
        left, width = characters, 1 + (flags & 1)
        while left or extra:
            taken = min(left, (end - place) // width)
            place, left = place + taken * width, left - taken
            if not left:
                taken = min(extra, end - place)
                place, extra = place + taken, extra - taken
            if left or extra:
                number += 1
                if number == len(blocks):
                    return
                place, end = blocks[number]
                # Only characters, not what follows them, have their width said again.
                if left and place < end:
                    width = 1 + (stream[place] & 1)
                    place += 1
