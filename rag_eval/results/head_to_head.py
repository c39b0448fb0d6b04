"""Responses compared in pairs: who is preferred, how sure that is, and whether the judge is fit to say so. Pure."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from rag_eval.records import FEW_BOTS, MATCHING, CaseResult, Outcome, PairVerdict
from rag_eval.results.comparison import ColumnTest, bots_behind, compare_columns
from rag_eval.results.intervals import (
    Floats,
    Interval,
    bca_levels,
    pooled,
    quantiles,
    reported_interval,
    resampled_counts,
    student_quantile,
    wilson_interval,
)
from rag_eval.results.labelled_pairs import (
    LabelledPair,
    PairAgreement,
    Preferred,
    agreements,
    corrected_rate,
    mirrored,
)
from rag_eval.results.looks import key_of, key_of_text
from rag_eval.results.stored import State
from rag_eval.results.summary import FEWEST_ROWS
from rag_eval.texts.display import percent

_FEWEST_TIED = 0.7
"""Share of the controls, pairs of identical responses, that a judge must call a tie."""
_FIRST_SHARE = (0.35, 0.65)
"""Between these must be the share of decisions for the response that was shown first."""


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Two bots over the queries for which their responses were compared. Repeats of a query count once."""

    one: str
    other: str
    queries: int
    wins: int
    """Queries for which the response of `one` is preferred in both orders."""
    ties: int
    """All others: ties, and preferences that depend on the order."""
    losses: int
    failed: int
    """Queries for which the judge failed in at least one order."""
    win_rate: float | None
    """Of `one`: (1 + mean) / 2 of values from -1 to 1. None without any query."""
    interval: Interval | None
    """95% interval of this win rate; None for few queries or conversations. If all pairs were judged, it excludes 50%
    exactly if a test of this pair only is significant."""
    is_significant: bool
    """One of the bots is preferred, by a test over all pairs. Always false for a matching."""
    pvalue: float | None
    """Adjusted for all pairs; None if it was not tested."""
    flips: int
    """Cases in which the same position won in both orders."""
    judged: int
    """Cases that were judged in both orders; the others have equal or empty responses."""
    longer_wins: int
    """Decided cases in which the longer response is preferred."""
    longer_of: int
    """Decided cases with responses of different lengths."""
    at_equal_length: float | None
    """Win rate of `one` if both were equally long; None unless each is often the longer one."""
    criteria: Mapping[str, float]
    """Win rates of `one` by criterion, over the queries to which it applies."""
    people: LabelledPair | None = None
    """What human labels say; None without any."""

    @property
    def is_clear_by_itself(self) -> bool:
        """Its interval excludes 50%, whatever the test over all pairs says."""
        return self.interval is not None and not self.interval.has(0.5)

    def seen_from(self, bot: str) -> "PairSummary":
        """The same with this bot as `one`."""
        if bot == self.one:
            return self
        return PairSummary(
            self.other, self.one, self.queries, self.losses, self.ties, self.wins, self.failed,
            mirrored(self.win_rate), self.interval and self.interval.mirrored(), self.is_significant, self.pvalue,
            self.flips, self.judged, self.longer_wins, self.longer_of, mirrored(self.at_equal_length),
            {name: 1 - value for name, value in self.criteria.items()}, self.people and self.people.mirrored(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strength:
    """A bot among all others, from the pairs of all of them (Bradley and Terry 1952)."""

    bot: str
    win_rate: float
    """Expected against an average bot, 0 to 1."""
    interval: Interval | None
    """95%; None for few queries."""
    queries: int
    is_behind: bool
    """Significantly weaker than the strongest bot. Always false if all pairs were judged: then the pairs are tested."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What shows whether a judge compares responses or something else. Counts of decisions and of pairs."""

    flips: int
    judged: int
    """Cases that were judged in both orders."""
    first_wins: int
    """Decisions for the response that was shown first."""
    decided: int
    """Decisions that are not a tie."""
    controls_tied: int
    controls: int
    """Responses that were compared with themselves."""
    longer_wins: int
    longer_of: int

    @property
    def problem(self) -> str:
        """Why there is no verdict, as a clause; empty if the judge may be trusted."""
        if self.controls and self.controls_tied < _FEWEST_TIED * self.controls:
            return f"the judge called only {self.controls_tied:,} of {self.controls:,} pairs of equal responses a tie"
        low, high = _FIRST_SHARE
        chance = wilson_interval(self.first_wins, self.decided)
        if chance is None or chance.has(0.5):  # so few decisions may fall so by chance
            return ""
        share = self.first_wins / self.decided
        if low <= share <= high:
            return ""
        return f"the response that is shown first won {percent(share)} of {self.decided:,} decisions"


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """What the comparison in pairs comes to."""

    choice: str
    """ALL_PAIRS or MATCHING."""
    pairs: tuple[PairSummary, ...]
    """Of every two bots, in the order of the sheet."""
    strengths: tuple[Strength, ...]
    """The strongest bot first; none for fewer than four bots."""
    trust: Trust
    failed: int
    """Pairs that the judge failed to judge."""
    asked: int
    """Pairs that were to be judged or settled."""
    differing: int
    """Pairs that prefer the response with the lower RQS."""
    compared: int
    """Pairs with a preference whose responses differ in RQS."""
    agreements: tuple[PairAgreement, ...]
    """Of all bots together: judge and people, then with several raters the judge with each and each two of them. None
    without human labels."""

    def pair(self, one: str, other: str) -> PairSummary | None:
        """Two bots as `one` sees them; None if they were not compared."""
        found = next((each for each in self.pairs if {each.one, each.other} == {one, other}), None)
        return found.seen_from(one) if found and found.queries else None

    def plain(self) -> dict[str, Any]:
        """In values that JSON knows."""
        plain = asdict(self) | {"problem": self.trust.problem}
        if not self.agreements:
            del plain["agreements"]
            for pair in plain["pairs"]:
                del pair["people"]
        return plain


class PairTally:
    """Told of every result. Keeps numbers for each pair and query."""

    def __init__(self, bots: Sequence[str], choice: str) -> None:
        self._bots, self._choice = [*bots], choice
        self._pairs: dict[tuple[str, str], _Pair] = {pair: _Pair() for pair in combinations(bots, 2)}
        self._counts: Counter[str] = Counter()
        self._row = -1, ""
        self._cluster = ""
        """Of the row that was added last."""
        self._people = {pair: _Pair() for pair in self._pairs}
        """What people prefer, of the random sample."""
        self._said: list[Preferred] = []

    def add(self, result: CaseResult) -> None:
        row = result.case.row, result.case.query
        if row != self._row:
            # The row is one of a conversation, whatever each bot calls it.
            self._row, self._cluster = row, key_of(result.case)[:_CLUSTER]
        key = ""
        for verdict in result.pairs:
            if verdict.other == result.case.bot:
                self._add_control(verdict)
                continue
            key = key or self._cluster + key_of_text(result.case.question)[:_CLUSTER]
            pair, is_swapped = (result.case.bot, verdict.other), False
            if pair not in self._pairs:
                pair, is_swapped = (pair[1], pair[0]), True
            self._pairs[pair].add(key, verdict, is_swapped=is_swapped)
            if verdict.labels:
                self._add_labels(pair, key, verdict, is_swapped=is_swapped)
            self._counts["asked"] += 1
            self._counts["failed"] += verdict.outcome is Outcome.FAILED
            self._counts["compared"] += bool(verdict.value and verdict.rqs_gap)
            self._counts["differing"] += verdict.differs_from_rqs
            for position, order in enumerate(verdict.orders):
                self._counts["decided"] += order != "tie"
                self._counts["first"] += order == ("this", "other")[position]

    def _add_control(self, verdict: PairVerdict) -> None:
        if verdict.outcome is Outcome.SCORED:
            self._counts["controls"] += 1
            self._counts["controls_tied"] += verdict.value == 0

    def _add_labels(self, pair: tuple[str, str], key: str, verdict: PairVerdict, *, is_swapped: bool) -> None:
        sign = -1 if is_swapped else 1
        judge = None if verdict.preference is None else sign * verdict.preference
        self._said.append((pair, judge, {rater: sign * value for rater, value in verdict.labels.items()}))
        if verdict.is_drawn:
            value = sum(verdict.labels.values()) / len(verdict.labels)
            said = replace(verdict, outcome=Outcome.SCORED, value=value, orders=(), criteria={})
            self._people[pair].add(key, said, is_swapped=is_swapped)

    def state(self) -> State:
        """What was added, for `merge`."""
        return {
            "counts": dict(self._counts),
            "pairs": [pair.state() for pair in self._pairs.values()],
            "people": [pair.state() for pair in self._people.values()],
            "said": self._said,
        }

    def merge(self, state: State) -> None:
        """Add what a part of the run has."""
        self._counts.update(state["counts"])
        for pair, counted in zip(self._pairs.values(), state["pairs"], strict=True):
            pair.merge(counted)
        for pair, counted in zip(self._people.values(), state["people"], strict=True):
            pair.merge(counted)
        self._said += [(tuple(names), judge, labels) for names, judge, labels in state["said"]]

    def head_to_head(self) -> HeadToHead:
        """All of it; the same for the same verdicts in any order of the rows."""
        pairs = {names: pair for names, pair in self._pairs.items() if pair.values or pair.failed}
        counts = self._counts
        trust = Trust(
            sum(pair.flips for pair in pairs.values()),
            sum(pair.judged for pair in pairs.values()),
            counts["first"],
            counts["decided"],
            counts["controls_tied"],
            counts["controls"],
            sum(pair.longer_wins for pair in pairs.values()),
            sum(pair.longer_of for pair in pairs.values()),
        )
        is_matching = self._choice == MATCHING
        tests = {} if is_matching else _tested(pairs)
        summaries = tuple(
            pair.summary(*names, tests.get(names), is_trusted=not trust.problem)
            for names, pair in pairs.items()
        )
        if self._said:
            people = {names: each for names, each in self._people.items() if each.values}
            tests = {} if is_matching else _tested(people)
            summaries = tuple(
                self._with_labels(each, tests.get((each.one, each.other))) for each in summaries
            )
        is_tested = is_matching and not trust.problem
        strengths = _strengths(self._bots, pairs, is_tested=is_tested) if len(self._bots) > FEW_BOTS else ()
        return HeadToHead(
            self._choice, summaries, strengths, trust, counts["failed"], counts["asked"], counts["differing"],
            counts["compared"], agreements(self._said),
        )  # fmt: skip

    def _with_labels(self, found: PairSummary, test: ColumnTest | None) -> PairSummary:
        """With what people say of the two bots, and the test of that."""
        names = found.one, found.other
        said = [each for each in self._said if each[0] == names]
        if not said:
            return found
        judge, labelled = self._pairs[names], self._people[names]
        told = labelled.summary(*names, test, is_trusted=True)
        rates = {key: _rate(value) for key, value in judge.means.items()}
        labels = {key: _rate(value) for key, value in labelled.means.items()}
        of_judge = [rates[key] for key in labels if key in rates]
        return replace(
            found,
            people=LabelledPair(
                queries=told.queries,
                wins=told.wins,
                ties=told.ties,
                losses=told.losses,
                win_rate=told.win_rate,
                interval=told.interval,
                is_significant=told.is_significant,
                judge_win_rate=sum(of_judge) / len(of_judge) if of_judge else None,
                corrected=corrected_rate(rates, labels, judge.asked, _clusters(rates)),
                agreement=agreements(said)[0],
            ),
        )


@dataclass(slots=True)
class _Pair:
    """The verdicts on two bots."""

    values: dict[str, list[float]] = field(default_factory=dict)
    """By key of the query: sum of the values, and their number."""
    failed: set[str] = field(default_factory=set)
    """Keys of the queries."""
    criteria: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """The same by criterion."""
    lengths: "array[float]" = field(default_factory=lambda: array("d"))
    """Value and both numbers of characters, of each case that was judged."""
    asked: set[str] = field(default_factory=set)
    """Keys of the queries that needed a judge."""
    flips: int = 0
    judged: int = 0

    def add(self, key: str, verdict: PairVerdict, *, is_swapped: bool) -> None:
        if verdict.outcome is not Outcome.SCORED or verdict.value is None:
            self.failed.add(key)
            return
        sign = -1 if is_swapped else 1
        found = self.values.setdefault(key, [0.0, 0.0])
        found[0] += sign * verdict.value
        found[1] += 1
        for name, value in verdict.criteria.items():
            counted = self.criteria.setdefault(name, {}).setdefault(key, [0.0, 0.0])
            counted[0] += sign * value
            counted[1] += 1
        if verdict.orders:
            self.asked.add(key)
            self.judged += 1
            self.flips += verdict.is_flipped
        if len(verdict.lengths) == 2:
            self.lengths.extend((sign * verdict.value, *verdict.lengths[::sign]))

    def state(self) -> State:
        return {
            "values": self.values,
            "failed": sorted(self.failed),
            "asked": sorted(self.asked),
            "criteria": self.criteria,
            "lengths": [*self.lengths],
            "counts": [self.flips, self.judged],
        }

    def merge(self, state: State) -> None:
        _add(self.values, state["values"])
        for name, counted in state["criteria"].items():
            _add(self.criteria.setdefault(name, {}), counted)
        self.failed.update(state["failed"])
        self.asked.update(state["asked"])
        self.lengths.extend(state["lengths"])
        self.flips += state["counts"][0]
        self.judged += state["counts"][1]

    @property
    def means(self) -> dict[str, float]:
        """By key of the query, in the order of the keys."""
        return _means(self.values)

    @property
    def longer_wins(self) -> int:
        return sum(value * (one - other) > 0 for value, one, other in self._cases())

    @property
    def longer_of(self) -> int:
        return sum(bool(value * (one - other)) for value, one, other in self._cases())

    def _cases(self) -> Iterator[tuple[float, float, float]]:
        return zip(self.lengths[::3], self.lengths[1::3], self.lengths[2::3], strict=True)

    def summary(self, one: str, other: str, test: ColumnTest | None, *, is_trusted: bool) -> PairSummary:
        means = self.means
        values = [*means.values()]
        interval = test.interval if test else _interval(means)
        return PairSummary(
            one,
            other,
            queries=len(values),
            wins=sum(value >= 1 for value in values),
            ties=sum(-1 < value < 1 for value in values),
            losses=sum(value <= -1 for value in values),
            failed=len(self.failed - means.keys()),
            win_rate=_rate(sum(values) / len(values)) if values else None,
            interval=_interval_of_rate(interval, values, len({key[:_CLUSTER] for key in means})),
            is_significant=bool(test and test.is_significant and is_trusted),
            pvalue=test.pvalue if test else None,
            flips=self.flips,
            judged=self.judged,
            longer_wins=self.longer_wins,
            longer_of=self.longer_of,
            at_equal_length=_at_equal_length([*self._cases()]),
            criteria={
                name: _rate(sum(_means(counted).values()) / len(counted))
                for name, counted in self.criteria.items()
            },
        )


def _means(counted: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {key: total / count for key, (total, count) in sorted(counted.items())}


def _add(counted: dict[str, list[float]], more: Mapping[str, Sequence[float]]) -> None:
    for key, added in more.items():
        before = counted.get(key, (0.0, 0.0))
        counted[key] = [one + other for one, other in zip(before, added, strict=True)]


_CLUSTER = 32
"""Digits of a key of a question that are the same for all questions of a conversation."""


def _rate(value: float) -> float:
    """The win rate for a mean from -1 to 1."""
    return (1 + value) / 2


def _interval(means: Mapping[str, float]) -> Interval | None:
    """Of the mean over the keys; those of one cluster are drawn together."""
    clusters = _clusters(means)
    return reported_interval([*means.values()], clusters=[*clusters.values()] if clusters else None)


def _clusters(keys: Iterable[str]) -> dict[str, int] | None:
    """Of each key the number of its cluster, in the order given; None if no two have the same."""
    numbers: dict[str, int] = {}
    found = {key: numbers.setdefault(key[:_CLUSTER], len(numbers)) for key in keys}
    return found if len(numbers) < len(found) else None


def _interval_of_rate(interval: Interval | None, values: Sequence[float], clusters: int) -> Interval | None:
    """Of equal values a bootstrap knows nothing: there it is the interval of a share, of so many clusters."""
    if interval and interval.low == interval.high:
        return wilson_interval(round(_rate(values[0]) * clusters), clusters)
    return interval and Interval(max(0.0, _rate(interval.low)), min(1.0, _rate(interval.high)))


def _tested(pairs: Mapping[tuple[str, str], _Pair]) -> dict[tuple[str, str], Any]:
    """Each pair against 'neither is preferred', all pairs together.

    A pair that was not judged might have said the opposite of what the others say: a claim must stand that.
    """
    keys = sorted({key for pair in pairs.values() for key in (*pair.values, *pair.failed)})
    place = {key: number for number, key in enumerate(keys)}
    clusters = [key[:_CLUSTER] for key in keys]
    table = np.full((len(keys), len(pairs)), np.nan)
    worst = table.copy()
    for column, pair in enumerate(pairs.values()):
        means = pair.means
        against = -1.0 if sum(means.values()) > 0 else 1.0
        for key in pair.failed - means.keys():
            worst[place[key], column] = against
        for key, value in means.items():
            table[place[key], column] = worst[place[key], column] = value
    tests = compare_columns(table, clusters=clusters)
    if any(pair.failed - pair.values.keys() for pair in pairs.values()):
        sure = compare_columns(worst, clusters=clusters)
        tests = [test.in_worst_case(worst_case) for test, worst_case in zip(tests, sure, strict=True)]
    return dict(zip(pairs, tests, strict=True))


# Length


_FEWEST_LONGER = 5


def _at_equal_length(cases: Sequence[tuple[float, float, float]]) -> float | None:
    """Win rate of the first bot without what length explains.

    A regression on odd functions of the ratio of lengths, its sign and a curve that levels off, whose constant is the
    rate at equal length. A judge that prefers the longer response always, or the more the longer it is, comes to 50%.
    """
    table = np.array(cases, dtype=float).reshape(-1, 3)
    values, ratio = table[:, 0], np.log((1 + table[:, 1]) / (1 + table[:, 2]))
    if min((ratio > 0).sum(), (ratio < 0).sum()) < _FEWEST_LONGER:
        return None
    scale = float(np.sqrt((ratio**2).mean()))
    features = np.column_stack([np.ones(len(ratio)), np.sign(ratio), np.tanh(ratio / scale)])
    constant = float(np.linalg.lstsq(features, values, rcond=None)[0][0])
    return _rate(min(1.0, max(-1.0, constant)))


# Strengths


_RIDGE = 1e-6
"""Keeps the strength of a bot finite that always wins; it moves others by less than a millionth."""
_RESAMPLES = 2_000


def bradley_terry(wins: Floats, start: Floats | None = None) -> Floats:
    """Strengths with the sum 0, so that P(i beats j) = 1 / (1 + exp(strength j - strength i)).

    `wins[..., i, j]` is how often i beat j, a tie as half a win of each; leading axes are several tables. Maximum
    likelihood (Bradley and Terry 1952) by Newton's method.
    """
    bots = wins.shape[-1]
    games = wins + np.swapaxes(wins, -1, -2)
    theta = np.zeros(wins.shape[:-1]) if start is None else np.broadcast_to(start, wins.shape[:-1]).copy()
    for _ in range(100):
        chance = 1 / (1 + np.exp(theta[..., None, :] - theta[..., :, None]))
        slope = (wins - games * chance).sum(axis=-1) - 2 * _RIDGE * theta
        weights = games * chance * (1 - chance)
        hessian = -weights
        index = np.arange(bots)
        hessian[..., index, index] += weights.sum(axis=-1) + 2 * _RIDGE
        # The strengths are only known up to a constant; this makes their sum 0.
        hessian += 1.0 / bots
        step = np.linalg.solve(hessian, slope[..., None])[..., 0]
        theta = theta + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-10:
            break
    return np.asarray(theta - theta.mean(axis=-1, keepdims=True))


def _strengths(
    bots: Sequence[str], pairs: Mapping[tuple[str, str], _Pair], *, is_tested: bool
) -> tuple[Strength, ...]:
    """From all pairs; intervals by resampling queries, the test by contrasts of what each query adds to strengths."""
    tables = _by_query(bots, pairs)
    played = np.flatnonzero(tables.sum(axis=(0, 2)) + tables.sum(axis=(0, 1))).tolist()
    if len(played) < 2:
        return ()
    tables = tables[:, played][:, :, played]
    names = [bots[index] for index in played]
    count = len(tables)
    theta = bradley_terry(tables.sum(axis=0))
    leader = names[int(theta.argmax())]
    rng = np.random.default_rng(0)
    flat = pooled(tables.reshape(count, -1), rng)
    resampled = np.concatenate([counts @ flat for counts in resampled_counts(len(flat), _RESAMPLES, rng)])
    replicates = bradley_terry(resampled.reshape(-1, len(played), len(played)), theta)
    reach = student_quantile(0.975, max(count - 1, 1)) * (len(flat) / max(len(flat) - 1, 1)) ** 0.5
    behind: frozenset[str] = frozenset()
    if is_tested and count >= FEWEST_ROWS:
        behind = bots_behind(leader, _influences(tables), names)
        worst = _by_query(bots, pairs, leader)[:, played][:, :, played]
        if behind and any(
            leader in pair and found.failed - found.values.keys() for pair, found in pairs.items()
        ):
            behind &= bots_behind(leader, _influences(worst), names)
    found = []
    for index, name in enumerate(names):
        interval = None
        if count >= FEWEST_ROWS:
            levels = bca_levels(replicates[:, index], float(theta[index]), 0.0, reach)
            low, high = quantiles(replicates[:, index], levels)
            interval = Interval(_logistic(low), _logistic(high))
        games = int(np.count_nonzero(tables[:, index].sum(axis=1) + tables[:, :, index].sum(axis=1)))
        found.append(Strength(name, _logistic(theta[index]), interval, games, name in behind))
    return tuple(sorted(found, key=lambda each: -each.win_rate))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _by_query(bots: Sequence[str], pairs: Mapping[tuple[str, str], _Pair], against: str = "") -> Floats:
    """Clusters x bots x bots: wins, a tie as half of one. What failed speaks against the bot `against`, if given.

    A cluster is a query with its repeats, or a conversation."""
    numbers = {bot: number for number, bot in enumerate(bots)}
    keys = sorted(
        {key for pair in pairs.values() for key in (*pair.values, *(pair.failed if against else ()))}
    )
    clusters: dict[str, int] = {}
    place = {key: clusters.setdefault(key[:_CLUSTER], len(clusters)) for key in keys}
    tables = np.zeros((len(clusters), len(bots), len(bots)))
    for names, pair in pairs.items():
        one, other = (numbers[name] for name in names)
        means = pair.means
        if against in names:
            means |= dict.fromkeys(pair.failed - means.keys(), -1.0 if names[0] == against else 1.0)
        for key, value in means.items():
            tables[place[key], one, other] += _rate(value)
            tables[place[key], other, one] += 1 - _rate(value)
    return tables


def _influences(tables: Floats) -> Floats:
    """Queries x bots: what each query adds to the strengths, to the first order, if all bots are equally strong."""
    games = (tables + np.swapaxes(tables, 1, 2)).sum(axis=0)
    information = (np.diag(games.sum(axis=1)) - games) / 4
    scores = (tables - np.swapaxes(tables, 1, 2)).sum(axis=2) / 2
    return np.asarray(scores @ np.linalg.pinv(information) * len(tables))
