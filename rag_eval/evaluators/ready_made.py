"""The evaluators that are ready to use, each with its reply: on chunks, statements, and the parts of a question."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationInfo, field_validator
from pydantic.json_schema import SkipJsonSchema

from rag_eval.evaluators.base import (
    ChunkId,
    ContextEvaluation,
    ContextValidationMixin,
    mean,
    one_for_each_chunk,
    refuse_repeated,
    refuse_unknown,
)
from rag_eval.judge.replies import A_REASON, incomplete
from rag_eval.texts.words import has_words, sentences

# Does the answer hold what the relevant chunks say? (In the report: Answer Coverage.)


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


# Which of the retrieved chunks are relevant to the question? (In the report: Chunk Relevance.)


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


# Which statements of the answer do the chunks support, and which chunks are these?


class StatementEvaluation(BaseModel):
    statement: str = Field(description="One claim of the answer, understandable by itself.")
    supporting_chunk_ids: list[ChunkId] = Field(
        description="Ids of the chunks that support the statement; empty when none does."
    )

    @property
    def is_supported(self) -> bool:
        return bool(self.supporting_chunk_ids)


class FaithfulnessResult(BaseModel):
    statements: list[StatementEvaluation] = Field(description="The claims of the answer, in its order.")

    @field_validator("statements")
    @classmethod
    def _name_known_chunks(
        cls, statements: list[StatementEvaluation], info: ValidationInfo
    ) -> list[StatementEvaluation]:
        if info.context is not None:
            named = [number for each in statements for number in each.supporting_chunk_ids]
            refuse_unknown(named, info)
        return statements

    @field_validator("statements")
    @classmethod
    def _say_something(
        cls, statements: list[StatementEvaluation], info: ValidationInfo
    ) -> list[StatementEvaluation]:
        if not any(has_words(each.statement) for each in statements) and _claims_something(info):
            raise incomplete("there is no statement, though the answer makes one")
        return statements

    @property
    def score(self) -> float | None:
        """Share of the statements that a chunk supports; None without any statement."""
        return mean([each.is_supported for each in self.statements])

    @property
    def unsupported_statements(self) -> list[str]:
        return [each.statement for each in self.statements if not each.is_supported]


def _claims_something(info: ValidationInfo) -> bool:
    """Questions and exclamations need not: 'Hello! How can I help you?'."""
    answer = (info.context or {}).get("answer") or ""
    return any(not sentence.endswith(("?", "!")) for sentence in sentences(answer))


Faithfulness = ContextEvaluation(
    prompt="""\
You check whether an answer is grounded in the chunks of its context.

First take the answer apart into statements: each one claim, with pronouns resolved, so that it can be understood \
without the others. Leave out greetings, offers of help and sentences that claim nothing.
Then name, for each statement, the ids of the chunks that support it. A chunk supports a statement if it says so, or \
if the statement follows from it directly; what you know yourself does not count. If no chunk supports it, the \
list is empty.""",
    response_model=FaithfulnessResult,
)


# How well does the answer address the question, part by part? Neither its truth nor its grounding counts.


_POINTS = {"fully": 1.0, "partly": 0.5, "not": 0.0}


class QuestionPart(BaseModel):
    part: str = Field(description="One thing that the question asks for.")
    addressed: Literal["fully", "partly", "not"] = Field(description="How far the answer addresses it.")


class AnswerRelevanceResult(BaseModel):
    reason: str = Field(description="How well the answer addresses the question, in one sentence.")
    parts: list[QuestionPart] = Field(
        min_length=1, description="The parts of the question; one for a simple question."
    )

    @field_validator("parts")
    @classmethod
    def _name_something(cls, parts: list[QuestionPart]) -> list[QuestionPart]:
        if not any(has_words(each.part) for each in parts):
            raise ValueError("no part of the question is named")
        return parts

    @property
    def score(self) -> float:
        """Mean over the parts of the question: 1 where it is addressed fully, 0.5 partly, 0 not."""
        return sum(_POINTS[each.addressed] for each in self.parts) / len(self.parts)

    @property
    def open_parts(self) -> list[str]:
        """What the answer does not address fully."""
        return [each.part for each in self.parts if each.addressed != "fully"]


AnswerRelevance = ContextEvaluation(
    prompt="""\
You check whether an answer addresses its question. Whether it is true, and whether the context supports it, does \
not matter here: the context, if there is any, only helps to understand the question.

Name the things that the question asks for; a simple question asks for one. For each, say how far the answer \
addresses it:
- fully: it gives what is asked for
- partly: it gives some of it, or only in general terms
- not: it says nothing on it, evades it, or says that it does not know""",
    response_model=AnswerRelevanceResult,
)
