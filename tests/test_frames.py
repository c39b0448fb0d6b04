"""The main job from a notebook: the same numbers as in the report, as a DataFrame."""

import ast
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import KEY, Run, read_sheet
from fake_judge import Answer, FakeJudge, Request, completion, error, honest_reply

from rag_eval.configuration.effective import CACHE_NAME
from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError, RunStoppedError, SettingsError, how_to_install
from rag_eval.evaluators import ChunkPrecision, as_metric
from rag_eval.frames import evaluate

SAMPLE = Path(__file__).parent.parent / "sample_rag_input.xlsx"


def test_the_numbers_are_those_of_the_report(run_cli: Run, tmp_path: Path) -> None:
    run_cli(SAMPLE, "-o", "r.xlsx", "--judge", "offline")
    report = read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")
    frame = evaluate(SAMPLE)
    assert list(frame["bot"]) == [case["Bot"] for case in report]
    for name, column in (("rqs", "RQS"), ("faithfulness", "Faithfulness"), ("toxicity", "Input Toxicity")):
        expected = pd.Series([case[column] for case in report], dtype=float)
        pd.testing.assert_series_equal(frame[name].astype(float), expected, check_names=False)


def test_without_pandas_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError) as caught:
        evaluate(SAMPLE)
    assert str(caught.value) == f"evaluate() needs pandas; install it with {how_to_install('pandas')}"


def test_a_frame_is_read_as_a_file_is_with_lists_as_chunks() -> None:
    frame = pd.DataFrame(
        {
            "Query": ["When is it open?", "007?"],
            "Ground_Truth": ["At nine.", None],
            "Bot_A": ["It is open at nine.", "None"],
            "Context": [["It is open at nine.", "Dogs bark."], []],
        }
    )
    scores = evaluate(frame)
    assert list(scores["response"]) == ["It is open at nine.", "None"]
    assert scores.loc[0, "faithfulness"] == 1.0
    assert scores.loc[1, "faithfulness"] == 0.0
    assert pd.isna(scores.loc[1, "answer_correctness"])
    assert "no ground truth" in str(scores.loc[1, "answer_correctness_reason"])


def test_cells_of_a_frame_are_read_as_those_of_a_workbook() -> None:
    """Gaps make pandas turn whole numbers into floats, and a list column of a Parquet file is one of arrays."""
    frame = pd.DataFrame(
        {
            "Query": ["How many?", "Open?", "When?"],
            "Ground_Truth": [42, None, 7],
            "Bot_A": [42.0, True, np.int64(7)],
            "Bot_B": [pd.NA, pd.NaT, pd.Timestamp("2024-05-01")],
            "Context": [np.array(["There are 42.", "Dogs bark."], dtype=object), ("Yes, || no.",), None],
            "Gold_Docs": [np.array(["faq", "terms"]), ["faq"], [7]],
            "Retrieved_Docs": [["faq"], [], 7.0],
            "a|b;c;d|e|f|g|h|i": ["x", "y", "z"],
        }
    )
    scores = evaluate(frame)
    assert list(scores["response"]) == ["42", "", "TRUE", "", "7", "2024-05-01"]
    assert scores.loc[0, "answer_correctness"] == 1.0
    assert scores.loc[0, "context_precision"] == 1.0  # of two chunks, the first
    assert list(scores["doc_recall"]) == [0.5, 0.5, 0.0, 0.0, 1.0, 1.0]


def test_a_table_is_read_by_the_settings() -> None:
    settings = Settings(
        judge={"provider": "offline"},
        bots={"strip_prefix": "Model "},
        context={"delimiter": "##"},
        columns={"query": "Asked"},
    )
    frame = pd.DataFrame(
        {
            "Asked": ["When?"],
            "Query": ["Who?"],
            "Model X": ["At nine."],
            "Context": ["Dogs bark.##It is open at nine."],
        }
    )
    with pytest.warns(UserWarning, match="'Query'"):
        scores = evaluate(frame, settings)
    assert list(scores[["bot", "query"]].loc[0]) == ["X", "When?"]
    assert scores.loc[0, "context_precision"] == 0.5  # the second of two chunks is of use


def test_a_line_has_every_score_and_its_reason() -> None:
    frame = pd.DataFrame(
        {"Query": ["Fish?"], "Bot_A": [""], "Bot_B": ["Fish swim."], "Context": ["Dogs bark."]}
    )
    first, second = evaluate(frame).to_dict("records")
    names = [
        "answer_correctness",
        "faithfulness",
        "answer_relevancy",
        "context_precision",
        "context_recall",
        "toxicity",
    ]
    assert list(first) == [
        "row", "bot", "query", "response", "rqs", *names, *(f"{name}_reason" for name in names), "failure_modes",
        "recommendation",
    ]  # fmt: skip
    assert [first[name] for name in ("row", "bot", "query", "response", "rqs")] == [2, "A", "Fish?", "", 0.0]
    assert first["answer_relevancy_reason"] == "empty response"
    assert first["failure_modes"] == "Low Quality"
    assert first["recommendation"].startswith("The bot gave no response: ")
    assert second["failure_modes"] == "Retrieval Failure | Hallucination"
    assert second["answer_correctness_reason"] == "the row has no ground truth"
    assert (second["faithfulness"], second["answer_relevancy"], second["toxicity"]) == (0.0, 1.0, 0.0)


def test_what_is_left_out_of_a_table_is_a_warning() -> None:
    """max_rows must not make a mean over a part of the rows look like one over all."""
    queries = [f"q {number}" for number in range(201)]
    frame = pd.DataFrame({"Query": queries, "Bot_A": ["a"] * 201, "Human_Faithfullness": [1] * 201})
    with pytest.warns(UserWarning, match="left out|not used") as caught:
        assert len(evaluate(frame)) == 200
    assert [str(each.message) for each in caught] == [
        "1 row beyond the first 200 left out; raise max_rows in [evaluation] to have them judged.",
        "Column 'Human_Faithfullness' (C) looks like a human label, but names no metric; it was not used.",
    ]
    assert {each.filename for each in caught} == {__file__}
    raised = Settings(judge={"provider": "offline"}, evaluation={"max_rows": 201})
    assert len(evaluate(frame[["Query", "Bot_A"]], raised)) == 201


def test_a_rubric_that_the_offline_judge_leaves_out_is_a_warning(tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.json"
    rubric.write_text(
        '{"rubric_id": "r", "passing_score_threshold": 1, "metrics": [{"id": "hour", "rubric": "nine"}]}'
    )
    settings = Settings(judge={"provider": "offline"}, rubric={"file": rubric})
    with pytest.warns(UserWarning, match=r"^Skipped, needs an LLM judge: Rubric\.$"):
        scores = evaluate(pd.DataFrame({"Query": ["q"], "Bot_A": ["a"]}), settings)
    assert "rubric_passed" not in scores


def test_every_cell_of_a_frame_arrives_as_it_is() -> None:
    """Carriage returns end no row, separators in a header cut nothing, and numbers are as in a workbook."""
    responses = ["a\rb", "\r", 'say "x", y', "c;d\te|f\n\n", 42.0, True, None, pd.NaT, date(2024, 5, 1)]
    bot = "A; B|C|D, E"
    frame = pd.DataFrame(
        {"Query": [f"q{n}\r?" for n in range(9)], f"Bot_{bot}": pd.Series(responses, dtype=object)}
    )
    scores = evaluate(frame)
    assert list(scores["query"]) == list(frame["Query"])
    assert set(scores["bot"]) == {bot}
    assert list(scores["response"]) == [
        "a\rb", "", 'say "x", y', "c;d\te|f\n\n", "42", "TRUE", "", "", "2024-05-01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "chunks",
    [
        np.array(["Dogs bark.", "It is open at nine."], dtype=object),
        ("Dogs bark.", "It is open at nine."),
        [{"text": "Dogs bark.", "score": np.float32(0.5)}, {"text": "It is open at nine."}],
    ],
)
def test_chunks_may_be_what_pandas_makes_of_a_parquet_file(chunks: object) -> None:
    frame = pd.DataFrame(
        {
            "Query": ["When is it open?"],
            "Bot_A": ["It is open at nine."],
            "Context": pd.Series([chunks], dtype=object),
        }
    )
    assert evaluate(frame).loc[0, "context_precision"] == 0.5  # the second of two chunks is of use


def test_an_llm_judges_as_well(judge: FakeJudge) -> None:
    settings = Settings(judge={"provider": "azure"}, azure={"endpoint": judge.url, "api_key": KEY})
    frame = pd.DataFrame(
        {"Query": ["When?"], "Bot_A": ["It opens at nine."], "Context": ["It opens at nine."]}
    )
    assert evaluate(frame, settings).loc[0, "faithfulness"] == 1.0
    judge.always = error(401, "401", "no")
    with pytest.raises(RunStoppedError):
        evaluate(frame, settings)


def test_a_damaged_cache_is_a_warning(judge: FakeJudge, tmp_path: Path) -> None:
    (tmp_path / CACHE_NAME).write_bytes(b"no store of replies" * 100)
    settings = Settings(
        judge={"provider": "azure"},
        azure={"endpoint": judge.url, "api_key": KEY},
        cache={"enabled": True, "directory": tmp_path},
    )
    with pytest.warns(UserWarning, match="damaged") as caught:
        evaluate(pd.DataFrame({"Query": ["When?"], "Bot_A": ["At nine."]}), settings)
    assert {each.filename for each in caught} == {__file__}, "the line that called"


def test_what_was_adapted_to_the_endpoint_is_a_warning(judge: FakeJudge) -> None:
    def reasoning(request: Request) -> Answer:
        if "temperature" in request.body:
            return error(400, "unsupported_value", "temperature is not supported", "temperature")
        return completion(honest_reply(request.prompt))

    judge.always = reasoning
    settings = Settings(judge={"provider": "azure"}, azure={"endpoint": judge.url, "api_key": KEY})
    with pytest.warns(UserWarning, match="its default applies, so scores vary") as caught:
        scores = evaluate(pd.DataFrame({"Query": ["When?"], "Bot_A": ["At nine."]}), settings)
    assert not pd.isna(scores.loc[0, "rqs"])
    assert {each.filename for each in caught} == {__file__}


def test_measures_of_ones_own_rubrics_and_gold_documents_join_the_frame(
    judge: FakeJudge, tmp_path: Path
) -> None:
    """An evaluator of a few lines is a column; a rubric and gold documents are as in the report."""
    rubric = tmp_path / "rubric.json"
    rubric.write_text(
        '{"rubric_id": "r", "passing_score_threshold": 1, "metrics": [{"id": "hour", "rubric": "nine"}]}'
    )
    settings = Settings(
        judge={"provider": "azure"},
        azure={"endpoint": judge.url, "api_key": KEY},
        rubric={"file": rubric},
    )
    relevance = as_metric(ChunkPrecision, name="relevance")
    frame = pd.DataFrame(
        {
            "Query": ["When does it open?"],
            "Bot_A": ["It opens at ten."],
            "Context": [["It does open at nine.", "Dogs bark."]],
            "Gold_Docs": ["faq"],
            "Retrieved_Docs": ["faq || blog"],
        }
    )
    (line,) = evaluate(frame, settings, metrics=[relevance]).to_dict("records")
    assert (line["relevance"], line["doc_recall"], line["doc_precision"]) == (0.5, 1.0, 0.5)
    assert (line["rubric_passed"], line["rubric_reason"]) == (False, "hour: shared words")


def test_a_measure_that_asks_needs_a_judge_that_reads() -> None:
    frame = pd.DataFrame({"Query": ["q"], "Bot_A": ["a"], "Context": ["c"]})
    with pytest.raises(InputError, match="mine: needs an LLM judge"):
        evaluate(frame, metrics=[as_metric(ChunkPrecision, name="mine")])


@pytest.mark.parametrize(
    "names",
    [
        ["faithfulness"],
        ["query"],
        ["rqs"],
        ["rubric_passed"],
        ["recall_5"],
        ["toxicity_reason"],
        ["mine", "mine"],
        ["mine", "mine_reason"],
    ],
)
def test_a_measure_cannot_take_the_column_of_another(names: list[str]) -> None:
    frame = pd.DataFrame({"Query": ["q"], "Bot_A": ["a"]})
    with pytest.raises(ValueError, match=f"taken; choose others: {names[0]}"):
        evaluate(frame, metrics=[as_metric(ChunkPrecision, name=name) for name in names])


_ROLES = (
    "In Python, roles of columns are settings, such as Settings.model_validate({'judge': {'provider': 'offline'}, "
    "'columns': {'query': 'COLUMN'}}); responses are 'bots'."
)


@pytest.mark.parametrize(
    ("frame", "message", "notes"),
    [
        (pd.DataFrame({"Query": ["q"]}), "No Bot_", [_ROLES]),
        (
            pd.DataFrame({"Query": ["q"], "Bot_A": ["a"]}).set_index("Query"),
            "No Query column found",
            [
                _ROLES,
                "The index of the frame, ['Query'], is not read; to have it read, use data.reset_index().",
            ],
        ),
        (pd.DataFrame({"Query": [None], "Bot_A": ["a"]}), "row 2, column 'Query' .* is blank", []),
        (pd.DataFrame(), "^the data frame has no columns; give one with queries and responses$", []),
    ],
)
def test_a_frame_that_cannot_be_read_is_refused_with_what_python_can_do(
    frame: pd.DataFrame, message: str, notes: list[str]
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        evaluate(frame)
    assert getattr(caught.value, "__notes__", []) == notes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"Query": "q", "Bot_A": "a"}], "not list; give it pandas.DataFrame(data)"),
        (pa.table({"Query": ["q"], "Bot_A": ["a"]}), "not Table; give it data.to_pandas()"),
    ],
)
def test_other_data_than_a_frame_are_refused_with_what_makes_one_of_them(data: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        evaluate(data)
    assert str(caught.value) == f"evaluate() takes the path of a file or a pandas DataFrame, {message}"


def test_a_metric_without_any_score_is_a_column_of_numbers() -> None:
    scores = evaluate(
        pd.DataFrame({"Query": ["q"], "Bot_A": ["a"], "Gold_Docs": [None], "Retrieved_Docs": ["d"]})
    )
    empty = scores[["faithfulness", "answer_correctness", "doc_recall"]]
    assert empty.isna().all(axis=None)
    assert set(empty.dtypes) == {np.dtype(float)}
    assert empty.round(2).equals(empty)


def test_settings_that_make_a_frame_readable_are_named() -> None:
    frame = pd.DataFrame({"Query": ["q"], "BotGPT4": ["a"], "BotClaude": ["b"]})
    with pytest.raises(InputError, match="add --map BotGPT4=bot --map BotClaude=bot") as caught:
        evaluate(frame)
    (note,) = caught.value.__notes__
    begin = "In Python, give evaluate() these settings: Settings.model_validate("
    assert note.startswith(begin)
    settings = Settings.model_validate(ast.literal_eval(note.removeprefix(begin)[:-1]))
    assert list(evaluate(frame, settings)["bot"]) == ["BotGPT4", "BotClaude"]
