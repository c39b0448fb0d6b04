"""The main job from a notebook: the same numbers as in the report, as a DataFrame."""

from pathlib import Path

import pandas as pd
import pytest
from conftest import KEY, Run, read_sheet
from fake_judge import FakeJudge, error

from rag_eval.errors import InputError, RunStoppedError
from rag_eval.evaluators import ChunkPrecision, as_metric
from rag_eval.frames import evaluate
from rag_eval.settings import Azure, Judge, Rubric, Settings

SAMPLE = Path(__file__).parent.parent / "sample_rag_input.xlsx"


def test_the_numbers_are_those_of_the_report(run_cli: Run, tmp_path: Path) -> None:
    run_cli(SAMPLE, "-o", "r.xlsx", "--judge", "offline")
    report = read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")
    frame = evaluate(SAMPLE)
    assert list(frame["bot"]) == [case["Bot"] for case in report]
    for name, column in (("rqs", "RQS"), ("faithfulness", "Faithfulness"), ("toxicity", "Input Toxicity")):
        expected = pd.Series([case[column] for case in report], dtype=float)
        pd.testing.assert_series_equal(frame[name].astype(float), expected, check_names=False)


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


def test_an_llm_judges_as_well(judge: FakeJudge) -> None:
    settings = Settings(judge=Judge(provider="azure"), azure=Azure(endpoint=judge.url, api_key=KEY))
    frame = pd.DataFrame(
        {"Query": ["When?"], "Bot_A": ["It opens at nine."], "Context": ["It opens at nine."]}
    )
    assert evaluate(frame, settings).loc[0, "faithfulness"] == 1.0
    judge.always = error(401, "401", "no")
    with pytest.raises(RunStoppedError):
        evaluate(frame, settings)


def test_measures_of_ones_own_rubrics_and_gold_documents_join_the_frame(
    judge: FakeJudge, tmp_path: Path
) -> None:
    """An evaluator of a few lines is a column; a rubric and gold documents are as in the report."""
    rubric = tmp_path / "rubric.json"
    rubric.write_text(
        '{"rubric_id": "r", "passing_score_threshold": 1, "metrics": [{"id": "hour", "rubric": "nine"}]}'
    )
    settings = Settings(
        judge=Judge(provider="azure"),
        azure=Azure(endpoint=judge.url, api_key=KEY),
        rubric=Rubric(file=rubric),
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
    with pytest.raises(InputError, match="mine: needs a judge that reads"):
        evaluate(frame, metrics=[as_metric(ChunkPrecision, name="mine")])


def test_a_measure_cannot_take_the_name_of_another() -> None:
    frame = pd.DataFrame({"Query": ["q"], "Bot_A": ["a"]})
    with pytest.raises(ValueError, match="faithfulness"):
        evaluate(frame, metrics=[as_metric(ChunkPrecision, name="faithfulness")])


def test_a_frame_without_bots_is_named() -> None:
    with pytest.raises(InputError, match="No Bot_"):
        evaluate(pd.DataFrame({"Query": ["q"]}))
