"""What the page holds of each case, packed: numbers in columns, texts in blocks, and the choice of rows that fit."""

import base64
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.results.row_choice import RANDOM, WORST, ScoredCases
from rag_eval.store.codec import NumberTable, Spool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

REASON_BITS = {WORST: 1, RANDOM: 2}
"""Bits that say why a row was chosen; both are possible."""
NOT_APPLICABLE, FAILED = -1, -2
"""In place of a value."""
_BLOCK_BYTES, _BLOCK_ROWS = 150_000, 500
"""Of the texts that are packed together. Deflate looks back 32 kB, so larger blocks are hardly smaller."""


_MOST_PER_ROW = 2
"""Times the mean of all rows: more than the numbers and the snippet of a row take that is left out."""


def packed(parts: Iterable[bytes]) -> bytes:
    """Deflated (RFC 1951, raw) and in base64: letters that no HTML parser takes for anything else."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(b"".join([*map(deflate.compress, parts), deflate.flush()]))


class CaseNumbers:
    """The numbers of all cases in columns, most of them on disk."""

    def __init__(self, columns: Iterable[str]) -> None:
        self._file: Spool[bytes] = Spool(bytes, "the numbers of the page")
        self.rows = NumberTable({"number": "I", "slice": "I"}, self._file)
        """Of each row: its number in the input, and its slice."""
        self.cases = NumberTable(
            {"row": "I", "bot": "H", "below": "H", "modes": "B", "flags": "B"}, self._file
        )
        """Of each case: the position of its row, its bot, as bits in the order of `values` what is on the wrong side of
        a threshold, and failure modes and flags as bits."""
        self.values = NumberTable(dict.fromkeys(columns, "h"), self._file)
        """Of each case, by column: ten thousandths, NOT_APPLICABLE or FAILED."""

    def scored_cases(self, column: str) -> ScoredCases:
        """The cases with the values of one column as their scores."""
        columns = self.cases.column("row"), self.cases.column("bot"), self.values.column(column)
        return ScoredCases(*map(_numbers, columns))

    def packed(self, choice: "_ChosenRows") -> bytes:
        """The chosen rows and their cases as page.js reads them: columns of 32 bits, then of 16, then of 8."""
        import numpy as np

        rows, cases = np.asarray(choice.rows()), self._chosen(choice)
        at = np.zeros(len(self.rows), np.uint32)
        at[rows] = np.arange(len(rows))

        def of_cases(*columns: "array[int]") -> "Iterator[npt.NDArray[np.integer]]":
            return (_numbers(column)[cases] for column in columns)

        numbers = chain(
            (_numbers(self.rows.column(name))[rows] for name in ("number", "slice")),
            (np.asarray(each)[rows] for each in (choice.blocks, choice.positions)),
            (at[each] for each in of_cases(self.cases.column("row"))),
            of_cases(self.cases.column("bot"), self.cases.column("below")),
            of_cases(*map(self.values.column, self.values.last)),
            of_cases(self.cases.column("modes"), self.cases.column("flags")),
            [np.frombuffer(choice.why, np.uint8)[rows]],
        )
        return packed(column.astype(column.dtype.newbyteorder("<")).tobytes() for column in numbers)

    def count(self, choice: "_ChosenRows") -> int:
        """Cases of the chosen rows."""
        return len(self._chosen(choice))

    def close(self) -> None:
        """Give back the space on disk."""
        self._file.close()

    def _chosen(self, choice: "_ChosenRows") -> "npt.NDArray[np.integer]":
        """The cases of the chosen rows."""
        import numpy as np

        return np.flatnonzero(np.asarray(choice.blocks)[_numbers(self.cases.column("row"))] >= 0)


def _numbers(column: "array[int]") -> "npt.NDArray[np.integer]":
    import numpy as np

    return np.frombuffer(column, column.typecode)


class _ChosenRows:
    """Rows with the places of their texts, block by block. The last blocks can be taken back."""

    def __init__(self, rows: int) -> None:
        self.blocks = array("i", [-1]) * rows
        """Of each row of the run: the block with its texts; -1 when it is not chosen."""
        self.positions = array("I", [0]) * rows
        self.why = bytearray(rows)
        """0 in a page that holds every row."""
        self.sizes: list[int] = []
        """Of each block: bytes of its packed texts."""
        self._turns: list[array[int]] = []
        """Of each block: the rows that were named while it was filled, times 4, plus why if that was new of the row."""
        self._position = 0

    def add(self, block: int, row: int, why: int) -> bool:
        """Whether the row is new; one that was chosen before only gets one more reason."""
        if block == len(self._turns):
            self._turns.append(array("Q"))
            self._position = 0
        self._turns[block].append(row * 4 + (why & ~self.why[row]))
        self.why[row] |= why
        if self.blocks[row] >= 0:
            return False
        self.blocks[row], self.positions[row] = block, self._position
        self._position += 1
        return True

    def drop_last_block(self, per_row: float) -> float:
        """How many bytes are free then, if a row takes so many in addition to its texts."""
        turns = self._turns.pop()
        free: float = sum(self.sizes[len(self._turns) :])
        del self.sizes[len(self._turns) :]
        for row, why in (divmod(turn, 4) for turn in turns):
            self.why[row] &= ~why
            if self.blocks[row] == len(self._turns):
                self.blocks[row] = -1
                free += per_row
        return free

    @property
    def block_count(self) -> int:
        return len(self._turns)

    def rows(self) -> Sequence[int]:
        """Positions, ascending."""
        return array("I", (row for row, block in enumerate(self.blocks) if block >= 0))

    def count(self, why: int) -> int:
        return sum(bool(self.why[row] & why) for row in self.rows())


@dataclass(frozen=True, slots=True)
class PackedRows:
    """What fits into the page."""

    choice: _ChosenRows
    numbers: bytes
    snippets: bytes
    texts: Path
    """A file with one packed block a line; only the first `choice.block_count` lines count."""

    @property
    def size(self) -> int:
        """Bytes without those of the texts."""
        return len(self.numbers) + len(self.snippets)

    @property
    def row_count(self) -> int:
        return len(self.choice.rows())


class Packer:
    """Chooses the rows that fit into `room` bytes of the page, and packs them."""

    def __init__(
        self, records: Spool[bytes], snippets: Spool[bytes], numbers: CaseNumbers, folder: str, room: int
    ) -> None:
        """Of each row, `records` has the JSON of its texts, and `snippets` that of the start of its query."""
        self._records = records
        self._snippets = snippets
        self._numbers = numbers
        self._texts = Path(folder, "texts")
        self._room = room

    def pack(self, column: str) -> PackedRows:
        """All rows if they fit; otherwise the worst of each bot by `column` and random ones, in turn."""
        in_order = ((row, 0) for row in range(len(self._records)))
        choice = self._fill(in_order)
        if sum(choice.sizes) <= self._room and self._excess(everything := self._packed(choice)) <= 0:
            return everything
        turns = self._numbers.scored_cases(column).by_turns()
        choice = self._fill((row, REASON_BITS[why]) for row, why in turns)
        while (excess := self._excess(chosen := self._packed(choice))) > 0 and choice.block_count:
            per_row = _MOST_PER_ROW * chosen.size / max(chosen.row_count, 1)
            while excess > 0 and choice.block_count:
                excess -= choice.drop_last_block(per_row)
        return chosen

    def _fill(self, order: Iterable[tuple[int, int]]) -> _ChosenRows:
        """Rows in this order, up to the block with which the texts need all the room."""
        choice = _ChosenRows(len(self._records))
        with self._texts.open("wb") as file:
            for block in self._blocks(order, choice):
                choice.sizes.append(file.write(packed([b"[", b",".join(block), b"]"]) + b"\n"))
                if sum(choice.sizes) > self._room:
                    break
        return choice

    def _packed(self, choice: _ChosenRows) -> PackedRows:
        return PackedRows(choice, self._numbers.packed(choice), self._packed_snippets(choice), self._texts)

    def _excess(self, rows: PackedRows) -> float:
        """Bytes for which there is no room."""
        return sum(rows.choice.sizes) + rows.size - self._room

    def _blocks(self, order: Iterable[tuple[int, int]], choice: _ChosenRows) -> Iterator[list[bytes]]:
        """The records of the chosen rows, some at a time; `choice` learns where they are."""
        block: list[bytes] = []
        size = number = 0
        for row, why in order:
            if not choice.add(number, row, why):
                continue
            block.append(self._records.at(row))
            size += len(block[-1])
            if size >= _BLOCK_BYTES or len(block) >= _BLOCK_ROWS:
                yield block
                block, size, number = [], 0, number + 1
        if block:
            yield block

    def _packed_snippets(self, choice: _ChosenRows) -> bytes:
        """A JSON list of the chosen rows' snippets."""
        separators = chain([b"["], repeat(b","))
        pairs = zip(separators, map(self._snippets.at, choice.rows()), strict=False)
        return packed(chain.from_iterable([*pairs, (b"]",)] if len(choice.rows()) else [(b"[]",)]))
