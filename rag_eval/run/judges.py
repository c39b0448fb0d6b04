"""The judges of a run: what scores its cases, as the settings ask for it, over the store of what they said before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rag_eval.configuration.effective import budget_of, effective_thresholds, enabled_metrics, endpoint_of
from rag_eval.configuration.settings import Settings
from rag_eval.judge.calls import Judge, ReplyStore
from rag_eval.judge.null_judges import LengthGuard, NoJudge, NoStore
from rag_eval.metrics.catalogue import llm_metrics, offline_metrics
from rag_eval.metrics.metric import Metric
from rag_eval.metrics.prompt_forms import Fallbacks, metrics_by_verdicts
from rag_eval.metrics.recommendations import Adviser, LlmAdviser, RuleAdviser
from rag_eval.metrics.toxicity import LlmToxicity, OfflineToxicity, QueryJudge
from rag_eval.records import EXTRA_METRIC_LABELS, TOXICITY
from rag_eval.texts.citations import Habit

if TYPE_CHECKING:
    from rag_eval.rubric import EvaluationRubric
    from rag_eval.rubric.judge import RubricJudge
    from rag_eval.run.metered_store import RunAccount
    from rag_eval.run.pairs import PairJudge


@dataclass(frozen=True, slots=True)
class Judges:
    """All that scores a case or advises on it, and the judge and the store of replies behind them."""

    judge: Judge
    store: ReplyStore
    metrics: tuple[Metric, ...]
    toxicity: QueryJudge | None
    """None when toxicity is switched off."""
    adviser: Adviser | None
    """None when the diagnostics are switched off."""
    extra_metrics: tuple[Metric, ...] = ()
    """Additional metrics, which enter neither RQS nor the failure modes."""
    rubric: "RubricJudge | None" = None
    habits: Mapping[str, Habit] = field(default_factory=dict)
    """How the bots cite, unless the settings leave citations out."""
    pairs: "PairJudge | None" = None
    """None without a head-to-head comparison."""
    fallbacks: Fallbacks = field(default_factory=dict)
    """Grows while the metrics judge."""
    account: "RunAccount | None" = None
    """What the commands of this run took; None if it has no name."""
    is_proxy: bool = False
    """The judge is arithmetic over text, not a model that reads."""

    @property
    def explanations(self) -> dict[str, str]:
        """By metric, how its score comes about; of those that can say it in one sentence."""
        sentences = {metric.name: metric.explanation for metric in self.metrics}
        sentences[TOXICITY] = getattr(self.toxicity, "explanation", "")
        return {name: sentence for name, sentence in sentences.items() if sentence}

    def with_citations(self, settings: Settings, habits: Mapping[str, Habit]) -> "Judges":
        """These, which judge the citations as well if bots cite; `habits` are those of all rows of the run, by bot."""
        if settings.metrics.citations == "off":
            return self
        if not any(habit.cites for habit in habits.values()):
            return replace(self, habits=habits)
        from rag_eval.metrics.citation_support import citation_metrics

        citations = citation_metrics(habits, is_proxy=self.is_proxy)
        return replace(self, extra_metrics=(*self.extra_metrics, *citations), habits=habits)

    @classmethod
    def offline(cls, settings: Settings) -> Self:
        """The judge that needs no key and no network. Raises SettingsError if its embedding cannot be used."""
        return cls(
            judge=NoJudge(),
            store=NoStore(),
            metrics=offline_metrics(enabled_metrics(settings), settings.offline.embedding),
            toxicity=OfflineToxicity() if settings.metrics.toxicity else None,
            adviser=RuleAdviser(effective_thresholds(settings, is_proxy=True))
            if settings.diagnostics.enabled
            else None,
            is_proxy=True,
        )

    @classmethod
    def llm(
        cls,
        settings: Settings,
        judge: Judge,
        store: ReplyStore,
        rubric: "EvaluationRubric | None" = None,
        pairs: "PairJudge | None" = None,
    ) -> Self:
        """A model as the judge, asked in the form of [judge] prompts, with no more than [limits] max_prompt_tokens."""
        from rag_eval.rubric.judge import RubricJudge

        most = settings.limits.max_prompt_tokens
        fallbacks: Fallbacks = {}
        return cls(
            judge=judge if most is None else LengthGuard(judge, most),
            store=store,
            metrics=_llm_metrics(settings, fallbacks),
            toxicity=LlmToxicity(settings.toxicity.deployment) if settings.metrics.toxicity else None,
            adviser=_adviser(settings),
            fallbacks=fallbacks,
            extra_metrics=_extra_metrics(settings),
            rubric=RubricJudge(rubric) if rubric else None,
            pairs=pairs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplies:
    """Where replies are stored, and which of them are wanted."""

    path: Path
    another: Path | None = None
    """A second store, which is only read; the file may be missing."""
    fresh: bool = False
    """Whether all that is stored is to be ignored, but for what an interrupted command has begun so; see RunAccount."""
    since: float = 0.0
    """What was stored before is ignored, in seconds since 1970."""
    retry_errors: bool = False
    strict: bool = False
    """Whether damage is an error; otherwise it is told, and what is intact is kept."""
    only: bool = False
    """Whether nothing is to be asked for beyond them."""
    run: str = ""
    """The name of the run: what its commands took is kept under it; empty for a run that is only one call."""
    job: str = ""
    """The name of the job that sends calls of the same report in batches; see RunAccount."""


def open_llm_judges(
    settings: Settings,
    replies: StoredReplies,
    rubric: "EvaluationRubric | None",
    tell: Callable[[str], None],
) -> Judges:
    """A model behind the endpoint of the settings. Nothing is sent yet. `tell` gets sentences on what was found."""
    from rag_eval.judge.null_judges import StoredOnly
    from rag_eval.judge.transport import Transport
    from rag_eval.run.metered_store import RunAccount
    from rag_eval.store.reply_store import Store

    budget = budget_of(settings)
    endpoint = endpoint_of(settings.without_entra() if replies.only else settings)
    store = Store(
        replies.path,
        another=replies.another,
        on_damage=None if replies.strict else tell,
        on_network=tell,
    )
    if replies.retry_errors:
        store.ignore_before(failures=store.next_moment())
    transport = Transport(endpoint, store, budget, announce=tell)
    judge = StoredOnly(transport) if replies.only else transport
    account = (
        RunAccount(store, replies.run, job=replies.job, fresh=replies.fresh, since=replies.since)
        if replies.run
        else None
    )
    if account and account.continues:
        begun = datetime.fromtimestamp(account.began)
        tell(f"--fresh: the run that was begun so on {begun:%Y-%m-%d %H:%M} and was interrupted goes on")
    return replace(Judges.llm(settings, judge, store, rubric), account=account)


def import_clients() -> None:
    """Import what talks to a model: it takes a second, which may come at a bad time when the first call is made."""
    for name in ("aiohttp", "httpx2", "openai", "rag_eval.judge.transport"):
        import_module(name)


def rubric_of(settings: Settings) -> "EvaluationRubric | None":
    """The rubric of the settings, read; None without one. Raises SettingsError for a file that is not a rubric."""
    if settings.rubric.file is None:
        return None
    from rag_eval.rubric import load_rubric

    return load_rubric(settings.rubric.file)


def _llm_metrics(settings: Settings, fallbacks: Fallbacks) -> tuple[Metric, ...]:
    names, form = enabled_metrics(settings), settings.judge.prompts
    if form == "ragas":
        return llm_metrics(names)
    return metrics_by_verdicts(names, form, fallbacks, settings.limits.max_prompt_tokens)


def _adviser(settings: Settings) -> Adviser | None:
    """Forms with fewer calls take none for advice either: other thresholds would need other advice."""
    if not settings.diagnostics.enabled:
        return None
    if settings.judge.prompts == "ragas":
        return LlmAdviser()
    return RuleAdviser(effective_thresholds(settings, is_proxy=False))


def _extra_metrics(settings: Settings) -> tuple[Metric, ...]:
    """Those that are switched on, in the order of the report."""
    if not any(getattr(settings.metrics, name) for name in EXTRA_METRIC_LABELS):
        return ()  # and the evaluators are not imported
    from rag_eval.evaluators.report_metrics import AnswerCoverage, ChunkRelevanceShare

    known: tuple[Metric, ...] = (AnswerCoverage(), ChunkRelevanceShare())
    return tuple(metric for metric in known if getattr(settings.metrics, metric.name))
