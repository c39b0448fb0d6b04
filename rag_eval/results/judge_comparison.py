"""How far two judges agree on the same cases, how each ranks the bots, and which one is closer to people.

A is the first judge, B the second; every difference is B − A. A score that is missing is left out and counted.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Self

import numpy as np

from rag_eval.records import (
    SCORE_LABELS,
    TOXICITY,
    CaseResult,
    FailureMode,
    Outcome,
    PairVerdict,
    RunFacts,
    Score,
)
from rag_eval.results.agreement import CohenKappa, Correlation, cohen_kappa, kappa_difference, spearman
from rag_eval.results.findings import find
from rag_eval.results.intervals import Interval, bootstrap_mean_interval, cluster_means, wilson_interval
from rag_eval.results.paired import (
    JoinedValues,
    Largest,
    kappa,
    kappa_options,
    mean,
    mean_absolute_error,
    ratings,
)
from rag_eval.results.summary import FEWEST_ROWS, RQS, Mean, Summarizer, Summary, rqs_outcome
from rag_eval.results.verdict import NAME_LIMIT, verdict
from rag_eval.texts.display import counted, decimals, percent, shorten


@dataclass(frozen=True, slots=True)
class JudgeOnMeasure:
    """What one judge made of one measure."""

    mean: float | None
    """Over the cases that both judges scored; None without any."""
    own: Mean
    """Over all that this judge scored, with the counts of what it could not score."""
    failures: Mapping[str, int]
    """Failed scores by code."""
    threshold: float | None
    """In force for this judge; None for a measure without a pass or fail."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Pass or fail by both judges on the same cases."""

    both_pass: int
    both_fail: int
    only_a_passes: int
    only_b_passes: int
    kappa: CohenKappa
    """Cohen's kappa, unweighted; its `raw` is the share of equal decisions and its `count` the number of cases."""
    interval: Interval | None
    """Of the share of equal decisions (Wilson); None without cases."""

    @classmethod
    def of(cls, a: Sequence[bool], b: Sequence[bool]) -> Self:
        counts = Counter(zip(a, b, strict=True))
        equal = counts[True, True] + counts[False, False]
        return cls(
            both_pass=counts[True, True],
            both_fail=counts[False, False],
            only_a_passes=counts[True, False],
            only_b_passes=counts[False, True],
            kappa=cohen_kappa(a, b, categories=(False, True)),
            interval=wilson_interval(equal, len(a)),
        )


@dataclass(frozen=True, slots=True)
class MeasureComparison:
    """Both judges on one measure: RQS, a metric, toxicity or a criterion of the rubric."""

    measure: str
    label: str
    """How readers know it."""
    count: int
    """Cases that both judges scored; for toxicity, queries."""
    a: JudgeOnMeasure
    b: JudgeOnMeasure
    difference: float | None
    """Mean of B − mean of A over these cases; None without any."""
    interval: Interval | None
    """Of the difference; rows, not cases, are resampled. None for fewer than FEWEST_ROWS rows and equal differences."""
    mean_absolute_error: float | None
    correlation: Correlation | None
    """Spearman's; None without cases, and where a judge gives every case the same score."""
    kappa: CohenKappa
    """In BANDS bands of equal width with quadratic weights; of a criterion's yes and no without."""
    decisions: Decisions | None
    """Each judge by its own threshold; None for a measure without thresholds."""


@dataclass(frozen=True, slots=True)
class HumanComparison:
    """Each judge against the human labels of one measure, on the cases with a label and both scores."""

    measure: str
    label: str
    count: int
    human_mean: float
    a_error: float
    """Mean absolute error of A's scores."""
    b_error: float
    error_interval: Interval | None
    """Of B's error − A's, by a bootstrap over rows; None for fewer than FEWEST_ROWS rows."""
    a_kappa: CohenKappa
    b_kappa: CohenKappa
    kappa_interval: Interval | None
    """Of B's kappa − A's; see `kappa_difference`. None for fewer than FEWEST_ROWS rows."""

    @property
    def error_difference(self) -> float:
        """Negative where B is closer to people."""
        return self.b_error - self.a_error

    @property
    def kappa_gain(self) -> float | None:
        """Kappa of B − kappa of A; None where one is undefined."""
        if self.a_kappa.kappa is None or self.b_kappa.kappa is None:
            return None
        return self.b_kappa.kappa - self.a_kappa.kappa


@dataclass(frozen=True, slots=True)
class RankedBot:
    """One bot by both judges, over the rows on which every ranked bot has an RQS by both of them."""

    bot: str
    a_rank: int | None
    b_rank: int | None
    a_mean: float | None
    b_mean: float | None
    rows: int

    @property
    def is_moved(self) -> bool:
        return self.a_rank != self.b_rank


@dataclass(frozen=True, slots=True)
class JudgeDisagreement:
    """One case on which the judges differ."""

    measure: str
    label: str
    row: int
    bot: str
    """Empty for toxicity, which belongs to the query."""
    query: str
    a: Score
    b: Score

    @property
    def gap(self) -> float:
        return (self.b.value or 0.0) - (self.a.value or 0.0)


class _PairedScores(JoinedValues):
    """The values of one measure by A, by B and by people, case by case."""

    def __init__(self) -> None:
        super().__init__(3)
        self.rows = array("q")
        self.bots = array("H")

    def add_case(self, row: int, bot: int, *values: float | None) -> None:
        self.rows.append(row)
        self.bots.append(bot)
        self.add(*values)

    def common_with_rows(self, *numbers: int) -> tuple[list[int], list[list[float]]]:
        """The rows of the cases with a value in each of these columns, and their values by column."""
        cases, columns = self.common(*numbers)
        return [self.rows[case] for case in cases], columns


PREFERENCES = ("first bot", "tie", "other bot")
"""What a judge may say of two responses: a preference is one in both orders."""


@dataclass(frozen=True, slots=True)
class _PreferenceComparison:
    """What both judges prefer of the same pairs of responses."""

    counts: Mapping[str, Mapping[str, int]]
    """By A's and by B's preference: words of PREFERENCES."""
    kappa: CohenKappa
    flips: tuple[int, int]
    """By A and by B: pairs in which the same position won in both orders."""
    failed: int
    """Pairs that only one judge, or none, could judge; they are in no figure."""


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Two judges on the same cases."""

    cases: int
    """Compared: those that both judges were given."""
    rows: int
    overall: Decisions
    """A case passes with a judge if it has no failure mode. Only cases of which neither judge failed on any metric."""
    undecided: int
    """Cases that are left out of `overall`."""
    measures: tuple[MeasureComparison, ...]
    ranking: tuple[RankedBot, ...]
    """In the order of A's ranks."""
    verdicts: tuple[str, str]
    """By A and by B: who leads, and whether the lead is significant."""
    human: tuple[HumanComparison, ...]
    """Only measures with labels."""
    disagreements: tuple[JudgeDisagreement, ...]
    """By measure, the largest first, the number of each is limited."""
    scores: Mapping[str, _PairedScores] = field(repr=False)
    """By measure."""
    preferences: _PreferenceComparison | None
    """None without a head-to-head comparison."""


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """How one of the judges was called, and what that took."""

    letter: str
    name: str
    """Short: the model, and what else tells it from the other judge."""
    facts: RunFacts
    settings: Mapping[str, str] = field(default_factory=dict)
    """What can change its scores, such as the temperature."""
    prompt_tokens: int = 0
    """Of all replies, unusable ones too, whether this command, an earlier one or another run requested them."""
    completion_tokens: int = 0
    cost: float | None = None
    """Of these replies, in `facts.currency`; None when the prices are unknown."""
    uncounted: int = 0
    """How many of these replies came without a count of their tokens. The cost has an estimate for those of this run,
    and nothing for those of others."""

    @property
    def cost_per_1000(self) -> float | None:
        """Of a thousand such rows; None when the prices are unknown, and for a judge that did not finish."""
        if self.cost is None or self.facts.partial or not self.facts.rows:
            return None
        return 1000 * self.cost / self.facts.rows


class JudgeComparisonTally:
    """Folds pairs of results, row by row and bots in the order of the sheet, into a comparison.

    Keeps numbers, and of the largest disagreements the two scores with their evidence.
    """

    def __init__(self, a: RunFacts, b: RunFacts) -> None:
        """The facts of the two runs, which have the same bots."""
        self._facts = (a, b)
        criteria = dict.fromkeys((*a.criteria, *b.criteria))
        names = {RQS: "RQS", **SCORE_LABELS, **{name: name for name in criteria}}
        used = {RQS, *a.metrics, *b.metrics, *a.further, *b.further, *criteria}
        if not a.weights.keys() | b.weights.keys():
            used.discard(RQS)
        self._labels = {name: label for name, label in names.items() if name in used}
        self._criteria = frozenset(criteria)
        self._columns = {name: _Measured() for name in self._labels}
        self._bots = {bot: number for number, bot in enumerate(a.bots)}
        self._summarizers = tuple(
            Summarizer(facts.bots, facts.metrics, facts.toxicity_threshold, further=facts.further)
            for facts in self._facts
        )
        self._passes: tuple[list[bool], list[bool]] = ([], [])
        self._scored_alone = [0, 0]
        self._largest = Largest[JudgeDisagreement]()
        self._cases = 0
        self._rows: set[int] = set()
        self._preferred: tuple[list[str], list[str]] = ([], [])
        self._flips, self._failed_pairs = [0, 0], 0

    def add(self, a: CaseResult, b: CaseResult) -> None:
        """The same case by both judges."""
        case = a.case
        scores = _scores(a), _scores(b)
        for name, column in self._columns.items():
            human = case.human.get(name)
            if name == TOXICITY and case.row in self._rows:
                if human is not None:
                    column.scores.label_last(human)  # the query was counted with another bot's case
                continue
            pair = scores[0].get(name), scores[1].get(name)
            column.add(case.row, self._bots[case.bot], *pair, human)
            if pair[0] and pair[1] and name != RQS:
                bot = "" if name == TOXICITY else case.bot
                self._keep(
                    JudgeDisagreement(name, self._labels[name], case.row, bot, case.query, pair[0], pair[1])
                )
        if _is_decided(a) and _is_decided(b):
            for passes, result in zip(self._passes, (a, b), strict=True):
                passes.append(result.failure_modes == (FailureMode.OK,))
        is_ranked = a.rqs is not None and b.rqs is not None
        for place, result in enumerate((a, b)):
            self._scored_alone[place] += result.rqs is not None and not is_ranked
            self._summarizers[place].add(result if is_ranked else replace(result, rqs=None))
        self._cases += 1
        self._rows.add(case.row)
        others = {pair.other: pair for pair in b.pairs if pair.other != case.bot}
        for compared in a.pairs:
            if compared.other in others:
                self._add_pair(compared, others[compared.other])

    def _add_pair(self, a: PairVerdict, b: PairVerdict) -> None:
        if a.value is None or b.value is None:
            self._failed_pairs += 1
            return
        for place, pair in enumerate((a, b)):
            self._preferred[place].append(PREFERENCES[1 - int(pair.value or 0)])
            self._flips[place] += pair.is_flipped

    def _preferences(self) -> _PreferenceComparison | None:
        a, b = self._preferred
        if not a and not self._failed_pairs:
            return None
        found = Counter(zip(a, b, strict=True))
        return _PreferenceComparison(
            counts={one: {other: found[one, other] for other in PREFERENCES} for one in PREFERENCES},
            kappa=cohen_kappa(a, b, categories=PREFERENCES),
            flips=(self._flips[0], self._flips[1]),
            failed=self._failed_pairs,
        )

    def comparison(self) -> JudgeComparison:
        summaries = [summarizer.summary() for summarizer in self._summarizers]
        verdicts = [self._verdict(place, summary) for place, summary in enumerate(summaries)]
        return JudgeComparison(
            cases=self._cases,
            rows=len(self._rows),
            overall=Decisions.of(*self._passes),
            undecided=self._cases - len(self._passes[0]),
            measures=tuple(self._measure(name, column) for name, column in self._columns.items()),
            ranking=tuple(_ranking(*summaries)),
            verdicts=(verdicts[0], verdicts[1]),
            human=tuple(self._human()),
            preferences=self._preferences(),
            disagreements=self._largest.of(self._labels),
            scores={name: column.scores for name, column in self._columns.items()},
        )

    def _verdict(self, place: int, summary: Summary) -> str:
        """What a judge says of the bots, by the cases that both scored."""
        facts, alone = self._facts[place], self._scored_alone[place]
        findings = find(summary, None, facts.weights)
        found = verdict(facts, summary, findings)
        if alone and findings.comparison is None:
            why = f"The other judge has no RQS for {counted(alone, 'case')} that this one scored."
            found = replace(found, numbers=why)
        return found.answer

    def _keep(self, found: JudgeDisagreement) -> None:
        if found.a.value is not None and found.b.value is not None and found.gap:
            self._largest.add(found.measure, found.gap, self._cases, found)

    def _measure(self, name: str, column: "_Measured") -> MeasureComparison:
        rows, (a, b) = column.scores.common_with_rows(0, 1)
        differences = [other - one for one, other in zip(a, b, strict=True)]
        thresholds = [self._threshold(name, facts) for facts in self._facts]
        judges = [
            JudgeOnMeasure(mean(common), column.mean(number), dict(column.failures[number]), threshold)
            for number, (common, threshold) in enumerate(zip((a, b), thresholds, strict=True))
        ]
        return MeasureComparison(
            measure=name,
            label=self._labels[name],
            count=len(rows),
            a=judges[0],
            b=judges[1],
            difference=mean(differences),
            interval=_interval_over_rows(differences, rows),
            mean_absolute_error=mean_absolute_error(a, b),
            correlation=spearman(a, b),
            kappa=kappa(a, b, is_verdict=name in self._criteria),
            decisions=self._decisions(name, (a, b), thresholds),
        )

    def _threshold(self, name: str, facts: RunFacts) -> float | None:
        if name in self._criteria:
            return 0.5
        return facts.all_thresholds.get(name)

    def _decisions(
        self, name: str, columns: Sequence[Sequence[float]], thresholds: Sequence[float | None]
    ) -> Decisions | None:
        passes = [
            [(value >= threshold) != (name == TOXICITY) for value in values]
            for values, threshold in zip(columns, thresholds, strict=True)
            if threshold is not None
        ]
        return Decisions.of(*passes) if len(passes) == len(columns) else None

    def _human(self) -> Iterator[HumanComparison]:
        for name, column in self._columns.items():
            rows, columns = column.scores.common_with_rows()
            if rows:
                yield self._against_people(name, rows, *columns)

    def _against_people(
        self, name: str, rows: Sequence[int], a: Sequence[float], b: Sequence[float], human: Sequence[float]
    ) -> HumanComparison:
        errors = [
            [abs(value - label) for value, label in zip(values, human, strict=True)] for values in (a, b)
        ]
        is_verdict = name in self._criteria
        one, other, people = (ratings(values, is_verdict=is_verdict) for values in (a, b, human))
        return HumanComparison(
            measure=name,
            label=self._labels[name],
            count=len(rows),
            human_mean=fmean(human),
            a_error=fmean(errors[0]),
            b_error=fmean(errors[1]),
            error_interval=_interval_over_rows([b - a for a, b in zip(*errors, strict=True)], rows),
            a_kappa=kappa(a, human, is_verdict=is_verdict),
            b_kappa=kappa(b, human, is_verdict=is_verdict),
            kappa_interval=kappa_difference(one, other, people, rows, **kappa_options(is_verdict=is_verdict))
            if len(set(rows)) >= FEWEST_ROWS
            else None,
        )


class _Measured:
    """One measure while results come in."""

    def __init__(self) -> None:
        self.scores = _PairedScores()
        self.failures: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._outcomes: tuple[Counter[Outcome], Counter[Outcome]] = (Counter(), Counter())

    def add(self, row: int, bot: int, a: Score | None, b: Score | None, human: float | None) -> None:
        for number, score in enumerate((a, b)):
            if score:
                self._outcomes[number][score.outcome] += 1
            if score and score.outcome is Outcome.FAILED:
                self.failures[number][score.code] += 1
        self.scores.add_case(row, bot, a.value if a else None, b.value if b else None, human)

    def mean(self, number: int) -> Mean:
        """Of all that one judge scored: 0 for A, 1 for B."""
        values = self.scores.column(number)
        outcomes = self._outcomes[number]
        return Mean(
            value=mean(values),
            stdev=float(np.std(values)) if values else None,
            scored=len(values),
            failed=outcomes[Outcome.FAILED],
            not_applicable=outcomes[Outcome.NOT_APPLICABLE],
        )


def _scores(result: CaseResult) -> Mapping[str, Score]:
    """Every score of a case by name; of a criterion, 1 if it passed."""
    scores = {RQS: _rqs(result), **result.all_scores}
    if rubric := result.rubric:
        reasons = {each.criterion: each.reason for each in rubric.verdicts}
        for name in rubric.criteria:
            (outcome, _), value = rubric.on(name), result.on_criterion(name)
            scores[name] = Score(name, outcome, value, reasons.get(name, rubric.reason), rubric.code)
    return scores


def _rqs(result: CaseResult) -> Score:
    failed = next((score.code for score in result.scores.values() if score.code), "")
    return Score(RQS, rqs_outcome(result), result.rqs, code="" if result.rqs is not None else failed)


def _is_decided(result: CaseResult) -> bool:
    """Something was scored, and nothing failed: a failure could hide what decides."""
    outcomes = {score.outcome for score in result.scores.values()}
    return Outcome.SCORED in outcomes and Outcome.FAILED not in outcomes


def _ranking(a: Summary, b: Summary) -> Iterator[RankedBot]:
    others = {line.bot: line for line in b.standings}
    for line in a.standings:
        other = others[line.bot]
        rows = a.compared if line.rank is not None else 0
        yield RankedBot(line.bot, line.rank, other.rank, line.rqs.value, other.rqs.value, rows)


def _interval_over_rows(values: Sequence[float], rows: Sequence[int]) -> Interval | None:
    """Of the mean of all values, by a bootstrap over rows; None for fewer than FEWEST_ROWS rows and for equal values.

    The bots' responses to one query share its texts, so a row is drawn as a whole.
    """
    if len({*rows}) < FEWEST_ROWS or len(set(values)) == 1:
        return None
    return bootstrap_mean_interval(cluster_means(values, rows))


# In words


def headline(comparison: JudgeComparison, a: JudgeRun, b: JudgeRun) -> str:
    """How far B agrees with A, and what each costs, in one sentence."""
    overall = comparison.overall
    if overall.kappa.raw is None:
        return (
            f"{_named(a)} and {_named(b)} have no case in common that both scored completely{_costs(a, b)}."
        )
    cases = counted(overall.kappa.count, "case")
    if comparison.undecided:
        cases = f"{overall.kappa.count:,} of {comparison.cases:,} cases; {comparison.undecided:,} left out"
    kappa = overall.kappa.kappa
    words = "kappa undefined: one decision only" if kappa is None else f"kappa {decimals(kappa)}"
    return (
        f"{_named(b)} agrees with {_named(a)} on {_percent(overall.kappa.raw)} of pass/fail decisions "
        f"({words}, {cases}){_costs(a, b)}."
    )


def _named(run: JudgeRun) -> str:
    return f"{run.letter} ({run.name})"


def _costs(a: JudgeRun, b: JudgeRun) -> str:
    if a.cost_per_1000 is None or b.cost_per_1000 is None:
        return ""
    ours, theirs = (f"{money(run.cost_per_1000)} {run.facts.currency}".rstrip() for run in (b, a))
    about = "about " if a.uncounted or b.uncounted else ""
    return f"; {b.letter} costs {about}{ours} instead of {theirs} per 1,000 rows"


def money(amount: float | None) -> str:
    """Two decimals, or four for small amounts; 'unknown' for None."""
    if amount is None:
        return "unknown"
    return f"{amount:,.2f}" if amount >= 0.1 or not amount else f"{amount:.4f}"


def _percent(share: float) -> str:
    """With one decimal if it is not 0, or with more if a disagreement would be hidden: '94%', '92.5%', '99.98%'."""
    text = percent(share, 1)
    return percent(share, 4) if text in ("0.0%", "100.0%") and 0 < share < 1 else text.replace(".0%", "%")


def ranking_words(comparison: JudgeComparison) -> str:
    """Whether the bots' ranking depends on the judge, in one sentence."""
    ranked = [line for line in comparison.ranking if line.a_rank is not None and line.b_rank is not None]
    if len(comparison.ranking) == 1:
        return "Ranking: there is only one bot."
    if len(ranked) < 2:
        return "Ranking: fewer than two bots can be ranked by both judges."
    rows = f"over {counted(ranked[0].rows, 'row')}"
    moved = [
        f"{shorten(line.bot, NAME_LIMIT)} {line.a_rank} → {line.b_rank}" for line in ranked if line.is_moved
    ]
    if not moved:
        return f"Ranking: both judges rank the {len(ranked)} bots alike {rows}."
    return f"Ranking: it differs {rows} (rank by A → by B): {', '.join(moved)}."
