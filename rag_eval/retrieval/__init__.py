"""Retrieval against gold document ids: how many gold documents were retrieved, and at which ranks.

All counts are of documents. A retriever returns chunks: the first chunk of a document sets the rank of the
document, and its later chunks are ignored. Relevance is binary: a document is gold or it is not.
All measures are in 0..1, higher is better, and None for a query without gold documents.
"""

from rag_eval.retrieval.scores import (
    DEFAULT_CUTOFFS,
    LABELS,
    RetrievalScores,
    average_precision,
    document_f1,
    document_precision,
    document_recall,
    hit_rate_at_k,
    label_of,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from rag_eval.retrieval.tally import (
    GOLD_NAMES,
    RETRIEVED_NAMES,
    ContextRecall,
    QueryIds,
    RetrievalEvaluation,
    RetrievalSummary,
    RetrievalTally,
)
from rag_eval.tables.document_ids import (
    QUERY_ID_NAMES,
    normalise_id,
    parse_documents,
    parse_ids,
    parse_query_id,
    rank_documents,
)

__all__ = [
    "DEFAULT_CUTOFFS",
    "GOLD_NAMES",
    "LABELS",
    "QUERY_ID_NAMES",
    "RETRIEVED_NAMES",
    "ContextRecall",
    "QueryIds",
    "RetrievalEvaluation",
    "RetrievalScores",
    "RetrievalSummary",
    "RetrievalTally",
    "average_precision",
    "document_f1",
    "document_precision",
    "document_recall",
    "hit_rate_at_k",
    "label_of",
    "ndcg_at_k",
    "normalise_id",
    "parse_documents",
    "parse_ids",
    "parse_query_id",
    "precision_at_k",
    "rank_documents",
    "recall_at_k",
    "reciprocal_rank",
]
