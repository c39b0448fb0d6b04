"""What the cases add up to: per bot, and between bots. Every mean travels with its counts."""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, pstdev, quantiles

from rag_eval.errors import CONTENT_CODES
from rag_eval.records import (
    METRIC_LABELS,
    SPENT_LABELS,
    TOXICITY,
    CaseResult,
    FailureMode,
    Outcome,
    PlannedLook,
    RunFacts,
    Score,
)
from rag_eval.results.looks import Seen, conversation_of, in_order, is_reached, key_of, taken
from rag_eval.results.stored import State
from rag_eval.store.codec import NumberTable, Spool
from rag_eval.texts.display import counted, shorten

RQS = "rqs"
FEWEST_OF_CLASS = 5
"""Labels of good responses, and of bad ones, below which labels imply no threshold."""
GOAL = 0.05
"""Half the width of the interval that the advice on further labels aims at."""
FEWEST_ROWS = 5
"""With fewer values reports and gates show no interval."""
RELIABLE_ROWS = 10
"""With fewer values an interval carries a warning: with rare failures it covers the mean in 48 to 66% of runs."""
_MISSING = math.nan  # leaves this module's private columns in `Summary.gapped_rqs` only
_CODES = {outcome: code for code, outcome in enumerate(Outcome)}  # in one byte a case


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and what it was taken over."""

    value: float | None
    """Of the unrounded values; None when nothing was scored."""
    stdev: float | None
    """Population standard deviation; None when nothing was scored."""
    scored: int
    failed: int = 0
    """Cases that the metric applies to but the judge could not score."""
    not_applicable: int = 0

    @property
    def expected(self) -> int:
        return self.scored + self.failed

    @property
    def coverage(self) -> float | None:
        """Scored ÷ applicable; None when the metric applies to no case."""
        return self.scored / self.expected if self.expected else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What the mean would be if every missing value were 0, or 1; None when it applies to no case."""
        if not self.expected:
            return None
        total = (self.value or 0.0) * self.scored
        return total / self.expected, (total + self.failed) / self.expected


@dataclass(frozen=True, slots=True)
class Spent:
    """What a bot spent on its responses, as far as the input says it, in the unit of the run."""

    count: int
    """Cases with a value; at least one."""
    mean: float
    total: float
    median: float
    p95: float
    """95th percentile, interpolated between neighbours (Hyndman & Fan 1996, type 7), as in pandas."""
    values: Sequence[float] = field(repr=False)
    clusters: Sequence[int] | None = field(default=None, repr=False)
    """The number of each value's conversation, or another one of its own; None if no conversation has several cases."""

    @classmethod
    def of(cls, values: Sequence[float], clusters: Sequence[int] | None = None) -> "Spent":
        """At least one value."""
        p95 = quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
        return cls(len(values), fmean(values), math.fsum(values), median(values), p95, values, clusters)


@dataclass(frozen=True, slots=True)
class BotSummary:
    """All cases of one bot."""

    bot: str
    rqs: Mean
    metrics: Mapping[str, Mean]
    """By metric name; a metric that is switched off is absent."""
    further: Mapping[str, Mean]
    """Of the measures beside them, by name."""
    toxicity: Mean
    toxic_queries: int
    total_queries: int
    failure_modes: Mapping[FailureMode, int]
    full_modes: Mapping[FailureMode, int]
    """The same of the cases that were judged in full; Not Judged are all others."""
    empty_contexts: int
    empty_answers: int
    not_asked: int
    """Queries that the input has no response of this bot to."""
    failures: Mapping[str, int]
    """Failed scores by code, those of the rubric included."""
    rqs_values: Sequence[float] = field(repr=False)
    """What the mean of RQS was taken over."""
    metric_values: Mapping[str, Sequence[float]] = field(repr=False)
    """The same for the metrics that were asked for."""
    clusters: Mapping[str, Sequence[int]] = field(repr=False)
    """For RQS and these metrics: the number of each value's conversation, or another one of its own; empty if no
    conversation has several cases."""
    failed_by_content: int
    """Cases without an RQS because of what they say: blocked by a filter, refused, too long or cut off."""
    spent: Mapping[str, Spent]
    """By names of SPENT_LABELS; absent where no case has a value."""

    @property
    def judged_queries(self) -> int:
        """Those that were judged in full: the whole that shares of failures refer to."""
        return self.total_queries - self.full_modes[FailureMode.NOT_JUDGED]

    @property
    def failed_queries(self) -> int:
        """Those of them with a failure mode."""
        return self.judged_queries - self.full_modes[FailureMode.OK]


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of the leaderboard. All its means are over the same rows for every ranked bot."""

    rank: int | None
    """1 is best, ties share a rank; None when the bot has no RQS or shares no row with the others."""
    bot: str
    is_winner: bool
    rqs: Mean
    metrics: Mapping[str, Mean]


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows with one value in the column that the run is sliced by."""

    name: str
    """Empty for the rows without a value."""
    bots: tuple[BotSummary, ...]
    """In the order of the sheet."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The bots in the order of the sheet, the standings in the order of the ranks."""

    bots: tuple[BotSummary, ...]
    standings: tuple[Standing, ...]
    compared: int
    """Rows on which every ranked bot has an RQS: the ones that the ranking uses."""
    rows: int
    """Rows of the run, those included that could not be judged."""
    judged: int
    """Rows in which at least one bot has an RQS, or none of the metrics applies."""
    rqs_values: Mapping[str, Sequence[float]] = field(repr=False)
    """By ranked bot, in the order of the sheet: what the ranking compares, one RQS a compared row."""
    gapped_rqs: Mapping[str, Sequence[float]] = field(repr=False)
    """The same over all rows that every ranked bot can have an RQS on, NaN where the judge failed; empty when it
    failed on none of them."""
    slices: tuple[Slice, ...]
    """In the order in which they first came; none unless they were asked for."""
    spent_values: Mapping[str, Mapping[str, Sequence[float]]] = field(repr=False)
    """Latency and cost by name and bot: one a row, NaN where the input has none; those of which there are some."""
    spent_clusters: Sequence[int] | None = field(repr=False)
    """Of each row: the number of its conversation, or another one of its own; None if no conversation has several."""
    clusters: Sequence[int] | None = field(repr=False)
    """Of each compared row: the number of its conversation, or another one of its own; None if no conversation has
    several rows."""
    gapped_clusters: Sequence[int] | None = field(repr=False)
    """The same of `gapped_rqs`."""
    reached: int
    """Rows that a run with planned looks came to, whether or not their judge failed."""
    seen: Seen | None
    """What planned looks saw of the compared rows, which come in the order in which they were judged then."""
    gapped_seen: Seen | None
    """The same of `gapped_rqs`."""

    @property
    def scored_and_failed(self) -> tuple[int, int]:
        """Cases with an RQS, and those without one since the judge failed."""
        return sum(bot.rqs.scored for bot in self.bots), sum(bot.rqs.failed for bot in self.bots)

    @property
    def evidence(self) -> tuple[int, str]:
        """How many queries are compared, or conversations if several rows are of one, and which of both words it is."""
        if self.clusters is None:
            return self.compared, "queries"
        return len({*self.clusters}), "conversations"

    @property
    def too_few(self) -> str:
        """The name of what the comparison is over if that is fewer than FEWEST_ROWS; '' if there are enough."""
        count, name = self.evidence
        return name if count < FEWEST_ROWS else ""


def of_queries(part: int, whole: int, kind: str = "") -> str:
    """A share of the queries in words: '18 of 20 queries', '1 of 1 query', '3 of 9 judged queries'."""
    return f"{part:,} of {counted(whole, f'{kind}query', f'{kind}queries')}"


class Summarizer:
    """Folds case results, in the order of the rows, into a Summary. Holds numbers only, most of them on disk."""

    def __init__(
        self,
        bots: Sequence[str],
        metrics: Iterable[str],
        toxicity_threshold: float,
        slice_by: str = "",
        further: Iterable[str] = (),
        looks: Sequence[PlannedLook] = (),
    ) -> None:
        """`slice_by` names the column whose values are the slices; without it there are none.

        `looks` are those that were planned; with them the queries of the rows count.
        """
        self._looks = looks
        self._keys: list[str] = []
        self._unreached: set[int] = set()
        enabled = set(metrics)
        self._metrics = tuple(metric for metric in METRIC_LABELS if metric in enabled)
        self._further = tuple(further)
        self._toxicity_threshold = toxicity_threshold
        self._file: Spool[bytes] = Spool(bytes, "the scores")
        self._bots = self._columns(bots)
        self._slice_by = slice_by
        self._slices: dict[str, dict[str, _BotColumns]] = {}

    def add(self, result: CaseResult) -> None:
        columns = self._bots[result.case.bot]
        columns.add(result)
        if self._looks:
            if columns.cases > len(self._keys):
                self._keys.append(key_of(result.case))
            if not is_reached(result):
                self._unreached.add(columns.cases)
        if self._slice_by:
            name = result.case.columns.get(self._slice_by, "").strip()
            if name not in self._slices:
                self._slices[name] = self._columns(self._bots)
            self._slices[name][result.case.bot].add(result)

    def state(self) -> State:
        """What was added, for `merge`."""
        return {
            "bots": {bot: columns.state() for bot, columns in self._bots.items()},
            "slices": [
                [name, {bot: columns.state() for bot, columns in bots.items()}]
                for name, bots in self._slices.items()
            ],
        }

    def merge(self, state: State) -> None:
        """Add the rows of a part of the run, which come after those that were added so far."""
        for bot, columns in state["bots"].items():
            self._bots[bot].merge(columns)
        for name, bots in state["slices"]:
            slice_ = self._slices.setdefault(name, self._columns(self._bots))
            for bot, columns in bots.items():
                slice_[bot].merge(columns)

    def summary(self, values_of: Collection[str] | None = None) -> Summary:
        """`values_of` are the metrics whose single values are kept, all by default: most of a summary's memory."""
        kept = self._metrics if values_of is None else [n for n in self._metrics if n in values_of]
        ranked = [bot for bot, columns in self._bots.items() if columns.has_rqs()]
        common = self._rows_without(ranked, Outcome.FAILED, Outcome.NOT_APPLICABLE)
        if not len(common):
            ranked = []
        expected = self._rows_without(ranked, Outcome.NOT_APPLICABLE)
        reached = len(self._keys) - len(self._unreached)
        looks = taken(self._looks, reached)
        if self._looks:
            common, expected = (in_order(self._keys, rows) for rows in (common, expected))
        bots = {bot: columns.summary(bot, kept) for bot, columns in self._bots.items()}
        return Summary(
            bots=tuple(bots.values()),
            standings=self._standings(bots, ranked, common),
            compared=len(common),
            rows=max((columns.cases for columns in self._bots.values()), default=0),
            rqs_values={
                bot: bots[bot].rqs_values
                if common == range(self._bots[bot].cases)
                else self._bots[bot].present(RQS, common)
                for bot in ranked
            },
            gapped_rqs={bot: self._bots[bot].chosen(RQS, expected) for bot in ranked}
            if len(expected) > len(common)
            else {},
            judged=self._judged(),
            slices=tuple(
                Slice(name, tuple(columns.summary(bot, kept) for bot, columns in bots.items()))
                for name, bots in self._slices.items()
            ),
            spent_values={
                name: values
                for name in SPENT_LABELS
                if (values := {bot: its for bot, each in self._bots.items() if (its := each.spent(name))})
            },
            clusters=self._bots[ranked[0]].clusters(common) if ranked else None,
            gapped_clusters=self._bots[ranked[0]].clusters(expected) if ranked else None,
            spent_clusters=next((each.clusters(range(each.cases)) for each in self._bots.values()), None),
            reached=reached,
            seen=Seen.of(self._keys, common, looks) if self._looks else None,
            gapped_seen=Seen.of(self._keys, expected, looks) if self._looks else None,
        )

    def _rows_without(self, bots: Sequence[str], *outcomes: Outcome) -> Sequence[int]:
        """The rows on which no RQS of these bots has one of the outcomes; a range if these are all rows."""
        import numpy as np

        columns = [np.frombuffer(self._bots[bot].outcomes(RQS), np.uint8) for bot in bots]
        count = min(map(len, columns), default=0)
        has_one = np.zeros(count, dtype=bool)
        for column in columns:
            for outcome in outcomes:
                has_one |= column[:count] == _CODES[outcome]
        return array("q", np.flatnonzero(~has_one).tobytes()) if has_one.any() else range(count)

    def _judged(self) -> int:
        """Rows on which the judge was not what some bot's RQS lacked."""
        import numpy as np

        columns = [np.frombuffer(each.outcomes(RQS), np.uint8) for each in self._bots.values()]
        count = min(map(len, columns), default=0)
        has_been = np.zeros(count, dtype=bool)
        for column in columns:
            has_been |= column[:count] != _CODES[Outcome.FAILED]
        return int(np.count_nonzero(has_been))

    def _columns(self, bots: Iterable[str]) -> dict[str, "_BotColumns"]:
        return {
            bot: _BotColumns(self._metrics, self._further, self._toxicity_threshold, self._file)
            for bot in bots
        }

    def _standings(
        self, bots: Mapping[str, BotSummary], ranked: Sequence[str], common: Sequence[int]
    ) -> tuple[Standing, ...]:
        means = {
            bot: {RQS: own.rqs, **own.metrics}
            if bot not in ranked or common == range(self._bots[bot].cases)
            else self._bots[bot].means(common)
            for bot, own in bots.items()
        }
        level = {bot: round(means[bot][RQS].value or 0.0, 4) for bot in ranked}
        best = max(level.values(), default=0.0)
        standings = [
            Standing(
                rank=1 + sum(other > level[bot] for other in level.values()) if bot in level else None,
                bot=bot,
                rqs=means[bot][RQS],
                metrics={metric: means[bot][metric] for metric in self._metrics},
                is_winner=bot in level and level[bot] == best,
            )
            for bot in self._bots
        ]
        return tuple(sorted(standings, key=lambda line: line.rank or len(standings) + 1))


class _BotColumns:
    """The numbers of one bot, one column a metric and one entry a row."""

    def __init__(
        self, metrics: Sequence[str], further: Sequence[str], toxicity_threshold: float, file: "Spool[bytes]"
    ) -> None:
        names = (RQS, *metrics, TOXICITY, *further)
        self._values = NumberTable(dict.fromkeys(names, "d"), file)
        self._outcomes = NumberTable(dict.fromkeys(names, "B"), file)
        self._further = further
        self._spent: dict[str, array[float]] = {}
        """As far as the last case with a value."""
        self._conversations = array("q")
        """Of each case, 0 for none, as far as the last case with one."""
        self._modes: Counter[FailureMode] = Counter()
        self._full: Counter[FailureMode] = Counter()
        self._failures: Counter[str] = Counter()
        self._toxicity_threshold = toxicity_threshold
        self._toxic = self._empty_contexts = self._empty_answers = self._not_asked = (
            self._failed_by_content
        ) = 0

    def add(self, result: CaseResult) -> None:
        for name, value in result.case.spent.items():
            self._add_spent(name, [value])
        if conversation := conversation_of(result.case):
            self._add_conversations([conversation])
        for name, score in result.all_scores.items():
            self._add_score(name, score)
        if result.rubric and result.rubric.outcome is Outcome.FAILED:
            self._failures[result.rubric.code] += 1
        self._add_value(RQS, result.rqs, rqs_outcome(result))
        self._values.end_entry()
        self._outcomes.end_entry()
        self._modes.update(result.failure_modes)
        # Half judged, it could only count if it fails, and every share of failures would be too high.
        self._full.update((FailureMode.NOT_JUDGED,) if result.has_failed else result.failure_modes)
        toxicity = result.toxicity.value
        self._toxic += toxicity is not None and toxicity >= self._toxicity_threshold
        self._empty_contexts += result.case.has_empty_context
        self._empty_answers += result.case.is_unanswered
        self._not_asked += result.case.is_missing
        codes = {score.code for score in result.scores.values()}
        self._failed_by_content += result.rqs is None and not codes.isdisjoint(CONTENT_CODES)

    def state(self) -> State:
        return {
            "cases": self.cases,
            "values": self._values.state(),
            "outcomes": self._outcomes.state(),
            "conversations": self._conversations,
            "modes": self._modes,
            "full": self._full,
            "failures": self._failures,
            "spent": self._spent,
            "counts": [
                self._toxic,
                self._empty_contexts,
                self._empty_answers,
                self._not_asked,
                self._failed_by_content,
            ],
        }

    def merge(self, state: State) -> None:
        for name, values in state["spent"].items():
            self._add_spent(name, values)
        if state["conversations"]:
            self._add_conversations(state["conversations"])
        self._values.extend(state["values"])
        self._outcomes.extend(state["outcomes"])
        self._modes.update({FailureMode(mode): count for mode, count in state["modes"].items()})
        self._full.update({FailureMode(mode): count for mode, count in state["full"].items()})
        self._failures.update(state["failures"])
        toxic, empty_contexts, empty_answers, not_asked, failed_by_content = state["counts"]
        self._toxic += toxic
        self._empty_contexts += empty_contexts
        self._empty_answers += empty_answers
        self._not_asked += not_asked
        self._failed_by_content += failed_by_content

    def _add_spent(self, name: str, values: Iterable[float]) -> None:
        """The next values; the cases before them that have none are filled up."""
        column = self._spent.setdefault(name, array("d"))
        column.extend([_MISSING] * (self.cases - len(column)))
        column.extend(values)

    def _add_conversations(self, numbers: Iterable[int]) -> None:
        """Those of the next cases; 0 for the cases before them that have none."""
        self._conversations.extend([0] * (self.cases - len(self._conversations)))
        self._conversations.extend(numbers)

    def _spent_of(self, column: "array[float]") -> Spent:
        rows = [row for row, value in enumerate(column) if not math.isnan(value)]
        return Spent.of(array("d", (column[row] for row in rows)), self.clusters(rows))

    def spent(self, name: str) -> "array[float]":
        """One value a case, NaN where there is none; empty if no case has one."""
        column = self._spent.get(name, array("d"))
        return column + array("d", [_MISSING] * (self.cases - len(column))) if column else column

    @property
    def cases(self) -> int:
        return len(self._values)

    def has_rqs(self) -> bool:
        return _CODES[Outcome.SCORED] in self.outcomes(RQS)

    def means(self, rows: Sequence[int] | None = None) -> dict[str, Mean]:
        """The mean of every column, over all rows or over the given ones."""
        return {name: self._mean(name, rows) for name in self._values.last}

    def summary(self, bot: str, kept: Sequence[str]) -> BotSummary:
        """`kept` are the metrics whose single values are in it."""
        means = self.means()
        return BotSummary(
            bot=bot,
            rqs=means.pop(RQS),
            toxicity=means.pop(TOXICITY),
            further={name: means.pop(name) for name in self._further},
            metrics=means,
            toxic_queries=self._toxic,
            total_queries=self.cases,
            failure_modes={mode: self._modes[mode] for mode in FailureMode},
            full_modes={mode: self._full[mode] for mode in FailureMode},
            empty_contexts=self._empty_contexts,
            empty_answers=self._empty_answers,
            not_asked=self._not_asked,
            failures=dict(self._failures.most_common()),
            rqs_values=self.present(RQS),
            metric_values={name: self.present(name) for name in kept},
            clusters={name: its for name in (RQS, *kept) if (its := self._clusters_of(name))},
            failed_by_content=self._failed_by_content,
            spent={name: self._spent_of(self._spent[name]) for name in SPENT_LABELS if name in self._spent},
        )

    def present(self, name: str, rows: Sequence[int] | None = None) -> "array[float]":
        """The values that are there, of all rows or of the given ones."""
        import numpy as np

        chosen = self._values.column(name) if rows is None else self.chosen(name, rows)
        is_there = ~np.isnan(np.frombuffer(chosen)) if chosen else np.zeros(0, dtype=bool)
        return chosen if is_there.all() else array("d", np.frombuffer(chosen)[is_there].tobytes())

    def clusters(self, rows: Sequence[int]) -> "array[int] | None":
        """Of each of the rows: the number of its conversation, or another one of its own; None without clusters."""
        if not self._has_clusters():
            return None
        known = self._conversations
        return array("q", ((row < len(known) and known[row]) or -row - 1 for row in rows))

    def _clusters_of(self, name: str) -> "array[int] | None":
        """Of the cases that have a value in this column."""
        if not self._has_clusters():
            return None
        values = self._values.column(name)
        return self.clusters([row for row, value in enumerate(values) if not math.isnan(value)])

    def _has_clusters(self) -> bool:
        """Whether some conversation has several cases."""
        told = [each for each in self._conversations if each]
        return len({*told}) < len(told)

    def chosen(self, name: str, rows: Sequence[int]) -> "array[float]":
        """The values of the given rows, NaN where there is none."""
        return array("d", map(self._values.column(name).__getitem__, rows))

    def outcomes(self, name: str) -> "array[int]":
        """The code of each case's outcome."""
        return self._outcomes.column(name)

    def _add_score(self, name: str, score: Score) -> None:
        self._add_value(name, score.value, score.outcome)
        if score.outcome is Outcome.FAILED:
            self._failures[score.code] += 1

    def _add_value(self, name: str, value: float | None, outcome: Outcome) -> None:
        self._values.last[name].append(_MISSING if value is None else value)
        self._outcomes.last[name].append(_CODES[outcome])

    def _mean(self, name: str, rows: Sequence[int] | None = None) -> Mean:
        present = self.present(name, rows)
        outcomes = self.outcomes(name)
        codes = bytes(outcomes if rows is None else map(outcomes.__getitem__, rows))
        return Mean(
            value=fmean(present) if present else None,
            stdev=pstdev(present) if present else None,
            scored=len(present),
            failed=codes.count(_CODES[Outcome.FAILED]),
            not_applicable=codes.count(_CODES[Outcome.NOT_APPLICABLE]),
        )


def rqs_outcome(result: CaseResult) -> Outcome:
    if result.rqs is not None:
        return Outcome.SCORED
    return Outcome.FAILED if result.has_failed else Outcome.NOT_APPLICABLE


def spent_header(name: str, facts: RunFacts, what: str = "") -> str:
    """As in 'Median Latency (ms)'; without a unit that nobody named."""
    unit = shorten(facts.spent_units.get(name, ""), 20)
    return f"{what} {SPENT_LABELS[name]}{f' ({unit})' if unit else ''}".lstrip()
