"""What to do about a case, from its scores, its failure modes and the evidence behind them."""

import re
from collections.abc import Iterator
from typing import Any, Protocol

from rag_eval.errors import JudgeError
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.catalogue import METRICS
from rag_eval.metrics.numbered import NumberedTask
from rag_eval.records import METRIC_LABELS, CaseResult, Evidence, FailureMode, Outcome

NO_ACTION = "No action needed."
ROOM = 0.8
"""A case that is OK gets advice only when one of its scores is below this."""


class Adviser(Protocol):
    async def advise(self, result: CaseResult) -> str:
        """At most three sentences; empty when asking failed."""


class RuleAdviser:
    """Advice by rule, quoting the evidence. Needs no judge."""

    async def advise(self, result: CaseResult) -> str:
        return advice_by_rule(result)


class LlmAdviser:
    """Advice by the judge, several cases a call, keyed by position. A failure leaves the advice empty."""

    def __init__(self) -> None:
        self._bundle = _TASK.bundle()

    async def advise(self, result: CaseResult) -> str:
        if FailureMode.NOT_JUDGED in result.failure_modes:
            return advice_by_rule(result)
        if not _leaves_room(result):
            return NO_ACTION
        try:
            reply = await _TASK.call(_described(result), self._bundle)
        except JudgeError:
            return ""
        return _first_sentences(reply.recommendation, 3)


def advice_by_rule(result: CaseResult) -> str:
    """At most three sentences."""
    if not _leaves_room(result):
        return NO_ACTION
    return " ".join(list(_rules(result))[:3]) or NO_ACTION


def _leaves_room(result: CaseResult) -> bool:
    if result.failure_modes != (FailureMode.OK,):
        return True
    return any(score.value is not None and score.value < ROOM for score in result.scores.values())


def _rules(result: CaseResult) -> Iterator[str]:
    """Advice in the order of its weight; the first cause explains most of what follows it."""
    modes = result.failure_modes
    if FailureMode.NOT_JUDGED in modes:
        yield _judge_again(result)
    if not result.case.has_response:
        yield "The bot gave no answer: look for a timeout, an error or a filter on its side."
    if result.case.has_empty_context:
        yield "Nothing was retrieved: check the index, its filters and how the query is rewritten."
    yield from _retrieval(result)
    yield from _grounding(result)
    yield from _answer(result)
    for metric in METRICS.values():
        score = result.scores.get(metric.name)
        if score is not None and score.value is not None and score.value < ROOM:
            yield from metric.advise(result.case, score)


def _judge_again(result: CaseResult) -> str:
    failed = [
        f"{METRIC_LABELS[name]} ({score.code})"
        for name, score in result.scores.items()
        if score.outcome is Outcome.FAILED
    ]
    return f"Judge this case again: {', '.join(failed)} could not be scored."


def _retrieval(result: CaseResult) -> Iterator[str]:
    if missing := _unfavourable(result, "context_recall"):
        yield (
            f"The retrieved passages lack what the ground truth says ({_quoted(missing)}): "
            "widen or improve the retrieval."
        )
    if useless := _unfavourable(result, "context_precision"):
        ranks = ", ".join(str(each.rank) for each in useless[:5])
        plural = "s" if len(useless) > 1 else ""
        yield f"Passage{plural} {ranks} did not help: rerank or filter what is retrieved."


def _grounding(result: CaseResult) -> Iterator[str]:
    if unsupported := _unfavourable(result, "faithfulness"):
        yield (
            f"The passages do not support {_quoted(unsupported)}: "
            "have the bot answer from the passages only, or say that it does not know."
        )


def _answer(result: CaseResult) -> Iterator[str]:
    wrong = _unfavourable(result, "answer_correctness")
    if lacking := [each for each in wrong if each.subject.startswith("reference")]:
        yield f"The answer leaves out {_quoted(lacking)}."
    if extra := [each for each in wrong if not each.subject.startswith("reference")]:
        yield f"{_quoted(extra)} is not in the ground truth."
    relevancy = result.value("answer_relevancy")
    if relevancy is not None and relevancy < ROOM and result.case.has_response:
        yield "The answer does not fully address the query: make the bot answer the question directly."


def _unfavourable(result: CaseResult, metric: str) -> list[Evidence]:
    score = result.scores.get(metric)
    if score is None or score.value is None or score.value >= ROOM:
        return []
    return [each for each in score.evidence if not each.favourable]


def _quoted(evidence: list[Evidence]) -> str:
    shown = ", ".join(f"“{_shortened(each.text)}”" for each in evidence[:2])
    return f"{shown} and {len(evidence) - 2} more" if len(evidence) > 2 else shown


def _shortened(text: str, length: int = 100) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def _first_sentences(text: str, count: int) -> str:
    sentences = re.split(r"(?<=[.!?。！？])\s+", text.strip())
    return " ".join(sentences[:count])


def _described(result: CaseResult) -> dict[str, Any]:
    """The case as the judge sees it: numbers, failure modes, and the evidence that speaks against it."""
    against = [
        f"{METRIC_LABELS[name]}: {each.verdict}: {_shortened(each.text, 300)}"
        for name, score in result.scores.items()
        for each in score.evidence
        if not each.favourable
    ]
    return {
        "query": _shortened(result.case.query, 1000),
        "response": _shortened(result.case.response, 2000),
        "failure_mode": " | ".join(result.failure_modes),
        "scores": {
            METRIC_LABELS[name]: round(score.value, 2)
            for name, score in result.scores.items()
            if score.value is not None
        },
        "evidence": against[:12],
    }


_TASK = NumberedTask(
    name="recommendation",
    instructions="""\
You advise the team behind a retrieval-augmented chatbot. For each case you get a query, the bot's response, its
scores (0 to 1, higher is better), its failure mode and the evidence against it.
Say in at most three short sentences what to change so that this case gets better, most important first: in the
retrieval, in the prompt or in the answer. Name what the evidence names. No praise, no numbering, no restating
of scores.""",
    reply_form='"recommendation": at most three sentences',
    reply_type=replies.Advice,
    numbered_type=replies.Advices,
    max_tokens=256,
    size=5,
)
