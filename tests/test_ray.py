"""Shards on Ray: what it is asked, and a real cluster of two nodes on this machine where Ray is installed."""

import importlib.util
import logging
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from conftest import KEY, Run, azure, wait_for
from fake_judge import FakeJudge
from files import sheet_of
from forking import ROOT
from test_shards import singles, told

from rag_eval.errors import InputError, RunStoppedError
from rag_eval.shards.engines import RayEngine

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed (pip install '.[ray]')")


@pytest.fixture
def world(judge: FakeJudge) -> Iterator[dict[str, str]]:
    """The environment of every process of the cluster: a token of its own, and a short folder for its sockets."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        ours = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "RAY_TMPDIR": folder}
        yield {**os.environ, **ours, **azure(judge), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def cluster(world: dict[str, str], tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    script = [sys.executable, str(ROOT / "tests/ray_cluster.py")]
    process = subprocess.Popen(
        script, env=world, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:  # at the end its pipes are closed, and the cluster ends with its input
        yield process


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@needs_ray
@pytest.mark.slow
def test_a_run_survives_the_loss_of_a_node(
    cluster: "subprocess.Popen[str]", world: dict[str, str], judge: FakeJudge, tmp_path: Path
) -> None:
    address = line_of(cluster)
    assert re.fullmatch(r"[\d.]+:\d+", address)
    sheet_of(tmp_path / "in.xlsx", rows=8)
    judge.latency = 0.02
    command = [
        sys.executable,
        "-m",
        "rag_eval",
        "in.xlsx",
        "-o",
        "out",
        "--shard-rows",
        "1",
        "-q",
        "--json",
        "out/report.json",
    ]
    command += ["--engine", "ray", "--address", address]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen(command, env=world, cwd=tmp_path, **pipes)
    parts = tmp_path / "out/results"
    wait_for(lambda: len(list(parts.glob("part-*.parquet"))) > 1 or run.poll() is not None)
    assert run.poll() is None, run.stderr and run.stderr.read()
    assert cluster.stdin is not None
    print("kill", file=cluster.stdin, flush=True)
    assert line_of(cluster) == "killed"
    output, complaints = run.communicate(timeout=300)
    assert run.returncode == 0, complaints
    assert output == "", "nothing of Ray's own state"
    assert re.fullmatch(r"(rag-eval: Ray lost the node [\d.]+\. .*\n)?", complaints), (
        "unless the run ended before"
    )
    asked = singles(judge)
    assert sum(asked.values()) - len(asked) <= 2, "only what was in flight is paid again"
    document = told(tmp_path / "out/report.json")
    assert [case["row"] for case in document["cases"]] == [row for row in range(2, 10) for _ in range(2)]
    assert document["end"]["status"] == "complete"
    logs = [path for path in Path(world["RAY_TMPDIR"]).rglob("*") if path.is_file() and not path.is_symlink()]
    assert logs
    assert not [path for path in logs if KEY.encode() in path.read_bytes()]


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_it_is_said_how_to_get_it(rag_eval: Run, tmp_path: Path) -> None:
    sheet_of(tmp_path / "in.xlsx", rows=1)
    ended = rag_eval("in.xlsx", "-o", "out", "--judge", "offline", "--engine", "ray")
    assert ended.code == 2
    assert "Ray is not installed; install it with pip install '.[ray]'" in ended.err


class StandIn:
    """Answers as the module ray: each shard is finished when it is waited for, in the order of their start."""

    def __init__(self) -> None:
        self.began: dict[str, object] = {}
        self.options: dict[str, object] = {}
        self.processors = 2.0
        self.most_under_way = 0
        self.has_ended = False
        self.looks = 0
        self.exceptions = SimpleNamespace(RayError=RuntimeError)

    def init(self, **options: object) -> None:
        self.began = options

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.processors} if self.processors else {}

    def nodes(self) -> list[dict[str, object]]:
        """Two of them; the second one dies after two shards. A dead one stays in the list for a while."""
        self.looks += 1
        if self.looks == 5:
            raise self.exceptions.RayError("no answer")
        first, second = (
            {"NodeID": f"id{n}", "NodeManagerAddress": f"10.0.0.{n}", "Alive": n == 1 or self.looks < 4}
            for n in (1, 2)
        )
        return [first, second]

    def shutdown(self) -> None:
        self.has_ended = True

    def remote(self, **options: object) -> Callable[..., SimpleNamespace]:
        self.options = options
        return lambda do: SimpleNamespace(remote=lambda task: (do, task))

    def wait(self, under_way: list[Any]) -> tuple[list[Any], list[Any]]:
        self.most_under_way = max(self.most_under_way, len(under_way))
        return under_way[:1], under_way[1:]

    def get(self, ready: tuple[Callable[[object], object], object]) -> object:
        do, task = ready
        return do(task)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    module = StandIn()
    monkeypatch.setitem(sys.modules, "ray", cast(ModuleType, module))
    monkeypatch.setitem(sys.modules, "ray.exceptions", cast(ModuleType, module.exceptions))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    monkeypatch.setenv(
        "RAY_DEDUP_LOGS_SKIP_REGEX", ""
    )  # so that the end of the test undoes what is set in it
    monkeypatch.delenv("RAY_DEDUP_LOGS_SKIP_REGEX")
    return module


def squared(task: Mapping[str, Any]) -> dict[str, Any]:
    if task["number"] == 13:
        raise RuntimeError("the worker\n died")
    return {"number": task["number"] ** 2}


@pytest.mark.parametrize(
    ("most", "processors", "slots"),
    [(9, 2.0, 2), (1, 2.0, 1), (0, 2.0, 1), (9, 0.0, 1), (9, 0.5, 1), (9, 3.0, 3)],
)
def test_as_many_shards_are_under_way_as_there_are_processors(
    ray: StandIn, most: int, processors: float, slots: int
) -> None:
    ray.processors = processors
    with RayEngine(None, most) as engine:
        assert engine.slots == slots
        tasks = iter([{"number": number} for number in range(5)])
        done = engine.map(squared, tasks)
        assert next(done) == {"number": 0}
        assert len(list(tasks)) == 5 - slots, "no more than that are taken from the plan"
    assert ray.has_ended
    assert ray.options == {"num_cpus": 1, "max_retries": 3}


def test_every_shard_comes_back_and_a_cluster_of_this_machine_has_no_dashboard(ray: StandIn) -> None:
    ours = {"logging_level": logging.WARNING, "log_to_driver": False, "ignore_reinit_error": True}
    engine = RayEngine(None, 2)
    assert ray.began == {"address": None, "include_dashboard": False, **ours}
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] == ".*"
    done = list(engine.map(squared, [{"number": number} for number in range(5)]))
    assert [found["number"] for found in done] == [number**2 for number in range(5)]
    assert ray.most_under_way == 2
    RayEngine("10.0.0.1:6379", 2)
    assert ray.began == {"address": "10.0.0.1:6379", **ours}


def test_a_node_that_is_lost_is_named_once_with_what_follows(ray: StandIn) -> None:
    done = list(RayEngine(None, 2).map(squared, [{"number": number} for number in range(6)]))
    assert [found.pop("warnings", []) for found in done] == [
        [],
        [],
        [
            "Ray lost the node 10.0.0.2. The shards that it was judging are judged again on other nodes; calls that "
            "were under way there may be paid again."
        ],
        [],
        [],
        [],
    ]
    assert done == [{"number": number**2} for number in range(6)]


def test_a_shard_whose_process_died_again_and_again_stops_the_run(ray: StandIn) -> None:
    done = RayEngine(None, 1).map(squared, [{"number": 2}, {"number": 13}])
    assert next(done) == {"number": 4}
    with pytest.raises(RunStoppedError, match=r"\(the worker died\); run the same command again") as stopped:
        next(done)
    assert stopped.value.code == "ray"


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError, ValueError, OSError])
def test_a_cluster_that_cannot_be_reached_is_named(ray: StandIn, error: type[Exception]) -> None:
    def refuse(**options: object) -> None:
        raise error("no\n route" + "." * 300)

    ray.init = refuse  # type: ignore[method-assign]
    said = r"--address ray://here: the Ray cluster cannot be used \(no route\.{292}\)$"
    with pytest.raises(InputError, match=said):
        RayEngine("ray://here", 2)
