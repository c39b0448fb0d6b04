"""What the settings come to: who is asked, for what price, how it is weighed, and what a judge may see."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_eval.configuration.settings import Settings
from rag_eval.errors import SettingsError
from rag_eval.judge.masking import is_loopback, secrets_in
from rag_eval.judge.providers import PROVIDERS, token_provider
from rag_eval.metrics.catalogue import CALIBRATED_THRESHOLDS, EMBEDDING_THRESHOLDS
from rag_eval.records import EXTRA_METRIC_LABELS, METRIC_LABELS, OFFLINE

if TYPE_CHECKING:
    from rag_eval.judge.budget import Budget, Price
    from rag_eval.judge.endpoint import Endpoint

CACHE_NAME = "replies.sqlite"


def enabled_metrics(settings: Settings) -> tuple[str, ...]:
    """Names of the metrics that are switched on and may enter RQS, in the order of the report."""
    return tuple(name for name in METRIC_LABELS if getattr(settings.metrics, name))


def beyond_offline(settings: Settings) -> str:
    """What is switched on and the offline judge cannot judge, in words; empty for nothing, or with another judge."""
    if not settings.provider.is_offline:
        return ""
    wanted = [label for name, label in EXTRA_METRIC_LABELS.items() if getattr(settings.metrics, name)]
    wanted += ["Rubric"] if settings.rubric.file else []
    return f"Skipped, needs an LLM judge: {', '.join(wanted)}." if wanted else ""


def processes_problem(settings: Settings) -> str:
    """Why the judge cannot work in as many processes as are asked for, and what to do; empty if it can."""
    if settings.provider.is_offline or (settings.evaluation.processes or 1) == 1:
        return ""
    return (
        "only the offline judge uses several processes; remove it, and raise max_workers in [evaluation] for more "
        "concurrent calls to an LLM judge"
    )


def endpoint_of(settings: Settings) -> "Endpoint":
    """The endpoint of the chosen provider, which is not the offline judge."""
    from rag_eval.judge.endpoint import NO_KEY, Endpoint

    judge, provider, section = settings.judge, settings.provider, settings.section
    return Endpoint(
        provider=provider.name,
        url=getattr(section, provider.url_key),
        api_key=section.api_key.get_secret_value() or NO_KEY,
        model=getattr(section, provider.model_key),
        api_version=getattr(section, "api_version", ""),
        temperature=section.temperature,
        structured_output=judge.structured_output,
        timeout_seconds=judge.timeout_seconds,
        max_attempts=judge.max_attempts,
        workers=settings.evaluation.workers,
        requests_per_minute=settings.limits.requests_per_minute,
        tokens_per_minute=settings.limits.tokens_per_minute,
        token_provider=token_provider() if provider.takes_tokens(section) else None,
    )


def describe_judge(settings: Settings) -> str:
    """The model, where it is, and the prompt form unless it is that of ragas; the offline judge with its embedding."""
    if settings.provider.is_offline:
        embedding = settings.offline.embedding
        return f"{OFFLINE} with embedding {embedding.resolve().name}" if embedding else OFFLINE
    form = settings.judge.prompts
    return endpoint_of(settings).description + ("" if form == "ragas" else f", {form} prompts")


def secrets_of(settings: Settings) -> frozenset[str]:
    """What must not be shown: the keys of all providers, and what looks like a key in their addresses."""
    sections = [
        (getattr(settings, name), each.url_key) for name, each in PROVIDERS.items() if not each.is_offline
    ]
    return frozenset().union(
        *(secrets_in(section.api_key.get_secret_value(), getattr(section, url)) for section, url in sections)
    )


def prices_of(settings: Settings) -> "dict[str, Price]":
    """What is known of prices, by deployment."""
    from rag_eval.judge.budget import Price

    prices = settings.prices
    known = {endpoint_of(settings).model: (prices.input, prices.output, prices.cached_input)}
    if settings.metrics.toxicity and settings.toxicity.deployment:
        known.setdefault(settings.toxicity.deployment, (prices.toxicity_input, prices.toxicity_output, None))
    return {
        model: Price(input_, output, cached)
        for model, (input_, output, cached) in known.items()
        if input_ is not None and output is not None
    }


def how_to_price(settings: Settings) -> str:
    """The models without a price, the lines that would set it, and where it is listed; empty if all are known."""
    endpoint, provider = endpoint_of(settings), settings.provider
    wanted = {endpoint.model: ("input", "output")}
    if settings.metrics.toxicity and settings.toxicity.deployment:
        wanted.setdefault(settings.toxicity.deployment, ("toxicity_input", "toxicity_output"))
    unknown = {model: keys for model, keys in wanted.items() if model not in prices_of(settings)}
    if not unknown:
        return ""
    missing = [key for keys in unknown.values() for key in keys if getattr(settings.prices, key) is None]
    lines = " and ".join(f"'{key} = PRICE'" for key in missing)
    host = urlsplit(endpoint.url).hostname or ""
    place = (
        provider.price_page if host.endswith(provider.price_host) else f"the price list of {endpoint.host}"
    )
    place = "0 if the server is your own" if is_loopback(host) else f"see {place}"
    return (
        f"the price of {', '.join(unknown)} is not known; add the lines {lines} to section [prices] of config.ini, per "
        f"million tokens ({place})"
    )


def budget_of(settings: Settings) -> "Budget":
    """The caps of the run. Raises SettingsError for a cap on the cost of calls whose price is unknown."""
    from rag_eval.judge.budget import Budget

    limits = settings.limits
    if limits.max_cost is not None and (remedy := how_to_price(settings)):
        raise SettingsError(f"[limits] max_cost: {remedy}")
    return Budget(
        prices_of(settings),
        max_calls=limits.max_calls,
        max_cost=limits.max_cost,
        max_minutes=limits.max_minutes,
    )


def store_path(settings: Settings, output: Path) -> Path:
    """Where paid replies are kept: in the cache's folder, or in a journal beside the report."""
    if settings.cache.enabled:
        return settings.cache.directory / CACHE_NAME
    return output.with_name(output.name + ".journal")


def effective_thresholds(settings: Settings, *, is_proxy: bool) -> dict[str, float]:
    """Below these a score counts as bad; the offline judge has thresholds of its own, measured against people."""
    configured: dict[str, float] = settings.thresholds.model_dump()
    if not is_proxy:
        return configured
    own = _calibrated(settings)
    calibrated = EMBEDDING_THRESHOLDS if settings.offline.embedding else CALIBRATED_THRESHOLDS
    return {name: calibrated[name] if name in own else value for name, value in configured.items()}


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


def effective_weights(settings: Settings, metrics: Collection[str] | None = None) -> dict[str, float]:
    """The weights of the metrics that are judged, summing to 1; all zero when they weigh nothing.

    `metrics` are those of the run, which need not be all that are switched on.
    """
    judged = [name for name in enabled_metrics(settings) if metrics is None or name in metrics]
    weights = {name: settings.weights.normalised[name] for name in judged}
    total = math.fsum(weights.values())
    return {name: weight / total if total else 0.0 for name, weight in weights.items()}
