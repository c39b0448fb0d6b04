"""Inter-rater agreement on yes/no verdicts: counts, share of equal verdicts, Cohen's kappa. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The counts of two raters' verdicts on the same n responses."""

    both_pass: int
    both_fail: int
    only_a_passes: int
    only_b_passes: int

    @classmethod
    def of(cls, verdicts: Iterable[tuple[bool, bool]], **fields: Any) -> Self:
        """Count pairs of verdicts, of rater A and of rater B; `fields` are those of a subclass."""
        counts = Counter(verdicts)
        return cls(
            both_pass=counts[True, True],
            both_fail=counts[False, False],
            only_a_passes=counts[True, False],
            only_b_passes=counts[False, True],
            **fields,
        )

    @property
    def n(self) -> int:
        """Number of pairs of verdicts."""
        return self.both_pass + self.both_fail + self.only_a_passes + self.only_b_passes

    @property
    def agreement(self) -> float | None:
        """Share of equal verdicts, 0..1; None without verdicts."""
        return (self.both_pass + self.both_fail) / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960) for two raters and two classes: -1..1, where 0 is agreement by chance.

        None without verdicts, and if both raters gave the same single verdict throughout.
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
