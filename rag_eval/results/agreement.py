"""How far two raters agree."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rag_eval.results.intervals import (
    NORMAL,
    RESAMPLES,
    TINY,
    Floats,
    Interval,
    bca_levels,
    chunks,
    pooled,
    resampled_counts,
    student_quantile,
)
from rag_eval.results.summary import FEWEST_ROWS


@dataclass(frozen=True, slots=True)
class CohenKappa:
    """How far two raters agree on the same items."""

    kappa: float | None
    """Cohen's kappa, ≤ 1; 0 is agreement by chance. None when undefined: no items, or both raters use one
    and the same category only."""
    interval: Interval | None
    """Of kappa; also None where a bootstrap cannot tell: for a single item, when no two ratings differ, and when a
    rater uses one category only, as kappa is 0 then whatever the other one says."""
    raw: float | None
    """Share of the items with equal ratings; None without items."""
    count: int


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Literal["quadratic"] | None = None,
    categories: Sequence[Hashable] | None = None,
    groups: Sequence[int] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CohenKappa:
    """Agreement of two raters beyond chance (Cohen 1960; 1968 with quadratic weights), with raw agreement.

    `categories` gives their order, which quadratic weights need; without it they are sorted. A rating that
    is none of them, or ratings of different length, raise ValueError. `groups` are numbers of what each item belongs
    to, such as a conversation: the interval resamples these, and there is none for fewer than FEWEST_ROWS of them.
    """
    names = list(categories) if categories is not None else sorted({*first, *second})  # type: ignore[type-var]
    table = _crosstab(first, second, names)
    count = int(table.sum())
    if not count:
        return CohenKappa(None, None, None, 0)
    raw = float(np.trace(table)) / count
    disagreement = _disagreement(len(names), weights)
    kappa = float(_kappas(table, disagreement))
    if math.isnan(kappa):
        return CohenKappa(None, None, raw, count)
    interval = None
    if raw < 1 and not _has_constant_rater(table):
        if groups is None:
            interval = _kappa_interval(table, disagreement, kappa, confidence, resamples, seed)
        else:
            places = [[names.index(rating) for rating in ratings] for ratings in (first, second)]
            interval = _interval_over_groups(places, groups, disagreement, kappa, confidence, resamples, seed)
    return CohenKappa(kappa, interval, raw, count)


def _crosstab(first: Sequence[Hashable], second: Sequence[Hashable], names: Sequence[Hashable]) -> Floats:
    position = {name: index for index, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for pair in zip(first, second, strict=True):
        unknown = [rating for rating in pair if rating not in position]
        if unknown:
            raise ValueError(f"rating {unknown[0]!r} is none of the categories {list(names)!r}")
        table[position[pair[0]], position[pair[1]]] += 1
    return table


def _has_constant_rater(table: Floats) -> bool:
    return any(np.count_nonzero(table.sum(axis=side)) == 1 for side in (0, 1))


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
        for size in chunks(resamples, cells.size)
    ]
    replicates = np.concatenate(draws)
    replicates = replicates[~np.isnan(replicates)]
    return _bounds(replicates, kappa, count, confidence)


def _interval_over_groups(
    places: Sequence[Sequence[int]],
    groups: Sequence[int],
    disagreement: Floats,
    kappa: float,
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval | None:
    """The same over groups of items; `places` are the categories of each rater's ratings."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    if len(numbers) < FEWEST_ROWS:
        return None
    tables = np.zeros((len(numbers), *disagreement.shape))
    np.add.at(tables, ([numbers[group] for group in groups], *places), 1)
    rng = np.random.default_rng(seed)
    blocks = pooled(tables.reshape(len(numbers), -1), rng)
    sums = np.concatenate([counts @ blocks for counts in resampled_counts(len(blocks), resamples, rng)])
    replicates = _kappas(sums.reshape(-1, *disagreement.shape), disagreement)
    return _bounds(replicates[~np.isnan(replicates)], kappa, len(blocks), confidence)


def _bounds(replicates: Floats, estimate: float, count: int, confidence: float) -> Interval:
    """By the bias-corrected bootstrap over `count` units, as wide as Student's t has it for so few."""
    reach = math.sqrt(count / (count - 1)) * student_quantile((1 + confidence) / 2, count - 1)
    low, high = np.quantile(replicates, bca_levels(replicates, estimate, 0.0, reach))
    return Interval(float(low), float(high))


def kappa_difference(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    reference: Sequence[Hashable],
    groups: Sequence[int],
    *,
    categories: Sequence[Hashable],
    weights: Literal["quadratic"] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Interval of the kappa of `second` and `reference` minus that of `first` and `reference`, of the same items.

    A paired bootstrap (Vanbelle and Albert 2008): each resample has whole groups of items, such as the rows that
    several bots answer, and both kappas are computed from it. None for fewer than two groups, where a kappa is
    undefined, and where no resample changes the difference.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    size = len(categories)
    tables = np.zeros((len(numbers), 2, size, size))
    position = {name: index for index, name in enumerate(categories)}
    for one, other, label, group in zip(first, second, reference, groups, strict=True):
        for rater, rating in enumerate((one, other)):
            tables[numbers[group], rater, position[rating], position[label]] += 1
    disagreement = _disagreement(size, weights)
    estimate = _difference(tables.sum(axis=0), disagreement)
    if math.isnan(estimate):
        return None
    rng = np.random.default_rng(seed)
    blocks = pooled(tables.reshape(len(numbers), -1), rng)
    sums = [counts @ blocks for counts in resampled_counts(len(blocks), resamples, rng)]
    replicates = _difference(np.concatenate(sums).reshape(-1, 2, size, size), disagreement)
    replicates = replicates[~np.isnan(replicates)]
    if not len(replicates) or float(np.ptp(replicates)) < TINY:
        return None
    return _bounds(replicates, float(estimate), len(blocks), confidence)


def _difference(tables: Floats, disagreement: Floats) -> Any:
    """The second kappa minus the first, of one pair of tables or of many."""
    kappas = _kappas(tables, disagreement)
    return kappas[..., 1] - kappas[..., 0]


@dataclass(frozen=True, slots=True)
class Correlation:
    value: float
    interval: Interval | None
    """None for fewer than 4 pairs, and for a perfect correlation, of which no error can be estimated."""
    count: int


def spearman(
    first: ArrayLike, second: ArrayLike, *, groups: Sequence[int] | None = None
) -> Correlation | None:
    """Spearman's rank correlation, −1..1, ties sharing their mean rank; None when either side is constant.

    The interval is Fisher's z with the variance of Bonett and Wright (2000). ValueError if the lengths differ. `groups`
    are numbers of what each pair belongs to: the variance is then larger by the factor by which it is in the linearised
    correlation, and there is no interval for fewer than FEWEST_ROWS of them.
    """
    x, y = (_ranks(np.asarray(values, dtype=float)) for values in (first, second))
    if len(x) != len(y):
        raise ValueError(f"{len(x)} values cannot be paired with {len(y)}")
    x, y = x - (len(x) + 1) / 2, y - (len(y) + 1) / 2
    scale = math.sqrt(float(x @ x) * float(y @ y))
    if scale == 0:
        return None
    rho = min(1.0, max(-1.0, float(x @ y) / scale))
    if len(x) < 4 or abs(rho) > 1 - TINY:
        return Correlation(rho, None, len(x))
    reach, error = NORMAL.inv_cdf(0.975), math.sqrt((1 + rho**2 / 2) / (len(x) - 3))
    if groups is not None:
        _, places = np.unique(groups, return_inverse=True)
        parts = x * y / scale - rho / 2 * (x**2 / (x @ x) + y**2 / (y @ y))  # in the correlation, linearised
        sums = np.bincount(places, weights=parts)
        if len(sums) < FEWEST_ROWS:
            return Correlation(rho, None, len(x))
        error *= math.sqrt(max(1.0, float(sums @ sums) / float(parts @ parts)))
        reach = student_quantile(0.975, len(sums) - 1)
    half = reach * error
    bounds = Interval(math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
    return Correlation(rho, bounds, len(x))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[group], dtype=float)
