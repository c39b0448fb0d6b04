"""Retrieval scores from files of results and references, one query at a time.

The two files are joined by query id in a temporary database on disk, so memory stays the same however many
queries there are, and neither file needs to be sorted.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from rag_eval.errors import OutputError, TableError
from rag_eval.retrieval import (
    DEFAULT_CUTOFFS,
    GOLD_NAMES,
    QUERY_ID_NAMES,
    RETRIEVED_NAMES,
    RetrievalScores,
    RetrievalSummary,
    RetrievalTally,
)
from rag_eval.tables.document_ids import parse_documents, parse_query_id
from rag_eval.tables.record_files import Problems, find_column, listed, open_records, row_unit

AnyPath: TypeAlias = str | os.PathLike[str]


def evaluate_files(
    results: AnyPath,
    references: AnyPath,
    cutoffs: Iterable[int] = DEFAULT_CUTOFFS,
    each: Callable[[RetrievalScores], object] | None = None,
) -> RetrievalSummary:
    """The summary over all references. `each` is called with the scores of every query, in their order in the file.

    Raises TableError with all problems of a file, OutputError if the temporary disk space is full.
    """
    tally = RetrievalTally(cutoffs)
    with _Join.opened() as join:
        join.load("retrieved", read_documents(results, RETRIEVED_NAMES), Path(results))
        join.load("gold", read_documents(references, GOLD_NAMES), Path(references))
        for scores in join.scores():
            tally.add(scores)
            if each:
                each(scores)
        for qid in join.without_reference():
            tally.add_without_reference(qid)
    return tally.summary()


class _Join:
    """Results and references by query id, in SQLite, with a cache of fixed size."""

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self]:
        try:
            with closing(sqlite3.connect("")) as database:  # "" is a private file that SQLite removes itself
                yield cls(database)
        except sqlite3.Error as error:
            raise OutputError(f"joining the files in temporary disk space failed: {error}") from error

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        for setting in ("cache_size = -65536", "journal_mode = OFF", "synchronous = OFF"):
            database.execute(f"PRAGMA {setting}")

    def load(self, table: str, rows: Iterable["QueryDocuments"], path: Path) -> None:
        """Store all rows of a file. Raises TableError if it has no queries, or a query twice."""
        run = self._database.execute
        run(f"CREATE TABLE {table} (row INTEGER PRIMARY KEY, qid TEXT NOT NULL, documents TEXT NOT NULL)")
        inserted = self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",  # noqa: S608 - the table's name is ours
            ((row, qid, "\n".join(documents)) for row, qid, documents in rows),
        )
        if not inserted.rowcount:
            raise TableError(f"{path.name}: contains no queries; add a row for each query")
        run(f"CREATE INDEX {table}_by_qid ON {table} (qid)")
        problems = Problems()
        for qid, first, second in run(_DUPLICATES.format(table=table)):
            places = f"{row_unit(path)}s {first} and {second}"
            problems.add(f"{path.name}, {places}: query id {qid!r} occurs more than once")
        problems.raise_if_any()

    def scores(self) -> Iterator[RetrievalScores]:
        """The scores of each query, in the order of the references."""
        for qid, gold, retrieved in self._database.execute(_JOINED):
            yield RetrievalScores.of_distinct(
                qid, _documents(retrieved), _documents(gold), retrieved is not None
            )

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


def read_documents(path: AnyPath, names: Sequence[Sequence[str]]) -> Iterator[QueryDocuments]:
    """Query ids and documents of a file, row by row; `names` are RETRIEVED_NAMES or GOLD_NAMES.

    After the last row, raises TableError with every bad cell.
    """
    path = Path(path)
    problems = Problems()
    with open_records(path) as records:
        columns = [_column(path, records.names, wanted) for wanted in (QUERY_ID_NAMES, names)]
        for number, (qid_cell, ids_cell) in records.rows(columns):
            column = columns[0]
            try:
                qid = parse_query_id(qid_cell)
                column = columns[1]
                documents = parse_documents(ids_cell)
            except ValueError as error:
                name = records.names[column]
                problems.add(f"{path.name}, {row_unit(path)} {number}, column {name!r}: {error}")
            else:
                yield QueryDocuments(number, qid, documents)
    problems.raise_if_any()


def _column(path: Path, names: Sequence[str], wanted: Sequence[Sequence[str]]) -> int:
    """Position of the one column with a wanted name. A group of names counts only if no earlier group fits."""
    for group in wanted:
        position = find_column(path, names, group)
        if position is not None:
            return position
    known = ", ".join(name for group in wanted for name in group)
    raise TableError(f"{path.name}: has none of the columns {known}; it has {listed(names)}")
