"""The store: what was committed is there, for this process, for others and after a kill."""

import sqlite3
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rag_eval.errors import StoreError
from rag_eval.store import Store

PAID = {"task": "t", "attempts": 1, "prompt_tokens": 3, "completion_tokens": 1}


def test_a_reply_is_there_after_reopening(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    assert store.reply("k") is None
    store.put_reply("k", reply='{"n": "ü\U0001f600"}', **PAID)
    store.end(keep=True)
    again = Store(tmp_path / "s")
    assert again.reply("k") == '{"n": "ü\U0001f600"}'
    again.end(keep=True)


def test_a_failure_is_never_served_as_a_reply_and_a_reply_replaces_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_failure("k", task="t", code="timeout", message="late")
    assert store.reply("k") is None
    store.put_reply("k", reply="{}", **PAID)
    assert store.reply("k") == "{}"
    store.end(keep=True)
    with sqlite3.connect(tmp_path / "s") as connection:
        assert connection.execute("SELECT count(*) FROM failures").fetchone() == (0,)
    connection.close()


def test_a_store_that_is_not_kept_leaves_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_reply("k", reply="{}", **PAID)
    store.end(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_r84_store_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache" / "s")
    store.put_reply("k", reply="{}", **PAID)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in [tmp_path / "cache", *(tmp_path / "cache").iterdir()]
    }
    store.end(keep=True)
    assert modes.pop("cache") == 0o700
    assert set(modes.values()) == {0o600}


def test_many_threads_may_write_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: store.put_reply(str(n), reply=f"[{n}]", **PAID), range(100)))
    assert [store.reply(str(n)) for n in range(100)] == [f"[{n}]" for n in range(100)]
    store.end(keep=True)


def test_r53_processes_share_a_store(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from rag_eval.store import Store
        store = Store(Path(sys.argv[1]))
        for n in range(100):
            paid = {"task": "t", "attempts": 1, "prompt_tokens": 0, "completion_tokens": 0}
            store.put_reply(f"{sys.argv[2]}-{n}", reply="{}", **paid)
        store.end(keep=True)
        """
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    processes = [subprocess.Popen([*command, name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    store = Store(tmp_path / "s")
    assert all(store.reply(f"{name}-{n}") for name in "abc" for n in range(100))
    store.end(keep=True)


def test_r41_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from rag_eval.store import Store
        store = Store(Path(sys.argv[1]))
        store.put_reply("k", reply="{}", task="t", attempts=1, prompt_tokens=0, completion_tokens=0)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    process = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=False)
    assert process.returncode == -9
    store = Store(tmp_path / "s")
    assert store.reply("k") == "{}"
    store.end(keep=True)


@pytest.mark.parametrize("content", [b"garbage, not a database" * 50, b"SQLite format 3\x00" + b"\xff" * 500])
def test_a_file_that_is_no_store_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(StoreError, match=str(tmp_path / "s")):
        Store(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == content


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        Store(tmp_path / "s")


def test_notes_are_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_note("dialect", "a")
    store.put_note("dialect", "b")
    assert (store.note("dialect"), store.note("other")) == ("b", None)
    store.end(keep=True)
