"""What judges may reply, type by type. Strict: nothing is coerced, added or left out.

The types of the ragas prompts have ragas' own field names, and are stricter than ragas': a verdict is 0 or 1,
and a reply that skips a statement is no reply. What a reply must agree with comes as pydantic's validation
context.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")
    return value


_Number = BeforeValidator(_refuse_bool)  # in Python True equals 1; in a reply it is off the menu
Verdict = Annotated[Literal[0, 1], _Number]


class StrictReply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Statements(StrictReply):
    statements: list[str]


class StatementVerdict(StrictReply):
    statement: str
    reason: str
    verdict: Verdict


class StatementVerdicts(StrictReply):
    statements: list[StatementVerdict]

    @model_validator(mode="after")
    def _one_for_each_statement(self, info: ValidationInfo) -> Self:
        expected = _expected(info, "statements")
        if expected is not None and len(self.statements) != expected:
            raise ValueError(f"{len(self.statements)} verdicts for {expected} statements")
        return self


class ContextVerdict(StrictReply):
    reason: str
    verdict: Verdict


class Attribution(StrictReply):
    statement: str
    reason: str
    attributed: Verdict


class Attributions(StrictReply):
    classifications: list[Attribution]


class ReasonedStatement(StrictReply):
    statement: str
    reason: str


class Classification(StrictReply):
    """Statements of the response that the reference supports (TP) or not (FP), and those that it lacks (FN)."""

    TP: list[ReasonedStatement]
    FP: list[ReasonedStatement]
    FN: list[ReasonedStatement]

    @model_validator(mode="after")
    def _speaks_of_both_sides(self, info: ValidationInfo) -> Self:
        if _expected(info, "response_statements") and not self.TP and not self.FP:
            raise ValueError("no statement of the response is classified")
        if _expected(info, "reference_statements") and not self.TP and not self.FN:
            raise ValueError("no statement of the reference is classified")
        return self


class GeneratedQuestion(StrictReply):
    question: str
    noncommittal: Verdict


class Closeness(StrictReply):
    """How close the intents of two questions are: 0 unrelated, 1 same topic, 2 overlapping, 3 nearly, 4 same."""

    reason: str
    closeness: Annotated[Literal[0, 1, 2, 3, 4], _Number]


class QueryToxicity(StrictReply):
    reason: str
    toxicity: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Advice(StrictReply):
    recommendation: str = Field(min_length=1)


class NumberedToxicity(QueryToxicity):
    position: int


class NumberedAdvice(Advice):
    position: int


class _Numbered(StrictReply):
    """Replies about several things at once, joined to them by position, never by order."""

    items: list[Any]

    @model_validator(mode="after")
    def _one_for_each_position(self, info: ValidationInfo) -> Self:
        expected = _expected(info, "positions")
        found = sorted(item.position for item in self.items)
        if expected is not None and found != list(range(1, expected + 1)):
            raise ValueError(f"expected one entry for each position from 1 to {expected}")
        return self


class Toxicities(_Numbered):
    items: list[NumberedToxicity]


class Advices(_Numbered):
    items: list[NumberedAdvice]


def _expected(info: ValidationInfo, what: str) -> int | None:
    count = (info.context or {}).get(what)
    return count if isinstance(count, int) else None
