"""What people prefer of responses in pairs, how far the judge agrees, and the win rate that people would give. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from rag_eval.results.agreement import CohenKappa, cohen_kappa
from rag_eval.results.human_alignment import JUDGE, PEOPLE, Share, corrected_mean
from rag_eval.results.intervals import Interval
from rag_eval.results.paired import consensus
from rag_eval.results.stratified import CorrectedMean, LabelledSample
from rag_eval.results.summary import FEWEST_ROWS

Preferred = tuple[tuple[str, str], float | None, Mapping[str, float]]
"""Two bots, what the judge prefers of their responses to a query, and what each rater does: 1 the first one, 0 neither,
-1 the second one. The judge's is None if it failed."""


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How often two of judge, people and single raters prefer the same of two responses."""

    raters: tuple[str, str]
    """JUDGE, PEOPLE or names of raters. People prefer what more than half of the raters of a pair do."""
    count: int
    """Pairs on which both said something."""
    kappa: CohenKappa
    """Of first, same and second; `raw` is the share of equal preferences. The judge prefers what it does in both
    orders."""
    decided: Share
    """Equal preferences, of the pairs of which both prefer one response."""


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Human preferences between two bots, over queries that were drawn at random. Repeats of a query count once."""

    queries: int
    wins: int
    """Queries for which all raters prefer the response of the first bot."""
    ties: int
    losses: int
    win_rate: float | None
    """Of the first bot; a tie counts half, and of several raters the mean. None without any such query."""
    interval: Interval | None
    """95% interval of the win rate; None for few queries or conversations."""
    is_significant: bool
    """One of the bots is preferred, by the test that the judge's preferences are put to."""
    judge_win_rate: float | None
    """By the judge, over the same queries; None without any that it judged."""
    corrected: CorrectedMean | None
    """The win rate that people would give over all compared queries; None for few labels."""
    agreement: PairAgreement
    """Of judge and people, suspicious pairs included."""

    @property
    def is_clear_by_itself(self) -> bool:
        """Its interval excludes 50%, whatever the test over all pairs says."""
        return self.interval is not None and not self.interval.has(0.5)

    def mirrored(self) -> "LabelledPair":
        """The same from the side of the other bot."""
        corrected = self.corrected
        if corrected:
            corrected = replace(
                corrected,
                value=1 - corrected.value,
                interval=corrected.interval.mirrored(),
                judge_mean=1 - corrected.judge_mean,
            )
        return replace(
            self,
            wins=self.losses,
            losses=self.wins,
            win_rate=mirrored(self.win_rate),
            interval=self.interval and self.interval.mirrored(),
            judge_win_rate=mirrored(self.judge_win_rate),
            corrected=corrected,
        )


def mirrored(rate: float | None) -> float | None:
    """The win rate of the other bot."""
    return None if rate is None else 1 - rate


def agreements(said: Sequence[Preferred]) -> tuple[PairAgreement, ...]:
    """Judge and people; with several raters also the judge with each of them, and each two of them."""
    if not said:
        return ()
    raters = sorted({rater for _, _, labels in said for rater in labels})
    columns: dict[str, list[float | None]] = {
        JUDGE: [judge for _, judge, _ in said],
        PEOPLE: [consensus(labels) for _, _, labels in said],
    }
    by_rater = [[labels.get(rater) for _, _, labels in said] for rater in raters]
    found = [_agreement((JUDGE, PEOPLE), columns[JUDGE], columns[PEOPLE])]
    if len(raters) > 1:
        found += [
            _agreement((JUDGE, rater), columns[JUDGE], column)
            for rater, column in zip(raters, by_rater, strict=True)
        ]
    named = zip(raters, by_rater, strict=True)
    found += [
        _agreement((one, other), first, second) for (one, first), (other, second) in combinations([*named], 2)
    ]
    return tuple(found)


def _agreement(
    raters: tuple[str, str], first: Sequence[float | None], second: Sequence[float | None]
) -> PairAgreement:
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    decided = [a == b for a, b in both if a and b]
    kappa = cohen_kappa([a for a, _ in both], [b for _, b in both], categories=(-1.0, 0.0, 1.0))
    return PairAgreement(raters, len(both), kappa, Share(sum(decided), len(decided)))


def corrected_rate(
    judge: Mapping[str, float],
    people: Mapping[str, float],
    asked: Collection[str],
    groups: Mapping[str, int] | None = None,
) -> CorrectedMean | None:
    """The win rate that people would give over all queries of `judge`, from those of a random sample.

    Rates are from 0 to 1, by key of the query. Queries that are not `asked` have equal or empty responses: there people
    say what the judge does, so these are a stratum of which all is known. `groups` has the conversation of each query;
    None if no two are of one. None as for `corrected_mean`.
    """
    labelled = [key for key in people if key in judge and key in asked]
    settled = [key for key in judge if key not in asked]
    if groups and len({groups[key] for key in labelled}) < FEWEST_ROWS:
        return None
    sample = LabelledSample(
        human=[*(people[key] for key in labelled), *(judge[key] for key in settled)],
        judge=[judge[key] for key in (*labelled, *settled)],
        strata=[*(["asked"] * len(labelled)), *(["settled"] * len(settled))],
        sizes={"asked": len(judge) - len(settled), "settled": len(settled)},
        groups=[groups[key] for key in (*labelled, *settled)] if groups else None,
    )
    of_judge = [groups[key] for key in judge] if groups else None
    found = corrected_mean([*judge.values()], sample, len(labelled), of_judge)
    return found and replace(found, labelled=len(labelled))
