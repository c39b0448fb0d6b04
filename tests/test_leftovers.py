"""What killed runs left is removed; what a living process uses, and what is somebody else's, is not."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from conftest import Run, azure, wait_for
from fake_judge import FakeJudge
from files import sheet_of
from forking import Forker

from rag_eval.frames import evaluate
from rag_eval.store.leftovers import Scratch, new_file, sweep
from rag_eval.store.replacement import Replacement, write_text

_USE = """
import sys
from pathlib import Path
from rag_eval.frames import evaluate
from rag_eval.store.leftovers import Scratch, new_file
target = Path(sys.argv[1])
path, _ = new_file(target, 0o666)
scratch = Scratch(target)
(Path(scratch.name) / "rows").touch()
print(path, scratch.name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files, of this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def age(path: Path, days: float) -> None:
    then = time.time() - days * 24 * 3600
    os.utime(path, (then, then))


def used_elsewhere(target: Path) -> "tuple[subprocess.Popen[str], Path, Path]":
    """Another process, its temporary file and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", _USE, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    file, folder = process.stdout.readline().split()
    return process, Path(file), Path(folder)


@pytest.mark.slow
def test_a_living_process_keeps_its_files_and_a_killed_one_does_not(tmp_path: Path) -> None:
    target = tmp_path / "r.xlsx"
    process, file, folder = used_elsewhere(target)
    with process:
        age(file, 30)
        age(folder, 30)
        sweep([target])
        assert file.exists()
        assert (folder / "rows").exists()
        process.kill()
        process.wait()
        assert file.exists()
        sweep([target])
        assert not file.exists()
        assert not folder.exists()


@pytest.mark.slow
def test_what_is_left_of_another_output_is_removed_after_a_day(tmp_path: Path) -> None:
    process, file, folder = used_elsewhere(tmp_path / "other.xlsx")
    with process:
        process.kill()
    for days, is_left in ((0.995, True), (1.005, False)):
        age(file, days)
        age(folder, days)
        sweep([tmp_path / "r.xlsx"])
        assert (file.exists(), folder.exists()) == (is_left, is_left)


def test_an_output_is_known_by_every_name(tmp_path: Path) -> None:
    (tmp_path / "link.xlsx").symlink_to("r.xlsx")
    process, file, folder = used_elsewhere(tmp_path / "r.xlsx")
    with process:
        process.kill()
    sweep([tmp_path / "link.xlsx"])
    assert not file.exists()
    assert not folder.exists()


def test_only_names_of_ours_are_swept(tmp_path: Path, temporary: Path) -> None:
    """And no pipes, links or folders of such names: nothing is made of these."""
    target = tmp_path / "r.xlsx"
    file, descriptor = new_file(target, 0o666)
    assert descriptor is not None
    os.close(descriptor)
    tag = file.name.split("-")[2]
    kept = [
        f"{file.name}.xlsx", file.name.removeprefix("."), f".rag-eval-{tag}-0123456789ag.tmp", ".rag-eval-notes.tmp",
        f".rag-eval-{tag}.tmp", ".rag-eval-r.xlsx.lock", "r.xlsx.journal",
    ]  # fmt: skip
    swept = [file.name, ".rag-eval-0123456789ab.tmp"]
    for name in kept + swept:
        (tmp_path / name).touch()
        age(tmp_path / name, 2)
    (tmp_path / "mine").touch()
    (tmp_path / f".rag-eval-{tag}-00000000000a.tmp").symlink_to("mine")
    os.mkfifo(tmp_path / f".rag-eval-{tag}-00000000000b.tmp")
    folders = [
        f"rag-eval-{tag}-abcdefg",
        f"rag-eval-{tag}-abcdefghi",
        f"xrag-eval-{tag}-abcdefgh",
        "rag-eval-abcdefgh",
    ]
    for name in folders:
        (temporary / name).mkdir()
        age(temporary / name, 2)
    before, folders_before = names(tmp_path), names(temporary)
    (temporary / f"rag-eval-{tag}-abcdefgh").mkdir()
    sweep([target])
    assert before - names(tmp_path) == set(swept)
    assert names(temporary) == folders_before


def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path: Path, temporary: Path) -> None:
    with Scratch(tmp_path / "r.xlsx") as folder:
        tag = folder.split("-")[-2]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text").touch()
    (temporary / f"rag-eval-{tag}-abcdefgh").symlink_to(tmp_path / "mine")
    sweep([tmp_path / "r.xlsx"])
    assert (tmp_path / "mine" / "text").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only an administrator can give files away")
def test_what_belongs_to_another_user_stays(tmp_path: Path) -> None:
    process, file, folder = used_elsewhere(tmp_path / "r.xlsx")
    with process:
        process.kill()
    for path in (file, folder):
        os.chown(path, 12345, 12345)
    sweep([tmp_path / "r.xlsx"])
    assert (file.exists(), folder.exists()) == (True, True)


def test_folders_that_cannot_be_swept_are_no_reason_to_stop(tmp_path: Path, temporary: Path) -> None:
    temporary.rmdir()
    sweep([tmp_path / "missing" / "r.xlsx"])


def test_a_folder_goes_with_all_that_is_in_it_and_its_lock(tmp_path: Path, temporary: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Scratch(tmp_path / "r.xlsx") as folder:
        (Path(folder) / "rows").touch()
        assert len(names(temporary)) == 1
    assert names(temporary) == set()
    replacement = Replacement(tmp_path / "r.xlsx")
    replacement.commit()
    replacement.discard()
    Replacement(tmp_path / "r.xlsx").discard()
    assert names(tmp_path) == {"temporary", "r.xlsx"}
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.slow
def test_a_run_removes_what_a_killed_run_of_the_same_report_left(
    forker: Forker, judge: FakeJudge, tmp_path: Path, temporary: Path
) -> None:
    """While another report in the same folder is being written: the judge keeps it waiting."""
    is_swept = threading.Event()
    judge.always = lambda request: is_swept.wait(60) and None
    sheet_of(tmp_path / "in.xlsx", rows=1)
    world = azure(judge) | {"TMPDIR": str(temporary)}
    options = ("--json", "r.json", "--csv", "tables")
    killed = forker.start(tmp_path, "in.xlsx", "-o", "r.xlsx", *options, variables=world)
    wait_for(lambda: judge.requests)
    living = forker.start(tmp_path, "in.xlsx", "-o", "other.xlsx", variables=world)
    wait_for(lambda: len(judge.requests) > 1)
    killed.signal(signal.SIGKILL)
    killed.wait()
    before = temporary_files(tmp_path, temporary)
    assert len(before) == 6  # two reports and their folders, a JSON file and the first of the CSV files
    ended = forker.run(tmp_path, "in.xlsx", "-o", "r.xlsx", *options, "--judge", "offline", variables=world)
    assert ended.code == 0
    assert len(temporary_files(tmp_path, temporary)) == 2
    is_swept.set()
    assert living.wait().code == 0
    assert temporary_files(tmp_path, temporary) == set()


def test_a_text_file_is_written_whole_whatever_it_holds(tmp_path: Path) -> None:
    assert write_text(tmp_path / "t", "half a character: \ud83d, ü", "--junit") == tmp_path / "t"
    assert (tmp_path / "t").read_bytes() == "half a character: \\ud83d, ü".encode()


def leave_behind(target: Path) -> set[Path]:
    """A file and a folder for that output, as of a process that was killed."""
    process, *left = used_elsewhere(target)
    with process:
        process.kill()
    assert all(path.exists() for path in left)
    return set(left)


@pytest.mark.slow
def test_other_commands_remove_what_they_left_as_well(rag_eval: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    rag_eval("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--judge", "offline")
    (tmp_path / "found.jsonl").write_text('{"qid": "q", "doc_ids": ["d"]}\n')
    (tmp_path / "gold.jsonl").write_text('{"qid": "q", "gold_docs": ["d"]}\n')
    for target, arguments in {
        "again.xlsx": ("r.json", "--report-only", "-o", "again.xlsx"),
        "gates.xml": ("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--junit", "gates.xml"),
        "run.json": ("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--manifest", "run.json"),
        "scores.xlsx": ("retrieval", "found.jsonl", "--reference", "gold.jsonl", "-o", "scores.xlsx"),
    }.items():
        left = leave_behind(tmp_path / target)
        ended = rag_eval(*arguments)
        assert ended.code == 0, ended.err
        assert [path for path in left if path.exists()] == [], target


@pytest.mark.slow
def test_an_evaluation_of_a_frame_removes_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    left = leave_behind(tmp_path / "frame")
    sheet_of(tmp_path / "in.xlsx", rows=1)
    evaluate("in.xlsx")
    assert [path for path in left if path.exists()] == []


def temporary_files(folder: Path, temporary: Path) -> set[str]:
    tables = names(folder / "tables")
    return names(temporary) | {name for name in names(folder) | tables if name.endswith(".tmp")}
