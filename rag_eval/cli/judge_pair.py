"""The settings of two judges that are compared: the same cases for both, and what tells them apart."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval.cli.console import hide, warn
from rag_eval.cli.options import Options, load
from rag_eval.errors import SettingsError

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.settings import Settings


@dataclass(frozen=True, slots=True)
class JudgeSide:
    """One of the two judges."""

    letter: str
    loaded: "LoadedSettings"
    options: Options
    target: Path
    """What its journal is named after."""
    name: str

    @property
    def settings(self) -> "Settings":
        return self.loaded.settings

    @property
    def heading(self) -> str:
        return f"{self.letter} ({self.name})"

    def check_cap(self) -> None:
        """Raises SettingsError for a cap on the cost that could not be kept, before the other judge is paid."""
        from rag_eval.configuration.effective import budget_of

        if not self.settings.provider.is_offline:
            budget_of(self.settings.without_entra())


def read_pair(
    options: tuple[Options, Options], target: Path, input_path: Path
) -> tuple[JudgeSide, JudgeSide]:
    """A and B with settings that give them the same cases. Raises SettingsError if they cannot differ."""
    from rag_eval.configuration.effective import secrets_of

    first, second = (load(each.config, each.overrides(), input_path) for each in options)
    hide(secrets_of(first.settings) | secrets_of(second.settings))
    for warning in dict.fromkeys((*first.warnings, *second.warnings)):
        warn(warning)
    loaded = _prepared(first, first), _prepared(second, first)
    ours, theirs = (identity_of(each.settings) for each in loaded)
    if ours == theirs:
        raise SettingsError(
            f"A and B are the same judge ({_short_name(ours, {})}); name another one with --b, --judge-b, "
            "--model-b, --temperature-b or --prompts-b. To measure how stable one judge is, use run --samples"
            f"{_overriding(second)}"
        )
    names = _short_name(ours, theirs), _short_name(theirs, ours)
    a, b = (
        JudgeSide(letter, each, own, target.with_name(f"{target.name}.{letter.lower()}"), name)
        for letter, each, own, name in zip("AB", loaded, options, names, strict=True)
    )
    is_paid_twice = not a.settings.provider.is_offline and not b.settings.provider.is_offline
    currencies = {side.settings.prices.currency for side in (a, b)}
    if is_paid_twice and options[0].max_cost is not None and len(currencies) > 1:
        raise SettingsError(
            f"--max-cost: the prices of A and B are in different currencies ({', '.join(sorted(currencies))}); "
            "set [limits] max_cost in each configuration instead"
        )
    return a, b


_SAME_CASES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("weights", "metrics", "input", "context", "bots", "columns", "rubric"), ()),
    "diagnostics": ("gold_ids",),
    "evaluation": ("max_rows", "min_coverage"),
}
"""By section, the keys that decide which cases there are and what is scored; no keys stand for all of them."""


def _prepared(loaded: "LoadedSettings", first: "LoadedSettings") -> "LoadedSettings":
    """One judge's settings with the cases and metrics of the first one's, and without what is not compared.

    Recommendations and additional outputs are switched off. Raises SettingsError for every key that is set otherwise
    than for the first judge.
    """
    from rag_eval.configuration.settings import Settings
    from rag_eval.configuration.sources import Level

    problems, settings = [], loaded.settings
    for section, keys in _SAME_CASES.items():
        ours, theirs = getattr(settings, section), getattr(first.settings, section)
        chosen = keys or tuple(type(ours).model_fields)
        for key in chosen:
            source = loaded.sources[f"{section}.{key}"]
            if source.level != Level.DEFAULT and getattr(ours, key) != getattr(theirs, key):
                problems.append(
                    f"{source.heading}, [{section}] {key}: differs from A, but both judges score the same cases by "
                    "the same metrics; remove it here, or set it for A as well"
                )
        update = {key: getattr(theirs, key) for key in chosen}
        settings = settings.model_copy(update={section: ours.model_copy(update=update)})
    if problems:
        raise SettingsError(problems)
    if all(
        loaded.sources[f"privacy.{key}"].level == Level.DEFAULT for key in type(settings.privacy).model_fields
    ):
        settings = settings.model_copy(update={"privacy": first.settings.privacy})
    diagnostics = settings.diagnostics.model_copy(update={"enabled": False})
    settings = settings.model_copy(update={"report": Settings().report, "diagnostics": diagnostics})
    return replace(loaded, settings=settings)


def identity_of(settings: "Settings") -> dict[str, str]:
    """What can change a judge's scores, in words."""
    from rag_eval.judge.addresses import safe_url

    provider, section, limits = settings.provider, settings.section, settings.limits
    if provider.is_offline:
        return {"model": "offline judge"}
    own: dict[str, object] = {
        "model": getattr(section, provider.model_key),
        "temperature": section.temperature,
        **{key: value for key, value in settings.judge if key not in _PATIENCE},
        "address": safe_url(getattr(section, provider.url_key)).rstrip("/"),
        "api_version": getattr(section, "api_version", ""),
        "samples": settings.evaluation.samples,
        "toxicity deployment": settings.toxicity.deployment if settings.metrics.toxicity else "",
        "max_prompt_tokens": limits.max_prompt_tokens or "",
        "long_prompts": limits.long_prompts if limits.max_prompt_tokens else "",
        "redact": settings.privacy.redact,
        "redact_pattern": settings.privacy.redact_pattern,
    }
    return {key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in own.items()}


def _overriding(loaded: "LoadedSettings") -> str:
    """A sentence on the environment variables that hold for both judges, whatever their files say; or nothing."""
    from rag_eval.configuration.sources import Level

    variables = [
        source.name
        for key, source in loaded.sources.items()
        if source.level == Level.ENVIRONMENT and not key.endswith("api_key")
    ]
    return f". From the environment, for both judges: {', '.join(variables)}" if variables else ""


_PATIENCE = ("timeout_seconds", "max_attempts", "prompt_tokens_per_second", "reply_tokens_per_second")
"""Keys of [judge] that do not change what a judge says."""


def _short_name(own: Mapping[str, str], other: Mapping[str, str]) -> str:
    """The model and, if that is the other judge's as well, what differs."""
    if not other or own["model"] != other["model"]:
        return own["model"]
    differing = [f"{key} {value or 'none'}" for key, value in own.items() if other.get(key) != value]
    return ", ".join([own["model"], *differing])
