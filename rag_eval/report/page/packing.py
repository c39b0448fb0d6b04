"""What the page holds of each case, packed: numbers in columns, texts in blocks, and the choice of rows that fit."""

import base64
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path

from rag_eval.results.row_choice import RANDOM, WORST, ScoredCases
from rag_eval.store.codec import Spool

REASON_BITS = {WORST: 1, RANDOM: 2}
"""Bits that say why a row was chosen; both are possible."""
NOT_APPLICABLE, FAILED = -1, -2
"""In place of a value."""
_BLOCK_BYTES, _BLOCK_ROWS = 150_000, 500
"""Of the texts that are packed together. Deflate looks back 32 kB, so larger blocks are hardly smaller."""


def packed(parts: Iterable[bytes]) -> bytes:
    """Deflated (RFC 1951, raw) and in base64: letters that no HTML parser takes for anything else."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(b"".join([*map(deflate.compress, parts), deflate.flush()]))


class CaseNumbers:
    """The numbers of all cases in columns: some 30 bytes a case, so that any run fits into memory."""

    def __init__(self, columns: Iterable[str]) -> None:
        self.rows, self.slices = array("I"), array("I")
        """Of each row: its number in the input, and its slice."""
        self.row_of = array("I")
        """Of each case: the position of its row."""
        self.bots, self.below = array("H"), array("H")
        """Of each case: its bot, and as bits in the order of `values` what is on the wrong side of a threshold."""
        self.values = {name: array("h") for name in columns}
        """Of each case, by column: ten thousandths, NOT_APPLICABLE or FAILED."""
        self.modes, self.flags = array("B"), array("B")
        """Of each case: failure modes and flags as bits."""

    def scored_cases(self, column: str) -> ScoredCases:
        """The cases with the values of one column as their scores."""
        import numpy as np

        columns = [
            np.frombuffer(each, each.typecode) for each in (self.row_of, self.bots, self.values[column])
        ]
        return ScoredCases(*columns)

    def packed(self, choice: "_Choice") -> bytes:
        """The chosen rows and their cases as page.js reads them: columns of 32 bits, then of 16, then of 8."""
        rows = choice.rows()
        at = array("I", bytes(4 * len(self.rows)))
        for index, row in enumerate(rows):
            at[row] = index
        cases = array("I", (case for case, row in enumerate(self.row_of) if choice.blocks[row] >= 0))

        def of_rows(column: Sequence[int], kind: str) -> "array[int]":
            return array(kind, map(column.__getitem__, rows))

        def of_cases(column: "array[int]") -> "array[int]":
            return array(column.typecode, map(column.__getitem__, cases))

        wide = [of_rows(each, "I") for each in (self.rows, self.slices, choice.blocks, choice.positions)]
        wide.append(array("I", (at[self.row_of[case]] for case in cases)))
        rest = map(of_cases, (self.bots, self.below, *self.values.values(), self.modes, self.flags))
        return packed(map(_little_endian, chain(wide, rest, [of_rows(choice.why, "B")])))

    def count(self, choice: "_Choice") -> int:
        """Cases of the chosen rows."""
        return sum(choice.blocks[row] >= 0 for row in self.row_of)


def _little_endian(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


class _Choice:
    """Rows with the places of their texts, block by block. The last blocks can be taken back."""

    def __init__(self, rows: int) -> None:
        self.blocks = array("i", [-1]) * rows
        """Of each row of the run: the block with its texts; -1 when it is not chosen."""
        self.positions = array("I", [0]) * rows
        self.why = bytearray(rows)
        """0 in a page that holds every row."""
        self._turns: list[array[int]] = []
        """Of each block: the rows that were named while it was filled, times 4, plus why."""
        self._position = 0

    def add(self, block: int, row: int, why: int) -> bool:
        """Whether the row is new; one that was chosen before only gets one more reason."""
        if block == len(self._turns):
            self._turns.append(array("Q"))
            self._position = 0
        self._turns[block].append(row * 4 + why)
        self.why[row] |= why
        if self.blocks[row] >= 0:
            return False
        self.blocks[row], self.positions[row] = block, self._position
        self._position += 1
        return True

    def drop_last_block(self) -> None:
        turns = self._turns.pop()
        for row, why in (divmod(turn, 4) for turn in turns):
            self.why[row] &= ~why
            if self.blocks[row] == len(self._turns):
                self.blocks[row] = -1

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

    choice: _Choice
    numbers: bytes
    snippets: bytes
    texts: Path
    """A file with one packed block a line; only the first `choice.block_count` lines count."""

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
        everything = self._fill(in_order)
        if len(everything.choice.rows()) == len(self._records):
            return everything
        turns = self._numbers.scored_cases(column).by_turns()
        return self._fill((row, REASON_BITS[why]) for row, why in turns)

    def _fill(self, order: Iterable[tuple[int, int]]) -> PackedRows:
        """As many rows in this order as fit."""
        choice = _Choice(len(self._records))
        sizes = []
        with self._texts.open("wb") as file:
            for block in self._blocks(order, choice):
                sizes.append(file.write(packed([b"[", b",".join(block), b"]"]) + b"\n"))
                if sum(sizes) > self._room:
                    break
        while True:
            numbers, snippets = self._numbers.packed(choice), self._packed_snippets(choice)
            size = sum(sizes[: choice.block_count]) + len(numbers) + len(snippets)
            if size <= self._room or not choice.block_count:
                return PackedRows(choice, numbers, snippets, self._texts)
            choice.drop_last_block()

    def _blocks(self, order: Iterable[tuple[int, int]], choice: _Choice) -> Iterator[list[bytes]]:
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

    def _packed_snippets(self, choice: _Choice) -> bytes:
        """A JSON list of the chosen rows' snippets."""
        separators = chain([b"["], repeat(b","))
        pairs = zip(separators, map(self._snippets.at, choice.rows()), strict=False)
        return packed(chain.from_iterable([*pairs, (b"]",)] if len(choice.rows()) else [(b"[]",)]))
