"""The file of a store of replies: opened intact, or set aside and begun again."""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from rag_eval.errors import StoreError
from rag_eval.store import store_format
from rag_eval.store.store_format import APPLICATION_ID, READING_FAILED, VERSION

PATIENCE = 30.0
"""Seconds to wait for another process that uses the same store."""
_LAST_VERSION = 1000
"""No later version of rag-eval will write a larger number; it is damage."""
_JOURNALS = (b"\1\1", b"\2\2")
"""Bytes 18 and 19 of a file without and with a write-ahead log. SQLite only reads files of other numbers."""
_COMPANIONS = ("-wal", "-shm")
_FAULTS_OF_THE_FILE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""SQLITE_ERROR as well: the statements are always the same, so one that cannot be run is a fault of the file."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Connections:
    """Connections to one store. The reader has its own, so that reading never waits for a write to disk."""

    writer: sqlite3.Connection
    reader: sqlite3.Connection


def open_file(path: Path, on_damage: Tell | None, *, journal: str) -> _Connections:
    """Open the store at `path` to read and write, or begin one. The caller holds the lock of `path`.

    A file that is damaged, of an earlier format, or not a store, is renamed, and the intact rows that SQLite can read
    begin a new store. The damaged rows of a file that is otherwise intact are removed. `on_damage` is told of both in
    a sentence; without it, both raise StoreError and leave the file as it is.
    """
    found = _inspect(path)
    if found.damage:
        _begin_again(path, found.damage, on_damage)
    elif not path.exists():
        with _new_store(path) as (temporary, _):
            temporary.replace(path)
    try:
        return _opened(path, found, on_damage, journal)
    except READING_FAILED as error:
        # Not all damage shows before something is written. Left as it is, it would end every command.
        _begin_again(path, _damage_told_by(error), on_damage)
        return _opened(path, _Findings(), on_damage, journal)


def open_file_unchanged(path: Path, on_damage: Tell | None) -> _Connections:
    """Open the store at `path` to read what `open_file` would keep of it. The caller holds the lock of `path`."""
    found = _inspect(path)
    if found.damage:
        wrong = _damaged_file(path, found.damage)
        tell = _teller(on_damage, wrong)
        connection = _connection(":memory:")
        store_format.begin(connection)
        kept = _take_over(path, connection)
        tell(
            f"{wrong}. A run renames it, keeps {kept:,} intact replies and asks the judge for the others again."
        )
        return _Connections(connection, connection)
    if found.damaged_rows:
        wrong = _damaged_rows(path, found.damaged_rows)
        _teller(on_damage, wrong)(f"{wrong}. A run drops them and asks the judge for them again.")
    connection = _connection(path)
    return _Connections(connection, connection)


def remove(path: Path) -> None:
    """Remove a store that nobody has open."""
    for each in (*_companions(path), path):
        each.unlink(missing_ok=True)


def _opened(path: Path, found: "_Findings", on_damage: Tell | None, journal: str) -> _Connections:
    with ExitStack() as undo:
        writer = undo.enter_context(closing(_connection(path)))
        writer.execute(f"PRAGMA journal_mode = {journal}")
        if found.damaged_rows:
            _remove_damaged(writer, path, on_damage)
        reader = _connection(path)
        undo.pop_all()
    return _Connections(writer, reader)


# What there is


@dataclass(frozen=True, slots=True)
class _Findings:
    damage: str = ""
    """What is wrong with the file; empty when it is a store, or when there is none."""
    damaged_rows: Mapping[str, int] = field(default_factory=dict)
    """How many by table."""


def _inspect(path: Path) -> _Findings:
    """Raises StoreError for a store of a later version."""
    if not path.exists():
        # SQLite would take the changes noted there into the new file, of which they know nothing
        is_left_over = path.with_name(f"{path.name}-wal").exists()
        return _Findings("its main file is missing" if is_left_over else "")
    if not path.is_file():  # a pipe would be waited for
        raise StoreError(f"{path}: is not a file; move it away, or choose another [cache] directory")
    with path.open("rb") as file:
        header = file.read(20)
    if not header:
        return _Findings("it is empty")
    if header[18:] not in _JOURNALS:
        return _Findings("its header is not one of SQLite's")
    try:
        with closing(_connection(path)) as connection:
            return _look_through(connection, path)
    except READING_FAILED as error:
        return _Findings(_damage_told_by(error))


def _damage_told_by(error: Exception) -> str:
    """What is wrong with the file. An error that is no fault of the file is raised again."""
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _FAULTS_OF_THE_FILE:
        raise error
    return " ".join(str(error).split())


def _look_through(connection: sqlite3.Connection, path: Path) -> _Findings:
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        return _Findings("it is a database of another program")
    (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        return _Findings(" ".join(str(finding).split()))
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if VERSION < version <= _LAST_VERSION:
        raise StoreError(
            f"{path}: this store was written by another version of rag-eval (format {version}, expected {VERSION}); "
            "use that version, move the file away, or choose another [cache] directory"
        )
    if version != VERSION:
        return _Findings(f"its format is {version}, expected {VERSION}")
    if difference := store_format.difference(connection):
        return _Findings(difference)
    return _Findings("", store_format.count_damaged(connection))


def _connection(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, check_same_thread=False, isolation_level=None)
    with ExitStack() as undo:
        undo.callback(connection.close)
        store_format.define_functions(connection)
        connection.execute("PRAGMA synchronous = FULL")
        undo.pop_all()
    return connection


# What is made of it


def _remove_damaged(connection: sqlite3.Connection, path: Path, on_damage: Tell | None) -> None:
    """In one transaction: a kill, or an error, leaves everything as it was."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        dropped = store_format.remove_damaged(connection)
        if not dropped:  # another process did
            return
        wrong = _damaged_rows(path, dropped)
        tell = _teller(on_damage, wrong)
    tell(f"{wrong}. RAG Eval dropped them and asks the judge for them again.")


def _begin_again(path: Path, damage: str, on_damage: Tell | None) -> None:
    """Set the file aside, and begin a store with those of its rows that are intact."""
    wrong = _damaged_file(path, damage)
    tell = _teller(on_damage, wrong)
    with _new_store(path, damaged=path) as (temporary, kept):
        place = _set_aside(path, datetime.now())
        temporary.replace(path)
    tell(
        f"{wrong}. RAG Eval renamed it to {place.name}, began a new store with its {kept:,} intact replies, and asks "
        "the judge for the others again."
    )


@contextmanager
def _new_store(path: Path, *, damaged: Path | None = None) -> Iterator[tuple[Path, int]]:
    """A store next to `path`, to be moved there: empty, or with the intact rows of a damaged one; how many replies.

    Only its owner can read it, since replies may quote the texts judged. Only the holder of the lock uses its name, so
    that what a kill left there is removed.
    """
    temporary = path.with_name(f".rag-eval-{path.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(_connection(temporary)) as connection:
            connection.execute("PRAGMA journal_mode = MEMORY")  # a kill leaves no second file
            store_format.begin(connection)
            kept = _take_over(damaged, connection) if damaged else 0
        yield temporary, kept
    finally:
        temporary.unlink(missing_ok=True)


def _take_over(damaged: Path, target: sqlite3.Connection) -> int:
    """Copy the intact rows of a damaged file; returns how many of them are replies."""
    with target:
        target.execute("BEGIN")
        for table, row in _readable_rows(damaged):
            target.execute(*store_format.insertion(table, row))
    (replies,) = target.execute("SELECT count(*) FROM replies").fetchone()
    return int(replies)


def _readable_rows(damaged: Path) -> Iterator[tuple[str, store_format.Row]]:
    """Those that SQLite reads. The file is not changed, nor made."""
    address = f"{damaged.absolute().as_uri()}?mode=ro&immutable=1"
    with suppress(*READING_FAILED), closing(sqlite3.connect(address, uri=True)) as connection:
        # SQLite refuses a file that is shorter than its header says, unless it is told to expect damage.
        connection.execute("PRAGMA writable_schema = ON")
        store_format.define_functions(connection)
        yield from store_format.readable_rows(connection)


def _set_aside(path: Path, now: datetime) -> Path:
    """Rename the file and its companions; nothing that may have been paid for is ever deleted."""
    place = path.with_name(f"{path.name}.damaged-{now:%Y%m%d-%H%M%S-%f}")
    for source, target in zip((path, *_companions(path)), (place, *_companions(place)), strict=True):
        if source.exists():
            source.rename(target)
    return place


def _companions(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database."""
    return [path.with_name(path.name + suffix) for suffix in _COMPANIONS]


# What is said of it


def _damaged_file(path: Path, damage: str) -> str:
    return f"{path}: the store of judge replies is damaged ({damage})"


def _damaged_rows(path: Path, rows: Mapping[str, int]) -> str:
    counts = ", ".join(f"{table}: {number:,}" for table, number in rows.items())
    return f"{path}: the store of judge replies has damaged rows ({counts})"


def _teller(on_damage: Tell | None, wrong: str) -> Tell:
    if on_damage is None:
        raise StoreError(f"{wrong}; run again without --strict-cache, or move the file away")
    return on_damage


_OF_THE_KERNEL = "nfs nfs4 cifs smb3 smbfs 9p afs lustre gpfs ceph beegfs glusterfs"
_OF_USERS = "sshfs glusterfs ceph s3fs rclone goofys blobfuse gcsfuse"
NETWORK = frozenset((*_OF_THE_KERNEL.split(), *(f"fuse.{kind}" for kind in _OF_USERS.split())))
"""Kinds of file system that other computers may write to at the same time."""
_MOUNTS = Path("/proc/mounts")


def kind_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The kind of file system, such as 'ext4' or 'nfs4'; '' if unknown, as on every system but Linux.

    The folder is on the mount with the longest path above it; of mounts with equal paths, the last one counts.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    here = os.path.join(os.path.realpath(folder), "")
    found = [(os.path.join(_unescaped(line.split(" ")[1]), ""), line.split(" ")[2]) for line in lines]
    above = [
        (len(point), number, kind) for number, (point, kind) in enumerate(found) if here.startswith(point)
    ]
    return max(above)[2] if above else ""


def _unescaped(path: str) -> str:
    """Blanks and backslashes are written there by their number."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)
