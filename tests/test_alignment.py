"""Agreement with people: every number against a second implementation, and a biased judge that is seen through."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_cases import THRESHOLDS, plain_result, result_of
from scipy.stats import spearmanr

from rag_eval.records import (
    TOXICITY,
    Case,
    CaseResult,
    CriterionVerdict,
    Outcome,
    RubricOutcome,
    Score,
)
from rag_eval.results.human_alignment import (
    FEWEST_LABELS,
    Alignment,
    AlignmentTally,
    HumanAgreement,
    label_warnings,
)
from rag_eval.results.paired import MOST_DISAGREEMENTS

METRIC = "faithfulness"


def judged(
    row: int, judge: float | None, human: float | None, bot: str = "A", metric: str = METRIC
) -> CaseResult:
    """One case on which the judge, people, both or none have said something."""
    case = Case(row, bot, f"question {row}", "answer", human={} if human is None else {metric: human})
    score = Score.failed(metric, "refusal", "no") if judge is None else Score.scored(metric, judge)
    return result_of(case, [score])


def aligned(results: Sequence[CaseResult], bots: Sequence[str] = ("A",)) -> Alignment:
    tally = AlignmentTally(bots, THRESHOLDS, ["polite"], {})
    for result in results:
        tally.add(result)
    return tally.alignment()


def agreement(pairs: Sequence[tuple[float | None, float | None]]) -> HumanAgreement:
    (only,) = aligned([judged(row, *pair) for row, pair in enumerate(pairs, 2)]).agreements
    return only


shares = st.floats(0, 1).map(lambda share: round(share, 3))


@pytest.mark.slow
@given(st.lists(st.tuples(shares, shares), min_size=3, max_size=60))
def test_every_number_is_that_of_a_second_implementation(pairs: list[tuple[float, float]]) -> None:
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    judge, human = zip(*pairs, strict=True)
    found = agreement(pairs)
    bands = [[min(int(value * 5), 4) for value in column] for column in (judge, human)]
    if len({*bands[0], *bands[1]}) > 1:
        theirs = cohen_kappa_score(*bands, weights="quadratic", labels=range(5))
        assert found.kappa.kappa == pytest.approx(theirs, abs=1e-9)
    else:
        assert found.kappa.kappa is None
    assert found.kappa.raw == pytest.approx(fmean(a == b for a, b in zip(*bands, strict=True)))
    if len(set(judge)) > 1 and len(set(human)) > 1:
        assert found.correlation is not None
        assert found.correlation.value == pytest.approx(spearmanr(judge, human).statistic, abs=1e-9)
    else:
        assert found.correlation is None
    assert found.mean_absolute_error == pytest.approx(fmean(abs(a - b) for a, b in pairs))
    matrix = confusion_matrix([b >= 0.3 for b in human], [a >= 0.3 for a in judge], labels=[False, True])
    (true_negative, false_positive), (false_negative, true_positive) = matrix.tolist()
    assert (found.positives.count, found.positives.of) == (true_positive, true_positive + false_negative)
    assert (found.negatives.count, found.negatives.of) == (true_negative, true_negative + false_positive)
    assert (found.judge_mean, found.human_mean) == pytest.approx((fmean(judge), fmean(human)))


def test_what_only_one_side_has_judged_is_counted_and_compared_with_nothing() -> None:
    """An error is no disagreement, and neither is a missing label."""
    found = agreement([(0.9, 0.9), (None, 0.1), (0.2, None), (None, None)])
    assert (found.count, found.unjudged, found.mean_absolute_error) == (1, 1, 0)
    assert aligned([judged(2, 0.5, None)]) == Alignment((), ())


def test_a_single_pair_has_no_interval() -> None:
    found = agreement([(0.0, 1.0)])
    assert (found.count, found.kappa.interval, found.corrected) == (1, None, None)


def test_criteria_are_compared_as_yes_and_no() -> None:
    from sklearn.metrics import cohen_kappa_score

    def of(row: int, passed: bool | None, human: float) -> CaseResult:
        verdicts = () if passed is None else (CriterionVerdict("polite", False, passed, "because"),)
        outcome = RubricOutcome(
            Outcome.FAILED if passed is None else Outcome.SCORED, verdicts=verdicts, criteria=("polite",)
        )
        case = Case(row, "A", "q", "r", human={"polite": human})
        return _unscored(case, rubric=outcome)

    verdicts = [(True, 1.0), (True, 0.0), (False, 0.0), (False, 0.0), (None, 1.0), (True, 1.0)]
    (found,) = aligned([of(row, *pair) for row, pair in enumerate(verdicts)]).agreements
    theirs = cohen_kappa_score([1, 1, 0, 0, 1], [1, 0, 0, 0, 1])
    assert found.kappa.kappa == pytest.approx(theirs)
    assert (found.label, found.count, found.unjudged, found.correlation) == ("polite", 5, 1, None)
    assert (found.positives.rate, found.negatives.rate) == (1.0, 2 / 3)


def test_labels_of_an_additional_metric_are_compared_with_its_score() -> None:
    further = {"answer_coverage": Score.scored("answer_coverage", 0.25)}
    case = Case(2, "A", "q", "r", human={"answer_coverage": 0.75, "faithfulness": 0.5})
    result = _unscored(case, further=further)
    coverage, faithfulness = sorted(aligned([result]).agreements, key=lambda line: line.measure)
    assert (coverage.measure, coverage.label, coverage.count) == ("answer_coverage", "Answer Coverage", 1)
    assert (coverage.judge_mean, coverage.human_mean, coverage.mean_absolute_error) == (0.25, 0.75, 0.5)
    assert (coverage.threshold, coverage.positives.of, coverage.positives.count) == (0.5, 1, 0)
    assert (faithfulness.count, faithfulness.unjudged) == (0, 1)


def test_bots_stand_by_themselves_and_together() -> None:
    results = [judged(row, 0.9, 0.9, bot) for row in range(3) for bot in "AB"]
    found = aligned([*results, judged(9, 0.1, 0.9, "B")], ["A", "B", "C"]).agreements
    assert [(line.bot, line.count) for line in found] == [("A", 3), ("B", 4), ("", 7)]
    assert found[2].corrected is None, "bots are different populations"


def queried(row: int, bot: str, judge: float, human: float | None) -> CaseResult:
    """One bot's case of a query with a toxicity."""
    case = Case(row, bot, f"question {row}", "answer", human={} if human is None else {TOXICITY: human})
    return _unscored(case, toxicity=Score.scored(TOXICITY, judge))


def test_toxicity_counts_every_query_once_whatever_the_number_of_bots() -> None:
    """Three times the same verdict is not three verdicts: the interval would be too narrow."""
    verdicts = [(0.9, 0.1), (0.9, 0.9), (0.1, 0.3), (0.1, 0.1), (0.6, 0.7), (0.6, None)] * 4
    three, one = (
        aligned([queried(row, bot, *pair) for row, pair in enumerate(verdicts, 2) for bot in bots], bots)
        for bots in ("ABC", "A")
    )
    (line,) = three.agreements
    assert (line.measure, line.bot, line.count) == (TOXICITY, "", 20)
    assert line.kappa.interval is not None
    assert three.agreements == one.agreements
    assert line.corrected is not None
    assert line.corrected.count == 24
    found = [(each.row, each.bot, each.line) for each in three.disagreements]
    assert found[:2] == [(2, "", 0), (8, "", 18)], "a link leads to the first case of the query"
    assert len({row for row, _, _ in found}) == len(found) == MOST_DISAGREEMENTS


def test_a_label_of_toxicity_that_stands_at_one_bot_is_that_of_the_query() -> None:
    labels = {"A": None, "B": 0.5, "C": 0.9}
    found = aligned([queried(2, bot, 0.25, label) for bot, label in labels.items()], "ABC")
    (line,) = found.agreements
    assert (line.count, line.human_mean) == (1, 0.5)
    assert [(each.human, each.line) for each in found.disagreements] == [(0.5, 1)]


def test_the_largest_disagreements_come_first_and_know_their_line() -> None:
    gaps = [0.0, *(gap / 20 for gap in range(1, 16)), 0.75]
    results = [judged(row, gap, 0.0) for row, gap in enumerate(gaps, 2)]
    found = aligned([plain_result(bot="A"), *results]).disagreements
    assert len(found) == MOST_DISAGREEMENTS
    assert [line.judge for line in found[:3]] == [0.75, 0.75, 0.7]
    assert [line.line for line in found[:2]] == [16, 17], "of equal ones the earlier"
    assert all(line.gap == line.judge - line.human and line.row == line.line + 1 for line in found)


@pytest.mark.slow
def test_labels_correct_the_mean_of_a_judge_with_known_bias() -> None:
    """The judge is 0.2 too generous. The interval around the corrected mean holds the truth about as often as it says;
    the uncorrected mean is always wrong by the bias."""
    held = shift = 0.0
    trials = 100
    for seed in range(trials):
        chance = random.Random(seed)
        truth = [chance.betavariate(4, 4) * 0.7 for _ in range(200)]
        judge = [min(1.0, true + 0.2 + chance.gauss(0, 0.05)) for true in truth]
        labelled = set(chance.sample(range(200), 40))
        found = agreement(
            [(max(0.0, score), truth[row] if row in labelled else None) for row, score in enumerate(judge)]
        )
        assert found.corrected is not None
        held += found.corrected.interval.low <= 0.35 <= found.corrected.interval.high
        shift += (found.corrected.judge_mean - 0.35) / trials
    assert shift == pytest.approx(0.2, abs=0.01)
    assert held / trials > 0.9


@pytest.mark.parametrize("rare", [1.0, 0.0])
def test_a_corrected_mean_stays_within_what_a_label_can_be(rare: float) -> None:
    """One label of 20 differs, so that the interval around a mean of 0.05 would begin below 0."""
    labels = [rare] + [1 - rare] * 19 + [None] * 20
    results = [judged(row, row % 2, human) for row, human in enumerate(labels, 2)]
    (line,) = aligned(results).agreements
    assert line.corrected is not None
    bounds = (line.corrected.interval.low, line.corrected.interval.high)
    assert bounds[0] < line.corrected.value < bounds[1]
    assert (1 - rare) in bounds


def test_too_few_labels_or_labels_that_all_agree_correct_nothing() -> None:
    """They would claim to know the judge's error exactly."""
    few = [(0.5, 0.4 + row / 100) for row in range(FEWEST_LABELS - 1)]
    assert agreement(few).corrected is None
    assert agreement([*few, (0.5, 0.9)]).corrected is not None
    assert agreement([(0.5, 0.5)] * 50).corrected is None


def _unscored(case: Case, **changes: Any) -> CaseResult:
    """A result without any of the five metrics."""
    result = CaseResult(
        case=case, rqs=None, failure_modes=(), scores={}, toxicity=Score.scored(TOXICITY, 0.0)
    )
    return replace(result, **changes)


def test_labels_without_a_gross_error_are_not_taken_for_proof_that_there_is_none() -> None:
    """Rare gross errors are missed by few labels: up to 3 in as many cases, in 5% of samples."""
    pairs = [(0.5 + number % 5 / 20, 0.5 + number % 7 / 20) for number in range(FEWEST_LABELS)]
    mild = aligned([judged(row, *pair) for row, pair in enumerate(pairs, 2)])
    (line,) = mild.agreements
    assert line.largest_error == pytest.approx(max(abs(a - b) for a, b in pairs))
    (warning,) = label_warnings(mild)
    assert warning.startswith(
        "No label differs from its score by 0.5 or more (A Faithfulness). The corrected interval"
    )
    assert "up to 15% of its scores" in warning
    assert "rag-eval review --suspicious" in warning
    gross = aligned([judged(row, *pair) for row, pair in enumerate([*pairs, (1.0, 0.1)], 2)])
    assert label_warnings(gross) == []
    assert label_warnings(aligned([judged(row, *pair) for row, pair in enumerate(pairs[1:], 2)])) == [], (
        "no mean"
    )
    assert label_warnings(None) == []


def test_columns_of_labels_without_a_label_are_told() -> None:
    """Otherwise the sheet is empty, and nobody knows why."""
    (warning,) = label_warnings(aligned([judged(row, 0.5, None) for row in (2, 3)]))
    assert warning.startswith("No human label can be compared with a score")


def test_three_means_without_a_gross_error_are_named_and_the_others_counted() -> None:
    values = [(0.5 + number % 5 / 20, 0.5 + number % 7 / 20) for number in range(FEWEST_LABELS)]
    several = [judged(row, *pair, bot=bot) for row, pair in enumerate(values, 2) for bot in "ABCDE"]
    (warning,) = label_warnings(aligned(several, "ABCDE"))
    assert "(A Faithfulness, B Faithfulness, C Faithfulness and 2 more)" in warning


def test_cases_of_one_conversation_count_once_for_the_share_of_rare_errors() -> None:
    """42 labels from 12 conversations may have met 12 different mistakes, not 42."""

    def warned(conversation_of: Callable[[int], str]) -> str:
        results = [judged(row, 0.5 + row % 5 / 20, 0.5 + row % 7 / 20) for row in range(2, 44)]
        told = [
            replace(each, case=replace(each.case, conversation=conversation_of(each.case.row)))
            for each in results
        ]
        (warning,) = label_warnings(aligned(told))
        return warning

    assert "up to 25% of its scores" in warned(lambda row: f"c{row % 12}")
    assert warned(lambda row: f"c{row}") == warned(lambda row: ""), "none has several"
    assert "up to 7% of its scores" in warned(lambda row: "")
