"""A run whose streams are closed, full or heard by nobody: the report and the exit code are the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import azure, read_sheet, wait_for
from fake_judge import FakeJudge, Request
from files import ROOT, SCRIPT, sheet_of
from forking import Forker
from test_kills import PER_ROW

RUN = ("in.xlsx", "-o", "r.xlsx")


@pytest.mark.slow
@pytest.mark.parametrize("unheard", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("provider", ["azure", "offline"])
def test_nobody_need_listen(
    forker: Forker, judge: FakeJudge, tmp_path: Path, unheard: tuple[int, ...], provider: str
) -> None:
    """Output into a pipe that nobody reads any more: no traceback, and the run is complete."""
    sheet_of(tmp_path / "in.xlsx", rows=1)
    ended = forker.run(tmp_path, *RUN, "--judge", provider, variables=azure(judge), unheard=unheard)
    assert (ended.code, "Traceback" in ended.err, "Exception" in ended.err) == (0, False, False)
    assert len(read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")) == 2


STREAMS = [
    {"closed": (0,)},
    {"closed": (1,)},
    {"closed": (2,)},
    {"closed": (0, 1, 2)},
    {"full": (1,)},
    {"full": (2,)},
    {"full": (1, 2)},
    {"full": (1,), "closed": (2,)},
    {"unheard": (1, 2)},
]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and /proc")


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("streams", STREAMS, ids=str)
def test_a_report_does_not_depend_on_streams(
    offline_forker: Forker, tmp_path: Path, streams: dict[str, tuple[int, ...]]
) -> None:
    """As a job without a console has them (closed), or with a log on a full disk."""
    sheet_of(tmp_path / "in.xlsx", rows=3)
    ways = {"r.xlsx": [], "p.xlsx": ["--processes", "2"]}
    if streams in ({"closed": (0, 1, 2)}, {"full": (1,)}):  # it takes a second
        ways["s"] = ["--shard-rows", "2"]
    for target, words in ways.items():
        ended = offline_forker.run(tmp_path, "in.xlsx", "-o", target, "--judge", "offline", *words, **streams)
        assert (ended.code, "Traceback" in ended.err) == (0, False), ended.err
        assert ended.complaints == ([LOST] if streams == {"full": (1,)} else [])
        report = tmp_path / ("s/report.xlsx" if target == "s" else target)
        assert len(read_sheet(report, "Per-Query Metrics")) == 6


LOST = (
    "rag-eval: standard output: cannot be written: No space left on device; free some space, or send it to another "
    "place"
)


@pytest.fixture(scope="module")
def finished(offline_forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that commands can tell of."""
    folder = tmp_path_factory.mktemp("finished")
    sheet_of(folder / "in.xlsx", rows=1)
    assert offline_forker.run(folder, *OFFLINE, "--history", "h", "--json", "r.json").code == 0
    return folder


OFFLINE = (*RUN, "--judge", "offline", "-q")


@pytest.mark.slow
@on_linux
@pytest.mark.parametrize("streams", STREAMS, ids=str)
def test_the_exit_code_does_not_depend_on_streams_but_what_is_printed_must_not_get_lost(
    offline_forker: Forker, finished: Path, tmp_path: Path, streams: dict[str, tuple[int, ...]]
) -> None:
    """A command whose result is what it prints fails if a disk does not take that."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    printed: list[tuple[str, ...]] = [
        ("--help",),
        ("run", "--help"),
        ("--version",),
        ("in.xlsx", "--show"),
        ("in.xlsx", "--dry-run", "--judge", "offline"),
        ("history", "h"),
        ("doctor", "--judge", "offline"),
        ("completion", "bash"),
    ]
    lost = 1 in streams.get("full", ())
    for words in printed:
        ended = offline_forker.run(tmp_path, *words, **streams)
        assert ended.code == (5 if lost else 0), (words, ended)
        if 2 not in {number for numbers in streams.values() for number in numbers}:
            assert ended.complaints == ([LOST] if lost else [])
    written = {"h.xlsx": ("history", "h", "-o"), "s.xlsx": ("review", "r.json", "-o")}
    for name, words in written.items():
        assert offline_forker.run(tmp_path, *words, name, **streams).code == 0
        assert (tmp_path / name).stat().st_size
    for words in ((), ("nobody.xlsx",), (*OFFLINE, "--nope"), ("-", "--format", "csv", *OFFLINE[1:])):
        assert offline_forker.run(tmp_path, *words, **streams).code == 2, words


@pytest.mark.slow
@on_linux
def test_no_file_gets_the_number_of_a_closed_stream(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    """Otherwise the input or the stored replies, which are opened next, would get what a library prints."""
    sheet_of(tmp_path / "in.xlsx", rows=1)
    found: list[list[str]] = []
    pids: list[int] = []

    def look(request: Request) -> None:
        wait_for(lambda: pids)
        found.append([os.readlink(f"/proc/{pids[0]}/fd/{number}") for number in range(3)])

    judge.always = look
    run = forker.start(tmp_path, *RUN, variables=azure(judge), closed=(0, 1, 2))
    pids.append(run.pid)
    assert run.wait().code == 0
    assert len(found) > PER_ROW
    assert {place for places in found for place in places} == {os.devnull}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("entry", [f"{SCRIPT}", "-m rag_eval"])
def test_a_process_that_is_started_without_any_stream_writes_its_report(tmp_path: Path, entry: str) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=3)
    begin = f"exec {sys.executable} {entry} in.xlsx -o r.xlsx --judge offline --processes 2"
    ended = subprocess.run(
        ["sh", "-c", f"{begin} <&- >&- 2>&-"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert ended.returncode == 0
    assert len(read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")) == 6


@pytest.mark.slow
def test_the_output_can_be_piped_to_head(tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    command = (
        f"{sys.executable} {SCRIPT} in.xlsx -o r.xlsx --judge offline | head -1; exit ${{PIPESTATUS[0]}}"
    )
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (ended.returncode, ended.stdout.count("\n")) == (0, 1)
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "r.xlsx").exists()
