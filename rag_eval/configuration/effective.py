"""What the settings come to: who is asked, for what price, how it is weighed, and what a judge may see."""

import math
from collections.abc import Collection
from pathlib import Path

from rag_eval.configuration.settings import Settings
from rag_eval.errors import SettingsError
from rag_eval.judge.budget import Budget, Caps, Price
from rag_eval.judge.calls import Judge
from rag_eval.judge.endpoint import NO_KEY, Endpoint
from rag_eval.judge.entra import token_provider
from rag_eval.judge.length import LengthGuard
from rag_eval.judge.masking import secrets_in
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS
from rag_eval.records import FURTHER_LABELS, METRIC_LABELS
from rag_eval.texts.redaction import Redactor
from rag_eval.texts.shortening import Shortener

CACHE_NAME = "replies.sqlite"


def enabled_metrics(settings: Settings) -> tuple[str, ...]:
    """Names of the metrics that are switched on and may enter RQS, in the order of the report."""
    return tuple(name for name in METRIC_LABELS if getattr(settings.metrics, name))


def beyond_offline(settings: Settings) -> str:
    """What is switched on and the offline judge cannot judge, in words; empty for nothing, or with another judge."""
    if settings.judge.provider != "offline":
        return ""
    wanted = [label for name, label in FURTHER_LABELS.items() if getattr(settings.metrics, name)]
    wanted += ["Rubric"] if settings.rubric.file else []
    return f"Not judged, since the offline judge cannot: {', '.join(wanted)}." if wanted else ""


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


def secrets_of(settings: Settings) -> frozenset[str]:
    """What must not be shown: the keys of all providers, and what looks like a key in their addresses."""
    azure, openai = settings.azure, settings.openai
    return secrets_in(azure.api_key.get_secret_value(), azure.endpoint) | secrets_in(
        openai.api_key.get_secret_value(), openai.base_url
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
    """Below these a score counts as bad; the offline judge has thresholds of its own, measured against people."""
    configured: dict[str, float] = settings.thresholds.model_dump()
    if not is_proxy:
        return configured
    own = _calibrated(settings)
    return {name: CALIBRATED_THRESHOLDS[name] if name in own else value for name, value in configured.items()}


def describe_thresholds(settings: Settings, *, is_proxy: bool) -> str:
    """Where the thresholds in force come from, in words that end a sentence."""
    if not is_proxy:
        return "from [thresholds]"
    own = _calibrated(settings)
    configured = [name for name in METRIC_LABELS if name not in own]
    if not own:
        return "from [thresholds], not those calibrated for the offline judge"
    except_ = f", except {', '.join(configured)} from [thresholds]" if configured else ""
    return f"calibrated for the offline judge{except_}"


def idle_thresholds(settings: Settings, *, is_proxy: bool) -> str:
    """What it means that all five thresholds are set to the value that suits an LLM judge; empty otherwise."""
    if not is_proxy or _calibrated(settings) or set(settings.thresholds.model_dump().values()) != {0.3}:
        return ""
    return (
        "[thresholds]: all five are 0.3, at which the offline judge shows most bad answers as good; "
        "remove these keys, or set [offline] thresholds = calibrated, to use its own thresholds."
    )


def _calibrated(settings: Settings) -> frozenset[str]:
    """The metrics whose threshold is the offline judge's own."""
    if settings.offline.thresholds == "configured":
        return frozenset()
    if settings.offline.thresholds == "calibrated":
        return frozenset(METRIC_LABELS)
    configured: set[str] = settings.thresholds.model_fields_set
    return frozenset(METRIC_LABELS) - configured


def weights_in_force(settings: Settings, metrics: Collection[str] | None = None) -> dict[str, float]:
    """The weights of the metrics that are judged, summing to 1; all zero when they weigh nothing.

    `metrics` are those of the run, which need not be all that are switched on.
    """
    judged = [name for name in enabled_metrics(settings) if metrics is None or name in metrics]
    weights = {name: settings.weights.normalised[name] for name in judged}
    total = math.fsum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}
