"""What labels of a stratified random sample say: what people would on average, and which threshold they imply."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag_eval.results.intervals import Floats, Interval, resampled_counts, student_quantile
from rag_eval.results.summary import FEWEST_OF_CLASS, GOAL

FEWEST_OF_STRATUM = 2
"""Labels without which a stratum has no variance."""
_PRIOR = 2.0
"""Labels that the pooled variance of all strata counts for in the variance of each."""
_DOUBT = 2.0
"""Labels that the variance of the human scores counts for in that of the residuals: the judge may err rarely."""
_TOLERANCE = 1e-12
_LEAST_EXACT = 3
"""Degrees of freedom from which on `student_quantile` takes fractions."""


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
    more_labels: int | None
    """Further labels until the interval is about ±0.05; None if no number of labels would do."""


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """The labelled cases of a stratified random sample, position by position."""

    human: Sequence[float]
    judge: Sequence[float]
    """The judge's scores of the same cases."""
    strata: Sequence[str]
    sizes: Mapping[str, int]
    """By stratum: how many cases it has, labelled or not."""
    groups: Sequence[int] | None = None
    """Of each case a number that cases share which belong together, as in a conversation; None if none do."""


def stratified_mean(
    judged: Sequence[float],
    sample: LabelledSample,
    *,
    confidence: float = 0.95,
    groups: Sequence[int] | None = None,
) -> CorrectedMean | None:
    """Mean human score over all items: the judge scored all, people a random part of each stratum.

    The estimate is that of power-tuned prediction-powered inference (Angelopoulos, Duchi and Zrnic 2023, PPI++) over
    strata (Fisch et al. 2024), with one trust for all of them: a biased judge does not bias it. The variance is that of
    two-phase sampling (Cochran 1977, 12.2): that of the items, which are a sample of such queries, and that of the
    labels within each stratum, drawn towards the strata's common one and a little towards that of the human scores.
    Student's t has the degrees of freedom of Satterthwaite (1946). `judged` are all scores, those of `sample` included,
    and `groups` are theirs, as in `sample`, two or more. The variance of items that belong together is larger by their
    design effect (Kish 1965, 8.2), that of the scores or of the labels, and that of labels by the one of the residuals.
    None if a stratum has fewer than FEWEST_OF_STRATUM labels, unless it is no larger and all of it is labelled.
    """
    parts = _parts(sample)
    if parts is None:
        return None
    scores = np.asarray(judged, dtype=float)
    count = len(sample.human)
    trust = _common_trust(parts)
    residuals = [part.human - trust * part.judge for part in parts]
    value = trust * float(scores.mean())
    value += math.fsum(part.weight * float(each.mean()) for part, each in zip(parts, residuals, strict=True))
    human, judge = (np.asarray(each, dtype=float) for each in (sample.human, sample.judge))
    terms = _Variances.of(parts, residuals, len(scores), is_fitted=trust > 0).of_groups(
        of_items=max(_design_effect(scores, groups), _design_effect(human, sample.groups)),
        of_labels=_design_effect(human - trust * judge, sample.groups),
        count=min(len({*each}) for each in (groups, sample.groups, range(count)) if each is not None),
    )
    half = terms.half_width(confidence)
    unlabelled = 1 - count / len(scores)
    return CorrectedMean(
        value=value,
        interval=Interval(value - half, value + half),
        judge_mean=float(scores.mean()),
        trust=max(0.0, trust * unlabelled),
        labelled=count,
        count=len(scores),
        more_labels=terms.more_labels(len(scores), confidence),
    )


@dataclass(frozen=True, slots=True)
class _LabelledStratum:
    """One stratum."""

    human: Floats
    judge: Floats
    weight: float
    """Its share of all items."""
    size: int


def _parts(sample: LabelledSample) -> list[_LabelledStratum] | None:
    """The strata that have items; None if there is none, or if one has too few labels."""
    human, judge = np.asarray(sample.human, dtype=float), np.asarray(sample.judge, dtype=float)
    strata = np.asarray(list(sample.strata))
    total = sum(sample.sizes.values())
    parts = []
    for name, size in sample.sizes.items():
        chosen = strata == name if len(strata) else np.zeros(0, dtype=bool)
        labels = int(chosen.sum())
        if size and labels < FEWEST_OF_STRATUM and labels < size:
            return None
        if size:
            parts.append(_LabelledStratum(human[chosen], judge[chosen], size / total, max(size, labels)))
    return parts if parts and len(human) > len(parts) else None


def _common_trust(parts: Sequence[_LabelledStratum]) -> float:
    """The weight of the judge that makes the variance within the strata least, in 0..1."""
    shared = spread = 0.0
    for part in parts:
        if len(part.human) > 1:
            share = part.weight**2 / len(part.human)
            covariance = np.cov(part.human, part.judge)
            shared += share * float(covariance[0, 1])
            spread += share * float(covariance[1, 1])
    return min(1.0, max(0.0, shared / spread)) if spread > _TOLERANCE else 0.0


@dataclass(frozen=True, slots=True)
class _Variances:
    """The terms of the variance of the estimate."""

    items: float
    """Of the items as a sample of such queries; no label makes it less."""
    spreads: Floats
    """By stratum: variance of the residuals."""
    weights: Floats
    labels: Floats
    sizes: Floats
    count: float = math.inf
    """Conversations, or labels; whatever is less."""

    @classmethod
    def of(
        cls, parts: Sequence[_LabelledStratum], residuals: Sequence[Floats], count: int, *, is_fitted: bool
    ) -> "_Variances":
        """`is_fitted` if a trust was chosen that makes these residuals small."""
        weights = np.array([part.weight for part in parts])
        labels = np.array([len(part.human) for part in parts], dtype=float)
        own = np.array([_variance(each) for each in residuals])
        squares, freedom = float(((labels - 1) * own).sum()), float(labels.sum()) - len(parts)
        pooled, human = squares / freedom, _variance_of_all(parts)
        doubted = (squares + _DOUBT * human) / (freedom - is_fitted + _DOUBT)
        drawn = ((labels - 1) * own + _PRIOR * pooled) / (labels - 1 + _PRIOR)
        return cls(
            items=human / count,
            spreads=drawn + max(0.0, doubted - pooled),
            weights=weights,
            labels=labels,
            sizes=np.array([part.size for part in parts], dtype=float),
        )

    def of_groups(self, *, of_items: float, of_labels: float, count: int) -> "_Variances":
        """The same with these design effects, for so many conversations."""
        return replace(self, items=self.items * of_items, spreads=self.spreads * of_labels, count=count)

    def half_width(self, confidence: float, factor: float = 1.0) -> float:
        """Of the interval, if each stratum had `factor` times its labels."""
        labels = np.minimum(self.labels * factor, self.sizes)
        terms = self.weights**2 * (1 / labels - 1 / self.sizes) * self.spreads
        variance = float(terms.sum()) + self.items
        independent = min(float(labels.sum()), self.count * max(1.0, factor))
        squares = float((terms**2 / (labels - 1 + _PRIOR)).sum()) + self.items**2 / (independent - 1)
        if squares <= _TOLERANCE**2:
            return 0.0
        # The shrunk variances seem to know more than there are labels to know it from.
        freedom = min(variance**2 / squares, max(1.0, independent - len(labels)))
        exact = freedom if freedom >= _LEAST_EXACT else max(1, int(freedom))
        return student_quantile((1 + confidence) / 2, exact) * math.sqrt(variance)

    def more_labels(self, count: int, confidence: float) -> int | None:
        """Further labels until half the interval is GOAL; None if all labels of all items would not do."""
        now = int(self.labels.sum())
        if self.half_width(confidence, count / now) > GOAL:
            return None
        low, high = now, count
        while low < high:
            middle = (low + high) // 2
            low, high = (
                (low, middle) if self.half_width(confidence, middle / now) <= GOAL else (middle + 1, high)
            )
        return low - now


def _design_effect(values: Floats, groups: Sequence[int] | None) -> float:
    """By how much the variance of a mean is larger since values of one group are alike; 1 or more."""
    if groups is None:
        return 1.0
    _, places = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(places, weights=values - values.mean())
    alone = _variance(values) * len(values)
    together = float((sums**2).sum()) * len(sums) / (len(sums) - 1)
    return max(1.0, together / alone) if alone > _TOLERANCE else 1.0


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _variance_of_all(parts: Sequence[_LabelledStratum]) -> float:
    """Variance of the human scores of all items: within the strata and between them, without bias."""
    means = np.array([float(part.human.mean()) for part in parts])
    weights = np.array([part.weight for part in parts])
    within = np.array([_variance(part.human) for part in parts])
    labels = np.array([len(part.human) for part in parts])
    between = float((weights * (means - float(weights @ means)) ** 2).sum())
    excess = float((weights * (1 - weights) * within / labels).sum())
    return max(0.0, float(weights @ within) + between - excess)


_GOOD = 0.5
"""A response is good for people if its label is at least this."""
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class ImpliedThreshold:
    value: float
    """Scores below it tell bad responses: halfway between two scores of the judge."""
    interval: Interval
    labels: int
    equals: Interval
    """Thresholds above its low end, and up to its high end, divide the labelled cases as the value does."""


def implied_threshold(
    judge: Sequence[float],
    human: Sequence[float],
    weights: Sequence[float] | None = None,
    groups: Sequence[int] | None = None,
) -> ImpliedThreshold | None:
    """The score at which true-positive rate + true-negative rate is greatest (Youden 1950), with a 95% interval.

    `weights` are the numbers of cases that each labelled one stands for; without them all count the same. Of equally
    good places it is the middle one. The interval is that of a percentile bootstrap over the labelled cases, or over
    `groups` of them such as conversations, and goes from score to score: between two scores any threshold is as good.
    None for fewer than FEWEST_OF_CLASS good or bad responses, and if no place is better than chance.
    """
    scores, labels = np.asarray(judge, dtype=float), np.asarray(human, dtype=float)
    is_good = labels >= _GOOD
    if min(int(is_good.sum()), int((~is_good).sum())) < FEWEST_OF_CLASS:
        return None
    order = np.argsort(scores, kind="stable")
    scores, is_good = scores[order], is_good[order]
    share = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)[order]
    places = np.flatnonzero(np.diff(scores)) + 1  # a place lies before the score of this index
    if not len(places):
        return None
    best = _best(share[None, :], is_good, places)
    if not len(best):
        return None
    numbers = np.arange(len(scores)) if groups is None else np.asarray(groups)[order]
    _, cluster = np.unique(numbers, return_inverse=True)
    drawn = np.concatenate(
        [
            _best(counts[:, cluster] * share, is_good, places)
            for counts in resampled_counts(int(cluster.max()) + 1, _RESAMPLES, np.random.default_rng(0))
        ]
    )
    middle = places[best[0, 1]]
    return ImpliedThreshold(
        value=float(scores[middle - 1] + scores[middle]) / 2,
        interval=Interval(
            float(np.quantile(scores[places[drawn[:, 0]] - 1], 0.025)),
            float(np.quantile(scores[places[drawn[:, 2]]], 0.975)),
        ),
        labels=len(scores),
        equals=Interval(float(scores[middle - 1]), float(scores[middle])),
    )


def _best(shares: Floats, is_good: NDArray[np.bool_], places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of each line of shares the first, the middle and the last place with the greatest Youden index.

    Lines without a class, or without a place that is better than chance, are left out.
    """
    good, bad = shares * is_good, shares * ~is_good
    all_good, all_bad = good.sum(axis=1, keepdims=True), bad.sum(axis=1, keepdims=True)
    usable = (all_good[:, 0] > 0) & (all_bad[:, 0] > 0)
    below_good = np.cumsum(good[usable], axis=1)[:, places - 1] / all_good[usable]
    below_bad = np.cumsum(bad[usable], axis=1)[:, places - 1] / all_bad[usable]
    youden = below_bad - below_good
    greatest = youden.max(axis=1, keepdims=True)
    is_best = youden >= greatest - 1e-9
    ranks = np.cumsum(is_best, axis=1)
    wanted = (1, (ranks[:, -1:] + 1) // 2, ranks[:, -1:])
    found = np.stack([np.argmax((ranks == rank) & is_best, axis=1) for rank in wanted], axis=1)
    return np.asarray(found[greatest[:, 0] > 1e-9])
