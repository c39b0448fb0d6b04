"""The files of a run in shards, and how each is written: next to its place, then moved there as a whole."""

import hashlib
import json
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from rag_eval.errors import InputError, OutputError, how_to_install
from rag_eval.records import TOXICITY, CaseResult, Row, RunFacts
from rag_eval.results.stored import State, load_state, save_state
from rag_eval.store.codec import from_json, to_json
from rag_eval.store.leftovers import sweep
from rag_eval.store.replacement import Replacement, write_text

_LINES = 500
"""Rows or results that are in memory at a time."""


class DamagedPartError(ValueError):
    """A file of a part that is not as it was written."""


class RunFolder:
    """The folder that a run in shards writes to. Numbers of shards count from 0."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest = root / "manifest.json"
        self.report = root / "report.xlsx"
        self.all_inputs = root / "input"
        self.all_replies = root / "replies"
        self.all_grants = root / "grants"

    def spec(self, number: int) -> Path:
        return self.root / "specs" / f"part-{number:05}.json"

    def input(self, number: int) -> Path:
        return self.all_inputs / f"part-{number:05}.parquet"

    def results(self, number: int) -> Path:
        return self.root / "results" / f"part-{number:05}.parquet"

    def tallies(self, number: int) -> Path:
        return self.root / "tallies" / f"part-{number:05}.npz"

    def grant(self, name: str) -> Path:
        """Is there once the requests and the money of that name are being spent."""
        return self.all_grants / name

    def replies(self, number: int | None) -> Path:
        """The journal of a shard; for None, the one that all of them share."""
        return self.all_replies / ("all.sqlite" if number is None else f"part-{number:05}.sqlite")

    def require_files(self, numbers: Iterable[int]) -> None:
        """Raises OutputError if the parts of one of these shards cannot be written, since a folder has their name."""
        for number in numbers:
            for path in (self.input(number), self.results(number), self.tallies(number)):
                _require_file(path)

    def remove_leftovers(self, numbers: Iterable[int]) -> None:
        """Temporary files of a run that was killed while it wrote what these shards result in."""
        sweep(path for number in numbers for path in (self.results(number), self.tallies(number)))

    def remove_inputs(self) -> None:
        """The rows that were read, and the temporary file of a run that was killed while it wrote the next ones."""
        written = sum(1 for _ in self.all_inputs.glob("part-*.parquet"))
        sweep(self.input(number) for number in range(written + 1))
        _remove(self.all_inputs, _INPUTS)

    def remove_replies(self) -> None:
        """The journals, but for those that were set aside as damaged, and the grants."""
        _remove(self.all_replies, _REPLIES)
        _remove(self.all_grants, _GRANTS)


def fingerprint(value: object) -> str:
    """Of values that JSON knows."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def fingerprint_of_file(path: Path) -> str:
    """Empty for a file that is not there, as when a folder has its name."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        if path.exists() and not path.is_dir():
            raise
        return ""


def _require_file(path: Path) -> None:
    """Raises OutputError if no file can be written there, since a folder has its name, or a file that of its folder."""
    again = "move it away, and run the same command again"
    if path.is_dir():
        raise OutputError(f"{path}: is a folder, but a run in shards writes a file of this name; {again}")
    if path.parent.is_file():
        raise OutputError(
            f"{path.parent}: is a file, but a run in shards writes a folder of this name; {again}"
        )


def write_json(target: Path, value: object) -> None:
    """Raises OutputError."""
    _require_file(target)
    write_text(target, json.dumps(value, ensure_ascii=False, indent=1) + "\n", "-o")


def write_rows(target: Path, rows: Sequence[Row]) -> str:
    """The rows of one shard, as they were read. Returns the file's fingerprint. Raises OutputError."""
    from pyarrow import schema, string

    lines = ((to_json(row),) for row in rows)
    _replace(target, lambda path: _write(path, schema([("row", string())]), lines, dict))
    return fingerprint_of_file(target)


def read_rows(path: Path) -> list[Row]:
    """What `write_rows` wrote. Raises ValueError for anything else."""
    return [from_json(Row, line) for line in _column(path, "row")]


def write_results(
    target: Path, facts: RunFacts, results: Iterator[tuple[CaseResult, bytes]], about: Callable[[], State]
) -> None:
    """One line a case. Beside each result stands its JSON; `about` is asked for when all are written."""
    digest = hashlib.sha256()

    def lines() -> Iterator[_Line]:
        for result, line in results:
            digest.update(line)
            yield _line(result, line, facts)

    def known() -> State:
        return {**about(), "cases": digest.hexdigest()}

    _replace(target, lambda path: _write(path, _schema(facts), lines(), known))


def read_results(path: Path) -> Iterator[CaseResult]:
    """The results as they were judged, in order. Raises DamagedPartError, perhaps at the end of the file."""
    for line in read_lines(path):
        yield _result(path, line)


def _result(path: Path, line: bytes) -> CaseResult:
    try:
        result: CaseResult = from_json(CaseResult, line)
    except ValueError as error:
        raise DamagedPartError(f"{path}: is damaged ({error})") from error
    return result


class StoredResults(Sequence[CaseResult]):
    """Results by their lines, each read only when it is asked for. Raises DamagedPartError then."""

    def __init__(self, path: Path, lines: Sequence[bytes]) -> None:
        """The lines come from the results at `path`."""
        self._path = path
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: Any) -> Any:
        return _result(self._path, self._lines[index])


def read_lines(path: Path) -> Iterator[bytes]:
    """What `write_results` wrote of each result. Raises DamagedPartError, perhaps at the end of the file."""
    digest = hashlib.sha256()
    for line in _column(path, "case"):
        digest.update(line)
        yield line
    if digest.hexdigest() != about_results(path).get("cases"):
        raise DamagedPartError(f"{path}: is damaged (its cases are not those that were written)")


def about_results(path: Path) -> State:
    """What the file says of itself; empty for one that is not there, damaged or not complete."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        about: State = json.loads((read_metadata(path).metadata or {})[_ABOUT])
    except (ArrowException, OSError, ValueError, KeyError):
        return {}
    return about


def write_state(target: Path, state: State) -> None:
    """Raises OutputError."""

    def write(path: Path) -> None:
        with path.open("wb") as file:
            save_state(file, state)

    _replace(target, write)


def read_state(path: Path) -> State:
    """Empty for a file that is not there, damaged or not complete."""
    try:
        with path.open("rb") as file:
            return load_state(file)
    except (OSError, ValueError):
        return {}


def release_memory() -> None:
    """Give back what pyarrow keeps for later: some 10 MB after a file was written in parts."""
    from pyarrow import default_memory_pool

    default_memory_pool().release_unused()


def require_parquet() -> None:
    """Raises InputError without the package that parts are written with."""
    if find_spec("pyarrow") is None:  # importing it starts threads, and a process with threads cannot fork
        raise InputError(
            f"a run in shards writes Parquet files, which needs pyarrow; install it with {how_to_install('parquet')}"
        )


_ABOUT = b"rag-eval"
_INPUTS = re.compile(r"part-\d{5,}\.parquet")
_REPLIES = re.compile(
    r"(all|part-\d{5,})\.sqlite(-wal|-shm|-journal)?|\.rag-eval-(all|part-\d{5,})\.sqlite\.(new|lock)"
)
_GRANTS = re.compile(r"[0-9a-f]{16}")
"""Names of files that a run in shards removes; -o may name a folder where others keep theirs."""


def _remove(folder: Path, ours: re.Pattern[str]) -> None:
    """The files of such names, and the folder if it is empty then. What cannot be removed stays."""
    with suppress(OSError):
        for path in [each for each in folder.iterdir() if ours.fullmatch(each.name) and each.is_file()]:
            with suppress(OSError):
                path.unlink()
        folder.rmdir()


_UNIQUE = frozenset(("row", "case"))
"""Columns of texts that are all different, so that a dictionary of them would be thrown away."""


def measures_of(facts: RunFacts) -> tuple[str, ...]:
    """Names of everything that has a score in this run."""
    return tuple(dict.fromkeys((*facts.metrics, TOXICITY, *facts.further)))


def _schema(facts: RunFacts) -> Any:
    from pyarrow import bool_, float64, int64, schema, string

    scores = [
        field
        for name in measures_of(facts)
        for field in ((name, float64()), (f"{name}_outcome", string()), (f"{name}_code", string()))
    ]
    return schema(
        [
            ("row", int64()),
            ("source", string()),
            ("source_row", int64()),
            ("bot", string()),
            ("rqs", float64()),
            *scores,
            ("rubric_passed", bool_()),
            ("failure_modes", string()),
            ("case", string()),
        ]
    )


_Line = tuple[Any, ...]
"""The values of one line of a file, in the order of its columns."""


def _line(result: CaseResult, line: bytes, facts: RunFacts) -> _Line:
    case, scores = result.case, result.all_scores
    columns: list[float | str | None] = []
    for name in measures_of(facts):
        score = scores.get(name)
        columns += (score.value, score.outcome, score.code) if score else (None, None, None)
    return (
        case.row,
        case.source or facts.input_name,
        case.source_row if case.source_row is not None else case.row,
        case.bot,
        result.rqs,
        *columns,
        result.rubric.passed if result.rubric else None,
        " | ".join(result.failure_modes),
        line,
    )


def _replace(target: Path, write: Callable[[Path], None]) -> None:
    from pyarrow import ArrowException

    _require_file(target)
    replacement = Replacement(target)
    try:
        try:
            write(replacement.path)
        except (OSError, ArrowException) as error:
            number = getattr(error, "errno", None)
            raise OutputError(
                f"{target}: cannot be written: {os.strerror(number) if number else error}; free some space, and run "
                "the same command again"
            ) from error
        replacement.commit()
    finally:
        replacement.discard()


def _write(path: Path, schema: Any, lines: Iterator[_Line], about: Callable[[], State]) -> None:
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetWriter
    from pyarrow.types import is_string

    repeated = [column.name for column in schema if column.name not in _UNIQUE and is_string(column.type)]
    with ParquetWriter(
        path, schema, compression="zstd", write_page_checksum=True, use_dictionary=repeated
    ) as writer:
        while some := list(islice(lines, _LINES)):
            columns = [_array(*each) for each in zip(schema.types, zip(*some, strict=True), strict=True)]
            writer.write_batch(RecordBatch.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata({_ABOUT: json.dumps(about()).encode()})


def _array(kind: Any, values: Sequence[Any]) -> Any:
    """As `pyarrow.array`, which imports pandas: a fifth of a second, and 50 MB."""
    import numpy as np
    from pyarrow import Array, py_buffer, types

    buffers: list[Any]
    if types.is_string(kind):
        texts = list(map(_utf8, values))
        buffers = [array("i", accumulate(map(len, texts), initial=0)), b"".join(texts)]
    elif types.is_boolean(kind):
        buffers = [np.packbits(list(map(bool, values)), bitorder="little")]
    else:
        buffers = [array("d" if types.is_floating(kind) else "q", [value or 0 for value in values])]
    is_there = [value is not None for value in values]
    validity = None if all(is_there) else py_buffer(np.packbits(is_there, bitorder="little"))
    return Array.from_buffers(kind, len(values), [validity, *map(py_buffer, buffers)])


def _utf8(text: str | bytes | None) -> bytes:
    return text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text or b""


def _column(path: Path, name: str) -> Iterator[bytes]:
    """The texts of a column, in UTF-8."""
    from pyarrow import ArrowException, binary
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=_LINES, columns=[name], use_threads=False):
                yield from batch.column(0).view(binary()).to_pylist()
    except (ArrowException, OSError) as error:  # as it is, it would be taken for a disk that is full
        raise DamagedPartError(f"{path}: cannot be read ({error})") from error
