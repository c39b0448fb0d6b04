"""How far the judge agrees with itself, when it was asked several times for each score."""

import math
from collections.abc import Mapping
from fractions import Fraction
from statistics import variance

from rag_eval.records import CaseResult
from rag_eval.results.stored import State


class NoiseTally:
    """Folds the samples of scores into one standard deviation a metric. Holds sums only, without rounding errors."""

    def __init__(self) -> None:
        self._variances: dict[str, Fraction] = {}
        self._scores: dict[str, int] = {}

    def add(self, result: CaseResult) -> None:
        for name, score in (*result.scores.items(), *result.further.items()):
            if len(score.samples) > 1:
                self._add(name, Fraction(variance(score.samples)), 1)

    def state(self) -> State:
        """What was added, for `merge`."""
        return {name: [str(total), self._scores[name]] for name, total in self._variances.items()}

    def merge(self, state: State) -> None:
        """Add what a part of the run has."""
        for name, (total, scores) in state.items():
            self._add(name, Fraction(total), scores)

    def deviations(self) -> Mapping[str, float]:
        """By metric: the standard deviation between samples, pooled over the scores that have several."""
        return {name: math.sqrt(float(total) / self._scores[name]) for name, total in self._variances.items()}

    def _add(self, name: str, total: Fraction, scores: int) -> None:
        self._variances[name] = self._variances.get(name, 0) + total
        self._scores[name] = self._scores.get(name, 0) + scores
