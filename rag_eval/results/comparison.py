"""Is one bot really better than another: paired tests, the winner and its rivals, and what to say of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from rag_eval.results.intervals import (
    NORMAL,
    RESAMPLES,
    TINY,
    Floats,
    Interval,
    chunks,
    mean_intervals,
    pooled,
)
from rag_eval.results.skewness import bootstrap_t_pvalues, is_feigned_by_skewness

MANY_QUERIES = 10_000
"""The most additional queries that are ever advised; this value means 'more than that'."""

_ENUMERABLE = 14
"""2**13 sign patterns (a pattern and its mirror count once): fewer than a Monte Carlo draws."""
_POWER = 0.8


def paired_permutation_pvalue(
    differences: ArrayLike, *, permutations: int = RESAMPLES, seed: int = 0
) -> float:
    """Two-sided p-value of 'the mean difference is 0', by flipping the signs of the paired differences.

    Exact for up to 14 differences that are not 0, else Monte Carlo, where the observed signs count as one
    of the draws. 1 when there is no difference at all.
    """
    sample = np.asarray(differences, dtype=float)
    rng = np.random.default_rng(seed)
    rows = pooled(sample[sample != 0, None], rng)
    sums = np.abs(_flipped_sums(rows, permutations, rng)[:, 0])
    norm = math.sqrt(float((rows**2).sum()))
    return float(np.mean(sums >= sums[0] - TINY * norm))


def _flipped_sums(rows: Floats, flips: int, rng: np.random.Generator) -> Floats:
    """Column sums with a sign drawn for each row; the first line has the observed signs."""
    count = len(rows)
    if count <= _ENUMERABLE:
        patterns = np.arange(2 ** max(0, count - 1))[:, None] >> np.arange(count) & 1
        return np.asarray((1 - 2 * patterns) @ rows)
    sums = [rows.sum(axis=0, keepdims=True)]
    for size in chunks(flips, count):
        bits = np.frombuffer(rng.bytes(size * -(-count // 8)), np.uint8).reshape(size, -1)
        signs = np.unpackbits(bits, axis=1, count=count).astype(float)
        signs *= -2
        signs += 1
        sums.append(signs @ rows)
    return np.concatenate(sums)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given: those ≤ α may be called significant together."""
    adjusted = [0.0] * len(pvalues)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=pvalues.__getitem__)):
        running = max(running, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = running
    return adjusted


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
    """Adjusted for all comparisons, and for the winner having been picked by the same scores."""
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
        interval = self.interval and _with_zero(self.interval)
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
) -> Comparison | None:
    """Compare every bot with the best one, over rows × bots of scores without gaps. None without any score.

    The chance of one or more wrong `significant` in a table is at most 1 − confidence. Since the winner is
    picked by the same scores, a rival is tested with the largest difference between *any* two bots that are
    still in question, not with its own alone; bots that are clearly worse are set aside first (step-down).
    """
    table = _checked(scores, bots)
    if not table.size:
        return None
    means = [fmean(column) for column in table.T]
    order = sorted(range(len(bots)), key=lambda bot: -means[bot])
    table = table[:, order]
    gaps = table[:, :1] - table
    tests = _tested(gaps, 1 - confidence, resamples, seed)
    best = round(means[order[0]], 4)
    return Comparison(
        winner=bots[order[0]],
        winners=tuple(bot for bot, mean in zip(bots, means, strict=True) if round(mean, 4) == best),
        rivals=tuple(
            _rival(bots[bot], gap, round(means[bot], 4) == best, test, 1 - confidence)
            for bot, gap, test in zip(order[1:], gaps.T[1:], tests, strict=True)
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
) -> frozenset[str]:
    """The bots that `winner` is significantly better than, by the same test, even if it is not the best."""
    table = _checked(scores, bots)
    order = sorted(range(len(bots)), key=lambda bot: bots[bot] != winner)
    gaps = table[:, order[:1]] - table[:, order]
    tests = _tested(gaps, 1 - confidence, resamples, seed)
    return frozenset(
        bots[bot] for bot, test in zip(order[1:], tests, strict=True) if test.is_clear(1 - confidence)
    )


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
    critical: float
    """What Σd ÷ √Σd² had to exceed."""
    interval: Interval | None = None
    """Of the mean difference, as wide as the test was strict; None for a single row."""
    is_feigned: bool = False
    """The skewness of the differences alone may have made them so clear."""

    def is_clear(self, alpha: float) -> bool:
        """All that look at skewed differences in their own ways must agree: only what each of them sees is claimed."""
        sees_interval = self.interval is not None and self.interval.low > 0
        return self.pvalue <= alpha and sees_interval and not self.is_feigned


def _tested(gaps: Floats, alpha: float, resamples: int, seed: int) -> list[_Test]:
    """Each column but the first, which belongs to the winner and is 0."""
    rng = np.random.default_rng(seed)
    tests = _step_down(gaps, alpha, resamples, rng)
    rows = len(gaps)
    if rows < 2:
        return tests
    reaches = [_as_t(test.critical, rows) for test in tests]
    intervals = mean_intervals(gaps[:, 1:], reaches, resamples, rng)
    tests = [replace(test, interval=interval) for test, interval in zip(tests, intervals, strict=True)]
    if not any(test.is_clear(alpha) for test in tests):
        return tests
    order = sorted(range(1, gaps.shape[1]), key=lambda column: _statistic(gaps[:, column]))
    pvalues = bootstrap_t_pvalues(gaps, order, rng)
    return [
        replace(test, is_feigned=pvalues[column] > alpha or is_feigned_by_skewness(gaps[:, column], reach))
        if test.is_clear(alpha)
        else test
        for column, (test, reach) in enumerate(zip(tests, reaches, strict=True), 1)
    ]


def _as_t(critical: float, rows: int) -> float:
    """The value of Student's t at which Σd ÷ √Σd² is `critical`."""
    return critical * math.sqrt((rows - 1) / max(rows - critical**2, TINY))


def _statistic(gap: Floats) -> float:
    """|Σd| ÷ √Σd²; 0 without any difference."""
    return abs(float(gap.sum())) / (math.sqrt(float((gap**2).sum())) or 1.0)


def _step_down(gaps: Floats, alpha: float, flips: int, rng: np.random.Generator) -> list[_Test]:
    """Test each column but the first against the first, which belongs to the winner and is 0.

    Flipping the signs of whole rows keeps how the bots hang together. The statistic of two bots, Σd ÷ √Σd²,
    has variance 1 under such flips whatever the spread of their differences, so that a maximum over pairs is
    fair to each of them.
    """
    rows = pooled(gaps[(gaps != gaps[:, :1]).any(axis=1)], rng)
    sums = _flipped_sums(rows, flips, rng)

    def statistic(one: int, other: int) -> Floats:
        norm = math.sqrt(float(((rows[:, one] - rows[:, other]) ** 2).sum()))
        return np.abs(sums[:, one] - sums[:, other]) / (norm or 1.0)

    own = [statistic(0, bot)[0] for bot in range(1, gaps.shape[1])]
    field = [0]
    largest = np.zeros(len(sums))
    tests: dict[int, _Test] = {}
    for rival in sorted(range(len(own)), key=own.__getitem__):
        for other in field:
            largest = np.maximum(largest, statistic(rival + 1, other))
        field.append(rival + 1)
        pvalue = float(np.mean(largest >= own[rival] - TINY))
        critical = np.sort(largest)[math.ceil((len(largest) - 1) * (1 - alpha))]
        tests[rival] = _Test(pvalue, float(critical))
    return _made_monotone(tests, alpha)


def _made_monotone(tests: dict[int, _Test], alpha: float) -> list[_Test]:
    """From the most to the least clear rival: the first that is not decided leaves all others undecided."""
    hurdle = _Test(0.0, 0.0)
    for rival, test in reversed(tests.items()):
        critical = hurdle.critical if hurdle.pvalue > alpha else test.critical
        hurdle = tests[rival] = _Test(max(hurdle.pvalue, test.pvalue), critical)
    return [tests[rival] for rival in sorted(tests)]


def _rival(bot: str, gap: Floats, is_tie: bool, test: _Test, alpha: float) -> Rival:
    verdict, more, interval = Verdict.TIE, None, test.interval
    if not is_tie:
        is_clear = test.is_clear(alpha)
        verdict = Verdict.SIGNIFICANT if is_clear else Verdict.NOT_DECIDED
        more = None if is_clear else _more_queries(gap, test, alpha)
    if interval is not None and verdict is not Verdict.SIGNIFICANT:
        interval = _with_zero(interval)
    doubt = "the differences are skewed" if test.is_feigned and verdict is Verdict.NOT_DECIDED else ""
    return Rival(bot, max(0.0, fmean(gap)), interval, test.pvalue, verdict, more, doubt)


def _with_zero(interval: Interval) -> Interval:
    """The interval of a difference that is not significant includes 0."""
    return Interval(min(interval.low, 0.0), max(interval.high, 0.0))


_HALF_MORE = 1.5
"""Of the rows, where the test is clear and only their skewness is in the way, which wears off with more of them."""


def _more_queries(gap: Floats, test: _Test, alpha: float) -> int | None:
    """By the sample size of a paired t test (Guenther 1981), and enough rows for so small a p-value to exist."""
    rows, critical = len(gap), test.critical
    if rows < 2:
        return None
    noise = float(gap.std(ddof=1)) / float(gap.mean())
    needed = ((critical + NORMAL.inv_cdf(_POWER)) * noise) ** 2 + critical**2 / 2
    fewest = math.ceil(math.log2(2 / alpha)) * rows / np.count_nonzero(gap)
    enough = _HALF_MORE * rows if test.pvalue <= alpha else 0.0
    return min(max(1, math.ceil(max(needed, fewest, enough)) - rows), MANY_QUERIES)
