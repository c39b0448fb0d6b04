"""RQS, failure modes, summaries and ranks follow the documented formulas, on tables of metric values."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import THRESHOLDS, WEIGHTS

from rag_eval.records import (
    TOXICITY,
    Case,
    CaseResult,
    Evidence,
    FailureMode,
    Outcome,
    RubricOutcome,
    Score,
)
from rag_eval.results.scoring import composite, failure_modes, mean_score, rqs
from rag_eval.results.summary import Mean, Summarizer, Summary

FAILED = "failed"

Value = float | str | None

FIVE = ("answer_correctness", "faithfulness", "answer_relevancy", "context_precision", "context_recall")


def scores(*values: Value) -> dict[str, Score]:
    """Scores in the order of the report's columns; None is not applicable, FAILED a failed call."""
    return {name: _score(name, value) for name, value in zip(FIVE, values, strict=True)}


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
def test_rqs_renormalises_over_applicable_metrics_and_is_empty_over_a_hole(
    values: tuple[Value, ...], expected: float | None
) -> None:
    assert rqs(scores(*values), WEIGHTS) == pytest.approx(expected)


def test_a_metric_without_weight_leaves_no_hole() -> None:
    weights = {**WEIGHTS, "faithfulness": 0.0}
    assert rqs(scores(0.8, FAILED, 0.8, 0.8, 0.8), weights) == pytest.approx(0.8)


def test_rqs_of_metrics_without_weight_is_undefined() -> None:
    assert rqs(scores(0.5, None, None, None, None), {**WEIGHTS, "answer_correctness": 0.0}) is None


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        ({"a": 0.2, "b": 0.8}, {"a": 1.0, "b": 3.0}, 0.65),
        ({"a": 0.2, "c": 0.9}, {"a": 0.1, "b": 0.9}, 0.2),
        ({"a": 0.2}, {"a": 0.0, "b": 1.0}, None),
        ({"a": 0.2}, {}, None),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 0.1, "b": 0.2, "c": 0.7}, 1.0),
    ],
)
def test_a_composite_is_the_weighted_mean_of_what_has_value_and_weight(
    values: dict[str, float], weights: dict[str, float], expected: float | None
) -> None:
    assert composite(values, weights) == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_the_order_of_the_weights_does_not_reach_the_last_digit() -> None:
    """A plain sum depends on it, and on the version of Python."""
    values = dict(zip(WEIGHTS, (0.0, 1.0, 0.1, 0.1, 0.0), strict=True))
    found = {composite(values, dict(order)) for order in permutations(WEIGHTS.items())}
    assert found == {0.2825}


def _sampled(*values: float | None, evidence: tuple[Evidence, ...] = ()) -> Score:
    samples = [
        Score.failed("m", "timeout", "late") if value is None else Score.scored("m", value, "why", evidence)
        for value in values
    ]
    return mean_score(samples)


_EVIDENCE = (Evidence("statement", "text", "supported", True),)


@pytest.mark.parametrize(
    ("score", "value", "reason", "samples"),
    [
        (_sampled(0.5, 0.5), 0.5, "why", ()),  # the cells alone decided it
        (_sampled(0.5, 0.5, evidence=_EVIDENCE), 0.5, "mean of 2 samples: 0.50, 0.50", (0.5, 0.5)),
        (_sampled(0.25, 0.5, 0.75), 0.5, "mean of 3 samples: 0.25, 0.50, 0.75", (0.25, 0.5, 0.75)),
        (_sampled(0.5, None, 0.5), 0.5, "mean of 2 of 3 samples: 0.50, 0.50", (0.5, 0.5)),
        (_sampled(None, 0.25), 0.25, "mean of 1 of 2 samples: 0.25", (0.25,)),
        (_sampled(None, None), None, "late", ()),
    ],
)
def test_samples_are_one_score(
    score: Score, value: float | None, reason: str, samples: tuple[float, ...]
) -> None:
    assert (score.value, score.reason, score.samples) == (value, reason, samples)


@pytest.mark.parametrize(
    ("doc_recall", "values", "expected"),
    [
        (0.29, (0.9, 0.9, 0.9, 0.9, 0.9), FailureMode.RETRIEVAL_FAILURE),
        (0.3, (0.9, 0.9, 0.9, 0.0, 0.0), FailureMode.OK),
        (0.0, (0.9, 0.9, 0.9, None, None), FailureMode.RETRIEVAL_FAILURE),
    ],
)
def test_gold_documents_decide_alone_about_retrieval(
    doc_recall: float, values: tuple[Value, ...], expected: FailureMode
) -> None:
    thresholds = {**THRESHOLDS, "context_precision": 0.0}
    assert failure_modes(scores(*values), thresholds, doc_recall) == (expected,)


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


def test_shares_of_failures_are_of_cases_that_were_judged_in_full() -> None:
    """A case that is half judged could only count if it fails, so with it every share would be too high."""
    halves: list[tuple[Value, ...]] = [(0.1, FAILED, 0.9, 0.9, 0.9), (0.9, FAILED, 0.9, 0.9, 0.9)]
    bot = summarise({"A": [flat(0.9), flat(0.9), (0.1, 0.9, 0.9, 0.9, 0.9), *halves]}).bots[0]
    assert (bot.failure_modes[LOW], bot.full_modes[LOW]) == (2, 1)
    assert (bot.failure_modes[FailureMode.NOT_JUDGED], bot.full_modes[FailureMode.NOT_JUDGED]) == (1, 2)
    assert (bot.judged_queries, bot.failed_queries, bot.rqs.failed) == (3, 1, 2)


def test_a_mean_travels_with_its_counts_and_a_mean_of_nothing_is_empty() -> None:
    summary = summarise({"A": [(None, FAILED, 0.5, 0.5, None), (None, FAILED, 0.7, 0.5, None)]})
    bot = summary.bots[0]
    assert bot.rqs == Mean(None, None, 0, 2, 0)
    assert bot.metrics["faithfulness"] == Mean(None, None, 0, 2, 0)
    assert bot.metrics["answer_correctness"] == Mean(None, None, 0, 0, 2)
    assert bot.metrics["answer_relevancy"].value == pytest.approx(0.6)
    assert bot.failures == {"timeout": 2}
    assert bot.failure_modes[FailureMode.NOT_JUDGED] == 2
    assert summary.standings[0].rank is None


def test_ranking_uses_the_rows_that_every_bot_was_scored_on() -> None:
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
def test_bounds_hold_the_true_mean_whatever_the_missing_values_are(values: list[Value]) -> None:
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


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ((0.50004, 0.5), (1, 1)),
        ((0.50006, 0.5), (1, 2)),
        ((0.5004, 0.5), (1, 2)),
        ((0.4, 0.5, 0.5, 0.6), (4, 2, 2, 1)),
    ],
)
def test_means_that_are_equal_to_four_decimals_share_a_rank(
    values: tuple[float, ...], ranks: tuple[int, ...]
) -> None:
    bots = "ABCD"[: len(values)]
    summary = summarise({bot: [flat(value)] for bot, value in zip(bots, values, strict=True)})
    found = {line.bot: (line.rank, line.is_winner) for line in summary.standings}
    assert found == {bot: (rank, rank == 1) for bot, rank in zip(bots, ranks, strict=True)}
    assert [line.rank for line in summary.standings] == sorted(ranks)


def test_rows_that_count_for_the_worst_case() -> None:
    """Failed rows do; a row that does not apply to one of the bots is no row of the comparison."""
    summary = summarise(
        {
            "A": [flat(0.5), flat(FAILED), flat(0.6), flat(None)],
            "B": [flat(0.1), flat(0.2), flat(FAILED), flat(0.4)],
            "C": [flat(FAILED)] * 4,
        }
    )
    assert {bot: list(values) for bot, values in summary.rqs_values.items()} == {
        "A": pytest.approx([0.5]),
        "B": pytest.approx([0.1]),
    }
    assert {bot: list(values) for bot, values in summary.gapped_rqs.items()} == {
        "A": pytest.approx([0.5, math.nan, 0.6], nan_ok=True),
        "B": pytest.approx([0.1, 0.2, math.nan], nan_ok=True),
    }
    assert (summary.compared, summary.rows, summary.judged) == (1, 4, 4)
    assert summarise({"A": [flat(0.5), flat(None)], "B": [flat(0.1), flat(0.4)]}).gapped_rqs == {}


def test_rows_on_which_no_bot_has_an_rqs_are_not_judged() -> None:
    summary = summarise(
        {"A": [flat(FAILED), flat(FAILED), flat(None)], "B": [flat(FAILED), flat(0.4), flat(None)]}
    )
    assert (summary.judged, summary.rows) == (2, 3)


def test_failures_are_counted_by_code_and_those_of_the_content_by_case() -> None:
    summarizer = Summarizer(["A"], WEIGHTS, toxicity_threshold=0.5, further=["answer_coverage"])
    codes = (
        (("refused", "truncated"), "timeout"),
        (("timeout",), "timeout"),
        (("blocked_by_filter",), ""),
        ((), "refused"),
    )
    for row, (of_metrics, of_rubric) in enumerate(codes, 2):
        judged = result("A", row, flat(0.5))
        failed = {name: Score.failed(name, code, "no") for name, code in zip(FIVE, of_metrics, strict=False)}
        rubric = (
            RubricOutcome.failed(["polite"], of_rubric, "no")
            if of_rubric
            else RubricOutcome(Outcome.SCORED, True)
        )
        further = {"answer_coverage": Score.failed("answer_coverage", "late", "no")}
        summarizer.add(
            replace(
                judged,
                scores={**judged.scores, **failed},
                rqs=None if failed else 0.5,
                rubric=rubric,
                further=further,
            )
        )
    bot = summarizer.summary().bots[0]
    assert bot.failures == {"late": 4, "timeout": 3, "refused": 2, "truncated": 1, "blocked_by_filter": 1}
    assert list(bot.failures)[:3] == ["late", "timeout", "refused"], "the most frequent first"
    assert (bot.failed_by_content, bot.rqs.failed, bot.rqs.scored) == (2, 3, 1)
    assert bot.further["answer_coverage"] == Mean(None, None, 0, 4, 0)


def test_empty_cells_are_counted_by_kind() -> None:
    summarizer = Summarizer(["A"], WEIGHTS, toxicity_threshold=0.5)
    for row, (answer, chunks) in enumerate(
        [("yes", ()), (" ", ("c",)), ("yes", None), ("", ()), ("yes", ())], 2
    ):
        judged = result("A", row, flat(0.5))
        summarizer.add(replace(judged, case=replace(judged.case, response=answer, chunks=chunks)))
    bot = summarizer.summary().bots[0]
    assert (bot.empty_contexts, bot.empty_answers, bot.total_queries) == (3, 2, 5)


def test_slices_are_the_values_of_a_column_in_the_order_in_which_they_come() -> None:
    summarizer = Summarizer(["A"], WEIGHTS, 0.5, "Topic")
    for row, topic in enumerate(("tax", " law ", "", "tax"), 2):
        judged = result("A", row, flat(row / 10))
        summarizer.add(replace(judged, case=replace(judged.case, columns={"Topic": topic})))
    slices = summarizer.summary().slices
    assert [
        (each.name, each.bots[0].total_queries, round(each.bots[0].rqs.value or 0, 6)) for each in slices
    ] == [
        ("tax", 2, 0.35),
        ("law", 1, 0.3),
        ("", 1, 0.4),
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
