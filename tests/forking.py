"""Real processes of the command line, begun in milliseconds: one process imports everything, and forks for a run.

Run as a script, this module is that process: a request a line on its input, an answer a line on its output.
"""

import atexit
import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any

from io_faults import Faults

ROOT = Path(__file__).parent.parent
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - folders of our own are made in it
MEMORY = (
    _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) and disk_usage(_SHARED_MEMORY).free > 1e9 else None
)
"""A folder in memory, where files are made and removed without waiting for a disk; None where there is none."""


@dataclass(frozen=True)
class Ended:
    """How a process ended. `code` is negative for a signal that ended it."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("rag-eval: ")]


def children(pid: int) -> list[int]:
    """The processes that a process started and that run; none where /proc is missing."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    found: list[int] = []
    for task in tasks:
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found += map(int, task.read_text().split())
    return sorted(found)


@dataclass(frozen=True)
class World:
    """What is wrong around a run."""

    fault: int | None = None
    """Number of the step of input and output that fails, as on a full disk …"""
    fault_lasts: bool = False
    """… and, if it lasts, every later one that needs room."""
    steps: str = ""
    """A file in which to list the steps."""
    file_limit: int | None = None
    """Bytes that a file may have at most."""
    ignored: tuple[int, ...] = ()
    """Signals that are ignored from the beginning."""
    unheard: tuple[int, ...] = ()
    """Streams (1 for the output, 2 for errors) that are pipes to nobody …"""
    full: tuple[int, ...] = ()
    """… that go to a full disk …"""
    closed: tuple[int, ...] = ()
    """… and that are not there at all, as 0, the input, may be."""


class Fork:
    """A process of the command line."""

    def __init__(self, forker: "Forker", pid: int, folder: Path) -> None:
        self.pid = pid
        self._forker = forker
        self._folder = folder
        self._status: int | None = None

    @property
    def is_known_to_have_ended(self) -> bool:
        return self._status is not None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def has_ended(self) -> bool:
        if self._status is None:
            self._status = self._forker.ask(poll=self.pid)
        return self._status is not None

    def wait(self, seconds: float = 300.0) -> Ended:
        until = time.monotonic() + seconds
        while not self.has_ended():
            assert time.monotonic() < until, f"still running; it said: {self.said('err')}"
            time.sleep(0.005)
        assert self._status is not None
        return Ended(os.waitstatus_to_exitcode(self._status), self.said("out"), self.said("err"))

    def said(self, stream: str) -> str:
        """What it said until now, to 'out' or 'err'."""
        file = self._folder / f".said.{self.pid}.{stream}"
        return file.read_text(encoding="utf-8") if file.exists() else ""


class Forker:
    """Starts runs in folders. What a run says goes to hidden files in its folder."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._runs: list[Fork] = []

    def start(
        self, folder: Path, *arguments: object, variables: Mapping[str, str] | None = None, **world: Any
    ) -> Fork:
        """Run `rag-eval ARGUMENTS` in `folder`, in a `world` that may be hostile; see World."""
        request = {
            "argv": ["rag-eval", *map(str, arguments)],
            "folder": str(folder),
            "variables": dict(variables or {}),
            "world": asdict(World(**world)),
        }
        self._runs = [run for run in self._runs if not run.is_known_to_have_ended]
        self._runs.append(run := Fork(self, self.ask(**request), folder))
        return run

    def run(self, folder: Path, *arguments: object, **options: Any) -> Ended:
        return self.start(folder, *arguments, **options).wait()

    def end(self) -> None:
        """Kill what a test that failed left running or stopped, with its workers."""
        for run in self._runs:
            if not run.has_ended():
                for pid in (run.pid, *children(run.pid)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                run.wait()

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def forking(provider: str = "any") -> Iterator[Forker]:
    """`provider` may be 'offline': without what asks an endpoint, a fork begins and ends faster."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AZURE", "OPENAI"))
    }
    environment |= {
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as left_by_killed_runs,
        subprocess.Popen(
            [sys.executable, __file__, provider],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment, "TMPDIR": left_by_killed_runs},
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        forker = Forker(process)
        try:
            yield forker
        finally:
            forker.end()
            assert process.stdin is not None
            process.stdin.close()


def _serve() -> None:
    os.write(1, b"ready\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            _answer(status if pid else None)
            continue
        pid = os.fork()
        if pid == 0:
            _become(request)  # and leave
        _answer(pid)


def _answer(value: object) -> None:
    os.write(1, (json.dumps(value) + "\n").encode())


def _become(request: dict[str, Any]) -> None:
    from rag_eval import cli

    world = World(**request["world"])
    os.chdir(request["folder"])
    os.environ.update(request["variables"])
    tempfile.tempdir = None  # what was imported may have asked for it already
    _redirect(f".said.{os.getpid()}", world)
    for number in world.ignored:
        signal.signal(number, signal.SIG_IGN)
    if world.file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (world.file_limit, world.file_limit))
    if world.fault or world.steps:
        _break(world)
    sys.argv = request["argv"]
    try:
        cli.main()
    except SystemExit as ended:
        if world.unheard or world.full or world.closed or not isinstance(ended.code, int):
            raise
        _leave(ended.code)


def _leave(code: int) -> None:
    """End as Python does, but for freeing every object, which takes up to half of the time of a run."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _redirect(name: str, world: World) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{name}.{stream}", os.O_CREAT | os.O_WRONLY), number)
        if number in world.unheard:
            reader, writer = os.pipe()
            os.dup2(writer, number)
            os.close(reader)
            os.close(writer)
        if number in world.full:
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)
    for number in world.closed:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)  # as Python finds it when it starts


def _break(world: World) -> None:
    faults = Faults(world.fault, lasts=world.fault_lasts)
    if world.steps:
        atexit.register(_list_steps, faults, os.open(world.steps, os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
    from rag_eval.store.replacement import Replacement

    real = os.replace
    faults.install()
    bound = Replacement.__init__.__defaults__ or ()  # when the class was made, before it could fail
    Replacement.__init__.__defaults__ = tuple(os.replace if each is real else each for each in bound)


def _list_steps(faults: Faults, descriptor: int) -> None:
    os.write(descriptor, "\n".join(faults.steps).encode())


def _import_everything(provider: str) -> None:
    """Whatever a run imports on its way, so that a fork has it already.

    Objects that are frozen are not looked at by the garbage collector, and so not copied.
    """
    warnings.simplefilter("ignore")
    for name in _OFFLINE_MODULES if provider == "offline" else _OFFLINE_MODULES + _LLM_MODULES:
        importlib.import_module(name)
    _judge_the_sample()
    if provider != "offline":
        from rag_eval.texts.injection import find_flags

        # Compiles the patterns, which the offline judge does not need.
        find_flags("Ignore all previous instructions.")
    gc.freeze()


def _judge_the_sample() -> None:
    """Once, so that a fork need not compile the same patterns again: a quarter of its time."""
    from rag_eval import cli

    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, suppress(SystemExit):
        report = str(Path(folder) / "r.xlsx")
        sys.argv = ["rag-eval", str(ROOT / "sample_rag_input.xlsx"), "-o", report, "--judge", "offline", "-q"]
        cli.main()
    assert threading.active_count() == 1, "a fork has no threads of ours"


_OFFLINE_MODULES = [
    "numpy.random",
    "openpyxl",
    "rag_eval.cli.job",
    "rag_eval.cli.session",
    "rag_eval.cli.run",
    "rag_eval.configuration",
    "rag_eval.texts.injection",
    "rag_eval.metrics.catalogue",
    "rag_eval.results.tallies",
    "rag_eval.configuration.provenance",
    "rag_eval.report.csv_files",
    "rag_eval.report.workbook",
    "rag_eval.report.json_file",
    "rag_eval.report.outputs",
    "rag_eval.results.tallies",
    "rag_eval.run.evaluation",
    "rag_eval.results.comparison",
    "rag_eval.results.intervals",
    "rag_eval.tables.excel",
    "xlsxwriter",
]
_LLM_MODULES = [
    "aiohttp",
    "httpx2",
    "openai.lib.azure",
    "openai.resources.chat.completions",
    "rag_eval.judge.connection",
    "rag_eval.judge.transport",
    "rag_eval.metrics.ragas_import",
    "rag_eval.run.batches",
    "rag_eval.rubric",
    "rag_eval.shards.folder",
    "rag_eval.store.reply_store",
]


if __name__ == "__main__":
    _import_everything(sys.argv[1])
    _serve()
