"""What was paid for, kept safe: request key → reply, in one SQLite file.

The journal of a run and the cache across runs are the same thing. A reply is committed before it is counted,
so a killed process loses at most the calls in flight. Failures are journaled beside the replies, and never
served as replies.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_eval.errors import StoreError

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, reply TEXT NOT NULL, attempts INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, stored_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, stored_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Store:
    """Replies by request key. Safe to use from several threads, and from several processes at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        with self._reporting("opened"):
            _make_private(path)
            self._connection = sqlite3.connect(
                path, timeout=30, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._check_version()
            self._connection.executescript(_SCHEMA)

    def reply(self, key: str) -> str | None:
        """The stored reply as JSON text, or None."""
        return self._one("SELECT reply FROM replies WHERE key = ?", key)

    def put_reply(
        self, key: str, *, task: str, reply: str, attempts: int, prompt_tokens: int, completion_tokens: int
    ) -> None:
        """Commit a validated reply; it replaces a failure journaled under the same key."""
        with self._reporting("written"), self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, task, reply, attempts, prompt_tokens, completion_tokens, time.time()),
            )
            self._connection.execute("DELETE FROM failures WHERE key = ?", (key,))

    def put_failure(self, key: str, *, task: str, code: str, message: str) -> None:
        with self._reporting("written"), self._lock, self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)",
                (key, task, code, message, time.time()),
            )

    def note(self, name: str) -> str | None:
        """A remembered fact about an endpoint, such as the parameters that it takes."""
        return self._one("SELECT value FROM notes WHERE name = ?", name)

    def put_note(self, name: str, value: str) -> None:
        with self._reporting("written"), self._lock, self._connection:
            self._connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, value))

    def end(self, *, keep: bool) -> None:
        """Close the store; unless it is kept, remove its files."""
        with self._lock:
            self._connection.close()
        if not keep:
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _one(self, query: str, argument: str) -> str | None:
        with self._reporting("read"), self._lock:
            row = self._connection.execute(query, (argument,)).fetchone()
        return None if row is None else str(row[0])

    def _check_version(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, SCHEMA_VERSION):
            raise StoreError(
                f"{self.path}: this store was written by another version of rag-eval (format {version}, "
                f"expected {SCHEMA_VERSION}); move it away or choose another [cache] directory"
            )
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: the store of judge replies cannot be {done} ({error}); what was stored before is "
                "safe: free some space or repair the path, and run the same command again"
            ) from error


def _make_private(path: Path) -> None:
    """Create the file for its owner alone; replies may quote the texts that were judged."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
