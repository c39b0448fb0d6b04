"""What a run can tell beside RQS: coverage, relevant chunks, a rubric, retrieval, and agreement with people."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, azure, read_sheet
from fake_judge import FakeJudge, completion
from files import write_table
from in_process import ObjectJudge, run
from jsonschema import Draft202012Validator
from openpyxl import load_workbook

from rag_eval.metrics.citation_support import citation_metrics
from rag_eval.records import Case
from rag_eval.texts.citations import Habit

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
PARIS, SEINE, TEA = (
    "Paris is the capital of France.",
    "The Seine flows through Paris.",
    "Tea is a warm drink.",
)
HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context", "Kind"]
ROWS = [
    ["What is the capital of France?", PARIS, PARIS, "London is large.", f"{PARIS} || {TEA}", "city"],
    ["Which river flows through Paris?", SEINE, SEINE, "", f"{TEA} || {SEINE}", "river"],
]
RUBRIC = {
    "rubric_id": "short",
    "passing_score_threshold": 1,
    "metrics": [
        {"id": "names Paris", "rubric": "Paris"},
        {"id": "names London", "rubric": "London"},
        {"id": "river", "rubric": "Seine", "mandatory": True, "applies_to": {"Kind": "river"}},
    ],
}
ON = "[metrics]\nanswer_coverage = yes\nchunk_relevance = yes\n"


def sheet(path: Path, **further: list[Any]) -> Path:
    """The two rows with further columns, each given by its cells."""
    rows = [[*row, *cells] for row, cells in zip(ROWS, zip(*further.values(), strict=True), strict=True)]
    return write_table(path, [*HEADER, *further], *(rows or ROWS))


def rubric(folder: Path, **changes: Any) -> str:
    (folder / "rubric.json").write_text(json.dumps(RUBRIC | changes))
    return "[rubric]\nfile = rubric.json\n"


def cases(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    return {(line["Row"], line["Bot"]): line for line in read_sheet(folder / "r.xlsx", "Per-Query Metrics")}


@pytest.mark.slow
def test_they_do_not_change_rqs_and_cost_nothing_when_they_are_off(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    plain, asked = cases(tmp_path), judge.tasks()
    judge.requests.clear()
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert {key: line["RQS"] for key, line in cases(tmp_path).items()} == {
        key: line["RQS"] for key, line in plain.items()
    }
    assert "Answer Coverage" not in plain[2, "A"]
    more = judge.tasks() - asked
    del more["recommendation"]  # cases share calls for advice as their scores come
    assert more == {"coverage": 3, "relevance": 2, "rubric": 3}


def test_a_failed_call_leaves_its_cell_empty_and_rqs_as_it_is(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """An error is never a zero: not in the cell, and not in a mean or a rate."""
    judge.always = lambda request: (
        completion("no JSON at all") if request.task in ("coverage", "rubric") else None
    )
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    found = cases(tmp_path)
    assert ended.code == 0
    assert found[2, "A"]["RQS"] is not None
    measures = ("Answer Coverage", "Rubric", "Rubric Score")
    assert [found[2, "A"][name] for name in measures] == [None, None, None]
    summary = read_sheet(tmp_path / "r.xlsx", "Bot Summary")
    assert summary[0]["Avg Answer Coverage"] is None
    rates = {(line["Criterion"], line["Bot"]): line for line in read_sheet(tmp_path / "r.xlsx", "Rubric")}
    assert rates["Rubric as a whole", "A"]["Pass Rate"] is None
    assert rates["Rubric as a whole", "A"]["Not Judged"] == 2
    assert rates["Rubric as a whole", "B"]["Judged"] == 1  # the empty response failed without a call
    assert "unparseable" in ended.out
    assert (tmp_path / "r.xlsx.journal").exists(), "what is missing can be asked for again"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"passing_score_threshold": "one"}, "passing_score_threshold"),
        (
            {"metrics": [{"id": "x", "rubric": "y", "applies_to": {"Region": "EU"}}]},
            "'Region' ([report] slice_by or rubric) is not a column",
        ),
    ],
)
def test_a_bad_rubric_is_an_error_before_any_call(
    run_cli: Run, judge: FakeJudge, tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    (tmp_path / "config.ini").write_text(rubric(tmp_path, **changes))
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    assert ended.code == 2
    assert problem in ended.err
    assert not judge.requests
    (tmp_path / "config.ini").write_text("[rubric]\nfile = nowhere.yaml\n")
    assert "nowhere.yaml" in run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).err


def test_a_dry_run_foretells_the_calls(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    plan = run_cli("in.xlsx", "-o", "r.xlsx", "--dry-run", **azure(judge)).out
    assert not judge.requests
    run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge))
    asked = judge.tasks()
    for line in (
        f"answer_coverage: {asked['coverage']}",
        f"chunk_relevance: {asked['relevance']}",
        f"rubric: {asked['rubric']}",
    ):
        assert line in plan


def test_personal_data_is_hidden_from_the_rubric_and_the_evaluators_too(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Whatever asks the judge sees the redacted case."""
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    row = [
        "Who answers in Paris?",
        PARIS,
        "Write to ann@example.org in Paris.",
        "-",
        "Ask ann@example.org.",
        "city",
    ]
    write_table(tmp_path / "in.xlsx", HEADER, row)
    run_cli("in.xlsx", "-o", "r.xlsx", "--redact", **azure(judge))
    assert judge.tasks()["coverage"] == 2
    assert judge.tasks()["rubric"] == 2
    assert not any("ann@example.org" in request.prompt for request in judge.requests)


def test_the_offline_judge_says_what_it_cannot_judge(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline")
    assert ended.code == 0
    assert "Skipped, needs an LLM judge: Answer Coverage, Relevant Chunks, Rubric." in ended.out
    assert "Rubric" not in cases(tmp_path)[2, "A"]
    assert "Rubric" not in load_workbook(tmp_path / "r.xlsx").sheetnames


@pytest.mark.slow
def test_gold_documents_decide_about_retrieval_failure_only_if_they_are_told_to(
    run_cli: Run, tmp_path: Path
) -> None:
    """The contexts are useful in the judge's eyes; of the gold documents nothing was retrieved for B."""
    sheet(
        tmp_path / "in.xlsx",
        Gold_Docs=["faq", "faq"],
        Retrieved_Docs_A=["faq", "faq"],
        Retrieved_Docs_B=["blog", "blog"],
    )
    modes = {}
    for value in ("no", "yes"):
        (tmp_path / "config.ini").write_text(f"[diagnostics]\ngold_ids = {value}\n")
        assert run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json").code == 0
        modes[value] = {key: line["Failure Mode"] for key, line in cases(tmp_path).items()}
    assert not any("Retrieval Failure" in mode for mode in modes["no"].values())
    assert [("Retrieval Failure" in modes["yes"][2, bot]) for bot in "AB"] == [False, True]
    assert run_cli("r.json", "-o", "r.xlsx", "--report-only", "--judge", "offline").code == 0
    assert {key: line["Failure Mode"] for key, line in cases(tmp_path).items()} == modes["yes"]


def test_a_bot_without_retrieved_documents_has_no_retrieval_figures(run_cli: Run, tmp_path: Path) -> None:
    """Nothing is known of what it retrieved, which is not the same as nothing retrieved."""
    sheet(tmp_path / "in.xlsx", Gold_Docs=["faq", "faq"], Retrieved_Docs_A=["faq", ""])
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline").code == 0
    found = cases(tmp_path)
    assert [found[row, "A"]["Doc Recall"] for row in (2, 3)] == [1, 0]
    for name in ("Doc Recall", "Doc Precision", "NDCG@10", "Correct Docs", "Missing Docs"):
        assert [found[row, "B"][name] for row in (2, 3)] == [None, None]
    (line,) = read_sheet(tmp_path / "r.xlsx", "Retrieval")
    assert (line["Bot"], line["Doc Recall"], line["Scored"], line["Not Applicable"]) == ("A", 0.5, 2, 0)
    assert (line["Hit Rate@5"], line["Hit Rate@10"]) == (0.5, 0.5)


@pytest.mark.parametrize(("told", "counted"), [("no", [None, None, None]), ("yes", [0, 2, None])])
def test_by_gold_documents_alone_retrieval_failures_are_counted_and_0_is_a_count(
    run_cli: Run, tmp_path: Path, told: str, counted: list[int | None]
) -> None:
    """Without contexts no metric could show the failure: then the cell is empty unless gold documents decide. Of the
    bot C it is not known which documents it got."""
    (tmp_path / "config.ini").write_text(f"[diagnostics]\ngold_ids = {told}\n")
    write_table(
        tmp_path / "in.xlsx",
        ["Query", "Bot_A", "Bot_B", "Bot_C", "Gold_Docs", "Retrieved_Docs_A", "Retrieved_Docs_B"],
        ["What is tea?", "A drink.", "A drink.", "A drink.", "faq", "faq", "blog"],
        ["What is coffee?", "A drink.", "A drink.", "A drink.", "faq", "faq", "blog"],
    )
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline").code == 0
    lines = read_sheet(tmp_path / "r.xlsx", "Bot Summary")
    assert [line["Retrieval Failures"] for line in lines] == counted
    assert [line["Retrieval Failures %"] for line in lines] == [each and each / 2 for each in counted]
    assert [line["Hallucinations"] for line in lines] == [None, None, None]


@pytest.mark.slow
def test_human_labels_of_toxicity_are_compared_by_query_at_its_own_threshold(
    run_cli: Run, tmp_path: Path
) -> None:
    """The word is rated 0.6: at or above the threshold of 0.5, and below that of 0.65."""
    query, *others = ROWS[0]
    rows = [[query, *others, 0.7], [f"{query} You idiot!", *others, 0.7], [f"Please: {query}", *others, 0]]
    write_table(tmp_path / "in.xlsx", [*HEADER, "Human_Toxicity"], *rows)
    rates = {}
    for threshold in (0.5, 0.65):
        (tmp_path / "config.ini").write_text(f"[toxicity]\nthreshold = {threshold}\n")
        ended = run_cli("in.xlsx", "-o", "r.xlsx", "--judge", "offline", "--json", "r.json")
        assert "All bots, Input Toxicity: kappa" in ended.out
        assert "with human labels over 3 queries" in ended.out
        first, *_ = read_sheet(tmp_path / "r.xlsx", "Human Alignment")
        rates[first["Threshold"]] = first["True-positive rate"]
        (line,) = json.loads((tmp_path / "r.json").read_text())["alignment"]["agreements"]
        assert (line["bot"], line["count"], line["threshold"]) == ("", 3, threshold)
    assert rates == {0.5: 0.5, 0.65: 0}


@pytest.mark.slow
def test_everything_beside_rqs_is_in_the_json_and_comes_back_from_it(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    (tmp_path / "config.ini").write_text(ON + rubric(tmp_path))
    sheet(
        tmp_path / "in.xlsx",
        Gold_Docs=["faq", "faq"],
        Retrieved_Docs=["faq", "blog"],
        Human_Answer_Correctness=[1, 0],
    )
    run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", "--csv", "tables", **azure(judge))
    document = json.loads((tmp_path / "r.json").read_text())
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []
    assert document["cases"][1]["further"]["answer_coverage"]["value"] == 0
    assert document["rubric"][0]["overall"] == {"passed": 2, "scored": 2, "not_applicable": 0, "failed": 0}
    assert document["retrieval"]["A"]["means"]["doc_recall"] == 0.5
    assert document["alignment"]["agreements"][0]["count"] == 2
    sheets = ("Per-Query Metrics", "Bot Summary", "Rubric", "Retrieval", "Human Alignment", "Disagreements")
    before = {name: read_sheet(tmp_path / "r.xlsx", name) for name in sheets}
    tables = {path.name: path.read_text(encoding="utf-8-sig") for path in (tmp_path / "tables").iterdir()}
    assert "Relevant Chunks" in tables["per-query-metrics.csv"]
    assert tables["rubric.csv"].splitlines()[1].startswith('"Rubric as a whole","A",1')
    assert tables["retrieval.csv"].splitlines()[1].startswith('"A",0.5,0.5,')
    assert tables["human-alignment.csv"].splitlines()[1].startswith('"Answer Correctness","A",2,0,')
    judge.requests.clear()
    assert run_cli("r.json", "-o", "r.xlsx", "--report-only", **azure(judge)).code == 0
    assert not judge.requests
    assert {name: read_sheet(tmp_path / "r.xlsx", name) for name in sheets} == before


@pytest.mark.slow
def test_every_sheet_is_one_table_and_has_its_csv(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    """So that programs can read each: a header without gaps, then lines without gaps, then nothing."""
    (tmp_path / "config.ini").write_text(
        ON + rubric(tmp_path) + "[report]\nevidence = yes\nslice_by = Kind\n"
    )
    sheet(
        tmp_path / "in.xlsx",
        Gold_Docs=["faq", "faq"],
        Retrieved_Docs=["faq", "blog"],
        Human_Answer_Correctness=[0.3, 0],
    )
    run_cli("in.xlsx", "-o", "old.xlsx", **azure(judge))
    again = ("--csv", "tables", "--baseline", "old.xlsx", "--alpha", "9")
    assert run_cli("in.xlsx", "-o", "r.xlsx", *again, **azure(judge)).code == 0
    book = load_workbook(tmp_path / "r.xlsx")
    optional = [
        "Rubric",
        "Retrieval",
        "Human Alignment",
        "Disagreements",
        "vs Baseline",
        "Slices",
        "Evidence",
    ]
    assert book.sheetnames == ["Per-Query Metrics", "Bot Summary", "Leaderboard", *optional]
    tables = {path.stem: path for path in (tmp_path / "tables").iterdir()}
    assert set(tables) == {name.lower().replace(" ", "-") for name in book.sheetnames}
    for worksheet in book:
        header, *lines = worksheet.iter_rows(values_only=True)
        with tables[worksheet.title.lower().replace(" ", "-")].open(encoding="utf-8-sig", newline="") as file:
            columns, *rows = csv.reader(file)
        counted = [name for name in columns if name.endswith(" Scored")]
        assert columns[len(columns) - len(counted) :] == counted, "the columns of the sheet come first"
        if worksheet.title in ("Leaderboard", "Bot Summary"):
            assert {"Faithfulness Scored", "Context Recall Scored"} <= {*counted}
        assert all(text.isdecimal() for row in rows for text in row[len(columns) - len(counted) :])
        assert all(len(row) == len(columns) for row in rows)
        columns = columns[: len(columns) - len(counted)]
        rows = [row[: len(columns)] for row in rows]
        assert len(rows) == len(lines) > 0
        assert all(len(row) == len(columns) for row in rows)
        hidden = [name for name in header if name not in columns]
        if worksheet.title == "Leaderboard":  # right of its table are the thresholds
            header = tuple(name for name in header if not name.startswith("Threshold "))
            hidden = ["95 % minus", "95 % plus"]
        elif worksheet.title == "Bot Summary":
            assert hidden == ["95 % minus", "95 % plus"]
        else:
            assert hidden == []
        assert [name for name in header if name not in hidden] == columns
        assert all(any(cell is not None for cell in line) for line in lines)
        for line, row in zip(lines, rows, strict=True):
            shown = dict(zip(header, line, strict=False))
            for name, text in zip(columns, row, strict=True):
                value = shown[name]
                if isinstance(value, str):
                    assert text.removeprefix("'").replace("\r\n", "\n") == value
                else:
                    assert value is None or float(text) == pytest.approx(value)
                    assert value is not None or text == ""


def test_a_csv_folder_without_optional_tables_has_three(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, *ROWS)
    assert run_cli("in.xlsx", "-o", "r.xlsx", "--csv", "tables", "--judge", "offline").code == 0
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert names == {"per-query-metrics.csv", "bot-summary.csv", "leaderboard.csv"}


def test_hostile_names_stay_text(run_cli: Run, tmp_path: Path, judge: FakeJudge) -> None:
    """Criteria, documents and queries come from others; none becomes a formula or a link."""
    criteria = [{"id": "=1+1", "rubric": "Paris"}]
    (tmp_path / "config.ini").write_text(rubric(tmp_path, metrics=criteria))
    write_table(
        tmp_path / "in.csv",
        [*HEADER, "Gold_Docs", "Retrieved_Docs", "Human_Faithfulness"],
        [*ROWS[0], "=HYPERLINK(1)", "@x", "0"],
        ["=1+1", *ROWS[1][1:], "+y", "-z", "0"],
    )
    assert run_cli("in.csv", "-o", "r.xlsx", **azure(judge)).code == 0
    book = load_workbook(tmp_path / "r.xlsx")
    for worksheet in book:
        assert not [cell.coordinate for row in worksheet.iter_rows() for cell in row if cell.data_type == "f"]
    assert cases(tmp_path)[2, "A"]["Missing Docs"] == "=HYPERLINK(1)"


@pytest.mark.parametrize(
    ("supports", "recall"), [(0, (None, [])), (1, (0.0, ["supporting chunk not cited"]))]
)
def test_a_verdict_on_a_chunk_that_is_not_cited_counts_if_it_is_a_favourable_one(
    supports: int, recall: tuple[float | None, list[str]]
) -> None:
    verdict = {
        "sentence": 1,
        "cited": [{"chunk": 2, "supports": 0}, {"chunk": 1, "supports": supports}],
        "together": 0,
        "other": 0,
        "reason": "Nothing is said of it.",
    }
    case = Case(2, "A", "What is the capital?", f"{PARIS[:-1]} [2].", chunks=(PARIS, SEINE))
    metrics = citation_metrics({"A": Habit(10, 10, 10)}, is_proxy=False)
    scores = run(
        [metric.measure(case) for metric in metrics],
        ObjectJudge(lambda prompt: json.dumps({"sentences": [verdict]})),
    )
    assert (scores[1].value, [each.verdict for each in scores[1].evidence]) == recall
