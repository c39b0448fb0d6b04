"""RQS, failure modes, summaries and ranks follow the documented formulas, on tables of metric values."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval.records import METRIC_LABELS, TOXICITY, Case, CaseResult, FailureMode, Outcome, Score
from rag_eval.results.scoring import failure_modes, rqs
from rag_eval.results.summary import Mean, Summarizer, Summary

WEIGHTS = {
    "answer_correctness": 0.35,
    "faithfulness": 0.25,
    "answer_relevancy": 0.25,
    "context_precision": 0.075,
    "context_recall": 0.075,
}
THRESHOLDS = dict.fromkeys(WEIGHTS, 0.3)
FAILED = "failed"

Value = float | str | None


def scores(*values: Value) -> dict[str, Score]:
    """Scores in the order of the report's columns; None is not applicable, FAILED a failed call."""
    return {name: _score(name, value) for name, value in zip(METRIC_LABELS, values, strict=True)}


def _score(name: str, value: Value) -> Score:
    if value is None:
        return Score.not_applicable(name, "no such cell")
    if isinstance(value, str):
        return Score.failed(name, "timeout", "no answer")
    return Score.scored(name, value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.0, 1.0, 1.0, 1.0, 1.0), 1.0),
        ((0.0, 0.0, 0.0, 0.0, 0.0), 0.0),
        ((0.8, 0.6, 0.9, 0.5, 0.4), 0.35 * 0.8 + 0.25 * 0.6 + 0.25 * 0.9 + 0.075 * 0.5 + 0.075 * 0.4),
        ((None, 0.6, 0.9, 0.5, None), (0.25 * 0.6 + 0.25 * 0.9 + 0.075 * 0.5) / 0.575),
        ((None, None, 0.4, None, None), 0.4),
        ((None, None, None, None, None), None),
        ((0.9, FAILED, 0.9, 0.9, 0.9), None),
        ((0.9, 0.9, 0.9, 0.9, FAILED), None),
    ],
)
def test_r32_rqs_renormalises_over_applicable_metrics_and_is_empty_over_a_hole(
    values: tuple[Value, ...], expected: float | None
) -> None:
    assert rqs(scores(*values), WEIGHTS) == pytest.approx(expected)


def test_a_metric_without_weight_leaves_no_hole() -> None:
    weights = {**WEIGHTS, "faithfulness": 0.0}
    assert rqs(scores(0.8, FAILED, 0.8, 0.8, 0.8), weights) == pytest.approx(0.8)


def test_rqs_of_metrics_without_weight_is_undefined() -> None:
    assert rqs(scores(0.5, None, None, None, None), {**WEIGHTS, "answer_correctness": 0.0}) is None


@given(
    st.lists(st.floats(0, 1), min_size=5, max_size=5), st.lists(st.floats(0.01, 9), min_size=5, max_size=5)
)
def test_rqs_lies_between_the_smallest_and_the_largest_score(
    values: list[float], weights: list[float]
) -> None:
    result = rqs(scores(*values), dict(zip(WEIGHTS, weights, strict=True)))
    assert result is not None
    assert min(values) - 1e-9 <= result <= max(values) + 1e-9


RETRIEVAL, HALLUCINATION, LOW = (
    FailureMode.RETRIEVAL_FAILURE,
    FailureMode.HALLUCINATION,
    FailureMode.LOW_QUALITY,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # correctness, faithfulness, relevancy, precision, recall
        ((0.9, 0.9, 0.9, 0.9, 0.9), (FailureMode.OK,)),
        ((0.3, 0.3, 0.3, 0.3, 0.3), (FailureMode.OK,)),  # at the threshold is not below it
        ((0.9, 0.29, 0.9, 0.9, 0.9), (HALLUCINATION,)),
        ((0.29, 0.9, 0.9, 0.9, 0.9), (LOW,)),
        ((0.9, 0.9, 0.29, 0.9, 0.9), (LOW,)),
        ((0.9, 0.9, 0.9, 0.1, 0.1), (RETRIEVAL,)),
        ((0.9, 0.9, 0.9, 0.1, 0.9), (FailureMode.OK,)),
        ((0.9, 0.9, 0.9, 0.9, 0.1), (FailureMode.OK,)),
        ((None, 0.9, 0.9, 0.1, None), (RETRIEVAL,)),
        ((0.9, 0.9, 0.9, None, 0.1), (RETRIEVAL,)),
        ((0.9, 0.9, 0.9, None, None), (FailureMode.OK,)),
        ((0.0, 0.0, 0.0, 0.0, 0.0), (RETRIEVAL, HALLUCINATION, LOW)),
        ((None, None, None, None, None), (FailureMode.OK,)),
        ((0.9, FAILED, 0.9, 0.9, 0.9), (FailureMode.NOT_JUDGED,)),
        ((0.1, FAILED, 0.9, 0.9, 0.9), (LOW,)),
        ((0.9, 0.9, 0.9, FAILED, 0.1), (RETRIEVAL,)),
    ],
)
def test_failure_modes(values: tuple[Value, ...], expected: tuple[FailureMode, ...]) -> None:
    assert failure_modes(scores(*values), THRESHOLDS) == expected


def result(bot: str, row: int, values: tuple[Value, ...], toxicity: float | None = 0.0) -> CaseResult:
    judged = scores(*values)
    return CaseResult(
        case=Case(row, bot, f"q{row}", "" if values[2] == 0.0 else "answer", "gt", ("c",)),
        scores=judged,
        toxicity=_score(TOXICITY, toxicity),
        rqs=rqs(judged, WEIGHTS),
        failure_modes=failure_modes(judged, THRESHOLDS),
    )


def summarise(rows: Mapping[str, list[tuple[Value, ...]]]) -> Summary:
    summarizer = Summarizer(list(rows), WEIGHTS, toxicity_threshold=0.5)
    for number, cells in enumerate(zip(*rows.values(), strict=True), 2):
        for bot, values in zip(rows, cells, strict=True):
            summarizer.add(result(bot, number, values))
    return summarizer.summary()


def flat(value: Value) -> tuple[Value, ...]:
    return (value,) * 5


def test_means_and_population_standard_deviation() -> None:
    summary = summarise({"A": [flat(0.2), flat(0.4), flat(0.9)]})
    mean = summary.bots[0].rqs
    assert mean.value == pytest.approx(0.5)
    assert mean.stdev == pytest.approx(math.sqrt((0.09 + 0.01 + 0.16) / 3))
    assert (mean.scored, mean.failed, mean.coverage) == (3, 0, 1.0)


def test_r28_a_mean_travels_with_its_counts_and_a_mean_of_nothing_is_empty() -> None:
    summary = summarise({"A": [(None, FAILED, 0.5, 0.5, None), (None, FAILED, 0.7, 0.5, None)]})
    bot = summary.bots[0]
    assert bot.rqs == Mean(None, None, 0, 2, 0)
    assert bot.metrics["faithfulness"] == Mean(None, None, 0, 2, 0)
    assert bot.metrics["answer_correctness"] == Mean(None, None, 0, 0, 2)
    assert bot.metrics["answer_relevancy"].value == pytest.approx(0.6)
    assert bot.failures == {"timeout": 2}
    assert bot.failure_modes[FailureMode.NOT_JUDGED] == 2
    assert summary.standings[0].rank is None


def test_r29_ranking_uses_the_rows_that_every_bot_was_scored_on() -> None:
    """B fails on the easy row; counting that as 0, or leaving only B's row out, would rank it wrongly."""
    easy, hard = flat(0.9), flat(0.3)
    summary = summarise({"A": [easy, hard, hard], "B": [flat(FAILED), flat(0.4), flat(0.4)]})
    assert [(line.bot, line.rank, line.is_winner) for line in summary.standings] == [
        ("B", 1, True),
        ("A", 2, False),
    ]
    assert (summary.compared, summary.rows) == (2, 3)
    assert summary.standings[1].rqs.value == pytest.approx(0.3)
    assert summary.bots[0].rqs.value == pytest.approx(0.5)


@given(st.lists(st.one_of(st.floats(0, 1), st.just(FAILED)), min_size=1, max_size=20))
def test_r30_bounds_hold_the_true_mean_whatever_the_missing_values_are(values: list[Value]) -> None:
    mean = summarise({"A": [flat(value) for value in values]}).bots[0].rqs
    assert mean.bounds is not None
    low, high = mean.bounds
    known = [value for value in values if isinstance(value, float)]
    missing = len(values) - len(known)
    for filled in (0.0, 0.5, 1.0):
        truth = (sum(known) + filled * missing) / len(values)
        assert low - 1e-9 <= truth <= high + 1e-9


def test_ties_within_rounding_share_rank_and_star() -> None:
    summary = summarise({"A": [flat(0.5)], "B": [flat(0.500001)], "C": [flat(0.4)]})
    assert [(line.bot, line.rank, line.is_winner) for line in summary.standings] == [
        ("A", 1, True),
        ("B", 1, True),
        ("C", 3, False),
    ]


def test_bots_without_a_common_row_are_not_ranked() -> None:
    summary = summarise({"A": [flat(0.9), flat(FAILED)], "B": [flat(FAILED), flat(0.1)]})
    assert [line.rank for line in summary.standings] == [None, None]
    assert not any(line.is_winner for line in summary.standings)


def test_a_bot_that_was_never_scored_does_not_keep_the_others_from_being_ranked() -> None:
    summary = summarise({"A": [flat(0.9)], "B": [flat(FAILED)], "C": [flat(0.1)]})
    assert [(line.bot, line.rank) for line in summary.standings] == [("A", 1), ("C", 2), ("B", None)]


def test_toxic_queries_and_empty_cells_are_counted() -> None:
    summarizer = Summarizer(["A"], WEIGHTS, toxicity_threshold=0.5)
    for row, toxicity in enumerate((0.5, 0.49, None, 0.9), 2):
        summarizer.add(result("A", row, flat(0.0), toxicity))
    bot = summarizer.summary().bots[0]
    assert (bot.toxic_queries, bot.toxicity.scored, bot.toxicity.not_applicable) == (2, 3, 1)
    assert (bot.empty_answers, bot.total_queries) == (4, 4)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_a_score_outside_0_to_1_cannot_be_made(value: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        Score.scored("faithfulness", value)


def test_the_three_outcomes() -> None:
    assert [_score("m", value).outcome for value in (0.5, None, FAILED)] == list(Outcome)
