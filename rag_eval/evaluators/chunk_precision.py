"""Which of the retrieved chunks are relevant to the question? (In the report: Chunk Relevance.)"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from rag_eval.evaluators.base import ChunkId, ContextEvaluation, ContextValidationMixin, mean
from rag_eval.judge.replies import A_REASON


class ChunkRelevance(BaseModel):
    id_chunk: ChunkId
    reason: str = Field(default="", description="Why the chunk is relevant or is not, in a few words.")
    score: bool = Field(strict=True, description="Whether the chunk is relevant.")
    graded: SkipJsonSchema[bool] = True
    """False for a chunk that the judge left out. Not asked of the judge."""


class ChunkPrecisionResult(BaseModel, ContextValidationMixin):
    graded_chunks: list[ChunkRelevance] = Field(description="One entry for each chunk of the context.")

    @classmethod
    def made_up(cls, about: Mapping[str, Any]) -> Self:
        """Stands for a reply while a run is only estimated: every chunk of `about` is relevant."""
        chunks = [
            ChunkRelevance(id_chunk=number, reason=A_REASON, score=True)
            for number in range(len(about["context"]))
        ]
        return cls.model_validate({"graded_chunks": chunks}, context=dict(about))

    @property
    def score(self) -> float | None:
        """Share of the chunks that are relevant; None without any chunk."""
        return mean([chunk.score for chunk in self.graded_chunks])

    @property
    def relevant_ids(self) -> list[int]:
        return [chunk.id_chunk for chunk in self.graded_chunks if chunk.score]


ChunkPrecision = ContextEvaluation(
    prompt="""\
You check which chunks of a retrieved context are relevant to a question.

A chunk is relevant (score true) if it holds information that answers the question, or a part of it. A chunk on the \
same topic that does not help to answer is not relevant. Whether an answer makes use of a chunk does not matter. \
Judge every chunk by itself, and only by what it says, and give the reason in a few words.

Give exactly one entry for each chunk, under its id.""",
    response_model=ChunkPrecisionResult,
)
