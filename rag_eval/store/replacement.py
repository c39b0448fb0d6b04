"""A new version of a file: written next to the old one, and moved over it only when it is complete."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from rag_eval.errors import OutputError
from rag_eval.store.leftovers import new_file

Replace = Callable[[Path, Path], None]

LEAST_SPACE = 20_000_000
"""Bytes that must be free where a run stores replies or writes its report, unless its input is small."""
_LEAST_OF_ALL = 5_000_000
"""The log of a store of replies alone takes 4 MB."""
_SPACE_PER_BYTE = 50
"""Replies, report and temporary files for a byte of the input, which may be compressed."""


class Replacement:
    """A temporary file next to `target`. `commit` makes it the target; `discard` removes it.

    A missing folder is created, with its parents. The file is in the target's own folder because only there a move is
    atomic. A symlink is followed: the file that it points to is replaced, and the link stays. All methods raise
    OutputError, which names `option`, the option that the target was given with.
    """

    def __init__(self, target: Path, replace: Replace = os.replace, option: str = "-o") -> None:
        self._asked_for = target
        self._option = option
        self._replace = replace
        with output_errors(target, option):
            self._target = Path(os.path.realpath(target))
            self._target.parent.mkdir(parents=True, exist_ok=True)
            self._mode = _mode_of(self._target)
            permissions = 0o666 if self._mode is None else self._mode | stat.S_IRUSR | stat.S_IWUSR
            self.path, self._hold = new_file(self._target, permissions)

    def commit(self) -> Path:
        """Move the file to the target. Returns its path, which is next to the target if another program locks that."""
        with output_errors(self._asked_for, self._option):
            _flush_to_disk(self.path)
            if self._mode is not None:
                self.path.chmod(self._mode)
            place = self._move()
        self._let_go()
        _flush_folder(self._target.parent)
        return place

    def discard(self) -> None:
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        self._let_go()

    def _let_go(self) -> None:
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None

    def _move(self) -> Path:
        try:
            self._replace(self.path, self._target)
        except PermissionError:  # how Windows says that another program has the file open
            name = f"{self._target.stem}.{datetime.now():%Y%m%d-%H%M%S}{self._target.suffix}"
            sibling = self._target.with_name(name)
            self._replace(self.path, sibling)
            return sibling
        return self._asked_for


def write_text(target: Path, text: str, option: str) -> Path:
    """Replace a small text file as a whole. Returns its path. Raises OutputError."""
    replacement = Replacement(target, option=option)
    try:
        with output_errors(target, option):
            # A lone surrogate, which UTF-8 has no bytes for, is spelled out.
            replacement.path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return replacement.commit()
    finally:
        replacement.discard()  # nothing is left to discard once it is in its place


def check_writable(target: Path, option: str = "-o") -> None:
    """Raises OutputError if `target`, given with `option`, cannot be written. Call it before any paid call."""
    Replacement(target, option=option).discard()


def needed_space(source: Path) -> int:
    """Bytes that a run over this input needs to begin: LEAST_SPACE, or less for a small file."""
    with suppress(OSError):
        if source.is_file():
            return min(LEAST_SPACE, _LEAST_OF_ALL + _SPACE_PER_BYTE * source.stat().st_size)
    return LEAST_SPACE


def check_space(folder: Path, needed: int = LEAST_SPACE) -> None:
    """Raises OutputError if the disk of `folder`, which may be missing yet, has less than so many bytes free."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise OutputError(
            f"{folder}: only {free / 1e6:.1f} MB are free, but at least {needed / 1e6:.0f} MB are needed; "
            "free some space"
        )


def _is_temporary_disk_full(target: Path, error: OSError) -> bool:
    """Whether it failed for lack of room where temporary files are, not where the target is."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return False
    temporary, folder = Path(tempfile.gettempdir()), Path(os.path.realpath(target)).parent
    return shutil.disk_usage(temporary).free < min(_FULL, shutil.disk_usage(folder).free)


_FULL = 1_000_000
"""Bytes that remain free on a disk that has no room for a whole buffer or file."""


@contextmanager
def output_errors(target: Path, option: str = "-o") -> Iterator[None]:
    """Turns an OSError into an OutputError with the path, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        if _is_temporary_disk_full(target, error):
            raise OutputError.no_temporary_space(target, error) from error
        problem = error.strerror or str(error)
        remedy = _REMEDIES.get(error.errno or 0, "choose another place with {option}").format(option=option)
        raise OutputError(f"{target}: cannot be written: {problem}; {remedy}") from error


_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another place with {option}",
    errno.EDQUOT: "free some space, or choose another place with {option}",
    errno.EACCES: "choose a folder that you may write to with {option}",
    errno.EPERM: "choose a folder that you may write to with {option}",
    errno.EROFS: "choose a folder that you may write to with {option}",
    errno.ENOTDIR: "part of the path is a file, not a folder; choose another place with {option}",
    errno.EEXIST: "part of the path is a file, not a folder; choose another place with {option}",
    errno.EISDIR: "name a file, not a folder, with {option}",
    errno.EINVAL: "name a file with {option}",
    errno.ENAMETOOLONG: "choose a shorter name with {option}",
}


def _mode_of(target: Path) -> int | None:
    """The permissions of an existing file; None when there is none yet."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(status.st_mode):  # a move would take the place of a device such as /dev/null
        raise OSError(errno.EINVAL, "It is a device or a pipe, not a file", str(target))
    return stat.S_IMODE(status.st_mode)


def _flush_to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    with suppress(OSError):  # the file is in its place already; some file systems cannot do this
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
