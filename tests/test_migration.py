"""docs/migration.md: every block runs, and every line of its tables is tried by the check of that name."""

import contextlib
import io
import json
import re
import shlex
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Run, azure, read_sheet
from fake_judge import FakeJudge, error
from files import write_table
from openpyxl import load_workbook
from pydantic import ValidationError

from rag_eval.configuration.loading import load_settings
from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError
from rag_eval.evaluators import ChunkGraded, ContextEvaluation, MissingChunkWarning
from rag_eval.retrieval import ContextRecall
from rag_eval.rubric import EvaluationRubric, MetricDefinition

TEXT = (Path(__file__).parent.parent / "docs" / "migration.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
TABLES = [
    [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in table.splitlines()]
    for table in re.findall(r"(?:^\|.*\|\n)+", TEXT, re.MULTILINE)
]
HEADER = ["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"]
ROW = ["What is tea?", "Tea is a drink.", "Tea is a drink.", "Tea is a hot drink.", "Tea is a drink."]
OFFLINE = ("-o", "r.xlsx", "--judge", "offline")


def lines_under(header: str) -> list[tuple[str, ...]]:
    """The lines of every table whose first heading is this, without that and the rule below it."""
    return [line for table in TABLES if table[0][0] == header for line in table[2:]]


def test_every_table_is_tried() -> None:
    known = {"before", "section of `config.ini`", "sheet of the report"}
    assert {table[0][0] for table in TABLES} == known


# --- blocks --------------------------------------------------------------------------------------------------


def test_the_python_blocks_print_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rag_evals", "rag_evals.base", "teval"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())  # so that what is set there is undone
    namespace: dict[str, Any] = {"__name__": "migration"}
    monkeypatch.setitem(sys.modules, "migration", SimpleNamespace())  # where dataclasses look for types
    ran = 0
    for (language, body), (following, printed) in pairwise([*BLOCKS, ("", "")]):
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(body, namespace)  # noqa: S102 - the documentation is ours
            assert (following, output.getvalue()) == ("text", printed)
            ran += 1
    assert ran == 2


def test_the_commands_work_as_they_stand(
    run_cli: Run, rag_eval: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "input.xlsx", HEADER, ROW)
    (tmp_path / "my_config.ini").write_text("[azure]\ndeployment = gpt-4o\n")
    ids = "27c682dc-c97b-4c3e-b41c-999c65264a6d"
    (tmp_path / "your_results.tsv").write_text(
        f'qid\tquestion\tcontext\tdoc_ids\n1\tq?\t["a passage"]\t["doc-<urn:uuid:{ids}>::chunk-0"]\n'
    )
    (tmp_path / "your_reference.tsv").write_text(
        f"qid\tquestion\tcontext\tdocument_ids\n1\tq?\t['a passage']\t['<urn:uuid:{ids}>']\n"
    )
    commands = [
        line for language, body in BLOCKS if language == "console" for line in body.strip().split("\n")
    ]
    assert len(commands) == 4
    for command in commands:
        prompt, program, *words = shlex.split(command)
        assert prompt == "$"
        if program == "python3":
            assert words.pop(0) == "rag_eval_standalone.py"
            ended = run_cli(*words, **azure(judge))
        else:
            assert program == "rag-eval"
            ended = rag_eval(*words)
        assert ended.code == 0, ended.err
    assert (tmp_path / "report.xlsx").exists()
    assert (tmp_path / "input_report.xlsx").exists()
    assert re.search(r"^Doc Recall +1\.0000 +1$", ended.out, re.MULTILINE)


# --- tables --------------------------------------------------------------------------------------------------

IMPORTS = [line for line in lines_under("before") if line[0].startswith("`from ")]


@pytest.mark.parametrize(("before", "now"), IMPORTS)
def test_every_import_leads_somewhere(before: str, now: str) -> None:
    """The same names come out of the new line as out of the old one."""
    if now.startswith("nothing: "):
        qid, ids = re.findall(r"`(\w+)`", now)
        answer = ContextRecall().evaluate(
            [{qid: "1", ids if ids == "doc_ids" else "doc_ids": ["a"]}],
            [{qid: "1", ids if ids == "document_ids" else "document_ids": ["a"]}],
        )
        assert answer.metrics["avg_context_recall"] == 1
        return
    namespace: dict[str, Any] = {}
    exec(now.strip("`"), namespace)  # noqa: S102 - the documentation is ours
    assert set(before.strip("`").partition(" import ")[2].split(", ")) == set(namespace) - {"__builtins__"}


OLD_CONFIGURATION = {
    "azure": "endpoint =\napi_key =\napi_version = 2024-12-01-preview\ndeployment = gpt-4o\ntemperature = 0.0",
    "weights": "answer_correctness = 0.35\nfaithfulness = 0.25\nanswer_relevancy = 0.25\n"
    "context_precision = 0.075\ncontext_recall = 0.075",
    "metrics": "faithfulness = true\nanswer_relevancy = true\ncontext_precision = true\ncontext_recall = true\n"
    "answer_correctness = true\ntoxicity = true",
    "thresholds": "faithfulness = 0.3\nanswer_relevancy = 0.3\ncontext_precision = 0.3\ncontext_recall = 0.3\n"
    "answer_correctness = 0.3",
    "toxicity": "threshold = 0.5\ndeployment =",
    "context": "delimiter = auto",
    "bots": "strip_prefix = Bot_",
    "diagnostics": "enabled = true",
    "cache": "enabled = false\ndirectory = .nexus_cache",
    "evaluation": "max_rows = 200\nparallel = true\nmax_workers = 2",
}


@pytest.mark.parametrize(("section", "now"), lines_under("section of `config.ini`"))
def test_every_section_is_taken_or_said_to_go(run_cli: Run, tmp_path: Path, section: str, now: str) -> None:
    name = section.strip("`[]")
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    if now.startswith("remove it"):
        (tmp_path / "config.ini").write_text(f"[{name}]\nmodel = ada\n")
        ended = run_cli("in.xlsx", *OFFLINE)
        assert (ended.code, name in ended.err) == (2, True)
        return
    (tmp_path / "config.ini").write_text(f"[{name}]\n{OLD_CONFIGURATION[name]}\n")
    loaded = load_settings(None, {}, {}, tmp_path)
    assert loaded.settings == Settings(), "its values are the defaults"
    assert (now == "the same key and default") is ("\n" not in OLD_CONFIGURATION[name])


def test_every_section_of_the_old_tool_is_in_the_table() -> None:
    named = {line[0].strip("`[]") for line in lines_under("section of `config.ini`")}
    assert named == OLD_CONFIGURATION.keys() | {"embeddings"}


def test_the_columns_stay(run_cli: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    run_cli("in.xlsx", *OFFLINE)
    book = load_workbook(tmp_path / "r.xlsx")
    listed = dict(lines_under("sheet of the report"))
    assert list(listed) == book.sheetnames
    for sheet, columns in listed.items():
        names = columns.split(", ")
        assert [cell.value for cell in book[sheet][1]][: len(names)] == names


# What each line of the other tables says, tried. Each takes the fixtures that its parameters name.

CHECKS: dict[str, Callable[..., None]] = {}


def tries(before: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def keep(check: Callable[..., None]) -> Callable[..., None]:
        CHECKS[before] = check
        return check

    return keep


OTHERS = [line for line in lines_under("before") if line not in IMPORTS]


@pytest.mark.parametrize("before", [line[0] for line in OTHERS])
def test_every_difference_is_as_described(before: str, request: pytest.FixtureRequest) -> None:
    check = CHECKS[before]
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    check(**{name: request.getfixturevalue(name) for name in names})


def test_no_check_is_about_a_line_that_is_gone() -> None:
    assert CHECKS.keys() == {line[0] for line in OTHERS}


def scored(run_cli: Run, folder: Path, *rows: list[Any], header: list[str] = HEADER) -> list[dict[str, Any]]:
    write_table(folder / "in.xlsx", header, *rows)
    assert run_cli("in.xlsx", *OFFLINE).code == 0
    return read_sheet(folder / "r.xlsx", "Per-Query Metrics")


@tries("without ground truth, Answer Correctness and Context Recall were 0")
def _(run_cli: Run, tmp_path: Path) -> None:
    line, _ = scored(run_cli, tmp_path, [ROW[0], None, *ROW[2:]])
    assert (line["Answer Correctness"], line["Context Recall"]) == (None, None)
    parts = line["Faithfulness"] * 0.25 + line["Answer Relevancy"] * 0.25 + line["Context Precision"] * 0.075
    assert line["RQS"] == pytest.approx(parts / 0.575)


@tries("a metric that was switched off was 0")
def _(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[metrics]\nfaithfulness = false\n")
    line, _ = scored(run_cli, tmp_path, ROW)
    assert line["Faithfulness"] is None
    assert line["RQS"] is not None


@tries("a failed call was 0")
def _(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    judge.always = lambda request: (
        error(400, "content_filter", "The response was filtered", "prompt")
        if request.task == "verdicts"
        else None
    )
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 3
    line, _ = read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")
    assert (line["Faithfulness"], line["RQS"], line["Answer Correctness"]) == (None, None, 1)


@tries("`Answer_Length` was taken for the ground truth")
def _(run_cli: Run, tmp_path: Path) -> None:
    header = ["QUERY", "Answer_Length", "bot a", "Ground Truth", "context"]
    (line,) = scored(run_cli, tmp_path, ["q?", 17, "Tea.", "Tea is hot.", "Tea."], header=header)
    assert (line["Query"], line["Ground Truth"], line["Bot"]) == ("q?", "Tea is hot.", "a")


@tries("the answers `None`, `N/A` and `null` were blank")
def _(run_cli: Run, tmp_path: Path) -> None:
    rows = [[f"q{answer}?", "Tea.", answer, "Tea.", "Tea."] for answer in ("None", "N/A", "null")]
    lines = scored(run_cli, tmp_path, *rows)
    assert [line["Response"] for line in lines[::2]] == ["None", "N/A", "null"]
    assert {line["Empty Answer?"] for line in lines} == {"No"}


@tries("rows after `[evaluation] max_rows` were dropped silently")
def _(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[evaluation]\nmax_rows = 1\n")
    write_table(tmp_path / "in.xlsx", HEADER, ROW, ["q2?", *ROW[1:]], ["q3?", *ROW[1:]])
    ended = run_cli("in.xlsx", *OFFLINE, "--json", "r.json")
    assert "max_rows" in ended.out + ended.err
    assert json.loads((tmp_path / "r.json").read_text())["run"]["cut_rows"] == 2
    assert len(read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")) == 2


@tries("`delimiter = auto    ; a comment` turned splitting off")
def _(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[context]\ndelimiter = auto    ; auto | || | \\n | <custom>\n")
    line, _ = scored(run_cli, tmp_path, [*ROW[:4], "Tea. || Coffee."])
    assert line["Context"] == "[1] Tea.\n\n[2] Coffee."


@tries("scores in `[cache] directory`")
def _(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / "config.ini").write_text("[cache]\nenabled = true\n")
    (tmp_path / ".nexus_cache").mkdir()
    old = tmp_path / ".nexus_cache" / "0a1b2c.json"
    old.write_text('{"faithfulness": 0.0}')
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    assert run_cli("in.xlsx", "-o", "r.xlsx", **azure(judge)).code == 0
    assert judge.tasks()["verdicts"] == 2
    assert old.read_text() == '{"faithfulness": 0.0}'


@tries("an old report")
def _(run_cli: Run, tmp_path: Path) -> None:
    columns = dict(lines_under("sheet of the report"))["Per-Query Metrics"].split(", ")
    old = dict.fromkeys(columns) | {"Query": ROW[0], "Ground Truth": ROW[1], "Bot": "A", "Faithfulness": 0.25}
    write_table(tmp_path / "old_report.xlsx", columns, [old[column] for column in columns])
    book = load_workbook(tmp_path / "old_report.xlsx")
    book.worksheets[0].title = "Per-Query Metrics"
    book.save(tmp_path / "old_report.xlsx")
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    assert run_cli("in.xlsx", *OFFLINE, "--baseline", "old_report.xlsx").code == 0
    changes = {line["Metric"]: line for line in read_sheet(tmp_path / "r.xlsx", "vs Baseline")}
    assert (changes["Faithfulness"]["Baseline"], changes["Faithfulness"]["Now"]) == (0.25, 1)


GRADED = {"graded_chunks": [{"id_chunk": 1, "score": 1.0}]}


@tries("`result.avg_score`")
def _() -> None:
    result = ChunkGraded.model_validate(
        GRADED | {"graded_chunks": [{"id_chunk": 0, "score": 0.5}]}, context={"context": ["a"]}
    )
    assert result.score == 0.5


@tries("`score` of an empty context: ZeroDivisionError")
def _() -> None:
    assert ChunkGraded.model_validate({"graded_chunks": []}, context={"context": []}).score is None


@tries("a chunk that the judge left out scored 0")
def _() -> None:
    with pytest.warns(MissingChunkWarning):
        result = ChunkGraded.model_validate(GRADED, context={"context": ["a", "b"]})
    assert [(each.score, each.graded) for each in result.graded_chunks] == [(0, False), (1, True)]


@tries("`examples` did not reach the judge")
def _() -> None:
    def sent(**changes: str) -> list[str]:
        evaluator = ContextEvaluation(prompt="p", examples=["shot"], response_model=ChunkGraded, **changes)
        return [
            message.text.partition("Reply with")[0] for message in evaluator.call("q?", None, []).messages
        ]

    assert sent()[0] == "p\n\n<examples>\n<example>\nshot\n</example>\n</examples>\n\n"
    assert sent(chunk_template="{{ examples[0] }}: {{ question }}") == ["p\n\n", "shot: q?"]


RUBRIC = EvaluationRubric(
    rubric_id="r", metrics=[MetricDefinition(id="M1", rubric="text")], passing_score_threshold=1
)


@tries('`response_format={"type": "json_schema", "json_schema": rubric.to_json_schema()}`')
def _() -> None:
    wrapped = RUBRIC.to_response_format()
    assert (wrapped["type"], wrapped["json_schema"]["name"]) == ("json_schema", "r")
    assert wrapped["json_schema"]["schema"]["properties"] == RUBRIC.to_json_schema()["properties"]


@tries('`ResultModel(M1="yes")` passed')
def _() -> None:
    with pytest.raises(ValidationError):
        RUBRIC.to_pydantic_model()(M1="yes")
    assert RUBRIC.to_pydantic_model()(M1=True).passes()


@tries("a repeated key in the JSON: the last one counted")
def _() -> None:
    with pytest.raises(ValueError, match="duplicate key 'M1'"):
        RUBRIC.validate_result('{"M1": false, "M1": true}')


@tries("JSON in a Markdown code fence: ValueError")
def _() -> None:
    assert RUBRIC.validate_result('```json\n{"M1": true}\n```') is True


@tries("`rubric.metrics` was a list")
def _() -> None:
    assert isinstance(RUBRIC.metrics, tuple)
    with pytest.raises(ValidationError):
        RUBRIC.passing_score_threshold = 0  # type: ignore[misc]


@tries("results of different rubrics could be aligned")
def _() -> None:
    other = RUBRIC.model_copy(update={"rubric_id": "other"})
    with pytest.raises(TypeError):
        RUBRIC.calculate_alignment(RUBRIC.to_pydantic_model()(M1=True), other.to_pydantic_model()(M1=True))


def retrieved(results: dict[str, list[str]], references: list[tuple[str, list[str]]]) -> Any:
    return ContextRecall().evaluate(
        [{"qid": qid, "doc_ids": ids} for qid, ids in results.items()],
        [{"qid": qid, "document_ids": ids} for qid, ids in references],
    )


@tries("NDCG@10 over chunks: 1 of 2 gold documents at rank 1 scored 1.0")
def _() -> None:
    assert retrieved({"1": ["a::chunk-0"]}, [("1", ["a", "b"])]).metrics["ndcg_10"] == pytest.approx(
        0.6131, abs=1e-4
    )


@tries("a query without gold documents scored 0")
def _() -> None:
    metrics = retrieved({"1": ["a"], "2": ["a"]}, [("1", ["a"]), ("2", [])]).metrics
    assert (metrics["avg_context_recall"], metrics["not_applicable_queries"]) == (1, 1)


@tries("a reference without a result was left out")
def _() -> None:
    metrics = retrieved({"1": ["a"]}, [("1", ["a"]), ("2", ["a"])]).metrics
    assert (metrics["avg_context_recall"], metrics["queries_without_result"]) == (0.5, 1)


@tries("of two references with one query id, the last counted")
def _() -> None:
    with pytest.raises(InputError, match="query id '1' occurs more than once"):
        retrieved({"1": ["a"]}, [("1", ["a"]), ("1", ["b"])])


@tries('`metrics["pct_records_with_at_least_one_ref"]`, in percent of all results')
def _() -> None:
    found = {"1": ["x", "a", "b"], "2": [*map(str, range(10)), "a"], "3": ["x"], "4": ["a"]}
    assert retrieved(found, [(qid, ["a", "b"]) for qid in found]).metrics["hit_rate_10"] == 0.5


@tries("the files `.rows.tsv` and `.aggregated.tsv`")
def _(rag_eval: Run, tmp_path: Path) -> None:
    (tmp_path / "both.jsonl").write_text('{"qid": "1", "doc_ids": ["a"], "document_ids": ["a"]}\n')
    assert rag_eval("retrieval", "both.jsonl", "--reference", "both.jsonl", "-o", "scores.xlsx").code == 0
    assert [line["Query ID"] for line in read_sheet(tmp_path / "scores.xlsx", "Retrieval")] == ["1"]
    summary = {line["Measure"]: line["Mean"] for line in read_sheet(tmp_path / "scores.xlsx", "Summary")}
    assert (summary["Doc Recall"], summary["Hit Rate@10"]) == (1, 1)


@tries('`row.metrics["context_recall"]`, `row.metrics["correct_docs_count"]`')
def _() -> None:
    (row,) = retrieved({"1": ["a"]}, [("1", ["a", "b"])]).rows
    assert (row.recall, row.correct_docs_count) == (0.5, 1)
