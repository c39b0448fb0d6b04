"""What was paid for, kept safe: request key → reply, in one SQLite file.

The journal of a run and the cache across runs are the same thing. A reply is committed before it is counted,
so a killed process loses at most the calls in flight. Failures are journaled beside the replies, and never
served as replies.
"""

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rag_eval.errors import StoreError
from rag_eval.file_systems import NETWORK, kind_of
from rag_eval.lock import locked

SCHEMA_VERSION = 1
APPLICATION_ID = int.from_bytes(b"RAGe")
"""How a store of ours is told from any other SQLite file."""

_SCHEMA = f"""
PRAGMA journal_mode = MEMORY;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE replies (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, reply TEXT NOT NULL, attempts INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, stored_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, stored_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
COMMIT;
"""
_COMPANIONS = ("-wal", "-shm")
_PATIENCE = 30.0
"""Seconds that another process at work on the same store is waited for."""


class Store:
    """Replies by request key. Safe to use from several threads, and from several processes at once."""

    def __init__(
        self,
        path: Path,
        *,
        on_damage: Callable[[str], None] | None = None,
        fresh: bool = False,
        retry_errors: bool = False,
        on_network: Callable[[str], None] = lambda sentence: None,
        file_system: Callable[[Path], str] = kind_of,
    ) -> None:
        """Open the store at `path`, or begin one.

        A file there that is damaged, or no store at all, is renamed and a new store begun, and `on_damage` is told
        so in a sentence; without `on_damage` such a file raises StoreError. With `fresh`, nothing that was stored
        before is served; with `retry_errors`, no failure that was. `on_network` is told if `file_system` says that
        the folder is on another computer: the store then does without SQLite's write-ahead log, which needs memory
        that all its users share.
        """
        self.path = path
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._unwritten: list[_Write] = []
        self._replies_since = time.time() if fresh else 0.0
        self._failures_since = time.time() if fresh or retry_errors else 0.0
        with self._reporting("opened"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(path, patience=_PATIENCE):
                _clear_the_place(path, on_damage)
                if not path.exists():
                    _create(path)
                is_remote = file_system(path.parent) in NETWORK
                self._connection = _connect(path, "DELETE" if is_remote else "WAL")
                self._reader = _connect(path)  # of its own, so that no reader waits for the disk
        if is_remote:
            on_network(
                f"{path}: is on a network file system, where locks may not hold: let no two runs use it at once, or "
                "keep it on a disk of this computer"
            )

    def reply(self, key: str) -> str | None:
        """The stored reply as JSON text, or None."""
        row = self._row(
            "SELECT reply FROM replies WHERE key = ? AND stored_at >= ?", key, self._replies_since
        )
        return None if row is None else str(row[0])

    def failure(self, key: str) -> tuple[str, str] | None:
        """Code and message of the failure journaled last under the key, or None."""
        row = self._row(
            "SELECT code, message FROM failures WHERE key = ? AND stored_at >= ?", key, self._failures_since
        )
        return None if row is None else (str(row[0]), str(row[1]))

    def put_reply(
        self, key: str, *, task: str, reply: str, attempts: int, prompt_tokens: int, completion_tokens: int
    ) -> None:
        """Commit a validated reply; it replaces a failure journaled under the same key."""
        values = (key, task, reply, attempts, prompt_tokens, completion_tokens, time.time())
        self._commit(
            ("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)", values),
            ("DELETE FROM failures WHERE key = ?", (key,)),
        )

    def put_failure(self, key: str, *, task: str, code: str, message: str) -> None:
        values = (key, task, code, message, time.time())
        self._commit(("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)", values))

    def note(self, name: str) -> str | None:
        """A remembered fact about an endpoint, such as the parameters that it takes."""
        row = self._row("SELECT value FROM notes WHERE name = ?", name)
        return None if row is None else str(row[0])

    def put_note(self, name: str, value: str) -> None:
        self._commit(("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value)))

    def overview(self) -> "list[StoredTask]":
        """What there is of each task, by its name."""
        with self._reporting("read"), self._reading:
            rows = self._reader.execute(
                "SELECT task, count(*), sum(prompt_tokens), sum(completion_tokens), min(stored_at), max(stored_at) "
                "FROM replies GROUP BY task ORDER BY task"
            ).fetchall()
        return [StoredTask(*row) for row in rows]

    def prune(self, before: float) -> tuple[int, int]:
        """Remove replies and failures stored before that time, in seconds since 1970; how many of each."""
        with self._reporting("pruned"), self._writing:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                replies, failures = (
                    self._connection.execute(f"DELETE FROM {table} WHERE stored_at < ?", (before,)).rowcount  # noqa: S608
                    for table in ("replies", "failures")
                )
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return replies, failures

    def end(self, *, keep: bool) -> None:
        """Close the store; unless it is kept, remove its files."""
        with self._reading, self._writing:
            self._reader.close()
            self._connection.close()
        if not keep:
            with self._reporting("removed"):
                for path in (*_companions(self.path), self.path):
                    path.unlink(missing_ok=True)

    def _row(self, query: str, *arguments: str | float) -> tuple[object, ...] | None:
        with self._reporting("read"), self._reading:
            row: tuple[object, ...] | None = self._reader.execute(query, arguments).fetchone()
        return row

    def _commit(self, *statements: "_Statement") -> None:
        """Return when the statements are on the disk. Who waits for it meanwhile is served by one commit together."""
        mine = _Write(statements)
        self._unwritten.append(mine)
        with self._reporting("written"), self._writing:
            if mine.is_committed:
                return
            writes = self._unwritten[:]
            try:
                self._execute(statement for write in writes for statement in write.statements)
            except BaseException:
                self._unwritten.remove(mine)  # the others try theirs, and say it if they fail
                raise
            for write in writes:
                write.is_committed = True
            del self._unwritten[: len(writes)]  # in place: others may append meanwhile

    def _execute(self, statements: "Iterable[_Statement]") -> None:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in statements:
                self._connection.execute(*statement)

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: the store of judge replies cannot be {done} ({error}); what was stored before is "
                "safe: free some space or repair the path, and run the same command again"
            ) from error


@dataclass(frozen=True, slots=True)
class StoredTask:
    """The stored replies to one kind of question."""

    task: str
    replies: int
    prompt_tokens: int
    completion_tokens: int
    first: float
    """When the oldest was stored, in seconds since 1970 …"""
    last: float
    """… and the newest."""


_Statement = tuple[str, tuple[str | float, ...]]


@dataclass(slots=True, eq=False)
class _Write:
    """Statements that a thread waits for."""

    statements: Sequence[_Statement]
    is_committed: bool = False


def _clear_the_place(path: Path, on_damage: Callable[[str], None] | None) -> None:
    damage = _damage(path)
    if not damage:
        return
    if on_damage is None:
        raise StoreError(
            f"{path}: the store of judge replies is damaged ({damage}); move it away, and run the same command again"
        )
    place = _set_aside(path, datetime.now())
    on_damage(
        f"{path}: the store of judge replies is damaged ({damage}). It was renamed to {place.name} and a new one "
        "begun: what it held is asked for again."
    )


def _damage(path: Path) -> str:
    """What is wrong with the file; empty when it is a whole store of any version, or when there is none."""
    if not path.exists():
        # SQLite would take the changes noted there into the new file, of which they know nothing
        return "its main file is missing" if path.with_name(f"{path.name}-wal").exists() else ""
    if path.stat().st_size == 0:
        return "it is empty"
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
            if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                return "it is a database of another program"
            (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return str(error)
    return "" if finding == "ok" else " ".join(str(finding).split())


def _set_aside(path: Path, now: datetime) -> Path:
    """Rename the file and its companions; nothing that may have been paid for is ever deleted."""
    place = path.with_name(f"{path.name}.damaged-{now:%Y%m%d-%H%M%S-%f}")
    for source, target in zip((path, *_companions(path)), (place, *_companions(place)), strict=True):
        if source.exists():
            source.rename(target)
    return place


def _create(path: Path) -> None:
    """Make a store that appears whole or not at all, for its owner alone: replies may quote the texts judged."""
    temporary = path.with_name(f".rag-eval-{secrets.token_hex(6)}.tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(temporary)) as connection:
            connection.executescript(_SCHEMA)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _connect(path: Path, journal: str = "") -> sqlite3.Connection:
    """Without the kind of a journal the store keeps the one that it has."""
    connection = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None)
    with ExitStack() as undo:
        undo.callback(connection.close)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{path}: this store was written by another version of rag-eval (format {version}, "
                f"expected {SCHEMA_VERSION}); move it away or choose another [cache] directory"
            )
        if journal:
            connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        undo.pop_all()
    return connection


def _companions(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database."""
    return [path.with_name(path.name + suffix) for suffix in _COMPANIONS]
