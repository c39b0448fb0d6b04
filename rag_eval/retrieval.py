"""Retrieval against gold document ids: how many of the documents that matter were found, and how high.

Everything is counted in documents. A retriever returns chunks; the first chunk of a document gives the
document its rank, later chunks of it change nothing. Relevance is binary: a document is gold or it is not.
All measures are in 0..1, higher is better, and None for a query without gold documents.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from rag_eval.document_ids import normalise_id as normalise_id
from rag_eval.document_ids import parse_documents as parse_documents
from rag_eval.document_ids import parse_ids as parse_ids
from rag_eval.document_ids import parse_query_id as parse_query_id
from rag_eval.document_ids import rank_documents as rank_documents
from rag_eval.errors import InputError
from rag_eval.records import Case

DEFAULT_CUTOFFS = (5, 10)
"""Ranks at which recall@k, precision@k and NDCG@k are taken unless others are asked for."""

QUERY_ID_NAMES = (("qid", "query_id", "question_id"), ("id",))
RETRIEVED_NAMES = (("doc_ids", "retrieved_docs", "retrieved_doc_ids", "retrieved_ids"), ("context",))
GOLD_NAMES = (("document_ids", "gold_docs", "gold_doc_ids", "gold_ids"), ("context",))
"""Names of attributes, keys and columns. The second group counts only where nothing of the first is there,
because `context` often holds the text of the passages beside a field with their ids."""

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "doc_recall": "Doc Recall",
        "doc_precision": "Doc Precision",
        "doc_f1": "Doc F1",
        "ndcg_10": "NDCG@10",
        "reciprocal_rank": "Reciprocal Rank",
        "average_precision": "Average Precision",
    }
)
"""Headings of the measures without a cutoff, and of NDCG@10, by the names that `RetrievalScores.values` uses."""

_LABELS_AT = {"recall": "Doc Recall", "precision": "Doc Precision", "ndcg": "NDCG"}


def label_of(measure: str) -> str:
    """Heading of a measure in a report, such as "Doc Recall@5" for recall_5."""
    if measure in LABELS:
        return LABELS[measure]
    kind, _, cutoff = measure.partition("_")
    return f"{_LABELS_AT[kind]}@{cutoff}"


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """One query's ranking held against its gold documents: the counts, and every measure made of them.

    A measure is None when the query has no gold documents. A query that retrieved nothing scores 0.
    """

    qid: str
    hit_ranks: tuple[int, ...]
    """Ranks, counted from 1 and ascending, at which gold documents stand."""
    retrieved_docs_count: int
    gold_docs_count: int
    has_result: bool = True
    """False for a reference that no result belongs to; it counts as retrieved nothing."""

    @classmethod
    def of(
        cls, qid: str, ranking: Iterable[str], gold: Iterable[str], has_result: bool = True
    ) -> "RetrievalScores":
        """Compare ids as they are; `rank_documents` brings them into comparable form first."""
        return cls.of_distinct(qid, tuple(_distinct(ranking)), tuple(_distinct(gold)), has_result)

    @classmethod
    def of_distinct(
        cls, qid: str, ranking: Sequence[str], gold: Sequence[str], has_result: bool = True
    ) -> "RetrievalScores":
        """The same for ids that are known to be there once each, as those that `parse_documents` returns."""
        wanted = frozenset(gold)
        hits = tuple([rank for rank, document in enumerate(ranking, 1) if document in wanted])
        return cls(qid, hits, len(ranking), len(gold), has_result)

    @property
    def correct_docs_count(self) -> int:
        return len(self.hit_ranks)

    @property
    def recall(self) -> float | None:
        """Share of the gold documents that were retrieved."""
        return self._per_gold(self.correct_docs_count)

    @property
    def precision(self) -> float | None:
        """Share of the retrieved documents that are gold; 0 when nothing was retrieved."""
        if not self.gold_docs_count:
            return None
        return self.correct_docs_count / self.retrieved_docs_count if self.retrieved_docs_count else 0.0

    @property
    def f1(self) -> float | None:
        """Harmonic mean of recall and precision, in the form that needs no case for 0 + 0."""
        if not self.gold_docs_count:
            return None
        return 2 * self.correct_docs_count / (self.retrieved_docs_count + self.gold_docs_count)

    @property
    def reciprocal_rank(self) -> float | None:
        """1 / rank of the first gold document; 0 when none was retrieved."""
        if not self.gold_docs_count:
            return None
        return 1 / self.hit_ranks[0] if self.hit_ranks else 0.0

    @property
    def average_precision(self) -> float | None:
        """Mean over the gold documents of the precision at their ranks; one that is missing adds 0."""
        return self._per_gold(sum(found / rank for found, rank in enumerate(self.hit_ranks, 1)))

    def recall_at(self, k: int) -> float | None:
        """Share of the gold documents among the first k ranks."""
        return self._per_gold(self._hits_within(k))

    def precision_at(self, k: int) -> float | None:
        """Gold documents among the first k ranks ÷ k, however few were retrieved (trec_eval's P@k)."""
        hits = self._hits_within(k)
        return hits / k if self.gold_docs_count else None

    def ndcg_at(self, k: int) -> float | None:
        """Discounted cumulative gain at rank k ÷ that of a ranking with all gold documents on top.

        Binary gain, discount 1 / log2(rank + 1), as in Järvelin and Kekäläinen (2002).
        """
        hits = self._hits_within(k)
        if not self.gold_docs_count:
            return None
        return _gain(self.hit_ranks[:hits]) / _ideal_gain(min(k, self.gold_docs_count))

    def values(self, cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS) -> Mapping[str, float | None]:
        """Every measure by name, with recall, precision and NDCG at each cutoff."""
        return _values(self.hit_ranks, self.retrieved_docs_count, self.gold_docs_count, cutoffs)

    def _per_gold(self, amount: float) -> float | None:
        return amount / self.gold_docs_count if self.gold_docs_count else None

    def _hits_within(self, k: int) -> int:
        _require_cutoff(k)
        return sum(rank <= k for rank in self.hit_ranks)


def document_recall(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """Share of the gold documents that were retrieved; None without gold."""
    return RetrievalScores.of("", ranking, gold).recall


def document_precision(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """Share of the retrieved documents that are gold, 0 when nothing was retrieved; None without gold."""
    return RetrievalScores.of("", ranking, gold).precision


def document_f1(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """Harmonic mean of document recall and document precision; None without gold."""
    return RetrievalScores.of("", ranking, gold).f1


def recall_at_k(ranking: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """Share of the gold documents among the first k distinct documents; None without gold."""
    return RetrievalScores.of("", ranking, gold).recall_at(k)


def precision_at_k(ranking: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """Gold documents among the first k distinct documents ÷ k; None without gold."""
    return RetrievalScores.of("", ranking, gold).precision_at(k)


def reciprocal_rank(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """1 / rank of the first gold document, 0 when none was retrieved; None without gold."""
    return RetrievalScores.of("", ranking, gold).reciprocal_rank


def average_precision(ranking: Sequence[str], gold: Collection[str]) -> float | None:
    """Mean over the gold documents of the precision at their ranks; None without gold."""
    return RetrievalScores.of("", ranking, gold).average_precision


def ndcg_at_k(ranking: Sequence[str], gold: Collection[str], k: int = 10) -> float | None:
    """Normalised discounted cumulative gain at rank k; the ideal is made of the gold set, None without it."""
    return RetrievalScores.of("", ranking, gold).ndcg_at(k)


def _distinct(ids: Iterable[str]) -> dict[str, None]:
    """The ids in the order of their first appearance, each once."""
    if isinstance(ids, str):
        raise TypeError(f"expected a list of document ids, got the text {ids!r}")
    return dict.fromkeys(ids)


def _require_cutoff(k: int) -> None:
    if k < 1:
        raise ValueError(f"a cutoff is a rank from 1 upwards, got {k}")


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / math.log2(rank + 1) for rank in ranks)


@lru_cache(maxsize=1024)
def _ideal_gain(documents: int) -> float:
    return _gain(range(1, documents + 1))


@lru_cache(maxsize=4096)
def _values(
    hits: tuple[int, ...], retrieved: int, gold: int, cutoffs: tuple[int, ...]
) -> Mapping[str, float | None]:
    """Cached, because over many queries few patterns of hits occur and each would be computed anew."""
    scores = RetrievalScores("", hits, retrieved, gold)
    values = {
        "doc_recall": scores.recall,
        "doc_precision": scores.precision,
        "doc_f1": scores.f1,
        "ndcg_10": scores.ndcg_at(10),
        "reciprocal_rank": scores.reciprocal_rank,
        "average_precision": scores.average_precision,
    }
    for k in cutoffs:
        values[f"recall_{k}"] = scores.recall_at(k)
        values[f"precision_{k}"] = scores.precision_at(k)
        values[f"ndcg_{k}"] = scores.ndcg_at(k)
    return MappingProxyType(values)


@dataclass(frozen=True, slots=True)
class QueryIds:
    """How many query ids there are of a kind, and the first few of them."""

    count: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalSummary:
    """Means over the queries that have gold documents, and the counts that say what they stand on."""

    means: Mapping[str, float | None]
    """By the names of `RetrievalScores.values`; None when no query could be scored."""
    scored: int
    """Queries behind every one of the means."""
    not_applicable: QueryIds
    """Queries without gold documents, left out of the means."""
    without_result: QueryIds
    """References that no result belongs to. Those with gold documents are in the means, as 0."""
    without_reference: QueryIds
    """Results that no reference belongs to, left out of everything."""

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
    """Sums scores into a summary, one query at a time, in memory that does not grow with their number."""

    def __init__(self, cutoffs: Iterable[int] = DEFAULT_CUTOFFS) -> None:
        self.cutoffs = tuple(sorted(set(cutoffs)))
        for k in self.cutoffs:
            _require_cutoff(k)
        names = RetrievalScores.of("", (), ()).values(self.cutoffs)
        self._sums = dict.fromkeys(names, 0.0)
        self._patterns: Counter[_Pattern] = Counter()
        self._scored = 0
        self._not_applicable = QueryIds()
        self._without_result = QueryIds()
        self._without_reference = QueryIds()

    def add(self, scores: RetrievalScores) -> None:
        if not scores.has_result:
            self._without_result = _counted(self._without_result, scores.qid)
        if not scores.gold_docs_count:
            self._not_applicable = _counted(self._not_applicable, scores.qid)
            return
        self._scored += 1
        self._patterns[scores.hit_ranks, scores.retrieved_docs_count, scores.gold_docs_count] += 1
        if len(self._patterns) == _MOST_PATTERNS:
            self._sum_up()

    def add_without_reference(self, qid: str) -> None:
        self._without_reference = _counted(self._without_reference, qid)

    def summary(self) -> RetrievalSummary:
        self._sum_up()
        scored = self._scored
        return RetrievalSummary(
            means={name: total / scored if scored else None for name, total in self._sums.items()},
            scored=scored,
            not_applicable=self._not_applicable,
            without_result=self._without_result,
            without_reference=self._without_reference,
        )

    def _sum_up(self) -> None:
        """Add each pattern's measures once, times the queries that share it."""
        for pattern, queries in self._patterns.items():
            for name, value in _values(*pattern, self.cutoffs).items():
                self._sums[name] += queries * (value or 0.0)
        self._patterns.clear()


_Pattern: TypeAlias = tuple[tuple[int, ...], int, int]
"""All that the measures of a query depend on: the ranks of its hits, how many it retrieved, how many are gold."""

_MOST_PATTERNS = 4096
_EXAMPLES = 10


def _counted(ids: QueryIds, qid: str) -> QueryIds:
    examples = ids.examples if ids.count >= _EXAMPLES else (*ids.examples, qid)
    return QueryIds(ids.count + 1, examples)


@dataclass(frozen=True, slots=True)
class RetrievalEvaluation:
    """The scores of every query in the order of the references, and their summary."""

    summary: RetrievalSummary
    rows: tuple[RetrievalScores, ...]

    @property
    def metrics(self) -> Mapping[str, float | int | None]:
        return self.summary.metrics


class ContextRecall:
    """Holds retrieved documents against gold documents, query by query.

    Results and references are objects or mappings. Either has a query id (`qid`, `query_id`, `question_id`
    or else `id`). A result has its ranking as `doc_ids`, `retrieved_docs`, `retrieved_doc_ids` or
    `retrieved_ids`, or else `context`; a reference its gold documents as `document_ids`, `gold_docs`,
    `gold_doc_ids` or `gold_ids`, or else `context`. The first of these that is there is taken.
    """

    def __init__(self, cutoffs: Iterable[int] = DEFAULT_CUTOFFS) -> None:
        self.cutoffs = tuple(cutoffs)

    def evaluate(self, rag_results: Iterable[object], references: Iterable[object]) -> RetrievalEvaluation:
        """Score every reference; raises InputError with all problems when ids are missing or ambiguous."""
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
    """Distinct documents by query id. What cannot be used is added to the problems."""
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
    raise ValueError(f"has none of the fields {known}")


def scores_of_case(case: Case) -> RetrievalScores | None:
    """How the case's retrieved documents stand against its gold ones; None unless the sheet tells of both."""
    if case.gold_ids is None or case.retrieved_ids is None:
        return None
    return RetrievalScores.of(f"row {case.row}", case.retrieved_ids, case.gold_ids)


def doc_recall(case: Case) -> float | None:
    """Share of the gold documents that were retrieved; None where it is not known."""
    scores = scores_of_case(case)
    return scores.recall if scores else None
