"""Damaged stores: what is damaged is not served, said once, and takes with it only what SQLite cannot read."""

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from test_store import FAILED, PAID

from rag_eval.errors import StoreError
from rag_eval.store.reply_store import Store
from rag_eval.store.store_format import VERSION


def small_store(path: Path) -> Path:
    """Three replies, a failure and a note."""
    store = Store(path)
    for number, key in enumerate("abc"):
        store.put_reply(key, reply=f'{{"verdict": {number}}}', **PAID)
    store.put_failure("f", **FAILED)
    store.put_note("dialect", "{}")
    store.end(keep=True)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def content(store: Store) -> dict[str, object]:
    """Everything that a store serves of `small_store`, and its end."""
    served: dict[str, object] = {key: store.reply(key) for key in "abc"}
    served |= {"failure": store.failure("f"), "dialect": store.note("dialect")}
    store.end(keep=True)
    return served


WHOLE = {
    "a": '{"verdict": 0}', "b": '{"verdict": 1}', "c": '{"verdict": 2}', "failure": ("refused", "no"),
    "dialect": "{}",
}  # fmt: skip

ROWS = {
    "another reply": ("UPDATE replies SET reply = '{\"verdict\": 0}' WHERE key = 'b'", "b", "replies: 1"),
    "another key": ("UPDATE replies SET key = 'd' WHERE key = 'b'", "b", "replies: 1"),
    "another task": ("UPDATE replies SET task = 'u' WHERE key = 'b'", "b", "replies: 1"),
    "other tokens": ("UPDATE replies SET prompt_tokens = 4 WHERE key = 'b'", "b", "replies: 1"),
    "no text": ("UPDATE replies SET reply = CAST(x'7bff7d' AS TEXT) WHERE key = 'b'", "b", "replies: 1"),
    "bytes": ("UPDATE replies SET reply = CAST(reply AS BLOB) WHERE key = 'b'", "b", "replies: 1"),
    "a fraction": ("UPDATE replies SET attempts = 1.5 WHERE key = 'b'", "b", "replies: 1"),
    "text for a time": ("UPDATE replies SET stored_at = 'now' WHERE key = 'b'", "b", "replies: 1"),
    "no such time": ("UPDATE replies SET stored_at = 1e300 WHERE key = 'b'", "b", "replies: 1"),
    "no checksum": ("UPDATE replies SET checksum = x'' WHERE key = 'b'", "b", "replies: 1"),
    "another code": ("UPDATE failures SET code = 'truncated'", "failure", "failures: 1"),
    "another message": ("UPDATE failures SET message = 'yes'", "failure", "failures: 1"),
    "another note": ("UPDATE notes SET value = '[]'", "dialect", "notes: 1"),
}


@pytest.mark.parametrize(("statement", "lost", "count"), ROWS.values(), ids=ROWS)
def test_a_damaged_row_is_dropped_and_said_once_and_the_others_are_served(
    tmp_path: Path, statement: str, lost: str, count: str
) -> None:
    path = small_store(tmp_path / "s")
    change(path, statement)
    said: list[str] = []
    assert content(Store(path, on_damage=said.append)) == WHOLE | {lost: None}
    assert content(Store(path, on_damage=said.append)) == WHOLE | {lost: None}
    assert said == [
        f"{path}: the store of judge replies has damaged rows ({count}). RAG Eval dropped them and asks the judge for "
        "them again."
    ]
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize(("statement", "lost", "count"), ROWS.values(), ids=ROWS)
def test_a_dry_run_leaves_damaged_rows_and_does_not_serve_them(
    tmp_path: Path, statement: str, lost: str, count: str
) -> None:
    path = small_store(tmp_path / "s")
    change(path, statement)
    before = path.read_bytes()
    said: list[str] = []
    assert content(Store(path, on_damage=said.append, is_dry=True)) == WHOLE | {lost: None}
    assert path.read_bytes() == before
    assert said == [
        f"{path}: the store of judge replies has damaged rows ({count}). A run drops them and asks the judge for them "
        "again."
    ]


@pytest.mark.parametrize("is_dry", [False, True])
def test_damaged_rows_are_an_error_for_the_strict_and_stay(tmp_path: Path, is_dry: bool) -> None:
    path = small_store(tmp_path / "s")
    change(path, ROWS["another reply"][0], ROWS["another note"][0])
    before = path.read_bytes()
    with pytest.raises(StoreError) as refusal:
        Store(path, is_dry=is_dry)
    assert str(refusal.value) == (
        f"{path}: the store of judge replies has damaged rows (replies: 1, notes: 1); run again without "
        "--strict-cache, or move the file away"
    )
    assert path.read_bytes() == before


def test_one_bit_in_the_file_makes_no_other_verdict(tmp_path: Path) -> None:
    path = small_store(tmp_path / "s")
    data = path.read_bytes()
    assert data.count(b'"verdict": 1') == 1
    path.write_bytes(data.replace(b'"verdict": 1', b'"verdict": 0'))
    said: list[str] = []
    assert content(Store(path, on_damage=said.append)) == WHOLE | {"b": None}
    assert len(said) == 1


def test_a_key_out_of_order_hides_no_other_row(tmp_path: Path) -> None:
    path = small_store(tmp_path / "s")
    data = path.read_bytes()
    assert data.count(b'bt{"verdict": 1}') == 1
    path.write_bytes(data.replace(b'bt{"verdict": 1}', b'zt{"verdict": 1}'))
    said: list[str] = []
    assert content(Store(path, on_damage=said.append)) == WHOLE | {"b": None}
    assert content(Store(path)) == WHOLE | {"b": None}
    assert "(replies: 1)" in said[0]


def test_an_aged_row_is_not_a_damaged_one(tmp_path: Path) -> None:
    path = small_store(tmp_path / "s")
    change(path, "UPDATE replies SET stored_at = stored_at - 1000000")
    assert content(Store(path)) == WHOLE


def test_what_a_dropped_row_held_can_be_stored_again(tmp_path: Path) -> None:
    path = small_store(tmp_path / "s")
    change(path, ROWS["no text"][0])
    store = Store(path, on_damage=lambda sentence: None)
    store.put_reply("b", reply='{"verdict": 1}', **PAID)
    assert content(store) == WHOLE


# Files


def without(table: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        change(small_store(path), f"DROP TABLE {table}")

    damage.__name__ = f"without_{table}"
    return damage


def with_another_column(path: Path) -> None:
    change(small_store(path), "ALTER TABLE replies RENAME COLUMN reply TO answer")


def with_a_column_more(path: Path) -> None:
    change(small_store(path), "ALTER TABLE replies ADD COLUMN more TEXT")


def without_a_key(path: Path) -> None:
    change(
        small_store(path), "ALTER TABLE replies RENAME TO old", "CREATE TABLE replies AS SELECT * FROM old"
    )


def without_version(path: Path) -> None:
    change(small_store(path), "PRAGMA user_version = 0")


def of_an_earlier_format(path: Path) -> None:
    change(small_store(path), f"PRAGMA user_version = {VERSION - 1}", "DROP TABLE batch_calls")


def with_an_impossible_version(path: Path) -> None:
    change(small_store(path), f"PRAGMA user_version = {VERSION + 65536}")


def only_to_be_read(path: Path) -> None:
    """A bit of its header that tells SQLite so."""
    data = bytearray(small_store(path).read_bytes())
    data[18] = 3
    path.write_bytes(data)


def with_a_name_that_is_no_text(path: Path) -> None:
    data = small_store(path).read_bytes()
    path.write_bytes(data.replace(b"attempts INTEGER", b"\xc3ttempts INTEGER", 1))


def with_a_missing_value(path: Path) -> None:
    change(
        small_store(path),
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET sql = replace(sql, 'attempts INTEGER NOT NULL', 'attempts INTEGER')",
    )
    change(path, "UPDATE replies SET attempts = NULL WHERE key = 'b'", "PRAGMA writable_schema = 1",
           "UPDATE sqlite_master SET sql = replace(sql, 'attempts INTEGER', 'attempts INTEGER NOT NULL')")  # fmt: skip


FILES: list[tuple[Callable[[Path], None], str, set[str]]] = [
    (without("replies"), "it has no table of replies", {"a", "b", "c"}),
    (without("failures"), "it has no table of failures", {"failure"}),
    (without("notes"), "it has no table of notes", {"dialect"}),
    (with_another_column, "its table of replies has other columns", {"a", "b", "c"}),
    (with_a_column_more, "its table of replies has other columns", set()),
    (without_a_key, "its table of replies has other columns", set()),
    (without_version, "its format is 0, expected 3", set()),
    (of_an_earlier_format, "its format is 2, expected 3", set()),
    (with_an_impossible_version, "its format is 65539, expected 3", set()),
    (only_to_be_read, "its header is not one of SQLite's", set()),
    (with_a_name_that_is_no_text, "", {"a", "b", "c"}),
    (with_a_missing_value, "NULL value in replies.attempts", {"b"}),
]


@pytest.mark.parametrize(("damage", "reason", "lost"), FILES, ids=[damage.__name__ for damage, _, _ in FILES])
def test_of_a_damaged_file_that_is_set_aside_the_intact_rows_are_kept(
    tmp_path: Path, damage: Callable[[Path], None], reason: str, lost: set[str]
) -> None:
    """A dry run serves the same and leaves the file; strict runs are refused and leave it."""
    path = tmp_path / "s"
    damage(path)
    before = path.read_bytes()
    kept = {name: None if name in lost else value for name, value in WHOLE.items()}
    replies = sum(kept[key] is not None for key in "abc")
    for is_dry in (False, True):
        with pytest.raises(StoreError) as refusal:
            Store(path, is_dry=is_dry)
        assert "run again without --strict-cache" in str(refusal.value)
    said: list[str] = []
    assert content(Store(path, on_damage=said.append, is_dry=True)) == kept
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (before, ["s"])
    assert content(Store(path, on_damage=said.append)) == kept
    (aside,) = (each for each in tmp_path.iterdir() if each.name != "s")
    assert aside.read_bytes() == before
    wrong = f"{path}: the store of judge replies is damaged ({reason}"
    assert said[0].startswith(wrong)
    assert said[0].endswith(
        f"). A run renames it, keeps {replies} intact replies and asks the judge for the others again."
    )
    assert said[1].startswith(wrong)
    assert said[1].endswith(
        f"). RAG Eval renamed it to {aside.name}, began a new store with its {replies} intact replies, and asks the "
        "judge for the others again."
    )
    assert content(Store(path)) == kept, "and it is an intact store"


def test_a_file_of_another_program_is_not_read_into_a_store(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s")) as connection:
        connection.executescript(
            "CREATE TABLE replies (key TEXT, reply TEXT); INSERT INTO replies VALUES ('a', '1')"
        )
    said: list[str] = []
    store = Store(tmp_path / "s", on_damage=said.append)
    assert store.reply("a") is None
    store.end(keep=True)
    assert "began a new store with its 0 intact replies" in said[0]


def test_what_a_kill_left_of_a_new_store_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / ".rag-eval-s.new").write_bytes(b"half")
    assert content(Store(tmp_path / "s")) == dict.fromkeys(WHOLE)
    assert [each.name for each in tmp_path.iterdir()] == ["s"]


def test_a_new_store_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises((StoreError, sqlite3.Error)):
            Store(tmp_path / "s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [each.name for each in tmp_path.iterdir()] == []


# Pages

PAGE = 4096
REPLIES = {
    hashlib.sha256(str(number).encode()).hexdigest(): f'{{"verdict": "{number:03} {"ä" * 100}"}}'
    for number in range(300)
}


def served(path: Path) -> int:
    """How many of REPLIES the store has, none of them changed."""
    store = Store(path, on_damage=lambda sentence: None)
    found = {key: store.reply(key) for key in REPLIES}
    store.end(keep=True)
    assert all(reply in (None, REPLIES[key]) for key, reply in found.items())
    return len(REPLIES) - [*found.values()].count(None)


def cut(share: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share)]


def without_pages(*pages: int) -> Callable[[bytes], bytes]:
    """Overwritten; counted from 1."""

    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        for page in pages:
            changed[(page - 1) * PAGE : page * PAGE] = b"\xa5" * PAGE
        return bytes(changed)

    return damage


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "one page less": (lambda data: data[:-PAGE], 290),
    "cut": (cut(0.8), 200),
    "zeroes at the end": (lambda data: cut(0.8)(data).ljust(len(data), b"\0"), 200),
    "zeroes, then cut": (lambda data: cut(0.7)(data).ljust(len(data) - 100, b"\0"), 170),
    "two holes": (without_pages(12, 20), 260),
    "every third page": (without_pages(*range(9, 30, 3)), 190),
    "a hole, and changed replies": (
        lambda data: without_pages(12)(data.replace(b'"verdict": "0', b'"verdict": "9')), 170
    ),
    "no page where replies begin": (without_pages(2), 0),
    "no header": (lambda data: b"\0" * 100 + data[100:], 0),
}  # fmt: skip
"""And the number of replies, of 300, that are kept at least."""


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "kept"), DAMAGES.values(), ids=DAMAGES)
def test_replies_that_sqlite_can_still_read_are_kept(
    tmp_path: Path, damage: Callable[[bytes], bytes], kept: int
) -> None:
    path = tmp_path / "s"
    store = Store(path)
    for key, reply in REPLIES.items():
        store.put_reply(key, reply=reply, **PAID)
    store.end(keep=True)
    change(path, "VACUUM")
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    first = served(path)
    assert first >= kept
    (aside,) = (each for each in tmp_path.iterdir() if each.name != "s")
    assert aside.read_bytes() == damaged
    store = Store(path)  # it is intact now
    store.put_reply("more", reply="{}", **PAID)
    store.end(keep=True)
    assert served(path) == first


def test_damage_that_shows_only_when_something_is_written_does_not_end_every_command(tmp_path: Path) -> None:
    path = small_store(tmp_path / "s")
    change(
        path,
        "CREATE TRIGGER t BEFORE DELETE ON replies BEGIN SELECT * FROM missing; END",
        "UPDATE replies SET task = 'u' WHERE key = 'b'",
    )
    before = path.read_bytes()
    with pytest.raises(StoreError, match="run again without --strict-cache"):
        Store(path)
    assert path.read_bytes()[100:] == before[100:], "but for the kind of its journal"
    said: list[str] = []
    assert content(Store(path, on_damage=said.append)) == WHOLE | {"b": None}
    assert content(Store(path)) == WHOLE | {"b": None}
    assert "is damaged (no such table: main.missing). RAG Eval renamed it" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("mask", [1, 128])
def test_no_bit_of_the_header_ends_every_command_or_changes_a_reply(tmp_path: Path, mask: int) -> None:
    """SQLite may refuse the whole file; it is kept aside."""
    data = small_store(tmp_path / "s").read_bytes()
    for byte in range(100):
        path = tmp_path / str(byte)
        changed = bytearray(data)
        changed[byte] ^= mask
        path.write_bytes(changed)
        if (byte, mask) in ((62, 1), (63, 128)):
            with pytest.raises(StoreError, match="was written by another version of rag-eval"):
                Store(path, on_damage=lambda sentence: None)
            assert path.read_bytes() == changed
            continue
        store = Store(path, on_damage=lambda sentence: None)
        store.put_reply("d", reply="{}", **PAID)
        assert content(store) in (WHOLE, dict.fromkeys(WHOLE)), byte
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), byte
