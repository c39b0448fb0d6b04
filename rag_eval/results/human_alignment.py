"""How far the judge and people agree, from the human labels of a sheet, and what people would say on average.

Numbers are compared as numbers, and in five bands of equal width for kappa; verdicts on criteria as yes and no.
Toxicity is one of the query: each query counts once, however many bots answer it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from rag_eval.records import SCORE_LABELS, TOXICITY, CaseResult
from rag_eval.results.looks import conversation_of
from rag_eval.results.paired import JoinedValues, Largest, groups_of, kappa, mean, mean_absolute_error
from rag_eval.results.stored import State
from rag_eval.results.summary import FEWEST_ROWS
from rag_eval.texts.display import percent, shorten

if TYPE_CHECKING:
    from rag_eval.results.agreement import CohenKappa, Correlation
    from rag_eval.results.stratified import CorrectedMean, ImpliedThreshold, LabelledSample

FEWEST_LABELS = 20
"""With fewer labels of a bot its mean is not corrected: their spread says too little about the judge's errors."""
_ALL_BOTS = ""
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


JUDGE, PEOPLE = "judge", "people"
"""Who is compared, besides raters by their names. People are the input's labels, or the median of a review's raters."""


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Judge and people, judge and a rater, or two raters, on one measure of one bot or of all of them."""

    measure: str
    """A metric's name or a criterion's id."""
    label: str
    """How readers know it."""
    bot: str
    """_ALL_BOTS for the bots together, and for toxicity."""
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
    threshold: float | None
    """From this on a score is positive; None for two raters."""
    positives: Share
    """Positive for the judge, of those that are for people: the true-positive rate."""
    negatives: Share
    """The true-negative rate in the same way."""
    corrected: "CorrectedMean | None"
    """What people would say of all the bot's cases, or of all queries; None for several bots together, and where labels
    are few or all errors are the same."""
    raters: tuple[str, str] = (JUDGE, PEOPLE)
    """Who is compared. Of two raters there are neither means nor rates."""
    largest_error: float | None = None
    """0..1: the largest difference between judge and people among these cases; None without any."""
    implied: "ImpliedThreshold | None" = None
    """The threshold of the judge's scores that the labels imply; with all bots together, and of metrics only."""
    conversations: int | None = field(default=None, repr=False)
    """That the cases come from, a case without one counted as its own; None if no conversation has several of them."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One case on which judge and people differ."""

    measure: str
    label: str
    line: int
    """Of the case among all cases, counted from 0."""
    row: int
    bot: str
    """_ALL_BOTS for toxicity."""
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
    """By measure; each bot, then all together where there are several, or toxicity's one line; then the judge with
    each rater of a review, and each two raters. Only what was labelled."""

    @property
    def implied_thresholds(self) -> Mapping[str, "ImpliedThreshold"]:
        """By metric, where the labels imply one."""
        return {line.measure: line.implied for line in self.agreements if line.implied}

    disagreements: tuple[Disagreement, ...]
    """By measure, the largest first, the number of each is limited."""


class AlignmentTally:
    """Folds results and the labels of their cases into an Alignment. Of texts it keeps a few queries only."""

    def __init__(
        self,
        bots: Sequence[str],
        thresholds: Mapping[str, float],
        criteria: Sequence[str],
        strata: Mapping[str, Mapping[str, Mapping[str, int]]],
    ) -> None:
        """`thresholds` by name of a metric, or toxicity; for everything else it is 0.5. `strata` as in RunFacts."""
        self._bots = tuple(bots)
        self._strata = strata
        self._rated: dict[str, list[tuple[float | None, Mapping[str, float], int]]] = {}
        self._thresholds = thresholds
        self._criteria = frozenset(criteria)
        self._labels = {**SCORE_LABELS, **{criterion: criterion for criterion in criteria}}
        self._columns = {name: {bot: _Pairs() for bot in self._bots_of(name)} for name in self._labels}
        self._largest = Largest[Disagreement]()
        self._lines = 0
        self._row = -1

    def add(self, result: CaseResult) -> None:
        case = result.case
        cluster = conversation_of(case)
        for name, label in self._labels.items():
            judge, human = self._judged(result, name), case.human.get(name)
            bot = _ALL_BOTS if name == TOXICITY else case.bot
            pairs = self._columns[name][bot]
            if said := {rater: labels[name] for rater, labels in case.labels.items() if name in labels}:
                self._rated.setdefault(name, []).append((judge, said, cluster))
            if name != TOXICITY or case.row != self._row:
                if case.stratum:
                    pairs.in_stratum(case.stratum)
                pairs.add(judge, human, cluster=cluster)
            elif human is None or not pairs.label_last(human):
                continue  # the query was counted with another bot's case
            if judge is not None and human is not None and judge != human:
                self._keep(Disagreement(name, label, self._lines, case.row, bot, case.query, judge, human))
        self._lines += 1
        self._row = case.row

    def state(self) -> State:
        """What was added, for `merge`."""
        return {
            "lines": self._lines,
            "row": self._row,
            "columns": {
                name: {bot: pairs.state() for bot, pairs in bots.items()}
                for name, bots in self._columns.items()
            },
            "rated": self._rated,
            "largest": [asdict(found) for found in self._largest.of(self._labels)],
        }

    def merge(self, state: State) -> None:
        """Add the rows of a part of the run, which come after those that were added so far."""
        for name, bots in state["columns"].items():
            for bot, pairs in bots.items():
                self._columns[name][bot].merge(pairs)
        for name, cases in state["rated"].items():
            self._rated.setdefault(name, []).extend((judge, said, cluster) for judge, said, cluster in cases)
        for each in state["largest"]:
            self._keep(Disagreement(**{**each, "line": self._lines + each["line"]}))
        self._lines += state["lines"]
        self._row = state["row"]

    def alignment(self, *, is_whole: bool = True) -> Alignment:
        """`is_whole`: whether all rows of the run were added. What is drawn from all is no sample of the first."""
        if not is_whole:
            self._strata = {bot: {} for bot in self._strata}
        labelled = [
            name for name in self._labels if any(pairs.has_labels for pairs in self._columns[name].values())
        ]
        return Alignment(
            tuple(each for name in labelled for each in self._agreements(name)),
            self._largest.of(labelled),
        )

    def _bots_of(self, name: str) -> tuple[str, ...]:
        return (_ALL_BOTS,) if name == TOXICITY else self._bots

    def _judged(self, result: CaseResult, name: str) -> float | None:
        """The judge's number; a criterion that passed is 1."""
        if name in self._criteria:
            return result.on_criterion(name)
        if name == TOXICITY:
            return result.toxicity.value
        score = result.scores.get(name) or result.further.get(name)
        return score.value if score else None

    def _keep(self, found: Disagreement) -> None:
        self._largest.add(found.measure, found.gap, found.line, found)

    def _agreements(self, name: str) -> Iterator[HumanAgreement]:
        columns = {bot: pairs for bot, pairs in self._columns[name].items() if pairs.has_labels}
        implied = self._implied(name, columns)
        for bot, pairs in columns.items():
            corrected = pairs.corrected_mean(self._sizes(name, bot))
            found = self._agreement(name, bot, pairs, pairs.only(_HUMAN))
            yield replace(found, corrected=corrected, implied=implied if len(columns) == 1 else None)
        if len(columns) > 1:
            together = JoinedValues()
            for pairs in columns.values():
                together.merge(pairs.state())
            found = self._agreement(name, _ALL_BOTS, together, together.only(_HUMAN))
            yield replace(found, implied=implied)
        yield from self._agreements_of_raters(name)

    def _agreements_of_raters(self, name: str) -> Iterator[HumanAgreement]:
        """The judge with each rater, if there are several, and each rater with the others: all bots together."""
        cases = self._rated.get(name, [])
        raters = sorted({rater for _, said, _ in cases for rater in said})
        for rater in raters if len(raters) > 1 else ():
            pairs = JoinedValues()
            for judge, said, cluster in cases:
                pairs.add(judge, said.get(rater), cluster=cluster)
            found = self._agreement(name, _ALL_BOTS, pairs, pairs.only(_HUMAN))
            yield replace(found, raters=(JUDGE, rater))
        for one, other in combinations(raters, 2):
            pairs = JoinedValues()
            for _, said, cluster in cases:
                pairs.add(said.get(one), said.get(other), cluster=cluster)
            found = self._agreement(name, _ALL_BOTS, pairs, 0)
            yield replace(
                found,
                raters=(one, other),
                human_mean=None,
                judge_mean=None,
                threshold=None,
                positives=Share(0, 0),
                negatives=Share(0, 0),
            )

    def _sizes(self, name: str, bot: str) -> Mapping[str, int] | None:
        """By stratum: the bot's cases with a score; None if its labels are not those of a review."""
        if bot not in self._strata:
            return None
        return {stratum: sizes.get(name, 0) for stratum, sizes in self._strata[bot].items()}

    def _implied(self, name: str, columns: Mapping[str, "_Pairs"]) -> "ImpliedThreshold | None":
        """Of a metric with enough labels; those of a review count for as many cases as they stand for."""
        from rag_eval.results.stratified import implied_threshold

        if name in self._criteria or name == TOXICITY:
            return None
        labelled = [each for bot, pairs in columns.items() for each in pairs.weighted(self._sizes(name, bot))]
        if len(labelled) < FEWEST_LABELS:
            return None
        judge, human, weights, told = zip(*labelled, strict=True)
        return implied_threshold(judge, human, weights, groups_of(told, range(len(told))))

    def _agreement(self, name: str, bot: str, pairs: JoinedValues, unjudged: int) -> HumanAgreement:
        from rag_eval.results.agreement import spearman

        cases, (judge, human) = pairs.common()
        groups = pairs.groups(cases)
        is_criterion = name in self._criteria
        threshold = 0.5 if is_criterion else self._thresholds.get(name, 0.5)
        return HumanAgreement(
            measure=name,
            label=self._labels[name],
            bot=bot,
            count=len(judge),
            unjudged=unjudged,
            human_mean=mean(human),
            judge_mean=mean(judge),
            kappa=kappa(judge, human, is_verdict=is_criterion, groups=groups),
            correlation=None if is_criterion or not judge else spearman(judge, human, groups=groups),
            mean_absolute_error=mean_absolute_error(judge, human),
            threshold=threshold,
            positives=_share([a >= threshold for a, b in zip(judge, human, strict=True) if b >= threshold]),
            negatives=_share([a < threshold for a, b in zip(judge, human, strict=True) if b < threshold]),
            corrected=None,
            largest_error=max((abs(a - b) for a, b in zip(judge, human, strict=True)), default=None),
            conversations=len({*groups}) if groups else None,
        )


# In words


def label_warnings(alignment: Alignment | None) -> list[str]:
    """That no label is compared, or that those behind a corrected mean show no gross error: rare ones can be missed."""
    if alignment is None:
        return []
    if not alignment.agreements:
        return [
            "No human label can be compared with a score: the columns for labels are empty, or nothing was scored."
        ]
    lines = [
        line
        for line in alignment.agreements
        if line.corrected and line.largest_error is not None and line.largest_error < _GROSS
    ]
    if not lines:
        return []
    named = ", ".join(f"{shorten(line.bot, 60)} {line.label}".strip() for line in lines[:_NAMED])
    more = f" and {len(lines) - _NAMED:,} more" if len(lines) > _NAMED else ""
    missed = max(_THREE / (line.conversations or line.count) for line in lines)
    return [
        f"No label differs from its score by {_GROSS:g} or more ({named}{more}). The corrected interval is too "
        f"narrow if the judge is rarely but badly wrong: up to {percent(min(1.0, missed))} of its scores could be, "
        "unseen. Label more cases, or add suspicious ones with rag-eval review --suspicious."
    ]


_GROSS = 0.5
_NAMED = 3
_THREE = 3.0
"""What happens in this share of the cases, divided by their number, is missed in 5% of samples (rule of three).

The cases of one conversation may all be alike, so they count as one."""


class _Pairs(JoinedValues):
    """What judge and people said of one bot, case by case, or of the queries."""

    def __init__(self) -> None:
        super().__init__()
        self._strata: dict[int, str] = {}

    def in_stratum(self, stratum: str) -> None:
        """Of the case that is added next."""
        self._strata[len(self)] = stratum

    def state(self) -> State:
        return {**super().state(), "strata": list(self._strata.items())}

    def merge(self, state: State) -> None:
        self._strata.update({len(self) + place: stratum for place, stratum in state["strata"]})
        super().merge(state)

    @property
    def has_labels(self) -> bool:
        return bool(self.column(_HUMAN))

    def corrected_mean(self, sizes: Mapping[str, int] | None) -> "CorrectedMean | None":
        """`sizes` are those of the strata of a review; without them the labelled cases are any, taken for random."""
        sample = self._sample(sizes)
        if sample is None:
            return None
        cases, (judge,) = self.common(_JUDGE)
        return corrected_mean(judge, sample, len(sample.human), self.groups(cases))

    def weighted(self, sizes: Mapping[str, int] | None) -> Iterator[tuple[float, float, float, int]]:
        """Score, label, the number of cases that these stand for, and their conversation, of the random sample."""
        sizes, drawn = self._drawn(sizes)
        labels = Counter(stratum for _, _, stratum, _ in drawn)
        for judge, human, stratum, case in drawn:
            yield judge, human, sizes[stratum] / labels[stratum], self.clusters[case]

    def _sample(self, sizes: Mapping[str, int] | None) -> "LabelledSample | None":
        """The labelled cases that were drawn at random; None without any, and if nothing was drawn so."""
        from rag_eval.results.stratified import LabelledSample

        sizes, drawn = self._drawn(sizes)
        if not drawn:
            return None
        judge, human, names, numbers = zip(*drawn, strict=True)
        return LabelledSample(human, judge, names, sizes, self.groups(numbers))

    def _drawn(
        self, sizes: Mapping[str, int] | None
    ) -> tuple[Mapping[str, int], list[tuple[float, float, str, int]]]:
        """Sizes of the strata, and of each case that was drawn: score, label, stratum and number."""
        cases, columns = self.common()
        strata = [self._strata.get(case, "") for case in cases]
        if sizes is None:
            sizes = {_ANY: len(self.column(_JUDGE))}
            strata = [_ANY] * len(cases)
        return sizes, [each for each in zip(*columns, strata, cases, strict=True) if each[2] in sizes]


def corrected_mean(
    judged: Sequence[float], sample: "LabelledSample", labels: int, groups: Sequence[int] | None = None
) -> "CorrectedMean | None":
    """See `stratified_mean`. Also None for fewer than FEWEST_LABELS labels, and where all errors are the same.

    As well for fewer than FEWEST_ROWS conversations, or of labelled ones.
    """
    from rag_eval.results.stratified import stratified_mean

    talks = (each for each in (groups, sample.groups) if each is not None)
    if labels < FEWEST_LABELS or any(len({*each}) < FEWEST_ROWS for each in talks):
        return None
    corrected = stratified_mean(judged, sample, groups=groups)
    if corrected is None or corrected.interval.low == corrected.interval.high:
        return None
    return _within_scale(corrected)


def _within_scale(corrected: "CorrectedMean") -> "CorrectedMean":
    """Cut at 0 and 1: near the ends the correction and its interval reach beyond what any label can be."""
    from rag_eval.results.intervals import Interval

    low, value, high = (
        min(1.0, max(0.0, bound))
        for bound in (corrected.interval.low, corrected.value, corrected.interval.high)
    )
    return replace(corrected, value=value, interval=Interval(low, high))


_JUDGE, _HUMAN = 0, 1
"""Columns of the pairs."""
_ANY = "any"
"""The stratum of labels that are not those of a review."""


def _share(hits: Sequence[bool]) -> Share:
    return Share(sum(hits), len(hits))
