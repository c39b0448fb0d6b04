"""The judge asked several times for each score."""

import json
from itertools import count
from pathlib import Path

import pytest
from conftest import Run, azure, read_sheet
from fake_judge import Answer, FakeJudge, Request, completion, error
from files import write_table

from rag_eval.records import LEFT_OUT, Evidence, Score
from rag_eval.results.scoring import mean_score

ROW = ["When does it open?", "It opens at nine.", "It opens at nine.", "It opens at nine. || Dogs bark."]
HEADER = ["Query", "Ground_Truth", "Bot_A", "Context"]
CONFIG = "[cache]\nenabled = yes\n[azure]\ntemperature = 1\n"


@pytest.mark.slow
def test_repeats_are_calls_of_their_own_and_each_is_paid_once(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Three times as many calls, none in the second run, and two more each for five samples."""
    (tmp_path / "config.ini").write_text(CONFIG)
    write_table(tmp_path / "in.xlsx", HEADER, ROW)

    def asked(*arguments: str) -> dict[str, int]:
        judge.requests.clear()
        assert run_cli("in.xlsx", "-o", "r.xlsx", *arguments, **azure(judge)).code == 0
        return dict(judge.tasks())

    once = asked()
    sampled = [task for task in once if task not in ("toxicity", "recommendation", "preflight")]
    assert {task: asked_for for task, asked_for in asked("--samples", "3").items() if task in sampled} == {
        task: 2 * once[task] for task in sampled
    }, "the first sample is the call that was paid before"
    assert asked("--samples", "3") == {}
    more = asked("--samples", "5")
    assert {task: more[task] for task in sampled} == {task: 2 * once[task] for task in sampled}


def test_a_score_is_the_mean_of_its_samples_and_the_report_says_how_they_vary(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    """Faithfulness comes out as 1, 0 and 1; one sample of correctness fails."""
    verdicts, classifications = count(), count()

    def moody(request: Request) -> Answer | None:
        if request.task == "verdicts" and next(verdicts) == 1:
            return completion('{"statements": [{"statement": "s", "reason": "r", "verdict": 0}]}', request)
        if request.task == "classification" and next(classifications) == 0:
            return error(400, "content_filter", "no")
        return None

    judge.always = moody
    (tmp_path / "config.ini").write_text(CONFIG + "[evaluation]\nmax_workers = 1\nsamples = 3\n")
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--json", "r.json", **azure(judge))
    assert ended.code == 0
    (case,) = read_sheet(tmp_path / "r.xlsx", "Per-Query Metrics")
    assert case["Faithfulness"] == pytest.approx(2 / 3)
    assert case["Answer Correctness"] == 1
    assert (
        "between the judge's samples of one score: Answer Correctness 0.000, Faithfulness 0.577" in ended.out
    )
    document = json.loads((tmp_path / "r.json").read_text())
    scores = document["cases"][0]["scores"]
    assert sorted(scores["faithfulness"]["samples"]) == [0, 1, 1]
    assert scores["answer_correctness"]["reason"] == "mean of 2 of 3 samples: 1.00, 1.00"
    assert document["noise"]["faithfulness"] == pytest.approx(3**-0.5)
    assert "failed scores" not in ended.out, "the score did not fail"


def test_it_warns_where_samples_hardly_vary_and_offline_there_are_none(
    run_cli: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    assert "temperature 0" in run_cli("in.xlsx", "--samples", "2", **azure(judge)).err
    ended = run_cli("in.xlsx", "--samples", "2", "--judge", "offline")
    assert "temperature" not in ended.err
    assert "samples of one score" not in ended.out


def test_a_dry_run_counts_the_samples(run_cli: Run, judge: FakeJudge, tmp_path: Path) -> None:
    write_table(tmp_path / "in.xlsx", HEADER, ROW)
    plan = run_cli("in.xlsx", "--samples", "3", "--dry-run", **azure(judge)).out
    run_cli("in.xlsx", "--samples", "3", **azure(judge))
    assert f"faithfulness.verdicts: {judge.tasks()['verdicts']}" in plan
    assert judge.tasks()["verdicts"] == 3


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([Score.scored("m", 0.2), Score.scored("m", 0.4)], (pytest.approx(0.3), (0.2, 0.4))),
        ([Score.failed("m", "timeout", "no"), Score.scored("m", 0.4)], (0.4, (0.4,))),
        ([Score.failed("m", "timeout", "no"), Score.failed("m", "refused", "no")], (None, ())),
        ([Score.not_applicable("m", "no context")] * 2, (None, ())),
        ([Score.scored("m", 0.0, "empty response")] * 2, (0.0, ())),
    ],
)
def test_means_of_samples(samples: list[Score], expected: object) -> None:
    """An error is no zero; what the cells alone decide stays as it is."""
    score = mean_score(samples)
    assert (score.value, score.samples) == expected
    assert score.outcome == next((each for each in samples if each.value is not None), samples[0]).outcome


def test_the_evidence_of_a_mean_is_that_of_the_lowest_sample() -> None:
    """A low mean is not shown with evidence that is all favourable."""
    good, bad = (
        Evidence("statement", "Text.", word, word == "supported") for word in ("supported", "not supported")
    )
    samples = [
        Score.scored("m", 1.0, "", (good,)),
        Score.scored("m", 0.0, "", (bad,)),
        Score.scored("m", 0.0),
    ]
    assert mean_score(samples).evidence == (bad,)


def test_what_may_be_left_out_of_any_sample_is_named() -> None:
    good, bad, gone = (
        Evidence("statement", "Text.", word, word != "not supported")
        for word in ("supported", "not supported", LEFT_OUT)
    )
    samples = [Score.scored("m", 1.0, "", (good, gone)), Score.scored("m", 0.0, "", (bad,))]
    assert mean_score(samples).evidence == (bad, gone)
    assert mean_score([*samples, samples[0]]).evidence == (bad, gone)
