"""The options of the main job, as they were given on the command line."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_eval.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None, False or () stands for what was not given."""

    config: Path | None
    judge: str | None
    model: str | None
    temperature: float | None
    alpha: float | None
    beta: float | None
    gamma: float | None
    samples: int | None
    dry_run: bool
    max_calls: int | None
    max_cost: float | None
    max_minutes: float | None
    fresh: bool
    retry_errors: bool
    strict_cache: bool
    json: Path | None
    csv: Path | None
    fail_under: tuple[str, ...]
    gate_on: str
    baseline: Path | None
    fail_on_regression: bool
    report_only: bool
    manifest: Path | None
    wait: float
    """Minutes."""
    junit: Path | None
    sheet: str | None
    encoding: str | None
    sep: str | None
    format: str | None
    map: tuple[str, ...]
    bot_name: str | None
    where: tuple[str, ...]
    rows: str | None
    random_rows: int | None
    show: bool
    redact: str | None

    def given(self) -> Mapping[str, Any]:
        """By name, those that were given."""
        every = asdict(self).items()
        return {
            name: value for name, value in every if value is not None and value is not False and value != ()
        }

    def overrides(self) -> Mapping[str, Any]:
        """What stands in for a key of the configuration, by "section.key"."""
        from rag_eval.tables.mapping import parse_map

        named = {f"columns.{key}": value for key, value in parse_map(self.map).items()} if self.map else {}
        ours = {key: value for name, key in _OVERRIDES.items() if (value := getattr(self, name)) is not None}
        return {**ours, **named}

    def weights(self) -> Mapping[str, str]:
        """Metrics by the option that was given for their weight in RQS."""
        return {
            f"--{name}": key.removeprefix("weights.")
            for name, key in _OVERRIDES.items()
            if key.startswith("weights.") and name in self.given()
        }

    def refuse_idle_again(self) -> None:
        """Raises InputError for what does nothing when a report is made again from a run's JSON."""
        idle = [f"--{name.replace('_', '-')}" for name in _IDLE_AGAIN if name in self.given()]
        if idle:
            raise InputError(
                f"{', '.join(idle)}: cannot be used with --report-only and a run's JSON, where nothing is read from "
                "a sheet and nobody is asked"
            )


_OVERRIDES = {
    "judge": "judge.provider",
    "model": "model",
    "temperature": "temperature",
    "alpha": "weights.answer_correctness",
    "beta": "weights.faithfulness",
    "gamma": "weights.answer_relevancy",
    "samples": "evaluation.samples",
    "max_calls": "limits.max_calls",
    "max_cost": "limits.max_cost",
    "max_minutes": "limits.max_minutes",
    "redact": "privacy.redact",
}
_IDLE_AGAIN = (
    "sheet", "encoding", "sep", "map", "bot_name", "where", "rows", "random_rows", "show", "model", "temperature",
    "samples", "redact", "max_calls", "max_cost", "max_minutes", "fresh", "retry_errors", "strict_cache",
)  # fmt: skip
"""These are about reading a sheet or asking a judge."""
