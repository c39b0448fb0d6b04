"""What a metric is: how it comes to a score, and what readers, settings and reports know of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rag_eval.errors import JudgeError
from rag_eval.records import LEFT_OUT, METRIC_LABELS, NOT_ASKED, Case, Evidence, FailureMode, Score

if TYPE_CHECKING:
    from rag_eval.metrics.case_verdicts import CaseVerdicts

EVASIVE = "evasive response"
"""Verdict of an LLM judge on the question behind a response that does not answer."""
DECLINES = "the response declines to answer"
"""The offline judge's reason for an answer relevancy of 0."""
NO_ANSWER = "the ground truth says that there is no answer"
"""Its reason for a response that is right to decline, and for a context that need not contain one."""
REPEATS = "the response only repeats the query"
"""Its reason for a response without anything else."""
APART = ", apart from repeating the query"
"""The offline judge's words on something that it did not find in a response without that part."""
NO_CONTEXT = "the sheet has no context column for this bot"
NO_REFERENCE = "the row has no ground truth"


class Metric(ABC):
    """A named measure of one case, 0..1, higher is better.

    A metric is a coroutine that awaits judge calls; it never sees a thread, a socket or a cache. The one
    place where a failure becomes a score is here: a judge that fails ends one score, a bug ends the run.
    """

    name: str
    explanation: ClassVar[str] = ""
    """How the score comes about, in one sentence for readers of a report; empty when the docs must do."""
    needs_every_chunk: ClassVar[bool] = False
    """Whether a context that was cut to [limits] max_prompt_tokens would make the score wrong."""

    async def measure(self, case: Case) -> Score:
        """The score of `case`, settled without the judge where the cells alone decide it.

        A case that is missing has no score, whatever the metric.
        """
        if case.is_missing:
            return Score.not_applicable(self.name, NOT_ASKED)
        settled = self.settle(case)
        if settled is not None:
            return settled
        try:
            return await self.judge(case)
        except JudgeError as error:
            return Score.failed(self.name, error.code, str(error))

    def settle(self, case: Case) -> Score | None:
        """The score that the cells alone decide, or None when the judge must be asked.

        A failure of the bot is a score: an empty response is irrelevant and incorrect (0), an empty context
        retrieved nothing (0). A part that was never asked for is not applicable.
        """
        return None

    def alike(self, case: Case) -> tuple[str, str] | None:
        """Two texts whose likeness in meaning says the same as the score, for the offline judge with an embedding.

        None if the meaning says less than the words, as of a year or a yes.
        """
        return None

    @abstractmethod
    async def judge(self, case: Case) -> Score:
        """Score a case that has all the parts this metric needs. May raise JudgeError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """One metric that enters RQS. Settings, report columns, failure modes and advice follow from this."""

    name: str
    """A key of METRIC_LABELS, and the name of the module that defines the metric."""
    about: str
    """What it says and its range, as the note on the column."""
    llm: type[Metric]
    """The form that asks an LLM judge."""
    offline: type[Metric]
    """The form that compares words."""
    weight: float
    """Its default share in RQS, before the weights are normalised."""
    threshold: float
    """A score below it is red, by default."""
    offline_threshold: float
    """The same for the offline judge, calibrated against people's verdicts where there are any."""
    embedding_threshold: float | None = None
    """The same with an embedding; None if it changes nothing."""
    failure: FailureMode | None = None
    """What a score below the threshold may mean; see `failure_modes` in rag_eval.results.scoring."""
    from_verdicts: Callable[[Case, "CaseVerdicts"], Score] | None = None
    """The score of a case that it applies to, from the verdicts that `case_verdicts` asks for. A metric without it
    keeps its own prompts, whatever the prompt form."""
    advise: Callable[[Case, Score], Iterable[str]] = lambda case, score: ()
    """Sentences of advice about a score that leaves room, drawn from this metric alone; for more, see the module
    rag_eval.metrics.recommendations."""

    @property
    def label(self) -> str:
        """Header of the column."""
        return METRIC_LABELS[self.name]


def left_out_evidence(subject: str, statements: Iterable[str]) -> tuple[Evidence, ...]:
    return tuple(Evidence(subject, statement, LEFT_OUT, favourable=True) for statement in statements)


def share_favourable(evidence: Sequence[Evidence]) -> float:
    """0..1; expects at least one piece of evidence."""
    return sum(each.favourable for each in evidence) / len(evidence)
