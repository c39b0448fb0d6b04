"""Is one bot really better than another: paired tests, the winner and its rivals, and what to say of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_eval.results.intervals import (
    NORMAL,
    RESAMPLES,
    TINY,
    Floats,
    Interval,
    chunks,
    mean_intervals,
    pooled,
    resampled_counts,
)
from rag_eval.results.summary import FEWEST_ROWS

MANY_QUERIES = 10_000
"""The most additional queries that are ever advised; this value means 'more than that'."""

_ENUMERABLE = 14
"""2**13 sign patterns (a pattern and its mirror count once): fewer than a Monte Carlo draws."""
_POWER = 0.8


def paired_permutation_pvalue(differences: ArrayLike, *, permutations: int = RESAMPLES) -> float:
    """Two-sided p-value of 'the mean difference is 0', by flipping the signs of the paired differences.

    Exact for up to 14 differences that are not 0, else Monte Carlo, where the observed signs count as one
    of the draws. 1 when there is no difference at all.
    """
    sample = np.asarray(differences, dtype=float)
    rng = np.random.default_rng(0)
    rows = pooled(sample[sample != 0, None], rng)
    sums = np.abs(_flipped_sums(rows, permutations, rng)[:, 0])
    norm = math.sqrt(float((rows**2).sum()))
    return float(np.mean(sums >= sums[0] - TINY * norm))


def _flipped_sums(rows: Floats, flips: int, rng: np.random.Generator) -> Floats:
    """Column sums with a sign drawn for each row; the first line has the observed signs."""
    return _nested_sums([rows], flips, rng)[0]


def _nested_sums(parts: Sequence[Floats], flips: int, rng: np.random.Generator) -> list[Floats]:
    """For each part the column sums of the rows up to its end, all under the same signs."""
    rows = np.concatenate(parts)
    ends = np.cumsum([len(part) for part in parts])
    sums: list[list[Floats]] = [[] for _ in parts]
    for signs in _signs(len(rows), flips, rng):
        total: Floats | float = 0.0
        for part, end, found in zip(parts, ends, sums, strict=True):
            total = total + signs[:, end - len(part) : end] @ part
            found.append(np.asarray(total))
    return [np.concatenate(found) for found in sums]


def _signs(count: int, flips: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Patterns of as many signs, some at a time: the observed one first, then drawn ones; all if they are few."""
    if count <= _ENUMERABLE:
        patterns = np.arange(2 ** max(0, count - 1))[:, None] >> np.arange(count) & 1
        yield (1 - 2 * patterns).astype(float)
        return
    yield np.ones((1, count))
    for size in chunks(flips, count):
        bits = np.frombuffer(rng.bytes(size * -(-count // 8)), np.uint8).reshape(size, -1)
        signs = np.unpackbits(bits, axis=1, count=count).astype(float)
        signs *= -2
        signs += 1
        yield signs


def holm(pvalues: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: those ≤ α may be called significant together."""
    adjusted = [0.0] * len(pvalues)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        running = max(running, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = running
    return adjusted


@dataclass(frozen=True, slots=True)
class Stage:
    """A look at the first rows of a table, after which nothing more would have been judged if all had been clear."""

    rows: int
    """How many of them it saw."""
    alpha: float
    """Chance of a wrong claim that was spent by it and all looks before it."""


class Verdict(StrEnum):
    SIGNIFICANT = "significant"
    NOT_DECIDED = "not decided"
    TIE = "tie"
    """The means are equal when rounded to 4 decimals."""
    NOT_COMPARABLE = "not comparable"
    """The two numbers are not made of the same things. Never found here; who knows it says so."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A bot beside the winner."""

    bot: str
    difference: float
    """Mean of the winner minus mean of this bot; never negative."""
    interval: Interval | None
    """Of the difference, wide enough for the winner having been picked by the same scores. Excludes 0 exactly
    when the verdict is `significant`. None for a single row."""
    pvalue: float
    """Adjusted for all comparisons, for the winner having been picked by the same scores, and for earlier looks."""
    verdict: Verdict
    more_queries: int | None
    """How many more would decide it at this effect with a power of 0.8; at most MANY_QUERIES, which means
    more than that. None unless the verdict is `not decided`, and for a single row."""
    doubt: str = ""
    """Why the verdict is `not decided` although the scores alone are clear; otherwise empty."""

    @property
    def is_significant(self) -> bool:
        return self.verdict is Verdict.SIGNIFICANT

    @property
    def is_comparable(self) -> bool:
        return self.verdict is not Verdict.NOT_COMPARABLE

    @property
    def is_tie(self) -> bool:
        return self.verdict is Verdict.TIE

    def doubted(self, doubt: str) -> "Rival":
        """The same without its claim: not decided, and more queries would not help."""
        interval = self.interval and self.interval.with_zero()
        return replace(self, interval=interval, verdict=Verdict.NOT_DECIDED, more_queries=None, doubt=doubt)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The bot with the highest mean, and all others against it."""

    winner: str
    """The one that the others are compared with."""
    winners: tuple[str, ...]
    """All whose mean equals the highest when rounded to 4 decimals, in the order given."""
    rivals: tuple[Rival, ...]
    """All bots but `winner`, best first."""
    rows: int
    confidence: float


def compare_with_best(
    scores: ArrayLike,
    bots: Sequence[str],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    stages: Sequence[Stage] = (),
    clusters: ArrayLike | None = None,
) -> Comparison | None:
    """Compare every bot with the best one, over rows × bots of scores without gaps. None without any score.

    `stages` are the planned looks so far, the last of them now, over rows in the order in which they were judged.
    `clusters` are numbers of what each row belongs to: rows of one cluster are no independent evidence.

    The chance of one or more wrong `significant` in a table is at most 1 − confidence. Since the winner is
    picked by the same scores, a rival is tested with the largest difference between *any* two bots that are
    still in question, not with its own alone; bots that are clearly worse are set aside first (step-down).
    """
    table = _checked(scores, bots)
    if not table.size:
        return None
    means = [fmean(column) for column in table.T]
    order = sorted(range(len(bots)), key=lambda bot: -means[bot])
    gaps = table[:, order[:1]] - table[:, order]
    planned = _stages(stages, len(table), confidence)
    tests = _tested(gaps, planned, resamples, seed, clusters)
    units = gaps if clusters is None else _clustered(gaps, np.asarray(clusters), planned)[0]
    best = round(means[order[0]], 4)
    return Comparison(
        winner=bots[order[0]],
        winners=tuple(bot for bot, mean in zip(bots, means, strict=True) if round(mean, 4) == best),
        rivals=tuple(
            _rival(bots[bot], gap, unit, round(means[bot], 4) == best, test, _alpha(confidence))
            for bot, gap, unit, test in zip(order[1:], gaps.T[1:], units.T[1:], tests, strict=True)
        ),
        rows=len(table),
        confidence=confidence,
    )


def bots_behind(
    winner: str,
    scores: ArrayLike,
    bots: Sequence[str],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    stages: Sequence[Stage] = (),
    clusters: ArrayLike | None = None,
) -> frozenset[str]:
    """The bots that `winner` is significantly better than, by the same test, even if it is not the best."""
    table = _checked(scores, bots)
    order = sorted(range(len(bots)), key=lambda bot: bots[bot] != winner)
    gaps = table[:, order[:1]] - table[:, order]
    tests = _tested(gaps, _stages(stages, len(table), confidence), resamples, seed, clusters)
    return frozenset(bots[bot] for bot, test in zip(order[1:], tests, strict=True) if test.is_clear)


def _stages(stages: Sequence[Stage], rows: int, confidence: float) -> Sequence[Stage]:
    """Those, or the one look at everything."""
    return stages or [Stage(rows, _alpha(confidence))]


def _alpha(confidence: float) -> float:
    return 1 - confidence


def _checked(scores: ArrayLike, bots: Sequence[str]) -> Floats:
    table = np.asarray(scores, dtype=float)
    if table.size and table.shape != (len(table), len(bots)):
        raise ValueError(f"a table of {table.shape} scores does not fit {len(bots)} bots")
    if not np.isfinite(table).all():
        raise ValueError("scores to compare must be finite: keep only the rows on which every bot has one")
    return table


@dataclass(frozen=True, slots=True)
class _Test:
    pvalue: float
    """Chance of so clear a difference now, or of a claim at an earlier stage."""
    level: float
    """What that may be at this stage."""
    critical: float
    """What Σd ÷ √Σd² had to exceed."""
    nominal: float
    """Chance of exceeding it at this stage, whatever was seen before."""
    interval: Interval | None = None
    """Of the mean difference, as wide as the test was strict; None for a single row."""
    is_feigned: bool = False
    """The skewness of the differences alone may have made them so clear."""

    @property
    def is_clear(self) -> bool:
        """All that look at skewed differences in their own ways must agree: only what each of them sees is claimed."""
        sees_interval = self.interval is not None and self.interval.low > 0
        return self.pvalue <= self.level and sees_interval and not self.is_feigned

    def repeated_pvalue(self, alpha: float) -> float:
        """The smallest chance of wrong claims at which planned looks of this kind would have claimed it.

        That of O'Brien–Fleming spending (Lan and DeMets 1983) after this share of the rows; with one look the p-value.
        """
        if self.level == alpha or not 0.0 < self.pvalue < 1.0:
            return self.pvalue
        steeper = NORMAL.inv_cdf(self.level / 4) / NORMAL.inv_cdf(alpha / 4)
        return min(1.0, 4 * NORMAL.cdf(NORMAL.inv_cdf(self.pvalue / 4) / steeper))


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Whether the mean of a column of differences is 0."""

    mean: float
    """NaN for a column without values."""
    interval: Interval | None
    """Of the mean of this column. It excludes 0 exactly if a test of this column only is significant, as it always is
    if that of all columns is; None for fewer than FEWEST_ROWS values or clusters."""
    pvalue: float
    """Adjusted for all columns."""
    is_significant: bool
    """By the test of all columns together."""

    def in_worst_case(self, worst: "ColumnTest") -> "ColumnTest":
        """The same, with what is also true of `worst`, which has values for those that are missing here."""
        is_same = worst.mean * self.mean > 0
        interval = self.interval
        if interval and not (is_same and worst.interval and not worst.interval.has(0)):
            interval = interval.with_zero()
        return replace(
            self, interval=interval, is_significant=self.is_significant and is_same and worst.is_significant
        )


def compare_columns(
    table: ArrayLike,
    *,
    resamples: int = RESAMPLES,
    clusters: ArrayLike | None,
) -> list[ColumnTest]:
    """Test each column of rows x columns against a mean of 0, by the largest statistic among columns in question.

    NaN is no value. The signs of whole rows are flipped, as in `compare_with_best`, so that the chance of one or more
    wrong `is_significant` in a table is at most 5%. Each interval has 95% confidence for its own column.
    `clusters` are as there.
    """
    found = np.asarray(table, dtype=float)
    if clusters is not None:
        found, _ = _by_cluster(found, np.asarray(clusters))
    rng = np.random.default_rng(0)
    filled = np.nan_to_num(found)
    rows = pooled(filled[(filled != 0).any(axis=1)], rng)
    norms = np.sqrt((rows**2).sum(axis=0))
    values = np.abs(_nested_sums([rows], resamples, rng)[0]) / np.where(norms > 0, norms, 1.0)
    largest = np.zeros(len(values))
    tests: dict[int, _Test] = {}
    levels = [_alpha(0.95)]
    own = [_at_last_stage(column[None], float(column[0]), levels) for column in values.T]
    for column in sorted(range(found.shape[1]), key=values[0].__getitem__):
        largest = np.maximum(largest, values[:, column])
        tests[column] = _at_last_stage(largest[None], float(values[0, column]), levels)
    columns = (column[~np.isnan(column)] for column in found.T)
    return [
        _column_test(column, of_all, of_one, resamples, rng)
        for column, of_all, of_one in zip(columns, _made_monotone(tests), own, strict=True)
    ]


def _column_test(
    column: Floats, of_all: _Test, own: _Test, resamples: int, rng: np.random.Generator
) -> ColumnTest:
    if len(column) < FEWEST_ROWS:
        return ColumnTest(float(column.mean()) if len(column) else math.nan, None, of_all.pvalue, False)
    mean, tests = float(column.mean()), (of_all, own)
    reaches = [_as_t(test.critical, len(column)) for test in tests]
    intervals = mean_intervals(np.column_stack([column, column]), reaches, resamples, rng)
    towards = column * math.copysign(1.0, mean)
    is_clear, is_clear_here = (
        test.pvalue <= test.level and not interval.has(0) and not is_feigned_by_skewness(towards, reach)
        for test, interval, reach in zip(tests, intervals, reaches, strict=True)
    )
    interval = intervals[1] if is_clear_here else intervals[1].with_zero()
    return ColumnTest(mean, interval, of_all.pvalue, is_clear and is_clear_here)


def _tested(
    gaps: Floats, stages: Sequence[Stage], resamples: int, seed: int, clusters: ArrayLike | None
) -> list[_Test]:
    """Each column but the first, which belongs to the winner and is 0."""
    rng = np.random.default_rng(seed)
    if clusters is not None:
        gaps, stages = _clustered(gaps, np.asarray(clusters), stages)
    is_staged = len(stages) > 1 or stages[0].alpha < _SMALLEST_LEVEL
    tests = _step_down(gaps, stages, resamples * (_EARLY_FLIPS if is_staged else 1), rng)
    rows = len(gaps)
    if rows < 2:
        return tests
    reaches = [_as_t(test.critical, rows) for test in tests]
    draws = resamples * (_EARLY_RESAMPLES if is_staged else 1)
    intervals = mean_intervals(gaps[:, 1:], reaches, draws, rng)
    tests = [replace(test, interval=interval) for test, interval in zip(tests, intervals, strict=True)]
    if not any(test.is_clear for test in tests):
        return tests
    order = sorted(range(1, gaps.shape[1]), key=lambda column: _statistic(gaps[:, column]))
    pvalues = bootstrap_t_pvalues(gaps, order, rng, *([draws] if is_staged else []))
    return [
        replace(
            test,
            is_feigned=pvalues[column] > test.nominal or is_feigned_by_skewness(gaps[:, column], reach),
        )
        if test.is_clear
        else test
        for column, (test, reach) in enumerate(zip(tests, reaches, strict=True), 1)
    ]


_SMALLEST_LEVEL = 0.02
"""Below it a look needs more draws."""
_EARLY_FLIPS, _EARLY_RESAMPLES = 10, 5
"""Times as many: the first of planned looks spends a chance of about .001, which fewer would not resolve."""


def _clustered(
    gaps: Floats, clusters: NDArray[np.int64], stages: Sequence[Stage]
) -> tuple[Floats, Sequence[Stage]]:
    """As `_by_cluster`, and how many of the rows each stage saw."""
    blocks, first = _by_cluster(gaps, clusters)
    return blocks, [replace(stage, rows=int(np.count_nonzero(first < stage.rows))) for stage in stages]


def _by_cluster(table: Floats, clusters: NDArray[Any]) -> tuple[Floats, NDArray[np.int64]]:
    """One row for each cluster, with the same mean of each column; clusters in the order in which they came.

    NaN is no value, and stands where a column has none in a cluster. Also the number of each cluster's first row.
    """
    _, first, which = np.unique(clusters, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[which]
    sums = np.zeros((len(first), table.shape[1]))
    counts = np.zeros_like(sums)
    np.add.at(sums, place, np.nan_to_num(table))
    np.add.at(counts, place, ~np.isnan(table))
    share = (counts > 0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return np.where(counts > 0, sums * share, np.nan), first


def _as_t(critical: float, rows: int) -> float:
    """The value of Student's t at which Σd ÷ √Σd² is `critical`."""
    return critical * math.sqrt((rows - 1) / max(rows - critical**2, TINY))


def _statistic(gap: Floats) -> float:
    """|Σd| ÷ √Σd²; 0 without any difference."""
    return abs(float(gap.sum())) / (math.sqrt(float((gap**2).sum())) or 1.0)


def _step_down(gaps: Floats, stages: Sequence[Stage], flips: int, rng: np.random.Generator) -> list[_Test]:
    """Test each column but the first against the first, which belongs to the winner and is 0.

    Flipping the signs of whole rows keeps how the bots hang together. The statistic of two bots, Σd ÷ √Σd²,
    has variance 1 under such flips whatever the spread of their differences, so that a maximum over pairs is
    fair to each of them. The maxima at all stages come from the same flips: their joint distribution says what
    each stage may claim.
    """
    parts = [
        pooled(part[(part != part[:, :1]).any(axis=1)], rng)
        for part in np.split(gaps, [stage.rows for stage in stages[:-1]])
    ]
    sums = _nested_sums(parts, flips, rng)
    seen = [np.concatenate(parts[: stage + 1]) for stage in range(len(parts))]

    def statistic(one: int, other: int) -> Floats:
        """At each stage, of each flip."""
        norms = [math.sqrt(float(((rows[:, one] - rows[:, other]) ** 2).sum())) for rows in seen]
        return np.stack(
            [
                np.abs(found[:, one] - found[:, other]) / (norm or 1.0)
                for found, norm in zip(sums, norms, strict=True)
            ]
        )

    own = [float(statistic(0, bot)[-1, 0]) for bot in range(1, gaps.shape[1])]
    field = [0]
    largest = np.zeros((len(stages), len(sums[0])))
    tests: dict[int, _Test] = {}
    for rival in sorted(range(len(own)), key=own.__getitem__):
        for other in field:
            largest = np.maximum(largest, statistic(rival + 1, other))
        field.append(rival + 1)
        tests[rival] = _at_last_stage(largest, own[rival], [stage.alpha for stage in stages])
    return _made_monotone(tests)


def _at_last_stage(largest: Floats, own: float, levels: Sequence[float]) -> _Test:
    """`largest` has the maximum of each flip at each stage: who claims earlier what is not so cannot do so again."""
    flips = largest.shape[1]
    has_claimed = np.zeros(flips, dtype=bool)
    for values, level in zip(largest[:-1], levels, strict=False):
        left = np.sort(values[~has_claimed])[::-1]
        count = math.floor(level * flips + TINY) - int(has_claimed.sum())
        if count > 0:
            has_claimed |= values > left[count] + TINY
    now = np.where(has_claimed, math.inf, largest[-1])
    critical = np.sort(now)[math.ceil((flips - 1) * (1 - levels[-1]))]
    if not math.isfinite(critical):
        critical = largest[-1].max()
    nominal = float(np.mean(largest[-1] > critical + TINY)) if len(levels) > 1 else levels[-1]
    return _Test(float(np.mean(now >= own - TINY)), levels[-1], float(critical), nominal)


def _made_monotone(tests: dict[int, _Test]) -> list[_Test]:
    """From the most to the least clear rival: the first that is not decided leaves all others undecided."""
    hurdle: _Test | None = None
    for rival, test in reversed(tests.items()):
        if hurdle:
            is_decided = hurdle.pvalue <= hurdle.level
            harder = test if is_decided else replace(test, critical=hurdle.critical, nominal=hurdle.nominal)
            tests[rival] = replace(harder, pvalue=max(hurdle.pvalue, test.pvalue))
        hurdle = tests[rival]
    return [tests[rival] for rival in sorted(tests)]


def _rival(bot: str, gap: Floats, units: Floats, is_tie: bool, test: _Test, alpha: float) -> Rival:
    """`gap` has the differences of the rows, `units` those of the clusters."""
    verdict, more, interval = Verdict.TIE, None, test.interval
    if not is_tie:
        verdict = Verdict.SIGNIFICANT if test.is_clear else Verdict.NOT_DECIDED
        more = None if test.is_clear else _more_queries(units, len(gap), test, alpha)
    if interval is not None and verdict is not Verdict.SIGNIFICANT:
        interval = interval.with_zero()
    doubt = "the differences are skewed" if test.is_feigned and verdict is Verdict.NOT_DECIDED else ""
    pvalue = test.repeated_pvalue(alpha)
    return Rival(bot, max(0.0, fmean(gap)), interval, pvalue, verdict, more, doubt)


_HALF_MORE = 1.5
"""Of the rows, where the test is clear and only their skewness is in the way, which wears off with more of them."""


def _more_queries(gap: Floats, queries: int, test: _Test, alpha: float) -> int | None:
    """By the sample size of a paired t test (Guenther 1981), and enough rows for so small a p-value to exist.

    `gap` are differences that are independent of each other, over so many `queries`.
    """
    rows, critical = len(gap), test.critical
    if rows < 2:
        return None
    noise = float(gap.std(ddof=1)) / float(gap.mean())
    needed = ((critical + NORMAL.inv_cdf(_POWER)) * noise) ** 2 + critical**2 / 2
    fewest = math.ceil(math.log2(2 / alpha)) * rows / np.count_nonzero(gap)
    enough = _HALF_MORE * rows if test.pvalue <= test.level else 0.0
    more = max(1, math.ceil(max(needed, fewest, enough)) - rows)
    return min(math.ceil(more * queries / rows), MANY_QUERIES)


RESAMPLES = 2_000
"""Enough for a check at 5 %: its p-values have a standard error of half a point."""


_UNSEEN = 2.0
"""A few rows show about half of the skewness that the rows not seen have, so that its correction is taken twice."""


def skewed_hurdle(gap: Floats, reach: float) -> float:
    """What t must reach in place of `reach` when the differences are skewed against the winner.

    Johnson's correction of t (1978) to its first order, worked out at the hurdle: further up it would grow without
    bounds. No less than `reach`, which it is for fewer than three rows.
    """
    rows, spread = len(gap), float(gap.std(ddof=1))
    if rows < 3 or not math.isfinite(_t(gap)):
        return reach
    third = float(((gap - gap.mean()) ** 3).sum()) * rows / ((rows - 1) * (rows - 2))
    against = max(0.0, -third / spread**3)
    return reach + _UNSEEN * against * (1 + 2 * reach**2) / (6 * math.sqrt(rows))


def is_feigned_by_skewness(gap: Floats, reach: float) -> bool:
    """Whether t falls short of that hurdle."""
    return _t(gap) < skewed_hurdle(gap, reach) * (1 - TINY)


def bootstrap_t_pvalues(
    gaps: Floats, order: Sequence[int], rng: np.random.Generator, resamples: int = RESAMPLES
) -> dict[int, float]:
    """By column: how often a resampled table has so large a t between any two bots still in question.

    `gaps` are those to the winner, whose own column is the first; `order` has the other columns, the clearest last.
    Each p-value is at least that of every clearer one. Resampled rows keep the skewness of their differences.
    """
    centred = gaps - gaps.mean(axis=0)
    centred[np.abs(centred) < TINY] = 0.0
    rows = pooled(centred, rng)
    largest = _largest_t(rows, order, rng, resamples)
    own = {column: _t(gaps[:, column]) for column in order}
    pvalues, clearest = {}, 0.0
    for column in reversed(order):
        clearest = max(clearest, float(np.mean(largest[column] >= own[column] * (1 - TINY))))
        pvalues[column] = clearest
    return pvalues


def _largest_t(
    rows: Floats, order: Sequence[int], rng: np.random.Generator, resamples: int
) -> dict[int, Floats]:
    """By column: of each resampled table the largest |t| of two bots among the winner and those up to the column.

    A sample of coarse scores may happen to have no spread at all. A spread of less than one n-th of that of the rows is
    therefore raised to it.
    """
    parts: dict[int, list[Floats]] = {column: [] for column in order}
    count = len(rows)
    for counts in resampled_counts(count, resamples, rng):
        sums = counts @ rows
        largest = np.zeros(len(counts))
        field = [0]
        for column in order:
            squares = (rows[:, [column]] - rows[:, field]) ** 2
            total = np.abs(sums[:, [column]] - sums[:, field])
            spread = np.maximum(counts @ squares - total**2 / count, squares.sum(axis=0) / count)
            t = total * math.sqrt((count - 1) / count) / np.sqrt(np.where(spread > 0, spread, math.inf))
            largest = np.maximum(largest, t.max(axis=1))
            field.append(column)
            parts[column].append(largest)
    return {column: np.concatenate(found) for column, found in parts.items()}


def _t(gap: Floats) -> float:
    mean, error = float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(len(gap))
    return mean / error if error > TINY * abs(mean) else math.copysign(math.inf, mean)
