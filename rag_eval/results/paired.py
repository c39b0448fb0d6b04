"""Values of the same cases side by side: of two runs, of two judges, or of judge and people, and what the pairs say."""

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from statistics import fmean
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rag_eval.records import SPENT_LABELS
from rag_eval.results.stored import State
from rag_eval.results.summary import FEWEST_ROWS
from rag_eval.texts.display import counted, enumerated

if TYPE_CHECKING:
    from rag_eval.results.agreement import CohenKappa
    from rag_eval.results.intervals import Interval

BANDS = 5
MOST_DISAGREEMENTS = 10
_ALPHA = 0.05

Found = TypeVar("Found")


class JoinedValues:
    """Two or more values of each case, one per column; NaN where there is none."""

    def __init__(self, columns: int = 2) -> None:
        self.columns = tuple(array("d") for _ in range(columns))
        self.clusters = array("q")
        """Of each case: the number of its conversation; 0 for none."""

    def __len__(self) -> int:
        return len(self.columns[0])

    def add(self, *values: float | None, cluster: int = 0) -> None:
        self.clusters.append(cluster)
        for column, value in zip(self.columns, values, strict=True):
            column.append(math.nan if value is None else value)

    def label_last(self, value: float) -> bool:
        """Give the case that was added last its value in the last column; False if it has one."""
        column = self.columns[-1]
        if not math.isnan(column[-1]):
            return False
        column[-1] = value
        return True

    def state(self) -> State:
        """What was added, for `merge`."""
        return {"columns": list(self.columns), "clusters": self.clusters}

    def merge(self, state: State) -> None:
        """Add the cases of a part of the run, which come after those that were added so far."""
        for column, more in zip(self.columns, state["columns"], strict=True):
            column.extend(more)
        self.clusters.extend(state["clusters"])

    def column(self, number: int) -> list[float]:
        """The values of one column, whatever the others have."""
        return [value for value in self.columns[number] if not math.isnan(value)]

    def common(self, *numbers: int) -> tuple[list[int], list[list[float]]]:
        """The numbers of the cases with a value in each of these columns (default: all), and the values by column."""
        columns = [self.columns[number] for number in numbers] or self.columns
        has_all = [not any(map(math.isnan, case)) for case in zip(*columns, strict=True)]
        return list(compress(range(len(self)), has_all)), [list(compress(each, has_all)) for each in columns]

    def groups(self, cases: Sequence[int]) -> list[int] | None:
        """Of the cases with these numbers: the conversation, or another number; None if no conversation has several."""
        return groups_of([self.clusters[case] for case in cases], cases)

    def only(self, number: int) -> int:
        """How many cases have a value in this column, and in no other."""
        others = [column for index, column in enumerate(self.columns) if index != number]
        return sum(
            not math.isnan(value) and all(map(math.isnan, rest))
            for value, *rest in zip(self.columns[number], *others, strict=True)
        )


def groups_of(told: Sequence[int], cases: Sequence[int]) -> list[int] | None:
    """The conversations of cases, 0 for one without, or another number; None if no conversation has several.

    `cases` are the numbers of the cases.
    """
    named = [each for each in told if each]
    if len({*named}) == len(named):
        return None
    return [each or -case - 1 for each, case in zip(told, cases, strict=True)]


def mean(values: Sequence[float]) -> float | None:
    """None without any."""
    return fmean(values) if values else None


def mean_absolute_error(one: Sequence[float], other: Sequence[float]) -> float | None:
    return mean([abs(a - b) for a, b in zip(one, other, strict=True)])


def consensus(labels: Mapping[str, float]) -> float | None:
    """What more than half of the raters prefer; None without labels, and if they are divided."""
    said = Counter(labels.values()).most_common(1)
    return said[0][0] if said and 2 * said[0][1] > len(labels) else None


def ratings(values: Iterable[float], *, is_verdict: bool) -> list[Hashable]:
    """What kappa counts: the verdicts of a criterion, or which of the BANDS bands of equal width each value is in."""
    return list(values) if is_verdict else [min(int(value * BANDS), BANDS - 1) for value in values]


def kappa_options(*, is_verdict: bool) -> dict[str, Any]:
    """How kappa counts them: verdicts without weights, bands with quadratic ones."""
    return {"categories": (0.0, 1.0)} if is_verdict else {"categories": range(BANDS), "weights": "quadratic"}


def kappa(
    one: Sequence[float], other: Sequence[float], *, is_verdict: bool, groups: Sequence[int] | None = None
) -> "CohenKappa":
    """Cohen's kappa of two columns. `groups` are those of cohen_kappa."""
    from rag_eval.results.agreement import cohen_kappa

    rated = (ratings(values, is_verdict=is_verdict) for values in (one, other))
    return cohen_kappa(*rated, groups=groups, **kappa_options(is_verdict=is_verdict))


class Largest(Generic[Found]):
    """The MOST_DISAGREEMENTS largest gaps of each measure."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[float, int, Found]]] = {}

    def add(self, measure: str, gap: float, order: int, found: Found) -> None:
        """Of equal gaps those of the lowest order stay. No two of a measure have the same."""
        largest = self._found.setdefault(measure, [])
        heapq.heappush(largest, (abs(gap), -order, found))
        if len(largest) > MOST_DISAGREEMENTS:
            heapq.heappop(largest)

    def of(self, measures: Iterable[str]) -> tuple[Found, ...]:
        """By measure, the largest first."""
        return tuple(
            found
            for measure in measures
            for _, _, found in sorted(self._found.get(measure, ()), reverse=True)
        )


# Two runs


class Direction(StrEnum):
    """A change is claimed only when chance would hardly make it: all changes of a run are tested together."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "not decided"
    SAME = "no change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonQueries:
    """How many queries of one bot two runs have."""

    before: int
    """In the earlier run."""
    now: int
    """In this run."""
    both: int

    @property
    def only_before(self) -> int:
        return self.before - self.both

    @property
    def only_now(self) -> int:
        return self.now - self.both


NO_COMMON = "no query is in both runs equally often"
NO_BOT = "no bot is in both runs"
"""Why nothing is compared; a query that comes more often in one of them is not."""


def common_words(queries: int) -> str:
    """How many queries a change is over."""
    return counted(queries, "common query", "common queries")


def queries_words(common: Mapping[str, CommonQueries], earlier: str) -> list[str]:
    """Which queries are not compared as only one run has them, a sentence for the bots that have the same numbers."""
    alike: dict[CommonQueries, list[str]] = {}
    for bot, queries in common.items():
        alike.setdefault(queries, []).append(bot)
    sentences = []
    for queries, bots in alike.items():
        only = [
            f"{count:,} only in {run}"
            for count, run in ((queries.only_before, earlier), (queries.only_now, "this run"))
            if count
        ]
        named = f"{enumerated(bots)}: " if len(alike) > 1 else ""
        if only:
            sentences.append(f"{named}{common_words(queries.both)}, {', '.join(only)}.")
    return sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMeans:
    """One mean of one bot, then and now, over the queries that have a value in both runs."""

    bot: str
    name: str
    before: float
    now: float
    queries: int
    """Number of the queries that are compared."""
    common: CommonQueries
    """Those that could be, with or without a value."""
    direction: Direction
    is_reversible: bool = False
    """The compared queries would decide it, but those with a value in only one of the two runs could change that."""
    units: int = 0
    """Independent ones: the compared queries, or their conversations if any has several; 0 if that is not known."""

    @property
    def difference(self) -> float:
        return self.now - self.before

    @property
    def too_few(self) -> str:
        """The name of what is fewer than FEWEST_ROWS, so that nothing is claimed; '' if there are enough."""
        if not 0 < self.units < FEWEST_ROWS:
            return ""
        return "conversations" if self.units < self.queries else "queries"

    @property
    def is_open(self) -> bool:
        """It is not the same then and now, and too little is compared for a verdict."""
        return bool(self.too_few) and self.direction is Direction.UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(PairedMeans):
    interval: "Interval | None"
    """Of the mean difference, so wide that those of all lines hold together with 95 %: it is on one side of 0
    exactly when the change is claimed. None for fewer than FEWEST_ROWS queries or conversations."""


def changes_of(
    pairs: Mapping[tuple[str, str], JoinedValues],
    common: Mapping[str, CommonQueries],
    least: Mapping[str, float],
    queries: Mapping[tuple[str, str], int] | None = None,
) -> tuple[Change, ...]:
    """The changes by bot and name, tested together. `pairs` have what was then and what is now.

    A difference of up to `least`, by name, counts as none. Of latency and cost less is better. Cases of a conversation
    count as one, and fewer than FEWEST_ROWS queries or conversations decide nothing. `queries` is how many the pairs
    stand for if these are conversations already.
    """
    from rag_eval.results.comparison import holm, paired_permutation_pvalue

    differences = {key: _differences(each, least[key[1]]) for key, each in pairs.items()}
    pvalues = [paired_permutation_pvalue(each) for each in differences.values()]
    tests = zip(holm(pvalues), _alphas(pvalues), strict=True)
    return tuple(
        _change(key, pairs[key], each, least[key[1]], common[key[0]], *test, (queries or {}).get(key))
        for (key, each), test in zip(differences.items(), tests, strict=True)
    )


def _differences(pairs: JoinedValues, least: float, seen: Direction | None = None) -> list[float]:
    """Of the pairs; also of half ones, as they would be if what is missing spoke against the direction `seen`.

    One number for each conversation with several of them, so that the mean stays the same.
    """
    cases, (then, now) = pairs.common()
    changes = (after - before for before, after in zip(then, now, strict=True))
    values = [change if abs(change) > least else 0.0 for change in changes]
    if seen:
        halves = _worst(pairs, seen)
        cases, values = [*cases, *halves], [*values, *halves.values()]
    clusters = [pairs.clusters[case] or -case - 1 for case in cases]
    return values if len({*clusters}) == len(clusters) else _by_cluster(values, clusters)


def _by_cluster(values: Sequence[float], clusters: Sequence[int]) -> list[float]:
    sums: dict[int, float] = {}
    for cluster, value in zip(clusters, values, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
    return [each * len(sums) / len(values) for each in sums.values()]


def _change(
    key: tuple[str, str],
    pairs: JoinedValues,
    differences: Sequence[float],
    least: float,
    common: CommonQueries,
    pvalue: float,
    alpha: float,
    queries: int | None,
) -> Change:
    from rag_eval.results.intervals import bootstrap_mean_interval

    _, (then, now) = pairs.common()
    queries = queries or len(then)
    is_enough = len(differences) >= FEWEST_ROWS
    interval = bootstrap_mean_interval(differences, confidence=1 - alpha) if is_enough else None
    seen = direction = _direction(differences, interval, pvalue)
    if (
        seen in _WORST and len(pairs) > len(then) and key[1] not in SPENT_LABELS
    ):  # these have no largest value
        worst = _differences(pairs, least, seen)
        direction = seen if _decides(worst, seen, alpha) else Direction.UNDECIDED
    if key[1] in SPENT_LABELS:
        seen = direction = _OPPOSITE.get(direction, direction)
    return Change(
        bot=key[0],
        name=key[1],
        before=fmean(then),
        now=fmean(now),
        # Where the test does not decide, neither does the interval.
        interval=interval and interval.with_zero() if direction is Direction.UNDECIDED else interval,
        queries=queries,
        common=common,
        direction=direction,
        is_reversible=direction is not seen,
        units=len(differences),
    )


def _worst(pairs: JoinedValues, seen: Direction) -> dict[int, float]:
    """By case: the differences of the half pairs if what is missing spoke against the change as much as it can."""
    then, now = _WORST[seen]
    return {
        case: (now if math.isnan(value) else value) - (then if math.isnan(before) else before)
        for case, (before, value) in enumerate(zip(*pairs.columns, strict=True))
        if math.isnan(before) != math.isnan(value)
    }


_WORST = {Direction.BETTER: (1.0, 0.0), Direction.WORSE: (0.0, 1.0)}
"""What a missing value then, or now, would be if it spoke against the change."""


_OPPOSITE = {Direction.BETTER: Direction.WORSE, Direction.WORSE: Direction.BETTER}


def _decides(differences: Sequence[float], direction: Direction, alpha: float) -> bool:
    """Whether the test, as strict as it was for this line, finds the direction in these differences."""
    from rag_eval.results.comparison import paired_permutation_pvalue
    from rag_eval.results.intervals import bootstrap_mean_interval

    interval = bootstrap_mean_interval(differences, confidence=1 - alpha)
    pvalue = paired_permutation_pvalue(differences) * _ALPHA / alpha  # since it is compared with 5 %
    return _direction(differences, interval, pvalue) is direction


def _alphas(pvalues: Sequence[float]) -> list[float]:
    """How strict Holm's test is on each line: those that were claimed before it need no correction any more."""
    from rag_eval.results.comparison import holm

    claimed = sum(pvalue < _ALPHA for pvalue in holm(pvalues))
    return [
        _ALPHA / (len(pvalues) - min(claimed, sum(other < pvalue for other in pvalues))) for pvalue in pvalues
    ]


def _direction(differences: Sequence[float], interval: "Interval | None", pvalue: float) -> Direction:
    """Test and interval see skewed differences a little differently: only what both see is claimed."""
    if not any(differences):
        return Direction.SAME
    if pvalue >= _ALPHA or interval is None or interval.has(0):
        return Direction.UNDECIDED
    return Direction.BETTER if interval.low > 0 else Direction.WORSE
