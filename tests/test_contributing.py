"""What CONTRIBUTING.md says is so: its recipe for a metric is followed in a copy of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import azure, read_sheet
from fake_judge import Answer, FakeJudge, Request, structured
from openpyxl import load_workbook
from report_cases import facts_of, plain_result, summary_of

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
POLITE_WORDS = {"thank", "please", "sorry", "welcome"}


@dataclass(frozen=True)
class Copy:
    """A copy of the project, with the new metric in it."""

    folder: Path

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def report(self, *arguments: str, **variables: str) -> Any:
        """The workbook of a run of the sample, and the run's JSON."""
        script = ("rag_eval_standalone.py", "sample_rag_input.xlsx", "-o", "r.xlsx", "--json", "r.json")
        ended = self.run(*script, *arguments, **variables)
        assert ended.returncode == 0, ended.stderr
        return json.loads((self.folder / "r.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    section = GUIDE.partition("## A new metric\n")[2].partition("\n## ")[0]
    module, line, test = map(
        textwrap.dedent, re.findall(r"^ *```python\n(.*?)^ *```", section, re.MULTILINE | re.DOTALL)
    )
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "rag_eval", folder / "rag_eval", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("rag_eval_standalone.py", "sample_rag_input.xlsx"):
        shutil.copy(ROOT / name, folder)
    (folder / "rag_eval" / "metrics" / "polite_answer.py").write_text(module, encoding="utf-8")
    records = folder / "rag_eval" / "records.py"
    last = '        "context_recall": "Context Recall",\n'
    text = records.read_text(encoding="utf-8")
    assert text.count(last) == 1
    records.write_text(text.replace(last, last + textwrap.indent(line, " " * 8)), encoding="utf-8")
    (folder / "test_polite_answer.py").write_text(test, encoding="utf-8")
    return Copy(folder)


def judging_politeness(request: Request) -> Answer | None:
    """The replies of the new metric; everything else is answered as ever."""
    if "Is the text of the user message polite?" not in request.prompt:
        return None
    polite = len(request.body["messages"][1]["content"]) % 2 == 0
    return structured(json.dumps({"reason": "Its tone.", "polite": polite}), request)


@pytest.mark.slow
def test_the_metric_is_judged_offline_and_has_its_weight_threshold_column_and_failure_mode(
    copy: Copy,
) -> None:
    document = copy.report("--judge", "offline")
    cases = document["cases"]
    assert len(cases) > 5
    for case in cases:
        polite = case["scores"]["polite_answer"]
        words = set((case["response"] or "").lower().split())
        assert polite["value"] == (float(bool(words & POLITE_WORDS)) if words else None)
        if polite["value"] == 0:
            assert "Low Quality" in case["failure_modes"]
    counted = {cause["name"]: cause["count"] for bot in document["causes"] for cause in bot["causes"]}
    assert counted["low_score"] > 0  # of cases that fail by this metric only
    for bot in document["causes"]:
        assert sum(cause["count"] for cause in bot["causes"]) == bot["failures"]
    advice = "Another score is below its threshold (Polite Answer): check the red cells. The response is not polite: "
    assert any(case["recommendation"].startswith(advice) for case in cases)
    assert document["run"]["weights"]["polite_answer"] == pytest.approx(0.1 / 1.1)
    assert document["run"]["thresholds"]["polite_answer"] == 0.5
    rows = read_sheet(copy.folder / "r.xlsx", "Per-Query Metrics")
    assert [row["Polite Answer"] for row in rows] == [
        case["scores"]["polite_answer"]["value"] for case in cases
    ]
    book = load_workbook(copy.folder / "r.xlsx")
    (header,) = [cell for cell in book["Per-Query Metrics"][1] if cell.value == "Polite Answer"]
    assert "Whether the response is polite: 1 or 0." in header.comment.text
    assert "1 if the response contains thank, please, sorry or welcome" in header.comment.text
    assert "Thr_Polite_Answer" in book.defined_names
    for sheet in ("Leaderboard", "Bot Summary"):
        assert "Polite Answer" in read_sheet(copy.folder / "r.xlsx", sheet)[0]


@pytest.mark.slow
def test_an_llm_judge_is_asked_for_the_metric(copy: Copy, judge: FakeJudge) -> None:
    judge.always = judging_politeness
    document = copy.report(**azure(judge))
    asked = [request for request in judge.requests if judging_politeness(request)]
    assert asked
    for case in document["cases"]:
        expected = float(len(case["response"]) % 2 == 0) if case["response"] else None
        assert case["scores"]["polite_answer"]["value"] == expected
    planned = copy.run("rag_eval_standalone.py", "sample_rag_input.xlsx", "--dry-run", **azure(judge))
    assert planned.returncode == 0, planned.stderr
    assert re.search(rf"polite_answer\W+{len(asked)}\b", planned.stdout)


@pytest.mark.slow
def test_the_keys_of_the_metric_can_be_set(copy: Copy) -> None:
    config = "[weights]\npolite_answer = 0\n[thresholds]\npolite_answer = 0\n"
    (copy.folder / "own.ini").write_text(config)
    document = copy.report("--judge", "offline", "--config", "own.ini")
    assert document["run"]["weights"]["polite_answer"] == 0
    assert document["run"]["thresholds"]["polite_answer"] == 0
    (copy.folder / "own.ini").write_text("[metrics]\npolite_answer = off\n")
    assert "polite_answer" not in copy.report("--judge", "offline", "--config", "own.ini")["run"]["metrics"]


@pytest.mark.slow
def test_the_test_of_the_recipe_passes(copy: Copy) -> None:
    ended = copy.run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_polite_answer.py"),
        PYTHONPATH=os.pathsep.join([str(copy.folder), str(ROOT / "tests")]),
    )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout


FOLLOWED = """
import collections, json, runpy, sys, threading

first = {}


def note(frame, event, argument):
    if event == "call":
        _, found, file = frame.f_code.co_filename.rpartition("/rag_eval/")
        if found:
            first.setdefault(f"rag_eval/{file} {frame.f_code.co_qualname}", len(first))


threading.setprofile(note)
sys.setprofile(note)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    sys.setprofile(None)
    with open("followed.json", "w") as file:
        json.dump(first, file)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("way", "kind"), [("row", "offline"), ("call", "azure")])
def test_a_row_and_a_call_go_the_way_that_the_guide_describes(
    tmp_path: Path, judge: FakeJudge, way: str, kind: str
) -> None:
    """In ten lines each; a row in this order, while threads may overtake each other."""
    section = GUIDE.partition(f"## The way of a {way}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)
    (tmp_path / "in.csv").write_text("Query,Ground_Truth,Bot_A,Context\nq?,Tea.,Tea is a drink.,It is hot.\n")
    ended = subprocess.run(
        [sys.executable, "-c", FOLLOWED, str(ROOT / "rag_eval_standalone.py"), "in.csv", "--judge", kind],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **azure(judge)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    first = json.loads((tmp_path / "followed.json").read_text(encoding="utf-8"))
    named = [re.findall(r"`(rag_eval/[\w/]+\.py)`[^`]*?`([\w.]+)`", line) for line in lines]
    passed = [min(first[f"{file} {name}"] for file, name in line) for line in named]
    assert len(passed) == 10
    assert way == "call" or passed == sorted(passed)


def test_every_file_that_the_guide_names_exists() -> None:
    named = re.findall(r"`((?:rag_eval|tests|docs|scripts)/[\w./]+)`", GUIDE)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_column_of_the_guide_works() -> None:
    from rag_eval.records import Case, CaseResult, FailureMode, Score
    from rag_eval.report.column import plain_column
    from rag_eval.report.styles import Look

    example = example_of("A new column")
    column = eval(example, {"plain_column": plain_column, "Look": Look})  # noqa: S307 - the documented example
    result = CaseResult(
        case=Case(2, "A", "How much is it?", "5"),
        scores={},
        toxicity=Score.scored("toxicity", 0.0),
        rqs=None,
        failure_modes=(FailureMode.OK,),
    )
    assert (column.header, column.cell(result).value) == ("Query Words", 4)


def test_the_table_of_the_guide_works() -> None:
    from rag_eval.records import FailureMode
    from rag_eval.report.column import PagePart, ReportTable, plain_column
    from rag_eval.report.outputs import FinishedRun
    from rag_eval.report.styles import Look
    from rag_eval.results.findings import find

    names = (FailureMode, PagePart, ReportTable, plain_column, Look)
    table = eval(example_of("A new table"), {each.__name__: each for each in names})  # noqa: S307 - as above
    facts = facts_of("A", 2)
    summary = summary_of([plain_result(2, "A"), plain_result(3, "A", 0.1)], facts)
    run = FinishedRun(facts, summary, find(summary))
    (line,) = table.lines(run)
    cells = {column.header: column.cell(line).value for column in table.columns(run)}
    assert (table.file_name, table.is_wanted(facts, ()), cells) == (
        "failure-modes.csv",
        True,
        {"Bot": "A", "OK": 1},
    )


def example_of(heading: str) -> str:
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return str(example)
