"""Does the answer hold what the relevant chunks say? (In the report: Answer Coverage.)"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic.json_schema import SkipJsonSchema

from rag_eval.evaluators.base import ChunkId, ContextEvaluation, mean, one_for_each_chunk, refuse_repeated
from rag_eval.judge.replies import A_REASON


class ChunkRecallEvaluation(BaseModel):
    id_chunk: ChunkId
    is_relevant: bool = Field(
        strict=True, description="Whether the chunk holds information that the question asks for."
    )
    is_included: bool = Field(strict=True, description="Whether the answer conveys that information.")
    missing_info: str | None = Field(
        default=None,
        description="What the answer leaves out of a chunk that is relevant and not included; otherwise null.",
    )
    graded: SkipJsonSchema[bool] = True
    """False for a chunk that the judge left out; it counts as relevant and not included. Not asked of the judge."""


class ContextRecallResult(BaseModel):
    evaluated_chunks: list[ChunkRecallEvaluation] = Field(
        description="One entry for each chunk of the context."
    )

    @field_validator("evaluated_chunks")
    @classmethod
    def _fit_the_context(
        cls, chunks: list[ChunkRecallEvaluation], info: ValidationInfo
    ) -> list[ChunkRecallEvaluation]:
        if info.context is None:  # made by hand: there is nothing to compare with
            refuse_repeated(chunk.id_chunk for chunk in chunks)
            return chunks
        return one_for_each_chunk(
            chunks,
            info,
            lambda number: ChunkRecallEvaluation(
                id_chunk=number, is_relevant=True, is_included=False, graded=False
            ),
        )

    @classmethod
    def made_up(cls, about: Mapping[str, Any]) -> Self:
        """Stands for a reply while a run is only estimated: every chunk of `about` is left out."""
        chunks = [
            ChunkRecallEvaluation(id_chunk=number, is_relevant=True, is_included=False, missing_info=A_REASON)
            for number in range(len(about["context"]))
        ]
        return cls.model_validate({"evaluated_chunks": chunks}, context=dict(about))

    @property
    def score(self) -> float:
        """Share of the relevant chunks that are included; 1.0 if none is relevant or there is none at all."""
        included = mean([chunk.is_included for chunk in self.relevant_chunks])
        return 1.0 if included is None else included

    @property
    def relevant_chunks(self) -> list[ChunkRecallEvaluation]:
        return [chunk for chunk in self.evaluated_chunks if chunk.is_relevant]

    @property
    def missing_information(self) -> list[dict[str, Any]]:
        """`chunk_id` and `missing_info` of each relevant chunk of which something is known to be left out."""
        return [
            {"chunk_id": chunk.id_chunk, "missing_info": chunk.missing_info}
            for chunk in self.relevant_chunks
            if not chunk.is_included and chunk.missing_info
        ]


ContextRecall = ContextEvaluation(
    prompt="""\
You check how much of what was retrieved for a question has found its way into the answer.

Judge every chunk of the context by itself, and only by what it says:
1. is_relevant: does it hold information that the question asks for? The same topic is not enough.
2. is_included: does the answer convey that information? Other words and a shorter form are fine; a mere allusion, \
or a statement that contradicts the chunk, is not. For a chunk that is not relevant, say false.
3. missing_info: if the chunk is relevant and not included, say in one sentence what the answer leaves out; \
otherwise null.

Give exactly one entry for each chunk, under its id.""",
    response_model=ContextRecallResult,
)
