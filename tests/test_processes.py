"""Worker processes: items in order, few at a time, and nothing lost, repeated or left behind when one dies."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import wait_for

from rag_eval.errors import ExitCode
from rag_eval.run.processes import Processes, WorkerError


def named(values: Any) -> Iterator[tuple[str, Any]]:
    return ((f"item {value}", value) for value in values)


def is_alive(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(("number", "ahead"), [(1, 0), (1, 1), (2, 0), (3, 1)])
def test_results_come_in_the_order_of_the_items(number: int, ahead: int) -> None:
    with Processes("process_tasks:squares", number, ahead=ahead).open(5) as processes:
        assert list(processes.map(named(range(20)))) == [value * value + 5 for value in range(20)]


def test_plain_values_arrive_as_they_are() -> None:
    values = [
        None,
        True,
        0.1 + 0.2,
        -0.0,
        2**80,
        "ä\ud800\0",
        b"\0",
        [1, ["a", {"b": None}]],
        "x" * 3_000_000,
    ]
    with Processes("process_tasks:echo", 2, ahead=1).open(None) as processes:
        arrived = list(processes.map(("value", value) for value in values))
    assert list(map(repr, arrived)) == list(map(repr, values))


def test_a_slow_item_does_not_hold_up_the_others_when_the_order_does_not_matter() -> None:
    seconds = [0.5, *[0.0] * 10]
    with Processes("process_tasks:sleeper", 2).open(None) as processes:
        assert list(processes.map(named(seconds), in_order=False)) == [*[0.0] * 10, 0.5]


def test_few_items_are_taken_before_their_turn() -> None:
    taken = 0

    def items() -> Iterator[tuple[str, int]]:
        nonlocal taken
        for taken in range(1, 1_001):
            yield f"item {taken}", taken

    with Processes("process_tasks:echo", 2, ahead=1).open(None) as processes:
        for done, value in enumerate(processes.map(items()), 1):
            assert value == done
            assert taken <= done + 12


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_that_is_killed_costs_only_its_item(
    tmp_path: Path, deaths: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Processes("process_tasks:dies_on", 2, ahead=1).open((7, deaths, str(tmp_path))) as processes:
        assert list(processes.map(named(range(20)))) == list(range(20))
        assert len(processes.ids) == 2
    died = {path.name.split()[1] for path in tmp_path.iterdir()}
    assert len(died) == deaths
    replaced = [record.getMessage().partition(". ")[0] for record in caplog.records]
    how = "was killed by SIGKILL; another one does item 7 again"
    assert sorted(replaced) == sorted(f"Worker process {process} {how}" for process in died)


def test_an_item_on_which_workers_die_again_and_again_is_named(tmp_path: Path) -> None:
    with Processes("process_tasks:dies_on", 2, ahead=1).open((7, 99, str(tmp_path))) as processes:
        found = []
        with pytest.raises(WorkerError) as caught:
            found.extend(processes.map(named(range(20))))  # it keeps those that came before the error
    assert found == list(range(7))[: len(found)], "the other worker may be late to start"
    assert str(caught.value) == (
        "item 7: 3 worker processes died on this part; the last one was killed by SIGKILL. "
        "If memory is short, use fewer processes."
    )
    assert len(list(tmp_path.iterdir())) == 3


def test_an_idle_worker_that_is_killed_is_replaced() -> None:
    with Processes("process_tasks:process_ids", 1).open(None) as processes:
        (first,) = processes.map([("item", None)])
        os.kill(first, signal.SIGKILL)
        (second,) = processes.map([("item", None)])
    assert first != second


@pytest.mark.parametrize(
    ("item", "message", "code"),
    [
        (3, "item 3: 3 is not allowed", ExitCode.USAGE),
        (0, "item 0: internal error (ZeroDivisionError: integer division", ExitCode.STOPPED),
    ],
)
def test_an_error_of_the_function_is_the_error_of_the_run(item: int, message: str, code: ExitCode) -> None:
    with (
        Processes("process_tasks:fails_on", 2).open(3) as processes,
        pytest.raises(WorkerError, match=message.replace("(", r"\(")) as caught,
    ):
        list(processes.map(named([1, 2, item])))
    assert caught.value.exit_code == code


def test_a_specification_that_is_refused() -> None:
    with (
        Processes("process_tasks:cannot_open", 2).open(None) as processes,
        pytest.raises(WorkerError, match=r"^A worker process: the specification is not allowed$") as caught,
    ):
        list(processes.map(named([1])))
    assert caught.value.exit_code == ExitCode.USAGE


def test_workers_that_cannot_be_started() -> None:
    with (
        Processes("process_tasks:dies_at_once", 2).open(None) as processes,
        pytest.raises(WorkerError, match=r"cannot be started: the last one ended with code 7$"),
    ):
        list(processes.map(named([1, 2, 3])))


def test_what_a_worker_prints_is_not_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    with Processes("process_tasks:prints", 1).open(None) as processes:
        assert list(processes.map(named(["a", "b"]))) == ["a", "b"]
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("for an item") == 2


@pytest.mark.parametrize("has_errors", [True, False], ids=["with stderr", "without stderr"])
def test_only_the_private_output_reaches_the_first_process(has_errors: bool) -> None:
    program = (
        f"import os\n{'' if has_errors else 'os.close(2)'}\n"
        "from rag_eval.run.processes import _private_output\n"
        "replies = _private_output()\nos.write(1, b'printed')\nreplies.write(b'a reply')\nreplies.flush()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"a reply", b"printed" if has_errors else b"")


@pytest.mark.parametrize("is_stopped", [False, True])
def test_close_ends_workers_that_still_work(tmp_path: Path, is_stopped: bool) -> None:
    processes = Processes("process_tasks:holds", 2).open(str(tmp_path))
    results = processes.map(named("ab"))
    threading.Timer(0, processes.stop, [0.0]).start() if is_stopped else None
    if is_stopped:
        assert list(results) == []
    ids = processes.ids
    processes.close()
    assert not any(map(is_alive, ids))


@pytest.mark.parametrize(("ahead", "under_way"), [(0, "ab"), (1, "abcd")])
def test_after_a_stop_what_is_under_way_is_still_done(tmp_path: Path, ahead: int, under_way: str) -> None:
    """And what waits in the workers, which is as much as was asked for."""
    with Processes("process_tasks:holds", 2, ahead=ahead).open(str(tmp_path)) as processes:
        taken = []

        def items() -> Iterator[tuple[str, str]]:
            for value in "abcdef":
                taken.append(value)
                yield value, value

        results: list[str] = []
        waiting = threading.Thread(target=lambda: results.extend(processes.map(items())))
        waiting.start()
        wait_for(lambda: (len(list(tmp_path.iterdir())), len(taken)) == (2, len(under_way)), 60)
        processes.stop(60)
        (tmp_path / "go").touch()
        waiting.join()
    assert results == taken == [*under_way]


_PARENT = """
import sys
sys.path[:] = {path!r}
from rag_eval.run.processes import Processes
with Processes("process_tasks:holds", 2, forks={forks}).open({folder!r}) as processes:
    list(processes.map([("a", "a"), ("b", "b")]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_process_leaves_no_workers_behind(tmp_path: Path, number: int, forks: bool) -> None:
    code = _PARENT.format(path=sys.path, folder=str(tmp_path), forks=forks)
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as parent:
        wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
        workers = [int(path.name.split()[1]) for path in tmp_path.iterdir()]
        assert all(map(is_alive, workers))
        parent.send_signal(number)
    wait_for(lambda: not any(map(is_alive, workers)))


_FORKED = """
import os, sys
sys.path[:] = {path!r}
from rag_eval.run.processes import Processes
with Processes("process_tasks:process_ids", 2, forks=True).open(None) as processes:
    workers = {{*processes.ids}}
    print(workers.issuperset(processes.map([("a", None), ("b", None)])), file=sys.stderr)
    os.kill(min(workers), 9)
    print(min(workers) in processes.map([("c", None), ("d", None)]), min(workers) in processes.ids)
"""


def test_copies_of_a_process_do_what_they_are_given_and_are_only_replaced_if_they_die() -> None:
    """Only a process with one thread may be copied."""
    command = [sys.executable, "-c", _FORKED.format(path=sys.path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "False False\n")
    assert re.fullmatch(r"True\nWorker process \d+ was killed by SIGKILL; another one .*\n", ended.stderr)


_SIGNALLED = """
import os, signal, sys
sys.path[:] = {path!r}
from rag_eval.cli.signals import Terminated, terminable
from rag_eval.run.processes import Processes
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
with terminable():
    try:
        Processes("process_tasks:process_ids", 1, forks=True).open(None)
    except Terminated:
        print("terminated")
"""


def test_a_signal_in_the_middle_of_a_fork_is_heeded() -> None:
    """What a handler raises there, Python only prints."""
    command = [sys.executable, "-c", _SIGNALLED.format(path=sys.path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "terminated\n", "")


def test_a_signal_of_the_terminal_is_for_the_first_process_alone() -> None:
    with Processes("process_tasks:process_ids", 1).open(None) as processes:
        (worker,) = processes.map([("item", None)])
        assert os.getpgid(worker) != os.getpgid(0)
        os.kill(worker, signal.SIGINT)
        assert list(processes.map([("item", None)])) == [worker]
