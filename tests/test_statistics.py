"""Intervals, paired comparison and agreement, held against scipy, scikit-learn and brute force."""

import itertools
import math
import tracemalloc
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from rag_eval.results.agreement import CohenKappa, cohen_kappa, spearman
from rag_eval.results.comparison import (
    MANY_QUERIES,
    Comparison,
    Rival,
    Verdict,
    bootstrap_t_pvalues,
    bots_behind,
    compare_with_best,
    holm,
    is_feigned_by_skewness,
    paired_permutation_pvalue,
    skewed_hurdle,
)
from rag_eval.results.intervals import (
    Interval,
    bca_levels,
    bootstrap_mean_interval,
    chunks,
    pooled,
    quantiles,
    reported_interval,
    reported_intervals,
    student_quantile,
    wilson_interval,
)
from rag_eval.results.stratified import LabelledSample, stratified_mean

QUARTERS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def skewed_scores(rows: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).beta(5, 1, rows)


def equal_bots(rng: np.random.Generator, rows: int, bots: int) -> np.ndarray:
    return rng.choice([0, 0.25, 0.5, 0.75, 1], p=[0.1, 0.05, 0.1, 0.25, 0.5], size=(rows, bots))


def compare(scores, bots="ABCDEFGHIJKL", **options) -> Comparison:
    table = np.asarray(scores, dtype=float)
    comparison = compare_with_best(table, list(bots[: table.shape[1]]), **options)
    assert comparison is not None
    return comparison


class TestMeanInterval:
    @pytest.mark.parametrize(
        "values",
        [skewed_scores(100), skewed_scores(400), np.repeat([0.0, 1.0], [40, 360])],
        ids=["100 rows", "400 rows", "pass/fail"],
    )
    def test_agrees_with_scipys_bca(self, values):
        ours = bootstrap_mean_interval(values)
        reference = stats.bootstrap((values,), np.mean, method="BCa", rng=np.random.default_rng(2))
        low, high = reference.confidence_interval
        assert ours.low == pytest.approx(low, abs=0.05 * (high - low))
        assert ours.high == pytest.approx(high, abs=0.05 * (high - low))

    def test_is_about_as_wide_as_a_t_interval_for_few_rows(self):
        values = [0.2, 0.3, 0.5, 0.5, 0.6, 0.7, 0.8]
        low, high = stats.t.interval(0.95, 6, fmean(values), stats.sem(values))
        ours = bootstrap_mean_interval(values)
        assert ours.high - ours.low == pytest.approx(high - low, rel=0.1)

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([], None),
            ([0.5], None),
            ([0.1, 0.1, 0.1], Interval(0.1, 0.1)),
            ([1.0] * 50, Interval(1.0, 1.0)),
            ([0.2, 0.6], Interval(0.2, 0.6)),
        ],
    )
    def test_degenerate_samples(self, values, expected):
        assert bootstrap_mean_interval(values) == expected

    @settings(deadline=None, max_examples=50)
    @example([0.0, 1e-121])  # whose squares and cubes are too small for a float
    @given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
    def test_never_leaves_the_range_of_the_values(self, values):
        interval = bootstrap_mean_interval(values, resamples=200)
        assert min(values) <= interval.low <= interval.high <= max(values)

    def test_is_symmetric_for_symmetric_scores_of_which_many_resamples_tie_with_the_mean(self):
        interval = bootstrap_mean_interval([0.0, 1.0] * 25)
        assert interval.low + interval.high == pytest.approx(1, abs=0.025)  # resampled means are 0.02 apart

    def test_is_repeatable_and_hardly_depends_on_the_seed(self):
        values = skewed_scores(60)
        first = bootstrap_mean_interval(values, seed=1)
        assert first == bootstrap_mean_interval(values, seed=1)
        assert first != bootstrap_mean_interval(values, seed=2)
        assert first.low == pytest.approx(bootstrap_mean_interval(values, seed=2).low, abs=0.003)

    def test_less_confidence_is_narrower(self):
        values = skewed_scores(60)
        wide, narrow = bootstrap_mean_interval(values), bootstrap_mean_interval(values, confidence=0.8)
        assert wide.low < narrow.low < narrow.high < wide.high

    @pytest.mark.parametrize("arrange", [np.sort, lambda values: values], ids=["sorted", "as drawn"])
    def test_pooling_many_rows_gives_the_interval_of_large_samples_in_any_order(self, arrange):
        values = skewed_scores(50_001)
        ours = bootstrap_mean_interval(arrange(values), resamples=2_000)
        low, high = stats.norm.interval(0.95, values.mean(), stats.sem(values))
        assert ours.low == pytest.approx(low, abs=0.1 * (high - low))
        assert ours.high == pytest.approx(high, abs=0.1 * (high - low))

    @pytest.mark.slow
    @pytest.mark.parametrize("rows", [1, 60, 2_500])
    @pytest.mark.parametrize("per_cluster", [None, 3])
    def test_of_several_columns_each_is_that_of_the_column_alone(self, rows, per_cluster):
        columns = [skewed_scores(rows, seed).tolist() for seed in range(3)]
        clusters = per_cluster and [row // per_cluster for row in range(rows)]
        alone = [reported_interval(column, 0.9, clusters=clusters) for column in columns]
        assert reported_intervals(columns, 0.9, clusters=clusters) == alone
        assert alone == [None] * 3 or len({*alone}) == 3
        assert reported_intervals([], clusters=None) == []

    def test_holds_the_truth_about_as_often_as_it_says(self):
        rng = np.random.default_rng(3)
        intervals = [bootstrap_mean_interval(rng.beta(8, 2, 15), resamples=300) for _ in range(400)]
        assert 0.92 <= fmean(interval.low <= 0.8 <= interval.high for interval in intervals) <= 0.98

    @pytest.mark.parametrize(
        ("values", "low", "high"),
        [
            ([0.2, 0.5, 0.9], 0.2, 0.9),
            ([0.2, 0.5, 0.6, 0.9], 0.2, 0.9),
            ([0.1, 0.4, 0.45, 0.7, 0.95], 0.16, 0.9),
            ([0.1, 0.4, 0.45, 0.5, 0.7, 0.95], 0.25, 0.828277824),
            ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], 1 / 6, 1.0),
        ],
    )
    def test_of_few_rows_is_pinned(self, values, low, high):
        interval = bootstrap_mean_interval(values)
        assert (interval.low, interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("level", [0.1, 0.9, 0.975])
@pytest.mark.parametrize(
    ("freedom", "tolerance"),
    [(1, 1e-12), (2, 1e-12), (3, 0.004), (4, 9e-4), (5, 3e-4), (10, 8e-6), (30, 4e-8)],
)
def test_students_quantile_is_that_of_scipy(level, freedom, tolerance):
    assert student_quantile(level, freedom) == pytest.approx(stats.t.ppf(level, freedom), abs=tolerance)


def test_quantiles_are_those_of_numpy_to_the_last_bit():
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 17, 500):
        values = rng.normal(size=size).round(2)
        levels = [0.0, 1.0, 0.5, 1e-9, *rng.random(20)]
        assert quantiles(values, levels).tolist() == np.quantile(values, levels).tolist()


def test_many_rows_are_pooled_as_if_in_one_step():
    rows = np.random.default_rng(6).normal(size=(7_001, 3))
    order = np.random.default_rng(7).permutation(7_001)
    starts = np.linspace(0, 7_001, 2_000, endpoint=False).astype(int)
    in_one_step = np.add.reduceat(rows[order], starts, axis=0)
    assert pooled(rows, np.random.default_rng(7)).tolist() == in_one_step.tolist()


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(3, 3.178616995054061), (4, 2.775582224236797), (5, 2.570308227150842)]
)
def test_students_quantile_for_few_rows_has_every_term_of_its_series(freedom, quantile):
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, rel=1e-12)


def test_rows_beyond_2000_are_pooled_without_losing_or_doubling_one():
    rows = np.arange(4_001.0)[:, None]
    blocks = pooled(rows, np.random.default_rng(0))
    assert (len(blocks), blocks.sum()) == (2_000, rows.sum())
    assert pooled(rows[:2_000], np.random.default_rng(0)) is not rows
    assert np.array_equal(pooled(rows[:2_000], np.random.default_rng(0)), rows[:2_000])
    powers = 3.0 ** np.arange(5)  # whose sums tell of what they are made
    many = np.concatenate([powers, np.zeros(2_001)])[:, None]
    assert pooled(many, np.random.default_rng(0)).sum() == powers.sum()


@pytest.mark.parametrize(
    ("total", "width", "sizes"),
    [
        (10, 100_000, [2, 2, 2, 2, 2]),
        (5, 100_000, [2, 2, 1]),
        (3, 10**9, [1, 1, 1]),
        (0, 5, []),
        (7, 10, [7]),
    ],
)
def test_resamples_are_made_in_chunks_that_fit_into_memory(total, width, sizes):
    assert chunks(total, width) == sizes


class TestPairedPermutation:
    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.sampled_from([-0.5, -0.25, -0.1, 0.0, 0.1, 0.3, 0.7]), max_size=8))
    def test_is_the_share_of_all_sign_patterns_when_there_are_few(self, differences):
        observed = abs(math.fsum(differences))
        patterns = list(itertools.product([1, -1], repeat=len(differences)))
        totals = [
            abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True))) for signs in patterns
        ]
        expected = sum(total >= observed - 1e-9 for total in totals) / len(patterns)
        assert paired_permutation_pvalue(differences) == pytest.approx(expected)

    @pytest.mark.parametrize(("rows", "tolerance"), [(12, 1e-12), (40, 0.015)])
    def test_agrees_with_scipy(self, rows, tolerance):
        differences = np.random.default_rng(rows).normal(1.5 / math.sqrt(rows), 1, rows)
        reference = stats.permutation_test(
            (differences,),
            np.mean,
            permutation_type="samples",
            rng=np.random.default_rng(1),
        )
        assert paired_permutation_pvalue(differences) == pytest.approx(reference.pvalue, abs=tolerance)

    def test_pooling_many_rows_agrees_with_a_t_test(self):
        differences = np.random.default_rng(1).exponential(1, 30_000) - 0.99
        expected = stats.ttest_1samp(differences, 0).pvalue
        assert 0.01 < expected < 0.5
        assert paired_permutation_pvalue(differences, permutations=4_000) == pytest.approx(expected, abs=0.03)

    @pytest.mark.parametrize("differences", [[], [0.0], [0.0] * 30, [0.4]])
    def test_is_1_without_anything_to_decide_on(self, differences):
        assert paired_permutation_pvalue(differences) == 1.0

    def test_counts_the_observed_signs_as_a_draw_so_that_it_is_never_0(self):
        assert paired_permutation_pvalue([0.5] * 100, permutations=999) == 1 / 1_000

    def test_rows_without_a_difference_change_nothing(self):
        differences = [0.1, 0.3, -0.2, 0.4, 0.5]
        assert paired_permutation_pvalue([*differences, *[0.0] * 500]) == paired_permutation_pvalue(
            differences
        )


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_the_closure_of_bonferroni(pvalues):
    """The adjusted p-value is the largest Bonferroni p-value of all sets of hypotheses that hold this one."""
    everyone = range(len(pvalues))
    sets = [chosen for size in everyone for chosen in itertools.combinations(everyone, size + 1)]
    expected = [
        min(1.0, max(len(s) * min(pvalues[other] for other in s) for s in sets if index in s))
        for index in everyone
    ]
    assert holm(pvalues) == pytest.approx(expected)


class TestComparison:
    def test_names_the_winner_and_orders_the_others(self):
        comparison = compare([[0.2, 0.9, 0.5], [0.4, 0.7, 0.6]])
        assert comparison.winner == "B"
        assert comparison.winners == ("B",)
        assert [(rival.bot, round(rival.difference, 6)) for rival in comparison.rivals] == [
            ("C", 0.25),
            ("A", 0.5),
        ]
        assert comparison.rows == 2

    def test_two_bots_are_the_paired_permutation_test(self):
        scores = equal_bots(np.random.default_rng(5), 12, 2)
        assert compare(scores).rivals[0].pvalue == paired_permutation_pvalue(scores[:, 0] - scores[:, 1])

    @settings(deadline=None, max_examples=25)
    @given(st.lists(st.tuples(QUARTERS, QUARTERS, QUARTERS, QUARTERS), min_size=1, max_size=7))
    def test_pvalues_are_those_of_a_step_down_over_all_sign_patterns(self, scores):
        comparison = compare(scores, resamples=50)
        expected = step_down_by_brute_force(np.array(scores), "ABCD".index(comparison.winner))
        for rival in comparison.rivals:
            assert rival.pvalue == pytest.approx(expected["ABCD".index(rival.bot)])

    @settings(deadline=None, max_examples=40)
    @given(st.integers(0, 10_000), st.integers(2, 25), st.integers(2, 5), st.floats(0, 0.4))
    def test_interval_and_verdict_never_contradict_each_other(self, seed, rows, bots, step):
        scores = equal_bots(np.random.default_rng(seed), rows, bots) - step * np.arange(bots)
        for rival in compare(scores, resamples=200).rivals:
            is_significant = rival.verdict is Verdict.SIGNIFICANT
            assert is_significant == (rival.interval.low > 0)
            assert not is_significant or rival.pvalue <= 0.05
            assert (rival.more_queries is not None) == (rival.verdict is Verdict.NOT_DECIDED)
            assert rival.interval.low - 1e-9 <= rival.difference <= rival.interval.high + 1e-9

    def test_interval_of_two_bots_is_about_a_t_interval_for_few_rows(self):
        gap = 0.1 + 0.2 * stats.norm.ppf((np.arange(12) + 0.5) / 12)
        interval = compare(np.column_stack([gap, np.zeros(12)])).rivals[0].interval
        low, high = stats.t.interval(0.95, 11, gap.mean(), stats.sem(gap))
        assert interval.high - interval.low == pytest.approx(high - low, rel=0.05)

    def test_a_rival_that_is_less_clear_is_never_decided_before_one_that_is_clearer(self):
        scores = equal_bots(np.random.default_rng(8), 60, 6) - 0.05 * np.arange(6)
        pvalues = [rival.pvalue for rival in sorted(compare(scores).rivals, key=standardised(scores))]
        assert pvalues == sorted(pvalues, reverse=True)

    def test_bots_that_are_clearly_worse_do_not_make_the_test_of_the_runner_up_stricter(self):
        rng = np.random.default_rng(9)
        pair = rng.normal([0.85, 0.8], 0.1, (40, 2))
        hopeless = rng.normal(0.1, 0.1, (40, 8))
        alone, among_many = compare(pair).rivals[0], compare(np.hstack([pair, hopeless])).rivals[0]
        assert among_many.bot == alone.bot
        assert among_many.pvalue == pytest.approx(alone.pvalue, abs=0.01)

    def test_the_clearest_of_many_differences_is_tested_more_strictly_than_alone(self):
        scores = np.random.default_rng(9).normal(0.5, 0.1, (40, 8))
        comparison = compare(scores)
        last = comparison.rivals[-1]
        gap = scores[:, "ABCDEFGH".index(comparison.winner)] - scores[:, "ABCDEFGH".index(last.bot)]
        assert last.pvalue > 2 * paired_permutation_pvalue(gap)

    def test_does_not_depend_on_the_order_of_the_bots(self):
        scores = equal_bots(np.random.default_rng(4), 30, 4) - 0.1 * np.arange(4)
        assert compare(scores, "ABCD") == compare(scores[:, ::-1], "DCBA")

    @pytest.mark.slow
    def test_equal_bots_are_rarely_told_apart(self):
        """Five equal bots, 300 tables: at most 5 % may name any difference significant."""
        rng = np.random.default_rng(6)
        wrong = 0
        for _ in range(300):
            rivals = compare(equal_bots(rng, 25, 5), resamples=199).rivals
            wrong += any(rival.verdict is Verdict.SIGNIFICANT for rival in rivals)
        assert 3 <= wrong <= 24  # 15 expected, the standard deviation is 3.8

    def test_means_equal_to_4_decimals_share_the_victory(self):
        comparison = compare([[0.5, 0.50001, 0.2], [0.7, 0.70002, 0.1], [0.6, 0.6, 0.3]])
        assert comparison.winner == "B"
        assert comparison.winners == ("A", "B")
        tie = comparison.rivals[0]
        assert (tie.bot, tie.verdict, tie.more_queries) == ("A", Verdict.TIE, None)
        assert tie.interval.low <= 0 <= tie.interval.high

    def test_identical_bots(self):
        comparison = compare([[0.5, 0.5], [0.9, 0.9]])
        assert (comparison.winner, comparison.winners) == ("A", ("A", "B"))
        assert comparison.rivals == (Rival("B", 0.0, Interval(0.0, 0.0), 1.0, Verdict.TIE, None),)

    def test_one_row_decides_nothing(self):
        rival = compare([[0.9, 0.1]]).rivals[0]
        assert rival == Rival("B", pytest.approx(0.8), None, 1.0, Verdict.NOT_DECIDED, None)

    def test_one_bot_has_no_rival(self):
        assert compare([[0.9], [0.1]]).rivals == ()

    @pytest.mark.parametrize(("scores", "bots"), [([], ["A", "B"]), ([[], []], [])], ids=["rows", "bots"])
    def test_nothing_to_compare(self, scores, bots):
        assert compare_with_best(scores, bots) is None

    @pytest.mark.parametrize("hole", [math.nan, math.inf])
    def test_a_gap_in_the_table_is_refused(self, hole):
        with pytest.raises(ValueError, match="finite"):
            compare([[0.5, hole], [0.1, 0.2]])

    def test_a_table_of_another_width_is_refused(self):
        with pytest.raises(ValueError, match="2 bots"):
            compare_with_best([[0.5, 0.1, 0.3, 0.4]], ["A", "B"])

    def test_a_tie_is_one_of_means_with_four_equal_decimals(self):
        assert compare([[0.50004, 0.5], [0.50004, 0.5]]).winners == ("A", "B")
        assert compare([[0.50006, 0.5], [0.50006, 0.5]]).winners == ("A",)
        assert compare([[0.5004, 0.5], [0.5004, 0.5]]).rivals[0].verdict is Verdict.NOT_DECIDED

    def test_memory_does_not_grow_with_the_resamples_of_many_rows(self):
        scores = np.random.default_rng(0).random((100_000, 2))
        tracemalloc.start()
        compare(scores, resamples=300)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6


def lead(gaps, **options) -> Rival:
    """Of a bot that is ahead by these gaps, row by row."""
    return compare([[0.5 + gap, 0.5] for gap in gaps], **options).rivals[0]


SKEWED = "the differences are skewed"


class TestSkewedDifferences:
    @pytest.mark.parametrize(
        ("gaps", "pvalue", "doubt", "more"),
        [
            ([0.3] * 8, 2 / 256, "", None),
            ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 2 / 256, "", None),
            # Mean and spread go together: by the bootstrap-t, so large a t is no rarity.
            ([0.05, 0.05, 0.05, 0.1, 0.1, 0.05, 0.3, 0.05], 2 / 256, SKEWED, 4),
            # One row against the lead: 12 are too few to know how many such rows there are.
            ([0.05, 0.2, 0.1, 0.3, 0.2, 0.2, -0.2, 0.05, 0.1, 0.2, 0.2, 0.05], 58 / 4096, SKEWED, 6),
        ],
        ids=["all equal", "symmetric", "for the winner", "against the winner"],
    )  # fmt: skip
    def test_are_claimed_only_where_every_check_agrees(self, gaps, pvalue, doubt, more):
        rival = lead(gaps)
        verdict = Verdict.NOT_DECIDED if doubt else Verdict.SIGNIFICANT
        assert (rival.pvalue, rival.verdict, rival.doubt, rival.more_queries) == (
            pvalue,
            verdict,
            doubt,
            more,
        )
        assert (rival.interval.low > 0) == (not doubt)

    @pytest.mark.parametrize(
        ("gap", "reach", "hurdle"),
        [
            ([0.1, 0.2, 0.3], 2.0, 2.0),
            ([0.0, 0.0, 0.3], 2.0, 2.0),  # skewed for the winner
            ([0.3, 0.3, 0.0], 2.0, 2 + 2 * 3**0.5 * 9 / (6 * 3**0.5)),  # a skewness of −√3
            ([0.3, 0.3, 0.0], 1.0, 1 + 2 * 3**0.5 * 3 / (6 * 3**0.5)),
            ([0.3, 0.3, 0.3], 2.0, 2.0),
            ([0.3, 0.0], 2.0, 2.0),
        ],
    )
    def test_the_hurdle_is_raised_by_skewness_against_the_winner(self, gap, reach, hurdle):
        assert skewed_hurdle(np.array(gap), reach) == pytest.approx(hurdle)

    def test_a_lead_must_reach_the_hurdle(self):
        gap = np.array([0.3, 0.3, 0.0])  # t is 2, and the hurdle of 0.5 is 0.5 + 1.5/3
        assert stats.ttest_1samp(gap, 0).statistic == pytest.approx(2)
        hurdle = 2 / 3 + (1 + 8 / 9) / 3
        assert skewed_hurdle(gap, 2 / 3) == pytest.approx(hurdle)
        assert not is_feigned_by_skewness(gap, 2 / 3)
        assert is_feigned_by_skewness(gap, 1.1)

    def test_bootstrap_t_is_the_share_of_all_samples(self):
        """Of 4 rows there are 256 samples; the two columns are compared with each other as well."""
        gaps = np.array([[0.0, 0.2, 0.5], [0.0, 0.1, 0.9], [0.0, 0.3, 0.6], [0.0, -0.1, 0.8]])
        found = bootstrap_t_pvalues(gaps, [1, 2], np.random.default_rng(0))
        assert found == pytest.approx(bootstrap_t_by_brute_force(gaps, [1, 2]), abs=0.03)
        swapped = bootstrap_t_pvalues(gaps, [2, 1], np.random.default_rng(0))
        assert swapped == pytest.approx(bootstrap_t_by_brute_force(gaps, [2, 1]), abs=0.03)

    def test_a_resampled_t_that_is_equal_counts_as_so_large(self):
        """Of four rows drawn with replacement: t is 2 as in the table for none or three of the last, 6 for four."""
        gaps = np.array([[0.0, 0.75]] * 3 + [[0.0, -0.25]])
        expected = 0.75**4 + 4 * 0.25**3 * 0.75 + 0.25**4
        assert bootstrap_t_pvalues(gaps, [1], np.random.default_rng(0))[1] == pytest.approx(
            expected, abs=0.02
        )

    def test_a_bot_that_is_behind_is_never_found_to_lead(self):
        gaps = np.array([[0.0, -0.2], [0.0, -0.2], [0.0, -0.2]])
        assert bootstrap_t_pvalues(gaps, [1], np.random.default_rng(0)) == {1: 1.0}

    @pytest.mark.slow
    def test_equal_bots_of_opposite_skew_are_rarely_told_apart(self):
        """Twelve bots, 20 rows, 200 tables: 5 % are allowed; by flips and interval alone it is 10 %."""
        rng = np.random.default_rng(2)
        scale = np.linspace(0.05, 0.4, 12) * np.where(np.arange(12) % 2, 1, -1)
        wrong = 0
        for _ in range(200):
            rivals = compare((rng.exponential(1, (20, 12)) - 1) * scale, resamples=199).rivals
            wrong += any(rival.verdict is Verdict.SIGNIFICANT for rival in rivals)
        assert wrong <= 10

    def test_a_clear_lead_stays_significant_whatever_the_skew(self):
        assert lead([0.3] * 11 + [0.1]).verdict is Verdict.SIGNIFICANT
        assert lead([0.3] * 19 + [0.9]).verdict is Verdict.SIGNIFICANT


def bootstrap_t_by_brute_force(gaps, order):
    """From every sample of the rows, one set of bots in question at a time."""
    samples = [list(rows) for rows in itertools.product(range(len(gaps)), repeat=len(gaps))]

    def t(sample, one, other):
        gap = gaps[:, other] - gaps[:, one]
        drawn = gap[sample]
        shift, error = drawn.mean() - gap.mean(), drawn.std(ddof=1) / math.sqrt(len(gap))
        least = gap.std() / len(gap) / math.sqrt(1 - 1 / len(gap))  # of one n-th of the spread of the rows
        return abs(shift) / max(error, least) if least else 0.0

    running, pvalues = 0.0, {}
    for place in reversed(range(len(order))):
        pairs = list(itertools.combinations([0, *order[: place + 1]], 2))
        own = stats.ttest_1samp(gaps[:, order[place]], 0).statistic
        running = max(
            running, fmean(max(t(sample, *pair) for pair in pairs) >= own - 1e-9 for sample in samples)
        )
        pvalues[order[place]] = running
    return pvalues


class TestBotsBehind:
    def test_is_what_the_comparison_calls_significant(self):
        scores = equal_bots(np.random.default_rng(9), 40, 6) - 0.08 * np.arange(6)
        comparison = compare(scores)
        claimed = {rival.bot for rival in comparison.rivals if rival.verdict is Verdict.SIGNIFICANT}
        assert 0 < len(claimed) < 5
        assert bots_behind(comparison.winner, scores, list("ABCDEF")) == claimed

    def test_a_bot_that_is_ahead_is_not_behind(self):
        scores = [[0.5, 0.9, 0.1], [0.6, 0.8, 0.2]] * 6
        assert bots_behind("A", scores, list("ABC")) == {"C"}
        assert bots_behind("B", scores, list("ABC")) == {"A", "C"}

    def test_a_gap_in_the_table_is_refused(self):
        with pytest.raises(ValueError, match="finite"):
            bots_behind("A", [[0.5, math.nan]], ["A", "B"])


def standardised(scores):
    """Sort key: how far a rival is behind the first bot, in standard errors."""
    return lambda rival: abs(stats.ttest_rel(scores[:, 0], scores[:, "ABCDEFGH".index(rival.bot)]).statistic)


def step_down_by_brute_force(scores, winner):
    """Adjusted p-values by bot, from every sign pattern of the rows, one set of bots in question at a time."""
    patterns = [np.array(signs) for signs in itertools.product([1, -1], repeat=len(scores))]

    def statistic(signs, one, other):
        gap = scores[:, one] - scores[:, other]
        norm = math.sqrt((gap**2).sum())
        return abs((signs * gap).sum()) / norm if norm else 0.0

    own = {bot: statistic(1, winner, bot) for bot in range(scores.shape[1]) if bot != winner}
    running, adjusted = 0.0, {}
    for bot in sorted(own, key=own.get, reverse=True):
        in_question = [winner, *[other for other in own if own[other] <= own[bot]]]
        pairs = list(itertools.combinations(in_question, 2))
        largest = [max(statistic(signs, *pair) for pair in pairs) for signs in patterns]
        running = max(running, fmean(value >= own[bot] - 1e-9 for value in largest))
        adjusted[bot] = running
    return adjusted


class TestAdvice:
    @pytest.mark.parametrize(("rows", "effect"), [(20, 0.4), (40, 0.25), (60, 0.24)])
    def test_is_the_sample_size_of_a_paired_t_test_with_a_power_of_80_percent(self, rows, effect):
        gap = np.random.default_rng(1).normal(0, 1, rows)
        gap = (gap - gap.mean()) / gap.std(ddof=1) + effect
        more = compare(np.column_stack([gap, np.zeros(rows)])).rivals[0].more_queries
        assert power_of_paired_t(rows + more, effect) == pytest.approx(0.8, abs=0.01)

    @pytest.mark.parametrize(
        ("gaps", "expected"),
        [
            ([0.3, 0.3, 0.3], 3),  # six equal signs are the fewest that can be significant
            ([0.3, 0.3, 0.0, 0.0], 8),  # the same, when only every other row differs
            ([0.5, -0.4999, 0.001, 0.0], MANY_QUERIES),
            ([0.9, 0.1], 4),
        ],
    )
    def test_extremes(self, gaps, expected):
        assert compare([[0.5 + gap, 0.5] for gap in gaps]).rivals[0].more_queries == expected


def power_of_paired_t(rows, effect):
    critical = stats.t.ppf(0.975, rows - 1)
    return stats.nct.sf(critical, rows - 1, effect * math.sqrt(rows))


def rival(verdict=Verdict.NOT_DECIDED, difference=0.04, interval=(-0.01, 0.09), more=None, bot="Claude"):
    return Rival(bot, difference, Interval(*interval) if interval else None, 0.5, verdict, more)


def doubted(more=None):
    return replace(
        rival(Verdict.SIGNIFICANT, interval=(0.01, 0.09), more=3).doubted("why"), more_queries=more
    )


class TestDoubts:
    def test_a_doubted_lead_claims_nothing(self):
        expected = rival(Verdict.NOT_DECIDED, interval=(0.0, 0.09))
        assert rival(Verdict.SIGNIFICANT, interval=(0.01, 0.09), more=3).doubted("why") == replace(
            expected, doubt="why"
        )
        assert rival(interval=None).doubted("why").interval is None


class TestWilsonInterval:
    @pytest.mark.parametrize(("passed", "count"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (431, 1000)])
    def test_agrees_with_scipy(self, passed, count):
        theirs = stats.binomtest(passed, count).proportion_ci(0.95, method="wilson")
        found = wilson_interval(passed, count)
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)

    def test_of_nothing_is_nothing(self):
        assert wilson_interval(0, 0) is None


class TestKappa:
    @pytest.mark.parametrize("weights", [None, "quadratic"])
    @pytest.mark.parametrize("seed", range(5))
    def test_agrees_with_scikit_learn(self, weights, seed):
        from sklearn.metrics import cohen_kappa_score

        first = np.random.default_rng(seed).integers(0, 5, 40)
        second = np.clip(first + np.random.default_rng(seed + 99).integers(-1, 2, 40), 0, 4)
        expected = cohen_kappa_score(first, second, weights=weights, labels=list(range(5)))
        found = cohen_kappa(first.tolist(), second.tolist(), weights=weights, categories=range(5))
        assert found.kappa == pytest.approx(expected)
        assert found.raw == pytest.approx(np.mean(first == second))
        assert found.interval.low < found.kappa < found.interval.high <= 1

    def test_interval_agrees_with_the_large_sample_error(self):
        """Fleiss, Cohen and Everitt 1969, equation 13."""
        table = np.array([[300, 70], [50, 180]]) / 600
        cells = itertools.product((0, 1), repeat=2)
        first, second = zip(*[cell for cell in cells for _ in range(round(600 * table[cell]))], strict=True)
        agreed, rows, columns = np.trace(table), table.sum(1), table.sum(0)
        chance = rows @ columns
        kappa = (agreed - chance) / (1 - chance)
        on = sum(table[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in (0, 1))
        off = (1 - kappa) ** 2 * sum(table[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1))
        error = math.sqrt(on + off - (kappa - chance * (1 - kappa)) ** 2) / ((1 - chance) * math.sqrt(600))
        found = cohen_kappa(first, second)
        assert found.kappa == pytest.approx(kappa)
        assert found.interval.high - found.interval.low == pytest.approx(2 * 1.96 * error, rel=0.04)

    def test_interval_agrees_with_scipys_bca_for_a_rare_category(self):
        first = np.repeat([0, 0, 1, 1], [12, 4, 6, 178])
        second = np.repeat([0, 1, 0, 1], [12, 4, 6, 178])
        reference = stats.bootstrap(
            (first, second),
            lambda one, other: kappa_of_two_categories(one, other),
            paired=True,
            method="BCa",
            vectorized=False,
            n_resamples=5_000,
            rng=np.random.default_rng(1),
        ).confidence_interval
        found = cohen_kappa(first.tolist(), second.tolist())
        assert found.interval.low == pytest.approx(reference.low, abs=0.015)
        assert found.interval.high == pytest.approx(reference.high, abs=0.015)

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ([], [], CohenKappa(None, None, None, 0)),
            ([1, 1], [1, 1], CohenKappa(None, None, 1.0, 2)),
            ([0, 1], [0, 1], CohenKappa(1.0, None, 1.0, 2)),
        ],
        ids=["nothing", "one category", "no disagreement"],
    )
    def test_undefined(self, first, second, expected):
        assert cohen_kappa(first, second) == expected

    @pytest.mark.parametrize(
        ("first", "second", "kappa", "low", "high"),
        [
            ([0, 0, 1, 1], [0, 1, 1, 1], 0.5, 0.0, 1.0),
            ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0], 1 / 3, -2 / 7, 1.0),
            ([0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1, 1, 0], 7 / 12, 1 / 21, 1.0),
        ],
    )
    def test_interval_of_few_items_is_pinned(self, first, second, kappa, low, high):
        found = cohen_kappa(first, second, confidence=0.8)
        assert (found.kappa, found.interval.low, found.interval.high) == pytest.approx((kappa, low, high))

    def test_opposite_ratings_are_worse_than_chance(self):
        assert cohen_kappa([True, False] * 10, [False, True] * 10).kappa == pytest.approx(-1.0)

    def test_a_single_disagreement_has_an_interval(self):
        found = cohen_kappa(["good", "bad", "bad"], ["good", "good", "bad"])
        assert found.interval.low < found.kappa < found.interval.high

    @pytest.mark.parametrize("weights", [None, "quadratic"])
    @pytest.mark.parametrize(("constant", "varied"), [([1] * 20, [1, 2] * 10), ([2] * 2, [1, 2]), ([3], [1])])
    def test_a_rater_who_always_says_the_same_leaves_no_interval(self, weights, constant, varied):
        """Every resample of such ratings has a kappa of 0, which would read as certainty."""

        from sklearn.metrics import cohen_kappa_score

        for first, second in ((constant, varied), (varied, constant)):
            found = cohen_kappa(first, second, weights=weights, categories=range(5))
            assert (
                found.kappa == cohen_kappa_score(first, second, weights=weights, labels=list(range(5))) == 0
            )
            assert found.interval is None

    def test_order_of_categories_matters_to_quadratic_weights_alone(self):
        first, second = ["low", "mid", "high"] * 5, ["mid", "mid", "low"] * 5
        sensible = cohen_kappa(first, second, weights="quadratic", categories=["low", "mid", "high"])
        assert sensible.kappa != pytest.approx(cohen_kappa(first, second, weights="quadratic").kappa)

    @pytest.mark.parametrize(
        ("first", "second", "message"),
        [
            ([1, 2], [1, 9], "rating 9 is none of the categories"),
            ([8, 2], [9, 1], "rating 8 is none of the categories"),
            ([1, 2], [1], "shorter"),
        ],
    )
    def test_refuses_what_it_cannot_count(self, first, second, message):
        with pytest.raises(ValueError, match=message):
            cohen_kappa(first, second, categories=[1, 2])


def kappa_of_two_categories(first, second):
    chance = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    return ((first == second).mean() - chance) / (1 - chance)


class TestSpearman:
    @pytest.mark.slow
    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.tuples(QUARTERS, QUARTERS), min_size=2, max_size=20))
    def test_agrees_with_scipy(self, pairs):
        first, second = zip(*pairs, strict=True)
        found = spearman(first, second)
        if len(set(first)) == 1 or len(set(second)) == 1:
            assert found is None
        else:
            assert found.value == pytest.approx(stats.spearmanr(first, second).statistic)
            assert found.interval is None or found.interval.low < found.value < found.interval.high

    def test_interval_is_near_that_of_a_bootstrap(self):
        rng = np.random.default_rng(2)
        first = rng.normal(size=120)
        second = first + rng.normal(size=120)
        reference = stats.bootstrap(
            (first, second),
            lambda x, y: stats.spearmanr(x, y).statistic,
            paired=True,
            vectorized=False,
            n_resamples=400,
            rng=rng,
        ).confidence_interval
        found = spearman(first, second)
        assert found.interval.low == pytest.approx(reference.low, abs=0.05)
        assert found.interval.high == pytest.approx(reference.high, abs=0.05)

    def test_interval_is_wider_for_a_strong_correlation_than_fisher_has_it(self):
        """Bonett and Wright 2000: the variance of z is (1 + ρ²/2) ÷ (n − 3), not 1 ÷ (n − 3)."""
        found = spearman([*range(10), 11, 10], range(12))
        spread = math.atanh(found.interval.high) - math.atanh(found.interval.low)
        assert spread == pytest.approx(2 * 1.959964 * math.sqrt((1 + found.value**2 / 2) / 9))

    @pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, 3, 4, 5]], ids=["three pairs", "perfect"])
    def test_has_no_interval_when_no_error_can_be_estimated(self, values):
        assert spearman(values, values).interval is None
        assert spearman(values, values).value == 1.0

    def test_has_an_interval_from_four_pairs_on(self):
        found = spearman([1, 2, 3, 4], [1, 2, 4, 3])
        assert found.value == pytest.approx(0.8)
        half = 1.959964 * math.sqrt(1.32)
        assert found.interval.low == pytest.approx(math.tanh(math.atanh(0.8) - half))
        assert found.interval.high == pytest.approx(math.tanh(math.atanh(0.8) + half))

    def test_has_an_interval_from_five_conversations_on(self):
        first, second, groups = [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 4, 3, 5, 7, 6, 8], [1, 1, 2, 2, 3, 3, 4, 4]
        found = spearman(first, second, groups=groups)
        assert (found.interval, found.count) == (None, 8)
        assert spearman(first, second, groups=[*groups[:-1], 5]).interval is not None

    def test_is_none_without_pairs(self):
        assert spearman([], []) is None

    def test_refuses_different_lengths(self):
        with pytest.raises(ValueError, match="2 values cannot be paired with 3"):
            spearman([1, 2], [1, 2, 3])


class TestCorrectedMean:
    @pytest.mark.parametrize("labels", [2, 3, 4, 10, 60])
    def test_is_the_t_interval_of_the_labels_when_all_are_labelled(self, labels):
        human = skewed_scores(labels).tolist()
        found = corrected(human, human)
        low, high = stats.t.interval(0.95, labels - 1, fmean(human), stats.sem(human))
        assert (found.value, found.trust, found.labelled, found.count) == (
            pytest.approx(fmean(human)),
            0.0,
            labels,
            labels,
        )
        assert found.interval.high - found.interval.low == pytest.approx(high - low, rel=0.005)

    def test_takes_the_bias_of_a_good_judge_away_and_gains_precision(self):
        rng = np.random.default_rng(1)
        human = rng.beta(4, 2, 2_000)
        judged = human + 0.2 + rng.normal(0, 0.03, 2_000)
        found = corrected(judged, [*human[:100], *[None] * 1_900])
        alone = corrected(judged[:100], list(human[:100]))
        assert found.judge_mean == pytest.approx(human.mean() + 0.2, abs=0.005)
        assert found.value == pytest.approx(human.mean(), abs=0.01)
        assert width(found) < 0.5 * width(alone)
        assert found.trust > 0.9

    def test_is_the_mean_of_all_items_when_the_judge_is_perfect(self):
        human = skewed_scores(30).tolist()
        found = corrected(human, [*human[:10], *[None] * 20])
        assert found.value == pytest.approx(fmean(human))
        assert found.trust == pytest.approx(20 / 30)

    def test_hardly_listens_to_a_judge_that_knows_nothing(self):
        rng = np.random.default_rng(1)
        human, judged = rng.random(2_000), rng.random(2_000)
        found = corrected(judged, [*human[:200], *[None] * 1_800])
        assert found.trust < 0.15
        assert width(found) == pytest.approx(width(corrected(judged[:200], list(human[:200]))), rel=0.05)

    def test_holds_the_truth_about_as_often_as_it_says(self):
        rng = np.random.default_rng(7)
        hits = 0
        for _ in range(400):
            human = rng.beta(4, 2, 300)
            judged = np.clip(human + 0.1 + rng.normal(0, 0.1, 300), 0, 1)
            found = corrected(judged, [*human[:30], *[None] * 270])
            hits += found.interval.low <= 2 / 3 <= found.interval.high
        assert 0.92 <= hits / 400 <= 0.98

    def test_a_judge_with_one_opinion_is_left_out(self):
        found = corrected([0.5] * 6, [0.1, 0.3, 0.2, None, None, None])
        assert (found.trust, found.value) == (0.0, pytest.approx(0.2))

    @pytest.mark.parametrize("labels", [[None, None], [1.0, None]])
    def test_is_none_for_fewer_than_two_labels(self, labels):
        assert corrected([0.5, 0.6], labels) is None

    @pytest.mark.parametrize("labels", [20, 40, 80])
    def test_a_judge_that_agrees_on_each_label_may_still_err_on_others(self, labels):
        """As if two labels had been as uncertain as without the judge."""
        rng = np.random.default_rng(labels)
        human = rng.beta(4, 2, 1_000)
        found = corrected(human, [*human[:labels], *[None] * (1_000 - labels)])
        spread = human[:labels].var(ddof=1)
        variance = spread / 1_000 + (1 / labels - 1 / 1_000) * spread * 2 / labels
        assert found.trust == pytest.approx(1 - labels / 1_000)
        assert width(found) / 2 >= 1.96 * math.sqrt(variance)
        assert width(found) / 2 == pytest.approx(1.96 * math.sqrt(variance), rel=0.1)


def corrected(judged, labels):
    """Of labels of randomly chosen items, which are one stratum; None: no label."""
    both = [(label, score) for label, score in zip(labels, judged, strict=True) if label is not None]
    sample = LabelledSample(
        [a for a, _ in both], [b for _, b in both], ["all"] * len(both), {"all": len(judged)}
    )
    return stratified_mean(judged, sample)


def width(mean):
    return mean.interval.high - mean.interval.low


def by_formula(bias: float) -> tuple[float, float]:
    normal = stats.norm
    return normal.cdf(2 * bias - 1.96), normal.cdf(2 * bias + 1.96)


@pytest.mark.parametrize(
    ("estimate", "acceleration", "levels"),
    [
        (2.0, 0.0, by_formula(0.0)),
        (1.5, 0.0, by_formula(stats.norm.ppf(1 / 3))),
        (3.0, 0.0, by_formula(stats.norm.ppf(0.75))),  # five sixths, but no more than three quarters
        (9.0, 0.0, by_formula(stats.norm.ppf(0.75))),
        (-9.0, 0.0, by_formula(stats.norm.ppf(0.25))),
        (2.0, 0.1, (stats.norm.cdf(-1.96 / 1.196), stats.norm.cdf(1.96 / 0.804))),
        (2.0, 1.0, (stats.norm.cdf(-1.96 / 2.96), 1.0)),
        (2.0, -1.0, (0.0, stats.norm.cdf(1.96 / 2.96))),
    ],
)
def test_the_levels_of_bca_are_those_of_the_book_and_finite_if_all_replicates_are_on_one_side(
    estimate: float, acceleration: float, levels: tuple[float, float]
) -> None:
    """Of three replicates, at least a quarter counts as below the estimate, and a quarter as above it."""
    found = bca_levels(np.array([1.0, 2.0, 3.0]), estimate, acceleration, 1.96)
    assert found == pytest.approx(levels, abs=1e-12)
