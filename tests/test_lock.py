"""The lock: one holder at a time, named to everyone else, gone with its process."""

import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import azure, read_sheet, wait_for
from fake_judge import FakeJudge
from files import sheet_of
from forking import Forker

from rag_eval.errors import LockedError, OutputError
from rag_eval.store.lock import lock_path, locked

_HOLD = """
import sys
from pathlib import Path
from rag_eval.store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_elsewhere(target: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process holds the lock until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_second_process_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    target = tmp_path / "r.xlsx"
    with held_elsewhere(target) as process, pytest.raises(LockedError) as refusal, locked(target):
        pass
    message = str(refusal.value)
    for words in (
        str(target),
        f"process {process.pid} ",
        socket.gethostname(),
        f"since {time.strftime('%Y-')}",
    ):
        assert words in message
    assert refusal.value.exit_code == 75


def test_the_lock_is_free_again_and_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "r.xlsx"
    open_files = [*Path("/proc/self/fd").glob("*")]
    for _ in range(2):
        with locked(target):
            assert [path.name for path in tmp_path.iterdir()] == [".rag-eval-r.xlsx.lock"]
        assert list(tmp_path.iterdir()) == []
    assert len([*Path("/proc/self/fd").glob("*")]) == len(open_files)


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "r.xlsx"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    """After kill -9 its file is still there and means nothing."""
    target = tmp_path / "r.xlsx"
    with held_elsewhere(target) as process:
        process.kill()
        process.wait()
        assert lock_path(target).exists()
        with locked(target):
            assert str(os.getpid()) in lock_path(target).read_text()


def test_different_targets_do_not_hinder_each_other(tmp_path: Path) -> None:
    with locked(tmp_path / "a.xlsx"), locked(tmp_path / "b.xlsx"):
        held = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert held.keys() == {".rag-eval-a.xlsx.lock", ".rag-eval-b.xlsx.lock"}
    assert all(text.startswith(f"process {os.getpid()} on ") for text in held.values())


def test_two_names_of_one_file_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "r.xlsx").touch()
    (tmp_path / "link.xlsx").symlink_to("r.xlsx")
    with locked(tmp_path / "link.xlsx"):
        with pytest.raises(LockedError) as refusal, locked(tmp_path / "r.xlsx"):
            pass
        assert lock_path(tmp_path / "link.xlsx") == lock_path(tmp_path / "r.xlsx")
    assert f"(process {os.getpid()} on " in str(refusal.value)


def test_a_patient_one_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    target = tmp_path / "s"
    with held_elsewhere(target) as process:
        assert process.stdin is not None
        with ThreadPoolExecutor(1) as pool:
            entered = pool.submit(holder_inside, target)
            with pytest.raises(TimeoutError):
                entered.result(timeout=0.2)
            process.stdin.close()
            assert entered.result().startswith(f"process {os.getpid()} on ")


def holder_inside(target: Path) -> str:
    with locked(target, patience=60):
        return lock_path(target).read_text()


def test_patience_comes_to_an_end(tmp_path: Path) -> None:
    with locked(tmp_path / "s"), pytest.raises(LockedError), locked(tmp_path / "s", patience=0.1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="missing"), locked(tmp_path / "missing" / "r.xlsx"):
        pass


def test_never_two_holders_however_often_the_file_is_removed(tmp_path: Path) -> None:
    """Four processes take turns; the file is removed at every turn, and each turn must be undisturbed."""
    code = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from rag_eval.store.lock import locked
        for _ in range(40):
            with locked(Path(sys.argv[1]), patience=30):
                os.close(os.open(sys.argv[2], os.O_CREAT | os.O_EXCL))  # fails when another holder is inside
                os.unlink(sys.argv[2])
        """
    )
    command = [sys.executable, "-c", code, str(tmp_path / "target"), str(tmp_path / "inside")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_second_run_on_one_report_pays_nothing(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    """The judge keeps the first run waiting until the others have come and gone."""
    others_are_done = threading.Event()
    judge.always = lambda request: others_are_done.wait(60) and None
    sheet_of(tmp_path / "in.xlsx", rows=1)
    first = forker.start(tmp_path, "in.xlsx", "-o", "r.xlsx", variables=azure(judge))
    wait_for(lambda: judge.requests)
    second = forker.run(tmp_path, "in.xlsx", "-o", "r.xlsx", variables=azure(judge))
    offline = forker.run(tmp_path, "in.xlsx", "-o", "./r.xlsx", "--judge", "offline")
    others_are_done.set()
    assert (second.code, offline.code) == (75, 75)
    for ended in (second, offline):
        assert len(ended.complaints) == 1
        assert f"process {first.pid} on {socket.gethostname()}" in ended.complaints[0]
    assert first.wait().code == 0
    assert judge.tasks()["preflight"] == 1
    assert not lock_path(tmp_path / "r.xlsx").exists()


@pytest.mark.slow
def test_two_runs_at_once_share_a_cache(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    """Different reports, one cache: both are complete, and a third run asks for nothing."""
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n[diagnostics]\nenabled = false\n")
    sheet_of(tmp_path / "in.xlsx", rows=2)
    runs = [forker.start(tmp_path, "in.xlsx", "-o", f"{name}.xlsx", variables=azure(judge)) for name in "ab"]
    assert [run.wait().code for run in runs] == [0, 0]
    judge.requests.clear()
    assert forker.run(tmp_path, "in.xlsx", "-o", "c.xlsx", variables=azure(judge)).code == 0
    assert judge.requests == []
    reports = [read_sheet(tmp_path / f"{name}.xlsx", "Per-Query Metrics") for name in "abc"]
    assert reports[0] == reports[1] == reports[2]
