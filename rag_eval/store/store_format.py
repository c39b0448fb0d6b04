"""The tables of a store of replies: their columns, and the checksum that tells an intact row from a damaged one.

Every row ends in a checksum over its other columns. A row is served only if its checksum fits.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

VERSION = 3
APPLICATION_ID = int.from_bytes(b"RAGe")
"""Distinguishes a store of RAG Eval from other SQLite files."""

Value = str | int | float
Row = tuple[Value, ...]
_TIME = "stored_at"
_YEAR_3000 = 32_503_680_000
"""In seconds since 1970. Other moments cannot be printed as dates everywhere."""
_KEYED = {"key": "TEXT", "task": "TEXT"}
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "replies": {
        **_KEYED,
        "reply": "TEXT",
        "attempts": "INTEGER",
        "prompt_tokens": "INTEGER",
        "completion_tokens": "INTEGER",
        _TIME: "REAL",
    },
    "failures": {**_KEYED, "code": "TEXT", "message": "TEXT", _TIME: "REAL"},
    "notes": {"name": "TEXT", "value": "TEXT"},
    "jobs": {"id": "TEXT", "value": "TEXT", _TIME: "REAL"},
    "batches": {
        "token": "TEXT",
        "job": "TEXT",
        "place": "TEXT",
        "state": "TEXT",
        "value": "TEXT",
        _TIME: "REAL",
    },
    "batch_calls": {
        "id": "TEXT",
        "token": "TEXT",
        "job": "TEXT",
        "task": "TEXT",
        "model": "TEXT",
        "state": "TEXT",
        "result": "TEXT",
        "prompt_tokens": "INTEGER",
        "completion_tokens": "INTEGER",
        _TIME: "REAL",
    },
}
"""By table; the first column is the key."""
TABLES = tuple(_COLUMNS)
READING_FAILED = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises; the latter if a name in it is not text."""


def begin(connection: sqlite3.Connection) -> None:
    """Create the tables, in one transaction."""
    tables = "".join(
        f"CREATE TABLE {table} ({', '.join(_definitions(table))}) WITHOUT ROWID;" for table in TABLES
    )
    connection.executescript(
        f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; {tables} COMMIT;"
    )


def insertion(table: str, values: Row) -> tuple[str, tuple[Value | bytes, ...]]:
    """The statement, with its arguments, that stores a row. It replaces one with the same key."""
    places = ", ".join("?" * (len(values) + 1))
    encoded = (value.encode() if isinstance(value, str) else value for value in values)
    return f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*values, _checksum(table, encoded))  # noqa: S608


def define_functions(connection: sqlite3.Connection) -> None:
    """Define the function that the expressions of this module call."""
    connection.create_function("fits", -1, _fits, deterministic=True)


def is_intact(table: str) -> str:
    """An SQL expression: whether a row of `table` is intact."""
    return f"fits('{table}', checksum, {_typed_columns(table)})"


def count_damaged(connection: sqlite3.Connection) -> Counter[str]:
    """Number of damaged rows, by table; tables without damaged rows are left out."""
    found: Counter[str] = Counter()
    for table in TABLES:
        query = f"SELECT count(*) FROM {table} WHERE NOT {is_intact(table)}"  # noqa: S608 - names of ours
        (found[table],) = connection.execute(query).fetchone()
    return +found


def remove_damaged(connection: sqlite3.Connection) -> Counter[str]:
    """Remove damaged rows. Returns their number by table. The caller commits."""
    return +Counter(
        {
            table: connection.execute(f"DELETE FROM {table} WHERE NOT {is_intact(table)}").rowcount  # noqa: S608
            for table in TABLES
        }
    )


def readable_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, Row]]:
    """The intact rows of a damaged file with their tables, without checksums. A row may come several times.

    SQLite stops at a damaged page. Short ranges of keys, read from either end, lose little more than its rows.
    """
    for table in TABLES:
        try:
            yield from _rows(connection, table, _BOUNDS[0], _BOUNDS[-1], "ASC")
        except READING_FAILED:
            for first, end in ((_BOUNDS[0], _BOUNDS[-1]), *pairwise(_BOUNDS)):
                for direction in ("ASC", "DESC"):
                    with suppress(*READING_FAILED):
                        yield from _rows(connection, table, first, end, direction)


_BOUNDS: Sequence[str | bytes] = ("", *(f"{number:02x}" for number in range(256)), b"")
"""Most keys are hexadecimal hashes. For SQLite, bytes come after every text."""


def _rows(
    connection: sqlite3.Connection, table: str, first: str | bytes, end: str | bytes, direction: str
) -> Iterator[tuple[str, Row]]:
    key, *others = _COLUMNS[table]
    query = (
        f"SELECT {', '.join((key, *others))} FROM {table} WHERE {key} >= ? AND {key} < ? AND {is_intact(table)} "  # noqa: S608
        f"ORDER BY {key} {direction}"
    )
    for row in connection.execute(query, (first, end)):
        yield table, row


def difference(connection: sqlite3.Connection) -> str:
    """What is different from the tables of a store, in words; empty if nothing is."""
    for table in TABLES:
        found = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,)).fetchall()
        columns = (*_COLUMNS[table].items(), ("checksum", "BLOB"))
        if found != [(name, kind, int(place == 0)) for place, (name, kind) in enumerate(columns)]:
            return f"it has no table of {table}" if not found else f"its table of {table} has other columns"
    return ""


def _definitions(table: str) -> Iterator[str]:
    for place, (name, kind) in enumerate(_COLUMNS[table].items()):
        yield f"{name} {kind} {'NOT NULL' if place else 'PRIMARY KEY'}"
    yield "checksum BLOB NOT NULL"


def _typed_columns(table: str) -> str:
    """The columns as SQL expressions: text as bytes, which may not be valid text, and NULL for an impossible value."""
    expressions = []
    for name, kind in _COLUMNS[table].items():
        condition = f"typeof({name}) = '{kind.lower()}'"
        if name == _TIME:
            condition += f" AND abs({name}) < {_YEAR_3000}"
        value = f"CAST({name} AS BLOB)" if kind == "TEXT" else name
        expressions.append(f"CASE WHEN {condition} THEN {value} END")
    return ", ".join(expressions)


def _fits(table: str, checksum: object, *columns: bytes | int | float | None) -> bool:
    return None not in columns and _checksum(table, columns) == checksum


def _checksum(table: str, columns: Iterable[bytes | int | float | None]) -> bytes:
    """Of the columns in their order, text as its bytes. Without the time, which is not part of what is served."""
    parts = [
        column if isinstance(column, bytes) else repr(column).encode()
        for name, column in zip(_COLUMNS[table], columns, strict=True)
        if name != _TIME
    ]
    lengths = ",".join([table, *(str(len(part)) for part in parts)])
    return hashlib.blake2b(b"".join((lengths.encode(), b":", *parts)), digest_size=16).digest()
