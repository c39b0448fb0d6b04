"""Checks of a lead that differences may feign when they are skewed: flipping signs makes them look symmetric."""

import math
from collections.abc import Sequence

import numpy as np

from rag_eval.results.intervals import TINY, Floats, pooled, resampled_counts

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
