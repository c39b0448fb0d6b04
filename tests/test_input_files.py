"""What is named as a file and is none: a clear error before it is opened, and never a wait."""

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run

from rag_eval.errors import InputError, TableError
from rag_eval.tables.input_files import SUFFIXES, check_is_file, check_is_small

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices have names elsewhere")
RUBRIC = '{"rubric_id": "r", "passing_score_threshold": 0, "metrics": [{"id": "m", "rubric": "?", "mandatory": true}]}'


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as place:
        folder = Path.cwd()
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            place.bind(path.name)
        finally:
            os.chdir(folder)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (pipe, "is a pipe, not a file; write what comes through it to a file first"),
    "folder": (Path.mkdir, "is a folder, not a file; name a file in it"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a file; name a file"),
    "socket": (bind, "is a socket, not a file; name a file"),
    "circle": (
        lambda path: path.symlink_to(path.name),
        "is a symbolic link that leads back to itself; name a file",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "command",
    [
        "run x.csv --judge offline",
        "run x.xlsx --judge offline --manifest m.json",
        "run x.ods --judge offline",
        "run x.xls --judge offline",
        "run x.parquet --judge offline",
        "run x.json --report-only --judge offline",
        "run in.csv --judge offline --config x.ini",
        "run in.csv --judge offline --baseline x.json",
        "run in.csv --judge offline --baseline x.xlsx",
        "doctor --judge offline --config x.ini",
        "rubric check x.yaml",
        "rubric align in.csv in.csv --rubric x.json",
        "rubric align x.csv in.csv --rubric rubric.json",
        "retrieval x.jsonl --reference in.csv",
        "retrieval gold.csv --reference x.parquet",
        "review x.json",
        "compare-judges x.csv --judge-a offline --judge-b azure",
    ],
)
def test_an_input_that_is_no_file_is_named_with_the_remedy(
    rag_eval: Run, tmp_path: Path, kind: str, command: str
) -> None:
    make, message = KINDS[kind]
    name = next(word for word in command.split() if word.startswith("x."))
    make(tmp_path / name)
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    (tmp_path / "gold.csv").write_text("qid,doc_ids\n1,a\n")
    (tmp_path / "rubric.json").write_text(RUBRIC)
    if kind == "folder" and command.startswith("run x."):  # it could hold the files of a run in shards
        read = ", ".join(SUFFIXES)
        message = f"contains no input file; expected one of {read}"
    ended = rag_eval(*command.split())
    assert (ended.code, f"{name}: {message}\n" in ended.out + ended.err) == (2, True)
    assert not list(tmp_path.glob("*report*"))


@pytest.mark.parametrize(
    "command",
    [
        "run in.csv --judge offline --config .",
        "run in.csv --judge offline --baseline .",
        "run in.csv --judge offline --labels .",
        "rubric check .",
        "retrieval . --reference .",
        "review .",
        "compare-judges .",
    ],
)
def test_the_working_directory_is_not_a_file(rag_eval: Run, tmp_path: Path, command: str) -> None:
    """It has no name from which the name of an output could be made, and everything else is in it."""
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    ended = rag_eval(*command.split())
    assert (ended.code, ended.err) == (2, "rag-eval: .: is a folder, not a file; name a file in it\n")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "circle"])
@pytest.mark.parametrize("option", ["-o r.xlsx", "--json x.json", "--manifest x.json"])
def test_an_output_that_is_no_file_stays_what_it_is(
    rag_eval: Run, tmp_path: Path, kind: str, option: str
) -> None:
    """A report is moved into its place, which as root would do away with /dev/null."""
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    target = tmp_path / option.split()[1]
    KINDS[kind][0](target)
    before = target.lstat()
    ended = rag_eval("run", "in.csv", "--judge", "offline", *option.split())
    assert (ended.code, target.name in ended.err, "internal error" in ended.err) == (5, True, False)
    after = target.lstat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_the_message_may_call_the_file_by_another_name(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        check_is_file(tmp_path, TableError, "here")
    assert type(caught.value) is TableError
    assert str(caught.value) == "here: is a folder, not a file; name a file in it"
    check_is_file(tmp_path / "missing")
    check_is_small(tmp_path / "missing", TableError)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["run in.csv", "init", "doctor", "cache show", "rubric check r.yaml", "retrieval r --reference g"],
)
def test_a_working_directory_that_was_deleted_is_said(tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from rag_eval.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, *command.split()], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "rag-eval: The working directory was deleted; change to a folder that exists\n"


def test_a_run_nested_too_deeply_is_no_internal_error(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[" * 100_000)
    (tmp_path / "in.csv").write_text("Query,Bot_A\nq,a\n")
    for command in ("run x.json --report-only", "run in.csv --baseline x.json"):
        ended = rag_eval(*command.split(), "--judge", "offline")
        assert (ended.code, "its JSON is nested too deeply" in ended.err) == (2, True)


def test_a_circle_of_links_is_told_apart_by_its_error_number(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic") as caught:
        os.stat(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(InputError, match="leads back to itself"):
        check_is_file(tmp_path / "a")
