"""The measures over many queries, in memory that does not grow with them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from rag_eval.retrieval.scores import DEFAULT_CUTOFFS, RetrievalScores


@dataclass(frozen=True, slots=True)
class QueryIds:
    """The number of queries of one kind, and the ids of the first ten."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalSummary:
    """Means over the queries that have gold documents, and the numbers of queries behind them."""

    means: Mapping[str, float | None]
    """By the names of `RetrievalScores.values`; each 0..1, or None if no query could be scored."""
    scored: int
    """Queries with gold documents: every mean is over all of them."""
    not_applicable: QueryIds
    """Queries without gold documents. They are not part of the means."""
    without_result: QueryIds
    """References with gold documents but without a result. They count as 0 in the means."""
    without_reference: QueryIds
    """Results without a reference. They count nowhere."""
    selection: tuple[str, ...] = ()
    """Which references were wanted, condition by condition; () for all of them."""

    @property
    def queries(self) -> int:
        """References, with or without gold documents."""
        return self.scored + self.not_applicable.count

    @property
    def metrics(self) -> Mapping[str, float | int | None]:
        """The means under their public names, followed by the counts that belong to them."""
        means = {_PUBLIC_NAMES.get(name, name): value for name, value in self.means.items()}
        return means | {
            "scored_queries": self.scored,
            "not_applicable_queries": self.not_applicable.count,
            "queries_without_result": self.without_result.count,
            "results_without_reference": self.without_reference.count,
        }


_PUBLIC_NAMES = {
    "doc_recall": "avg_context_recall",
    "doc_precision": "avg_context_precision",
    "doc_f1": "avg_context_f1",
    "reciprocal_rank": "mrr",
    "average_precision": "map",
}


class RetrievalTally:
    """Sums scores into a summary, one query at a time, in memory that does not grow with their number.

    Sums have no rounding errors, so that they are the same whatever the parts are that they were added in.
    """

    def __init__(self, cutoffs: Iterable[int] = DEFAULT_CUTOFFS) -> None:
        self.cutoffs = tuple(sorted(set(cutoffs)))
        names = RetrievalScores.of("", (), ()).values(self.cutoffs)
        self._sums = dict.fromkeys(names, Fraction())
        self._patterns: Counter[_Pattern] = Counter()
        self._scored = 0
        self._not_applicable = QueryIds()
        self._without_result = QueryIds()
        self._without_reference = QueryIds()

    def add(self, scores: RetrievalScores) -> None:
        if not scores.gold_docs_count:
            self._not_applicable = _counted(self._not_applicable, scores.qid)
            return
        self._scored += 1
        if not scores.has_result:
            self._without_result = _counted(self._without_result, scores.qid)
        self._patterns[scores.hit_ranks, scores.retrieved_docs_count, scores.gold_docs_count] += 1
        if len(self._patterns) == _MOST_PATTERNS:
            self._sum_up()

    def add_without_reference(self, qid: str) -> None:
        self._without_reference = _counted(self._without_reference, qid)

    def state(self) -> Mapping[str, Any]:
        """What was added, in values that JSON knows, for `merge`."""
        self._sum_up()
        return {
            "sums": {name: str(total) for name, total in self._sums.items()},
            "scored": self._scored,
            "ids": [
                astuple(each)
                for each in (self._not_applicable, self._without_result, self._without_reference)
            ],
        }

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add a part of the queries, which come after those that were added so far."""
        for name, total in state["sums"].items():
            self._sums[name] += Fraction(total)
        self._scored += state["scored"]
        parts = (QueryIds(count, tuple(examples)) for count, examples in state["ids"])
        before = (self._not_applicable, self._without_result, self._without_reference)
        self._not_applicable, self._without_result, self._without_reference = map(_together, before, parts)

    def summary(self) -> RetrievalSummary:
        self._sum_up()
        scored = self._scored
        return RetrievalSummary(
            means={name: float(total) / scored if scored else None for name, total in self._sums.items()},
            scored=scored,
            not_applicable=self._not_applicable,
            without_result=self._without_result,
            without_reference=self._without_reference,
        )

    def _sum_up(self) -> None:
        """Add each pattern's measures once, times the queries that share it."""
        for pattern, queries in self._patterns.items():
            for name, value in RetrievalScores("", *pattern).values(self.cutoffs).items():
                self._sums[name] += queries * Fraction(value or 0.0)
        self._patterns.clear()


_Pattern: TypeAlias = tuple[tuple[int, ...], int, int]
"""Everything that the measures of a query depend on: ranks of its hits, number retrieved, number of gold documents."""

_MOST_PATTERNS = 4096
_EXAMPLES = 10


def _counted(ids: QueryIds, qid: str) -> QueryIds:
    examples = ids.examples if ids.count >= _EXAMPLES else (*ids.examples, qid)
    return QueryIds(ids.count + 1, examples)


def _together(first: QueryIds, second: QueryIds) -> QueryIds:
    return QueryIds(first.count + second.count, (*first.examples, *second.examples)[:_EXAMPLES])
