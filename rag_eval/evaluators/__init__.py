"""Evaluators that ask a judge about numbered chunks and get a validated result, from Python."""

from rag_eval.evaluators import base
from rag_eval.evaluators.base import (
    ChunkBinaryScore,
    ChunkGraded,
    ChunkGradedBinary,
    ChunkScore,
    ContextEvaluation,
    ContextValidationMixin,
    MissingChunkWarning,
)
from rag_eval.evaluators.ready_made import (
    AnswerRelevance,
    AnswerRelevanceResult,
    ChunkPrecision,
    ChunkPrecisionResult,
    ChunkRecallEvaluation,
    ChunkRelevance,
    ContextRecall,
    ContextRecallResult,
    Faithfulness,
    FaithfulnessResult,
    QuestionPart,
    StatementEvaluation,
)
from rag_eval.evaluators.report_metrics import as_metric

__all__ = [
    "AnswerRelevance",
    "AnswerRelevanceResult",
    "ChunkBinaryScore",
    "ChunkGraded",
    "ChunkGradedBinary",
    "ChunkPrecision",
    "ChunkPrecisionResult",
    "ChunkRecallEvaluation",
    "ChunkRelevance",
    "ChunkScore",
    "ContextEvaluation",
    "ContextRecall",
    "ContextRecallResult",
    "ContextValidationMixin",
    "Faithfulness",
    "FaithfulnessResult",
    "MissingChunkWarning",
    "QuestionPart",
    "StatementEvaluation",
    "as_metric",
    "base",
]
