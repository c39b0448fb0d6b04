"""What every metric is, and what is known about a case before any judge is asked."""

from abc import ABC, abstractmethod
from typing import ClassVar

from rag_eval.errors import JudgeError
from rag_eval.records import Case, Score

EVASIVE = "evasive response"
"""Verdict of an LLM judge on the question behind a response that does not answer."""
DECLINES = "the response declines to answer"
"""The offline judge's reason for an answer relevancy of 0."""


class Metric(ABC):
    """A named measure of one case, 0..1, higher is better.

    A metric is a coroutine that awaits judge calls; it never sees a thread, a socket or a cache. The one
    place where a failure becomes a score is here: a judge that fails ends one score, a bug ends the run.
    """

    name: ClassVar[str]
    explanation: ClassVar[str] = ""
    """How the score comes about, in one sentence for readers of a report; empty when the docs must do."""

    async def measure(self, case: Case) -> Score:
        """The score of `case`, settled without the judge where the cells alone decide it."""
        settled = settle_without_judge(self.name, case)
        if settled is not None:
            return settled
        try:
            return await self.judge(case)
        except JudgeError as error:
            return Score.failed(self.name, error.code, str(error))

    @abstractmethod
    async def judge(self, case: Case) -> Score:
        """Score a case that has all the parts this metric needs. May raise JudgeError."""


def settle_without_judge(metric: str, case: Case) -> Score | None:
    """The score that the cells alone decide, or None when the judge must be asked.

    A failure of the bot is a score: an empty response is irrelevant and incorrect (0), an empty context
    retrieved nothing (0). A part that was never asked for is not applicable.
    """
    rule = _RULES.get(metric)
    return rule(metric, case) if rule else None


def _faithfulness(metric: str, case: Case) -> Score | None:
    if not case.has_response:
        return Score.not_applicable(metric, "empty response: nothing that could be grounded")
    if case.chunks is None:
        return Score.not_applicable(metric, _NO_CONTEXT)
    if not case.chunks:
        return Score.scored(metric, 0.0, "empty context: nothing was retrieved, so nothing is grounded")
    return None


def _answer_relevancy(metric: str, case: Case) -> Score | None:
    return None if case.has_response else Score.scored(metric, 0.0, "empty response")


def _answer_correctness(metric: str, case: Case) -> Score | None:
    if case.reference is None:
        return Score.not_applicable(metric, _NO_REFERENCE)
    return None if case.has_response else Score.scored(metric, 0.0, "empty response")


def _context_precision(metric: str, case: Case) -> Score | None:
    if case.chunks is None:
        return Score.not_applicable(metric, _NO_CONTEXT)
    if not case.chunks:
        return Score.scored(metric, 0.0, "empty context: nothing was retrieved")
    if case.reference is None and not case.has_response:
        return Score.not_applicable(metric, "no ground truth and an empty response: nothing to judge by")
    return None


def _context_recall(metric: str, case: Case) -> Score | None:
    if case.chunks is None:
        return Score.not_applicable(metric, _NO_CONTEXT)
    if case.reference is None:
        return Score.not_applicable(metric, _NO_REFERENCE)
    return None if case.chunks else Score.scored(metric, 0.0, "empty context: nothing was retrieved")


_NO_CONTEXT = "the sheet has no context column for this bot"
_NO_REFERENCE = "the row has no ground truth"
_RULES = {
    "faithfulness": _faithfulness,
    "answer_relevancy": _answer_relevancy,
    "answer_correctness": _answer_correctness,
    "context_precision": _context_precision,
    "context_recall": _context_recall,
}
