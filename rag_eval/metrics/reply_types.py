"""What judges may reply, type by type. Strict: nothing is coerced, added or left out.

The types of the ragas prompts have ragas' own field names, and are stricter than ragas': a verdict is 0 or 1,
and a reply that says nothing of a text with words is not a reply. What a reply must agree with comes as pydantic's
validation context.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from rag_eval.judge.replies import A_REASON, incomplete
from rag_eval.metrics.omissions import claims_nothing, without_match
from rag_eval.texts.languages import have_one_language
from rag_eval.texts.words import has_words, sentences


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")
    return value


_Number = BeforeValidator(_refuse_bool)  # in Python True equals 1; in a reply it is off the menu
Verdict = Annotated[Literal[0, 1], _Number]
ClosenessLevel = Annotated[Literal[0, 1, 2, 3, 4], _Number]
"""Of two intents: 0 unrelated, 1 same topic, 2 overlapping, 3 nearly the same, 4 the same."""


# No docstrings below: they would be sent along with the schema, and change what stored replies are kept under.
class StrictReply(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        """Stands for a reply while a run is only estimated; `about` is what the reply must agree with.

        As long as a real one, and as unfavourable, so that whatever a bad score brings about is estimated too.
        """
        raise NotImplementedError(f"{cls.__name__} has no made_up, so calls with it cannot be estimated")


class Statements(StrictReply):
    statements: list[str]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(statements=_sentences_of(about))

    @model_validator(mode="after")
    def _says_something(self, info: ValidationInfo) -> Self:
        _refuse_silence(self.statements, info)
        return self


class StatementVerdict(StrictReply):
    statement: str
    reason: str
    verdict: Verdict


class StatementVerdicts(StrictReply):
    statements: list[StatementVerdict]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        sent = _sent(about, "statements")
        return cls(statements=[StatementVerdict(statement=each, reason=A_REASON, verdict=0) for each in sent])

    @model_validator(mode="after")
    def _one_for_each_statement(self, info: ValidationInfo) -> Self:
        sent = (info.context or {}).get("statements")
        given = [each.statement for each in self.statements]
        if sent is None:
            return self
        if len(given) != len(sent) and not _cover_each_other(sent, given):
            raise incomplete(f"{len(given)} verdicts for {len(sent)} statements")
        if len(given) == len(sent) and len(set(given)) < len(set(sent)):
            raise incomplete("several verdicts are on the same statement")
        return self


class ContextVerdict(StrictReply):
    reason: str
    verdict: Verdict

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(reason=A_REASON, verdict=0)


class Attribution(StrictReply):
    statement: str
    reason: str
    attributed: Verdict


class Attributions(StrictReply):
    classifications: list[Attribution]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        found = [Attribution(statement=each, reason=A_REASON, attributed=0) for each in _sentences_of(about)]
        return cls(classifications=found)

    @model_validator(mode="after")
    def _says_something(self, info: ValidationInfo) -> Self:
        _refuse_silence([each.statement for each in self.classifications], info)
        return self


class ReasonedStatement(StrictReply):
    statement: str
    reason: str


class Classification(StrictReply):
    """Statements of the response that the reference supports (TP) or not (FP), and those that it lacks (FN)."""

    TP: list[ReasonedStatement]
    FP: list[ReasonedStatement]
    FN: list[ReasonedStatement]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        ours, theirs = (
            [ReasonedStatement(statement=each, reason=A_REASON) for each in _sent(about, name)]
            for name in ("response_statements", "reference_statements")
        )
        return cls(TP=[], FP=ours, FN=theirs)

    @model_validator(mode="after")
    def _speaks_of_both_sides(self, info: ValidationInfo) -> Self:
        ours, theirs = _statements(info, "response_statements"), _statements(info, "reference_statements")
        if ours and not self.TP and not self.FP:
            raise incomplete("no statement of the response is classified")
        if theirs and not self.TP and not self.FN:
            raise incomplete("no statement of the ground truth is classified")
        if all(map(has_words, [*ours, *theirs])):
            _refuse_wordless([each.statement for each in (*self.TP, *self.FP, *self.FN)])
        return self


class GeneratedQuestion(StrictReply):
    question: str
    noncommittal: Verdict

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(question=f"What about {str(about.get('text') or '')[:100]}?", noncommittal=0)

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        """Of an evasive response nothing but the verdict counts."""
        if not self.noncommittal and not has_words(self.question):
            raise incomplete("there is no question")
        return self


class Closeness(StrictReply):
    """How close the intents of two questions are: 0 unrelated, 1 same topic, 2 overlapping, 3 nearly, 4 same."""

    reason: str
    closeness: ClosenessLevel

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(reason=A_REASON, closeness=0)


class QueryToxicity(StrictReply):
    reason: str
    toxicity: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(reason="polite", toxicity=0.0)


class Advice(StrictReply):
    recommendation: str = Field(min_length=1)

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        return cls(recommendation=A_REASON * 3)

    @model_validator(mode="after")
    def _advises(self) -> Self:
        if not has_words(self.recommendation):
            raise incomplete("there is no recommendation")
        return self


class NumberedToxicity(QueryToxicity):
    position: int


class NumberedAdvice(Advice):
    position: int


class _Numbered(StrictReply):
    """Replies about several things at once, joined to them by position, never by order."""

    items: list[Any]

    @model_validator(mode="after")
    def _one_for_each_position(self, info: ValidationInfo) -> Self:
        expected = (info.context or {}).get("positions")
        found = sorted(item.position for item in self.items)
        if isinstance(expected, int) and found != list(range(1, expected + 1)):
            raise incomplete(f"expected one entry for each position from 1 to {expected}")
        return self


class Toxicities(_Numbered):
    items: list[NumberedToxicity]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        one = QueryToxicity.made_up({}).model_dump()
        return cls(items=[NumberedToxicity(**one, position=each) for each in _positions(about)])


class Advices(_Numbered):
    items: list[NumberedAdvice]

    @classmethod
    def made_up(cls, about: Mapping[str, object]) -> Self:
        one = Advice.made_up({}).model_dump()
        return cls(items=[NumberedAdvice(**one, position=each) for each in _positions(about)])


def _positions(about: Mapping[str, object]) -> range:
    """One when their number is not known."""
    count = about.get("positions")
    return range(1, count + 1 if isinstance(count, int) else 2)


def _sent(about: Mapping[str, object], what: str) -> list[str]:
    """The statements that the judge is asked about; one when they are not known."""
    known = about.get(what)
    return known if isinstance(known, list) and known else [A_REASON]


def _sentences_of(about: Mapping[str, object]) -> list[str]:
    return sentences(str(about.get("text") or "")) or ["-"]


def _statements(info: ValidationInfo, what: str) -> Sequence[str]:
    return (info.context or {}).get(what) or ()


def _text(info: ValidationInfo) -> str:
    """What the judge was asked about; empty when that is not known."""
    return (info.context or {}).get("text") or ""


def _refuse_silence(statements: Sequence[str], info: ValidationInfo) -> None:
    if not has_words(_text(info)) or (not statements and claims_nothing(_text(info))):
        return
    if not any(map(has_words, statements)):
        raise incomplete("there is no statement, though the text has words")
    _refuse_wordless(statements)


def _refuse_wordless(statements: Sequence[str]) -> None:
    """Judges write "..." for "and so on", which would be counted as one more statement."""
    if not all(map(has_words, statements)):
        raise incomplete("a statement has no words")


def _cover_each_other(sent: Sequence[str], given: Sequence[str]) -> bool:
    """Whether a judge merged or split statements, and neither left one out nor added one, as far as words tell.

    They do not tell where all verdicts are in another language.
    """
    if not 0 < len(given) == len(set(given)):
        return False
    unknown = without_match(given, sent)
    if len(unknown) == len(given) and not have_one_language(" ".join(sent), " ".join(given)):
        return True
    return not unknown and not without_match(sent, given)
