"""Intervals of one mean or one share, and the bootstrap that they and others are made with."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_eval.results.summary import FEWEST_ROWS

Floats = NDArray[np.float64]

RESAMPLES = 10_000
TINY = 1e-9
"""Differences of equal sums that were added in another order."""
NORMAL = NormalDist()
_BLOCKS = 2_000
"""Rows beyond this are pooled at random into this many blocks: time and memory stay bounded."""
_BLOCKS_AT_ONCE = 50
"""More would need a second copy of the rows."""
_CELLS = 250_000
"""Numbers in one chunk of resamples: 2 MB."""
_DRAWN_AT_ONCE = 16_000
"""Numbers: 128 KB."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    def has(self, value: float) -> bool:
        return self.low <= value <= self.high

    def with_zero(self) -> "Interval":
        """That of a difference which is not significant."""
        return Interval(min(self.low, 0.0), max(self.high, 0.0))

    def mirrored(self) -> "Interval":
        """That of the share of all others."""
        return Interval(1 - self.high, 1 - self.low)


def bootstrap_mean_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Interval of the mean by bootstrap over rows: bias-corrected, accelerated and widened for small samples.

    Never outside the range of the values. None for fewer than two; a single point when all are equal, since
    a bootstrap cannot know of values that it has not seen.
    """
    return _bootstrap_mean_intervals([values], confidence, resamples, seed)[0]


def _bootstrap_mean_intervals(
    samples: Sequence[ArrayLike], confidence: float, resamples: int = RESAMPLES, seed: int = 0
) -> list[Interval | None]:
    """Those of several samples of one length: of each as if it were alone, but the same rows are drawn for all."""
    columns = [np.asarray(values, dtype=float)[:, None] for values in samples]
    count = min(map(len, columns), default=0)
    if count < 2:
        return [None] * len(columns)
    reach = student_quantile((1 + confidence) / 2, count - 1)
    rngs = [np.random.default_rng(seed) for _ in columns]
    blocks = [pooled(column - column.mean(axis=0), rng) for column, rng in zip(columns, rngs, strict=True)]
    sums = _resampled_sums(blocks, resamples, rngs[0])
    return [_intervals(*each, [reach])[0] for each in zip(columns, blocks, sums, strict=True)]


def reported_interval(
    values: Sequence[float], confidence: float = 0.95, *, clusters: Sequence[int] | None
) -> Interval | None:
    """The bootstrap interval of the mean; None for fewer than FEWEST_ROWS values.

    `clusters` are numbers of what each value belongs to, such as a conversation: these are resampled then, and at least
    FEWEST_ROWS of them are needed.
    """
    return reported_intervals([values], confidence, clusters=clusters)[0]


def reported_intervals(
    columns: Sequence[Sequence[float]], confidence: float = 0.95, *, clusters: Sequence[int] | None
) -> list[Interval | None]:
    """Those of several columns of one length, in little more time than that of one."""
    blocks = [values if clusters is None else cluster_means(values, clusters) for values in columns]
    if min(map(len, blocks), default=0) < FEWEST_ROWS:
        return [None] * len(columns)
    found = _bootstrap_mean_intervals(blocks, confidence)
    if clusters is None:
        return found
    return [
        each and Interval(max(each.low, min(values)), min(each.high, max(values)))
        for each, values in zip(found, columns, strict=True)
    ]


def cluster_means(values: ArrayLike, clusters: ArrayLike) -> Floats:
    """One number for each cluster, with the same mean as all values; a bootstrap draws clusters as a whole.

    The mean is a ratio of sums over clusters, which is linearised (Cochran 1977, section 6.3): each cluster stands for
    the mean plus its part in the deviation from it.
    """
    _, places = np.unique(np.asarray(clusters), return_inverse=True)
    sums, counts = np.bincount(places, weights=np.asarray(values, dtype=float)), np.bincount(places)
    mean = sums.sum() / max(counts.sum(), 1)
    blocks: Floats = mean + (sums - mean * counts) * len(counts) / max(counts.sum(), 1)
    return blocks


def share_interval(clusters: Sequence[tuple[int, int]]) -> Interval | None:
    """95% interval of a share of items that belong together; None for fewer than FEWEST_ROWS clusters.

    `clusters` are how many items passed, and how many there are. The interval is Wilson's for as many independent items
    as tell as much (Dean and Pagano 2015), and for a share of 0 or 1 for as many as there are clusters.
    """
    passed, counts = np.asarray(clusters, dtype=float).T
    if len(counts) < FEWEST_ROWS:
        return None
    total = float(counts.sum())
    share = float(passed.sum()) / total
    parts = (passed - share * counts) / total
    variance = float(parts @ parts) * len(counts) / (len(counts) - 1)
    worth = min(total, share * (1 - share) / variance) if variance > TINY**2 else len(counts)
    reach = student_quantile(0.975, len(counts) - 1)
    return wilson_interval(share * worth, worth, reach=reach)


def wilson_interval(passed: float, count: float, *, reach: float | None = None) -> Interval | None:
    """95% interval of a share (Wilson 1927): right for small counts and for shares of 0 and 1. None of nothing.

    `reach` is its half width in standard errors, by default that of a normal distribution.
    """
    if not count:
        return None
    z = reach or NORMAL.inv_cdf(0.975)
    share, scale = passed / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / scale
    # Rounding would put an end of a share of 0 or 1 beside it.
    return Interval(
        max(0.0, middle - half) if passed else 0.0, min(1.0, middle + half) if passed < count else 1.0
    )


def quantile_interval(
    values: Sequence[float], share: float, confidence: float = 0.95
) -> tuple[float | None, float | None]:
    """Limits of a quantile between two of the values, whatever they are distributed like (Thompson 1936).

    `share` is 0.5 for the median. A limit is None if there are too few values for one: below 72 the 95th percentile has
    no upper limit of a 95% interval.
    """
    ordered, count = sorted(values), len(values)
    chance, total = (1 - confidence) / 2, 0.0
    low = high = None
    # As many values are below the quantile as successes in so many trials; fewer than the first ones never are.
    first = max(0, math.floor(count * share - 10 * math.sqrt(count * share * (1 - share))))
    for below in range(first, count + 1):
        total += math.exp(
            math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
            + below * math.log(share) + (count - below) * math.log1p(-share)
        )  # fmt: skip
        if total <= chance + TINY:
            low = ordered[below]
        if total >= 1 - chance - TINY:
            high = ordered[below] if below < count else None
            break
    return low, high


def mean_intervals(
    columns: Floats, reaches: Sequence[float], resamples: int, rng: np.random.Generator
) -> list[Interval]:
    """Interval of the mean of each column, all from the same resampled rows.

    A reach is the half width that a t interval would have, in standard errors.
    """
    blocks = pooled(columns - columns.mean(axis=0), rng)
    (sums,) = _resampled_sums([blocks], resamples, rng)
    return _intervals(columns, blocks, sums, reaches)


def _intervals(columns: Floats, blocks: Floats, sums: Floats, reaches: Sequence[float]) -> list[Interval]:
    """By the sums of resampled blocks, which are of the deviations from the means."""
    means, shifts = columns.mean(axis=0), sums / len(columns)
    # The standard error of a bootstrap is too small by this factor, which the quantiles have to make up for.
    widening = math.sqrt(len(blocks) / (len(blocks) - 1))
    intervals = []
    for column, mean, block, shift, reach in zip(columns.T, means, blocks.T, shifts.T, reaches, strict=True):
        levels = bca_levels(shift, 0.0, _acceleration(block), widening * reach)
        low, high = np.clip(mean + quantiles(shift, levels), column.min(), column.max())
        intervals.append(Interval(float(low), float(high)))
    return intervals


def pooled(columns: Floats, rng: np.random.Generator) -> Floats:
    """The rows, or, when there are many, the sums of random blocks of rows.

    At random, because blocks of neighbours (or of every k-th row) are wrong for a sheet that is sorted.
    """
    if len(columns) <= _BLOCKS:
        return columns
    starts = np.linspace(0, len(columns), _BLOCKS, endpoint=False).astype(int).reshape(-1, _BLOCKS_AT_ONCE)
    shuffled = rng.permutation(len(columns))
    sums = []
    for edges, end in zip(starts, [*starts[1:, 0], len(columns)], strict=True):
        sums.append(np.add.reduceat(columns[shuffled[edges[0] : end]], edges - edges[0], axis=0))
    return np.concatenate(sums)


def _resampled_sums(tables: Sequence[Floats], resamples: int, rng: np.random.Generator) -> list[Floats]:
    """By table: column sums of `resamples` samples of its rows, drawn with replacement; of all tables the same rows."""
    drawn = [
        [counts @ rows for rows in tables] for counts in resampled_counts(len(tables[0]), resamples, rng)
    ]
    return [np.concatenate(sums) for sums in zip(*drawn, strict=True)]


def resampled_counts(count: int, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How often each of `count` rows is in each sample of as many, drawn with replacement.

    Some samples at a time, in the place of those before them.
    """
    sizes = chunks(resamples, count)
    counts = np.empty((max(sizes), count))
    for size in sizes:
        _fill(counts[:size], rng)
        yield counts[:size]


def _fill(counts: Floats, rng: np.random.Generator) -> None:
    """A few samples at a time: what takes more memory gives it back, and fetches it again, every time."""
    width = counts.shape[1]
    for some in np.split(counts, range(0, len(counts), max(1, _DRAWN_AT_ONCE // width))[1:]):
        drawn = rng.integers(0, width, some.shape)
        drawn += width * np.arange(len(some))[:, None]
        some[:] = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(some.shape)


def chunks(total: int, width: int) -> list[int]:
    """Sizes that add up to `total`, each a number of lines of `width` that fits into memory."""
    size = max(1, _CELLS // width)
    return [size] * (total // size) + [total % size] * (total % size > 0)


def _acceleration(influences: Floats) -> float:
    """The A of BCa: a sixth of the skewness of the estimate; 0 without any variation."""
    norm = math.sqrt(float((influences**2).sum()))
    return float(((influences / norm) ** 3).sum()) / 6 if norm else 0.0


def bca_levels(replicates: Floats, estimate: float, acceleration: float, reach: float) -> tuple[float, float]:
    """The two quantiles of the replicates that bound the interval (Efron 1987, equation 2.3)."""
    below = np.mean(replicates < estimate - TINY) + np.mean(np.abs(replicates - estimate) <= TINY) / 2
    edge = 1 / (len(replicates) + 1)
    bias = NORMAL.inv_cdf(min(max(float(below), edge), 1 - edge))

    def level(step: float) -> float:
        slope = 1 - acceleration * (bias + step)
        return NORMAL.cdf(bias + (bias + step) / slope) if slope > 0 else float(step > 0)

    return level(-reach), level(reach)


def quantiles(values: Floats, levels: ArrayLike) -> Floats:
    """What numpy.quantile gives, bit by bit. That loads numpy.ma on the way, which takes 6 MB and 35 ms."""
    ordered = np.sort(values)
    places = (len(ordered) - 1) * np.asarray(levels, dtype=float)
    below = ordered[np.floor(places).astype(int)]
    above = ordered[np.ceil(places).astype(int)]
    share, gap = places % 1, above - below
    found: Floats = np.where(share < 0.5, below + gap * share, above - gap * (1 - share))
    return found


def student_quantile(level: float, freedom: float) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else Abramowitz and Stegun 26.7.5 (from 3 on)."""
    if freedom == 1:
        return math.tan(math.pi * (level - 0.5))
    if freedom == 2:
        return (2 * level - 1) * math.sqrt(2 / (4 * level * (1 - level)))
    z = NORMAL.inv_cdf(level)
    terms: tuple[float, ...] = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
