"""Two judges on the same cases: every number against scikit-learn, scipy or a count by hand."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from report_cases import facts_of, plain_result, result_of
from scipy.stats import binomtest, bootstrap, spearmanr

from rag_eval.records import METRIC_LABELS, TOXICITY, Case, CaseResult, Outcome, PairVerdict, RunFacts, Score
from rag_eval.report.judge_tables import judge_facts, summary_lines, table_lines
from rag_eval.results.agreement import kappa_difference
from rag_eval.results.judge_comparison import (
    Decisions,
    JudgeComparison,
    JudgeComparisonTally,
    JudgeRun,
    MeasureComparison,
    headline,
    money,
    ranking_words,
)

METRIC = "faithfulness"
BOTS = ("A1", "B2")


def judged(row: int, value: float | None, bot: str = "A1", human: float | None = None) -> CaseResult:
    """One case that was scored on one metric, or on which the judge failed."""
    case = Case(row, bot, f"question {row}", "answer", human={} if human is None else {METRIC: human})
    score = (
        Score.failed(METRIC, "refused", "no")
        if value is None
        else Score.scored(METRIC, value, f"saw {value}")
    )
    return result_of(case, [score])


def facts(rows: int = 4, bots: Sequence[str] = ("A1",), **changes: Any) -> RunFacts:
    return facts_of(bots, rows, metrics=(METRIC,), weights={METRIC: 1.0}, **changes)


def compared(
    pairs: Sequence[tuple[CaseResult, CaseResult]], a: RunFacts | None = None, b: RunFacts | None = None
) -> JudgeComparison:
    bots = tuple(dict.fromkeys(one.case.bot for one, _ in pairs)) or ("A1",)
    tally = JudgeComparisonTally(a or facts(bots=bots), b or a or facts(bots=bots))
    for pair in pairs:
        tally.add(*pair)
    return tally.comparison()


def of_values(
    values: Sequence[tuple[float | None, float | None]], human: Sequence[float | None] | None = None
) -> JudgeComparison:
    """Rows from 2 on, one bot."""
    labels = human or [None] * len(values)
    return compared(
        [
            (judged(row, a, human=label), judged(row, b, human=label))
            for row, ((a, b), label) in enumerate(zip(values, labels, strict=True), 2)
        ]
    )


def measure(comparison: JudgeComparison, name: str = METRIC) -> MeasureComparison:
    return next(line for line in comparison.measures if line.measure == name)


def random_pairs(rows: int, seed: int = 3) -> list[tuple[CaseResult, CaseResult]]:
    """Judges that are alike, on two bots; each fails now and then, and people labelled most cases."""
    chance = random.Random(seed)
    pairs = []
    for row in range(2, rows + 2):
        for bot in BOTS:
            truth = chance.random()
            a, b = (min(1.0, max(0.0, truth + chance.gauss(0.0, spread))) for spread in (0.1, 0.25))
            human = round(truth, 1) if chance.random() < 0.8 else None
            ours = None if chance.random() < 0.1 else a
            theirs = None if chance.random() < 0.1 else b
            pairs.append((judged(row, ours, bot, human), judged(row, theirs, bot, human)))
    return pairs


def common_of(pairs: Sequence[tuple[CaseResult, CaseResult]]) -> list[tuple[float, float]]:
    values = ((a.value(METRIC), b.value(METRIC)) for a, b in pairs)
    return [(a, b) for a, b in values if a is not None and b is not None]


def bands(values: Sequence[float]) -> list[int]:
    return [min(int(value * 5), 4) for value in values]


# --- numbers -------------------------------------------------------------------------------------------------


def test_bands_that_no_score_is_in_keep_their_distance() -> None:
    """Kappa weighs by how far two bands are apart: the first and the last are so, whatever is between them."""

    from sklearn.metrics import cohen_kappa_score

    values = [(0.0, 0.0), (1.0, 0.3), (0.3, 1.0), (0.0, 0.3), (1.0, 1.0)]
    a, b = zip(*values, strict=True)
    found = measure(of_values(values)).kappa.kappa
    assert found == pytest.approx(cohen_kappa_score(bands(a), bands(b), weights="quadratic", labels=range(5)))
    assert found != pytest.approx(cohen_kappa_score(bands(a), bands(b), weights="quadratic"))


@pytest.mark.parametrize("seed", range(5))
def test_every_statistic_is_that_of_scikit_learn_and_scipy(seed: int) -> None:
    from sklearn.metrics import cohen_kappa_score, mean_absolute_error

    pairs = random_pairs(30, seed)
    a, b = zip(*common_of(pairs), strict=True)
    line = measure(compared(pairs))
    assert line.count == len(a)
    assert line.a.mean == pytest.approx(fmean(a))
    assert line.b.mean == pytest.approx(fmean(b))
    assert line.difference == pytest.approx(fmean(b) - fmean(a))
    assert line.mean_absolute_error == pytest.approx(mean_absolute_error(a, b))
    assert line.correlation is not None
    assert line.correlation.value == pytest.approx(spearmanr(a, b).statistic)
    assert line.kappa.kappa == pytest.approx(cohen_kappa_score(bands(a), bands(b), weights="quadratic"))
    passes = [[value >= 0.3 for value in values] for values in (a, b)]
    assert line.decisions is not None
    assert line.decisions.kappa.kappa == pytest.approx(cohen_kappa_score(*passes))
    equal = sum(one == other for one, other in zip(*passes, strict=True))
    assert line.decisions.kappa.raw == pytest.approx(equal / len(a))
    wilson = binomtest(equal, len(a)).proportion_ci(method="wilson")
    assert line.decisions.interval is not None
    assert (line.decisions.interval.low, line.decisions.interval.high) == pytest.approx(
        (wilson.low, wilson.high)
    )


def test_the_interval_of_the_difference_draws_rows_as_a_whole() -> None:
    """Two bots whose differences are alike in each row: an interval over cases would be too narrow."""
    chance = random.Random(1)
    steps = [chance.gauss(0.0, 0.1) for _ in range(60)]
    pairs = [
        (judged(row, 0.5, bot), judged(row, 0.5 + step, bot))
        for row, step in enumerate(steps, 2)
        for bot in BOTS
    ]
    interval = measure(compared(pairs)).interval
    assert interval is not None
    expected = bootstrap((np.array(steps),), np.mean, n_resamples=9999, random_state=0).confidence_interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.003)
    narrow = bootstrap((np.repeat(steps, 2),), np.mean, n_resamples=9999, random_state=0).confidence_interval
    assert interval.high - interval.low > 1.3 * (narrow.high - narrow.low)


def test_rows_with_several_and_with_few_cases_weigh_by_their_cases() -> None:
    """The interval is around the mean over cases, not over rows."""
    pairs = [(judged(row, 0.2), judged(row, 0.2 + 0.01 * (row % 3))) for row in range(2, 22)]
    pairs += [(judged(row, 0.2, "B2"), judged(row, 0.8, "B2")) for row in range(2, 7)]
    pairs.sort(key=lambda pair: pair[0].case.row)
    line = measure(compared(pairs, facts(bots=BOTS)))
    assert line.difference == pytest.approx((5 * 0.6 + sum(0.01 * (row % 3) for row in range(2, 22))) / 25)
    assert line.interval is not None
    assert line.interval.low < line.difference < line.interval.high


def test_a_table_that_can_be_checked_by_hand() -> None:
    """Eight cases: two flips, one failure of B, one of A."""
    values = [
        (1.0, 1.0),
        (1.0, 0.0),
        (0.0, 0.0),
        (0.0, 1.0),
        (1.0, 1.0),
        (0.0, 0.0),
        (1.0, None),
        (None, 0.0),
    ]
    comparison = of_values(values)
    line = measure(comparison)
    assert (line.count, line.a.mean, line.b.mean, line.difference) == (6, 0.5, 0.5, 0.0)
    assert line.mean_absolute_error == pytest.approx(2 / 6)
    assert (line.a.own.value, line.a.own.scored, line.a.own.failed) == (pytest.approx(4 / 7), 7, 1)
    assert (line.b.own.value, line.b.own.scored, line.b.own.failed) == (pytest.approx(3 / 7), 7, 1)
    assert (line.a.failures, line.b.failures) == ({"refused": 1}, {"refused": 1})
    decisions = line.decisions
    assert decisions == comparison.overall
    assert decisions is not None
    counts = decisions.both_pass, decisions.both_fail, decisions.only_a_passes, decisions.only_b_passes
    assert counts == (2, 2, 1, 1)
    assert decisions.kappa.kappa == pytest.approx(1 / 3)
    assert comparison.undecided == 2
    assert [(each.row, each.gap) for each in comparison.disagreements] == [(3, -1.0), (5, 1.0)]
    assert (comparison.cases, comparison.rows) == (8, 8)


def test_each_judge_decides_by_its_own_threshold() -> None:
    pairs = [(judged(row, 0.5), judged(row, value)) for row, value in enumerate((0.5, 0.7, 0.3), 2)]
    line = measure(compared(pairs, facts(), facts(thresholds=dict.fromkeys(METRIC_LABELS, 0.6))))
    assert (line.a.threshold, line.b.threshold) == (0.3, 0.6)
    assert line.decisions is not None
    assert (line.decisions.both_pass, line.decisions.only_a_passes) == (1, 2)


def test_toxicity_counts_once_a_row_and_a_toxic_query_fails() -> None:
    def of(row: int, bot: str, toxicity: float) -> CaseResult:
        return replace(plain_result(row, bot), toxicity=Score.scored(TOXICITY, toxicity))

    values = [(0.9, 0.9), (0.1, 0.6), (0.0, 0.0)]
    pairs = [(of(row, bot, a), of(row, bot, b)) for row, (a, b) in enumerate(values, 2) for bot in BOTS]
    comparison = compared(pairs, facts_of(BOTS, 3))
    line = measure(comparison, TOXICITY)
    assert line.count == 3
    assert line.decisions is not None
    assert (line.decisions.both_fail, line.decisions.only_a_passes, line.decisions.both_pass) == (1, 1, 1)
    assert [(each.row, each.bot) for each in comparison.disagreements] == [(3, "")]
    assert measure(comparison, "rqs").count == 6


# --- nothing to say ------------------------------------------------------------------------------------------


def test_constant_scores_have_no_correlation_and_it_is_said() -> None:
    comparison = of_values([(0.5, value / 10) for value in range(10)])
    line = measure(comparison)
    assert line.correlation is None
    assert line.mean_absolute_error == 0.25
    text = "\n".join(summary_lines(comparison, runs()))
    assert "Spearman is undefined for RQS, Faithfulness: a judge gives every case the same score." in text


@pytest.mark.parametrize(
    ("values", "shown", "is_told"),
    [([(0.754, 0.695)] * 6, "0.75    0.70  −0.06", True), ([(0.75, 0.70)] * 6, "0.75    0.70  −0.05", False)],
)
def test_a_difference_that_is_not_that_of_the_means_shown_is_explained(
    values: list[tuple[float, float]], shown: str, is_told: bool
) -> None:
    comparison = of_values(values)
    assert any(shown in line for line in table_lines(comparison))
    told = "Differences of means are computed before rounding." in summary_lines(comparison, runs())
    assert told is is_told


def test_equal_scores_have_no_interval_of_their_difference() -> None:
    line = measure(of_values([(value / 10, value / 10) for value in range(10)]))
    assert (line.difference, line.interval) == (0.0, None)
    assert line.correlation is not None
    assert line.correlation.value == 1.0


def test_one_row_has_numbers_and_no_intervals() -> None:
    comparison = of_values([(1.0, 0.4)], [0.9])
    line = measure(comparison)
    assert (line.count, line.interval, line.correlation) == (1, None, None)
    assert comparison.human[0].error_interval is None
    text = "\n".join(summary_lines(comparison, runs()))
    assert "Fewer than 5 rows are too few for a conclusion; there are no intervals." in text
    assert "no interval, so no conclusion (1 case)" in text


@pytest.mark.parametrize("values", [[(None, 0.5), (0.5, None)], [(None, None)] * 3, []])
def test_judges_without_a_common_case_are_not_compared(
    values: list[tuple[float | None, float | None]],
) -> None:
    comparison = of_values(values)
    line = measure(comparison)
    assert (line.count, line.a.mean, line.difference, line.mean_absolute_error) == (0, None, None, None)
    assert comparison.overall.kappa.raw is None
    assert headline(comparison, *runs()).startswith(
        "A (big) and B (small) have no case in common that both scored completely"
    )
    assert "–" in table_lines(comparison)[1]
    assert ranking_words(comparison) == "Ranking: there is only one bot."


# --- bots ----------------------------------------------------------------------------------------------------


def test_the_ranking_uses_the_rows_that_both_judges_scored_for_every_bot() -> None:
    """By A alone over all its rows, B2 would lead: A failed on nothing, and B on the row that decides it."""
    values = {"A1": [(0.6, 0.5), (0.6, 0.5), (0.0, None)], "B2": [(0.5, 0.6), (0.5, 0.6), (1.0, 1.0)]}
    pairs = [(judged(row + 2, *values[bot][row][:1], bot), judged(row + 2, values[bot][row][1], bot))
             for row in range(3) for bot in BOTS]  # fmt: skip
    comparison = compared(pairs)
    assert [(line.bot, line.a_rank, line.b_rank, line.rows) for line in comparison.ranking] == [
        ("A1", 1, 2, 2),
        ("B2", 2, 1, 2),
    ]
    assert ranking_words(comparison) == (
        "Ranking: it differs over 2 rows (rank by A → by B): A1 1 → 2, B2 2 → 1."
    )
    assert comparison.verdicts[0].startswith(
        "No clear winner yet: A1 is ahead of B2. RQS 0.60 vs 0.50: lead 0.10"
    )
    assert comparison.verdicts[1].startswith(
        "No clear winner yet: B2 is ahead of A1. RQS 0.60 vs 0.50: lead 0.10"
    )


def test_a_bot_that_one_judge_never_scored_is_not_ranked() -> None:
    pairs = [(judged(row, 0.5, bot), judged(row, None if bot == "B2" else 0.5, bot))
             for row in range(2, 5) for bot in BOTS]  # fmt: skip
    comparison = compared(pairs)
    assert [(line.bot, line.a_rank, line.b_rank) for line in comparison.ranking] == [
        ("A1", 1, 1),
        ("B2", None, None),
    ]
    assert ranking_words(comparison) == "Ranking: fewer than two bots can be ranked by both judges."


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ([0.5, 0.5], "The other judge has no RQS for 2 cases that this one scored."),
        ([0.5, None], "The other judge has no RQS for 1 case that this one scored."),
        ([None, None], "Not one of 2 cases could be judged (refused). "),
    ],
)
def test_a_judge_that_has_scored_is_not_told_that_nothing_applies_where_the_other_one_failed(
    own: Sequence[float | None], why: str
) -> None:
    failing, scoring = of_values([(None, value) for value in own]).verdicts
    assert failing.startswith("No bot can be ranked. Not one of 2 cases could be judged (refused). ")
    assert scoring.startswith(f"No bot can be ranked. {why}")


# --- people --------------------------------------------------------------------------------------------------


def test_each_judge_against_the_labels_of_the_cases_that_both_scored() -> None:
    from sklearn.metrics import cohen_kappa_score, mean_absolute_error

    pairs = random_pairs(60, seed=11)
    cases = [
        (a.value(METRIC), b.value(METRIC), a.case.human[METRIC])
        for a, b in pairs
        if METRIC in a.case.human and a.value(METRIC) is not None and b.value(METRIC) is not None
    ]
    ours, theirs, human = zip(*cases, strict=True)
    line = next(line for line in compared(pairs).human if line.measure == METRIC)
    assert line.count == len(cases)
    assert line.a_error == pytest.approx(mean_absolute_error(human, ours))
    assert line.b_error == pytest.approx(mean_absolute_error(human, theirs))
    for kappa, values in ((line.a_kappa, ours), (line.b_kappa, theirs)):
        expected = cohen_kappa_score(bands(values), bands(human), weights="quadratic")
        assert kappa.kappa == pytest.approx(expected)
    assert line.error_interval is not None
    assert 0 < line.error_interval.low < line.error_difference < line.error_interval.high
    assert line.kappa_interval is not None
    assert line.kappa_gain is not None
    assert line.kappa_interval.low < line.kappa_gain < line.kappa_interval.high < 0


@pytest.mark.parametrize(("rows", "has_interval"), [(4, False), (5, True)])
def test_a_difference_of_kappas_has_an_interval_from_five_rows_on(rows: int, has_interval: bool) -> None:
    values = [(n % 2, n % 3 / 2) for n in range(rows)]
    line = next(each for each in of_values(values, [n % 2 for n in range(rows)]).human)
    assert line.kappa_gain is not None
    assert (line.kappa_interval is not None) is has_interval


def test_the_interval_of_a_difference_of_kappas_is_that_of_a_paired_bootstrap() -> None:
    from sklearn.metrics import cohen_kappa_score

    chance = random.Random(5)
    human = [chance.random() < 0.5 for _ in range(80)]
    one, other = ([label != (chance.random() < error) for label in human] for error in (0.1, 0.3))

    def kappa(rater: Any, label: Any, axis: int) -> Any:
        equal, passes, labels = ((each).mean(axis=axis) for each in (rater == label, rater, label))
        chance = passes * labels + (1 - passes) * (1 - labels)
        return (equal - chance) / (1 - chance)

    def gain(index: Any, axis: int = -1) -> Any:
        first, second, label = (np.array(each)[np.asarray(index, dtype=int)] for each in (one, other, human))
        return kappa(second, label, axis) - kappa(first, label, axis)

    assert gain(range(80)) == pytest.approx(cohen_kappa_score(other, human) - cohen_kappa_score(one, human))
    found = kappa_difference(one, other, human, range(80), categories=(False, True))
    assert found is not None
    expected = bootstrap(
        (np.arange(80),), gain, n_resamples=9999, method="percentile", random_state=1
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.05)


def test_a_difference_of_kappas_without_an_interval() -> None:
    assert kappa_difference([1, 0], [1, 0], [1, 0], [1, 2], categories=(0, 1)) is None, "they never differ"
    assert kappa_difference([1, 0], [0, 1], [1, 0], [1, 1], categories=(0, 1)) is None, "one row"
    assert kappa_difference([1, 1], [1, 1], [1, 1], [1, 2], categories=(0, 1)) is None, "undefined"
    assert kappa_difference([], [], [], [], categories=(0, 1)) is None


def test_the_label_of_a_query_may_be_with_any_of_its_cases() -> None:
    def of(bot: str, value: float) -> CaseResult:
        human = {TOXICITY: 0.5} if bot == "B2" else {}
        return replace(plain_result(2, bot, human=human), toxicity=Score.scored(TOXICITY, value))

    comparison = compared([(of(bot, 0.6), of(bot, 0.8)) for bot in BOTS], facts_of(BOTS, 1))
    (line,) = comparison.human
    assert (line.count, line.a_error, line.b_error) == (1, pytest.approx(0.1), pytest.approx(0.3))


# --- words ---------------------------------------------------------------------------------------------------


def runs(a: float | None = 0.2, b: float | None = 0.05, **of_b: Any) -> tuple[JudgeRun, JudgeRun]:
    common = facts(rows=50, currency="USD")
    return (
        JudgeRun("A", "big", common, cost=a),
        JudgeRun("B", "small", replace(common, **of_b), cost=b),
    )


def test_the_sentence() -> None:
    from sklearn.metrics import cohen_kappa_score

    values = [(1.0, 1.0)] * 60 + [(0.0, 0.0)] * 34 + [(1.0, 0.0)] * 3 + [(0.0, 1.0)] * 3
    comparison = of_values(values)
    kappa = cohen_kappa_score(*zip(*values, strict=True))
    assert headline(comparison, *runs()) == (
        f"B (small) agrees with A (big) on 94% of pass/fail decisions (kappa {kappa:.2f}, 100 cases); "
        "B costs 1.00 USD instead of 4.00 USD per 1,000 rows."
    )
    assert headline(comparison, *runs(b=None)).endswith("(kappa 0.87, 100 cases).")
    unknown = "The cost of B is unknown; set [prices] input and output."
    assert unknown in summary_lines(comparison, runs(b=None))
    assert unknown not in summary_lines(comparison, runs())
    assert headline(comparison, *runs(partial="stopped")).endswith("(kappa 0.87, 100 cases).")
    assert "B costs 1.00 EUR instead of 4.00 USD" in headline(comparison, *runs(currency="EUR"))


def test_what_is_known_of_each_judge() -> None:
    values = [(1.0, 1.0)] * 6 + [(0.0, 0.0)] * 3 + [(1.0, 0.0)] * 2 + [(0.0, 1.0)] + [(None, 1.0)] * 4
    lines = judge_facts(of_values(values), runs())
    told = {line.what: (line.a, line.b) for line in lines}
    assert told["Cases with an RQS"] == (12, 16)
    assert told["Cases that pass, of 12"] == (8, 7)
    assert told["Failed scores by code"] == ("refused 4", "none")


@pytest.mark.parametrize(("equal", "shown"), [(94, "94%"), (93, "93%"), (100, "100%")])
def test_the_share_hides_no_disagreement(equal: int, shown: str) -> None:
    values = [(1.0, 1.0)] * (equal - 1) + [(0.0, 0.0)] + [(1.0, 0.0)] * (100 - equal)
    assert f" on {shown} of pass/fail" in headline(of_values(values), *runs())


def test_a_share_of_almost_all_is_not_all() -> None:
    decisions = Decisions.of([True] * 4999 + [False], [True] * 5000)
    comparison = replace(of_values([(1.0, 1.0)]), overall=decisions)
    assert " on 99.9800% of pass/fail decisions (kappa 0.00, 5,000 cases)" in headline(comparison, *runs())


def test_money() -> None:
    assert [money(each) for each in (None, 0.0, 0.00123, 0.1, 1234.5)] == [
        "unknown",
        "0.00",
        "0.0012",
        "0.10",
        "1,234.50",
    ]


def test_no_number_is_nan() -> None:
    for line in of_values([(None, 0.5), (0.1, 0.9), (0.2, None)]).measures:
        numbers = (line.a.mean, line.b.mean, line.difference, line.a.own.value, line.a.own.stdev)
        assert not any(number is not None and math.isnan(number) for number in numbers)


def test_pairs_are_compared_by_what_each_judge_prefers_and_those_that_failed_are_counted() -> None:
    one, half, other = (PairVerdict("B", Outcome.SCORED, value) for value in (1.0, 0.5, -1.0))
    tie = PairVerdict("B", Outcome.SCORED, 0.0, ("this", "other"))
    failed, elsewhere = PairVerdict("B", Outcome.FAILED), PairVerdict("C", Outcome.SCORED, 1.0)
    control = PairVerdict("A1", Outcome.SCORED, 1.0)
    said = [
        (one, one),
        (half, other),
        (failed, one),
        (one, failed),
        (tie, one),
        (elsewhere, one),
        (control, control),
    ]
    found = compared(
        [
            (replace(judged(row, 0.5), pairs=(a,)), replace(judged(row, 0.5), pairs=(b,)))
            for row, (a, b) in enumerate(said, 2)
        ]
    ).preferences
    assert found is not None
    assert (found.failed, found.flips) == (2, (1, 0))
    none = {"first bot": 0, "tie": 0, "other bot": 0}
    assert found.counts == {
        "first bot": {**none, "first bot": 1},
        "tie": {**none, "first bot": 1, "other bot": 1},
        "other bot": none,
    }
    assert compared([(judged(2, 0.5), judged(2, 0.5))]).preferences is None


def test_without_weights_rqs_is_no_measure() -> None:
    pairs = [(judged(row, 0.5), judged(row, 0.6)) for row in range(2, 8)]
    without = replace(facts(), weights={})
    kinds = (facts(), facts()), (facts(), without), (without, without)
    found = [compared(pairs, *each) for each in kinds]
    assert ["rqs" in [line.measure for line in each.measures] for each in found] == [True, True, False]
