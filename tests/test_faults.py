"""Full disks, damaged stores and failing steps: one line, exit 5, nothing lost, and the next run goes on."""

import json
import re
import shutil
import sqlite3
import subprocess
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import azure, read_sheet
from fake_judge import Answer, FakeJudge, Request, error
from files import sheet_of, write_table
from forking import Ended, Fork, Forker
from openpyxl import load_workbook

from rag_eval.errors import OutputError
from rag_eval.store.replacement import LEAST_SPACE, check_space, needed_space

WORKERS = 2
ONE_METRIC = (
    "[metrics]\nfaithfulness = no\nanswer_relevancy = no\ncontext_precision = no\nanswer_correctness = no\n"
    "[diagnostics]\nenabled = no\n[evaluation]\nparallel = no\n"
)
"""Two calls: toxicity, and the context recall of one row."""
OLD = ["The old report"]


def small_job(folder: Path) -> None:
    """One row, one metric, and an old report."""
    folder.mkdir()
    for name, content in _small_job().items():
        (folder / name).write_bytes(content)


@cache
def _small_job() -> dict[str, bytes]:
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "config.ini").write_text(ONE_METRIC)
        write_table(
            folder / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Context"], ["Q?", "Tea.", "Tea.", "Tea."]
        )
        write_table(folder / "r.xlsx", OLD)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def has_old_report(folder: Path) -> bool:
    """Whether the report is the old one. It can be read, whichever it is."""
    if (folder / "r.xlsx").read_bytes() == _small_job()["r.xlsx"]:
        return True
    workbook = load_workbook(folder / "r.xlsx", read_only=True)
    names = workbook.sheetnames
    workbook.close()
    assert names[0] in ("Sheet", "Per-Query Metrics")
    return names[0] == "Sheet"


def assert_honest(folder: Path, ended: Ended, step: str) -> None:
    """Either all went well and the report is new, or it is the old one or a partial one; two lines say so and why."""
    assert "Traceback" not in ended.err, f"{step}: {ended.err}"
    if is_partial := "PARTIAL: " in ended.err:
        assert ended.code == 5
    if ended.code == 0 or is_partial:
        assert not has_old_report(folder), step
        return
    assert (ended.code, len(ended.complaints)) == (5, 2), f"{step}: {ended}"
    assert has_old_report(folder), step
    assert ended.complaints[1].startswith("rag-eval: No report was written. From an earlier run: r.xlsx (")
    assert re.search(r"[Ff]ree some space|choose", ended.complaints[0]), f"{step}: {ended.err}"


def in_parallel(numbers: list[int], size: int = 3) -> Iterator[list[int]]:
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]


@pytest.mark.slow
def test_every_step_of_a_judged_run_may_fail(forker: Forker, judge: FakeJudge, memory_path: Path) -> None:
    """A rerun completes. Of the making of the report, which the next test takes apart, it is every ninth step.

    Odd steps fail alone, even ones and all that need room from then on.
    """
    small_job(memory_path / "0")
    steps = memory_path / "steps"
    assert run(forker, memory_path / "0", judge, steps=str(steps)).code == 0
    listed = steps.read_text().splitlines()
    asked = len(judge.requests)
    made, saved = listed.index("write") + 1, listed.index("fsync") + 1
    assert 20 < made < saved < len(listed)
    assert listed[-1] == "commit"  # after the report is in its place
    chosen = [*range(1, made), *range(made, saved, 9), *range(saved, len(listed) + 1)]
    for numbers in in_parallel(chosen):
        for number in numbers:
            small_job(memory_path / str(number))
        judge.requests.clear()
        done = (
            0  # in spite of the fault: such a run has its report, keeps nothing, and the rerun is a new one
        )
        for faulty in (True, False):
            runs = {
                number: forker.start(
                    memory_path / str(number), "in.xlsx", "-o", "r.xlsx", "-q", variables=azure(judge),
                    fault=number if faulty else None, fault_lasts=number % 2 == 0,
                )
                for number in numbers
            }  # fmt: skip
            for number, each in runs.items():
                ended = each.wait()
                if faulty:
                    assert_honest(memory_path / str(number), ended, f"step {number}, {listed[number - 1]}")
                    done += ended.code == 0
                else:
                    assert ended.code == 0, f"after step {number}, {listed[number - 1]}: {ended.err}"
                    assert not has_old_report(memory_path / str(number))
        # A lost reply and a second look at the endpoint.
        assert len(judge.requests) <= len(numbers) * (asked + 2) + done * asked


@pytest.mark.slow
def test_every_step_of_saving_a_report_may_fail(offline_forker: Forker, memory_path: Path) -> None:
    """The steps of an offline run, which are those of its report. Each failure leaves the folder as it was.

    Of writes among writes, as to the report itself, it is every fifth.
    """
    forker = offline_forker
    small_job(memory_path / "0")
    steps = memory_path / "steps"
    ended = forker.run(
        memory_path / "0", "in.xlsx", "-o", "r.xlsx", "-q", "--judge", "offline", steps=str(steps)
    )
    assert ended.code == 0
    listed = steps.read_text().splitlines()
    assert {"create", "open", "write", "fsync", "replace"} <= set(listed)
    under_way: deque[tuple[int, Fork]] = deque()
    for number in range(1, len(listed) + 1):
        if number % 5 and listed[number - 3 : number + 2] == ["write"] * 5:
            continue
        if len(under_way) == 3:
            assert_saved_or_not(memory_path, listed, *under_way.popleft())
        folder = memory_path / str(number)
        small_job(folder)
        run = forker.start(
            folder,
            "in.xlsx",
            "-o",
            "r.xlsx",
            "-q",
            "--judge",
            "offline",
            fault=number,
            fault_lasts=number % 2 == 0,
        )
        under_way.append((number, run))
    for number, run in under_way:
        assert_saved_or_not(memory_path, listed, number, run)
    ended = forker.run(memory_path / "1", "in.xlsx", "-o", "r.xlsx", "-q", "--judge", "offline")
    assert (ended.code, has_old_report(memory_path / "1")) == (0, False)


def assert_saved_or_not(jobs: Path, steps: list[str], number: int, run: Fork) -> None:
    folder, step = jobs / str(number), f"step {number}, {steps[number - 1]}"
    assert_honest(folder, run.wait(), step)
    left = {path.name for path in folder.iterdir() if not path.name.startswith(".said")}
    assert left == {"in.xlsx", "r.xlsx", "config.ini"}, step


def run(forker: Forker, folder: Path, judge: FakeJudge, *arguments: str, **world: Any) -> Ended:
    return forker.run(folder, "in.xlsx", "-o", "r.xlsx", "-q", *arguments, variables=azure(judge), **world)


# Full disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 40 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("only an administrator can mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            return


def after(number: int, act: Callable[[], None]) -> Callable[[Request], Answer | None]:
    """A script for the judge: something happens at the request of that number."""
    seen: list[Request] = []

    def script(request: Request) -> None:
        seen.append(request)
        if len(seen) == number:
            act()

    return script


@pytest.mark.slow
def test_a_disk_that_becomes_full(forker: Forker, judge: FakeJudge, disk: Path) -> None:
    sheet_of(disk / "in.xlsx", rows=6)
    write_table(disk / "r.xlsx", OLD)
    asked_until_full: list[int] = []

    def become_full() -> None:
        fill(disk / "filler")
        asked_until_full.append(len(judge.requests))

    judge.always = after(30, become_full)
    ended = run(forker, disk, judge)
    asked = len(judge.requests)
    assert (ended.code, len(ended.complaints)) == (5, 2), ended
    assert "r.xlsx.journal" in ended.complaints[0]
    assert "Free some space" in ended.complaints[0]
    assert has_old_report(disk)
    assert asked <= asked_until_full[0] + 3 * WORKERS
    (disk / "filler").unlink()
    assert run(forker, disk, judge).code == 0
    assert not has_old_report(disk)
    tasks = judge.tasks()
    once_each = tasks.total() - tasks["preflight"] - tasks["toxicity"] - tasks["recommendation"]
    assert once_each <= 6 * 16 + asked - 30 + WORKERS  # what could not be stored any more


@pytest.mark.slow
def test_a_report_has_what_was_judged_when_only_the_cache_is_full(
    forker: Forker, judge: FakeJudge, disk: Path, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=6)
    cache = f"[cache]\nenabled = true\ndirectory = {disk / 'cache'}\n[evaluation]\nmax_workers = {WORKERS}\n"
    (tmp_path / "config.ini").write_text(cache, encoding="utf-8")
    asked_until_full: list[int] = []

    def become_full() -> None:
        fill(disk / "filler")
        asked_until_full.append(len(judge.requests))

    judge.always = after(60, become_full)
    ended = run(forker, tmp_path, judge)
    assert ended.code == 5, ended
    assert re.match(
        r"rag-eval: PARTIAL: .*replies\.sqlite: .* cannot be written \(.*\); .* Free some space", ended.err
    )
    found = [line["RQS"] for line in read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")]
    assert 0 < sum(value is not None for value in found) < len(found)
    asked = len(judge.requests)
    assert asked <= asked_until_full[0] + 8 * WORKERS  # some fit into what the file has of its own
    (disk / "filler").unlink()
    assert run(forker, tmp_path, judge).code == 0
    assert len(judge.requests) - asked < 6 * 17 - 60 + 8 * WORKERS
    assert all(line["RQS"] is not None for line in read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics"))


def test_a_cache_needs_room_before_its_folder_exists(
    forker: Forker, judge: FakeJudge, disk: Path, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    cache = f"[cache]\nenabled = true\ndirectory = {disk / 'a' / 'cache'}\n"
    (tmp_path / "config.ini").write_text(cache, encoding="utf-8")
    (disk / "filler").write_bytes(b"x" * 38_000_000)
    ended = run(forker, tmp_path, judge)
    assert (ended.code, len(ended.complaints), judge.requests) == (5, 1, [])
    assert str(disk / "a" / "cache") in ended.err
    assert not (disk / "a").exists()


@pytest.mark.slow
def test_temporary_files_without_room_are_named_and_cost_no_reply(
    forker: Forker, judge: FakeJudge, disk: Path, tmp_path: Path
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=6)
    judge.always = after(30, lambda: fill(disk / "filler"))
    ended = forker.run(
        tmp_path, "in.xlsx", "-o", "r.xlsx", "-q", variables={**azure(judge), "TMPDIR": str(disk)}
    )
    assert (ended.code, len(ended.complaints)) == (5, 1), ended
    expected = (
        f"writing r.xlsx to temporary disk space failed: No space left on device; free some space in {disk}, or set "
        "TMPDIR to another folder"
    )
    assert expected in ended.complaints[0]
    asked = len(judge.requests)
    assert run(forker, tmp_path, judge).code == 0
    assert len(judge.requests) - asked < 20  # those that were under way


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "name", "written"),
    [
        ("--json", "r.json", "r.json"),
        ("--html", "r.html", "r.html"),
        ("--csv", "tables", "tables/leaderboard.csv"),
        ("--history", "h", "h/history.jsonl"),
    ],
)
def test_a_paid_run_has_its_report_whatever_else_cannot_be_written(
    forker: Forker, judge: FakeJudge, disk: Path, tmp_path: Path, option: str, name: str, written: str
) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=6)
    (tmp_path / "config.ini").write_text("[cache]\nenabled = false\n", encoding="utf-8")
    judge.always = after(30, lambda: fill(disk / "filler"))
    ended = run(forker, tmp_path, judge, option, disk / name)
    assert (ended.code, len(ended.complaints)) == (5, 1), ended
    assert re.search(f"No space left on device; free some space, .* with {option}", ended.complaints[0])
    assert load_workbook(tmp_path / "r.xlsx").sheetnames[0] == "Per-Query Metrics"
    assert not (disk / written).exists()
    (disk / "filler").unlink()
    asked = len(judge.requests)
    again = run(forker, tmp_path, judge, option, disk / name)
    assert (again.code, len(judge.requests)) == (0, asked), again
    assert (disk / written).stat().st_size


@pytest.mark.slow
def test_a_file_that_may_not_grow(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    """A limit of the operating system or a quota, where no disk is full."""
    sheet_of(tmp_path / "in.xlsx", rows=6)
    write_table(tmp_path / "r.xlsx", OLD)
    ended = run(forker, tmp_path, judge, file_limit=150_000)
    assert (ended.code, len(ended.complaints)) == (5, 2), ended
    assert ended.complaints[0].startswith("rag-eval: PARTIAL: ")
    assert not has_old_report(tmp_path)
    asked = len(judge.requests)
    assert 5 < asked < 6 * 16
    assert run(forker, tmp_path, judge).code == 0
    assert len(judge.requests) <= 6 * 16 + 10 + 3 * WORKERS
    assert not has_old_report(tmp_path)


def test_a_disk_that_is_full_costs_nothing(forker: Forker, judge: FakeJudge, disk: Path) -> None:
    sheet_of(disk / "in.xlsx", rows=1)
    (disk / "filler").write_bytes(b"x" * 38_000_000)
    ended = run(forker, disk, judge)
    assert (ended.code, len(ended.complaints), judge.requests) == (5, 1, [])
    assert str(disk) in ended.err
    assert "at least 5 MB are needed" in ended.err


@pytest.mark.slow
def test_a_small_run_needs_little_room(forker: Forker, judge: FakeJudge, disk: Path) -> None:
    sheet_of(disk / "in.xlsx", rows=1)
    (disk / "filler").write_bytes(b"x" * 34_000_000)
    assert shutil.disk_usage(disk).free < 8_000_000
    assert run(forker, disk, judge).code == 0


@pytest.mark.parametrize(
    ("size", "needed"), [(0, 5_000_000), (40_000, 7_000_000), (300_000, LEAST_SPACE), (None, LEAST_SPACE)]
)
def test_the_room_that_is_needed_grows_with_the_input(tmp_path: Path, size: int | None, needed: int) -> None:
    """A folder of inputs may be of any size."""
    path = tmp_path if size is None else tmp_path / "in.csv"
    if size is not None:
        path.write_bytes(b"x" * size)
    assert needed_space(path) == needed


@pytest.mark.slow
def test_temporary_files_need_room_as_well(offline_forker: Forker, disk: Path, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    (disk / "filler").write_bytes(b"x" * 38_000_000)
    ended = offline_forker.run(tmp_path, "in.xlsx", "--judge", "offline", variables={"TMPDIR": str(disk)})
    assert (ended.code, len(ended.complaints)) == (5, 1)
    assert str(disk) in ended.complaints[0]


def test_a_page_on_another_disk_needs_room_there(offline_forker: Forker, disk: Path, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    (disk / "filler").write_bytes(b"x" * 38_000_000)
    ended = offline_forker.run(tmp_path, "in.xlsx", "--judge", "offline", "--html", disk / "page.html")
    assert (ended.code, len(ended.complaints)) == (5, 1)
    assert str(disk) in ended.complaints[0]


def test_a_disk_needs_twenty_million_bytes_and_no_more(disk: Path) -> None:
    least = -(-LEAST_SPACE // 4096) * 4096
    (disk / "filler").write_bytes(b"x" * (shutil.disk_usage(disk).free - least))
    assert (shutil.disk_usage(disk).free, LEAST_SPACE) == (least, 20_000_000)
    check_space(disk)
    (disk / "one page").touch()
    (disk / "one page").write_bytes(b"x")
    with pytest.raises(OutputError, match=r"only 20\.0 MB are free, but at least 20 MB are needed"):
        check_space(disk)


def test_a_disk_without_room_is_an_error_that_names_it() -> None:
    full = Path("/proc")  # a file system that has no free blocks, ever
    with pytest.raises(OutputError, match=r"/proc: only 0\.0 MB are free"):
        check_space(full)


# Damaged stores


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"garbage, not a database" * 100])
@pytest.mark.parametrize("is_cache", [False, True])
def test_a_damaged_store_is_set_aside_and_the_run_goes_on(
    forker: Forker, judge: FakeJudge, tmp_path: Path, content: bytes, is_cache: bool
) -> None:
    folder = tmp_path / "job"
    small_job(folder)
    store = folder / "r.xlsx.journal"
    if is_cache:
        (folder / "config.ini").write_text(ONE_METRIC + "[cache]\nenabled = yes\n")
        store = folder / ".nexus_cache" / "replies.sqlite"
        store.parent.mkdir()
    store.write_bytes(content)
    ended = run(forker, folder, judge)
    assert (ended.code, len(ended.complaints)) == (0, 1), ended
    assert str(store.relative_to(folder)) in ended.complaints[0]
    (aside,) = store.parent.glob(f"{store.name}.damaged-*")
    assert aside.read_bytes() == content
    assert not has_old_report(folder)


def test_strict_cache_stops_instead(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    small_job(tmp_path / "job")
    (tmp_path / "job" / "r.xlsx.journal").write_bytes(b"garbage")
    ended = run(forker, tmp_path / "job", judge, "--strict-cache")
    assert (ended.code, len(ended.complaints), judge.requests) == (5, 2, [])
    assert (tmp_path / "job" / "r.xlsx.journal").read_bytes() == b"garbage"
    assert has_old_report(tmp_path / "job")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "asked"),
    [
        ("UPDATE replies SET reply = CAST(x'7b22ff227d' AS TEXT) || reply WHERE task != 'toxicity'", 1),
        ('UPDATE replies SET reply = \'{"reason": "secret", "toxicity": 1.0}\' WHERE task = \'toxicity\'', 1),
        ("DROP TABLE replies", 2),
    ],
)
def test_a_damaged_reply_is_asked_for_again_and_shown_to_nobody(
    forker: Forker, judge: FakeJudge, tmp_path: Path, statement: str, asked: int
) -> None:
    """The dry run tells of it and leaves it; the run replaces it; the next is as before."""
    folder = tmp_path / "job"
    small_job(folder)
    (folder / "config.ini").write_text(ONE_METRIC + "[cache]\nenabled = yes\n")
    store = folder / ".nexus_cache" / "replies.sqlite"
    assert run(forker, folder, judge).code == 0
    expected = read_sheet(folder / "r.xlsx", "Per-Query Metrics")
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)
    before = store.read_bytes()
    judge.requests.clear()
    assert run(forker, folder, judge, "--strict-cache").code == 5
    planned = run(forker, folder, judge, "--dry-run")
    assert (planned.code, len(planned.complaints), store.read_bytes(), judge.requests) == (0, 1, before, [])
    ended = run(forker, folder, judge)
    assert (ended.code, len(ended.complaints)) == (0, 1), ended
    assert "damaged" in ended.complaints[0]
    assert "secret" not in ended.out + ended.err + planned.out + planned.err
    assert judge.tasks().total() - judge.tasks()["preflight"] == asked
    assert read_sheet(folder / "r.xlsx", "Per-Query Metrics") == expected
    judge.requests.clear()
    ended = run(forker, folder, judge)
    assert (ended.code, ended.complaints, judge.requests) == (0, [], [])


# What is asked again


@pytest.mark.slow
def test_the_same_command_serves_lasting_failures_and_retry_errors_asks_again(
    forker: Forker, judge: FakeJudge, tmp_path: Path
) -> None:
    def block(request: Request) -> Answer | None:
        return error(400, "content_filter", "filtered", "prompt") if request.task == "attributions" else None

    small_job(tmp_path / "job")
    judge.always = block
    assert run(forker, tmp_path / "job", judge).code == 3
    judge.requests.clear()

    ended = run(forker, tmp_path / "job", judge)
    assert (ended.code, judge.requests) == (3, [])
    assert "--retry-errors" in ended.err

    ended = run(forker, tmp_path / "job", judge, "--retry-errors")
    assert (ended.code, judge.tasks()["attributions"], judge.tasks()["toxicity"]) == (3, 1, 0)

    judge.always = None
    assert run(forker, tmp_path / "job", judge, "--retry-errors").code == 0
    assert judge.tasks()["attributions"] == 2
    assert not (tmp_path / "job" / "r.xlsx.journal").exists()


@pytest.mark.slow
def test_fresh_asks_everything_anew_and_replaces_it(forker: Forker, judge: FakeJudge, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    small_job(folder)
    (folder / "config.ini").write_text(ONE_METRIC + "[cache]\nenabled = yes\n")
    assert run(forker, folder, judge).code == 0
    asked = judge.tasks()
    assert run(forker, folder, judge).code == 0
    assert judge.tasks() == asked
    before = stored_at(folder)
    assert run(forker, folder, judge, "--fresh").code == 0
    assert judge.tasks() == asked + asked
    assert stored_at(folder) > before


@pytest.mark.slow
@pytest.mark.parametrize("further", [("--fresh",), ()])
def test_a_fresh_run_that_was_interrupted_goes_on(
    forker: Forker, judge: FakeJudge, tmp_path: Path, further: tuple[str, ...]
) -> None:
    """With --fresh and without it: no reply is paid twice, and no earlier one is taken. Then --fresh begins anew."""
    folder = tmp_path / "job"
    small_job(folder)
    (folder / "config.ini").write_text(ONE_METRIC + "[cache]\nenabled = yes\n")
    assert run(forker, folder, judge).code == 0
    asked = judge.tasks()
    for _ in range(2):
        judge.requests.clear()
        ended = run(forker, folder, judge, "--fresh", "--max-calls", "2")
        assert (ended.code, "goes on" in ended.err) == (4, False), ended.err
        ended = run(forker, folder, judge, "--json", "r.json", *further)
        assert (ended.code, "and was interrupted goes on" in ended.err) == (0, True), ended.err
        assert judge.tasks() - asked == Counter(preflight=1)
        assert asked - judge.tasks() == Counter()
        told = json.loads((folder / "r.json").read_text())["end"]["usage"]
        assert told["requests"] == len(judge.requests), "those of both commands"


@pytest.mark.slow
@pytest.mark.parametrize(("cache", "most"), [("", "4"), ("", "3"), ("[cache]\nenabled = yes\n", "4")])
def test_a_smaller_run_leaves_what_a_stopped_one_has_paid(
    forker: Forker, judge: FakeJudge, tmp_path: Path, cache: str, most: str
) -> None:
    """Of other rows, or by another judge, into the same report; also what --fresh has begun again, and if the smaller
    run takes all that is stored.
    """
    folder = tmp_path / "job"
    folder.mkdir()
    sheet_of(folder / "in.xlsx", rows=4)
    (folder / "config.ini").write_text(ONE_METRIC + cache)
    other_metric = ONE_METRIC.replace("faithfulness = no", "context_recall = no\ntoxicity = no")
    (folder / "other.ini").write_text(other_metric + cache)
    if cache:
        assert run(forker, folder, judge).code == 0
        judge.requests.clear()
    fresh = ("--fresh",) if cache else ()
    assert run(forker, folder, judge, "--max-calls", most, *fresh).code == 4
    first = [each.prompt for each in judge.requests]
    others = (
        ("--rows", "2-2"),
        ("--model", "gpt-other", "--rows", "2-2"),
        ("--temperature", "0.5"),
        ("--prompts", "single"),
        ("--config", "other.ini"),
    )
    for other in others:
        words = ("in.xlsx", "-o", "r.xlsx", *other)
        ended = forker.run(folder, *words, variables=azure(judge))
        assert (ended.code, "Kept: r.xlsx.journal, for another run" in ended.out) == (0, not cache), ended.err
    before = len(judge.requests)
    assert run(forker, folder, judge).code == 0
    again = [each.prompt for each in judge.requests[before:] if each.task != "preflight"]
    assert again
    assert {*again}.isdisjoint(first), "nothing is paid twice"
    toxicity = 1 if cache else 0  # has the same question with other prompts, but not since --fresh
    assert len(again) + len(first) == 4 + 1 + toxicity, "and nothing from before --fresh is taken"
    assert not (folder / "r.xlsx.journal").exists()


def stored_at(folder: Path) -> float:
    """When the oldest reply of the cache was stored."""
    with closing(sqlite3.connect(folder / ".nexus_cache" / "replies.sqlite")) as connection:
        (moment,) = connection.execute("SELECT min(stored_at) FROM replies").fetchone()
    return float(moment)
