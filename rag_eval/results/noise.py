"""How far the judge agrees with itself, when it was asked several times for each score."""

import math
from collections.abc import Mapping
from statistics import variance

from rag_eval.records import CaseResult


class NoiseTally:
    """Folds the samples of scores into one standard deviation a metric. Holds sums only."""

    def __init__(self) -> None:
        self._variances: dict[str, float] = {}
        self._scores: dict[str, int] = {}

    def add(self, result: CaseResult) -> None:
        for name, score in (*result.scores.items(), *result.further.items()):
            if len(score.samples) > 1:
                self._variances[name] = self._variances.get(name, 0.0) + variance(score.samples)
                self._scores[name] = self._scores.get(name, 0) + 1

    def deviations(self) -> Mapping[str, float]:
        """By metric: the standard deviation between samples, pooled over the scores that have several."""
        return {name: math.sqrt(total / self._scores[name]) for name, total in self._variances.items()}
