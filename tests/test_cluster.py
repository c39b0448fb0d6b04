"""The recipes of docs/cluster.md: they parse, and judge a run in shards as they stand there."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import Run
from files import write_table
from forking import ROOT

from rag_eval.shards.folder import RunFolder

PAGE = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


(SLURM,) = blocks("slurm")
(JOB,) = map(yaml.safe_load, blocks("yaml"))
(CONTAINER,) = JOB["spec"]["template"]["spec"]["containers"]
(POD_SCRIPT,) = CONTAINER["args"]


@pytest.fixture
def shared(rag_eval: Run, tmp_path: Path) -> Path:
    """A folder with two files of answers, cut into shards, and with the command where the recipes expect it."""
    shared = tmp_path / "shared"
    (shared / "answers").mkdir(parents=True)
    for name in ("a", "b"):
        write_table(
            shared / "answers" / f"{name}.csv",
            ["Query", "Bot_A"],
            *([f"Where is {name} {number}?", "It is here."] for number in range(2)),
        )
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    ended = rag_eval(shared / "answers", "-o", shared / "out", "--engine", "none")
    assert (ended.code, "2 specifications" in ended.out) == (0, True), ended.err
    command = shared / "venv/bin/rag-eval"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m rag_eval "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return shared


def run(shared: Path, shell: str, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The script with this folder as /shared, by what has only the path that it needs."""
    (shared.parent / "rag-eval").mkdir(exist_ok=True)
    environment = {
        "PATH": f"{shared / 'venv/bin'}:{os.environ['PATH']}",
        "HOME": str(shared.parent),
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    return subprocess.run(
        [shell, "-c", script.replace("/shared/", f"{shared}/")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_job_of_slurm_and_a_pod_each_judge_their_shard(rag_eval: Run, shared: Path) -> None:
    folder = RunFolder(shared / "out")
    ended = run(shared, "bash", SLURM, SLURM_ARRAY_TASK_ID="1")
    assert (ended.returncode, folder.results(1).exists(), folder.results(0).exists()) == (0, True, False)
    partial = rag_eval("report", shared / "out")
    assert (partial.code, "PARTIAL: 1 of 2 shards are judged" in partial.err) == (4, True)
    ended = run(shared, CONTAINER["command"][0], POD_SCRIPT, JOB_COMPLETION_INDEX="0")
    assert (ended.returncode, folder.results(0).exists()) == (0, True), ended.stderr
    done = rag_eval("report", shared / "out", "--json", shared / "run.json")
    assert done.code == 0, done.err
    assert [case["source"] for case in json.loads((shared / "run.json").read_text())["cases"]] == [
        *["a.csv"] * 2,
        *["b.csv"] * 2,
    ]


@pytest.mark.slow
def test_a_shard_that_there_is_not_ends_with_an_error(shared: Path) -> None:
    ended = run(shared, "bash", SLURM, SLURM_ARRAY_TASK_ID="7")
    assert (ended.returncode, "part-00007.json" in ended.stderr) == (2, True)


def test_the_recipes_agree_with_each_other() -> None:
    """The number of shards and of those at once, the paths, and the name of the image and of the secret."""
    first, last, at_once = re.findall(r"--array=(\d+)-(\d+)%(\d+)", SLURM)[0]
    spec = JOB["spec"]
    assert (int(first), int(last) + 1, int(at_once)) == (0, spec["completions"], spec["parallelism"])
    assert SLURM.count(f"--at-once {at_once}") == POD_SCRIPT.count(f"--at-once {at_once}") == 1
    assert (spec["completionMode"], spec["template"]["spec"]["restartPolicy"]) == ("Indexed", "Never")
    (build, secret, *others) = (
        block for block in blocks("sh") if "docker build" in block or "create secret" in block
    )
    assert others == []
    assert f"-t {CONTAINER['image']} ." in build
    assert f"generic {CONTAINER['envFrom'][0]['secretRef']['name']} --from-env-file" in secret
    (volume,) = JOB["spec"]["template"]["spec"]["volumes"]
    assert CONTAINER["volumeMounts"] == [{"name": volume["name"], "mountPath": "/shared"}]


@pytest.mark.parametrize("script", [*blocks("sh"), *blocks("bash"), SLURM, POD_SCRIPT])
def test_every_shell_block_parses(script: str) -> None:
    found = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
