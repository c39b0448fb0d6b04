"""Shards on a real Ray cluster of two nodes on this machine; skipped where Ray is not installed."""

import importlib.util
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import KEY, Run, azure
from fake_judge import FakeJudge
from forking import ROOT
from test_main_job import sheet_of, wait_for
from test_shards import singles, told

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
@pytest.mark.kill
def test_a_run_survives_the_loss_of_a_node(
    cluster: "subprocess.Popen[str]", world: dict[str, str], judge: FakeJudge, tmp_path: Path
) -> None:
    address = line_of(cluster)
    assert re.fullmatch(r"[\d.]+:\d+", address)
    sheet_of(tmp_path / "in.xlsx", rows=8)
    judge.latency = 0.02
    command = [sys.executable, "-m", "rag_eval", "in.xlsx", "-o", "out", "--shard-rows", "1", "-q"]
    command += ["--engine", "ray", "--address", address]
    run = subprocess.Popen(command, env=world, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / "out/results"
    wait_for(lambda: len(list(parts.glob("part-*.parquet"))) > 1 or run.poll() is not None)
    assert run.poll() is None
    assert cluster.stdin is not None
    print("kill", file=cluster.stdin, flush=True)
    assert line_of(cluster) == "killed"
    _, complaints = run.communicate(timeout=300)
    assert run.returncode == 0, complaints
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
