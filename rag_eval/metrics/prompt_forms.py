"""The metrics of an LLM judge that is asked for verdicts in few calls, in place of the prompts of ragas.

merged: one call per metric and case, with all of its statements or chunks. single: one call per case for all metrics.
Both ask for the same verdicts, and the scores come from these by the formulas of the metrics.
"""

from collections.abc import Callable, Iterable, MutableMapping, Sequence

from rag_eval.errors import CONTENT_CODES, REFUSALS, JudgeError
from rag_eval.metrics.case_verdicts import CaseVerdicts, verdicts_call
from rag_eval.metrics.catalogue import METRICS
from rag_eval.metrics.metric import Metric, MetricInfo
from rag_eval.records import Case, Score

MOST_CHUNKS = 40
"""A case with more is not asked about in a single call: the more a judge is asked at once, the more it overlooks."""
MOST_TOKENS = 8_000
"""The same for the estimated tokens of the prompt."""
LONG = "long"
"""Why such a case falls back; any other case falls back because of the code of its failed call."""

Fallbacks = MutableMapping[tuple[int, str], str]
"""By row and bot, why merged prompts judged the case in place of the single one."""


def metrics_by_verdicts(
    names: Iterable[str], form: str, fallbacks: Fallbacks, most_tokens: int | None = None
) -> tuple[Metric, ...]:
    """The metrics with these names, in their order, for the prompt form 'merged' or 'single'.

    `fallbacks` grows while cases are judged. `most_tokens` (estimated) is what the user allows one prompt to have.
    """
    infos = [METRICS[name] for name in names]
    by_verdicts = {info.name: info.from_verdicts for info in infos if info.from_verdicts}
    together = _Together(
        [info.llm() for info in infos if info.name in by_verdicts],
        fallbacks,
        min(MOST_TOKENS, most_tokens or MOST_TOKENS),
    )

    def metric(info: MetricInfo) -> Metric:
        score = by_verdicts.get(info.name)
        if score is None:
            return info.llm()
        return _Merged(info, score) if form == "merged" else _Single(info, score, together)

    return tuple(map(metric, infos))


_Score = Callable[[Case, CaseVerdicts], Score]


class _Merged(Metric):
    """A metric that asks for its own verdicts."""

    def __init__(self, info: MetricInfo, score: _Score) -> None:
        self.name = info.name
        self._score = score
        self._cells = info.llm()

    def settle(self, case: Case) -> Score | None:
        return self._cells.settle(case)

    async def judge(self, case: Case) -> Score:
        return self._score(case, await self._verdicts(case))

    async def _verdicts(self, case: Case) -> CaseVerdicts:
        return await verdicts_call(case, {self.name}, task=f"{self.name}.verdicts")


class _Single(_Merged):
    """A metric that reads those on the whole case. All metrics make the same call, which the scheduler makes once."""

    def __init__(self, info: MetricInfo, score: _Score, together: "_Together") -> None:
        super().__init__(info, score)
        self._together = together

    async def _verdicts(self, case: Case) -> CaseVerdicts:
        verdicts = await self._together.verdicts(case)
        return await super()._verdicts(case) if verdicts is None else verdicts


class _Together:
    """The single call of a case."""

    def __init__(self, metrics: Sequence[Metric], fallbacks: Fallbacks, most_tokens: int) -> None:
        self._metrics = metrics
        self._fallbacks = fallbacks
        self._most_tokens = most_tokens

    async def verdicts(self, case: Case) -> CaseVerdicts | None:
        """Of all metrics that the cells do not settle; None if each has to ask for its own."""
        wanted = {metric.name for metric in self._metrics if metric.settle(case) is None}
        if len(wanted) == 1:
            return None  # its merged call is the same one
        call = verdicts_call(case, wanted, task="single.verdicts", has_fallback=True)
        if len(case.chunks or ()) > MOST_CHUNKS or call.estimated_tokens > self._most_tokens:
            self._fallbacks[case.row, case.bot] = LONG
            return None
        try:
            return await call
        except JudgeError as error:
            if error.code not in _ASKED_AGAIN_IN_VAIN:
                raise
            self._fallbacks[case.row, case.bot] = error.code
            return None


_ASKED_AGAIN_IN_VAIN = CONTENT_CODES | REFUSALS.keys()
"""Failures that the same request would meet again. A smaller one may do: it may lack the text that is to blame."""
