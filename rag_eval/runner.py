"""One run: rows in order → results in order, by one judge, over one store of paid replies."""

from collections.abc import Awaitable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.errors import RunStoppedError, SettingsError
from rag_eval.judge.budget import Budget, Caps, Price
from rag_eval.judge.calls import Answer, Call, Judge, ReplyStore, gather, sampled
from rag_eval.judge.endpoint import NO_KEY, Endpoint
from rag_eval.judge.entra import token_provider
from rag_eval.judge.length import LengthGuard
from rag_eval.judge.scheduler import Scheduler
from rag_eval.metrics.base import Metric
from rag_eval.metrics.toxicity import LlmToxicity, QueryJudge
from rag_eval.recommend import Adviser, LlmAdviser, RuleAdviser
from rag_eval.records import (
    FURTHER_LABELS,
    METRIC_LABELS,
    TOXICITY,
    Case,
    CaseResult,
    Row,
    RubricOutcome,
    Score,
    Usage,
)
from rag_eval.redaction import Redactor
from rag_eval.retrieval import doc_recall
from rag_eval.scoring import failure_modes, mean_score, rqs
from rag_eval.settings import Settings
from rag_eval.shortening import Shortener

if TYPE_CHECKING:
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.rubric_judge import RubricJudge

CACHE_NAME = "replies.sqlite"

_Scores = Mapping[str, Score]
_Verdicts = tuple[_Scores, _Scores, RubricOutcome | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """Everyone who has a say about a case, and the judge behind them."""

    judge: Judge
    store: ReplyStore
    metrics: tuple[Metric, ...]
    toxicity: QueryJudge | None
    """None when toxicity is switched off."""
    adviser: Adviser | None
    """None when the diagnostics are switched off."""
    further: tuple[Metric, ...] = ()
    """Measures beside the five, which enter neither RQS nor the failure modes."""
    rubric: "RubricJudge | None" = None
    is_proxy: bool = False
    """The judge is arithmetic over text, not a model that reads."""

    @property
    def explanations(self) -> dict[str, str]:
        """By metric, how its score comes about; of those that can say it in one sentence."""
        told = {metric.name: metric.explanation for metric in self.metrics}
        told[TOXICITY] = getattr(self.toxicity, "explanation", "")
        return {name: sentence for name, sentence in told.items() if sentence}


def offline_panel(settings: Settings) -> Panel:
    """The judge that needs no model, no key and no network."""
    from rag_eval.metrics.offline import OfflineToxicity, offline_metrics

    return Panel(
        judge=_NoJudge(),
        store=_NoStore(),
        metrics=offline_metrics(enabled_metrics(settings)),
        toxicity=OfflineToxicity() if settings.metrics.toxicity else None,
        adviser=RuleAdviser() if settings.diagnostics.enabled else None,
        is_proxy=True,
    )


def llm_panel(
    settings: Settings, judge: Judge, store: ReplyStore, rubric: "EvaluationRubric | None" = None
) -> Panel:
    """A judge that reads, with ragas' prompts."""
    from rag_eval.metrics.ragas_metrics import ragas_metrics

    return Panel(
        judge=judge,
        store=store,
        metrics=ragas_metrics(enabled_metrics(settings)),
        toxicity=LlmToxicity(settings.toxicity.deployment) if settings.metrics.toxicity else None,
        adviser=LlmAdviser() if settings.diagnostics.enabled else None,
        further=further_metrics(settings),
        rubric=_rubric_judge(rubric) if rubric else None,
    )


def _rubric_judge(rubric: "EvaluationRubric") -> "RubricJudge":
    from rag_eval.rubric_judge import RubricJudge

    return RubricJudge(rubric)


def enabled_metrics(settings: Settings) -> tuple[str, ...]:
    """Names of the metrics that are switched on and may enter RQS, in the order of the report."""
    return tuple(name for name in METRIC_LABELS if getattr(settings.metrics, name))


def further_metrics(settings: Settings) -> tuple[Metric, ...]:
    """Those that are switched on, in the order of the report."""
    if not any(getattr(settings.metrics, name) for name in FURTHER_LABELS):
        return ()  # and the evaluators are not imported
    from rag_eval.evaluators.columns import AnswerCoverage, ChunkRelevanceShare

    known: tuple[Metric, ...] = (AnswerCoverage(), ChunkRelevanceShare())
    return tuple(metric for metric in known if getattr(settings.metrics, metric.name))


def workers_of(settings: Settings) -> int:
    return settings.evaluation.max_workers if settings.evaluation.parallel else 1


def endpoint_of(settings: Settings) -> Endpoint:
    """The endpoint of the chosen provider."""
    azure, openai, judge = settings.azure, settings.openai, settings.judge
    is_azure = judge.provider == "azure"
    return Endpoint(
        provider="azure" if is_azure else "openai",
        url=azure.endpoint if is_azure else openai.base_url,
        api_key=(azure.api_key if is_azure else openai.api_key).get_secret_value() or NO_KEY,
        model=azure.deployment if is_azure else openai.model,
        api_version=azure.api_version if is_azure else "",
        temperature=azure.temperature if is_azure else openai.temperature,
        structured_output=judge.structured_output,
        timeout_seconds=judge.timeout_seconds,
        max_attempts=judge.max_attempts,
        workers=workers_of(settings),
        requests_per_minute=settings.limits.requests_per_minute,
        tokens_per_minute=settings.limits.tokens_per_minute,
        token_provider=token_provider() if is_azure and azure.auth == "entra" else None,
    )


def prices_of(settings: Settings) -> dict[str, Price]:
    """What is known of prices, by deployment."""
    prices = settings.prices
    known = {endpoint_of(settings).model: (prices.input, prices.output)}
    if settings.metrics.toxicity and settings.toxicity.deployment:
        known.setdefault(settings.toxicity.deployment, (prices.toxicity_input, prices.toxicity_output))
    return {
        model: Price(input_, output)
        for model, (input_, output) in known.items()
        if input_ is not None and output is not None
    }


def budget_of(settings: Settings) -> Budget:
    """The caps of the run. Raises SettingsError for a cap on the cost of calls whose price is unknown."""
    limits = settings.limits
    prices = prices_of(settings)
    models = {endpoint_of(settings).model}
    if settings.metrics.toxicity and settings.toxicity.deployment:
        models.add(settings.toxicity.deployment)
    if limits.max_cost is not None and (unknown := sorted(models - prices.keys())):
        raise SettingsError(
            f"[limits] max_cost: the price of {', '.join(unknown)} is not known, so a cap on the cost would do "
            "nothing; set input and output (toxicity_input and toxicity_output for the toxicity deployment) in "
            "section [prices]"
        )
    return Budget(Caps(limits.max_calls, limits.max_cost, limits.max_minutes), prices)


def store_path(settings: Settings, output: Path) -> Path:
    """Where paid replies are kept: in the cache's folder, or in a journal beside the report."""
    if settings.cache.enabled:
        return settings.cache.directory / CACHE_NAME
    return output.with_name(output.name + ".journal")


class Evaluation:
    """A run under way. `results` may be called once; `close` ends it."""

    def __init__(self, panel: Panel, settings: Settings) -> None:
        self.panel = panel
        self.redactor = Redactor() if panel.is_proxy else redactor_of(settings)
        self._shortener = Shortener(None) if panel.is_proxy else shortener_of(settings)
        self._workers = workers_of(settings)
        self._scheduler = Scheduler(panel.judge, panel.store, workers=self._workers)
        self._thresholds = thresholds_in_force(settings, is_proxy=panel.is_proxy)
        self._weights = weights_in_force(settings)
        self._samples = 1 if panel.is_proxy else settings.evaluation.samples
        self._gold_decides = settings.diagnostics.gold_ids

    @property
    def stopped(self) -> RunStoppedError | None:
        """Why the run ended early, or None."""
        return self._scheduler.stopped

    @property
    def stop_requested(self) -> bool:
        return self._scheduler.stop_requested

    @property
    def usage(self) -> Usage:
        return self._scheduler.usage()

    def results(self, rows: Iterable[Row]) -> Iterator[tuple[CaseResult, ...]]:
        """The results of each row, bots in the order of the sheet, rows in the order given.

        When an LLM run stops, the remaining rows still come: what the store knows is served, and what was not
        judged is marked so. A stopped offline run ends where it is.
        """
        yield from self._scheduler.run(self._coroutines(rows), window=32 + 2 * self._workers)

    def request_stop(self, reason: RunStoppedError) -> None:
        """Stop at the next safe point. May be called from a signal handler."""
        self._scheduler.request_stop(reason)

    def close(self) -> None:
        """Let go of the worker threads and of the judge's connections. The store stays open."""
        self._scheduler.close()
        self.panel.judge.close()

    def _coroutines(self, rows: Iterable[Row]) -> Iterator[Coroutine[Any, Any, tuple[CaseResult, ...]]]:
        for row in rows:
            if self.panel.is_proxy and self.stopped:
                return
            yield self._judge_row(row)

    async def _judge_row(self, row: Row) -> tuple[CaseResult, ...]:
        """The panel sees the row redacted, and shortened; the results are about the row as it is."""
        seen = self._shortener.row(self.redactor.row(row))
        parts: list[Awaitable[Any]] = [self._rate(seen.query), *map(self._judge_case, seen.cases)]
        toxicity, *verdicts = await gather(parts)
        results = [
            self._result(case, scores, further, rubric, toxicity)
            for case, (scores, further, rubric) in zip(seen.cases, verdicts, strict=True)
        ]
        advice = await self._advise(results)
        return tuple(
            replace(result, case=case, recommendation=text)
            for case, result, text in zip(row.cases, results, advice, strict=True)
        )

    async def _rate(self, query: str) -> Score:
        if self.panel.toxicity is None:
            return Score.not_applicable(TOXICITY, "switched off")
        return await self.panel.toxicity.judge_query(query)

    async def _judge_case(self, case: Case) -> _Verdicts:
        parts: list[Awaitable[Any]] = [
            _measure(self.panel.metrics, case, self._samples),
            _measure(self.panel.further, case, self._samples),
            self._judge_by_rubric(case),
        ]
        scores, further, rubric = await gather(parts)
        return scores, further, rubric

    async def _judge_by_rubric(self, case: Case) -> RubricOutcome | None:
        return await self.panel.rubric.judge(case) if self.panel.rubric else None

    async def _advise(self, results: Sequence[CaseResult]) -> Sequence[str]:
        if self.panel.adviser is None:
            return [""] * len(results)
        return await gather([self.panel.adviser.advise(result) for result in results])

    def _result(
        self, case: Case, scores: _Scores, further: _Scores, rubric: RubricOutcome | None, toxicity: Score
    ) -> CaseResult:
        return CaseResult(
            case=case,
            scores=scores,
            toxicity=toxicity,
            rqs=rqs(scores, self._weights),
            failure_modes=failure_modes(
                scores, self._thresholds, doc_recall(case) if self._gold_decides else None
            ),
            further=further,
            rubric=rubric,
        )


async def _measure(metrics: Sequence[Metric], case: Case, samples: int) -> _Scores:
    scores = await gather([_score(metric, case, samples) for metric in metrics])
    return {score.metric: score for score in scores}


async def _score(metric: Metric, case: Case, samples: int) -> Score:
    if samples == 1:
        return await metric.measure(case)
    return mean_score(await gather([sampled(metric.measure(case), number) for number in range(samples)]))


def shortener_of(settings: Settings) -> Shortener:
    """Cuts the contexts that an LLM judge must not see whole."""
    limits = settings.limits
    return Shortener(limits.max_prompt_tokens if limits.long_prompts == "truncate" else None)


def guarded(judge: Judge, settings: Settings) -> Judge:
    """The judge, or one that refuses prompts that are too long."""
    most = settings.limits.max_prompt_tokens
    return judge if most is None else LengthGuard(judge, most)


def redactor_of(settings: Settings) -> Redactor:
    """Hides what an LLM judge must not see."""
    return Redactor(settings.privacy.kinds, settings.privacy.redact_pattern)


def thresholds_in_force(settings: Settings, *, is_proxy: bool) -> dict[str, float]:
    """Below these a score counts as bad; the offline judge may have measured ones of its own."""
    if is_proxy and settings.offline.thresholds == "calibrated":
        from rag_eval.metrics.offline import CALIBRATED_THRESHOLDS

        return dict(CALIBRATED_THRESHOLDS)
    return settings.thresholds.model_dump()


def weights_in_force(settings: Settings, metrics: Collection[str] | None = None) -> dict[str, float]:
    """The weights of the metrics that are judged, summing to 1; all zero when they weigh nothing.

    `metrics` are those of the run, which need not be all that are switched on.
    """
    judged = [name for name in enabled_metrics(settings) if metrics is None or name in metrics]
    weights = {name: settings.weights.normalised[name] for name in judged}
    total = sum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}


class StoredOnly:
    """A judge that was asked before and is asked no more: what is not stored is not judged."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.adaptations: Sequence[str] = ()

    def prepare(self, deployment: str) -> None:
        raise RunStoppedError(
            "report_only", "only stored replies are used (--report-only), and some are missing"
        )

    def key(self, call: Call[Any]) -> str:
        return self._judge.key(call)

    def ask(self, call: Call[Any]) -> Answer:
        raise AssertionError("a judge that is asked no more was asked")

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        self._judge.close()


class _NoJudge:
    """Stands behind metrics that never call a judge, and stores nothing."""

    adaptations: Sequence[str] = ()

    def prepare(self, deployment: str) -> None:
        """There is nothing to reach."""

    def key(self, call: Call[Any]) -> str:
        raise SettingsError(
            f"{call.task}: needs a judge that reads, which the offline judge is not; set another [judge] provider"
        )

    def ask(self, call: Call[Any]) -> Answer:
        raise AssertionError(f"a call without a key was made ({call.task})")

    def usage(self) -> Usage:
        return Usage()

    def close(self) -> None:
        """Nothing is open."""


class _NoStore:
    """Keeps nothing, since nothing was paid for."""

    def reply(self, key: str) -> str | None:
        return None

    def failure(self, key: str) -> tuple[str, str] | None:
        return None

    def put_reply(self, key: str, **paid: Any) -> None:
        """Nothing was paid for."""

    def put_failure(self, key: str, **failure: Any) -> None:
        """Nothing can fail."""

    def end(self, *, keep: bool) -> None:
        """There is no file."""
