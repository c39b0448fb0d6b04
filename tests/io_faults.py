"""Makes the N-th step of input and output fail in this process, as a full disk would: for child processes alone.

A step is a statement or commit of SQLite, a write that reaches the operating system, a flush to disk, or a
change to a folder. The program under test knows nothing of this: what it calls in the standard library is replaced.
"""

import builtins
import errno
import io
import os
import sqlite3
import threading
from collections.abc import Callable
from typing import Any


class Faults:
    """Counts steps. Step number `first` fails and, if the fault lasts, every later one that needs room."""

    def __init__(self, first: int | None, *, lasts: bool) -> None:
        self.steps: list[str] = []
        self._first = first
        self._lasts = lasts
        self._lock = threading.Lock()

    def step(self, what: str, *, needs_room: bool = True) -> bool:
        """Whether this step fails."""
        with self._lock:
            self.steps.append(what)
            number = len(self.steps)
        if self._first is None:
            return False
        return number == self._first or (self._lasts and needs_room and number > self._first)

    def check(self, what: str, *, needs_room: bool = True) -> None:
        if self.step(what, needs_room=needs_room):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def install(self) -> None:
        for name, needs_room in [("fsync", True), ("replace", False), ("rename", False), ("chmod", False)]:
            setattr(os, name, self._counted(name, getattr(os, name), needs_room))
        os.open = self._counted_os_open(os.open)  # type: ignore[assignment]
        builtins.open = io.open = self._counted_open(io.open)  # type: ignore[assignment]
        sqlite3.connect = self._counted_connect(sqlite3.connect)  # type: ignore[assignment]

    def _counted(self, name: str, real: Callable[..., Any], needs_room: bool) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.check(name, needs_room=needs_room)
            return real(*arguments, **named)

        return counted

    def _counted_os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def counted(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
            if flags & os.O_CREAT:
                self.check("create")
            return real(path, flags, *arguments, **named)

        return counted

    def _counted_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        faults = self

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                faults.check("write")
                return super().write(data) or 0

        def counted(file: Any, mode: str = "r", buffering: int = -1, *text: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+"):
                return real(file, mode, buffering, *text, **named)
            faults.check("open")
            raw = Raw(file, mode.replace("b", "").replace("t", ""), opener=named.pop("opener", None))
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **named)

        return counted

    def _counted_connect(self, real: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        faults = self

        def refuse() -> None:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
            raise error

        class Counted(sqlite3.Connection):
            def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
                is_reading = sql.startswith(("SELECT", "PRAGMA"))
                if faults.step(f"execute {sql[:30]}", needs_room=not is_reading):
                    refuse()
                return super().execute(sql, *arguments)

            def executescript(self, sql: str) -> sqlite3.Cursor:
                if faults.step("executescript"):
                    refuse()
                return super().executescript(sql)

            def __exit__(self, *raised: Any) -> Any:
                if raised[0] is None and self.in_transaction and faults.step("commit"):
                    self.rollback()
                    refuse()
                return super().__exit__(*raised)

        def counted(path: Any, **named: Any) -> sqlite3.Connection:
            if faults.step("connect", needs_room=False):
                refuse()
            return real(path, factory=Counted, **named)

        return counted
