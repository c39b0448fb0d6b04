"""The tables of a store of replies: their columns, and the checksum that tells an intact row from a damaged one.

Every row ends in a checksum over its other columns. A row is served only if its checksum fits.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

VERSION = 3
FIRST_VERSION = 1
"""Its rows have no checksum. A row counts as intact if it can be read."""
_WITH_CHECKSUMS = 2
_WITH_BATCHES = 3
"""Since this version, what was sent in batches is kept as well."""
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
LASTING_TABLES = ("replies", "notes")
"""A deleted row of theirs is still true. One of the others is not: a failure was mended, or a batch fetched."""
_NEW_TABLES = ("jobs", "batches", "batch_calls")
"""Those that earlier versions did not have."""
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int)}
"""In the file, SQLite keeps a whole number of type REAL as an integer."""
_CHECKSUM = "checksum"
_NO_CHECKSUM = b""


def begin(connection: sqlite3.Connection) -> None:
    """Create the tables, in one transaction."""
    tables = "".join(f"{_creation(table)};" for table in TABLES)
    connection.executescript(
        f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; {tables} COMMIT;"
    )


def insertion(table: str, values: Row, *, replaces: bool = True) -> tuple[str, tuple[Value | bytes, ...]]:
    """The statement, with its arguments, that stores a row. It replaces one with the same key, or gives way to it."""
    places = ", ".join("?" * (len(values) + 1))
    statement = f"INSERT OR {'REPLACE' if replaces else 'IGNORE'} INTO {table} VALUES ({places})"  # noqa: S608
    return statement, (*values, _checksum(table, _encoded(values)))


def define_functions(connection: sqlite3.Connection) -> None:
    """Define the functions that the expressions of this module call."""
    for function in (_fits, _is_readable, _checksum_of_readable):
        connection.create_function(function.__name__, -1, function, deterministic=True)


def is_intact(table: str, version: int) -> str:
    """An SQL expression: whether a row of `table`, in a store of that version, is intact."""
    if version == FIRST_VERSION:
        return f"_is_readable('{table}', {_typed_columns(table)})"
    return f"_fits('{table}', {_CHECKSUM}, {_typed_columns(table)})"


def count_damaged(connection: sqlite3.Connection, version: int) -> Counter[str]:
    """Number of damaged rows, by table; tables without damaged rows are left out."""
    found: Counter[str] = Counter()
    for table in _tables_of(version):
        query = f"SELECT count(*) FROM {table} WHERE NOT {is_intact(table, version)}"  # noqa: S608 - names of ours
        (found[table],) = connection.execute(query).fetchone()
    return +found


def mend(connection: sqlite3.Connection) -> Counter[str]:
    """Bring a store up to this version, and remove its damaged rows. Returns their number by table.

    The caller commits.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    lost = _with_checksums(connection) if version < _WITH_CHECKSUMS else _without_damaged(connection, version)
    if version < _WITH_BATCHES:
        for table in _NEW_TABLES:
            connection.execute(_creation(table))
    if version != VERSION:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    return +lost


def _without_damaged(connection: sqlite3.Connection, version: int) -> Counter[str]:
    return Counter(
        {
            table: connection.execute(f"DELETE FROM {table} WHERE NOT {is_intact(table, version)}").rowcount  # noqa: S608
            for table in _tables_of(version)
        }
    )


def _with_checksums(connection: sqlite3.Connection) -> Counter[str]:
    """Add checksums to the rows of the first version that can be read, and remove and count the others."""
    lost: Counter[str] = Counter()
    for table in _tables_of(FIRST_VERSION):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {_CHECKSUM_DEFINITION}")
        connection.execute(
            f"UPDATE {table} SET {_CHECKSUM} = _checksum_of_readable('{table}', {_typed_columns(table)})"  # noqa: S608
        )
        lost[table] = connection.execute(f"DELETE FROM {table} WHERE {_CHECKSUM} = x''").rowcount  # noqa: S608
    return lost


def intact_rows(connection: sqlite3.Connection, table: str, *, is_reversed: bool) -> Iterator[Row]:
    """Every row of a store of this version whose checksum fits, without the checksum, in the order of the keys."""
    key, *others = _COLUMNS[table]
    yield from connection.execute(
        f"SELECT {', '.join((key, *others))} FROM {table} WHERE {is_intact(table, VERSION)} "  # noqa: S608
        f"ORDER BY {key} {'DESC' if is_reversed else 'ASC'}"
    )


def recognized(values: Sequence[Value | bytes | None]) -> tuple[str, Row] | None:
    """The table of a row of which only the values are known, and the row without its checksum; None if none fits."""
    *columns, checksum = values
    row = tuple(each for each in columns if each is not None and not isinstance(each, bytes))
    if len(row) == len(columns):
        for table in TABLES:
            if _has_types(table, row) and _checksum(table, _encoded(row)) == checksum:
                return table, row
    return None


def difference(connection: sqlite3.Connection, version: int) -> str:
    """What is different from the tables of a store of that version, in words; empty if nothing is."""
    for table in _tables_of(version):
        found = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,)).fetchall()
        columns = [*_COLUMNS[table].items(), *([(_CHECKSUM, "BLOB")] if version >= _WITH_CHECKSUMS else [])]
        if found != [(name, kind, int(place == 0)) for place, (name, kind) in enumerate(columns)]:
            return f"it has no table of {table}" if not found else f"its table of {table} has other columns"
    # One bit makes an earlier version of a later one. To migrate such a file would fail for ever.
    for table in set(TABLES).difference(_tables_of(version)):
        if connection.execute("SELECT 1 FROM sqlite_master WHERE lower(name) = ?", (table,)).fetchone():
            return f"it says version {version}, but has tables of a later one"
    return ""


_CHECKSUM_DEFINITION = f"{_CHECKSUM} BLOB NOT NULL DEFAULT x''"


def _tables_of(version: int) -> tuple[str, ...]:
    return TABLES if version >= _WITH_BATCHES else tuple(each for each in TABLES if each not in _NEW_TABLES)


def _creation(table: str) -> str:
    return f"CREATE TABLE {table} ({', '.join(_definitions(table))}) WITHOUT ROWID"


def _definitions(table: str) -> Iterator[str]:
    for place, (name, kind) in enumerate(_COLUMNS[table].items()):
        yield f"{name} {kind} {'NOT NULL' if place else 'PRIMARY KEY'}"
    yield _CHECKSUM_DEFINITION


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


def _has_types(table: str, row: Row) -> bool:
    """Whether the values are what `_typed_columns` lets through."""
    columns = _COLUMNS[table]
    return len(row) == len(columns) and all(
        isinstance(value, _TYPES[kind]) and (name != _TIME or abs(float(value)) < _YEAR_3000)
        for (name, kind), value in zip(columns.items(), row, strict=True)
    )


def _encoded(row: Row) -> Iterator[bytes | int | float]:
    return (value.encode() if isinstance(value, str) else value for value in row)


def _fits(table: str, checksum: object, *columns: bytes | int | float | None) -> bool:
    return None not in columns and _checksum(table, columns) == checksum


def _is_readable(table: str, *columns: bytes | int | float | None) -> bool:
    if None in columns:
        return False
    try:
        texts = [column.decode() for column in columns if isinstance(column, bytes)]
        if table == "replies":
            _key, _task, reply = texts
            json.loads(reply)
    except (ValueError, RecursionError):
        return False
    return True


def _checksum_of_readable(table: str, *columns: bytes | int | float | None) -> bytes:
    return _checksum(table, columns) if _is_readable(table, *columns) else _NO_CHECKSUM


def _checksum(table: str, columns: Iterable[bytes | int | float | None]) -> bytes:
    """Of the columns in their order, text as its bytes. Without the time, which is not part of what is served."""
    parts = [
        column if isinstance(column, bytes) else repr(column).encode()
        for name, column in zip(_COLUMNS[table], columns, strict=True)
        if name != _TIME
    ]
    lengths = ",".join([table, *(str(len(part)) for part in parts)])
    return hashlib.blake2b(b"".join((lengths.encode(), b":", *parts)), digest_size=16).digest()
