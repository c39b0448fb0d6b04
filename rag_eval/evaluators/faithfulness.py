"""Which statements of the answer do the chunks support, and which chunks are these?"""

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from rag_eval.evaluators.base import ChunkId, ContextEvaluation, mean, refuse_unknown
from rag_eval.judge.replies import incomplete
from rag_eval.texts.words import has_words, sentences


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
