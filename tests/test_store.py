"""The store: what was committed is there, for this process, for others and after a kill; nothing else is."""

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rag_eval.errors import StoreError
from rag_eval.records import TaskUsage, Usage
from rag_eval.run.metered_store import MeteredStore, RunAccount
from rag_eval.store.lock import lock_path, locked
from rag_eval.store.reply_store import Store
from rag_eval.store.store_file import kind_of
from rag_eval.store.store_format import APPLICATION_ID, VERSION

PAID = {"task": "t", "attempts": 1, "prompt_tokens": 3, "completion_tokens": 1}
FAILED = {"task": "t", "code": "refused", "message": "no"}


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
    store.put_failure("k", **FAILED)
    assert (store.reply("k"), store.failure("k")) == (None, ("refused", "no"))
    store.put_reply("k", reply="{}", **PAID)
    assert (store.reply("k"), store.failure("k")) == ("{}", None)
    store.end(keep=True)


def test_what_earlier_runs_paid_for_the_replies_of_a_run_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_reply("old", reply="[1]", **PAID)
    store.put_reply("unused", reply="[2]", **PAID)
    store.put_reply("free", reply="[3]", **{**PAID, "prompt_tokens": 0, "completion_tokens": 0})
    store.put_reply("bundled", task="t", reply="[4]", attempts=0, prompt_tokens=0, completion_tokens=0)
    metered = MeteredStore(store, began := time.time())
    assert metered.usage() == {}
    assert [metered.reply(key) for key in ("old", "old", "none")] == ["[1]", "[1]", None]
    for tokens in (10, 20):
        metered.put_reply("new", task="u", reply="{}", attempts=2, prompt_tokens=tokens, completion_tokens=5)
    assert (metered.reply("new"), store.paid("new", began)) == ("{}", None)
    assert store.paid("new", time.time() + 1) == ("u", 20, 5)
    assert (metered.usage(), metered.uncounted) == ({"t": TaskUsage(1, 0, 3, 1)}, 0)
    assert (metered.reply("free"), metered.uncounted) == ("[3]", 1)
    assert (metered.reply("bundled"), metered.uncounted) == ("[4]", 1)
    metered.put_failure("f", **FAILED)
    metered.put_note("n", "v")
    assert (metered.failure("f"), store.failure("f")) == (("refused", "no"),) * 2
    assert (metered.note("n"), store.note("n")) == ("v", "v")
    metered.end(keep=False)
    assert not (tmp_path / "s").exists()


def test_what_a_killed_command_took_is_there_with_its_replies(tmp_path: Path) -> None:
    """Whatever was counted when a reply was committed; a failed call is counted as well."""
    took = Usage()
    killed = Store(tmp_path / "s")
    RunAccount(killed, "run a b c").follow(lambda: took)
    killed.put_note("n", "v")
    assert killed.note("run a b") is None, "nothing was sent"
    for number in (1, 2):
        took += Usage(
            requests=2,
            calls=1,
            cached=2,
            prompt_tokens=3,
            cost=0.5,
            by_task={"t": TaskUsage(1, 2, 3, 0, 0.5)},
        )
        killed.put_reply(f"k{number}", reply="{}", **PAID)
    took += Usage(requests=1, cost=0.25, by_task={"u": TaskUsage(cost=0.25)})
    killed.put_failure("f", **FAILED)

    store = Store(tmp_path / "s")
    now = Usage(requests=1, cached=5, cost=2.0, by_task={"t": TaskUsage(0, 5, 0, 0, 2.0)})
    account = RunAccount(store, "run a b c")
    assert account.began < time.time()
    assert account.total(now) == Usage(
        requests=6, calls=2, cached=1, prompt_tokens=6, cost=3.25, earlier_requests=5, earlier_cost=1.25,
        by_task={"t": TaskUsage(2, 1, 6, 0, 3.0), "u": TaskUsage(cost=0.25)},
    )  # fmt: skip
    assert account.total(Usage(requests=1)).cost is None, "its price is unknown"
    assert account.total(Usage()).cost == 1.25
    assert (
        RunAccount(store, "run a x c").total(now)
        == RunAccount(store, "run a b c", fresh=True).total(now)
        == now
    )
    other = RunAccount(store, "run a b d")
    assert (other.total(now), other.is_alone, account.is_alone) == (account.total(now), False, True)
    other.begin()
    other.end()
    account = RunAccount(store, "run a b c")
    assert (account.total(now), account.is_alone) == (now, True), "what was paid is in the other's report"
    account.end()
    assert (RunAccount(store, "run a b c").total(now), store.note("run a b")) == (now, None)
    for each in (store, killed):
        each.end(keep=True)


def test_what_a_store_lacks_is_looked_up_in_another_which_stays(tmp_path: Path) -> None:
    for name, reply in (("a", "[1]"), ("b", "[2]")):
        store = Store(tmp_path / name)
        store.put_reply(name, reply=reply, **PAID)
        store.put_note(f"note of {name}", reply)
        store.end(keep=True)
    another = (tmp_path / "b").read_bytes()
    both = Store(tmp_path / "a", another=tmp_path / "b")
    assert [both.reply(name) for name in ("a", "b", "c")] == ["[1]", "[2]", None]
    assert [both.note(f"note of {name}") for name in ("a", "b")] == ["[1]", "[2]"]
    both.end(keep=False)
    assert (tmp_path / "b").read_bytes() == another
    assert not (tmp_path / "a").exists()


def test_what_was_stored_before_can_be_left_unserved(tmp_path: Path) -> None:
    """All of it, or failures alone; the new ones replace them."""
    before = Store(tmp_path / "s")
    before.put_reply("r", reply="[1]", **PAID)
    before.put_failure("f", **FAILED)
    before.end(keep=True)

    retrying = Store(tmp_path / "s")
    retrying.ignore_before(failures=time.time())
    assert (retrying.reply("r"), retrying.failure("f")) == ("[1]", None)
    retrying.end(keep=True)

    fresh = Store(tmp_path / "s")
    fresh.ignore_before(time.time())
    assert (fresh.reply("r"), fresh.failure("f")) == (None, None)
    fresh.put_reply("r", reply="[2]", **PAID)
    fresh.put_failure("f", task="t", code="truncated", message="cut")
    assert (fresh.reply("r"), fresh.failure("f")) == ("[2]", ("truncated", "cut"))
    fresh.end(keep=True)

    after = Store(tmp_path / "s")
    assert (after.reply("r"), after.failure("f")) == ("[2]", ("truncated", "cut"))
    after.end(keep=True)


def test_a_clock_that_was_put_back_lets_nothing_from_before_be_served(tmp_path: Path) -> None:
    """Replies and failures of tomorrow are from before all the same, and what follows is served."""
    before = Store(tmp_path / "s")
    before.ignore_before(tomorrow := time.time() + 86_400)
    before.put_reply("r", reply="[1]", **PAID)
    before.put_failure("f", **FAILED)
    before.end(keep=True)
    for options in ({"another": tmp_path / "s"}, {}):
        store = Store(tmp_path / ("t" if options else "s"), **options)
        assert (store.reply("r"), store.next_moment() > tomorrow) == ("[1]", True)
        account = RunAccount(store, "run a b c", fresh=True)
        assert (store.reply("r"), store.failure("f")) == (None, None)
        assert account.began >= account.since > tomorrow
        store.put_reply("r", reply="[2]", **PAID)
        store.put_failure("f", task="t", code="truncated", message="cut")
        assert (store.reply("r"), store.failure("f")) == ("[2]", ("truncated", "cut"))
        store.end(keep=True)


def test_an_unserved_failure_is_kept_until_there_is_a_reply(tmp_path: Path) -> None:
    before = Store(tmp_path / "s")
    before.put_failure("f", **FAILED)
    before.end(keep=True)
    retrying = Store(tmp_path / "s")
    retrying.ignore_before(failures=time.time())
    retrying.end(keep=True)
    after = Store(tmp_path / "s")
    assert after.failure("f") == ("refused", "no")
    after.end(keep=True)


def test_a_store_that_is_not_kept_leaves_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_reply("k", reply="{}", **PAID)
    store.end(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_kept_is_one_file(tmp_path: Path) -> None:
    """Nothing lies about: no lock, no temporary file, no log of changes."""
    store = Store(tmp_path / "s")
    store.put_reply("k", reply="{}", **PAID)
    store.end(keep=True)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    """WAL with synchronous=FULL: a commit returns only when the log was flushed."""
    store = Store(tmp_path / "s")
    pragmas = [
        store._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "busy_timeout")
    ]
    store.end(keep=True)
    assert pragmas == ["wal", 2, 30_000]


def test_store_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
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


def test_threads_that_wait_for_the_disk_share_a_commit(tmp_path: Path) -> None:
    """None of them returns before its reply is committed, and a reader waits for none of them."""
    store = Store(tmp_path / "s")
    store.put_reply("before", reply="[0]", **PAID)
    commits: list[str] = []
    store._connection.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
    with ThreadPoolExecutor(8) as pool, closing(sqlite3.connect(tmp_path / "s")) as other:
        other.execute("BEGIN IMMEDIATE")
        writes = [pool.submit(store.put_reply, str(n), reply=f"[{n}]", **PAID) for n in range(8)]
        while len(store._unwritten) < 8:
            time.sleep(0.001)
        assert store.reply("before") == "[0]"
        assert [write.done() for write in writes] == [False] * 8
        other.rollback()
    assert len(commits) <= 2  # of the one that came first, and of those that waited for it
    assert [store.reply(str(n)) for n in range(8)] == [f"[{n}]" for n in range(8)]
    store.end(keep=True)


def test_a_commit_that_fails_fails_for_each_that_waited_for_it_and_for_none_after(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with ThreadPoolExecutor(8) as pool:
        writes = [pool.submit(store.put_reply, str(n), reply="x" * 10_000, **PAID) for n in range(8)]
        errors = [write.exception() for write in writes]
    assert {type(error) for error in errors} == {StoreError}
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.put_reply("after", reply="[1]", **PAID)
    assert [store.reply(key) for key in ("0", "7", "after")] == [None, None, "[1]"]
    store.end(keep=True)


def test_what_is_written_is_not_written_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for number in range(5):
        store.put_reply(str(number), reply="{}", **PAID)
        assert store._unwritten == []
    inserted: list[str] = []
    store._connection.set_trace_callback(
        lambda sql: inserted.append(sql) if sql.startswith("INSERT") else None
    )
    store.put_reply("last", reply="{}", **PAID)
    store.end(keep=True)
    assert len(inserted) == 1


def together(store: Store, writes: Sequence[Callable[[], None]]) -> list[BaseException | None]:
    """The errors of writes that share a commit, by threads that wait for the same moment."""
    with ThreadPoolExecutor(len(writes)) as pool:
        with store._writing:
            futures = [pool.submit(write) for write in writes]
            while len(store._unwritten) < len(writes):
                time.sleep(0.001)
        return [future.exception() for future in futures]


@pytest.mark.parametrize("bad", range(4))
def test_a_write_that_cannot_be_made_takes_no_other_with_it(tmp_path: Path, bad: int) -> None:
    """Those that share a commit are then committed one by one."""
    store = Store(tmp_path / "s")
    store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5_000)
    texts = ["x" * (10_000 if number == bad else 10) for number in range(4)]
    errors = together(
        store,
        [partial(store.put_reply, str(number), reply=text, **PAID) for number, text in enumerate(texts)],
    )
    assert [type(error) for error in errors] == [StoreError if n == bad else type(None) for n in range(4)]
    assert "string or blob too big" in str(errors[bad])
    served = [store.reply(str(number)) for number in range(4)]
    assert served == [None if number == bad else text for number, text in enumerate(texts)]
    assert store._unwritten == []
    store.end(keep=True)


def test_a_store_that_stays_taken_is_waited_for_once(tmp_path: Path) -> None:
    """And not once more for each write that shares the commit: that would be minutes."""
    store = Store(tmp_path / "s")
    store._connection.execute("PRAGMA busy_timeout = 100")
    begun: list[str] = []
    store._connection.set_trace_callback(begun.append)
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        errors = together(store, [partial(store.put_note, str(number), "v") for number in range(4)])
    assert ["database is locked" in str(error) for error in errors] == [True] * 4
    assert begun == ["BEGIN IMMEDIATE"]
    assert store._unwritten == []
    store.end(keep=True)


@pytest.mark.parametrize("tokens", [2**63 - 1, 2**63, 10**30])
def test_counts_of_tokens_may_be_of_any_size(tmp_path: Path, tokens: int) -> None:
    """What an endpoint counts is not ours to check, and its reply is paid for."""
    store = Store(tmp_path / "s")
    for key in "ab":
        store.put_reply(key, task="t", reply="{}", attempts=1, prompt_tokens=tokens, completion_tokens=tokens)
    assert store.reply("a") == "{}"
    (task,) = store.overview()
    assert (task.prompt_tokens, task.completion_tokens) == (
        2**63 - 1,
        2**63 - 1,
    )  # the sum is no error either
    store.end(keep=True)


def test_text_that_no_file_can_hold_is_spelled_out(tmp_path: Path) -> None:
    """Lone surrogates: half of a character that an endpoint cut."""
    store = Store(tmp_path / "s")
    store.put_reply("r", reply='"\ud83d"', **PAID)
    store.put_failure("f", task="t", code="refused", message="cut \ud83d")
    assert store.reply("r") == '"\\ud83d"'
    assert store.failure("f") == ("refused", "cut \\ud83d")
    store.end(keep=True)


_FILL = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from rag_eval.store.reply_store import Store
    store = Store(Path(sys.argv[1]), on_damage=print)
    for n in range(int(sys.argv[3])):
        paid = {"task": "t", "attempts": 1, "prompt_tokens": 0, "completion_tokens": 0}
        store.put_reply(f"{sys.argv[2]}-{n}", reply="{}", **paid)
    store.end(keep=True)
    """
)


def fill_from_processes(path: Path, rows: int) -> str:
    """What three processes said while each stored so many replies, all at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _FILL, str(path), name, str(rows)], stdout=subprocess.PIPE, text=True
        )
        for name in "abc"
    ]
    said = "".join(process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0, 0]
    return said


def test_processes_share_a_store(memory_path: Path) -> None:
    """They begin it at the same time, too."""
    assert fill_from_processes(memory_path / "s", rows=800) == ""
    store = Store(memory_path / "s")
    assert all(store.reply(f"{name}-{n}") for name in "abc" for n in range(800))
    store.end(keep=True)


def test_processes_that_meet_a_damaged_store_set_it_aside_once(tmp_path: Path) -> None:
    """Otherwise the second would take the first one's new store away."""
    (tmp_path / "s").write_bytes(b"garbage, not a database" * 50)
    assert fill_from_processes(tmp_path / "s", rows=20).count("damaged") == 2  # the reason and the new name
    store = Store(tmp_path / "s")
    assert all(store.reply(f"{name}-{n}") for name in "abc" for n in range(20))
    store.end(keep=True)
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from rag_eval.store.reply_store import Store
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


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage, not a database" * 50)


def garbage_with_the_right_beginning(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 500)


def empty(path: Path) -> None:
    path.touch()


def cut_off(path: Path) -> None:
    store = Store(path)
    for n in range(50):
        store.put_reply(str(n), reply='"' + "x" * 1000 + '"', **PAID)
    store.end(keep=True)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwritten_in_the_middle(path: Path) -> None:
    cut_off(path)
    path.unlink()
    store = Store(path)
    for n in range(50):
        store.put_reply(str(n), reply='"' + "x" * 1000 + '"', **PAID)
    store.end(keep=True)
    content = bytearray(path.read_bytes())
    content[5 * 4096 : 10 * 4096] = b"\xa5" * 5 * 4096
    path.write_bytes(content)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x')")


def marked_by_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA application_id = 252006675; CREATE TABLE replies (key TEXT)")


def a_spreadsheet(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + b"\x00" * 2000)


DAMAGES = [
    garbage, garbage_with_the_right_beginning, empty, cut_off, overwritten_in_the_middle, of_another_program,
    marked_by_another_program, a_spreadsheet,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_store_is_renamed_and_a_new_one_begun(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "s")
    content = (tmp_path / "s").read_bytes()
    said: list[str] = []
    store = Store(tmp_path / "s", on_damage=said.append)
    store.put_reply("k", reply="{}", **PAID)
    assert store.reply("k") == "{}"
    store.end(keep=True)
    (aside,) = [path for path in tmp_path.iterdir() if path.name != "s"]
    assert aside.name.startswith("s.damaged-20")
    assert aside.read_bytes() == content
    (sentence,) = said
    assert str(tmp_path / "s") in sentence
    assert aside.name in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_unless_told_otherwise_a_damaged_store_is_an_error_and_left_alone(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "s")
    content = (tmp_path / "s").read_bytes()
    with pytest.raises(StoreError, match=str(tmp_path / "s")):
        Store(tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert (tmp_path / "s").read_bytes() == content


def test_changes_that_belong_to_a_file_that_is_gone_are_not_taken_into_a_new_one(tmp_path: Path) -> None:
    old = Store(tmp_path / "s")
    old.put_reply("k", reply="{}", **PAID)
    log = (tmp_path / "s-wal").read_bytes()
    old.end(keep=False)
    (tmp_path / "s-wal").write_bytes(log)
    said: list[str] = []
    store = Store(tmp_path / "s", on_damage=said.append)
    assert store.reply("k") is None
    store.end(keep=True)
    (aside,) = [path for path in tmp_path.iterdir() if path.name != "s"]
    assert aside.read_bytes() == log
    assert "missing" in said[0]


def test_every_damaged_store_keeps_a_name_of_its_own(tmp_path: Path) -> None:
    for _ in range(3):
        garbage(tmp_path / "s")
        Store(tmp_path / "s", on_damage=lambda sentence: None).end(keep=True)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_store_of_another_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store(tmp_path / "s").end(keep=True)
    with closing(sqlite3.connect(tmp_path / "s")) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    said: list[str] = []
    with pytest.raises(StoreError, match="another version"):
        Store(tmp_path / "s", on_damage=said.append)
    assert said == []
    with closing(sqlite3.connect(tmp_path / "s")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=str(tmp_path / "file")):
        Store(tmp_path / "file" / "s")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(StoreError, match=f"{name}: is not a file; move it away"):
            Store(tmp_path / name, on_damage=lambda sentence: None)
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder", "pipe"}


def test_a_store_is_opened_by_one_at_a_time(tmp_path: Path) -> None:
    """So that neither takes what the other just began for damage."""
    with ThreadPoolExecutor(1) as pool:
        with locked(tmp_path / "s"):
            opening = pool.submit(Store, tmp_path / "s")
            with pytest.raises(TimeoutError):
                opening.result(timeout=0.2)
            assert not (tmp_path / "s").exists()
        opening.result(timeout=10).end(keep=True)
    assert not lock_path(tmp_path / "s").exists()


def test_notes_are_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.put_note("dialect", "a")
    store.put_note("dialect", "b")
    assert (store.note("dialect"), store.note("other")) == ("b", None)
    store.end(keep=True)


MOUNTS = """\
/dev/vda1 / ext4 rw 0 0
server:/share /mnt/team nfs4 rw 0 0
/dev/vdb1 /mnt/team/local xfs rw 0 0
//server/x /mnt/two\\040words cifs rw 0 0
tmpfs /mnt/teamwork tmpfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/cache", "ext4"),
        ("/mnt/team", "nfs4"),
        ("/mnt/team/a/b", "nfs4"),
        ("/mnt/team/local/b", "xfs"),
        ("/mnt/teamwork/b", "tmpfs"),
        ("/mnt/two words/b", "cifs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path, folder: str, kind: str) -> None:
    (tmp_path / "mounts").write_bytes(b"/dev/sdb1 /mnt/caf\xe9 vfat rw 0 0\n" + MOUNTS.encode())
    assert kind_of(Path(folder), tmp_path / "mounts") == kind
    assert kind_of(Path(folder), tmp_path / "nowhere") == ""


@pytest.mark.parametrize(("kind", "journal"), [("nfs4", "delete"), ("ext4", "wal"), ("", "wal")])
def test_a_store_on_another_computer_has_no_write_ahead_log(tmp_path: Path, kind: str, journal: str) -> None:
    """Said in a sentence; what is stored is served, also by a run that finds it on a disk of its own."""
    told: list[str] = []
    path = tmp_path / "replies.sqlite"
    store = Store(path, on_network=told.append, file_system=lambda folder: kind)
    store.put_reply("k", task="t", reply="{}", attempts=1, prompt_tokens=1, completion_tokens=1)
    assert store.reply("k") == "{}"
    store.end(keep=True)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
    assert ["network file system" in sentence for sentence in told] == ([True] if kind == "nfs4" else [])
    again = Store(path)
    assert again.reply("k") == "{}"
    again.end(keep=True)
