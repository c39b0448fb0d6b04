"""Results without the API key: an endpoint can quote it in a reply, and a report is for others to read.

Only texts change, only where they contain a whole key, and only after everything was read and scored.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from rag_eval.judge.masking import without_keys
from rag_eval.records import CaseResult, Evidence, PairVerdict, RubricOutcome, Score


def concealed(result: CaseResult, secrets: Collection[str]) -> CaseResult:
    """The result with [key] in place of each secret in its scores; the case's own texts stay as they are."""
    if not secrets:
        return result
    return replace(
        result,
        scores=_scores(result.scores, secrets),
        further=_scores(result.further, secrets),
        toxicity=_score(result.toxicity, secrets),
        rubric=None if result.rubric is None else _rubric(result.rubric, secrets),
        pairs=tuple(_pair(pair, secrets) for pair in result.pairs),
    )


def _pair(pair: PairVerdict, secrets: Collection[str]) -> PairVerdict:
    reasons = tuple(without_keys(text, secrets) for text in pair.reasons)
    return replace(pair, reasons=reasons, reason=without_keys(pair.reason, secrets))


def _scores(scores: Mapping[str, Score], secrets: Collection[str]) -> Mapping[str, Score]:
    return {name: _score(score, secrets) for name, score in scores.items()}


def _score(score: Score, secrets: Collection[str]) -> Score:
    reason = without_keys(score.reason, secrets)
    evidence = tuple(_evidence(each, secrets) for each in score.evidence)
    if reason == score.reason and evidence == score.evidence:
        return score
    return replace(score, reason=reason, evidence=evidence)


def _evidence(seen: Evidence, secrets: Collection[str]) -> Evidence:
    text, reason = without_keys(seen.text, secrets), without_keys(seen.reason, secrets)
    return replace(seen, text=text, reason=reason)


def _rubric(outcome: RubricOutcome, secrets: Collection[str]) -> RubricOutcome:
    verdicts = tuple(
        replace(verdict, reason=without_keys(verdict.reason, secrets)) for verdict in outcome.verdicts
    )
    return replace(outcome, verdicts=verdicts, reason=without_keys(outcome.reason, secrets))
