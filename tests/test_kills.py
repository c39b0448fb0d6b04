"""Killed, interrupted or left alone: what was paid for is kept, and the report is whole or the old one."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import azure, read_sheet
from fake_judge import FakeJudge, Request
from forking import Fork, Forker
from openpyxl import load_workbook
from test_main_job import HEADER, ROOT, SCRIPT, TABLES, sheet_of, wait_for

WORKERS = 2
KILLS = 30
PER_ROW = 5 * 2 + 4 + 2
"""Calls of a row of two bots and four chunks, batched ones apart."""
BATCHED = ("preflight", "toxicity", "recommendation")
"""One request holds several texts, so how many requests there are depends on what was known before."""


def start(forker: Forker, folder: Path, judge: FakeJudge, *arguments: object, **world: Any) -> Fork:
    return forker.start(folder, "in.xlsx", "-o", "r.xlsx", *arguments, variables=azure(judge), **world)


def tables(path: Path) -> dict[str, Any]:
    return {name: read_sheet(path, name) for name in TABLES}


def singles(judge: FakeJudge) -> int:
    return sum(count for task, count in judge.tasks().items() if task not in BATCHED)


def hold(judge: FakeJudge) -> list[Request]:
    """From now on the judge answers nobody; who waits is added to the list."""
    waiting: list[Request] = []

    def keep(request: Request) -> None:
        waiting.append(request)
        threading.Event().wait()

    judge.always = keep
    return waiting


@pytest.mark.slow
def test_r41_r42_r46_thirty_kills_at_random_moments(
    forker: Forker, judge: FakeJudge, memory_path: Path
) -> None:
    """Rounds of kills until a run gets through: nothing but calls in flight is paid twice, and nothing is different.

    The moments fall into starting, judging and saving alike. At each of them the report is a whole one.
    """
    seed = int(os.environ.get("KILL_SEED") or random.randrange(10**6))
    print(f"KILL_SEED={seed}")  # noqa: T201 - shown when the test fails, to repeat it
    moments = random.Random(seed)
    sheet_of(memory_path / "in.xlsx", rows=2)
    judge.latency = 0.01
    began = time.monotonic()
    assert start(forker, memory_path, judge).wait().code == 0
    duration = time.monotonic() - began
    expected, needed = tables(memory_path / "r.xlsx"), singles(judge)
    assert needed == 2 * PER_ROW

    checked = b""
    kills = kills_in_round = rounds = 0
    judge.requests.clear()
    while kills < KILLS or kills_in_round:
        run = start(forker, memory_path, judge)
        if kills < KILLS:
            # Judging takes about half of a run, and what was judged before is not judged again.
            rest = duration * (1 - min(singles(judge), needed) / needed / 2)
            time.sleep(moments.uniform(0, 1.05 * rest))
            run.signal(signal.SIGKILL)
        ended = run.wait()
        was_killed = ended.code == -signal.SIGKILL
        assert was_killed or ended.code == 0, f"seed {seed}: {ended.err}"
        kills, kills_in_round = kills + was_killed, kills_in_round + was_killed
        if (report := (memory_path / "r.xlsx").read_bytes()) != checked:
            assert tables(memory_path / "r.xlsx") == expected, f"seed {seed}"
            checked = report
        if (memory_path / "r.xlsx.journal").exists() or not judge.requests:
            assert was_killed
            continue
        # The journal is gone: the report was saved, even if the kill came before the process could end.
        assert needed <= singles(judge) <= needed + kills_in_round * WORKERS, f"seed {seed}"
        judge.requests.clear()
        rounds, kills_in_round = rounds + 1, 0
    assert rounds >= 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_r54_r55_the_first_signal_gives_a_partial_report(
    forker: Forker, judge: FakeJudge, tmp_path: Path, number: int, code: int
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=12)
    is_stopping = threading.Event()

    def answer_once_it_stops(_: Request) -> None:
        if len(judge.requests) > 40:
            is_stopping.wait()

    judge.always = answer_once_it_stops
    run = start(forker, tmp_path, judge)
    wait_for(lambda: len(judge.requests) > 40)
    run.signal(number)
    wait_for(lambda: "Stopping" in run.said("err"))
    is_stopping.set()
    ended = run.wait()
    assert ended.code == code, ended.err
    assert "PARTIAL" in ended.err
    assert len(read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")) == 24
    paid = singles(judge)
    judge.requests.clear()
    assert start(forker, tmp_path, judge).wait().code == 0
    assert paid + singles(judge) == 12 * PER_ROW


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_r54_the_second_signal_ends_at_once_and_loses_nothing(
    forker: Forker, judge: FakeJudge, tmp_path: Path, number: int, code: int
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=4)
    (tmp_path / "r.xlsx").write_bytes(b"the old report")
    run = start(forker, tmp_path, judge)
    wait_for(lambda: len(judge.requests) > 10)
    stored = singles(judge)
    held = hold(judge)
    wait_for(lambda: len(held) == WORKERS)
    run.signal(number)
    wait_for(lambda: "Stopping" in run.said("err"))
    run.signal(number)
    ended = (
        run.wait()
    )  # though the judge answers nobody; and a run that waited first would have written a report
    assert (ended.code, "PARTIAL" in ended.err) == (code, False)
    assert (tmp_path / "r.xlsx").read_bytes() == b"the old report"
    judge.always = None
    judge.requests.clear()
    assert start(forker, tmp_path, judge).wait().code == 0
    assert singles(judge) <= 4 * PER_ROW - stored + WORKERS


@pytest.mark.parametrize("asked", [0, 5])
def test_r54_a_judge_that_does_not_answer_is_waited_for_ten_seconds(
    forker: Forker, judge: FakeJudge, tmp_path: Path, asked: int
) -> None:
    """At the first look at the endpoint as well as later. The judge never answers, and the run ends nevertheless."""
    sheet_of(tmp_path / "in.xlsx", rows=4)
    held = hold(judge) if not asked else []
    run = start(forker, tmp_path, judge)
    wait_for(lambda: len(judge.requests) > asked)
    held = held or hold(judge)
    wait_for(lambda: held)
    run.signal(signal.SIGINT)
    ended = run.wait()
    assert ended.code == 130
    assert ("PARTIAL" in ended.err) is bool(asked)


def test_r55_a_signal_that_was_ignored_before_stays_so(
    forker: Forker, judge: FakeJudge, tmp_path: Path
) -> None:
    """As under nohup."""
    sheet_of(tmp_path / "in.xlsx", rows=2)
    judge.latency = 0.02
    run = start(forker, tmp_path, judge, ignored=(signal.SIGHUP,))
    wait_for(lambda: len(judge.requests) > 5)
    run.signal(signal.SIGHUP)
    assert run.wait().code == 0


def test_r54_an_offline_run_stops_promptly_with_what_it_has(forker: Forker, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 100000\n")
    lines = [f"Query {n}?,It is {n}.,It is {n}. Surely.,No idea.,It is {n}." for n in range(20_000)]
    (tmp_path / "in.csv").write_text("\n".join([",".join(HEADER), *lines]), encoding="utf-8")
    run = forker.start(tmp_path, "in.csv", "-o", "r.xlsx", "--judge", "offline")
    wait_for(lambda: " finished after" in run.said("err"))
    run.signal(signal.SIGINT)
    ended = run.wait()
    assert ended.code == 130, ended.err
    assert "PARTIAL" in ended.err
    workbook = load_workbook(tmp_path / "r.xlsx", read_only=True)
    assert 1 < workbook["Per-Query Metrics"].max_row < 40_000
    workbook.close()


@pytest.mark.parametrize("unheard", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("provider", ["azure", "offline"])
def test_r55_nobody_need_listen(
    forker: Forker, judge: FakeJudge, tmp_path: Path, unheard: tuple[int, ...], provider: str
) -> None:
    """Output into a pipe that nobody reads any more: no traceback, and the run is complete."""
    sheet_of(tmp_path / "in.xlsx", rows=1)
    ended = start(forker, tmp_path, judge, "--judge", provider, unheard=unheard).wait()
    assert (ended.code, "Traceback" in ended.err, "Exception" in ended.err) == (0, False, False)
    assert len(read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")) == 2


STREAMS = [
    {"closed": (0,)},
    {"closed": (1,)},
    {"closed": (2,)},
    {"closed": (0, 1)},
    {"closed": (0, 1, 2)},
    {"full": (1,)},
    {"full": (2,)},
    {"full": (1, 2)},
    {"full": (1,), "closed": (2,)},
    {"unheard": (1, 2)},
]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and /proc")


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


@on_linux
@pytest.mark.parametrize("streams", STREAMS, ids=str)
def test_the_exit_code_does_not_depend_on_streams_but_what_is_printed_must_not_get_lost(
    offline_forker: Forker, tmp_path: Path, streams: dict[str, tuple[int, ...]]
) -> None:
    """A command whose result is what it prints fails if a disk does not take that."""
    sheet_of(tmp_path / "in.xlsx", rows=1)
    run = ("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "-q")
    assert offline_forker.run(tmp_path, *run, "--history", "h", "--json", "r.json").code == 0
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
    for words in ((), ("nobody.xlsx",), (*run, "--nope"), ("-", "--format", "csv", *run[1:])):
        assert offline_forker.run(tmp_path, *words, **streams).code == 2, words


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
    run = start(forker, tmp_path, judge, closed=(0, 1, 2))
    pids.append(run.pid)
    assert run.wait().code == 0
    assert len(found) > PER_ROW
    assert {place for places in found for place in places} == {os.devnull}


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


def test_r55_the_output_can_be_piped_to_head(tmp_path: Path) -> None:
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
