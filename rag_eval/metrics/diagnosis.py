"""Why a case scored low: causes that its scores and their evidence name, never a guess."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from rag_eval.metrics.metric import DECLINES, EVASIVE, REPEATS
from rag_eval.records import (
    CITATION_LABELS,
    FAILURES,
    METRIC_LABELS,
    NO_CITATIONS,
    NO_SUCH_CHUNK,
    WRONG_CHUNK,
    CaseResult,
    Evidence,
    FailureMode,
    Score,
)

ROOM = 0.8
"""A score below this leaves room for improvement."""


class CauseKind(Enum):
    """Why a case scores low and what to do, in causal order: an earlier cause explains most of what follows it."""

    NO_RESPONSE = "the bot gave no response", "check the bot for timeouts, errors and filters"
    EMPTY_CONTEXT = "no chunk was retrieved", "check the index, its filters and the query rewriting"
    MISSING_DOCUMENTS = "gold documents were not retrieved", "improve the retrieval"
    MISSING_FROM_CHUNKS = "the chunks do not contain the whole answer", "improve the retrieval"
    USELESS_CHUNKS = "no retrieved chunk is useful", "improve the retrieval"
    EVASIVE = "the response declines to answer", "check the prompt's rules for declining"
    REPEATS_QUERY = REPEATS, "make the bot answer the question"
    UNSUPPORTED = "the chunks do not support the whole response", "make the bot answer from the chunks only"
    IN_REFERENCE_ONLY = (
        "the response is in the ground truth, but not found in the chunks in these words",
        "check whether the chunks say so",
    )
    INCOMPLETE = "the response leaves out parts of the ground truth", "make the bot answer completely"
    NOT_IN_REFERENCE = "the response says more than the ground truth", "check these statements"
    OFF_TOPIC = "the response does not fully address the query", "make the bot answer the question directly"
    DIFFERENT = "the response differs from the ground truth", "compare the two"
    RANKING = "useful chunks rank below useless ones", "rerank or filter the chunks"
    LOW_SCORE = "another score is below its threshold", "check the red cells"
    WRONG_CHUNK = "the response cites the wrong chunk", "check the numbers of the chunks in the prompt"
    NO_SUCH_CHUNK = (
        "the response cites a chunk that does not exist",
        "number the chunks in the prompt and reject other numbers",
    )
    NO_CITATIONS = "the response has no citations", "ask for a citation after each statement"

    def __init__(self, text: str, fix: str) -> None:
        self.text = text
        self.fix = fix


class _Diagnosis(NamedTuple):
    """One cause of one case's low scores."""

    kind: CauseKind
    details: Sequence[str] = ()
    """Texts of the evidence, whole; empty if the case itself is the evidence, such as an empty response."""


def limits_from(thresholds: Mapping[str, float], least: float) -> dict[str, float]:
    """By metric: its threshold, but no less than `least`."""
    return {name: max(thresholds.get(name, 0.0), least) for name in METRIC_LABELS}


ROOMY_LIMITS: Mapping[str, float] = limits_from({}, ROOM)


def diagnose(result: CaseResult, limits: Mapping[str, float]) -> Iterator[_Diagnosis]:
    """The causes that a case shows, in causal order; at least one if the case has a failure mode.

    A metric counts if its score is below the metric's limit (0..1, by name; a metric without one never counts) and
    its evidence speaks against the case. Without such evidence it counts only for a failure mode of the case. Each
    failure mode has a cause of its own if no limit is below the threshold of the run.
    """
    causes = _causes(result, limits)
    first = next(causes, None)
    if first:
        yield first
        yield from causes
    elif not FAILURES.isdisjoint(result.failure_modes):
        low = [METRIC_LABELS[name] for name in METRIC_LABELS if _is_below(result, name, limits)]
        yield _Diagnosis(CauseKind.LOW_SCORE, low)
    yield from _citations(result)


def _citations(result: CaseResult) -> Iterator[_Diagnosis]:
    """They enter no score of the case, so they explain no failure: other causes come first."""
    evidence = [each for score in citation_scores(result) for each in score.evidence]
    for kind, verdict in _OF_CITATIONS.items():
        if found := [each for each in evidence if each.verdict == verdict]:
            yield _Diagnosis(kind, [each.reason or each.text for each in found])


_OF_CITATIONS = {
    CauseKind.WRONG_CHUNK: WRONG_CHUNK,
    CauseKind.NO_SUCH_CHUNK: NO_SUCH_CHUNK,
    CauseKind.NO_CITATIONS: NO_CITATIONS,
}
"""Each with the verdict of the evidence for it."""


def cites_badly(result: CaseResult) -> bool:
    """Whether a citation is wrong or missing."""
    return next(_citations(result), None) is not None


def citation_scores(result: CaseResult) -> list[Score]:
    """None in a run whose bots do not cite."""
    return [result.further[name] for name in CITATION_LABELS if name in result.further]


def _causes(result: CaseResult, limits: Mapping[str, float]) -> Iterator[_Diagnosis]:
    case = result.case
    if case.is_unanswered:
        yield _Diagnosis(CauseKind.NO_RESPONSE)
    yield from _retrieval(result, limits)
    chunks = None if case.has_empty_context else _chunks(result, limits)
    are_useless = chunks is not None and chunks.kind is CauseKind.USELESS_CHUNKS
    # Without a ground truth, chunks are judged by the response: a made-up one makes good chunks look useless.
    is_first = are_useless and case.reference is not None
    if chunks and is_first:
        yield chunks
    if case.has_response:
        yield from _response(result, limits)
    if chunks and not is_first:
        yield chunks


def _chunks(result: CaseResult, limits: Mapping[str, float]) -> _Diagnosis | None:
    useless = _against(result, "context_precision", limits)
    if useless is None:
        return None
    chunks = result.scores["context_precision"].evidence
    is_none_useful = len(useless) == len(chunks) if chunks else not result.value("context_precision")
    if is_none_useful:
        return _Diagnosis(CauseKind.USELESS_CHUNKS)
    return _Diagnosis(CauseKind.RANKING, [f"chunk {each.rank}" for each in useless])


def _retrieval(result: CaseResult, limits: Mapping[str, float]) -> Iterator[_Diagnosis]:
    case = result.case
    if case.has_empty_context:
        yield _Diagnosis(CauseKind.EMPTY_CONTEXT)
    gold = case.gold_ids or ()
    lost = [] if case.retrieved_ids is None else [each for each in gold if each not in case.retrieved_ids]
    if (
        lost
        and (len(gold) - len(lost)) / len(gold) < limits.get("context_recall", 0.0)
        and _may_lack_text(result, limits)
    ):
        yield _Diagnosis(CauseKind.MISSING_DOCUMENTS, lost)
    missing = None if case.has_empty_context else _against(result, "context_recall", limits)
    if missing is not None and not _is_all_said(result, missing):
        yield _Diagnosis(CauseKind.MISSING_FROM_CHUNKS, [each.text for each in missing])


def _may_lack_text(result: CaseResult, limits: Mapping[str, float]) -> bool:
    """Whether the answer may be missing from the chunks: other documents than the gold ones can contain it too."""
    is_found = result.value("context_recall") is not None and not _is_below(result, "context_recall", limits)
    return not is_found or FailureMode.RETRIEVAL_FAILURE in result.failure_modes


def _is_all_said(result: CaseResult, missing: Sequence[Evidence]) -> bool:
    """Whether a response that is called a hallucination says all that is missing from chunks that are useful.

    Then the chunks may say it in other words, and that is to be checked before the retrieval is blamed.
    """
    modes = result.failure_modes
    if FailureMode.HALLUCINATION not in modes or FailureMode.RETRIEVAL_FAILURE in modes:
        return False
    return bool(missing) and all(_says(result.case.response, each.text) for each in missing)


def _response(result: CaseResult, limits: Mapping[str, float]) -> Iterator[_Diagnosis]:
    is_off_topic = _is_off_topic(result, limits)
    is_evasive = is_off_topic and _is_evasive(result)
    if is_evasive:
        yield _Diagnosis(CauseKind.EVASIVE)
    repeating = ("answer_relevancy", "answer_correctness")
    is_repeat = any(
        _is_below(result, one, limits) and result.scores[one].reason == REPEATS for one in repeating
    )
    if is_repeat:
        yield _Diagnosis(CauseKind.REPEATS_QUERY)
    unsupported = None if result.case.has_empty_context else _against(result, "faithfulness", limits)
    if unsupported is not None:
        yield from _unsupported(result, [each.text for each in unsupported])
    wrong = _against(result, "answer_correctness", limits)
    left_out = [each.text for each in wrong or () if each.subject.startswith("reference")]
    extra = [each.text for each in wrong or () if not each.subject.startswith("reference")]
    yield from _most_first((CauseKind.INCOMPLETE, left_out), (CauseKind.NOT_IN_REFERENCE, extra))
    if is_off_topic and not is_evasive and not is_repeat:
        yield _Diagnosis(CauseKind.OFF_TOPIC)
    if wrong is not None and not wrong and not is_repeat:
        yield _Diagnosis(CauseKind.DIFFERENT)


def _is_off_topic(result: CaseResult, limits: Mapping[str, float]) -> bool:
    if not _is_below(result, "answer_relevancy", limits):
        return False
    score = result.scores["answer_relevancy"]
    return bool(score.evidence or score.reason) or _is_behind_a_failure(result, "answer_relevancy")


def _is_evasive(result: CaseResult) -> bool:
    score = result.scores["answer_relevancy"]
    return score.reason == DECLINES or any(each.verdict == EVASIVE for each in score.evidence)


def _unsupported(result: CaseResult, statements: Sequence[str]) -> Iterator[_Diagnosis]:
    """`statements` are those that speak against the response; none if only its score does."""
    if not statements:
        is_known = _is_in_reference(result, result.case.response)
        yield _Diagnosis(CauseKind.IN_REFERENCE_ONLY if is_known else CauseKind.UNSUPPORTED)
        return
    known: dict[bool, list[str]] = {False: [], True: []}
    for each in statements:
        known[_is_in_reference(result, each)].append(each)
    yield from _most_first((CauseKind.UNSUPPORTED, known[False]), (CauseKind.IN_REFERENCE_ONLY, known[True]))


def _is_in_reference(result: CaseResult, statement: str) -> bool:
    """As answer correctness says of the same statement; where it does not, by the words."""
    correctness = result.scores.get("answer_correctness")
    for each in correctness.evidence if correctness else ():
        if (each.subject, each.text) == ("statement", statement):
            return each.favourable
    return _says(result.case.reference or "", statement)


def _says(text: str, statement: str) -> bool:
    """By the words."""
    from rag_eval.metrics.offline.support import supports

    return supports(text, statement, ROOM)


def _most_first(*causes: tuple[CauseKind, Sequence[str]]) -> Iterator[_Diagnosis]:
    """Those with details; of two, the one with more of them is more of a cause."""
    named = [_Diagnosis(kind, details) for kind, details in causes if details]
    yield from sorted(named, key=lambda each: -len(each.details))


def _against(result: CaseResult, metric: str, limits: Mapping[str, float]) -> Sequence[Evidence] | None:
    """What speaks against a score below its limit; None if the score does not count.

    A score that a failure mode of the case follows from counts whatever its evidence is. The offline judge calls every
    sentence supported where the whole text falls just short; then what it did not find in them speaks against it.
    """
    if not _is_below(result, metric, limits):
        return None
    score = result.scores[metric]
    unfavourable = [each for each in score.evidence if not each.favourable]
    if unfavourable or not _is_behind_a_failure(result, metric):
        return unfavourable or None
    # The evidence of a mean of samples is that of one of them, which may have been better.
    return [] if score.samples else [each for each in score.evidence if each.reason]


def _is_below(result: CaseResult, metric: str, limits: Mapping[str, float]) -> bool:
    value = result.value(metric)
    return value is not None and value < limits.get(metric, 0.0)


def _is_behind_a_failure(result: CaseResult, metric: str) -> bool:
    """Whether a failure mode of the case can follow from this metric."""
    from rag_eval.metrics.catalogue import METRICS

    return METRICS[metric].failure in result.failure_modes
