"""RQS, failure modes and retrieval measures: arithmetic over the scores and ids of one case. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_eval.metrics.catalogue import metrics_behind
from rag_eval.records import LEFT_OUT, Case, CaseResult, FailureMode, Outcome, Score
from rag_eval.retrieval import RetrievalScores, label_of
from rag_eval.texts.display import decimals


def rqs(scores: Mapping[str, Score], weights: Mapping[str, float]) -> float | None:
    """Response Quality Score of one case: the weighted mean of its metrics, in 0..1.

    Weights are renormalised over the applicable metrics; a metric of weight 0 plays no part. None when an
    applicable metric failed (a composite over a hole is not comparable), or when none is applicable.
    """
    counted = {metric: scores[metric] for metric, weight in weights.items() if weight and metric in scores}
    if any(score.outcome is Outcome.FAILED for score in counted.values()):
        return None
    values = {metric: score.value for metric, score in counted.items() if score.value is not None}
    return composite(values, weights)


def composite(values: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    """The weighted mean of the values that have a weight, 0..1; None when none has one.

    To the last digit the same whatever the order of the weights and the version of Python.
    """
    parts = [(weight, values[metric]) for metric, weight in weights.items() if metric in values]
    total = math.fsum(weight for weight, _ in parts)
    if total <= 0:
        return None
    return min(1.0, math.fsum(weight * value for weight, value in parts) / total)


def mean_score(samples: Sequence[Score]) -> Score:
    """One score of several of the same metric and case: the mean of those that have a value.

    The evidence is that of the lowest one that has any, since it shows what lowers the mean, and what may be left
    out of any of them. Without a value in any of them it is the first one.
    """
    scored = [score for score in samples if score.value is not None]
    values = tuple(score.value for score in scored if score.value is not None)
    if len(set(values)) == 1 and len(scored) == len(samples) and not scored[0].evidence:
        return scored[0]  # the cells alone decided it
    if not scored:
        return samples[0]
    mean = math.fsum(values) / len(values)
    lowest = min(scored, key=lambda score: (not score.evidence, score.value))
    counted = (
        f"{len(values)} samples"
        if len(scored) == len(samples)
        else f"{len(values)} of {len(samples)} samples"
    )
    listed = ", ".join(map(decimals, values))
    reason = f"mean of {counted}: {listed}"
    evidence = list(lowest.evidence)
    for each in (each for score in scored for each in score.evidence):
        if each.verdict == LEFT_OUT and each not in evidence:
            evidence.append(each)
    return replace(lowest, value=mean, reason=reason, evidence=tuple(evidence), samples=values)


def failure_modes(
    scores: Mapping[str, Score],
    thresholds: Mapping[str, float],
    doc_recall: float | None = None,
    *,
    is_missing: bool = False,
) -> tuple[FailureMode, ...]:
    """The failure modes of one case, over its scored metrics only; a score must be below its threshold.

    `doc_recall` is the share of the gold documents that were retrieved. Where it is known it decides about
    retrieval alone, by the threshold of context recall: that is a fact, the judge's scores are opinions.
    A retrieval failure takes low scores in all metrics of retrieval that are scored, the other modes take one.
    Without any failure mode the case is OK, unless a metric failed, or the case `is_missing`: then it was not judged.
    """

    def below(metric: str) -> bool | None:
        score = scores.get(metric)
        if score is None or score.value is None:
            return None
        return score.value < thresholds[metric]

    if doc_recall is None:
        known = [below(metric) for metric in metrics_behind(FailureMode.RETRIEVAL_FAILURE)]
        retrieval = [is_below for is_below in known if is_below is not None]
    else:
        retrieval = [doc_recall < thresholds["context_recall"]]
    found = []
    if retrieval and all(retrieval):
        found.append(FailureMode.RETRIEVAL_FAILURE)
    for mode in (FailureMode.HALLUCINATION, FailureMode.LOW_QUALITY):
        if any(map(below, metrics_behind(mode))):
            found.append(mode)
    if found:
        return tuple(found)
    failed = any(score.outcome is Outcome.FAILED for score in scores.values())
    return (FailureMode.NOT_JUDGED if failed or is_missing else FailureMode.OK,)


def with_gaps(results: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """The results of a row, with the difference in RQS next to each verdict on a pair."""
    values = {result.case.bot: result.rqs for result in results}
    return tuple(
        replace(
            result,
            pairs=tuple(
                replace(pair, rqs_gap=_difference(result.rqs, values.get(pair.other)))
                for pair in result.pairs
            ),
        )
        if result.pairs
        else result
        for result in results
    )


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


DOCUMENT_LABELS: Mapping[str, str] = {
    name: label_of(name) for name in RetrievalScores.of("", (), ()).values()
}
"""Headings of the retrieval measures of a case, by the names that its scores have."""


def scores_of_case(case: Case) -> RetrievalScores | None:
    """The scores of the case's retrieved documents; None unless the sheet has both gold and retrieved documents."""
    if case.gold_ids is None or case.retrieved_ids is None:
        return None
    return RetrievalScores.of(f"row {case.row}", case.retrieved_ids, case.gold_ids)


def doc_recall(case: Case) -> float | None:
    """Share of the gold documents that were retrieved, 0..1; None without gold or retrieved documents."""
    scores = scores_of_case(case)
    return scores.recall if scores else None
