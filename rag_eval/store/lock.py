"""Locks, so that only one run at a time writes to one place. A lock ends with its process, even if that is killed."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rag_eval.errors import LockedError, OutputError


@contextmanager
def locked(target: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of `target`, waiting up to `patience` seconds for another holder.

    Raises LockedError, which names the holder, and OutputError if the lock file cannot be written. The lock is a file
    next to the target, and is removed at the end.
    """
    path = lock_path(target)
    try:
        descriptor = _acquire(path, target, time.monotonic() + patience)
    except OSError as error:
        raise OutputError(
            f"{path}: the lock file cannot be written: {error.strerror or error}; choose a folder that you may write to"
        ) from error
    try:
        yield
    finally:
        _release(path, descriptor)


def lock_path(target: Path) -> Path:
    """Path of the lock file of `target`. Symlinks are followed, so that two names of one file have one lock."""
    real = Path(os.path.realpath(target))
    return real.with_name(f".rag-eval-{real.name}.lock")


def _acquire(path: Path, target: Path, give_up_at: float) -> int:
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with ExitStack() as undo:
            undo.callback(os.close, descriptor)
            if try_lock(descriptor) and is_at(path, descriptor):
                _sign(descriptor)
                undo.pop_all()
                return descriptor
            holder = _holder(descriptor)
        if time.monotonic() >= give_up_at and path.exists():
            raise LockedError(
                f"{target}: being written by another run ({holder}); wait (--wait MINUTES) or use another -o"
            )
        time.sleep(0.02)


def _release(path: Path, descriptor: int) -> None:
    """Remove the file while it is still locked: whoever has it open already notices by `is_at`."""
    if os.name == "posix":
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)
    # Elsewhere only a closed file can be removed, and one that another run has opened cannot.
    if os.name != "posix":
        with suppress(OSError):
            path.unlink()


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the locked file is still at `path`: its last holder may just have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _sign(descriptor: int) -> None:
    """Write who holds the lock. On a full disk the lock works without that."""
    words = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now():%Y-%m-%d %H:%M:%S}"
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, words.encode())


def _holder(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 300).decode(errors="replace") or "it has just begun"


if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        # Beyond the text, since nobody else can read a locked byte.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Whether the file is locked now; not if another holds it. Raises OSError where files have no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
