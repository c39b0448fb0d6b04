"""Retrieval measured from files: results and references in, a summary and a line per query out.

The two files are joined by query id in a temporary database on disk, so memory stays the same however many
queries there are, and neither file needs to be sorted.
"""

import csv
import json
import os
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeAlias
from xml.etree.ElementTree import ParseError

from rag_eval.errors import InputError, OutputError, TableError
from rag_eval.retrieval import (
    DEFAULT_CUTOFFS,
    GOLD_NAMES,
    QUERY_ID_NAMES,
    RETRIEVED_NAMES,
    RetrievalScores,
    RetrievalSummary,
    RetrievalTally,
    parse_ids,
    parse_query_id,
    rank_documents,
)

AnyPath: TypeAlias = str | os.PathLike[str]


def evaluate_files(
    results: AnyPath,
    references: AnyPath,
    output: AnyPath | None = None,
    cutoffs: Iterable[int] = DEFAULT_CUTOFFS,
) -> RetrievalSummary:
    """Score every reference; with `output` (.jsonl), write a line per query in the order of the references.

    Raises TableError with all problems of a file, and OutputError when the output cannot be written.
    """
    tally = RetrievalTally(cutoffs)
    with _output_file(output, (results, references)) as file, _temporary_join() as join:
        join.load("retrieved", read_results(results), Path(results))
        join.load("gold", read_references(references), Path(references))
        for scores in join.scores():
            tally.add(scores)
            if file:
                file.write(score_line(scores, tally.cutoffs))
        for qid in join.without_reference():
            tally.add_without_reference(qid)
    return tally.summary()


def score_line(scores: RetrievalScores, cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS) -> str:
    """One query as a line of JSON; every measure is null when the query has no gold documents."""
    counts = scores.hit_ranks, scores.retrieved_docs_count, scores.gold_docs_count, scores.has_result
    return f'{{"qid": {json.dumps(scores.qid)}, {_line_after_qid(*counts, cutoffs)}'


@lru_cache(maxsize=4096)
def _line_after_qid(
    hits: tuple[int, ...], retrieved: int, gold: int, has_result: bool, cutoffs: tuple[int, ...]
) -> str:
    """Cached, because many queries share it and writing it costs more than all the arithmetic."""
    fields = {
        "has_result": has_result,
        "retrieved_docs_count": retrieved,
        "gold_docs_count": gold,
        "correct_docs_count": len(hits),
        **RetrievalScores("", hits, retrieved, gold, has_result).values(cutoffs),
    }
    return json.dumps(fields).removeprefix("{") + "\n"


@contextmanager
def _output_file(output: AnyPath | None, inputs: Sequence[AnyPath]) -> Iterator[TextIO | None]:
    """The file to write to, moved to its place when all is well, so that a failure leaves the old one."""
    if output is None:
        yield None
        return
    target = Path(output).resolve()
    if target.suffix.lower() != ".jsonl":
        raise InputError(f"{target.name}: scores are written as JSON lines, to a file that ends in .jsonl")
    if target in [Path(path).resolve() for path in inputs]:
        raise InputError(f"{target.name}: the output would replace an input")
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _temporary_join() -> Iterator["_Join"]:
    try:
        with closing(sqlite3.connect("")) as database:  # "" is a private file that SQLite removes itself
            yield _Join(database)
    except sqlite3.Error as error:
        raise OutputError(f"joining the files in temporary disk space failed: {error}") from error


class _Join:
    """Results and references by query id, in SQLite, with a cache of fixed size."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        for setting in ("cache_size = -65536", "journal_mode = OFF", "synchronous = OFF"):
            database.execute(f"PRAGMA {setting}")

    def load(self, table: str, rows: Iterable["QueryDocuments"], path: Path) -> None:
        """Take all rows of a file; a file without queries, or with one of them twice, is a TableError."""
        run = self._database.execute
        run(f"CREATE TABLE {table} (row INTEGER PRIMARY KEY, qid TEXT NOT NULL, documents TEXT NOT NULL)")
        inserted = self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",  # noqa: S608 - the table's name is ours
            ((row, qid, "\n".join(documents)) for row, qid, documents in rows),
        )
        if not inserted.rowcount:
            raise TableError(f"{path.name}: holds no queries")
        run(f"CREATE INDEX {table}_by_qid ON {table} (qid)")
        problems = _Problems()
        for qid, first, second in run(_DUPLICATES.format(table=table)):
            places = f"{_unit(path)}s {first} and {second}"
            problems.add(f"{path.name}, {places}: query id {qid!r} occurs more than once")
        problems.raise_if_any()

    def scores(self) -> Iterator[RetrievalScores]:
        """One query after the other, in the order of the references."""
        for qid, gold, retrieved in self._database.execute(_JOINED):
            yield RetrievalScores.of(qid, _documents(retrieved), _documents(gold), retrieved is not None)

    def without_reference(self) -> Iterator[str]:
        return (qid for (qid,) in self._database.execute(_UNMATCHED))


_DUPLICATES = "SELECT qid, MIN(row), MAX(row) FROM {table} GROUP BY qid HAVING COUNT(*) > 1"
_JOINED = """SELECT gold.qid, gold.documents, retrieved.documents
FROM gold LEFT JOIN retrieved ON retrieved.qid = gold.qid ORDER BY gold.row"""
_UNMATCHED = "SELECT qid FROM retrieved WHERE qid NOT IN (SELECT qid FROM gold) ORDER BY row"


def _documents(stored: str | None) -> Sequence[str]:
    return stored.split("\n") if stored else ()


class QueryDocuments(NamedTuple):
    """The documents of one query: a ranking or a gold set, normalised and each once."""

    row: int
    """Line or row of the file, as counted there."""
    qid: str
    documents: tuple[str, ...]


def read_results(path: AnyPath) -> Iterator[QueryDocuments]:
    """Rankings from a file, row by row; after the last one a TableError with every bad cell."""
    return _read(Path(path), RETRIEVED_NAMES)


def read_references(path: AnyPath) -> Iterator[QueryDocuments]:
    """Gold documents from a file, row by row; after the last one a TableError with every bad cell."""
    return _read(Path(path), GOLD_NAMES)


def _read(path: Path, names: Sequence[Sequence[str]]) -> Iterator[QueryDocuments]:
    problems = _Problems()
    with _open_table(path) as table:
        qid_column = _column(path, table.names, QUERY_ID_NAMES)
        ids_column = _column(path, table.names, names)
        for number, qid_cell, ids_cell in table.cells(qid_column, ids_column):
            column = qid_column
            try:
                qid = parse_query_id(qid_cell)
                column = ids_column
                documents = rank_documents(parse_ids(ids_cell))
            except ValueError as error:
                problems.add(f"{path.name}, {_unit(path)} {number}, column {table.names[column]!r}: {error}")
            else:
                yield QueryDocuments(number, qid, documents)
    problems.raise_if_any()


class _Problems:
    """What is wrong with a file, one line each, up to a number that somebody would read."""

    _SHOWN = 20

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def add(self, line: str) -> None:
        self._count += 1
        if self._count <= self._SHOWN:
            self._lines.append(line)

    def raise_if_any(self) -> None:
        hidden = self._count - len(self._lines)
        if self._count:
            raise TableError([*self._lines, *([f"… and {hidden:,} more like these"] if hidden else [])])


def _column(path: Path, names: Sequence[str], wanted: Sequence[Sequence[str]]) -> int:
    """Position of the one column with a wanted name; names of a later group count only without an earlier."""
    plain = [_plain(name) for name in names]
    for group in wanted:
        accepted = {_plain(name) for name in group}
        found = [position for position, name in enumerate(plain) if name in accepted]
        if len(found) > 1:
            both = " and ".join(repr(names[position]) for position in found)
            raise TableError(f"{path.name}: the columns {both} mean the same; keep one of them")
        if found:
            return found[0]
    known = ", ".join(name for group in wanted for name in group)
    raise TableError(f"{path.name}: has none of the columns {known}; it has {', '.join(names) or 'none'}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


_Cells: TypeAlias = Iterator[tuple[int, Any, Any]]


class _Table(NamedTuple):
    """A file that lies open: its columns, and how to walk over two of them."""

    names: Sequence[str]
    cells: Callable[[int, int], _Cells]
    """Number of the row, and its cells at the two positions."""


def _unit(path: Path) -> str:
    return "line" if path.suffix.lower() in (".tsv", ".csv", ".jsonl") else "row"


@contextmanager
def _open_table(path: Path) -> Iterator[_Table]:
    opener = _FORMATS.get(path.suffix.lower())
    if opener is None:
        raise TableError(f"{path.name}: is none of the formats that are read: {', '.join(_FORMATS)}")
    try:
        with opener(path) as table:
            yield table
    except _UNREADABLE as error:
        raise TableError(
            f"{path.name}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


_UNREADABLE = (OSError, ValueError, RecursionError, csv.Error, zipfile.BadZipFile, ParseError)


@contextmanager
def _delimited(path: Path) -> Iterator[_Table]:
    # The limit is the process's, and documents of more than its 131,072 characters stand in context columns.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter="," if path.suffix.lower() == ".csv" else "\t", strict=True)
        names = next(reader, [])
        yield _Table(names, lambda *columns: _delimited_cells(reader, len(names), *columns))


_LONGEST_CELL = 2**24


def _delimited_cells(reader: Any, width: int, first: int, second: int) -> _Cells:
    for row in reader:
        if not any(row):
            continue
        if len(row) != width:
            raise ValueError(f"line {reader.line_num} has {len(row)} cells, but the header has {width}")
        yield reader.line_num, row[first], row[second]


@contextmanager
def _json_lines(path: Path) -> Iterator[_Table]:
    with path.open(encoding="utf-8-sig") as file:
        yield _object_table(_json_records(file))


def _json_records(file: TextIO) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, 1):
        if not line.isspace():
            try:
                record = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is no JSON: {error}") from None
            yield number, record


@contextmanager
def _json_array(path: Path) -> Iterator[_Table]:
    records = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(records, list):
        raise ValueError("expected a JSON list of objects, one per query")
    yield _object_table(enumerate(records, 1))


def _object_table(records: Iterator[tuple[int, Any]]) -> _Table:
    """Objects as a table whose columns are the keys of the first one."""
    head = list(islice(records, 1))
    names = [str(name) for _, record in head if isinstance(record, dict) for name in record]
    return _Table(
        names, lambda first, second: _object_cells(chain(head, records), names[first], names[second])
    )


def _object_cells(records: Iterable[tuple[int, Any]], first: str, second: str) -> _Cells:
    for number, record in records:
        if not (isinstance(record, dict) and first in record and second in record):
            raise ValueError(f"number {number} is no object with {first!r} and {second!r}")
        yield number, record[first], record[second]


@contextmanager
def _excel(path: Path) -> Iterator[_Table]:
    from openpyxl import load_workbook

    _refuse_bomb(path)
    try:
        workbook = load_workbook(path, read_only=True, data_only=True)
    except KeyError as error:
        raise TableError(f"{path.name}: is no Excel workbook: {error}") from error
    with closing(workbook):
        sheet = workbook.worksheets[0]
        sheet.reset_dimensions()  # what the file says of its own size may be wrong
        numbered = enumerate(sheet.iter_rows(values_only=True), 1)
        rows = ((number, row) for number, row in numbered if any(cell is not None for cell in row))
        names = ["" if name is None else str(name) for name in next(rows, (0, ()))[1]]
        yield _Table(names, lambda *columns: _excel_cells(rows, *columns))


def _refuse_bomb(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > _LARGEST_WORKBOOK:
        raise TableError(
            f"{path.name}: unpacks to {size / 1e6:,.0f} MB, over the {_LARGEST_WORKBOOK / 1e6:,.0f} MB "
            "that are read; save it as .csv, .jsonl or .parquet"
        )


_LARGEST_WORKBOOK = 500_000_000


def _excel_cells(rows: Iterator[tuple[int, tuple[Any, ...]]], first: int, second: int) -> _Cells:
    for number, row in rows:
        cells = [row[column] if column < len(row) else None for column in (first, second)]
        yield number, cells[0], cells[1]


@contextmanager
def _parquet(path: Path) -> Iterator[_Table]:
    try:
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise TableError(f"{path.name}: reading Parquet needs pyarrow: pip install pyarrow") from error
    with ParquetFile(path) as file:
        names = file.schema_arrow.names
        yield _Table(names, lambda *columns: _parquet_cells(file, *(names[c] for c in columns)))


def _parquet_cells(file: Any, first: str, second: str) -> _Cells:
    number = 0
    for batch in file.iter_batches(batch_size=4096, columns=[first, second]):
        for pair in zip(batch[first].to_pylist(), batch[second].to_pylist(), strict=True):
            number += 1
            yield number, *pair


_FORMATS: dict[str, Callable[[Path], AbstractContextManager[_Table]]] = {
    ".tsv": _delimited,
    ".csv": _delimited,
    ".json": _json_array,
    ".jsonl": _json_lines,
    ".xlsx": _excel,
    ".parquet": _parquet,
}
