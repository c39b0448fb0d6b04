"""What can be read of a store that was cut, overwritten or says a wrong version is kept, and nothing else is."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from test_store import FAILED, PAID
from test_store_damage import EARLIER, KEPT, WHOLE, change, content, small_store

from rag_eval.errors import StoreError
from rag_eval.store.reply_store import Store
from rag_eval.store.store_format import VERSION

PAGE = 4096
REPLIES = {
    hashlib.sha256(str(number).encode()).hexdigest(): f'{{"verdict": "{number:03} {"ä" * 100}"}}'
    for number in range(300)
}
LONG = {f"long {number}": f'"{"".join(str(n) for n in range(number, number + 4000))}"' for number in range(5)}
"""Each takes several pages."""


def filled(path: Path, replies: dict[str, str]) -> bytes:
    """The bytes of a store of these replies, each of which is there once."""
    store = Store(path)
    for key, reply in replies.items():
        store.put_reply(key, reply=reply, **PAID)
    store.put_failure("f", **FAILED)
    store.end(keep=True)
    change(path, "VACUUM")
    return path.read_bytes()


def served(path: Path, replies: dict[str, str], *, is_dry: bool = False) -> set[str]:
    """The keys whose replies the store has. None of them is another than was stored."""
    store = Store(path, on_damage=lambda sentence: None, is_dry=is_dry)
    found = {key: store.reply(key) for key in replies}
    store.end(keep=True)
    assert all(reply in (None, replies[key]) for key, reply in found.items())
    return {key for key, reply in found.items() if reply is not None}


def left_in(damaged: bytes, whole: bytes) -> set[str]:
    """The keys whose rows, and the beginnings of the pages that tell where these are, are as they were."""
    left = set()
    for key, reply in REPLIES.items():
        text = f"{key}t{reply}".encode()
        place = whole.index(text)
        page = place // PAGE * PAGE
        row, list_of_rows = (
            slice(place - 20, min(place + len(text) + 40, page + PAGE)),
            slice(page, page + 100),
        )
        if all(damaged[part] == whole[part] for part in (row, list_of_rows)):
            left.add(key)
    return left


def cut(share: float, *, spare: int = 0) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * share) // PAGE * PAGE + spare]


def with_zeroes(share: float) -> Callable[[bytes], bytes]:
    return lambda data: cut(share)(data).ljust(len(data), b"\0")


def without_pages(*pages: int) -> Callable[[bytes], bytes]:
    """Overwritten; counted from 1."""

    def damage(data: bytes) -> bytes:
        changed = bytearray(data)
        for page in pages:
            changed[(page - 1) * PAGE : page * PAGE] = b"\xa5" * PAGE
        return bytes(changed)

    return damage


DAMAGES = {
    "one page less": lambda data: data[:-PAGE],
    "95 %": cut(0.95),
    "80 %": cut(0.8),
    "60 %": cut(0.6),
    "within a page": cut(0.8, spare=PAGE - 1500),
    "zeroes at the end": with_zeroes(0.8),
    "zeroes, then cut": lambda data: with_zeroes(0.7)(data)[:-100],
    "two holes": without_pages(12, 20),
    "every third page": without_pages(*range(9, 30, 3)),
    "no page where replies begin": without_pages(2),
    "no names of tables": lambda data: data[:100] + b"\0" * (PAGE - 100) + data[PAGE:],
    "no header": lambda data: b"\0" * 100 + data[100:],
    "another size of pages": lambda data: data[:16] + b"\x20\0" + data[18:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_every_reply_that_is_still_in_a_damaged_file_is_kept(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "s"
    whole = filled(path, REPLIES)
    damaged = damage(whole)
    path.write_bytes(damaged)
    expected = left_in(damaged, whole)
    assert len(expected) > 100
    assert served(path, REPLIES, is_dry=True) >= expected
    assert (path.read_bytes(), len(list(tmp_path.iterdir()))) == (damaged, 1)
    assert served(path, REPLIES) >= expected
    (aside,) = (each for each in tmp_path.iterdir() if each.name != "s")
    assert aside.read_bytes() == damaged
    store = Store(path)  # it is intact now
    store.put_reply("more", reply="{}", **PAID)
    store.end(keep=True)
    assert served(path, REPLIES) >= expected


def test_a_store_of_one_byte_less_loses_one_reply_at_most(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(filled(path, REPLIES)[:-1])
    assert len(served(path, REPLIES)) >= len(REPLIES) - 1
    assert len(served(path, REPLIES)) >= len(REPLIES) - 1


def test_of_a_store_that_was_cut_rows_of_every_table_are_kept(tmp_path: Path) -> None:
    """Small tables are at the beginning, and are found by their names."""
    path = tmp_path / "s"
    path.write_bytes(cut(0.8)(filled(path, REPLIES)))
    store = Store(path, on_damage=lambda sentence: None)
    assert store.failure("f") == ("refused", "no")
    store.end(keep=True)


def test_replies_of_several_pages_are_kept_unless_one_of_these_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "s"
    data = filled(path, LONG)
    path.write_bytes(data[:-PAGE])
    assert len(served(path, LONG)) == len(LONG) - 1
    for each in tmp_path.iterdir():
        each.unlink()
    path.write_bytes(b"\0" * 100 + data[100:])
    assert served(path, LONG) == set(LONG)


def test_a_changed_reply_is_not_taken_from_a_page(tmp_path: Path) -> None:
    path = tmp_path / "s"
    data = filled(path, REPLIES)
    path.write_bytes(b"\0" * 100 + data[100:].replace(b'"verdict": "0', b'"verdict": "9'))
    kept = served(path, REPLIES)
    assert kept == {key for key, reply in REPLIES.items() if '"verdict": "0' not in reply}


def test_deleted_rows_do_not_come_back_from_pages_that_are_no_longer_used(tmp_path: Path) -> None:
    """A failure that was mended would keep its case from being asked again."""
    path = tmp_path / "s"
    store = Store(path)
    for number in range(200):
        store.put_failure(f"{number:03}", task="t", code="refused", message="no" * 100)
    store.end(keep=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA secure_delete = OFF; DELETE FROM failures WHERE key > '010';")
    store = Store(path)
    for number in range(50):
        store.put_reply(f"{number:03}", reply=f'"{"x" * 50}"', **PAID)
    store.end(keep=True)
    data = path.read_bytes()
    assert data.count(b"nono" * 40) > 0, "SQLite leaves them in the file"
    for damaged in (without_pages(2)(data), b"\0" * 100 + data[100:], data[:-PAGE], data[: PAGE * 8]):
        for each in tmp_path.iterdir():
            each.unlink()
        path.write_bytes(damaged)
        store = Store(path, on_damage=lambda sentence: None)
        assert {store.failure(f"{number:03}") for number in range(11, 200)} == {None}
        store.end(keep=True)


def test_bytes_that_only_look_like_pages_are_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "s"
    data = filled(path, REPLIES)
    noise = b"".join(hashlib.sha512(str(number).encode()).digest() for number in range(640))
    contents = (noise[: PAGE - 1], b"\xff" * (PAGE - 1), b"\0" * (PAGE - 1))
    looks_like = b"".join(kind + each for kind in (b"\x02", b"\x0a") for each in contents)
    path.write_bytes(b"\0" * 100 + data[100:] + looks_like + noise)
    assert served(path, REPLIES) == set(REPLIES)


# Versions


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_store_that_says_an_earlier_version_is_set_aside_and_nothing_is_lost(
    tmp_path: Path, version: int
) -> None:
    path = small_store(tmp_path / "s")
    change(path, f"PRAGMA user_version = {version}")
    for is_dry in (False, True):
        with pytest.raises(StoreError, match="is damaged"):
            Store(path, is_dry=is_dry)
    said: list[str] = []
    assert content(Store(path, on_damage=said.append, is_dry=True)) == WHOLE
    assert content(Store(path, on_damage=said.append)) == WHOLE
    assert content(Store(path)) == WHOLE
    assert ["keeps 3 intact replies" in said[0], "its 3 intact replies" in said[1]] == [True, True]


@pytest.mark.parametrize("version", [1, 2])
def test_what_bars_a_migration_is_damage(tmp_path: Path, version: int) -> None:
    """The name of a new table is taken by something else."""
    path = Path(shutil.copy(EARLIER[version - 1], tmp_path / "s"))
    change(path, "CREATE INDEX Jobs ON notes (value)")
    said: list[str] = []
    store = Store(path, on_damage=said.append)
    found = {key: store.reply(key) for key in KEPT}
    store.end(keep=True)
    assert "is damaged (it says version" in said[0]
    assert found == (KEPT if version == 2 else dict.fromkeys(KEPT)), (
        "rows of the first version have no checksum"
    )


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


@pytest.mark.parametrize("mask", [1, 128])
def test_no_bit_of_the_header_costs_a_reply_or_ends_every_command(tmp_path: Path, mask: int) -> None:
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
        assert content(store) == WHOLE, byte
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), byte
