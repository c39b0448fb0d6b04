"""Results compared with references, query by query: the scores of a case, and the measures over many queries.

What is added up takes memory that does not grow with the queries.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from rag_eval.errors import InputError
from rag_eval.retrieval.scores import DEFAULT_CUTOFFS, RetrievalScores
from rag_eval.tables.document_ids import QUERY_ID_NAMES, parse_documents, parse_query_id


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


RETRIEVED_NAMES = (("doc_ids", "retrieved_docs", "retrieved_doc_ids", "retrieved_ids"), ("context",))
GOLD_NAMES = (("document_ids", "gold_docs", "gold_doc_ids", "gold_ids"), ("context",))
"""Names of attributes, keys and columns. The second group counts only if no name of the first is present, because
`context` often contains the texts of the chunks, next to a field with their ids."""


@dataclass(frozen=True, slots=True)
class RetrievalEvaluation:
    """The scores of every query in the order of the references, and their summary."""

    summary: RetrievalSummary
    rows: tuple[RetrievalScores, ...]

    @property
    def metrics(self) -> Mapping[str, float | int | None]:
        return self.summary.metrics


class ContextRecall:
    """Compares retrieved documents with gold documents, query by query.

    Results and references are objects or mappings. Either has a query id (`qid`, `query_id`, `question_id`
    or else `id`). A result has its ranking as `doc_ids`, `retrieved_docs`, `retrieved_doc_ids` or
    `retrieved_ids`, or else `context`; a reference its gold documents as `document_ids`, `gold_docs`,
    `gold_doc_ids` or `gold_ids`, or else `context`. The first of these that is present is used.
    """

    def __init__(self, cutoffs: Iterable[int] = DEFAULT_CUTOFFS) -> None:
        self.cutoffs = tuple(cutoffs)

    def evaluate(self, rag_results: Iterable[object], references: Iterable[object]) -> RetrievalEvaluation:
        """Score every reference. Raises InputError with all problems if ids are missing or ambiguous."""
        problems: list[str] = []
        retrieved = _by_query(rag_results, "result", RETRIEVED_NAMES, problems)
        gold = _by_query(references, "reference", GOLD_NAMES, problems)
        if problems:
            raise InputError(problems)
        rows = tuple(
            RetrievalScores.of_distinct(qid, retrieved.get(qid, ()), documents, qid in retrieved)
            for qid, documents in gold.items()
        )
        tally = RetrievalTally(self.cutoffs)
        for scores in rows:
            tally.add(scores)
        for qid in retrieved:
            if qid not in gold:
                tally.add_without_reference(qid)
        return RetrievalEvaluation(tally.summary(), rows)


def _by_query(
    items: Iterable[object], kind: str, names: Sequence[Sequence[str]], problems: list[str]
) -> dict[str, tuple[str, ...]]:
    """Distinct documents by query id. Adds a line to `problems` for each item that cannot be used."""
    documents: dict[str, tuple[str, ...]] = {}
    for position, item in enumerate(items, 1):
        try:
            qid = parse_query_id(_field(item, QUERY_ID_NAMES))
            if qid in documents:
                raise ValueError(f"query id {qid!r} occurs more than once")
            documents[qid] = parse_documents(_field(item, names))
        except ValueError as error:
            problems.append(f"{kind} {position}: {error}")
    return documents


def _field(item: object, names: Sequence[Sequence[str]]) -> object:
    for name in (name for group in names for name in group):
        if isinstance(item, Mapping):
            if name in item:
                return item[name]
        elif hasattr(item, name):
            return getattr(item, name)
    known = ", ".join(name for group in names for name in group)
    raise ValueError(f"has none of the fields {known}; add one")
