"""Damaged and earlier stores: what is damaged is not served, said once, and takes nothing else with it."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from test_store import FAILED, PAID, fill_from_processes

from rag_eval.errors import StoreError
from rag_eval.store.reply_store import Store
from rag_eval.store.store_format import VERSION

EARLIER = [Path(__file__).parent / "stores" / f"format{number}.sqlite" for number in (1, 2)]
TEA = '{"statements":[{"statement":"Tee schmeckt \U0001f375 süß.","reason":"so","verdict":1}]}'
KEPT = {
    "a" * 64: TEA,
    "b" * 64: '{"reason":"polite","toxicity":0.0}',
    "c" * 64: '{"classifications":[]}',
}
"""The replies in it."""


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
    (with_another_column, "its table of replies has other columns", set()),
    (with_a_column_more, "its table of replies has other columns", set()),
    (without_a_key, "its table of replies has other columns", set()),
    (without_version, "it has no version", set()),
    (with_an_impossible_version, "it has no version", set()),
    (only_to_be_read, "its header is not one of SQLite's", set()),
    (with_a_name_that_is_no_text, "", set()),
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


def test_on_both_sides_of_a_hole_in_the_file_rows_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = Store(path)
    for number in range(100):
        store.put_reply(f"{number:03}", reply='"' + "x" * 1000 + '"', **PAID)
    store.end(keep=True)
    data = bytearray(path.read_bytes())
    middle = data.index(b"050t") // 4096 * 4096
    data[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    store = Store(path, on_damage=lambda sentence: None)
    served = {number for number in range(100) if store.reply(f"{number:03}")}
    store.end(keep=True)
    assert {*range(45), *range(56, 100)} <= served
    assert 50 not in served


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


# Stores of the version before


@pytest.fixture(params=EARLIER, ids=lambda path: path.stem)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store that an earlier version wrote."""
    return Path(shutil.copy(request.param, tmp_path / "s"))


def test_a_store_of_the_version_before_is_served_and_brought_up_to_date(earlier: Path) -> None:
    path = earlier
    for _ in range(2):
        store = Store(path)
        assert {key: store.reply(key) for key in KEPT} == KEPT
        assert store.failure("d" * 64) == ("refused", "the judge refused")
        assert store.note("dialect http://127.0.0.1") == '{"takes_temperature":false}'
        assert [(task.task, task.replies, task.prompt_tokens) for task in store.overview()] == [
            ("context_recall", 1, 120), ("faithfulness.verdicts", 1, 310), ("toxicity", 1, 0),
        ]  # fmt: skip
        store.end(keep=True)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    change(path, "UPDATE replies SET reply = '{}' WHERE key LIKE 'a%'")
    with pytest.raises(StoreError, match=r"\(replies: 1\)"):
        Store(path)


BEFORE = {
    "no text": "UPDATE replies SET reply = CAST(x'7bff7d' AS TEXT) WHERE task = 'toxicity'",
    "no JSON": "UPDATE replies SET reply = '{\"reason\":' WHERE task = 'toxicity'",
    "too deep": "UPDATE replies SET reply = replace(hex(zeroblob(50000)), '00', '[') WHERE task = 'toxicity'",
    "bytes": "UPDATE replies SET reply = CAST(reply AS BLOB) WHERE task = 'toxicity'",
    "a key that is no text": "UPDATE replies SET key = CAST(x'ff' AS TEXT) WHERE task = 'toxicity'",
}


@pytest.mark.parametrize("statement", BEFORE.values(), ids=BEFORE)
def test_what_is_damaged_in_a_store_of_the_version_before_is_dropped(earlier: Path, statement: str) -> None:
    path = earlier
    change(path, statement)
    before = path.read_bytes()
    for is_dry in (False, True):
        with pytest.raises(StoreError, match=r"damaged rows \(replies: 1\); run again without"):
            Store(path, is_dry=is_dry)
    assert path.read_bytes() == before, "and it is not migrated by halves"
    said: list[str] = []
    for is_dry in (True, False, False):
        store = Store(path, on_damage=said.append, is_dry=is_dry)
        assert {key: store.reply(key) for key in KEPT} == KEPT | {"b" * 64: None}
        store.end(keep=True)
    assert ["dropped them" in sentence for sentence in said] == [False, True]


def test_a_dry_run_reads_a_store_of_the_version_before_and_leaves_it(earlier: Path) -> None:
    path, before = earlier, earlier.read_bytes()
    store = Store(path, is_dry=True)
    assert {key: store.reply(key) for key in KEPT} == KEPT
    assert store.failure("d" * 64) == ("refused", "the judge refused")
    assert len(store.overview()) == 3
    store.end(keep=True)
    assert path.read_bytes() == before


def test_processes_that_meet_a_store_of_the_version_before_migrate_it_once(earlier: Path) -> None:
    path = earlier
    assert fill_from_processes(path, rows=5) == ""
    store = Store(path)
    assert {key: store.reply(key) for key in KEPT} == KEPT
    assert all(store.reply(f"{name}-{n}") for name in "abc" for n in range(5))
    store.end(keep=True)


_EVERY_STEP = textwrap.dedent(
    """
    import os, shutil, signal, sys
    from pathlib import Path
    from io_faults import Faults
    from rag_eval.errors import StoreError
    from rag_eval.store.reply_store import Store

    class Kills(Faults):
        def step(self, what, *, needs_room=True):
            if super().step(what, needs_room=needs_room):
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    source, target, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    number, status = 0, 1
    while status:
        number += 1
        for left in target.parent.glob(target.name + "*"):
            left.unlink()
        shutil.copy(source, target)
        pid = os.fork()
        if pid == 0:
            faults = Kills(number, lasts=False) if how == "kill" else Faults(number, lasts=how == "full")
            faults.install()
            try:
                Store(target, on_damage=lambda sentence: None).end(keep=True)
            except StoreError:
                os._exit(1)
            os._exit(0 if len(faults.steps) < number else 2)
        status = os.waitpid(pid, 0)[1]
        said = []
        store = Store(target, on_damage=said.append)
        found = store.reply("a" * 64), store.reply("b" * 64), store.failure("d" * 64)
        store.end(keep=True)
        left = sorted(path.name for path in target.parent.glob(target.name + "*"))
        print(number, status, [each and len(each) for each in found], len(said), len(left))
    """
)


@pytest.mark.parametrize("source", EARLIER, ids=lambda path: path.stem)
@pytest.mark.parametrize("how", ["kill", "fail", "full"])
def test_a_migration_may_end_at_any_step_and_nothing_is_lost(tmp_path: Path, how: str, source: Path) -> None:
    """By a kill, an error, or a disk that becomes full. The next to open it finds everything."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    ended = subprocess.run(
        [sys.executable, "-c", _EVERY_STEP, source, tmp_path / "s", how],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rounds = [line.split(" ", 2) for line in ended.stdout.splitlines()]
    assert len(rounds) > 20
    assert {rest for _, _, rest in rounds} == {f"[{len(TEA)}, 34, 2] 0 1"}
    statuses = {int(status) for _, status, _ in rounds[:-1]}
    assert statuses <= ({signal.SIGKILL} if how == "kill" else {256, 512})
