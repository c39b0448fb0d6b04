"""Why a case scored low: causes that its evidence names, never a guess."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from rag_eval.metrics.metric import DECLINES, EVASIVE
from rag_eval.records import METRIC_LABELS, CaseResult, Evidence, FailureMode

ROOM = 0.8
"""A score below this leaves room for improvement."""
ROOMY_LIMITS: Mapping[str, float] = dict.fromkeys(METRIC_LABELS, ROOM)


class CauseKind(Enum):
    """Why a case scores low and what to do, in causal order: an earlier cause explains most of what follows it."""

    NO_RESPONSE = "the bot gave no response", "check the bot for timeouts, errors and filters"
    EMPTY_CONTEXT = "no chunk was retrieved", "check the index, its filters and the query rewriting"
    MISSING_DOCUMENTS = "gold documents were not retrieved", "improve the retrieval"
    MISSING_FROM_CHUNKS = "the chunks do not contain the whole answer", "improve the retrieval"
    USELESS_CHUNKS = "no retrieved chunk is useful", "improve the retrieval"
    EVASIVE = "the response declines to answer", "check the prompt's rules for declining"
    UNSUPPORTED = "the chunks do not support the response", "make the bot answer from the chunks only"
    INCOMPLETE = "the response leaves out parts of the ground truth", "make the bot answer completely"
    NOT_IN_REFERENCE = "the response says more than the ground truth", "check these statements"
    OFF_TOPIC = "the response does not fully address the query", "make the bot answer the question directly"
    RANKING = "useful chunks rank below useless ones", "rerank or filter the chunks"

    def __init__(self, text: str, fix: str) -> None:
        self.text = text
        self.fix = fix


class Diagnosis(NamedTuple):
    """One cause of one case's low scores."""

    kind: CauseKind
    details: Sequence[str] = ()
    """Texts of the evidence, whole; empty if the case itself is the evidence, such as an empty response."""


def diagnose(result: CaseResult, limits: Mapping[str, float] = ROOMY_LIMITS) -> Iterator[Diagnosis]:
    """The causes that the evidence of a case names, in causal order.

    A metric's evidence counts if its score is below the metric's limit (0..1, by name; a metric without one
    never counts). Yields nothing if no evidence explains the scores.
    """
    useless, chunks = _unfavourable(result, "context_precision", limits)
    is_all_useless = bool(useless) and len(useless) == len(chunks)
    # Without a ground truth, chunks are judged by the response: a made-up one makes good chunks look useless.
    is_sure = result.case.reference is not None
    if not result.case.has_response:
        yield Diagnosis(CauseKind.NO_RESPONSE)
    yield from _retrieval(result, limits)
    if is_all_useless and is_sure:
        yield Diagnosis(CauseKind.USELESS_CHUNKS)
    if result.case.has_response:
        yield from _response(result, limits)
    if is_all_useless and not is_sure:
        yield Diagnosis(CauseKind.USELESS_CHUNKS)
    if useless and not is_all_useless:
        yield Diagnosis(CauseKind.RANKING, [f"chunk {each.rank}" for each in useless])


def _retrieval(result: CaseResult, limits: Mapping[str, float]) -> Iterator[Diagnosis]:
    case = result.case
    if case.has_empty_context:
        yield Diagnosis(CauseKind.EMPTY_CONTEXT)
    gold = case.gold_ids or ()
    lost = [] if case.retrieved_ids is None else [each for each in gold if each not in case.retrieved_ids]
    if (
        lost
        and 1 - len(lost) / len(gold) < limits.get("context_recall", 0.0)
        and _may_lack_text(result, limits)
    ):
        yield Diagnosis(CauseKind.MISSING_DOCUMENTS, lost)
    missing, _ = _unfavourable(result, "context_recall", limits)
    if missing:
        yield Diagnosis(CauseKind.MISSING_FROM_CHUNKS, [each.text for each in missing])


def _may_lack_text(result: CaseResult, limits: Mapping[str, float]) -> bool:
    """Whether the answer may be missing from the chunks: other documents than the gold ones can contain it too."""
    is_found = result.value("context_recall") is not None and not _is_below(result, "context_recall", limits)
    return not is_found or FailureMode.RETRIEVAL_FAILURE in result.failure_modes


def _response(result: CaseResult, limits: Mapping[str, float]) -> Iterator[Diagnosis]:
    relevancy = result.scores.get("answer_relevancy")
    is_low = _is_below(result, "answer_relevancy", limits)
    is_off_topic = is_low and bool(relevancy and (relevancy.evidence or relevancy.reason))
    is_evasive = is_off_topic and _is_evasive(result)
    if is_evasive:
        yield Diagnosis(CauseKind.EVASIVE)
    unsupported, _ = _unfavourable(result, "faithfulness", limits)
    if unsupported:
        yield Diagnosis(CauseKind.UNSUPPORTED, [each.text for each in unsupported])
    wrong, _ = _unfavourable(result, "answer_correctness", limits)
    left_out = [each.text for each in wrong if each.subject.startswith("reference")]
    extra = [each.text for each in wrong if not each.subject.startswith("reference")]
    both = Diagnosis(CauseKind.INCOMPLETE, left_out), Diagnosis(CauseKind.NOT_IN_REFERENCE, extra)
    yield from sorted((each for each in both if each.details), key=lambda each: -len(each.details))
    if is_off_topic and not is_evasive:
        yield Diagnosis(CauseKind.OFF_TOPIC)


def _is_below(result: CaseResult, metric: str, limits: Mapping[str, float]) -> bool:
    value = result.value(metric)
    return value is not None and value < limits.get(metric, 0.0)


def _is_evasive(result: CaseResult) -> bool:
    score = result.scores["answer_relevancy"]
    return score.reason == DECLINES or any(each.verdict == EVASIVE for each in score.evidence)


def _unfavourable(
    result: CaseResult, metric: str, limits: Mapping[str, float]
) -> tuple[list[Evidence], Sequence[Evidence]]:
    """What speaks against a score below its limit, and all of its evidence."""
    if not _is_below(result, metric, limits):
        return [], ()
    evidence = result.scores[metric].evidence
    return [each for each in evidence if not each.favourable], evidence
