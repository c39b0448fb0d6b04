"""The measures of one query: how many of its gold documents were found, and at which ranks."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from types import MappingProxyType

DEFAULT_CUTOFFS = (5, 10)
"""Ranks at which recall@k, precision@k, NDCG@k and hit rate@k are taken unless others are asked for."""

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

_LABELS_AT = {"recall": "Doc Recall", "precision": "Doc Precision", "ndcg": "NDCG", "hit_rate": "Hit Rate"}


def label_of(measure: str) -> str:
    """Heading of a measure in a report, such as "Doc Recall@5" for recall_5."""
    if measure in LABELS:
        return LABELS[measure]
    kind, _, cutoff = measure.rpartition("_")
    return f"{_LABELS_AT[kind]}@{cutoff}"


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """One query's ranking compared with its gold documents: the counts, and every measure computed from them.

    A measure is 0..1. It is None if the query has no gold documents, and 0 if the query retrieved nothing.
    """

    qid: str
    hit_ranks: tuple[int, ...]
    """Ranks of the gold documents in the ranking, counted from 1, ascending."""
    retrieved_docs_count: int
    gold_docs_count: int
    has_result: bool = True
    """False for a reference without a result. Such a query counts as having retrieved nothing."""

    @classmethod
    def of(
        cls, qid: str, ranking: Iterable[str], gold: Iterable[str], has_result: bool = True
    ) -> "RetrievalScores":
        """The scores of a ranking. Ids are compared as they are; `rank_documents` normalises them first."""
        return cls.of_distinct(qid, tuple(_distinct(ranking)), tuple(_distinct(gold)), has_result)

    @classmethod
    def of_distinct(
        cls, qid: str, ranking: Sequence[str], gold: Sequence[str], has_result: bool
    ) -> "RetrievalScores":
        """The same for ids without repetitions, such as those from `parse_documents`."""
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
        """Harmonic mean of recall and precision, in the form that needs no exception for 0 + 0."""
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
        """Mean over the gold documents of the precision at their ranks; a missing document adds 0."""
        return self._per_gold(math.fsum(found / rank for found, rank in enumerate(self.hit_ranks, 1)))

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

    def hit_rate_at(self, k: int) -> float | None:
        """1 if any gold document is among the first k ranks, else 0: Success@k of trec_eval and ir_measures."""
        hits = self._hits_within(k)
        return float(hits > 0) if self.gold_docs_count else None

    def values(self, cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS) -> Mapping[str, float | None]:
        """Every measure by name, with recall, precision, NDCG and hit rate at each cutoff.

        Each is 0..1, or None if the query has no gold documents. Raises ValueError for a cutoff below 1.
        """
        for k in cutoffs:
            _require_cutoff(k)
        return _values_of(self.hit_ranks, self.retrieved_docs_count, self.gold_docs_count, cutoffs)

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
    """Normalised discounted cumulative gain at rank k, against the ideal ranking of the gold set; None without gold."""
    return RetrievalScores.of("", ranking, gold).ndcg_at(k)


def hit_rate_at_k(ranking: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1.0 if a gold document is among the first k distinct documents, else 0.0; None without gold."""
    return RetrievalScores.of("", ranking, gold).hit_rate_at(k)


def _distinct(ids: Iterable[str]) -> dict[str, None]:
    """The ids in the order of their first appearance, each once."""
    if isinstance(ids, str):
        raise TypeError(f"expected a list of document ids, got the text {ids!r}")
    return dict.fromkeys(ids)


def _require_cutoff(k: int) -> None:
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"a cutoff is a rank from 1 upwards, got {k}")


def _gain(ranks: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank in ranks)


@lru_cache(maxsize=1024)
def _ideal_gain(documents: int) -> float:
    return _gain(range(1, documents + 1))


@lru_cache(maxsize=4096)
def _values_of(
    hits: tuple[int, ...], retrieved: int, gold: int, cutoffs: tuple[int, ...]
) -> Mapping[str, float | None]:
    """Cached, because many queries share few patterns of hits."""
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
    for k in cutoffs:  # after all others, which keep their places in older files
        values[f"hit_rate_{k}"] = scores.hit_rate_at(k)
    return MappingProxyType(values)
