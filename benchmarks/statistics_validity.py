"""Simulation: does rag_eval.results keep the error rates, coverage and power that its documents promise?

    python benchmarks/statistics_validity.py [--simulations 1000] [--only PART ...]

Prints Markdown tables. With the default number of simulations the standard error of a rate near 5% is 0.7
points. Its numbers are in the tables of docs/background/statistics-simulations.md.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rag_eval.configuration.settings import Settings
from rag_eval.records import ALL_PAIRS, MATCHING, Case, CaseResult, Outcome, PairVerdict, Score
from rag_eval.results.agreement import cohen_kappa, spearman
from rag_eval.results.comparison import (
    Stage,
    Verdict,
    _as_t,
    _at_last_stage,
    _clustered,
    _nested_sums,
    _statistic,
    _step_down,
    bootstrap_t_pvalues,
    bots_behind,
    compare_with_best,
    holm,
    is_feigned_by_skewness,
    paired_permutation_pvalue,
)
from rag_eval.results.head_to_head import HeadToHead, PairSummary, PairTally
from rag_eval.results.intervals import Interval, bootstrap_mean_interval, mean_intervals, reported_interval
from rag_eval.results.looks import spent
from rag_eval.results.stratified import LabelledSample, stratified_mean
from rag_eval.run.pairs import PairJudge

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]
RESAMPLES = 999  # fewer than the library's 10,000: the noise of one verdict averages out over simulations


# Scores of equally good bots: rows × bots, with rows of different difficulty where it says so.


def _smooth(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    return np.clip(rng.beta(4, 1.5, (rows, 1)) + rng.normal(0, 0.15, (rows, bots)), 0, 1)


def _pass_fail(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    return (rng.random((rows, bots)) < rng.beta(2, 1, (rows, 1))).astype(float)


def _rare_zero(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    return (rng.random((rows, bots)) < 0.93) * np.round(0.8 + 0.2 * rng.random((rows, 1)), 1)


def _quarters(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    return rng.choice([0, 0.25, 0.5, 0.75, 1], p=[0.1, 0.05, 0.1, 0.25, 0.5], size=(rows, bots))


def _unequal_spread(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    return 0.6 + rng.normal(0, 1, (rows, bots)) * _spreads(bots)


def _opposite_skew(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    side = np.where(np.arange(bots) % 2, 1, -1)
    return 0.6 + (rng.exponential(1, (rows, bots)) - 1) * _spreads(bots) * side


def _opposite_heavy_skew(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    side = np.where(np.arange(bots) % 2, 1, -1)
    return 0.6 + (rng.lognormal(0, 0.8, (rows, bots)) - np.exp(0.32)) / 1.3 * _spreads(bots) * side


def _unequal_skew(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    """From nearly normal to very skewed, to either side."""
    shapes = np.resize([0.5, 1, 2, 4, 8, 0.7, 1.5, 3, 6, 0.6, 1.2, 5], bots)
    side = np.where(np.arange(bots) % 3, 1, -1)
    return 0.6 + (rng.gamma(shapes, size=(rows, bots)) - shapes) / np.sqrt(shapes) * _spreads(bots) * side


def _spreads(bots: int) -> Floats:
    return np.linspace(0.05, 0.4, bots)


EQUAL: dict[str, Draw] = {
    "smooth, hard and easy rows": _smooth,
    "pass/fail": _pass_fail,
    "mostly alike, rare 0": _rare_zero,
    "quarters, skewed": _quarters,
    "bots of unequal spread": _unequal_spread,
    "bots of unequal spread and skew": _unequal_skew,
    "bots of opposite skew": _opposite_skew,
    "bots of opposite, heavy skew (worst case)": _opposite_heavy_skew,
}
SKEWED = (_unequal_skew, _opposite_skew, _opposite_heavy_skew)


def family_wise_errors(simulations: int) -> None:
    """Equal bots: how often is anything at all called significant? At most 5% is promised."""
    print("\n| equal bots, scores | rows | B=2 | B=3 | B=5 | B=12 |\n|---|---|---|---|---|---|")
    for name, draw in EQUAL.items():
        for rows in (10, 20, 50, 200):
            rng = np.random.default_rng(rows)
            rates = []
            for bots in (2, 3, 5, 12):
                wrong = sum(bool(_claims(draw(rng, rows, bots))) for _ in range(simulations))
                rates.append(wrong / simulations)
            print(f"| {name} | {rows} | {_percents(rates)} |", flush=True)


def conversations(simulations: int) -> None:
    """Rows of one conversation hang together: errors of equal bots, and coverage of the mean of one bot."""
    print(
        "\n| conversations | rows each | wrong claims B=2, 5, 12 | as if independent | coverage | as if independent |"
    )
    print("|---|---|---|---|---|---|")
    for count in (10, 20, 50):
        for most in (1, 4, 10):
            rng = np.random.default_rng(count + most)
            errors: list[list[float]] = [[], []]
            covered = [0, 0]
            for bots in (2, 5, 12):
                wrong = [0, 0]
                for _ in range(simulations):
                    scores, clusters = _talks(rng, count, most, bots)
                    for place, its in enumerate((clusters, None)):
                        wrong[place] += bool(_claims(scores, its))
                        if bots == 2:
                            interval = reported_interval(scores[:, 0].tolist(), clusters=its)
                            covered[place] += _holds(interval, _MEAN_OF_TALKS)
                for place in (0, 1):
                    errors[place].append(wrong[place] / simulations)
            rates = [each / simulations for each in covered]
            cells = [_percents(errors[0]).replace(" |", ","), _percents(errors[1]).replace(" |", ",")]
            print(f"| {count} | 1 to {most} | {' | '.join(cells)} | {_percents(rates)} |", flush=True)


_MEAN_OF_TALKS = 0.6


def _talks(rng: np.random.Generator, count: int, most: int, bots: int) -> tuple[Floats, NDArray[np.int64]]:
    """Scores of equally good bots, in conversations of one row to `most`, which have two thirds of the variance."""
    clusters = np.repeat(np.arange(count), rng.integers(1, most, count, endpoint=True))
    own = rng.normal(0, 0.1, (count, bots))[clusters]
    hard = rng.normal(0, 0.1, (count, 1))[clusters]
    return _MEAN_OF_TALKS + hard + own + rng.normal(0, 0.1, (len(clusters), bots)), clusters


def partly_equal_errors(simulations: int) -> None:
    """Some bots equally best, the others worse by a step: how often is one of the best called worse?"""
    print("\n| bots | equally best | the others worse by | wrong claims | all true claims made |")
    print("|---|---|---|---|---|")
    for bots, best in ((3, 2), (5, 2), (5, 4), (12, 2), (12, 6)):
        for step in (0.02, 0.05, 0.1, 0.2):
            rng = np.random.default_rng(bots)
            wrong = complete = 0
            for _ in range(simulations):
                scores = rng.beta(4, 1.5, (50, 1)) + rng.normal(0, 0.15, (50, bots))
                scores[:, best:] -= step
                claimed = _claims(scores)
                true_mean = {bot: -step * (bot >= best) for bot in range(bots)}
                wrong += any(true_mean[winner] <= true_mean[rival] for winner, rival in claimed)
                complete += {rival for _, rival in claimed} >= set(range(best, bots))
            print(
                f"| {bots} | {best} | {step} | {_percents([wrong / simulations, complete / simulations])} |"
            )


def repeated_tests(simulations: int) -> None:
    """Equal bots, tested again after every 25 more rows: how often does any of the tests call one significant?"""
    print(
        "\n| equal bots, scores | bots | one test | up to 2 | up to 5 | up to 10 |\n|---|---|---|---|---|---|"
    )
    for name in ("smooth, hard and easy rows", "pass/fail", "quarters, skewed"):
        for bots in (2, 5):
            rng = np.random.default_rng(bots)
            first = np.array([_first_claim(EQUAL[name](rng, 275, bots)) for _ in range(simulations)])
            print(f"| {name} | {bots} | {_percents(np.mean(first <= tests) for tests in (1, 2, 5, 10))} |")


def _first_claim(scores: Floats) -> float:
    """Number of the first test with a claim: over 50 rows, then over 25 more each time; infinite if there is none."""
    rows = range(50, len(scores) + 1, 25)
    return next((float(test) for test, end in enumerate(rows, 1) if _claims(scores[:end])), np.inf)


SHARES = (0.4, 0.6, 0.8, 1.0)
LOOK_FLIPS = 1_999  # fewer than the library's 100,000: a sign-flip test keeps its level with any number
_Looked = tuple[float, bool, bool]


def looks_errors(simulations: int) -> None:
    """Equal bots and planned looks: how often does any of the looks claim anything, and what are the rows used?

    By the first step of the sign flips alone, which every claim has to pass: what is checked besides can only take
    claims away.
    """
    print(
        "\n| equal bots, scores | rows | B=2 | B=3 | B=5 | B=12 | rows used |\n|---|---|---|---|---|---|---|"
    )
    for name, draw, rows in _looked_kinds():
        rates, used = [], []
        for bots in (2, 3, 5, 12):
            rng = np.random.default_rng(bots)
            claimed = np.array([_first_look(draw(rng, rows, bots), rng) for _ in range(simulations)])
            rates.append(float(np.mean(claimed < np.inf)))
            used.append(float(np.minimum(claimed, 1.0).mean()))
        print(f"| {name} | {rows} | {_percents(rates)} | {min(used):.0%}–{max(used):.0%} |", flush=True)


def looks_power(simulations: int) -> None:
    """One bot ahead of others that are equal: who is found by looks and by one test at the end, and with what rows?"""
    print("\n| scores | bots | lead | found at a look | found at the end | rows used | interval holds |")
    print("|---|---|---|---|---|---|---|")
    for name, draw, _ in _looked_kinds():
        for bots in (2, 5, 12):
            for lead in (0.04, 0.1):
                rng = np.random.default_rng(bots)
                used, by_looks, at_end, holds = np.zeros(simulations), 0, 0, 0
                for number in range(simulations):
                    scores = draw(rng, 200, bots) - lead * (np.arange(bots) > 0)
                    used[number], claims, once = _looked(scores, rng)
                    by_looks += claims
                    at_end += once
                    holds += _repeated_holds(scores, round(used[number] * 200), lead, twice=_is_twice(scores))
                rates = _percents([by_looks / simulations, at_end / simulations])
                print(
                    f"| {name} | {bots} | {lead} | {rates} | {used.mean():.0%} | {holds / simulations:.1%} |",
                    flush=True,
                )


def _looked_kinds() -> list[tuple[str, Draw, int]]:
    """Name, scores of equal bots, and rows of the runs that test the error rate."""
    return [
        ("smooth, hard and easy rows", _smooth, 100),
        ("quarters, skewed", _quarters, 100),
        ("mostly alike, rare 0", _rare_zero, 200),
        ("smooth, a tenth of the rows missing", _with_gaps, 100),
        ("smooth, each query twice", _twice, 100),
    ]


def _first_look(scores: Floats, rng: np.random.Generator) -> float:
    """Share of the rows at the first look that claims anything; infinite if none does."""
    rows, bots = scores.shape
    if _is_twice(scores):
        scores = scores.reshape(rows // 2, 2, bots).sum(axis=1)
    ends = [round(len(scores) * share) for share in SHARES]
    parts = [part[~np.isnan(part).any(axis=1)] for part in np.split(scores, ends[:-1])]
    one, other = np.triu_indices(bots, 1)
    seen, largest, levels = np.empty((0, bots)), [], []
    for part, sums, share in zip(parts, _nested_sums(parts, LOOK_FLIPS, rng), SHARES, strict=True):
        seen = np.concatenate([seen, part])
        norms = np.sqrt(((seen[:, one] - seen[:, other]) ** 2).sum(axis=0))
        norms[norms == 0] = 1.0  # no differences at all: no statistic either
        found = np.abs(sums[:, one] - sums[:, other]) / norms
        winner = seen.mean(axis=0).argmax()
        largest.append(found.max(axis=1))
        levels.append(spent(share))
        own = found[0, (one == winner) | (other == winner)].max()
        test = _at_last_stage(np.array(largest), float(own), levels)
        if test.pvalue <= test.level:
            return share
    return float(np.inf)


def _is_twice(scores: Floats) -> bool:
    return np.allclose(scores[::2], scores[1::2], atol=0.2, equal_nan=True)


def _with_gaps(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    scores = _smooth(rng, rows, bots)
    scores[rng.random(rows) < 0.1] = np.nan
    return scores


def _twice(rng: np.random.Generator, rows: int, bots: int) -> Floats:
    """The second answer to a query is nearly the first one: as two rows they would feign evidence."""
    return np.repeat(_smooth(rng, rows // 2, bots), 2, axis=0) + rng.normal(0, 0.02, (rows, bots))


def _looked(scores: Floats, rng: np.random.Generator) -> _Looked:
    """Share of the rows when the runner-up was found or all was seen; if it was; if one test at the end finds it."""
    rows = len(scores)
    twice = _is_twice(scores)
    once = _is_found(scores, [Stage(rows, 0.05)], rng, twice=twice)
    for look, share in enumerate(SHARES):
        end = round(rows * share)
        stages = [Stage(round(rows * each), spent(each)) for each in SHARES[: look + 1]]
        if _is_found(scores[:end], stages, rng, twice=twice):
            return share, True, once
    return 1.0, False, once


def _is_found(scores: Floats, stages: list[Stage], rng: np.random.Generator, *, twice: bool) -> bool:
    there = ~np.isnan(scores).any(axis=1)
    stages = [Stage(int(there[: stage.rows].sum()), stage.alpha) for stage in stages]
    table = scores[there]
    order = np.argsort(-table.mean(axis=0), kind="stable")
    gaps = table[:, order[:1]] - table[:, order]
    if twice:
        gaps, found = _clustered(gaps, np.arange(len(gaps)) // 2, stages)
        stages = list(found)
    tests = _step_down(gaps, stages, LOOK_FLIPS, rng)
    return any(test.pvalue <= test.level for test in tests)


def _repeated_holds(scores: Floats, rows: int, lead: float, *, twice: bool) -> bool:
    """Whether the interval of the lead over the runner-up, at the look after so many rows, has the true one."""
    there = ~np.isnan(scores).any(axis=1)
    ends = [(round(200 * each), spent(each)) for each in SHARES if 200 * each <= rows + 0.5]
    kept = np.flatnonzero(there[:rows])
    comparison = compare_with_best(
        scores[kept],
        [str(bot) for bot in range(scores.shape[1])],
        clusters=kept // 2 if twice else None,
        stages=[Stage(int(there[:end].sum()), alpha) for end, alpha in ends],
        resamples=199,
    )
    assert comparison is not None
    rival = comparison.rivals[0]
    truth = lead * ((rival.bot != "0") - (comparison.winner != "0"))
    return rival.interval is not None and _holds(rival.interval, truth)


def power(simulations: int) -> None:
    """One bot better than all others, which are equal or spread out: who finds the runner-up's difference?"""
    print("\n| bots | others | rule | wrong with equal bots | runner-up found |\n|---|---|---|---|---|")
    for bots in (2, 5, 12):
        for others in ("equal", "spread"):
            gaps = np.full(bots, 0.07) if others == "equal" else 0.07 * np.arange(bots)
            gaps[0] = 0
            if others == "spread" and bots == 2:
                continue
            rules = {"step-down maximum (ours)": _by_library, "Holm, all pairs": _by_holm_pairs}
            rules["Holm, against the winner only"] = _by_holm_winner
            for rule, found in rules.items():
                rng = np.random.default_rng(bots)
                wrong = sum(bool(found(_smooth(rng, 50, bots))) for _ in range(simulations))
                right = sum(
                    (0, 1) in found(rng.beta(4, 1.5, (50, 1)) + rng.normal(0, 0.15, (50, bots)) - gaps)
                    for _ in range(simulations)
                )
                print(
                    f"| {bots} | {others} | {rule} | {_percents([wrong / simulations, right / simulations])} |"
                )


def remedies(simulations: int) -> None:
    """What helps against skewed differences: wrong claims with equal bots, and the runner-up found."""
    names = list(_by_remedies(_smooth(np.random.default_rng(0), 9, 2), np.random.default_rng(0)))
    print(f"\n| scores | rows | bots | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}")
    cases: list[tuple[str, Draw, float]] = [
        ("wrong, opposite skew", _opposite_skew, 0.0),
        ("wrong, opposite, heavy skew", _opposite_heavy_skew, 0.0),
        ("found, smooth", _smooth, 0.5),
        ("found, quarters", _quarters, 1.5),
        ("found, opposite skew", _opposite_skew, 1.5),
    ]
    for label, draw, step in cases:
        for rows in (10, 20) if draw is not _smooth and step else (10, 20, 50):
            for bots in (2, 5, 12):
                rng = np.random.default_rng(rows + bots)
                counts = dict.fromkeys(names, 0)
                for _ in range(simulations):
                    scores = draw(rng, rows, bots) - step / rows**0.5 * (np.arange(bots) > 0)
                    for name, claims in _by_remedies(scores, rng).items():
                        counts[name] += (0, 1) in claims if step else bool(claims)
                rates = _percents(count / simulations for count in counts.values())
                print(f"| {label} | {rows} | {bots} | {rates} |", flush=True)


def _by_remedies(scores: Floats, rng: np.random.Generator) -> dict[str, set[tuple[int, int]]]:
    """Claims of the sign flips with their interval, alone and with each of the checks that could be added."""
    order = np.argsort(-scores.mean(axis=0), kind="stable")
    gaps = scores[:, order[:1]] - scores[:, order]
    rows, bots = gaps.shape
    tests = _step_down(gaps, [Stage(rows, 0.05)], RESAMPLES, rng)
    reaches = [_as_t(test.critical, rows) for test in tests]
    intervals = mean_intervals(gaps[:, 1:], reaches, RESAMPLES, rng)
    flips = {
        column
        for column, (test, interval) in enumerate(zip(tests, intervals, strict=True), 1)
        if test.pvalue <= 0.05 and interval.low > 0
    }
    by_statistic = sorted(range(1, bots), key=lambda column: _statistic(gaps[:, column]))
    bootstrap = bootstrap_t_pvalues(gaps, by_statistic, rng) if flips else {}
    in_flips = _by_johnson_flips(gaps, rng) if flips else set()
    hurdle = {column for column in flips if not is_feigned_by_skewness(gaps[:, column], reaches[column - 1])}
    johnson = {column for column in flips if _johnson_t(gaps[:, column]) >= reaches[column - 1]}
    maximum = {column for column in flips if bootstrap[column] <= 0.05}
    found = {
        "flips and interval": flips,
        "+ Johnson's t": johnson,
        "+ Johnson's t in each flip": flips & in_flips,
        "+ 1% level if skewed against": {
            column
            for column in flips
            if tests[column - 1].pvalue
            <= (0.01 if stats.skew(gaps[:, column]) < -((6 / rows) ** 0.5) else 0.05)
        },
        "+ one more row, as far against": {
            column
            for column in flips
            if _statistic(np.append(gaps[:, column], -np.abs(gaps[:, column]).max()))
            >= tests[column - 1].critical
        },
        "+ bootstrap-t maximum": maximum,
        "+ hurdle raised by skewness": hurdle,
        "+ bootstrap-t maximum + hurdle (ours)": maximum & hurdle,
    }
    return {
        name: {(int(order[0]), int(order[column])) for column in columns} for name, columns in found.items()
    }


def _johnson_t(gap: Floats) -> float:
    """Student's t corrected for skewness (Johnson 1978)."""
    rows, mean, variance = len(gap), float(gap.mean()), max(float(gap.var(ddof=1)), 1e-15)
    third = float(((gap - mean) ** 3).sum()) * rows / ((rows - 1) * (rows - 2))
    corrected = mean + third / (6 * variance * rows) + third * mean**2 / (3 * variance**2)
    return float(corrected / (variance / rows) ** 0.5)


def _by_johnson_flips(gaps: Floats, rng: np.random.Generator) -> set[int]:
    """Step-down of the maximum over pairs again, with Johnson's t worked out anew for each flip."""
    rows, bots = gaps.shape
    signs = rng.integers(0, 2, (RESAMPLES + 1, rows)) * 2.0 - 1
    signs[0] = 1

    def johnson(one: int, other: int) -> Floats:
        gap = gaps[:, other] - gaps[:, one]
        square, mean, cube = (gap**2).sum(), signs @ gap / rows, signs @ gap**3 / rows
        variance = np.maximum((square - rows * mean**2) / (rows - 1), 1e-15)
        third = cube - 3 * mean * square / rows + 2 * mean**3
        corrected = mean + third / (6 * variance * rows) + third * mean**2 / (3 * variance**2)
        return np.asarray(corrected / np.sqrt(variance / rows))

    own = {column: float(johnson(0, column)[0]) for column in range(1, bots)}
    field, largest, pvalues = [0], np.zeros(len(signs)), {}
    for column in sorted(own, key=own.__getitem__):
        for other in field:
            largest = np.maximum(largest, np.abs(johnson(other, column)))
        field.append(column)
        pvalues[column] = np.mean(largest >= own[column] - 1e-9)
    claimed = set()
    for column in sorted(own, key=own.__getitem__, reverse=True):
        if pvalues[column] > 0.05:
            break
        claimed.add(column)
    return claimed


def missing(simulations: int) -> None:
    """Rows are missing: the worst of one bot's, with equal bots; or any, with one bot better by 0.1."""
    print("\n| missing | rows | bots | share | compared rows only | lead > 0 in the worst case | ours |")
    print("|---|---|---|---|---|---|---|")
    for label in ("wrong: the worst of one bot's", "found: any, of each bot"):
        for rows in (20, 50, 200):
            for bots in (2, 12):
                for share in (0.02, 0.05, 0.1):
                    if rows * share < 1:
                        continue
                    rng = np.random.default_rng(rows + bots)
                    hits = np.zeros(3)
                    for _ in range(simulations):
                        scores = _smooth(rng, rows, bots)
                        if label.startswith("wrong"):
                            scores[scores[:, 0].argsort()[: round(rows * share)], 0] = np.nan
                            hits += [bool(claims) for claims in _claims_with_gaps(scores)]
                        else:
                            scores[:, 0] += 0.1
                            scores = np.clip(scores, 0, 1)
                            scores[rng.random(scores.shape) < share / bots] = np.nan
                            hits += ["1" in claims for claims in _claims_with_gaps(scores)]
                    print(
                        f"| {label} | {rows} | {bots} | {share:.0%} | {_percents(hits / simulations)} |",
                        flush=True,
                    )


def _claims_with_gaps(scores: Floats) -> tuple[set[str], set[str], set[str]]:
    """Rivals that the winner is called better than: by the complete rows, if it leads whatever is missing, and ours."""
    names = [str(bot) for bot in range(scores.shape[1])]
    comparison = compare_with_best(scores[~np.isnan(scores).any(axis=1)], names, resamples=RESAMPLES)
    assert comparison is not None
    claimed = {rival.bot for rival in comparison.rivals if rival.verdict is Verdict.SIGNIFICANT}
    if not claimed or not np.isnan(scores).any():
        return claimed, claimed, claimed
    worst = np.where(np.isnan(scores), np.array([name != comparison.winner for name in names], float), scores)
    means = dict(zip(names, worst.mean(axis=0), strict=True))
    leads = {bot for bot in claimed if means[comparison.winner] > means[bot]}
    return claimed, leads, claimed & bots_behind(comparison.winner, worst, names, resamples=RESAMPLES)


def _by_library(scores: Floats) -> set[tuple[int, int]]:
    return set(_claims(scores))


def _by_holm_winner(scores: Floats) -> set[tuple[int, int]]:
    winner = int(scores.mean(axis=0).argmax())
    pairs = [(winner, bot) for bot in range(scores.shape[1]) if bot != winner]
    return _by_holm(scores, pairs)


def _by_holm_pairs(scores: Floats) -> set[tuple[int, int]]:
    order = np.argsort(-scores.mean(axis=0)).tolist()
    pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    return {pair for pair in _by_holm(scores, pairs) if pair[0] == order[0]}


def _by_holm(scores: Floats, pairs: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    pvalues = [stats.ttest_rel(scores[:, one], scores[:, other]).pvalue for one, other in pairs]
    return {pair for pair, pvalue in zip(pairs, holm(pvalues), strict=True) if pvalue <= 0.05}


def _claims(scores: Floats, clusters: NDArray[np.int64] | None = None) -> list[tuple[int, int]]:
    """(winner, rival) of each verdict that is `significant`."""
    names = [str(bot) for bot in range(scores.shape[1])]
    comparison = compare_with_best(scores, names, resamples=RESAMPLES, clusters=clusters)
    assert comparison is not None
    winner = int(comparison.winner)
    return [(winner, int(r.bot)) for r in comparison.rivals if r.verdict is Verdict.SIGNIFICANT]


MEANS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "beta(8, 2)": lambda rng, rows: rng.beta(8, 2, rows),
    "uniform": lambda rng, rows: rng.random(rows),
    "85% near 0.9, 15% zero": lambda rng, rows: np.where(
        rng.random(rows) < 0.15, 0, np.round(rng.beta(9, 1, rows), 1)
    ),
    "pass/fail 80%": lambda rng, rows: (rng.random(rows) < 0.8).astype(float),
    "pass/fail 95%": lambda rng, rows: (rng.random(rows) < 0.95).astype(float),
}


def mean_coverage(simulations: int) -> None:
    """How often does the 95% interval of a mean contain the true one, and how wide is it?"""
    print("\n| scores | rows | percentile | BC | BCa | ours: BCa, widened | width of ours | all equal |")
    print("|---|---|---|---|---|---|---|---|")
    for name, draw in MEANS.items():
        truth = float(draw(np.random.default_rng(0), 4_000_000).mean())
        for rows in (10, 20, 50, 200):
            rng = np.random.default_rng(rows)
            hits, width, flat = np.zeros(4), 0.0, 0
            for _ in range(simulations):
                sample = draw(rng, rows)
                flat += np.ptp(sample) == 0
                ours = bootstrap_mean_interval(sample, resamples=RESAMPLES)
                assert ours is not None
                hits += [_holds(interval, truth) for interval in (*_textbook(sample, rng), ours)]
                width += ours.high - ours.low
            rates = _percents([*(hits / simulations)])
            print(
                f"| {name} | {rows} | {rates} | {width / simulations:.3f} | {flat / simulations:.0%} |",
                flush=True,
            )


def _textbook(sample: Floats, rng: np.random.Generator) -> list[Interval]:
    """Percentile, BC and BCa as the textbook has them."""
    means = rng.choice(sample, (RESAMPLES, len(sample))).mean(axis=1)
    centred = sample - sample.mean()
    acceleration = (centred**3).sum() / (6 * max((centred**2).sum(), 1e-12) ** 1.5)
    below = np.mean(means < sample.mean() - 1e-12) + np.mean(np.abs(means - sample.mean()) <= 1e-12) / 2
    bias = stats.norm.ppf(np.clip(below, 1e-3, 1 - 1e-3))
    step = np.array([-1.96, 1.96])
    intervals = []
    for shift, slope in ((0, 0), (bias, 0), (bias, acceleration)):
        low, high = np.quantile(means, stats.norm.cdf(shift + (shift + step) / (1 - slope * (shift + step))))
        intervals.append(Interval(low, high))
    return intervals


def gap_coverage(simulations: int) -> None:
    """Does the interval of a lead contain the true one, although the leader was picked by the same scores?"""
    print("\n| bots | rows | true means | each interval | all intervals of a table |\n|---|---|---|---|---|")
    cases: list[tuple[str, Draw, float]] = [
        ("equal, smooth", _smooth, 0.0),
        ("equal, quarters", _quarters, 0.0),
        ("0.05 apart, quarters", _quarters, 0.05),
        ("equal, mostly alike, rare 0", _rare_zero, 0.0),
    ]
    for name, draw, step in cases:
        for bots in (2, 5, 12):
            for rows in (20, 50, 200):
                rng = np.random.default_rng(rows)
                each = every = 0.0
                for _ in range(simulations):
                    scores = draw(rng, rows, bots) - step * np.arange(bots)
                    held = _held_gaps(scores, step)
                    each += sum(held) / len(held)
                    every += all(held)
                rates = _percents([each / simulations, every / simulations])
                print(f"| {bots} | {rows} | {name} | {rates} |", flush=True)


def _held_gaps(scores: Floats, step: float) -> list[bool]:
    comparison = compare_with_best(scores, [str(bot) for bot in range(scores.shape[1])], resamples=RESAMPLES)
    assert comparison is not None
    winner = int(comparison.winner)
    return [_holds(rival.interval, step * (int(rival.bot) - winner)) for rival in comparison.rivals]


def advice(simulations: int) -> None:
    """Take an undecided pilot as the truth, draw as many rows as advised, and look: about 80% is promised."""
    print("\n| scores | bots | pilot rows | median advice | significant after it |\n|---|---|---|---|---|")
    for name, draw in EQUAL.items():
        if draw in SKEWED:
            continue
        for bots, rows in ((2, 20), (2, 50), (2, 200), (5, 50)):
            rng = np.random.default_rng(rows)
            advised, decided = [], 0
            while len(advised) < simulations // 2:
                pilot = draw(rng, rows, bots) - 0.04 * np.arange(bots)
                more = _advice(pilot)
                if more is None or more > 2_000:
                    continue
                advised.append(more)
                decided += _runner_up_decided(pilot, pilot[rng.integers(0, rows, rows + more)])
            rate = _percents([decided / len(advised)])
            print(f"| {name} | {bots} | {rows} | {int(np.median(advised))} | {rate} |", flush=True)


def _advice(pilot: Floats) -> int | None:
    comparison = compare_with_best(pilot, [str(bot) for bot in range(pilot.shape[1])], resamples=RESAMPLES)
    assert comparison is not None
    return comparison.rivals[0].more_queries


def _runner_up_decided(pilot: Floats, scores: Floats) -> bool:
    first, second = np.argsort(-pilot.mean(axis=0), kind="stable")[:2].tolist()
    return (first, second) in _claims(scores)


def agreement_coverage(simulations: int) -> None:
    """95% intervals of kappa and of Spearman's correlation."""
    print(
        "\n| statistic | ratings | true value | items | contains the truth | no interval |\n|---|---|---|---|---|---|"
    )
    tables = {
        "pass/fail, balanced": np.array([[0.4, 0.1], [0.1, 0.4]]),
        "pass/fail, 85% pass": np.array([[0.1, 0.05], [0.05, 0.8]]),
        "1 to 5": _ordinal_table(),
    }
    for name, table in tables.items():
        for weights in (None, "quadratic") if len(table) > 2 else (None,):
            truth = _population_kappa(table, weights)
            for items in (20, 50, 200):
                rng = np.random.default_rng(items)
                intervals = []
                for _ in range(simulations):
                    drawn = rng.choice(table.size, items, p=table.ravel())
                    pair = (drawn // len(table)).tolist(), (drawn % len(table)).tolist()
                    categories = range(len(table))
                    found = cohen_kappa(*pair, weights=weights, categories=categories, resamples=RESAMPLES)
                    intervals.append(found.interval)
                label = f"kappa{', quadratic' if weights else ''} | {name} | {truth:.2f} | {items}"
                print(f"| {label} | {_coverage(intervals, truth)} |", flush=True)
    for grid in (0, 4):
        for slope in (0.0, 0.5, 0.85):
            big = _rated_pairs(np.random.default_rng(0), 2_000_000, slope, grid)
            truth = stats.spearmanr(*big).statistic
            for items in (20, 50, 200):
                rng = np.random.default_rng(items)
                found_all = [spearman(*_rated_pairs(rng, items, slope, grid)) for _ in range(simulations)]
                intervals = [found.interval if found else None for found in found_all]
                label = f"Spearman | {'five steps' if grid else 'smooth'} | {truth:.2f} | {items}"
                print(f"| {label} | {_coverage(intervals, truth)} |", flush=True)


def _ordinal_table() -> Floats:
    steps = np.subtract.outer(np.arange(5), np.arange(5))
    table = np.exp(-(steps**2)) * np.array([0.05, 0.1, 0.2, 0.3, 0.35])[:, None]
    return np.asarray(table / table.sum())


def _population_kappa(table: Floats, weights: str | None) -> float:
    steps = np.subtract.outer(np.arange(len(table)), np.arange(len(table)))
    cost = steps**2 if weights else (steps != 0)
    return float(1 - (cost * table).sum() / (cost * np.outer(table.sum(1), table.sum(0))).sum())


def _rated_pairs(rng: np.random.Generator, items: int, slope: float, grid: int) -> tuple[Floats, Floats]:
    one = rng.normal(size=items)
    other = slope * one + (1 - slope**2) ** 0.5 * rng.normal(size=items)
    first, second = stats.norm.cdf(one) ** 0.5, stats.norm.cdf(other)
    return (np.round(first * grid), np.round(second * grid)) if grid else (first, second)


def _coverage(intervals: Sequence[Interval | None], truth: float) -> str:
    known = [interval for interval in intervals if interval is not None]
    return _percents([sum(_holds(i, truth) for i in known) / len(known), 1 - len(known) / len(intervals)])


def corrected_mean_coverage(simulations: int) -> None:
    """1,000 items with a judge of known bias: does the corrected interval hold the human mean?"""
    print(
        "\n| judge | labels | judge only, error | labels only | corrected | width, labels only | corrected |"
    )
    print("|---|---|---|---|---|---|---|")
    judges = {"good, 0.1 too kind": (0.1, 0.08), "noisy, 0.1 too strict": (-0.1, 0.3), "useless": (0.0, 50.0)}
    for human_kind in ("graded", "pass/fail"):
        for judge, (bias, noise) in judges.items():
            for labels in (10, 20, 50, 200):
                rng = np.random.default_rng(labels)
                hits, widths, error = np.zeros(2), np.zeros(2), 0.0
                for _ in range(simulations):
                    human = rng.beta(4, 2, 1_000)
                    human = human if human_kind == "graded" else (rng.random(1_000) < human).astype(float)
                    scores = np.clip(human + bias + rng.normal(0, noise, 1_000), 0, 1)
                    some = stratified_mean(scores, _any_of_all(human, scores, labels, 1_000))
                    alone = stratified_mean(scores[:labels], _any_of_all(human, scores, labels, labels))
                    assert some is not None
                    assert alone is not None
                    hits += [_holds(alone.interval, 2 / 3), _holds(some.interval, 2 / 3)]
                    widths += [x.interval.high - x.interval.low for x in (alone, some)]
                    error += some.judge_mean - 2 / 3
                rates, width = _percents([*(hits / simulations)]), widths / simulations
                row = f"{human_kind}, {judge} | {labels} | {error / simulations:+.3f} | {rates}"
                print(f"| {row} | {width[0]:.3f} | {width[1]:.3f} |", flush=True)


def _any_of_all(human: Floats, scores: Floats, labels: int, count: int) -> LabelledSample:
    """The first `labels` of `count` items, which are in random order."""
    return LabelledSample(human[:labels], scores[:labels], ["all"] * labels, {"all": count})


def speed(_: int) -> None:
    """Processor seconds and peak memory with the library's own 10,000 resamples."""
    print("\n| what | rows | bots | CPU seconds | peak MB |\n|---|---|---|---|---|")
    for rows, bots in ((200, 5), (1_000, 12), (100_000, 5), (100_000, 12)):
        scores = _smooth(np.random.default_rng(0), rows, bots)
        names = [str(bot) for bot in range(bots)]

        def report(scores: Floats = scores, names: Sequence[str] = names) -> None:
            compare_with_best(scores, names)
            for column in scores.T:
                bootstrap_mean_interval(column)

        print(f"| comparison and an interval a bot | {rows:,} | {bots} | {_cost(report)} |")
    gap = np.subtract(*_smooth(np.random.default_rng(0), 100_000, 2).T)
    print(f"| one paired test | {gap.size:,} | 2 | {_cost(lambda: paired_permutation_pvalue(gap))} |")


def _cost(work: Callable[[], object]) -> str:
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{seconds:.2f} | {peak / 1e6:.0f}"


def _holds(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low - 1e-9 <= truth <= interval.high + 1e-9


def _percents(rates: Iterable[float]) -> str:
    return " | ".join(f"{rate:.1%}" for rate in rates)


_PAIR_CASES = [
    (0.0, 0.0, 1, 0.0),
    (0.4, 0.0, 1, 0.0),
    (0.0, 0.5, 1, 0.0),
    (0.2, 0.3, 2, 0.0),
    (0.1, 0.2, 1, 0.1),
]
"""Share of verdicts by position, share of ties, repeats of each query, share of failed pairs."""


def pairs(simulations: int) -> None:
    """Equal bots compared in pairs: how often is one called better, and does the interval contain 50%?"""
    print(
        "\n| bots | queries | by position | ties | repeats | failed | wrong | pairs hold | strengths hold |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for bots, queries in ((2, 60), (3, 60), (6, 120), (12, 200)):
        runs = simulations if bots < 12 else simulations // 5
        for case in _PAIR_CASES:
            rng = np.random.default_rng(bots)
            wrong, holds, strong = 0, [], []
            for _ in range(runs):
                (found,) = _compared_in_pairs(rng, bots, queries, case)
                wrong += _claims(found)
                holds += [_holds(pair.interval, 0.5) for pair in found.pairs if pair.interval]
                strong += [_holds(each.interval, 0.5) for each in found.strengths if each.interval]
            shown = " | ".join(map(str, case))
            shares = [wrong / runs, np.mean(holds), *([np.mean(strong)] if strong else [])]
            print(f"| {bots} | {queries} | {shown} | {_percents(shares)} |", flush=True)


def _claims(found: HeadToHead) -> bool:
    """Whether a bot is called better than another."""
    return any(pair.is_significant for pair in found.pairs) or any(each.is_behind for each in found.strengths)


def pairs_all(simulations: int) -> None:
    """All pairs judged: claims on pairs and claims on strengths, and whether intervals contain the true win rate.

    The quality of the bots rises by `step` from one to the next. "Best ahead" counts how many of the other bots are
    called worse than the truly best one.
    """
    print(
        "\n| bots | queries | step | any claim: pairs | strengths | best ahead: pairs | strengths | differ | hold |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for bots, queries in ((3, 60), (4, 60), (6, 60)):
        for step in (0.0, 0.1, 0.3):
            rng = np.random.default_rng(bots)
            claims, holds = np.zeros((simulations, 5)), []
            rates = _true_rates(bots, step)
            for place in range(simulations):
                tested, strong = _compared_in_pairs(
                    rng, bots, queries, _PAIR_CASES[3], step, (ALL_PAIRS, MATCHING)
                )
                best = str(bots - 1)
                ahead = {pair.one for pair in tested.pairs if pair.other == best and _is_behind(pair)}
                behind = {each.bot for each in strong.strengths if each.is_behind}
                is_best = bool(strong.strengths) and strong.strengths[0].bot == best
                behind_best = behind if is_best else set[str]()
                share = bots - 1
                claims[place] = (
                    _claims(tested), bool(behind), len(ahead) / share, len(behind_best) / share,
                    ahead != behind_best,
                )  # fmt: skip
                holds += [
                    _holds(pair.interval, rates[int(pair.other) - int(pair.one)])
                    for pair in tested.pairs
                    if pair.interval
                ]
            print(
                f"| {bots} | {queries} | {step} | {_percents([*claims.mean(axis=0), np.mean(holds)])} |",
                flush=True,
            )


def _is_behind(pair: PairSummary) -> bool:
    return pair.is_significant and (pair.win_rate or 0.0) < 0.5


def _true_rates(bots: int, step: float) -> list[float]:
    """Win rate of a bot against the one that is so many places above it, without position and ties."""
    by_position, ties, *_ = _PAIR_CASES[3]
    noise = np.random.default_rng(0).normal(0, 0.8 * np.sqrt(2), 1_000_000)
    decided = (1 - by_position) * (1 - ties)
    return [
        float(0.5 + decided * (np.mean(1 / (1 + np.exp(step * gap + noise))) - 0.5)) for gap in range(bots)
    ]


def _compared_in_pairs(
    rng: np.random.Generator,
    bots: int,
    queries: int,
    case: tuple[float, float, int, float],
    step: float = 0.0,
    choices: Sequence[str] = (),
) -> list[HeadToHead]:
    """Bots of which each has queries that it answers better, and is better by `step` than the one before it.

    What it comes to for each of the choices, or for that which a run would make.
    """
    by_position, ties, repeats, failed = case
    names = [str(bot) for bot in range(bots)]
    compared = {"pairs": "all" if choices else "auto"}
    settings = Settings.model_validate({"head_to_head": compared, "judge": {"provider": "azure"}})
    plan = PairJudge.of(settings, names, [f"q{number}" for number in range(queries)])
    assert plan
    tallies = [PairTally(names, choice) for choice in choices or (plan.choice,)]
    quality = rng.normal(0, 0.8, (queries, bots)) + step * np.arange(bots)
    rounds = rng.integers(0, len(plan.rounds), queries)
    off = Score.not_applicable("toxicity", "off")
    for query, row, number in zip(range(queries), quality, rounds, strict=True):
        for one, other in plan.rounds[number]:
            for _ in range(repeats):
                said = PairVerdict(names[other], Outcome.FAILED)
                if rng.random() >= failed:
                    chance = 1 / (1 + np.exp(row[other] - row[one]))
                    value = _verdict_in_both_orders(rng, chance, by_position, ties)
                    said = PairVerdict(names[other], Outcome.SCORED, value)
                shown = Case(2, names[one], f"q{query}", "x")
                for tally in tallies:
                    tally.add(
                        CaseResult(
                            case=shown, rqs=None, failure_modes=(), scores={}, toxicity=off, pairs=(said,)
                        )
                    )
    return [tally.head_to_head() for tally in tallies]


def _verdict_in_both_orders(
    rng: np.random.Generator, chance: float, by_position: float, ties: float
) -> float:
    preferred = 1.0 if rng.random() < chance else -1.0
    value = 0.0
    for first in (1.0, -1.0):
        if rng.random() < by_position:
            value += first / 2
        elif rng.random() >= ties:
            value += preferred / 2
    return value


PARTS = {
    "pairs": pairs,
    "pairs-all": pairs_all,
    "errors": family_wise_errors,
    "conversations": conversations,
    "partly-equal": partly_equal_errors,
    "repeated": repeated_tests,
    "looks-errors": looks_errors,
    "looks-power": looks_power,
    "power": power,
    "remedies": remedies,
    "missing": missing,
    "mean": mean_coverage,
    "gap": gap_coverage,
    "advice": advice,
    "agreement": agreement_coverage,
    "corrected-mean": corrected_mean_coverage,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    for part in arguments.only:
        PARTS[part](arguments.simulations)


if __name__ == "__main__":
    main()
