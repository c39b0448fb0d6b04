"""How far numbers can be trusted: intervals, paired comparison of bots, agreement. Pure; every draw is seeded.

The module needs numpy, so import it where it is used, once there are scores to reckon with.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist, fmean
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

RESAMPLES = 10_000
MANY_QUERIES = 10_000
"""The most additional queries that are ever advised; this value means 'more than that'."""

_BLOCKS = 2_000  # rows beyond this are pooled at random into this many blocks: time and memory stay bounded
_CELLS = 250_000  # numbers in one chunk of resamples: 2 MB
_ENUMERABLE = 14  # 2**13 sign patterns (a pattern and its mirror count once): fewer than a Monte Carlo draws
_POWER = 0.8
_TINY = 1e-9  # differences of equal sums that were added in another order
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


# --- one mean -------------------------------------------------------------------------------------------------


def bootstrap_mean_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Interval of the mean by bootstrap over rows: bias-corrected, accelerated and widened for small samples.

    Never outside the range of the values. None for fewer than two; a single point when all are equal, since
    a bootstrap cannot know of values that it has not seen.
    """
    sample = np.asarray(values, dtype=float)
    if len(sample) < 2:
        return None
    reach = _student_quantile((1 + confidence) / 2, len(sample) - 1)
    return _mean_intervals(sample[:, None], [reach], resamples, np.random.default_rng(seed))[0]


def _mean_intervals(
    columns: Floats, reaches: Sequence[float], resamples: int, rng: np.random.Generator
) -> list[Interval]:
    """Interval of the mean of each column, all from the same resampled rows.

    A reach is the half width that a t interval would have, in standard errors.
    """
    means = columns.mean(axis=0)
    blocks = _pooled(columns - means, rng)
    shifts = _resampled_sums(blocks, resamples, rng) / len(columns)
    # The standard error of a bootstrap is too small by this factor, which the quantiles have to make up for.
    widening = math.sqrt(len(blocks) / (len(blocks) - 1))
    intervals = []
    for column, mean, block, shift, reach in zip(columns.T, means, blocks.T, shifts.T, reaches, strict=True):
        levels = _bca_levels(shift, 0.0, _acceleration(block), widening * reach)
        low, high = np.clip(mean + np.quantile(shift, levels), column.min(), column.max())
        intervals.append(Interval(float(low), float(high)))
    return intervals


def _pooled(columns: Floats, rng: np.random.Generator) -> Floats:
    """The rows, or, when there are many, the sums of random blocks of rows.

    At random, because blocks of neighbours (or of every k-th row) are wrong for a sheet that is sorted.
    """
    if len(columns) <= _BLOCKS:
        return columns
    starts = np.linspace(0, len(columns), _BLOCKS, endpoint=False).astype(int)
    return np.add.reduceat(columns[rng.permutation(len(columns))], starts, axis=0)


def _resampled_sums(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Column sums of `resamples` samples of the rows, drawn with replacement."""
    count = len(rows)
    sums = []
    for size in _chunks(resamples, count):
        drawn = rng.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        sums.append(times.astype(float) @ rows)
    return np.concatenate(sums)


def _chunks(total: int, width: int) -> list[int]:
    """Sizes that add up to `total`, each a number of lines of `width` that fits into memory."""
    size = max(1, _CELLS // width)
    return [size] * (total // size) + [total % size] * (total % size > 0)


def _acceleration(influences: Floats) -> float:
    """The A of BCa: a sixth of the skewness of the estimate; 0 without any variation."""
    norm = math.sqrt(float((influences**2).sum()))
    return float(((influences / norm) ** 3).sum()) / 6 if norm else 0.0


def _bca_levels(
    replicates: Floats, estimate: float, acceleration: float, reach: float
) -> tuple[float, float]:
    """The two quantiles of the replicates that bound the interval (Efron 1987, equation 2.3)."""
    below = np.mean(replicates < estimate - _TINY) + np.mean(np.abs(replicates - estimate) <= _TINY) / 2
    edge = 1 / (len(replicates) + 1)
    bias = _NORMAL.inv_cdf(min(max(float(below), edge), 1 - edge))

    def level(step: float) -> float:
        slope = 1 - acceleration * (bias + step)
        return _NORMAL.cdf(bias + (bias + step) / slope) if slope > 0 else float(step > 0)

    return level(-reach), level(reach)


def _student_quantile(level: float, freedom: int) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else Abramowitz and Stegun 26.7.5."""
    if freedom == 1:
        return math.tan(math.pi * (level - 0.5))
    if freedom == 2:
        return (2 * level - 1) * math.sqrt(2 / (4 * level * (1 - level)))
    z = _NORMAL.inv_cdf(level)
    terms: tuple[float, ...] = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


# --- paired tests ---------------------------------------------------------------------------------------------


def paired_permutation_pvalue(
    differences: ArrayLike, *, permutations: int = RESAMPLES, seed: int = 0
) -> float:
    """Two-sided p-value of 'the mean difference is 0', by flipping the signs of the paired differences.

    Exact for up to 14 differences that are not 0, else Monte Carlo, where the observed signs count as one
    of the draws. 1 when there is no difference at all.
    """
    sample = np.asarray(differences, dtype=float)
    rng = np.random.default_rng(seed)
    rows = _pooled(sample[sample != 0, None], rng)
    sums = np.abs(_flipped_sums(rows, permutations, rng)[:, 0])
    norm = math.sqrt(float((rows**2).sum()))
    return float(np.mean(sums >= sums[0] - _TINY * norm))


def _flipped_sums(rows: Floats, flips: int, rng: np.random.Generator) -> Floats:
    """Column sums with a sign drawn for each row; the first line has the observed signs."""
    count = len(rows)
    if count <= _ENUMERABLE:
        patterns = np.arange(2 ** max(0, count - 1))[:, None] >> np.arange(count) & 1
        return np.asarray((1 - 2 * patterns) @ rows)
    sums = [rows.sum(axis=0, keepdims=True)]
    for size in _chunks(flips, count):
        bits = np.frombuffer(rng.bytes(size * -(-count // 8)), np.uint8).reshape(size, -1)
        signs = 1.0 - 2.0 * np.unpackbits(bits, axis=1, count=count)
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


# --- the winner and the others --------------------------------------------------------------------------------


class Verdict(StrEnum):
    SIGNIFICANT = "significant"
    NOT_DECIDED = "not decided"
    TIE = "tie"
    """The means are equal when rounded to 4 decimals."""


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
    table = np.asarray(scores, dtype=float)
    if not table.size:
        return None
    if table.shape != (len(table), len(bots)):
        raise ValueError(f"a table of {table.shape} scores does not fit {len(bots)} bots")
    if not np.isfinite(table).all():
        raise ValueError("scores to compare must be finite: keep only the rows on which every bot has one")
    means = [fmean(column) for column in table.T]
    order = sorted(range(len(bots)), key=lambda bot: -means[bot])
    table = table[:, order]
    gaps = table[:, :1] - table
    rng = np.random.default_rng(seed)
    tests = _step_down(gaps, 1 - confidence, resamples, rng)
    intervals = _gap_intervals(gaps, [test.critical for test in tests], resamples, rng)
    best = round(means[order[0]], 4)
    return Comparison(
        winner=bots[order[0]],
        winners=tuple(bot for bot, mean in zip(bots, means, strict=True) if round(mean, 4) == best),
        rivals=tuple(
            _rival(bots[bot], gap, round(means[bot], 4) == best, test, interval, 1 - confidence)
            for bot, gap, test, interval in zip(order[1:], gaps.T[1:], tests, intervals, strict=True)
        ),
        rows=len(table),
        confidence=confidence,
    )


@dataclass(frozen=True, slots=True)
class _Test:
    pvalue: float
    critical: float
    """What Σd ÷ √Σd² had to exceed."""


def _step_down(gaps: Floats, alpha: float, flips: int, rng: np.random.Generator) -> list[_Test]:
    """Test each column but the first against the first, which belongs to the winner and is 0.

    Flipping the signs of whole rows keeps how the bots hang together. The statistic of two bots, Σd ÷ √Σd²,
    has variance 1 under such flips whatever the spread of their differences, so that a maximum over pairs is
    fair to each of them.
    """
    rows = _pooled(gaps[np.ptp(gaps, axis=1) > 0], rng)
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
        pvalue = float(np.mean(largest >= own[rival] - _TINY))
        tests[rival] = _Test(pvalue, float(np.quantile(largest, 1 - alpha, method="higher")))
    return _made_monotone(tests, alpha)


def _made_monotone(tests: dict[int, _Test], alpha: float) -> list[_Test]:
    """From the most to the least clear rival: the first that is not decided leaves all others undecided."""
    hurdle = _Test(0.0, 0.0)
    for rival, test in reversed(tests.items()):
        critical = hurdle.critical if hurdle.pvalue > alpha else test.critical
        hurdle = tests[rival] = _Test(max(hurdle.pvalue, test.pvalue), critical)
    return [tests[rival] for rival in sorted(tests)]


def _gap_intervals(
    gaps: Floats, criticals: Sequence[float], resamples: int, rng: np.random.Generator
) -> list[Interval] | list[None]:
    """Interval of each rival's mean gap, as wide as the test that it had to pass was strict."""
    rows = len(gaps)
    if rows < 2:
        return [None] * len(criticals)
    reaches = [c * math.sqrt((rows - 1) / max(rows - c * c, _TINY)) for c in criticals]  # as a t statistic
    return _mean_intervals(gaps[:, 1:], reaches, resamples, rng)


def _rival(
    bot: str, gap: Floats, is_tie: bool, test: _Test, interval: Interval | None, alpha: float
) -> Rival:
    verdict, more = Verdict.TIE, None
    if not is_tie:
        # Test and interval see skewed differences a little differently: only what both see is claimed.
        is_clear = test.pvalue <= alpha and interval is not None and interval.low > 0
        verdict = Verdict.SIGNIFICANT if is_clear else Verdict.NOT_DECIDED
        more = None if is_clear else _more_queries(gap, test.critical, alpha)
    if interval is not None and verdict is not Verdict.SIGNIFICANT:
        interval = Interval(min(interval.low, 0.0), max(interval.high, 0.0))
    return Rival(bot, max(0.0, fmean(gap)), interval, test.pvalue, verdict, more)


def _more_queries(gap: Floats, critical: float, alpha: float) -> int | None:
    """By the sample size of a paired t test (Guenther 1981), and enough rows for so small a p-value to exist."""
    rows = len(gap)
    if rows < 2:
        return None
    noise = float(gap.std(ddof=1)) / float(gap.mean())
    needed = ((critical + _NORMAL.inv_cdf(_POWER)) * noise) ** 2 + critical**2 / 2
    fewest = math.ceil(math.log2(2 / alpha)) * rows / np.count_nonzero(gap)
    return min(max(1, math.ceil(max(needed, fewest)) - rows), MANY_QUERIES)


# --- in words -------------------------------------------------------------------------------------------------


def verdict_sentence(comparison: Comparison) -> str:
    """Who leads, by how much, and whether that is settled, for a reader without statistics."""
    if not comparison.rivals:
        return f"{comparison.winner} is the only bot: there is nothing to compare it with."
    if len(comparison.winners) > 1:
        *others, last = comparison.winners
        return f"{', '.join(others)} and {last} share the lead."
    runner_up = comparison.rivals[0]
    lead = (
        f"{comparison.winner} leads {runner_up.bot} by {difference_words(runner_up, comparison.confidence)}"
    )
    sentence = f"{lead}: {verdict_words(runner_up)}."
    if len(comparison.rivals) == 1:
        return sentence
    beaten = sum(rival.verdict is Verdict.SIGNIFICANT for rival in comparison.rivals)
    return f"{sentence} Its lead is significant over {beaten} of the {len(comparison.rivals)} others."


def difference_words(rival: Rival, confidence: float) -> str:
    """The winner's lead with its interval: '0.04 (95 % −0.01 to 0.09)'."""
    bounds = [rival.interval.low, rival.interval.high] if rival.interval else []
    numbers = [rival.difference, *bounds]
    hidden = any(number and abs(number) < 0.005 for number in numbers)
    lead, *limits = [f"{number:.{4 if hidden else 2}f}".replace("-", "−") for number in numbers]
    return f"{lead} ({confidence:.0%} {' to '.join(limits)})".replace("%", " %") if limits else lead


def verdict_words(rival: Rival) -> str:
    """The verdict; when it is open, with the queries that would settle it."""
    if rival.more_queries is None:
        return str(rival.verdict)
    if rival.more_queries >= MANY_QUERIES:
        return f"{rival.verdict}, more than {MANY_QUERIES:,} more queries would be needed"
    count = _rounded_up(rival.more_queries)
    return f"{rival.verdict}, about {count:,} more {'query' if count == 1 else 'queries'} would tell"


def _rounded_up(count: int) -> int:
    """To a multiple of half its leading power of ten, as an estimate deserves: 57 → 60, 132 → 150."""
    step = max(1, int(10 ** (len(str(count)) - 1)) // 2)
    return -(-count // step) * step


def wilson_interval(passed: int, count: int, *, confidence: float = 0.95) -> Interval | None:
    """Interval of a share (Wilson 1927): right for small counts and for shares of 0 and 1. None of nothing."""
    if not count:
        return None
    z = _NORMAL.inv_cdf((1 + confidence) / 2)
    share, scale = passed / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / scale
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


# --- agreement ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on the same items."""

    kappa: float | None
    """Cohen's kappa, ≤ 1; 0 is agreement by chance. None when undefined: no items, or both raters use one
    and the same category only."""
    interval: Interval | None
    """Of kappa; also None for a single item, and when no two ratings differ: a bootstrap cannot tell then."""
    raw: float | None
    """Share of the items with equal ratings; None without items."""
    count: int


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["quadratic"] | None = None,
    categories: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """Agreement of two raters beyond chance (Cohen 1960; 1968 with quadratic weights), with raw agreement.

    `categories` gives their order, which quadratic weights need; without it they are sorted. A rating that
    is none of them, or ratings of different length, raise ValueError.
    """
    names = list(categories) if categories is not None else sorted({*first, *second})  # type: ignore[type-var]
    table = _crosstab(first, second, names)
    count = int(table.sum())
    if not count:
        return Agreement(None, None, None, 0)
    raw = float(np.trace(table)) / count
    disagreement = _disagreement(len(names), weights)
    kappa = float(_kappas(table, disagreement))
    if math.isnan(kappa):
        return Agreement(None, None, raw, count)
    interval = None
    if raw < 1 and count > 1:
        interval = _kappa_interval(table, disagreement, kappa, confidence, resamples, seed)
    return Agreement(kappa, interval, raw, count)


def _crosstab(first: Sequence[Hashable], second: Sequence[Hashable], names: Sequence[Hashable]) -> Floats:
    position = {name: index for index, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for pair in zip(first, second, strict=True):
        unknown = [rating for rating in pair if rating not in position]
        if unknown:
            raise ValueError(f"rating {unknown[0]!r} is none of the categories {list(names)!r}")
        table[position[pair[0]], position[pair[1]]] += 1
    return table


def _disagreement(size: int, weights: Literal["quadratic"] | None) -> Floats:
    """How much each pair of categories differs, up to a factor that cancels."""
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    return steps**2 if weights == "quadratic" else (steps > 0).astype(float)


def _kappas(tables: Floats, disagreement: Floats) -> Floats:
    """Kappa of one table, or of each of many; NaN where no disagreement could be expected."""
    observed = (tables * disagreement).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = ((rows @ disagreement) * columns).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def _kappa_interval(
    table: Floats, disagreement: Floats, kappa: float, confidence: float, resamples: int, seed: int
) -> Interval:
    """Bias-corrected bootstrap over items; an acceleration was found to change next to nothing.

    Resampling items is drawing the table's cells, so that the cost does not grow with the items.
    """
    rng = np.random.default_rng(seed)
    count, cells = int(table.sum()), table.ravel()
    draws = [
        _kappas(
            rng.multinomial(count, cells / count, size).reshape(-1, *table.shape).astype(float), disagreement
        )
        for size in _chunks(resamples, cells.size)
    ]
    replicates = np.concatenate(draws)
    replicates = replicates[~np.isnan(replicates)]
    reach = math.sqrt(count / (count - 1)) * _student_quantile((1 + confidence) / 2, count - 1)
    levels = _bca_levels(replicates, kappa, 0.0, reach)
    low, high = np.quantile(replicates, levels)
    return Interval(float(low), float(high))


@dataclass(frozen=True, slots=True)
class Correlation:
    value: float
    interval: Interval | None
    """None for fewer than 4 pairs, and for a perfect correlation, of which no error can be estimated."""
    count: int


def spearman(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> Correlation | None:
    """Spearman's rank correlation, −1..1, ties sharing their mean rank; None when either side is constant.

    The interval is Fisher's z with the variance of Bonett and Wright (2000). ValueError if the lengths differ.
    """
    x, y = (_ranks(np.asarray(values, dtype=float)) for values in (first, second))
    if len(x) != len(y):
        raise ValueError(f"{len(x)} values cannot be paired with {len(y)}")
    x, y = x - (len(x) + 1) / 2, y - (len(y) + 1) / 2
    scale = math.sqrt(float(x @ x) * float(y @ y))
    if scale == 0:
        return None
    rho = min(1.0, max(-1.0, float(x @ y) / scale))
    if len(x) < 4 or abs(rho) > 1 - _TINY:
        return Correlation(rho, None, len(x))
    error = math.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    half = _NORMAL.inv_cdf((1 + confidence) / 2) * error
    bounds = Interval(math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
    return Correlation(rho, bounds, len(x))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group], dtype=float)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """What humans would have said on average about all items, of which they labelled some."""

    value: float
    interval: Interval
    judge_mean: float
    """Uncorrected, over all items."""
    trust: float
    """0..1: how far the judge's scores of unlabelled items were used; 0 is labels alone."""
    labelled: int
    count: int


def ppi_mean(
    judged: Sequence[float], labels: Sequence[float | None], *, confidence: float = 0.95
) -> CorrectedMean | None:
    """Mean human score over all items: the judge scored all, humans a random part of them (None: no label).

    Prediction-powered inference with power tuning (Angelopoulos, Duchi and Zrnic 2023, PPI++): a biased judge
    does not bias it, a useless one does not widen it. None for fewer than two labels.
    """
    scores = np.asarray(judged, dtype=float)
    is_labelled = np.array([label is not None for label in labels], dtype=bool)
    if len(scores) != len(is_labelled):
        raise ValueError(f"{len(scores)} scores cannot be paired with {len(is_labelled)} labels")
    human = np.array([label for label in labels if label is not None], dtype=float)
    if len(human) < 2:
        return None
    seen, unseen = scores[is_labelled], scores[~is_labelled]
    trust = _trust(human, seen, len(unseen))
    residual = human - trust * seen
    variance = float(residual.var(ddof=1)) / len(human)
    value = float(residual.mean())
    if trust:
        value += trust * float(unseen.mean())
        variance += trust**2 * float(scores.var(ddof=1)) / len(unseen)
    half = _student_quantile((1 + confidence) / 2, len(human) - 1) * math.sqrt(variance)
    bounds = Interval(value - half, value + half)
    return CorrectedMean(value, bounds, float(scores.mean()), trust, len(human), len(scores))


def _trust(human: Floats, seen: Floats, unseen: int) -> float:
    """The weight of the judge that makes the variance least, in 0..1."""
    spread = float(seen.var(ddof=1))
    if not unseen or spread == 0:
        return 0.0
    shared = float(np.cov(human, seen)[0, 1])
    return min(1.0, max(0.0, shared / (spread * (1 + len(human) / unseen))))
