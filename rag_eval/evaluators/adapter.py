"""An evaluator as a metric, so that its scores join those of a spreadsheet run."""

from collections.abc import Callable, Iterable
from operator import attrgetter

from rag_eval.evaluators.base import ContextEvaluation, Result
from rag_eval.metrics.metric import Metric
from rag_eval.records import Case, Evidence, Score


def as_metric(
    evaluator: ContextEvaluation[Result],
    *,
    name: str,
    value: Callable[[Result], float | None] = attrgetter("score"),
    evidence: Callable[[Result, Case], Iterable[Evidence]] = lambda result, case: (),
    needs_context: bool = True,
) -> Metric:
    """A metric that calls `evaluator` with the query, response and chunks of a case.

    `value` turns the result into a number in 0..1, or into None if there is nothing to measure: the score is then not
    applicable. If the metric `needs_context`, a case without chunks is not applicable either, and costs no call.
    `evidence` turns the result into the items that the report lists.
    """

    class EvaluatorMetric(Metric):
        async def judge(self, case: Case) -> Score:
            if needs_context and not case.chunks:
                return Score.not_applicable(name, "there is no context to judge by")
            result = await evaluator.ask(
                case.query, case.response, case.chunks or (), task=name, history=case.history
            )
            measured = value(result)
            if measured is None:
                return Score.not_applicable(name, "there is nothing to measure")
            return Score.scored(name, measured, evidence=tuple(evidence(result, case)))

    EvaluatorMetric.name = name
    return EvaluatorMetric()
