"""Values of ours as bytes: in pipes, in part files and in temporary files.

A value is one of `rag_eval.records`, or a plain one: None, booleans, numbers, texts, bytes, dates, and tuples, lists,
arrays and mappings of them. Its bytes are MessagePack. A record of a file is a head with length and checksums, then
such bytes: a file of records can be appended to, and a record that was not written to its end is known as such.
"""

import functools
import json
import re
import struct
import tempfile
import weakref
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import IO, Any, Generic, TypeVar

import msgspec

from rag_eval.errors import OutputError

_Value = TypeVar("_Value")

# Bytes


def encode(value: Any) -> bytes:
    """The bytes that `decode` makes an equal value of. Raises TypeError for a value of another kind."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):  # half a surrogate pair, or a number of more than 64 bits
        plain = msgspec.to_builtins(value, str_keys=False, builtin_types=_KEPT, enc_hook=_plainer)
        return _OTHERWISE + _encoder.encode(_known(plain))


def decode(kind: Any, data: bytes) -> Any:
    """The value of this type, such as CaseResult or tuple[int, str]. Raises ValueError for the bytes of any other.

    Where the type is Any, tuples are lists, and of our own values are the members.
    """
    if data[:1] == _OTHERWISE:
        plain = _original(msgspec.msgpack.decode(data[1:]))
        return msgspec.convert(plain, kind, builtin_types=_KEPT)
    return _decoder(kind).decode(data)


def to_plain(value: Any) -> Any:
    """The same in values that JSON knows, numbers that are not finite included."""
    return msgspec.to_builtins(value, enc_hook=_plainer)


def from_plain(kind: Any, value: Any) -> Any:
    """What `to_plain` was given. Raises ValueError for anything else."""
    return msgspec.convert(value, kind)


def to_json(value: Any, *, is_spaced: bool = False) -> bytes:
    """A line of JSON that `from_json` makes an equal value of, half a surrogate pair and NaN included.

    `is_spaced` says whether there is a space behind each comma and colon.
    """
    with suppress(UnicodeEncodeError, OverflowError):
        line = _json_encoder.encode(value)
        if b"null" not in line or not _NOT_FINITE.search(_encoder.encode(value)):
            return msgspec.json.format(line, indent=0) if is_spaced else line
    return json.dumps(to_plain(value), check_circular=False).encode("ascii")


def from_json(kind: Any, line: str | bytes) -> Any:
    """What `to_json` was given. Raises ValueError for anything else."""
    try:
        return _json_decoder(kind).decode(line)
    except (
        ValueError
    ):  # also half a surrogate pair, NaN and a number of more than 64 bits, which Python reads
        return from_plain(kind, json.loads(line))


def _plainer(value: Any) -> Any:
    """What stands for a value of a derived class."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, array):
        return value.tolist()
    for plain in (str, float):
        if isinstance(value, plain):
            return plain(value)
    raise TypeError(f"a value of the class {type(value).__name__} has no bytes")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plainer)
_decoder = functools.cache(msgspec.msgpack.Decoder)
_json_encoder = msgspec.json.Encoder(enc_hook=_plainer)
_json_decoder = functools.cache(msgspec.json.Decoder)
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""In MessagePack, a number for which JSON has no name, so that it would be null; texts may have such bytes, too."""
_OTHERWISE = b"\xc1"
"""First byte of a value with something that MessagePack does not know; no other value begins with it."""
_KEPT = (bytes,)


def _known(value: Any) -> Any:
    """Each text as bytes, bytes as an extension, and a long number as a text."""
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass")
        case bytes():
            return msgspec.msgpack.Ext(0, value)
        case int() if value.bit_length() > 63:
            return f"{value:x}"
        case dict():
            return {_known(name): _known(each) for name, each in value.items()}
        case list() | tuple():
            return tuple(map(_known, value))
    return value


def _original(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode("utf-8", "surrogatepass")
        case msgspec.msgpack.Ext():
            return bytes(value.data)
        case str():
            return int(value, 16)
        case dict():
            return {_original(name): _original(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(map(_original, value))
    return value


# Records


_HEAD = struct.Struct(">QII")
"""Length of the bytes, their CRC-32, and the CRC-32 of the two."""


def record_of(data: bytes) -> bytes:
    return _head(data) + data


def write_record(file: IO[bytes], data: bytes) -> None:
    file.write(_head(data))
    file.write(data)


def read_record(file: IO[bytes]) -> bytes | None:
    """The bytes of the next record; None at the end, and for a record that was not written to its end.

    Raises ValueError for a damaged one.
    """
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, checksum = _read_head(head)
    data = file.read(length)
    if len(data) < length:
        return None
    _check(data, checksum)
    return data


def _head(data: bytes) -> bytes:
    head = _HEAD.pack(len(data), zlib.crc32(data), 0)
    return head[:-4] + zlib.crc32(head[:-4]).to_bytes(4, "big")


def _read_head(head: bytes) -> tuple[int, int]:
    length, checksum, own = _HEAD.unpack(head)
    if zlib.crc32(head[:-4]) != own:
        raise ValueError("a record is damaged: its head has another checksum")
    return length, checksum


def _check(data: bytes, checksum: int) -> None:
    if zlib.crc32(data) != checksum:
        raise ValueError("a record is damaged: its bytes have another checksum")


# Files


class Spool(Generic[_Value]):
    """Values in a temporary file, so that memory does not grow with them; read as often as wanted, in order or singly.

    The file has no name, belongs to this user only (0600) and goes with the process; a small one stays in memory.
    """

    def __init__(self, kind: Any, name: str) -> None:
        """`kind` is the type of the values, see `decode`; `name` says in messages whose values they are."""
        self._kind = kind
        self._name = name
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, prefix="rag-eval-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._starts = array("Q")
        """Of every _STEP-th value, where it is."""
        self._count = 0
        self.size = 0
        """Bytes of all values."""
        self._waiting: list[bytes] = []
        self._written = 0

    def __len__(self) -> int:
        return self._count

    def add(self, value: _Value) -> None:
        """Raises OutputError if the disk is full."""
        record = record_of(encode(value))
        self._waiting.append(record)
        if not self._count % _STEP:
            self._starts.append(self.size)
        self._count += 1
        self.size += len(record)
        if self.size - self._written >= _BLOCK:
            self._flush()

    def __iter__(self) -> Iterator[_Value]:
        """The values from the first on. Raises OutputError for a file that is damaged."""
        self._flush()
        block, begin, start = b"", 0, 0
        for _ in range(len(self)):
            if start + _HEAD.size > begin + len(block):
                block, begin = self._read(start, _BLOCK), start
            end = start + self._length(block[start - begin : start - begin + _HEAD.size])
            if end > begin + len(block):
                block, begin = self._read(start, max(_BLOCK, end - start)), start
            yield self._value(block[start - begin : end - begin])
            start = end

    def at(self, number: int) -> _Value:
        """One value. Raises IndexError without it, and OutputError for a file that is damaged."""
        self._flush()
        if not 0 <= number < len(self):
            raise IndexError(f"{number} of {len(self)} values")
        start = self._starts[number // _STEP]
        for _ in range(number % _STEP):
            start += self._length(self._read(start, _HEAD.size))
        head = self._read(start, _HEAD.size)
        return self._value(head + self._file.read(self._length(head) - _HEAD.size))

    def close(self) -> None:
        """Give back the space; nothing can be read any more."""
        self._waiting.clear()
        self._file.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        records = b"".join(self._waiting)
        self._waiting.clear()
        try:
            self._file.seek(0, 2)
            self._file.write(records)
            self._file.flush()
        except OSError as error:
            raise OutputError.no_temporary_space(self._name, error) from error
        self._written = self.size

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return self._file.read(length)

    def _length(self, head: bytes) -> int:
        """Bytes of the record with this head."""
        try:
            return _HEAD.size + _read_head(head)[0]
        except (ValueError, struct.error) as error:
            raise self._damaged(error) from error

    def _value(self, record: bytes) -> _Value:
        try:
            _, checksum = _read_head(record[: _HEAD.size])
            _check(data := record[_HEAD.size :], checksum)
        except (ValueError, struct.error) as error:
            raise self._damaged(error) from error
        value: _Value = decode(self._kind, data)
        return value

    def _damaged(self, error: Exception) -> OutputError:
        place = f"temporary disk space in {tempfile.gettempdir()}"
        return OutputError(f"reading {self._name} from {place} failed: {error}")


class NumberTable:
    """Columns of numbers that grow together: the last entries in memory, all others in a temporary file."""

    def __init__(self, kinds: Mapping[str, str], file: Spool[bytes]) -> None:
        """`kinds` are names of columns with type codes of `array`. Several tables may share a `file`."""
        self.last: dict[str, array[Any]] = {name: array(kind) for name, kind in kinds.items()}
        """The entries in memory. Those who append to each column call `end_entry` then."""
        self._places: dict[str, list[int]] = {name: [] for name in kinds}
        """By column: the numbers of the values of the file that are its blocks."""
        self._filed = dict.fromkeys(kinds, 0)
        """By column: entries in the file."""
        self._file = file
        self._length = self._waiting = 0

    def __len__(self) -> int:
        return self._length

    def end_entry(self) -> None:
        """Raises OutputError if the disk is full."""
        self._added(1)

    def extend(self, columns: Mapping[str, "array[Any] | bytearray"]) -> None:
        """Add further entries to each column, such as those of `state`. Raises OutputError if the disk is full."""
        for name, numbers in columns.items():
            self.last[name].frombytes(memoryview(numbers).tobytes())
        self._added(len(next(iter(columns.values()), ())))

    def column(self, name: str) -> "array[Any]":
        """A column from its first entry on. It must not be changed; entries that are added later may be in it."""
        last, filed = self.last[name], self._filed[name]
        if not filed:
            return last
        whole = array(last.typecode, bytes(last.itemsize * (filed + len(last))))
        with memoryview(whole).cast("B") as room:
            end = 0
            for data in (*map(self._file.at, self._places[name]), last.tobytes()):
                room[end : (end := end + len(data))] = data
        return whole

    def state(self) -> dict[str, "array[Any]"]:
        """All columns, for `extend` of another table."""
        return {name: self.column(name) for name in self.last}

    def _added(self, entries: int) -> None:
        self._length += entries
        self._waiting += entries
        if self._waiting < _BLOCK_ENTRIES:
            return
        for name, numbers in self.last.items():
            self._places[name].append(len(self._file))
            self._file.add(numbers.tobytes())
            self._filed[name] += len(numbers)
            self.last[name] = array(numbers.typecode)
        self._waiting = 0


_BLOCK_ENTRIES = 2**14
"""Entries of a table that are kept in memory."""
_STEP = 4
"""Values of a file for one of which it is known where it is; the others follow it."""


_IN_MEMORY = 2**20
"""Bytes up to which no file is made."""
_BLOCK = 2**18
