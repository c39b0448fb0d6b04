"""The paid replies of the judge by request key, in one SQLite file.

The journal of a run and the cache across runs are the same thing. A reply is committed before it is counted,
so a killed process loses at most the calls in flight. Failures are journaled next to the replies, and never
served as replies.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_eval.errors import StoreError
from rag_eval.store.lock import locked
from rag_eval.store.store_file import NETWORK, PATIENCE, kind_of, open_file, open_file_unchanged, remove
from rag_eval.store.store_format import Value, insertion, is_intact

_MOST = 2**63 - 1
"""The largest number that SQLite stores."""
_TABLES_WITH_TIMES = ("replies", "failures", "batch_calls")
_INSTANT = 1e-3
_UNWRITABLE = (sqlite3.Error, OverflowError, UnicodeError)
"""A disk that is full, or a value that SQLite does not take."""


class Store:
    """Replies by request key. Safe to use from several threads, and from several processes at once."""

    def __init__(
        self,
        path: Path,
        *,
        another: Path | None = None,
        on_damage: Callable[[str], None] | None = None,
        is_dry: bool = False,
        on_network: Callable[[str], None] = lambda sentence: None,
        file_system: Callable[[Path], str] = kind_of,
    ) -> None:
        """Open the store at `path`, or begin one.

        A file that is damaged, or not a store, is renamed; a new store begins with its intact rows. Damaged rows of
        an intact file are dropped. `on_damage` gets a sentence about either; without `on_damage`, damage raises
        StoreError. With `is_dry` the file is not changed, and damaged rows are ignored. If `file_system` reports a
        network file system, `on_network` gets a warning, and the store works without SQLite's write-ahead log, which
        needs memory that all its users share. What this store lacks is looked up in the one at `another`, if there is
        one: it is not changed.
        """
        self.path = path
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._unwritten: list[_Write] = []
        self.along: Callable[[], Sequence[Statement]] = tuple
        """Gives statements that are committed together with all others, as they are at that time."""
        self._replies_since = self._failures_since = 0.0
        with self._reporting("opened"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_remote = file_system(path.parent) in NETWORK
            with locked(path, patience=PATIENCE):
                if is_dry:
                    opened = open_file_unchanged(path, on_damage)
                else:
                    opened = open_file(path, on_damage, journal="DELETE" if is_remote else "WAL")
        self._connection, self._reader = opened.writer, opened.reader
        if is_remote:
            on_network(
                f"{path}: is on a network file system, where locks may not work; use it in one run at a time, or "
                "move it to a disk of this computer"
            )
        self._another = (
            Store(another, is_dry=True, on_damage=on_damage) if another and another.exists() else None
        )

    def ignore_before(self, since: float = 0.0, *, failures: float = 0.0) -> None:
        """From now on ignore what was stored before `since`, and failures from before `failures`, in seconds since
        1970. What is ignored already stays so.
        """
        self._replies_since = max(self._replies_since, since)
        self._failures_since = max(self._failures_since, since, failures)
        if self._another:
            self._another.ignore_before(since, failures=failures)

    def now(self) -> float:
        """The time at which what is put into the store counts as stored: never so that it would be ignored."""
        return max(time.time(), self._replies_since)

    def next_moment(self) -> float:
        """Now, but later than all that is stored: the clock may have been put back. In seconds since 1970."""
        stored = " UNION ALL ".join(f"SELECT stored_at FROM {table}" for table in _TABLES_WITH_TIMES)  # noqa: S608
        with self._reporting("read"), self._reading:
            (last,) = self._reader.execute(f"SELECT max(stored_at) FROM ({stored})").fetchone()  # noqa: S608
        others = self._another.next_moment() if self._another else 0.0
        return max(time.time(), (last or 0.0) + _INSTANT, others)

    def reply(self, key: str) -> str | None:
        """The stored reply as JSON text, or None."""
        row = self._row("replies", "reply", "key = ? AND stored_at >= ?", key, self._replies_since)
        if row is None:
            return self._another.reply(key) if self._another else None
        return str(row[0])

    def paid(self, key: str, before: float) -> tuple[str, int, int] | None:
        """Task, prompt tokens and completion tokens of the stored reply, retries included.

        None if none is stored, or only since `before`, in seconds since 1970, or if it was paid for with another one.
        """
        columns = "task, prompt_tokens, completion_tokens"
        row = self._row("replies", columns, "key = ? AND stored_at < ? AND attempts > 0", key, before)
        return None if row is None else (str(row[0]), int(str(row[1])), int(str(row[2])))

    def failure(self, key: str) -> tuple[str, str] | None:
        """Code and message of the failure journaled last under the key, or None."""
        row = self._row("failures", "code, message", "key = ? AND stored_at >= ?", key, self._failures_since)
        return None if row is None else (str(row[0]), str(row[1]))

    def put_reply(
        self,
        key: str,
        *,
        task: str,
        reply: str,
        attempts: int,
        prompt_tokens: int,
        completion_tokens: int,
        failure: tuple[str, str] | None = None,
    ) -> None:
        """Commit a reply. A failure journaled under the same key is replaced by `failure`, or is gone."""
        tokens = min(prompt_tokens, _MOST), min(completion_tokens, _MOST)
        now = self.now()
        self.commit(
            insertion("replies", (key, task, encodable(reply), attempts, *tokens, now)),
            self._failure(key, task, *failure, now)
            if failure
            else ("DELETE FROM failures WHERE key = ?", (key,)),
        )

    def put_failure(self, key: str, *, task: str, code: str, message: str) -> None:
        now = max(time.time(), self._failures_since)
        self.commit(self._failure(key, task, code, message, now))

    @staticmethod
    def _failure(key: str, task: str, code: str, message: str, now: float) -> "Statement":
        return insertion("failures", (key, task, code, encodable(message), now))

    def note(self, name: str) -> str | None:
        """A remembered fact about an endpoint, such as the parameters that it takes."""
        row = self._row("notes", "value", "name = ?", name)
        if row is None:
            return self._another.note(name) if self._another else None
        return str(row[0])

    def put_note(self, name: str, value: str) -> None:
        self.commit(insertion("notes", (name, value)))

    def forget_note(self, name: str) -> None:
        self.commit(("DELETE FROM notes WHERE name = ?", (name,)))

    def rows(
        self, table: str, columns: str, condition: str = "1", *arguments: Value
    ) -> list[tuple[Any, ...]]:
        """The intact rows for which an SQL condition holds, in the order of their keys."""
        query = f"SELECT {columns} FROM {table} WHERE {condition} AND {is_intact(table)} ORDER BY 1"  # noqa: S608
        with self._reporting("read"), self._reading:
            return self._reader.execute(query, arguments).fetchall()

    def overview(self) -> "list[_StoredTask]":
        """Number, tokens and times of the stored replies, one item per task, sorted by its name."""
        with self._reporting("read"), self._reading:
            rows = self._reader.execute(
                "SELECT task, count(*), CAST(total(prompt_tokens) AS INTEGER), "  # noqa: S608 - names of ours
                "CAST(total(completion_tokens) AS INTEGER), min(stored_at), max(stored_at) "
                f"FROM replies WHERE {is_intact('replies')} GROUP BY task ORDER BY task"
            ).fetchall()
        return [_StoredTask(*row) for row in rows]

    def prune(self, before: float) -> tuple[int, int]:
        """Remove replies and failures stored before a time, in seconds since 1970. Returns the number of each."""
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
        if self._another:
            self._another.end(keep=True)
        if not keep:
            with self._reporting("removed"):
                remove(self.path)

    def _row(self, table: str, columns: str, condition: str, *arguments: Value) -> tuple[object, ...] | None:
        """The row, or None if there is none or it is damaged."""
        query = f"SELECT {columns} FROM {table} WHERE {condition} AND {is_intact(table)}"  # noqa: S608
        with self._reporting("read"), self._reading:
            row: tuple[object, ...] | None = self._reader.execute(query, arguments).fetchone()
        return row

    def commit(self, *statements: "Statement") -> None:
        """Return when the statements are on the disk. Who waits for it meanwhile is served by one commit together."""
        mine = _Write(statements)
        self._unwritten.append(mine)
        with self._reporting("written"), self._writing:
            if not mine.is_done:
                writes = self._unwritten[:]
                try:
                    self._write(writes)
                except BaseException:
                    self._unwritten.remove(mine)  # the others try theirs
                    raise
                del self._unwritten[: len(writes)]  # in place: others may append meanwhile
            if mine.error:
                raise mine.error

    def _write(self, writes: "Sequence[_Write]") -> None:
        """Commit them together or, if that fails, each by itself: one that fails takes no other with it."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                for statement in (*(each for write in writes for each in write.statements), *self.along()):
                    self._connection.execute(*statement)
        except _UNWRITABLE as error:
            # Another process that kept the store busy for so long would do so again for every write.
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if len(writes) > 1 and not is_busy:
                for write in writes:
                    self._write([write])
                return
            for write in writes:
                write.error = error
        for write in writes:
            write.is_done = True

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        try:
            yield
        except (*_UNWRITABLE, OSError) as error:
            raise StoreError(
                f"{self.path}: the store of judge replies cannot be {done} ({error}); earlier replies are safe. "
                "Free some space, or correct -o or [cache] directory, and run the same command again"
            ) from error


@dataclass(frozen=True, slots=True)
class _StoredTask:
    """Number, tokens and times of the stored replies of one task, such as 'faithfulness.verdicts'."""

    task: str
    replies: int
    prompt_tokens: int
    completion_tokens: int
    first: float
    """Time at which the oldest reply was stored, in seconds since 1970."""
    last: float
    """Time at which the newest reply was stored, in seconds since 1970."""


Statement = tuple[str, tuple[Value | bytes, ...]]
"""SQL and its arguments."""


@dataclass(slots=True, eq=False)
class _Write:
    """Statements of one thread, which waits until they are committed."""

    statements: Sequence[Statement]
    is_done: bool = False
    """Committed, or failed."""
    error: Exception | None = None


def encodable(text: str) -> str:
    r"""Lone surrogates, which UTF-8 has no bytes for, are spelled \udXXX, as JSON spells them too."""
    return text.encode("utf-8", "backslashreplace").decode()
