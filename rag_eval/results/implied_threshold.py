"""The threshold of a metric that human labels imply: where its scores part good responses from bad ones best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_eval.results.intervals import Floats, Interval, resampled_counts
from rag_eval.results.summary import FEWEST_OF_CLASS

GOOD = 0.5
"""A response is good for people if its label is at least this."""
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class ImpliedThreshold:
    value: float
    """Scores below it tell bad responses: halfway between two scores of the judge."""
    interval: Interval
    labels: int


def implied_threshold(
    judge: Sequence[float], human: Sequence[float], weights: Sequence[float] | None = None
) -> ImpliedThreshold | None:
    """The score at which true-positive rate + true-negative rate is greatest (Youden 1950), with a 95% interval.

    `weights` are the numbers of cases that each labelled one stands for; without them all count the same. Of equally
    good places it is the middle one. The interval is that of a percentile bootstrap over the labelled cases. None for
    fewer than FEWEST_OF_CLASS good or bad responses, and if no place is better than chance.
    """
    scores, labels = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    is_good = labels >= GOOD
    if min(int(is_good.sum()), int((~is_good).sum())) < FEWEST_OF_CLASS:
        return None
    order = np.argsort(scores, kind="stable")
    scores, is_good = scores[order], is_good[order]
    share = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)[order]
    places = np.flatnonzero(np.diff(scores)) + 1  # a place lies before the score of this index
    if not len(places):
        return None
    cuts = (scores[places - 1] + scores[places]) / 2
    best = _best(share[None, :], is_good, places)
    if not len(best):
        return None
    drawn = [
        _best(counts * share, is_good, places)
        for counts in resampled_counts(len(scores), _RESAMPLES, np.random.default_rng(0))
    ]
    found = cuts[np.concatenate(drawn)]
    low, high = np.quantile(found, (0.025, 0.975))
    return ImpliedThreshold(float(cuts[best[0]]), Interval(float(low), float(high)), len(scores))


def _best(shares: Floats, is_good: NDArray[np.bool_], places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of each line of shares the place of the greatest Youden index; lines without one, or a class, are left out."""
    good, bad = shares * is_good, shares * ~is_good
    all_good, all_bad = good.sum(axis=1, keepdims=True), bad.sum(axis=1, keepdims=True)
    usable = (all_good[:, 0] > 0) & (all_bad[:, 0] > 0)
    below_good = np.cumsum(good[usable], axis=1)[:, places - 1] / all_good[usable]
    below_bad = np.cumsum(bad[usable], axis=1)[:, places - 1] / all_bad[usable]
    youden = below_bad - below_good
    greatest = youden.max(axis=1, keepdims=True)
    is_best = youden >= greatest - 1e-9
    ranks = np.cumsum(is_best, axis=1)
    middle = (ranks == (ranks[:, -1:] + 1) // 2) & is_best
    return np.asarray(np.argmax(middle, axis=1)[greatest[:, 0] > 1e-9])
