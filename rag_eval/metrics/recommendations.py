"""What to do about a case, from its scores, its failure modes and the evidence behind them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from rag_eval.errors import JudgeError
from rag_eval.judge.calls import with_history
from rag_eval.metrics import reply_types as replies
from rag_eval.metrics.catalogue import METRICS
from rag_eval.metrics.diagnosis import (
    ROOM,
    ROOMY_LIMITS,
    CauseKind,
    citation_scores,
    cites_badly,
    diagnose,
    limits_from,
)
from rag_eval.metrics.numbered import NumberedTask
from rag_eval.records import METRIC_LABELS, SCORE_LABELS, CaseResult, FailureMode, Outcome

NO_ACTION = "No action needed."


class Adviser(Protocol):
    async def advise(self, result: CaseResult) -> str:
        """At most three sentences; empty when asking failed."""


class RuleAdviser:
    """Advice by rule, quoting the evidence. Needs no judge."""

    def __init__(self, thresholds: Mapping[str, float]) -> None:
        """`thresholds` are those of the failure modes, by metric."""
        self._thresholds = thresholds

    async def advise(self, result: CaseResult) -> str:
        return advice_by_rule(result, self._thresholds)


class LlmAdviser:
    """Advice by the judge, several cases a call, keyed by position. A failure leaves the advice empty."""

    def __init__(self) -> None:
        self._bundle = _TASK.bundle()

    async def advise(self, result: CaseResult) -> str:
        if FailureMode.NOT_JUDGED in result.failure_modes or not _leaves_room(result, ROOMY_LIMITS):
            return advice_by_rule(result, {})
        try:
            reply = await _TASK.call(_described(result), self._bundle)
        except JudgeError:
            return ""
        return " ".join(_SENTENCE_END.split(reply.recommendation.strip())[:3])


def advice_by_rule(result: CaseResult, thresholds: Mapping[str, float]) -> str:
    """At most three sentences, each a cause that the case shows and what to do about it; none for a missing case.

    `thresholds` are those of the failure modes, by metric.
    """
    if result.case.is_missing:
        return ""
    limits = limits_from(thresholds, ROOM)
    if not _leaves_room(result, limits) and not cites_badly(result):
        return NO_ACTION
    return " ".join(islice(_rules(result, limits), 3)) or NO_ACTION


def _leaves_room(result: CaseResult, limits: Mapping[str, float]) -> bool:
    return result.failure_modes != (FailureMode.OK,) or any(
        score.value is not None and score.value < limits.get(name, ROOM)
        for name, score in result.scores.items()
    )


def _rules(result: CaseResult, limits: Mapping[str, float]) -> Iterator[str]:
    """Advice in the order of its weight; the first cause explains most of what follows it."""
    if FailureMode.NOT_JUDGED in result.failure_modes:
        yield _judge_again(result)
    for kind, details in diagnose(result, limits):
        quoted = f" ({_named(kind, details)})" if details else ""
        yield f"{kind.text[0].upper()}{kind.text[1:]}{quoted}: {kind.fix}."
    for metric in METRICS.values():
        score = result.scores.get(metric.name)
        if score is not None and score.value is not None and score.value < limits[metric.name]:
            yield from metric.advise(result.case, score)


def _judge_again(result: CaseResult) -> str:
    failed = [
        f"{METRIC_LABELS[name]} ({score.code})"
        for name, score in result.scores.items()
        if score.outcome is Outcome.FAILED
    ]
    return f"Judge this case again: {', '.join(failed)} could not be scored."


def _named(kind: CauseKind, details: Sequence[str]) -> str:
    """The first of the details; a quotation unless it only names a chunk or a metric."""
    more = f" and {len(details) - 1} more" if len(details) > 1 else ""
    is_name = kind in (CauseKind.RANKING, CauseKind.LOW_SCORE, CauseKind.WRONG_CHUNK, CauseKind.NO_SUCH_CHUNK)
    return details[0] + more if is_name else f"“{_shortened(details[0])}”{more}"


def _shortened(text: str, length: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def _described(result: CaseResult) -> dict[str, Any]:
    """The case as the judge sees it: numbers, failure modes, and the evidence that speaks against it."""
    against = [
        f"{SCORE_LABELS[score.metric]}: {each.verdict}: {_shortened(each.text, 300)}"
        for score in (*result.scores.values(), *citation_scores(result))
        for each in score.evidence
        if not each.favourable
    ]
    turns = [replace(turn, content=_shortened(turn.content, 300)) for turn in result.case.history[-6:]]
    return with_history(
        replace(result.case, history=tuple(turns)),
        {
            "query": _shortened(result.case.query, 1000),
            "response": _shortened(result.case.response, 2000),
            "failure_mode": " | ".join(result.failure_modes),
            "scores": {
                METRIC_LABELS[name]: round(score.value, 2)
                for name, score in result.scores.items()
                if score.value is not None
            },
            "evidence": against[:12],
        },
    )


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
