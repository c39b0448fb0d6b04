"""How far the judge and people agree, from the human labels of a sheet, and what people would say on average.

Numbers are compared as numbers, and in five bands of equal width for kappa; verdicts on criteria as yes and no.
Toxicity is one of the query: each query counts once, however many bots answer it.
"""

import heapq
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from rag_eval.records import SCORE_LABELS, TOXICITY, CaseResult

if TYPE_CHECKING:
    from rag_eval.results.agreement import CohenKappa, CorrectedMean, Correlation

BANDS = 5
FEWEST_LABELS = 20
"""With fewer labels of a bot its mean is not corrected: their spread says too little about the judge's errors."""
MOST_DISAGREEMENTS = 10
ALL_BOTS = ""
"""Stands for the bots together."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of so many."""

    count: int
    of: int

    @property
    def rate(self) -> float | None:
        """0..1; None of none."""
        return self.count / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Judge and people on one measure of one bot, or of all of them."""

    measure: str
    """A metric's name or a criterion's id."""
    label: str
    """How readers know it."""
    bot: str
    """ALL_BOTS for the bots together, and for toxicity."""
    count: int
    """Cases that both have judged; for toxicity, queries."""
    unjudged: int
    """Labels of them that have no score."""
    human_mean: float | None
    judge_mean: float | None
    """Both over those cases; None without any."""
    kappa: "CohenKappa"
    """Of the bands with quadratic weights; of a criterion's yes and no without."""
    correlation: "Correlation | None"
    """Spearman's, of numbers."""
    mean_absolute_error: float | None
    threshold: float
    """From this on a score is positive."""
    positives: Share
    """Positive for the judge, of those that are for people: the true-positive rate."""
    negatives: Share
    """The true-negative rate in the same way."""
    corrected: "CorrectedMean | None"
    """What people would say of all the bot's cases, or of all queries; None for several bots together, and where labels
    are few or all errors are the same."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One case on which judge and people differ."""

    measure: str
    label: str
    line: int
    """Of the case among all cases, counted from 0."""
    row: int
    bot: str
    """ALL_BOTS for toxicity."""
    query: str
    judge: float
    human: float

    @property
    def gap(self) -> float:
        """Judge − people."""
        return self.judge - self.human


@dataclass(frozen=True, slots=True)
class Alignment:
    agreements: tuple[HumanAgreement, ...]
    """By measure; each bot, then all together where there are several, or toxicity's one line. Only what was
    labelled."""
    disagreements: tuple[Disagreement, ...]
    """By measure, the largest first, at most MOST_DISAGREEMENTS of each."""


class AlignmentTally:
    """Folds results and the labels of their cases into an Alignment. Of texts it keeps a few queries only."""

    def __init__(
        self, bots: Sequence[str], thresholds: Mapping[str, float], criteria: Sequence[str] = ()
    ) -> None:
        """`thresholds` by name of a metric, or toxicity; for everything else it is 0.5."""
        self._bots = tuple(bots)
        self._thresholds = thresholds
        self._criteria = frozenset(criteria)
        self._labels = {**SCORE_LABELS, **{criterion: criterion for criterion in criteria}}
        self._columns = {name: {bot: _Pairs() for bot in self._bots_of(name)} for name in self._labels}
        self._largest: dict[str, list[tuple[float, int, Disagreement]]] = {}
        self._lines = 0
        self._row = -1

    def add(self, result: CaseResult) -> None:
        case = result.case
        for name, label in self._labels.items():
            judge, human = self._judged(result, name), case.human.get(name)
            bot = ALL_BOTS if name == TOXICITY else case.bot
            pairs = self._columns[name][bot]
            if name != TOXICITY or case.row != self._row:
                pairs.add(judge, human)
            elif human is None or not pairs.label_last(human):
                continue  # the query was counted with another bot's case
            if judge is not None and human is not None and judge != human:
                self._keep(Disagreement(name, label, self._lines, case.row, bot, case.query, judge, human))
        self._lines += 1
        self._row = case.row

    def alignment(self) -> Alignment:
        labelled = [
            name for name in self._labels if any(pairs.has_labels for pairs in self._columns[name].values())
        ]
        return Alignment(
            tuple(each for name in labelled for each in self._agreements(name)),
            tuple(
                disagreement
                for name in labelled
                for _, _, disagreement in sorted(self._largest.get(name, ()), reverse=True)
            ),
        )

    def _bots_of(self, name: str) -> tuple[str, ...]:
        return (ALL_BOTS,) if name == TOXICITY else self._bots

    def _judged(self, result: CaseResult, name: str) -> float | None:
        """The judge's number; a criterion that passed is 1."""
        if name in self._criteria:
            passed = result.rubric.on(name)[1] if result.rubric else None
            return None if passed is None else float(passed)
        if name == TOXICITY:
            return result.toxicity.value
        score = result.scores.get(name) or result.further.get(name)
        return score.value if score else None

    def _keep(self, found: Disagreement) -> None:
        """Of equal gaps the first come."""
        largest = self._largest.setdefault(found.measure, [])
        heapq.heappush(largest, (abs(found.gap), -found.line, found))
        if len(largest) > MOST_DISAGREEMENTS:
            heapq.heappop(largest)

    def _agreements(self, name: str) -> Iterator[HumanAgreement]:
        columns = {bot: pairs for bot, pairs in self._columns[name].items() if pairs.has_labels}
        for bot, pairs in columns.items():
            yield self._agreement(name, bot, pairs, pairs.corrected_mean())
        if len(columns) > 1:
            yield self._agreement(name, ALL_BOTS, _together(columns.values()), None)

    def _agreement(
        self, name: str, bot: str, pairs: "_Pairs", corrected: "CorrectedMean | None"
    ) -> HumanAgreement:
        from rag_eval.results.agreement import cohen_kappa, spearman

        judge, human = pairs.both()
        is_criterion = name in self._criteria
        threshold = 0.5 if is_criterion else self._thresholds.get(name, 0.5)
        return HumanAgreement(
            measure=name,
            label=self._labels[name],
            bot=bot,
            count=len(judge),
            unjudged=pairs.unjudged,
            human_mean=_mean(human),
            judge_mean=_mean(judge),
            kappa=cohen_kappa(judge, human, categories=(0.0, 1.0))
            if is_criterion
            else cohen_kappa(_bands(judge), _bands(human), categories=range(BANDS), weights="quadratic"),
            correlation=None if is_criterion or not judge else spearman(judge, human),
            mean_absolute_error=_mean([abs(a - b) for a, b in zip(judge, human, strict=True)]),
            threshold=threshold,
            positives=_share([a >= threshold for a, b in zip(judge, human, strict=True) if b >= threshold]),
            negatives=_share([a < threshold for a, b in zip(judge, human, strict=True) if b < threshold]),
            corrected=corrected,
        )


class _Pairs:
    """What judge and people said of one bot, case by case, or of the queries; NaN for nothing."""

    def __init__(self) -> None:
        self.judge = array("d")
        self.human = array("d")

    def add(self, judge: float | None, human: float | None) -> None:
        self.judge.append(math.nan if judge is None else judge)
        self.human.append(math.nan if human is None else human)

    def label_last(self, human: float) -> bool:
        """Give what was added last its label; False if it has one."""
        if not math.isnan(self.human[-1]):
            return False
        self.human[-1] = human
        return True

    @property
    def has_labels(self) -> bool:
        return not all(map(math.isnan, self.human))

    @property
    def unjudged(self) -> int:
        pairs = zip(self.judge, self.human, strict=True)
        return sum(math.isnan(judge) and not math.isnan(human) for judge, human in pairs)

    def both(self) -> tuple[list[float], list[float]]:
        """The two columns of the cases that both have judged."""
        pairs = zip(self.judge, self.human, strict=True)
        found = [(a, b) for a, b in pairs if not math.isnan(a) and not math.isnan(b)]
        return [a for a, _ in found], [b for _, b in found]

    def corrected_mean(self) -> "CorrectedMean | None":
        from rag_eval.results.agreement import ppi_mean

        judged = [(a, None if math.isnan(b) else b) for a, b in self._judged()]
        if sum(human is not None for _, human in judged) < FEWEST_LABELS:
            return None
        corrected = ppi_mean([judge for judge, _ in judged], [human for _, human in judged])
        if corrected is None or corrected.interval.low == corrected.interval.high:
            return None
        return _within_scale(corrected)

    def _judged(self) -> Iterator[tuple[float, float]]:
        return (pair for pair in zip(self.judge, self.human, strict=True) if not math.isnan(pair[0]))


def _within_scale(corrected: "CorrectedMean") -> "CorrectedMean":
    """Cut at 0 and 1: near the ends the correction and its interval reach beyond what any label can be."""
    from rag_eval.results.intervals import Interval

    low, value, high = (
        min(1.0, max(0.0, bound))
        for bound in (corrected.interval.low, corrected.value, corrected.interval.high)
    )
    return replace(corrected, value=value, interval=Interval(low, high))


def _together(columns: Iterable[_Pairs]) -> _Pairs:
    every = _Pairs()
    for pairs in columns:
        every.judge.extend(pairs.judge)
        every.human.extend(pairs.human)
    return every


def _bands(values: Sequence[float]) -> list[int]:
    """Numbers of the bands, from 0; 1.0 is in the last."""
    return [min(int(value * BANDS), BANDS - 1) for value in values]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _share(hits: Sequence[bool]) -> Share:
    return Share(sum(hits), len(hits))
