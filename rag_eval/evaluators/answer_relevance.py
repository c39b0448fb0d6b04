"""How well does the answer address the question, part by part? Neither its truth nor its grounding counts."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from rag_eval.evaluators.base import ContextEvaluation
from rag_eval.texts.words import has_words

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
