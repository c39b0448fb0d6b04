"""Killed, stopped or left alone: what was paid for is kept, and the report is whole or the old one.

Five ways to run a job are treated alike: a plain run, one in batches, a comparison of judges, one in shards, and one in
several processes.
"""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from batch_server import Wrong, running_batches
from conftest import KEY, TABLES, azure, read_sheet, wait_for
from fake_judge import Answer, FakeJudge, Request, error, running_judge
from files import HEADER, sheet_of
from forking import Ended, Fork, Forker, children
from openpyxl import load_workbook
from test_batch_jobs import CREATE, DELETE, DOWNLOAD, LIST, POLL, SHORT_RUN
from test_batches import openai, pass_time, sent_once
from test_parallel import cells, write_rows
from test_processes import is_alive

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")

BATCHED = ("preflight", "toxicity", "recommendation")
"""One request holds several texts, so how many requests there are depends on what was known before."""
WORKERS = 2
"""Calls at a time, and processes of a run that has several."""
KILLS = 30
PER_ROW = 5 * 2 + 4 + 2
"""Calls of a row of two bots and four chunks, batched ones apart."""
OLD = b"the old report"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}


def singles(judge: FakeJudge) -> int:
    return sum(count for task, count in judge.tasks().items() if task not in BATCHED)


class Way:
    """One way to run a job, in a folder of its own; the judge answers until the job has come to a moment."""

    words: ClassVar[tuple[object, ...]] = (
        "in.xlsx",
        "-o",
        "r.xlsx",
        "--history",
        "h",
        "--manifest",
        "m.json",
    )
    report: ClassVar[str] = "r.xlsx"
    rows: ClassVar[int] = 4
    moments: ClassVar[Mapping[str, Any]] = {"first calls": 3, "judging": 30, "last calls": 4 * PER_ROW - 4}
    """When it is held up; for most ways, after so many requests."""
    middle: ClassVar[str] = "judging"
    waits: ClassVar[bool] = True
    """After a signal, for the calls in flight."""
    signals: ClassVar[tuple[signal.Signals, ...]] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    """Those that end it in ways of their own; a way that heeds them as another one does has fewer."""

    def __init__(self, forker: Forker, folder: Path, servers: ExitStack) -> None:
        self._forker, self.folder = forker, folder
        self.held: list[Request | str] = []
        self.go_on = threading.Event()
        self.judges = self.open_servers(servers)
        servers.callback(self.let_go)
        self.prepare()

    def open_servers(self, servers: ExitStack) -> list[FakeJudge]:
        return [servers.enter_context(running_judge())]

    def prepare(self) -> None:
        """Write the input, and what configures the job."""
        sheet_of(self.folder / "in.xlsx", rows=self.rows)

    def variables(self) -> Mapping[str, str]:
        return azure(self.judges[0])

    def start(self, *more: object, **world: Any) -> Fork:
        return self._forker.start(self.folder, *self.words, *more, variables=self.variables(), **world)

    def reach(self, name: str) -> Fork:
        """Start the job, and wait until it is at that moment, from which nothing answers it."""
        self.watch(self.moments[name])
        for _ in range(12):
            run = self.start()
            wait_for(lambda run=run: self.is_held(run) or run.has_ended(), 60)  # type: ignore[misc]
            if not run.has_ended():
                return run
            self.between(run.wait())
        raise AssertionError(f"it never came to: {name}")

    def watch(self, moment: Any) -> None:
        def keep(request: Request) -> None:
            if sum(len(judge.requests) for judge in self.judges) > moment:
                self.held.append(request)
                self.go_on.wait()

        for judge in self.judges:
            judge.always = keep

    def is_held(self, run: Fork) -> bool:
        return len(self.held) >= WORKERS

    def between(self, ended: Ended) -> None:
        """What happens after a command that ended before its moment."""
        raise AssertionError(ended.err)

    def let_go(self) -> None:
        for judge in self.judges:
            judge.always = None
        self.go_on.set()

    def finish(self) -> Ended:
        """Give the same command until the job is complete."""
        return self.start().wait()

    def asked(self) -> Counter[str]:
        """How often each question was asked, except by requests that hold several."""
        sent = [each for judge in self.judges for each in judge.requests if each.task not in BATCHED]
        return Counter(f"{each.body['model']} {each.prompt}" for each in sent)

    def paid_twice(self) -> int:
        return sum(self.asked().values()) - len(self.asked())

    def results(self) -> Any:
        return {name: read_sheet(self.folder / self.report, name) for name in TABLES}

    def check_old(self) -> None:
        """No report was written."""
        assert (self.folder / self.report).read_bytes() == OLD

    def check_killed(self, run: Fork) -> None:
        """What a job that was killed leaves."""
        self.check_old()
        if "--manifest" in self.words:
            manifest = json.loads((self.folder / "m.json").read_text())
            assert (manifest["status"], manifest["process"]) == ("running", run.pid)
            assert manifest["run"]["bots"] == ["Good", "Bad"]
            assert not (self.folder / "h/history.jsonl").exists()

    def check_partial(self, ended: Ended) -> None:
        """What a job that was stopped in its middle says, and leaves."""
        assert "PARTIAL" in ended.err
        assert len(read_sheet(self.folder / self.report, "Per-Query Metrics")) == 2 * self.rows

    def left(self) -> list[str]:
        """Files that only an unfinished job has."""
        found = [*self.folder.glob("*"), *self.folder.glob("out/**/*")]
        return [path.name for path in found if re.search(r"journal|\.tmp|\.lock|sqlite", path.name)]


class OfJudges(Way):
    """Two judges, one after the other, each of which can be held up."""

    words = ("compare-judges", "in.xlsx", "-o", "r.xlsx", "--a", "0.ini", "--b", "1.ini")
    moments: ClassVar = {"the first judge": 30, "the second judge": 100}
    middle = "the first judge"
    signals = (signal.SIGTERM,)

    def open_servers(self, servers: ExitStack) -> list[FakeJudge]:
        return [servers.enter_context(running_judge()) for _ in range(2)]

    def prepare(self) -> None:
        super().prepare()
        for number, judge in enumerate(self.judges):
            path = self.folder / f"{number}.ini"
            path.write_text(
                f"[judge]\nprovider = openai\n[openai]\nbase_url = {judge.url}\napi_key = {KEY}-{number}\n"
                f"model = model-{number}\n"
            )
            path.chmod(0o600)

    def variables(self) -> Mapping[str, str]:
        return {}

    def results(self) -> Any:
        return {
            name: read_sheet(self.folder / self.report, name)
            for name in ("Agreement", "Decisions", "Ranking", "Disagreements")
        }

    def check_partial(self, ended: Ended) -> None:
        assert (self.folder / self.report).read_bytes() == OLD, ended.err


class InShards(Way):
    words = ("in.xlsx", "-o", "out", "--shard-rows", 1, "-q")
    report = "out/report.xlsx"
    rows = 6
    moments: ClassVar = {"first calls": 3, "judging": 40}
    signals = (signal.SIGINT, signal.SIGTERM)

    def prepare(self) -> None:
        super().prepare()
        self._kept: dict[Path, int] = {}

    def results(self) -> Any:
        """Parts that a run before wrote are not written again."""
        assert all(path.stat().st_mtime_ns == written for path, written in self._kept.items())
        return super().results()

    def check_old(self) -> None:
        assert not (self.folder / self.report).exists()

    def check_killed(self, run: Fork) -> None:
        self.check_old()
        self._kept = {path: path.stat().st_mtime_ns for path in self.folder.glob("out/results/part-*")}

    def check_partial(self, ended: Ended) -> None:
        found = re.search(r"PARTIAL: ([1-5]) of 6 shards are judged: interrupted by ", ended.err)
        assert found, ended.err
        rows = read_sheet(self.folder / self.report, "Per-Query Metrics")
        assert len(rows) == 2 * int(found[1])


class InProcesses(Way):
    """The offline judge; its workers are stopped, so that it cannot end, and it waits for them."""

    words = ("in.csv", "-q", "-o", "r.xlsx", "--judge", "offline", "--processes", WORKERS)
    rows = 300
    moments: ClassVar = {"judging": None}
    signals = (signal.SIGINT,)

    def prepare(self) -> None:
        write_rows(self.folder / "in.csv", self.rows)
        (self.folder / "config.ini").write_text("[evaluation]\nmax_rows = 100000\n")

    def open_servers(self, servers: ExitStack) -> list[FakeJudge]:
        self.workers: list[int] = []
        return []

    def variables(self) -> Mapping[str, str]:
        return {}

    def watch(self, moment: Any) -> None:
        self.workers.clear()

    def is_held(self, run: Fork) -> bool:
        serving = [pid for pid in children(run.pid) if serves(pid)]
        if not self.workers and len(serving) == WORKERS:
            self.workers += serving
            for worker in serving:
                os.kill(worker, signal.SIGSTOP)
        return bool(self.workers) and waits(run.pid)

    def between(self, ended: Ended) -> None:
        """It was too fast to be held up: once more."""
        assert ended.code == 0, ended.err
        (self.folder / self.report).write_bytes(OLD)
        self.workers.clear()

    def let_go(self) -> None:
        for worker in self.workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)

    def results(self) -> Any:
        return cells(self.folder / self.report)

    def check_partial(self, ended: Ended) -> None:
        assert "PARTIAL" in ended.err
        rows = [line["Row"] for line in read_sheet(self.folder / self.report, "Per-Query Metrics")]
        assert 0 < len(rows) < 2 * self.rows
        assert rows == [row for row in range(2, 2 + len(rows) // 2) for _ in range(2)]


def serves(worker: int) -> bool:
    """It has started the thread that takes items in; stopped before, it would hold up the run."""
    with suppress(FileNotFoundError):
        return len(list(Path(f"/proc/{worker}/task").iterdir())) > 1
    return False


def waits(pid: int) -> bool:
    """All of it sleeps while a report is open: it has nothing else to wait for than its workers.

    Its first thread alone may also sleep because another one imports what the report needs.
    """
    is_writing = any(Path(f"/proc/{pid}/cwd").glob(".rag-eval-*.tmp"))
    states = set()
    with suppress(FileNotFoundError):  # a thread may end meanwhile
        for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
            states.add(thread.read_text().rpartition(")")[2].split()[0])
        return is_writing and states == {"S"}
    return False


class Moment(NamedTuple):
    """The request at which a command is held up, how many of them there are until then, and what was wrong before."""

    event: str
    number: int
    wrong: tuple[Wrong, ...] = ()


class InBatches(Way):
    """Commands until all batches are done; the server's time is virtual."""

    words = ("in.xlsx", "-o", "r.xlsx", "--judge", "openai", "--batch")
    rows = 2
    middle = "after it is created"
    waits = False
    signals = (signal.SIGINT, signal.SIGTERM)
    moments: ClassVar = {
        "before it is created": Moment(CREATE, 1),
        "after it is created": Moment("created", 1),
        "in the middle of a download": Moment(DOWNLOAD, 1),
        "when results are stored": Moment(DELETE, 1),
        "before it is forgotten": Moment(DELETE, 3),
        "at the second look for a new batch": Moment(
            LIST, 2, (Wrong(CREATE, "lost"), Wrong(LIST, "empty object"))
        ),
        "at the second look for a batch that is not there": Moment(
            LIST, 2, (Wrong(CREATE, "lost", is_done=False),)
        ),
        "at the second look for a known batch": Moment(
            POLL, 2, (Wrong(POLL, "404"), Wrong(LIST, "empty object"))
        ),
        "at the second look for the names of files": Moment(POLL, 2, (Wrong(POLL, "null files"),)),
        "in the second download after an empty one": Moment(DOWNLOAD, 3, (Wrong(DOWNLOAD, "404"),)),
        "in the second download after half a file": Moment(DOWNLOAD, 3, (Wrong(DOWNLOAD, "half"),)),
        "when the second half is stored": Moment(DELETE, 1, (Wrong(DOWNLOAD, "half"),)),
    }

    def open_servers(self, servers: ExitStack) -> list[FakeJudge]:
        self.server = servers.enter_context(running_batches())
        return [self.server.judge]

    def prepare(self) -> None:
        super().prepare()
        (self.folder / "config.ini").write_text(SHORT_RUN.replace("timeout_seconds = 0.7\n", ""))

    def variables(self) -> Mapping[str, str]:
        return openai(self.server)

    def watch(self, moment: Moment) -> None:
        seen: list[str] = []

        def hold(event: str) -> Answer | None:
            seen.append(event)
            if event != moment.event or seen.count(event) != moment.number or self.held:
                return None
            if event == DOWNLOAD:
                name = self.server.calls[-1].split("/")[2]
                return HalfSent(self.server.files[name], self)
            self.held.append(event)
            self.go_on.wait()
            return error(500, "server_error", "it is not created") if event == CREATE else None

        self.server.hook = hold
        self.server.wrong.extend(moment.wrong)

    def is_held(self, run: Fork) -> bool:
        return bool(self.held)

    def between(self, ended: Ended) -> None:
        assert ended.code == 75, ended.err
        self.server.end()
        pass_time(self.folder / "r.xlsx.journal")

    def finish(self) -> Ended:
        self.server.end()
        pass_time(self.folder / "r.xlsx.journal")
        while (ended := self.start().wait()).code == 75:
            self.between(ended)
        assert self.server.wrong == []
        assert sent_once(self.server)
        assert self.server.open() == []
        return ended

    def check_partial(self, ended: Ended) -> None:
        assert (self.folder / self.report).read_bytes() == OLD, ended.err


class HalfSent(Answer):
    """A body of which only a half is sent before its reader is held up."""

    def __init__(self, body: bytes, way: Way) -> None:
        super().__init__(200, body, cut_after=len(body) // 2)
        object.__setattr__(self, "way", way)

    def __getattribute__(self, name: str) -> Any:
        if name == "cut_after":  # asked for when the first half is on its way
            way = object.__getattribute__(self, "way")
            way.held.append("half")
            way.go_on.wait()
        return super().__getattribute__(name)


WAYS: Mapping[str, type[Way]] = {
    "run": Way,
    "batch": InBatches,
    "compare-judges": OfJudges,
    "shards": InShards,
    "processes": InProcesses,
}
Opened = Callable[[str], Way]
Unbroken = Callable[[str], tuple[Any, int]]


@pytest.fixture(scope="module")
def unbroken(forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    """What a job that nothing happens to results in, and the number of its questions."""
    known: dict[str, tuple[Any, int]] = {}

    def results(name: str) -> tuple[Any, int]:
        if name not in known:
            with ExitStack() as servers:
                way = WAYS[name](forker, tmp_path_factory.mktemp("unbroken"), servers)
                ended = way.finish()
                assert (ended.code, way.left()) == (0, []), ended.err
                known[name] = (way.results(), len(way.asked()))
        return known[name]

    return results


@pytest.fixture
def opened(forker: Forker, tmp_path: Path) -> Iterator[Callable[[str], Way]]:
    with ExitStack() as servers:

        def open_way(name: str) -> Way:
            if WAYS[name].report == "r.xlsx":
                (tmp_path / "r.xlsx").write_bytes(OLD)
            return WAYS[name](forker, tmp_path, servers)

        yield open_way


def check_finished(way: Way, expected: tuple[Any, int], twice: int) -> None:
    """The same command completes the job: with the results of an unbroken one, and for the same calls."""
    way.let_go()
    ended = way.finish()
    assert ended.code == 0, ended.err
    assert (way.results(), len(way.asked())) == expected
    assert way.paid_twice() <= twice
    assert way.left() == []


def each(names: Iterable[str], of: Callable[[str], Iterable[Any]], quick: Callable[[str], Any]) -> list[Any]:
    """Every way with all that may happen to it; only one thing of each is quick enough for every change."""
    return [
        pytest.param(name, what, marks=() if what == quick(name) else pytest.mark.slow, id=f"{name}, {what}")
        for name in names
        for what in of(name)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "moment"), each(WAYS, lambda name: WAYS[name].moments, lambda name: WAYS[name].middle)
)
def test_a_kill_costs_only_the_calls_in_flight(
    opened: Opened, unbroken: Unbroken, name: str, moment: str
) -> None:
    """What was stored is not asked for again, no lock, worker or file stays, and the report is the old one."""
    way = opened(name)
    run = way.reach(moment)
    workers = children(run.pid)
    run.signal(signal.SIGKILL)
    assert run.wait().code == -signal.SIGKILL
    if name == "processes":  # its workers are stopped
        way.let_go()
    wait_for(lambda: not any(map(is_alive, workers)), 60)
    way.check_killed(run)
    check_finished(way, unbroken(name), twice=0 if name == "batch" else WORKERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"), each(WAYS, lambda name: WAYS[name].signals, lambda _: signal.SIGINT)
)
def test_the_first_signal_reports_what_there_is(
    opened: Opened, unbroken: Unbroken, name: str, number: signal.Signals
) -> None:
    """Calls in flight are waited for; a command with batches ends at once."""
    way = opened(name)
    run = way.reach(way.middle)
    workers = children(run.pid)
    run.signal(number)
    wait_for(lambda: "Stopping" in run.said("err") if way.waits else run.has_ended(), 60)
    way.let_go()
    ended = run.wait()
    assert ended.code == CODES[number], ended.err
    way.check_partial(ended)
    wait_for(lambda: not any(map(is_alive, workers)), 60)
    check_finished(way, unbroken(name), twice=0)


@pytest.mark.parametrize(
    ("name", "number"),
    each(
        [name for name, way in WAYS.items() if way.waits],
        lambda name: WAYS[name].signals[:2],
        lambda name: signal.SIGTERM if name == "run" else None,
    ),
)
def test_the_second_signal_ends_at_once_and_loses_nothing(
    opened: Opened, unbroken: Unbroken, name: str, number: signal.Signals
) -> None:
    way = opened(name)
    run = way.reach(way.middle)
    workers = children(run.pid)
    run.signal(number)
    wait_for(lambda: "Stopping" in run.said("err"), 60)
    run.signal(number)
    ended = run.wait()  # though nothing answers it; a run that waited first would have written a report
    assert (ended.code, "PARTIAL" in ended.err) == (CODES[number], False)
    way.check_old()
    way.let_go()
    wait_for(lambda: not any(map(is_alive, workers)), 60)
    check_finished(way, unbroken(name), twice=WORKERS)


@pytest.mark.slow
@pytest.mark.parametrize("is_array", [True, False])
def test_what_judges_shards_alone_waits_for_its_open_call(
    forker: Forker, judge: FakeJudge, memory_path: Path, is_array: bool
) -> None:
    """A task of a job array, and a run that makes one call at a time and starts no worker."""
    sheet_of(memory_path / "in.xlsx", rows=3)
    (memory_path / "config.ini").write_text("[evaluation]\nmax_workers = 1\n")

    def start(*words: object) -> Fork:
        return forker.start(memory_path, *words, variables=azure(judge))

    whole: tuple[object, ...] = ("in.xlsx", "-o", "out", "--shard-rows", 1)
    command = whole
    if is_array:
        assert start(*whole, "--engine", "none").wait().code == 0
        command = ("shard", "out/specs/part-00000.json")
    is_held, go_on = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if len(judge.requests) > 5:
            is_held.set()
            go_on.wait()

    judge.always = hold
    run = start(*command)
    assert is_held.wait(60), run.said("err")
    run.signal(signal.SIGTERM)
    wait_for(lambda: "Stopping" in run.said("err"), 60)
    go_on.set()
    ended = run.wait()
    assert ended.code == 143, ended.err
    for words in (command, whole):
        assert start(*words).wait().code == 0
    asked = [each.prompt for each in judge.requests if each.task not in BATCHED]
    assert len(asked) == len(set(asked)) > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shards", "processes"])
def test_a_worker_that_is_killed_changes_nothing(opened: Opened, unbroken: Unbroken, name: str) -> None:
    way = opened(name)
    run = way.reach("judging")
    first, *others = children(run.pid)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: first not in children(run.pid), 60)
    if name == "processes":
        wait_for(lambda: sum(map(serves, children(run.pid))) == WORKERS, 60)
    fresh = children(run.pid)
    way.let_go()
    ended = run.wait()
    assert ended.code == 0, ended.err
    does = r"does (?:rows?|shard) .* again|takes its place"
    assert re.search(rf"Worker process {first} was killed by SIGKILL; another one (?:{does})\.", ended.err)
    assert not any(map(is_alive, (first, *others, *fresh)))
    assert (way.results(), len(way.asked())) == unbroken(name)
    assert way.paid_twice() <= WORKERS


@pytest.mark.slow
def test_nothing_is_sent_for_workers_that_are_killed_after_a_stop(opened: Opened, unbroken: Unbroken) -> None:
    """As where a signal is for all processes of a service: those that take their place know of the stop."""
    way = opened("shards")
    run = way.reach("judging")
    workers = children(run.pid)
    run.signal(signal.SIGTERM)
    wait_for(lambda: "Stopping" in run.said("err"), 60)
    sent = len(way.judges[0].requests)
    for worker in workers:
        os.kill(worker, signal.SIGTERM)
    way.let_go()
    ended = run.wait()
    assert (ended.code, len(way.judges[0].requests)) == (143, sent), ended.err
    check_finished(way, unbroken("shards"), twice=WORKERS)


@pytest.mark.slow
def test_thirty_kills_at_random_moments(forker: Forker, judge: FakeJudge, memory_path: Path) -> None:
    """Rounds of kills until a run gets through: nothing but calls in flight is paid twice, and nothing is different.

    The moments fall into starting, judging and saving alike. At each of them the report is a whole one.
    """
    seed = int(os.environ.get("KILL_SEED") or random.randrange(10**6))
    print(f"KILL_SEED={seed}")  # noqa: T201 - shown when the test fails, to repeat it
    moments = random.Random(seed)
    report = memory_path / "r.xlsx"
    sheet_of(memory_path / "in.xlsx", rows=2)
    judge.latency = 0.01

    def start() -> Fork:
        return forker.start(memory_path, "in.xlsx", "-o", "r.xlsx", variables=azure(judge))

    def tables() -> dict[str, Any]:
        return {name: read_sheet(report, name) for name in TABLES}

    began = time.monotonic()
    assert start().wait().code == 0
    duration = time.monotonic() - began
    expected, needed = tables(), singles(judge)
    assert needed == 2 * PER_ROW

    checked = b""
    kills = kills_in_round = rounds = 0
    judge.requests.clear()
    while kills < KILLS or kills_in_round:
        run = start()
        if kills < KILLS:
            # Judging takes about half of a run, and what was judged before is not judged again.
            rest = duration * (1 - min(singles(judge), needed) / needed / 2)
            time.sleep(moments.uniform(0, 1.05 * rest))
            run.signal(signal.SIGKILL)
        ended = run.wait()
        was_killed = ended.code == -signal.SIGKILL
        assert was_killed or ended.code == 0, f"seed {seed}: {ended.err}"
        kills, kills_in_round = kills + was_killed, kills_in_round + was_killed
        if (written := report.read_bytes()) != checked:
            assert tables() == expected, f"seed {seed}"
            checked = written
        if (memory_path / "r.xlsx.journal").exists() or not judge.requests:
            assert was_killed
            continue
        # The journal is gone: the report was saved, even if the kill came before the process could end.
        assert needed <= singles(judge) <= needed + kills_in_round * WORKERS, f"seed {seed}"
        judge.requests.clear()
        rounds, kills_in_round = rounds + 1, 0
    assert rounds >= 1


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 5])
def test_a_judge_that_does_not_answer_is_waited_for_ten_seconds(opened: Opened, asked: int) -> None:
    """At the first look at the endpoint as well as later. The judge never answers, and the run ends nevertheless."""
    way = opened("run")
    way.watch(asked)
    run = way.start()
    wait_for(lambda: way.held)
    run.signal(signal.SIGINT)
    ended = run.wait()
    assert ended.code == 130
    assert ("PARTIAL" in ended.err) is bool(asked)


def test_a_signal_that_was_ignored_before_stays_so(opened: Opened) -> None:
    """As under nohup."""
    way = opened("run")
    way.watch(5)
    run = way.start(ignored=(signal.SIGHUP,))
    wait_for(lambda: way.held)
    run.signal(signal.SIGHUP)
    way.let_go()
    assert run.wait().code == 0


@pytest.mark.slow
def test_an_offline_run_stops_promptly_with_what_it_has(forker: Forker, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 100000\n")
    lines = [f"Query {n}?,It is {n}.,It is {n}. Surely.,No idea.,It is {n}." for n in range(6_000)]
    (tmp_path / "in.csv").write_text("\n".join([",".join(HEADER), *lines]), encoding="utf-8")
    run = forker.start(tmp_path, "in.csv", "-o", "r.xlsx", "--judge", "offline")
    wait_for(lambda: " finished after" in run.said("err"))
    run.signal(signal.SIGINT)
    ended = run.wait()
    assert ended.code == 130, ended.err
    assert "PARTIAL" in ended.err
    workbook = load_workbook(tmp_path / "r.xlsx", read_only=True)
    assert 1 < workbook["Per-Query Metrics"].max_row < 12_000
    workbook.close()


_RUN = """
import os, sys
from rag_eval.cli.signals import stopping_on_signals


class Evaluation:
    stop_requested = False

    def request_stop(self, reason):
        self.stop_requested = True
        os.write(1, b"asked to stop")


reader, errors = os.pipe()  # nobody reads it, and it is full: whatever is written to it waits
os.set_blocking(errors, False)
try:
    while True:
        os.write(errors, b"x" * 65536)
except BlockingIOError:
    pass
os.set_blocking(errors, True)
os.dup2(errors, 2)
with stopping_on_signals(Evaluation()):
    os.write(1, b"ready")
    while True:
        sys.stdin.read(1)
"""


def test_a_second_signal_ends_a_run_whose_first_message_waits_for_its_reader() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert said(process) == b"ready"
            process.send_signal(signal.SIGTERM)
            assert said(process) == b"asked to stop"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
        finally:
            process.kill()


def said(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 60)[0], "it says nothing"
    return os.read(process.stdout.fileno(), 100)


_WRITING = """
import os, sys
from pathlib import Path
import click
from rag_eval.cli import _end
from rag_eval.store.leftovers import Scratch


@click.command()
def write():
    with Scratch(Path("report.xlsx")) as folder:
        os.write(1, folder.encode())
        sys.stdin.read()


_end(write)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_while_a_report_is_written_leaves_no_temporary_files(number: int, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            folder = said(process).decode()
            assert os.path.isdir(folder)
            process.send_signal(number)
            assert process.wait(60) == code
            assert not os.path.exists(folder)
        finally:
            process.kill()
