"""An evaluator as a metric, so that its scores join those of a spreadsheet run."""

from collections.abc import Callable, Iterable
from typing import Any

from rag_eval.evaluators.base import ContextEvaluation, Result
from rag_eval.metrics.metric import Metric
from rag_eval.records import Case, Evidence, Score


def _score(result: Any) -> float | None:
    value: float | None = result.score
    return value


def _nothing(result: Any, case: Case) -> Iterable[Evidence]:
    return ()


def as_metric(
    evaluator: ContextEvaluation[Result],
    *,
    name: str,
    value: Callable[[Result], float | None] = _score,
    evidence: Callable[[Result, Case], Iterable[Evidence]] = _nothing,
    needs_context: bool = True,
) -> Metric:
    """A metric that asks `evaluator` about query, response and chunks of a case.

    `value` makes the result a number in 0..1, or None where there is nothing to measure: then the score is not
    applicable. So it is, without a call, for a case without chunks when the metric `needs_context`.
    """

    class EvaluatorMetric(Metric):
        async def judge(self, case: Case) -> Score:
            if needs_context and not case.chunks:
                return Score.not_applicable(name, "there is no context to judge by")
            result = await evaluator.ask(case.query, case.response, case.chunks or (), task=name)
            measured = value(result)
            if measured is None:
                return Score.not_applicable(name, "there is nothing to measure")
            return Score.scored(name, measured, evidence=tuple(evidence(result, case)))

    EvaluatorMetric.name = name
    return EvaluatorMetric()
