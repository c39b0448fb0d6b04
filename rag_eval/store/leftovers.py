"""Temporary files and folders, and the removal of those that killed runs left behind.

The name of each contains a tag of its output. The process that created it locks it, and the lock ends with the
process: a file or folder that nobody locks is left over.
"""

import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from rag_eval.store.lock import is_at, try_lock

_FILE = re.compile(r"\.rag-eval-(?:([0-9a-f]{8})-)?[0-9a-f]{12}\.tmp")
"""With the tag of the output; earlier versions wrote no tag."""
_FOLDER = re.compile(r"rag-eval-([0-9a-f]{8})-[0-9a-z_]{8}")
_ONE_DAY = 24 * 60 * 60


def new_file(target: Path, permissions: int) -> tuple[Path, int | None]:
    """Create a temporary file next to `target`. Returns its path, and the descriptor that locks it until closed.

    Not by tempfile: its files are 0600 whatever the umask says, and a report is meant to be shared.
    """
    while True:
        path = target.with_name(f".rag-eval-{_tag(target)}-{secrets.token_hex(6)}.tmp")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, permissions)
        if sys.platform == "win32":  # where a file that is open cannot be moved
            os.close(descriptor)
            return path, None
        if _holds(path, descriptor):
            return path, descriptor
        os.close(descriptor)


class Scratch:
    """A folder in the system's folder for temporary files. `cleanup`, or the end of the context, removes it."""

    def __init__(self, target: Path) -> None:
        """`target` is the output that the folder is for."""
        while True:
            self._folder = tempfile.TemporaryDirectory(prefix=f"rag-eval-{_tag(target)}-")
            self.name = self._folder.name
            self._descriptor = None if sys.platform == "win32" else os.open(self.name, os.O_RDONLY)
            if self._descriptor is None or _holds(Path(self.name), self._descriptor):
                return
            self.cleanup()

    def __enter__(self) -> str:
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        self._folder.cleanup()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def sweep(targets: Iterable[Path]) -> None:
    """Remove what killed runs left behind: of these outputs always, of others next to them if over a day old."""
    tags, folders = set(), set()
    for target in targets:
        tags.add(_tag(target))
        folders.add(Path(os.path.realpath(target)).parent)
    for folder in folders:
        _sweep(folder, _FILE, tags)
    with suppress(OSError):  # on a full disk no folder for temporary files may be usable
        _sweep(Path(tempfile.gettempdir()), _FOLDER, tags)


def _sweep(folder: Path, pattern: re.Pattern[str], tags: set[str]) -> None:
    with suppress(OSError):
        for path in folder.iterdir():
            if found := pattern.fullmatch(path.name):
                with suppress(OSError):
                    _remove_if_left_over(path, is_ours=found[1] in tags)


def _remove_if_left_over(path: Path, *, is_ours: bool) -> None:
    status = path.lstat()
    is_old = time.time() - status.st_mtime > _ONE_DAY
    if sys.platform == "win32":
        if is_old:
            _remove(path, status)
        return
    if not (is_ours or is_old) or status.st_uid != os.getuid():
        return
    mode = os.O_RDONLY if stat.S_ISDIR(status.st_mode) else os.O_RDWR
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if try_lock(descriptor) and is_at(path, descriptor):
            _remove(path, status)
    finally:
        os.close(descriptor)


def _remove(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(path)
    elif stat.S_ISREG(status.st_mode):
        path.unlink()


def _holds(path: Path, descriptor: int) -> bool:
    """Lock the file. False if another run removed it first, as left over."""
    with suppress(OSError):  # not every file system has locks
        try_lock(descriptor)
    return is_at(path, descriptor)


def _tag(target: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(target))).hexdigest()[:8]
