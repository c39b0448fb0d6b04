"""What every test may use. No test reaches further than this machine, and none sees a real key."""

import gc
import os
import re
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
from fake_judge import FakeJudge, running_judge
from forking import MEMORY, Forker, forking
from hypothesis import settings
from openpyxl import load_workbook

from rag_eval import cli
from rag_eval.cli import console

if MEMORY is not None:  # a flush to a disk takes milliseconds, and most tests wait for many
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# No test is timed; what is drawn differs on every desk, and never in CI.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

KEY = "canary-key-0123456789abcdef"
CREDENTIALS = ("AZURE_OPENAI_", "OPENAI_", "AZURE_")


def pytest_configure(config: pytest.Config) -> None:
    # Ignored as after `make test &` and under nohup, runs would inherit it. A handler is not inherited, and lets the
    # tests survive their terminal like nohup.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return max(3, os.cpu_count() or 1)  # three on two cores, since some tests wait for long


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of several processes, each first compiles other files than the others, which find them compiled then."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if count > 1 and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        for path in sorted(Path(__file__).parent.glob("test_*.py"))[number::count]:
            with suppress(Exception, pytest.skip.Exception):  # which the collection meets again, and tells
                import_module(path.stem)


def pytest_collection_finish() -> None:
    gc.freeze()  # what thousands of tests are made of is not looked at by the garbage collector


@pytest.fixture(autouse=True)
def _no_network_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anything but loopback fails the test; no real key is seen."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            pytest.fail(f"a test connected to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    console._hidden.clear()  # a key that an earlier test hid would be hidden in this one whatever it does
    for name in list(os.environ):
        if name.upper().startswith(CREDENTIALS) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    with running_judge() as running:
        yield running


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """Like tmp_path, and in memory where that is possible: for tests that make thousands of files and flushes."""
    if MEMORY is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def offline_forker() -> Iterator[Forker]:
    """Begins faster than `forker`, for runs that ask no endpoint."""
    with forking("offline") as running:
        yield running


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """Starts real processes of the command line in milliseconds."""
    with forking() as running:
        yield running


@pytest.fixture
def one_core() -> Iterator[None]:
    """Runs in shards do everything in this process: a worker process of each would import everything again.

    Processes that share the tests have a core each.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {sorted(allowed)[own % len(allowed)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the script in this process, in an empty folder, with the given arguments and variables."""
    return runner(cli.standalone, tmp_path, monkeypatch, capsys)


@pytest.fixture
def rag_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command rag-eval in the same way."""
    return runner(cli.main, tmp_path, monkeypatch, capsys)


def with_json_and_page(run: Run) -> Run:
    """Runs in shards, and their reports, have both in their folder, so that tests can look into them."""

    def ended(*arguments: object, **variables: str) -> Ended:
        words = list(map(str, arguments))
        folder = words[1] if words[0] == "report" else words[words.index("-o") + 1] if "-o" in words else ""
        is_wanted = folder and not folder.endswith(".xlsx") and not {"cases", "--show", "--json"} & {*words}
        if is_wanted:
            words += ["--json", f"{folder}/report.json", "--html", f"{folder}/report.html"]
        return run(*words, **variables)

    return ended


def runner(
    start: Callable[[], object],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """What runs a command in this process, in that folder, with the given arguments and variables."""
    monkeypatch.chdir(folder)

    def run(*arguments: object, **variables: str) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["rag-eval", *map(str, arguments)])
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                start()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return run


def is_excerpt(shown: str, printed: str) -> bool:
    """Whether a page shows all that was printed, but for one or more whole lines at each line of `…`."""
    parts = map(re.escape, re.split(r"^…\n", shown, flags=re.MULTILINE))
    return bool(re.fullmatch(r"(?:.*\n)+".join(parts), printed))


def azure(judge: FakeJudge) -> dict[str, str]:
    """The variables that make the fake judge an Azure resource."""
    return {"AZURE_OPENAI_ENDPOINT": judge.url, "AZURE_OPENAI_API_KEY": KEY}


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    """No file grows beyond so many bytes: what a full disk does, without one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def wait_for(condition: Any, seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


TABLES = ("Per-Query Metrics", "Bot Summary", "Leaderboard")


def read_boxes(path: Path) -> str:
    """The texts of the boxes that float over the sheets of a report."""
    namespace = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
    with ZipFile(path) as package:
        parts = [
            package.read(name) for name in package.namelist() if re.search(r"drawings/drawing\d+\.xml", name)
        ]
    roots = [ElementTree.fromstring(part) for part in parts]  # noqa: S314 (the report's own parts)
    return "\n".join(each.text or "" for root in roots for each in root.iter(f"{namespace}t"))


def read_sheet(path: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a sheet of a report by header."""
    workbook = load_workbook(path, read_only=True)
    rows = workbook[name].iter_rows(values_only=True)
    header = [str(cell) for cell in next(rows)]
    records = [dict(zip(header, row, strict=True)) for row in rows]
    workbook.close()
    return records
