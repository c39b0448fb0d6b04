"""How far two raters agree on yes/no verdicts, counted, chance taken into account. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two raters' verdicts on the same n things, counted."""

    both_pass: int
    both_fail: int
    only_a_passes: int
    only_b_passes: int

    @property
    def n(self) -> int:
        return self.both_pass + self.both_fail + self.only_a_passes + self.only_b_passes

    @property
    def agreement(self) -> float | None:
        """Share of equal verdicts, 0..1; None when there are none."""
        return (self.both_pass + self.both_fail) / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960), -1..1, 0 for what chance would give, in its form for two raters and two classes.

        None when chance alone agrees always: both raters gave one and the same verdict throughout, or none.
        """
        a_passes, b_passes = self.both_pass + self.only_a_passes, self.both_pass + self.only_b_passes
        by_chance = a_passes * (self.n - b_passes) + b_passes * (self.n - a_passes)
        excess = 2 * (self.both_pass * self.both_fail - self.only_a_passes * self.only_b_passes)
        return excess / by_chance if by_chance else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionAlignment(Agreement):
    """Agreement on one metric."""

    metric_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentReport(Agreement):
    """Agreement on the overall verdict and, in the rubric's order, on each metric."""

    criteria: tuple[CriterionAlignment, ...]


def count_verdicts(verdicts: Iterable[tuple[bool, bool]]) -> dict[str, int]:
    """The counts of an `Agreement` from both raters' verdicts on one thing after the other."""
    counts = Counter(verdicts)
    return {
        "both_pass": counts[True, True],
        "both_fail": counts[False, False],
        "only_a_passes": counts[True, False],
        "only_b_passes": counts[False, True],
    }
