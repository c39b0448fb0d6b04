"""The manifest of a run says what it was and how it ended, however that was."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from conftest import KEY, Run, azure, wait_for
from fake_judge import FakeJudge, error
from files import write_table
from forking import Forker
from jsonschema import Draft202012Validator
from report_cases import facts_of, summary_of

from rag_eval.cli.facts import facts_at_end
from rag_eval.cli.manifest import Manifest
from rag_eval.configuration.settings import Settings
from rag_eval.run.evaluation import Evaluation
from rag_eval.run.judges import Judges
from rag_eval.store.lock import locked

ROOT = Path(__file__).parent.parent
SCHEMA = Draft202012Validator(
    json.loads((ROOT / "docs" / "manifest.schema.json").read_text(encoding="utf-8"))
)
SHEET = ["Query", "Bot_A", "Context"], ["When does it open?", "It opens at nine.", "It opens at nine."]


def manifest(folder: Path) -> dict[str, Any]:
    text = (folder / "run.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    assert list(SCHEMA.iter_errors(document)) == []
    assert KEY not in text
    return document


def test_a_complete_run(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    sheet = write_table(tmp_path / "in.xlsx", *SHEET)
    files = ("--junit", "gates.xml", "--markdown", "summary.md", "--manifest", "run.json")
    meanwhile: list[dict[str, Any]] = []
    judge.always = lambda request: meanwhile.append(manifest(tmp_path))
    ended = run_cli("in.xlsx", "-o", "r.xlsx", *files, "--max-calls", "99", **azure(judge))
    assert {(each["status"], each["run"]["rows"]) for each in meanwhile} == {("running", 1)}
    found = manifest(tmp_path)
    assert (ended.code, found["status"], found["exit_code"], found["reason"]) == (0, "complete", 0, "")
    assert found["options"]["max_calls"] == 99
    assert found["input"]["sha256"] == hashlib.sha256(sheet.read_bytes()).hexdigest()
    assert found["configuration"]["limits"]["max_calls"] == {
        "value": 99,
        "source": "command line --max-calls",
    }
    assert found["usage"]["calls"] + 1 == found["usage"]["requests"] == len(judge.requests)
    assert found["judged"] == {"A": {"scored": 1, "failed": 0, "queries": 1}}
    assert found["outputs"] == ["r.xlsx", "gates.xml", "summary.md"]


def test_a_run_that_another_command_continued_names_its_failures(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Those of all commands together."""
    blocked = error(400, "content_filter", "The prompt was filtered.")
    judge.always = lambda request: blocked if request.task == "statements" else None
    write_table(tmp_path / "in.xlsx", *SHEET)
    arguments = ("in.xlsx", "-o", "r.xlsx", "--manifest", "run.json")
    assert run_cli(*arguments, "--max-calls", "2", **azure(judge)).code == 4
    assert run_cli(*arguments, **azure(judge)).code == 3
    assert manifest(tmp_path)["usage"]["failures"] == {"blocked_by_filter": 1}


def test_the_duration_is_not_told_by_the_clock_on_the_wall() -> None:
    """It may be put back, or forward, while a run is under way."""
    evaluation = Evaluation(Judges.offline(Settings()), Settings())
    facts = facts_of(["A"], 0)
    for hours in (-1, 1):
        late = replace(facts, started=datetime.now().astimezone() + timedelta(hours=hours))
        ended = facts_at_end(late, evaluation.stats(), summary_of([], late), None, "")
        assert 0 <= ended.seconds < 600
    evaluation.close()


def test_a_run_ends_after_it_started_whatever_the_clock_does(tmp_path: Path) -> None:
    times = iter(datetime(2026, 3, 1, hour) for hour in (8, 7))
    with Manifest(tmp_path / "run.json", tmp_path / "in.csv", {}, lambda: next(times)):
        pass
    found = manifest(tmp_path)
    assert found["started"].startswith("2026-03-01T08:00:00")
    assert found["started"] < found["ended"] < found["started"].replace("T08:00", "T08:01")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, "interrupted by the user"),
        (signal.SIGTERM, "interrupted by the signal SIGTERM"),
        (signal.SIGHUP, "interrupted by the signal SIGHUP"),
    ],
)
def test_a_stopped_run_names_what_stopped_it(
    forker: Forker, judge: FakeJudge, tmp_path: Path, number: int, words: str
) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    go_on = threading.Event()

    def hold_the_fourth(request: Any) -> None:
        if len(judge.requests) > 3:
            go_on.wait(60)

    judge.always = hold_the_fourth
    started = forker.start(
        tmp_path, "in.xlsx", "-o", "r.xlsx", "--manifest", "run.json", variables=azure(judge)
    )
    wait_for(lambda: len(judge.requests) > 3)
    started.signal(number)
    wait_for(lambda: "Stopping" in (tmp_path / f".said.{started.pid}.err").read_text(encoding="utf-8"))
    go_on.set()
    started.wait()
    assert manifest(tmp_path)["reason"] == words


@pytest.mark.parametrize(
    ("arguments", "script", "status", "code"),
    [
        (["--max-calls", "3"], None, "partial", 4),
        ([], error(401, "401", f"wrong key {KEY}"), "failed", 4),
        (["--fail-under", "rqs=1"], None, "complete", 1),
        (["--fail-under", "nonsense"], None, "failed", 2),
        (["--sheet", "nowhere"], None, "failed", 2),
        (["--dry-run"], None, "complete", 0),
        (["-o", "folder.xlsx"], None, "failed", 5),
    ],
)
def test_every_end(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, arguments: list[str], script: Any, status: str, code: int
) -> None:
    judge.always = script
    (tmp_path / "folder.xlsx").mkdir()
    write_table(tmp_path / "in.xlsx", *SHEET)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--manifest", "run.json", *arguments, **azure(judge))
    found = manifest(tmp_path)
    assert (ended.code, found["exit_code"], found["status"]) == (code, code, status)
    assert bool(found["reason"]) is (status in ("partial", "failed"))


def test_a_manifest_that_does_not_fit_on_the_disk_is_named(offline_forker: Forker, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", ["Query", "Bot_A"], ["q", "a"])
    command = ("in.xlsx", "--judge", "offline", "--dry-run", "--manifest", "m.json")
    ended = offline_forker.run(tmp_path, *command, file_limit=100)
    problem = "rag-eval: m.json: cannot be written: File too large; choose another place with --manifest"
    assert (ended.code, ended.complaints) == (5, [problem])
    assert not (tmp_path / "m.json").exists()


def test_a_missing_input_is_said_so(run_cli: Run, tmp_path: Path) -> None:
    assert run_cli("nowhere.xlsx", "--manifest", "run.json", "--judge", "offline").code == 2
    found = manifest(tmp_path)
    assert (found["status"], found["input"]["sha256"]) == ("failed", None)


@pytest.mark.parametrize("name", ["in.xlsx", "r.xlsx"])
def test_it_replaces_neither_input_nor_report(run_cli: Run, tmp_path: Path, name: str) -> None:
    """Found out before anything is written there."""
    sheet = write_table(tmp_path / "in.xlsx", *SHEET)
    before = sheet.read_bytes()
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--manifest", name, "--judge", "offline")
    assert ended.code == 2
    assert "--manifest" in ended.err
    assert sheet.read_bytes() == before


def test_a_run_waits_for_another_one_if_it_is_told_to(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    held, over = threading.Event(), threading.Event()

    def other_run() -> None:
        with locked(tmp_path / "r.xlsx"):
            held.set()
            over.wait(10)

    thread = threading.Thread(target=other_run)
    thread.start()
    held.wait(10)
    arguments = ("in.xlsx", "-o", "r.xlsx", "--judge", "offline")
    assert run_cli(*arguments).code == 75
    assert run_cli(*arguments, "--wait", "0.001").code == 75
    threading.Timer(0.3, over.set).start()
    assert run_cli(*arguments, "--wait", "1").code == 0
    thread.join()


def test_a_run_that_waits_is_running(offline_forker: Forker, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    with locked(tmp_path / "r.xlsx"):
        command = ("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--wait", 5, "--manifest", "run.json")
        run = offline_forker.start(tmp_path, *command)
        wait_for((tmp_path / "run.json").exists, 60)
        assert manifest(tmp_path)["status"] == "running"
    assert run.wait().code == 0
    assert manifest(tmp_path)["status"] == "complete"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_interrupted_before_it_judges_has_its_exit_code(
    offline_forker: Forker, tmp_path: Path, number: int, code: int
) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    words = ("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--manifest", "run.json", "--wait", "9")
    with locked(tmp_path / "r.xlsx"):
        run = offline_forker.start(tmp_path, *words)
        wait_for(lambda: "in.xlsx, sheet" in run.said("out"))
        run.signal(number)
        ended = run.wait()
    assert (ended.code, ended.complaints) == (code, ["rag-eval: No report was written."])
    found = manifest(tmp_path)
    assert (found["status"], found["exit_code"], "outputs" in found) == ("failed", code, False)


@pytest.mark.slow
def test_packages_that_judged_are_among_the_versions(judge: FakeJudge, tmp_path: Path) -> None:
    """In new processes: what an earlier run imported would pass for used."""
    write_table(tmp_path / "in.xlsx", *SHEET)
    outputs = ("-o", "r.xlsx", "--json", "out.json", "--manifest", "run.json")
    judging = {"aiohttp", "openai", "ragas"}
    for arguments, variables, expected in (
        (["in.xlsx", "--judge", "offline"], {}, set()),
        (["in.xlsx"], azure(judge), judging),
        (["old.json", "--report-only"], {}, set()),
    ):
        command = [sys.executable, str(ROOT / "rag_eval_standalone.py"), *arguments, *outputs, "-q"]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, **variables}, check=True)
        document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert judging & document["versions"].keys() == expected
        assert all(document["versions"][name] == version(name) for name in expected)
        assert judging & manifest(tmp_path)["versions"].keys() == expected
        judged_with = document.get("made_from", document)["versions"]
        assert judging & judged_with.keys() == (judging if "in.xlsx" not in arguments else expected)
        (tmp_path / "out.json").replace(tmp_path / "old.json")


WITHOUT_RAGAS = """
import sys
from importlib import metadata
found = metadata.version
def version(name):
    if name == "ragas":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version, sys.modules["ragas"] = version, None
from rag_eval.cli import standalone
standalone()
"""


@pytest.mark.slow
def test_a_package_that_is_missing_is_told_by_who_needs_it(judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", *SHEET)
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAGAS, "in.xlsx", "--manifest", "run.json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), **azure(judge)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (ended.returncode, manifest(tmp_path)["status"]) == (2, "failed")
    assert "pip install --no-deps -r requirements-light.lock" in ended.stderr
    assert "versions" not in manifest(tmp_path)  # it ended before anything was about to be judged
