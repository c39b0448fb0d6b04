"""A Parquet file to rows of values. Each text is made once, however many cells share it, as it is in the file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from pathlib import Path
from sys import getsizeof
from typing import Any

from rag_eval.errors import TableError, how_to_install
from rag_eval.tables.content import damage_reported
from rag_eval.tables.input_files import MAX_COLUMNS, Room

_COPIES = 3
"""Of what a group of rows unpacks to, those that exist at the same time."""
_BATCH = 4 * 2**20
"""Bytes of the file's content that are read at a time, about."""
_ROWS_AT_ONCE = 500
"""Rows of a batch that become Python's values at a time …"""
_VALUES_AT_ONCE = 100_000
"""… or fewer, of a wide table."""

_LARGE = 8 * 2**20
"""Bytes of a file from which on its texts are read one by one: in a smaller one many rows may share a long text, and a
dictionary of a large one would be held as a whole."""
_ROWS_OF_LARGE = 256
_BUFFER = 2**18


@contextmanager
def open_parquet(path: Path, room: Room, of_value: Callable[[Any], Any]) -> Iterator["_ParquetTable"]:
    """Open a file. Raises TableError for a damaged one, and for one that would take more than `room` has.

    `of_value` is what each distinct text or byte string of a column becomes; those inside lists stay as they are.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise TableError(
            f"{path.name}: reading Parquet needs pyarrow; install it with {how_to_install('parquet')}"
        ) from None
    _check_footer(path)
    with damage_reported(path, ArrowException), ParquetFile(path) as file:
        _check_metadata(path, file.metadata, room)
        columns = map(file.metadata.schema.column, range(file.metadata.num_columns))
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        rows = _rows_of_a_batch(file.metadata)
    is_large = path.stat().st_size >= _LARGE
    with damage_reported(path, ArrowException):
        if is_large:
            rows = min(rows, _ROWS_OF_LARGE)
            file = ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
        else:
            file = ParquetFile(path, read_dictionary=texts)
    with file:
        yield _ParquetTable(path, file, rows, room, of_value)


Tree = tuple[str, Sequence["Tree"]]
"""The name of a column or a field, and the fields of a structure."""


def _tree(field: Any) -> Tree:
    from pyarrow import types

    kind = field.type
    is_struct = types.is_struct(kind)
    return field.name, [_tree(kind.field(place)) for place in range(kind.num_fields)] if is_struct else []


def _check_footer(path: Path) -> None:
    """The directory at the end of a file is read as a whole; of a small file it takes a small part."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        footer = int.from_bytes(file.read(4), "little")
    most = 1_000_000 + size // 10
    if footer <= most:
        return
    if footer > size:
        raise TableError(
            f"{path.name}: is damaged or incomplete: its directory takes {footer:,} bytes; write it again"
        )
    raise TableError(
        f"{path.name}: its directory takes {footer:,} bytes, more than the {most:,} allowed, as with more than "
        f"{MAX_COLUMNS:,} columns or with very small groups of rows; write it again with only the columns that are "
        "needed"
    )


def _check_metadata(path: Path, metadata: Any, room: Room) -> None:
    """What the file says of itself: how many values it has, and to how much it unpacks."""
    size = path.stat().st_size
    most = 2_000_000 + size
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = metadata.num_rows + sum(
        group.column(number).num_values for group in groups for number in range(group.num_columns)
    )
    if values > most:
        raise TableError(
            f"{path.name}: contains {values:,} values, more than the {most:,} that are read from a file of its size; "
            "split it into several files"
        )
    room.take(_COPIES * max((group.total_byte_size for group in groups), default=0))


def _rows_of_a_batch(metadata: Any) -> int:
    rows: int = metadata.num_rows
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    size: int = sum(group.total_byte_size for group in groups)
    return max(1, min(2**16, _BATCH * rows // max(1, size)))


class _ParquetTable:
    """An open file."""

    def __init__(
        self, path: Path, file: Any, rows_of_a_batch: int, room: Room, of_value: Callable[[Any], Any]
    ) -> None:
        self.names: Sequence[str] = file.schema_arrow.names
        self.trees: Sequence[Tree] = [_tree(field) for field in file.schema_arrow]
        self._path = path
        self._file = file
        self._rows_of_a_batch = rows_of_a_batch
        self._room = room
        self._of_value = of_value
        self._texts: dict[tuple[int, ...], _Texts] = {}

    def rows(self, columns: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """The values of some columns, row by row."""
        from pyarrow import ArrowException

        wanted = [self.names[column] for column in columns]
        only = None if set(wanted) == set(self.names) else list(dict.fromkeys(wanted))
        batches = chain.from_iterable(
            self._batches(group, only) for group in range(self._file.num_row_groups)
        )
        at_once = max(1, min(_ROWS_AT_ONCE, _VALUES_AT_ONCE // max(1, len(wanted))))
        while True:
            with damage_reported(self._path, ArrowException):
                batch = next(batches, None)
                if batch is None:
                    return
                arrays = [batch.column(batch.schema.names.index(name)) for name in wanted]
            for start in range(0, batch.num_rows, at_once):
                with damage_reported(self._path, ArrowException):
                    parts = [array.slice(start, at_once) for array in arrays]
                    values = [self._values(part, (place,)) for place, part in enumerate(parts)]
                yield from zip(*values, strict=True)

    def _batches(self, group: int, only: Sequence[str] | None) -> Iterator[Any]:
        """Those of one group of rows: lists of shared texts cannot be read across groups."""
        batches: Iterator[Any] = self._file.iter_batches(
            batch_size=self._rows_of_a_batch, row_groups=[group], columns=only, use_threads=False
        )
        return batches

    def _values(self, array: Any, place: tuple[int, ...]) -> list[Any]:
        """As `array.to_pylist()`, but equal texts are one object. `place` is the column, and where in its structure."""
        import pyarrow

        of_value = self._of_value if len(place) == 1 else None
        if isinstance(array, pyarrow.DictionaryArray):
            texts = self._texts.setdefault(place, _Texts(self._room, of_value)).of(array.dictionary)
            return [None if index is None else texts[index] for index in array.indices.to_pylist()]
        if pyarrow.types.is_nested(array.type):
            return self._structures(array, place)
        values = list(array.to_pylist())
        if of_value and isinstance(
            array, pyarrow.StringArray | pyarrow.LargeStringArray | pyarrow.BinaryArray
        ):
            return [None if value is None else of_value(value) for value in values]
        return values

    def _structures(self, array: Any, place: tuple[int, ...]) -> list[Any]:
        """The values of an array of objects, maps or lists."""
        import pyarrow
        import pyarrow.compute

        found: Iterable[Any]
        if isinstance(array, pyarrow.StructArray):
            fields = [self._values(part, (*place, number)) for number, part in enumerate(array.flatten())]
            rows = zip(*fields, strict=True) if fields else ((),) * len(array)
            names = [field.name for field in array.type]
            found = (dict(zip(names, row, strict=True)) for row in rows)
        elif isinstance(array, pyarrow.MapArray):
            ends = array.offsets.to_pylist()
            sides = [side.slice(ends[0], ends[-1] - ends[0]) for side in (array.keys, array.items)]
            entries = zip(*(self._values(side, (*place, n)) for n, side in enumerate(sides)), strict=True)
            found = (list(islice(entries, end - start)) for start, end in pairwise(ends))
        elif isinstance(array, pyarrow.ListArray | pyarrow.LargeListArray | pyarrow.FixedSizeListArray):
            items = iter(self._values(array.flatten(), (*place, 0)))
            lengths = pyarrow.compute.list_value_length(array).to_pylist()
            found = (list(islice(items, length or 0)) for length in lengths)
        else:
            return list(array.to_pylist())
        validity = array.is_valid().to_pylist()
        return [each if is_there else None for each, is_there in zip(found, validity, strict=True)]


class _Texts:
    """The distinct texts of one column, as far as they were read."""

    def __init__(self, room: Room, of_value: Callable[[Any], Any] | None) -> None:
        self._room = room
        self._of_value = of_value
        self._dictionary: Any = None
        self._values: list[Any] = []

    def of(self, dictionary: Any) -> list[Any]:
        """The values of a batch's dictionary, which often begins with that of the batch before."""
        known = len(self._values)
        if known and not dictionary.slice(0, known).equals(self._dictionary):
            known = 0
        added = dictionary.slice(known)
        if len(added):
            self._room.take(added.nbytes)
            values = added.to_pylist()
            self._room.take(max(0, sum(map(getsizeof, values)) - added.nbytes))
            self._values = self._values[:known] + [
                value if value is None or self._of_value is None else self._of_value(value)
                for value in values
            ]
            self._dictionary = dictionary
        return self._values
