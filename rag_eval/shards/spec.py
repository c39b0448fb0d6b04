"""What one shard is to be judged with, as JSON that any machine may read: it holds no secret."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_eval.configuration.effective import secrets_of
from rag_eval.configuration.settings import Settings
from rag_eval.errors import InputError
from rag_eval.judge.masking import safe_path, safe_url
from rag_eval.judge.providers import PROVIDERS
from rag_eval.records import RunFacts
from rag_eval.run.pairs import PairPlan
from rag_eval.shards.folder import fingerprint
from rag_eval.store.codec import from_plain, to_plain
from rag_eval.texts.citations import Habit

_OF_THE_RUN = ("flags", "cut_contexts", "usage")
"""Facts that are counted while the run is judged."""

_TALLIES = 5
"""Number of the form that tallies are stored in; parts with tallies of another form are counted again."""
_COUNTING: Mapping[str, tuple[str, ...]] = {
    "weights": (),
    "thresholds": (),
    "offline": (),
    "report": (),
    "toxicity": ("threshold",),
    "diagnostics": ("gold_ids",),
}
"""Sections, or keys of them, that say what is made of the scores; none of them changes a score."""
_CONDUCT: Mapping[str, tuple[str, ...]] = {
    "judge": (
        "timeout_seconds",
        "max_attempts",
        "prompt_tokens_per_second",
        "reply_tokens_per_second",
    ),
    "cache": (),
    "evaluation": ("parallel", "max_workers", "max_rows", "min_coverage", "regression_margin"),
    "limits": ("max_calls", "max_cost", "max_minutes", "requests_per_minute", "tokens_per_minute"),
    "prices": (),
}
"""The same of those that say how fast, how long and for how much the judge is asked."""


class ShardSpec(BaseModel):
    """One shard. Its paths are relative to the folder of the run, which is where the specification was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    source: str
    """Name of the file that the rows come from."""
    rows: int
    input: str
    """Fingerprint of the rows."""
    judging: str
    """Fingerprint of everything that scores depend on: the rows, the judge, what is measured."""
    counting: str
    """Fingerprint of everything that tallies depend on beside the scores."""
    settings: dict[str, Any]
    habits: dict[str, Habit] = {}
    """How the bots cite, by bot, over all rows of the run."""
    pairs: PairPlan | None = None
    """Which responses are compared in pairs, by all rows of the run; None if none are."""
    facts: dict[str, Any]
    share: int = 1
    """As many shards are judged at the same time: this one gets such a part of the limits of the run."""
    max_calls: int | None = None
    max_cost: float | None = None
    max_minutes: float | None = None
    """What is left for this shard of the caps of the run."""
    grant: str = ""
    """Names this one hand-out of requests and money: a worker that died may have spent all of it."""
    shares_replies: bool = True
    """Whether all shards have one journal."""
    again: bool = False
    """Whether to judge it even if it is done, since some of its cases failed."""
    fresh_since: float = 0.0
    """Parts and stored replies from before that time, in seconds since 1970, are not wanted."""
    retry_errors: bool = False
    strict_cache: bool = False

    def settings_of_shard(self) -> Settings:
        """With its share of the limits, and without keys."""
        settings = Settings.model_validate(self.settings)
        limits = settings.limits
        shared = {
            name: value / self.share
            for name in ("requests_per_minute", "tokens_per_minute")
            if (value := getattr(limits, name)) is not None
        }
        caps = {name: getattr(self, name) for name in ("max_calls", "max_cost", "max_minutes")}
        workers = {"max_workers": max(1, settings.evaluation.workers // self.share)}
        return settings.model_copy(
            update={
                "limits": limits.model_copy(update={**shared, **caps}),
                "evaluation": settings.evaluation.model_copy(update=workers),
            }
        )

    def facts_of_run(self) -> RunFacts:
        facts: RunFacts = from_plain(RunFacts, self.facts)
        return facts


def read_spec(path: Path) -> ShardSpec:
    """Raises InputError for anything but a specification."""
    try:
        return ShardSpec.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, ValidationError) as error:
        reason = (
            "it is not the specification of a shard" if isinstance(error, ValidationError) else error.strerror
        )
        raise InputError(
            f"{path}: cannot be read ({reason}); name a file of the folder specs/ of a run"
        ) from None


def plain_facts(facts: RunFacts) -> dict[str, Any]:
    """The facts at the start of a run, in values that JSON knows."""
    plain: dict[str, Any] = to_plain(facts)
    return {name: value for name, value in plain.items() if name not in _OF_THE_RUN}


def plain_settings(settings: Settings) -> dict[str, Any]:
    """In values that JSON knows, as they were given, without secrets and without judges that are not asked.

    Raises InputError if the address of the judge may hold a secret, or another setting has one.
    """
    _refuse_hidden_address(settings)
    others = {
        name: type(getattr(settings, name))()
        for name, provider in PROVIDERS.items()
        if not provider.is_offline and name != settings.judge.provider
    }
    harmless = settings.without_secrets().model_copy(update=others)
    plain: dict[str, Any] = harmless.model_dump(mode="json", exclude_unset=True)
    text = json.dumps(plain)
    if any(secret in text for secret in secrets_of(settings.model_copy(update=others))):
        raise InputError(
            "the settings contain a key outside of api_key, as in the address of the judge; a run in shards writes its "
            "settings to files: use api_key, or the environment"
        )
    return plain


def _refuse_hidden_address(settings: Settings) -> None:
    """The address would be plain in these files, since a shard needs all of it.

    A report hides more of it, but what it hides is a name more often than a key. The model is no secret either: its
    name is in the settings as it is.
    """
    provider = settings.provider
    if provider.is_offline:
        return
    url, model = (getattr(settings.section, key) for key in (provider.url_key, provider.model_key))
    segments = urlsplit(url).path.split("/")
    if not any(_may_be_key(segment) for segment in segments if segment not in (safe_path(segment), model)):
        return
    variable = next(name for name, key in provider.variables.items() if key == "api_key")
    raise InputError(
        f"[{provider.name}] {provider.url_key}: {safe_url(url)} may hold a key where it has …, and a run in shards "
        "writes the address to files; use an address without it and give the key as api_key or in the environment "
        f"variable {variable}, or judge one file without shards"
    )


def _may_be_key(segment: str) -> bool:
    """Whether it is long and not made of words and numbers, such as my-project-123."""
    return len(segment) >= _SHORTEST_KEY and not all(map(_NAME.fullmatch, re.split(r"[-_.]", segment)))


_SHORTEST_KEY = 10
_NAME = re.compile(r"[A-Za-z]?[a-z]{0,14}\d{0,3}|[A-Z]{1,15}\d{0,3}|\d+[a-z]{0,2}")


def judging_fingerprint(settings: Settings, rubric: str, version: str) -> str:
    """Of everything in the settings that a score depends on. `rubric` is the fingerprint of the rubric's file."""
    return fingerprint([_judging(settings), rubric, version])


def judged_otherwise(before: Settings, now: Settings) -> list[str]:
    """Settings that a score depends on and that differ, as '[section] key'."""
    was, told = _judging(before), _judging(now)
    return [
        f"[{section}] {key}"
        for section in dict.fromkeys((*told, *was))
        for key in dict.fromkeys((*told.get(section, {}), *was.get(section, {})))
        if told.get(section, {}).get(key) != was.get(section, {}).get(key)
    ]


def _judging(settings: Settings) -> dict[str, Any]:
    harmless = settings.without_secrets().model_dump(mode="json")
    judged = _without(_without(harmless, _COUNTING), _CONDUCT)
    for name, provider in PROVIDERS.items():
        if not provider.is_offline and name != settings.judge.provider:
            del judged[name]
    if settings.provider.is_offline and settings.offline.embedding:
        judged["offline"] = {"embedding": harmless["offline"]["embedding"]}
    return judged


def counting_fingerprint(settings: Settings, facts: RunFacts) -> str:
    """Of everything that the tallies of a part depend on beside its scores."""
    return fingerprint(
        [
            _TALLIES,
            settings.report.slice_by,
            settings.diagnostics.gold_ids,
            facts.bots,
            facts.metrics,
            dict(facts.weights),
            dict(facts.thresholds),
            facts.toxicity_threshold,
            list(facts.further),
            facts.rubric,
            facts.criteria,
            facts.has_labels,
        ]
    )


def _without(values: Mapping[str, Any], parts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    return {
        section: {key: value for key, value in keys.items() if key not in parts.get(section, ())}
        for section, keys in values.items()
        if parts.get(section) != ()
    }
