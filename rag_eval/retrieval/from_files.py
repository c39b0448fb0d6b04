"""Retrieval scores from files of results and references, one query at a time.

The two files are joined by query id in a temporary database on disk, so memory stays the same however many
queries there are, and neither file needs to be sorted.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from rag_eval.errors import OutputError, TableError, first_of
from rag_eval.retrieval import (
    DEFAULT_CUTOFFS,
    GOLD_NAMES,
    QUERY_ID_NAMES,
    RETRIEVED_NAMES,
    RetrievalScores,
    RetrievalSummary,
    RetrievalTally,
)
from rag_eval.tables.cells import ABSENT
from rag_eval.tables.columns import ROLES
from rag_eval.tables.document_ids import parse_documents, parse_query_id
from rag_eval.tables.record_files import AS_FOUND, ReadOptions, Records, check_named, open_records
from rag_eval.tables.selection import EVERYTHING

AnyPath: TypeAlias = str | os.PathLike[str]


def evaluate_files(
    results: AnyPath,
    references: AnyPath,
    cutoffs: Iterable[int] = DEFAULT_CUTOFFS,
    each: Callable[[RetrievalScores], object] | None = None,
    reading: ReadOptions = AS_FOUND,
) -> RetrievalSummary:
    """The summary over all references. `each` is called with the scores of every query, in their order in the file.

    What `reading` selects are references. Raises TableError with all problems of a file, OutputError if the temporary
    disk space is full.
    """
    tally = RetrievalTally(cutoffs)
    with (
        open_records(Path(results), replace(reading, selection=EVERYTHING)) as retrieved,
        open_records(Path(references), reading) as gold,
        _Join.opened() as join,
    ):
        ranked = read_documents(retrieved, "retrieved_docs", RETRIEVED_NAMES)
        wanted = read_documents(gold, "gold_docs", GOLD_NAMES)
        check_named(reading, retrieved, gold)
        join.load("retrieved", ranked, retrieved.place)
        join.load("gold", wanted, gold.place)
        if not reading.selection and (ids := join.examples_of_strangers()):
            raise TableError(
                f"{retrieved.place} and {gold.place} have no query in common; use the same ids in both (such as "
                f"{ids[0][:60]!r} and {ids[1][:60]!r}, which are compared as texts)"
            )
        for scores in join.scores():
            tally.add(scores)
            if each:
                each(scores)
        for qid in join.without_reference():
            tally.add_without_reference(qid)
    return replace(tally.summary(), selection=reading.selection.words())


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

    def load(self, table: str, rows: Iterable["QueryDocuments"], place: str) -> None:
        """Store all rows of a file. Raises TableError if it has no queries, or a query twice."""
        run = self._database.execute
        run(f"CREATE TABLE {table} (row INTEGER PRIMARY KEY, qid TEXT NOT NULL, documents TEXT NOT NULL)")
        inserted = self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?)",  # noqa: S608 - the table's name is ours
            ((row, qid, "\n".join(documents)) for row, qid, documents in rows),
        )
        if not inserted.rowcount:
            raise TableError(f"{place}: contains no queries; add a row for each query")
        run(f"CREATE INDEX {table}_by_qid ON {table} (qid)")
        twice = run(_DUPLICATES.format(table=table)).fetchall()
        if twice:
            raise TableError(
                first_of(
                    [
                        f"{place}, rows {a} and {b}: query id {qid!r} occurs more than once; write all documents of a "
                        "query in one row, as id || id"
                        for qid, a, b in twice
                    ]
                )
            )

    def scores(self) -> Iterator[RetrievalScores]:
        """The scores of each query, in the order of the references."""
        for qid, gold, retrieved in self._database.execute(_JOINED):
            yield RetrievalScores.of_distinct(
                qid, _documents(retrieved), _documents(gold), retrieved is not None
            )

    def examples_of_strangers(self) -> tuple[str, str] | None:
        """A query of each file, if they have none in common."""
        run = self._database.execute
        if run("SELECT 1 FROM gold JOIN retrieved USING (qid) LIMIT 1").fetchone():
            return None
        examples: tuple[str, str] = run(_FIRST).fetchone()
        return examples

    def without_reference(self) -> Iterator[str]:
        return (qid for (qid,) in self._database.execute(_UNMATCHED))


_DUPLICATES = "SELECT qid, MIN(row), MAX(row) FROM {table} GROUP BY qid HAVING COUNT(*) > 1"
_JOINED = """SELECT gold.qid, gold.documents, retrieved.documents
FROM gold LEFT JOIN retrieved ON retrieved.qid = gold.qid ORDER BY gold.row"""
_FIRST = (
    """SELECT (SELECT qid FROM retrieved ORDER BY row LIMIT 1), (SELECT qid FROM gold ORDER BY row LIMIT 1)"""
)
_UNMATCHED = "SELECT qid FROM retrieved WHERE qid NOT IN (SELECT qid FROM gold) ORDER BY row"


def _documents(stored: str | None) -> Sequence[str]:
    return stored.split("\n") if stored else ()


class QueryDocuments(NamedTuple):
    """The documents of one query: a ranking or a gold set, normalised and each once."""

    row: int
    """As counted in the file."""
    qid: str
    documents: tuple[str, ...]


def read_documents(records: Records, role: str, names: Sequence[Sequence[str]]) -> Iterator[QueryDocuments]:
    """Query ids and documents of a file, row by row.

    `role` is retrieved_docs or gold_docs, and `names` are RETRIEVED_NAMES or GOLD_NAMES. Raises TableError if a column
    is missing, and after the last row with every bad cell.
    """
    columns = _column(records, "id", QUERY_ID_NAMES), _column(records, role, names)
    records.tell([(columns[0], ROLES["id"]), (columns[1], ROLES[role])])
    return _documents_of(records, *columns)


def _documents_of(records: Records, of_id: int, of_documents: int) -> Iterator[QueryDocuments]:
    for number, (id_cell, cell) in records.rows([of_id, of_documents]):
        qid = records.parsed(number, of_id, id_cell, parse_query_id)
        if cell is ABSENT:
            records.report(number, "is missing; write [] if there are no documents", of_documents)
            continue
        documents = records.parsed(number, of_documents, cell, parse_documents)
        if qid is not None and documents is not None:
            yield QueryDocuments(number, qid, documents)


def _column(records: Records, role: str, names: Sequence[Sequence[str]]) -> int:
    found = records.column(role, *names)
    if found is not None:
        return found
    known = ", ".join(name for group in names for name in group)
    raise TableError(
        f"{records.place}: has none of the columns {known}; rename one, or add --map COLUMN={role} (found: "
        f"{records.columns()})"
    )
