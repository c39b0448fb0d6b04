"""A folder with a sentence model that knows a few words: its vectors are given, so that likenesses are known.

`onnxruntime` runs it like any other. The file is written byte by byte, because the package that writes such files is
large and needed for nothing else.
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FLOAT, INT64 = 1, 7

VECTORS: Mapping[str, tuple[float, float, float]] = {
    "[UNK]": (0.0, 0.0, 1.0),
    "car": (1.0, 0.0, 0.0),
    "automobile": (1.0, 0.0, 0.0),
    "fast": (0.0, 1.0, 0.0),
    "quick": (0.0, 1.0, 0.0),
    "slow": (0.0, -1.0, 0.0),
}


def write_model(
    folder: Path,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    vectors: Mapping[str, Sequence[float]] = VECTORS,
    rank: int = 2,
) -> Path:
    """`rank` is the number of dimensions of `input_ids`; what the model returns has one more."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [number for vector in vectors.values() for number in vector]
    shape = (len(vectors), len(numbers) // len(vectors))
    table = b"".join(_number(1, size) for size in shape) + _number(2, FLOAT) + _text(8, "table")
    table += _part(9, struct.pack(f"<{len(numbers)}f", *numbers))
    node = _text(1, "table") + _text(1, inputs[0]) + _text(2, "vectors") + _text(4, "Gather")
    free = ["batch", "tokens", "more"][:rank]
    graph = _part(1, node) + _text(2, "words") + _part(5, table)
    graph += b"".join(_part(11, _value(name, INT64, free)) for name in inputs)
    graph += _part(12, _value("vectors", FLOAT, [*free, "numbers"]))
    model = _number(1, 8) + _part(8, _number(2, 13)) + _part(7, graph)
    (folder / "model.onnx").write_bytes(model)
    write_tokenizer(folder, vectors)
    return folder


def write_tokenizer(folder: Path, known: Iterable[str] = VECTORS) -> None:
    ids = {word: number for number, word in enumerate(known)}
    tokenizer = {
        "version": "1.0",
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def _value(name: str, kind: int, shape: Sequence[str]) -> bytes:
    dimensions = b"".join(_part(1, _text(2, size)) for size in shape)
    return _text(1, name) + _part(2, _part(1, _number(1, kind) + _part(2, dimensions)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])
