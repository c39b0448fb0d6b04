"""The options of the main job, as they were given on the command line."""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_eval.errors import InputError

if TYPE_CHECKING:
    from rag_eval.configuration import LoadedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None, False or () stands for what was not given."""

    config: Path | None = None
    judge: str | None = None
    model: str | None = None
    temperature: float | None = None
    prompts: str | None = None
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None
    processes: int | None = None
    samples: int | None = None
    dry_run: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    max_minutes: float | None = None
    fresh: bool = False
    retry_errors: bool = False
    strict_cache: bool = False
    json: Path | None = None
    html: Path | None = None
    html_no_texts: bool = False
    csv: Path | None = None
    fail_under: tuple[str, ...] = ()
    gate_on: str = "interval"
    baseline: Path | None = None
    history: Path | None = None
    fail_on_regression: bool = False
    report_only: bool = False
    manifest: Path | None = None
    wait: float = 0.0
    """Minutes."""
    junit: Path | None = None
    sheet: str | None = None
    header_row: int | None = None
    encoding: str | None = None
    sep: str | None = None
    format: str | None = None
    map: tuple[str, ...] = ()
    bot_name: str | None = None
    where: tuple[str, ...] = ()
    rows: str | None = None
    random_rows: int | None = None
    show: bool = False
    redact: str | None = None
    labels: tuple[Path, ...] = ()
    calibrate: Path | None = None
    batch: bool = False
    batch_wait: float | None = None
    """Minutes."""
    batch_cancel: bool = False
    engine: str | None = None
    address: str | None = None
    shard_rows: int | None = None

    def given(self) -> Mapping[str, Any]:
        """By name, those that were given."""
        every = asdict(self).items()
        return {
            name: value for name, value in every if value is not None and value is not False and value != ()
        }

    @property
    def wants_latest(self) -> bool:
        """The baseline is the last comparable run of the history, unless there is a file of that name."""
        return self.baseline == Path("latest") and not self.baseline.exists()

    def overrides(self) -> Mapping[str, Any]:
        """The values that replace those of the configuration, by 'section.key'."""
        from rag_eval.configuration.sources import OPTIONS
        from rag_eval.tables.columns import parse_map

        named = {f"columns.{key}": value for key, value in parse_map(self.map).items()} if self.map else {}
        values = {key: getattr(self, _field(option)) for option, key in OPTIONS.items()}
        return {key: value for key, value in values.items() if value is not None} | named

    def weights(self) -> Mapping[str, str]:
        """By option, the metric whose weight in RQS was given with it."""
        from rag_eval.configuration.sources import OPTIONS

        given = self.given()
        return {
            option: key.removeprefix("weights.")
            for option, key in OPTIONS.items()
            if key.startswith("weights.") and _field(option) in given
        }

    @property
    def in_batches(self) -> bool:
        return self.batch or self.batch_cancel

    def refuse_idle_again(self) -> None:
        """Raise InputError for options that have no effect when a report is rebuilt from a run's JSON."""
        if self.wants_latest:
            raise InputError(
                "--baseline latest: no history is kept with a run's JSON; name a report (.xlsx) or a run's JSON"
            )
        if idle := self.given_of(_IDLE_AGAIN):
            raise InputError(
                f"{', '.join(idle)}: cannot be used with --report-only and a run's JSON, since no sheet is read and "
                f"no judge is called; remove {'it' if len(idle) == 1 else 'them'}"
            )

    def given_of(self, options: Iterable[str]) -> list[str]:
        """Those of these options that were given."""
        given = self.given()
        return [option for option in options if _field(option) in given]


def load(
    config: Path | None, overrides: Mapping[str, Any], input_path: Path | None = None
) -> "LoadedSettings":
    """The settings for an input, or without one for the current folder. Raises SettingsError."""
    from rag_eval.configuration import load_settings

    script = Path(sys.argv[0])
    homes = [Path(os.path.realpath(script)).parent] if script.name == "rag_eval_standalone.py" else []
    homes.append(input_path.parent if input_path else Path.cwd())
    return load_settings(config, overrides, os.environ, Path.cwd(), homes)


def _field(option: str) -> str:
    """The field of Options that holds the value of an option."""
    return option.removeprefix("--").replace("-", "_")


_IDLE_AGAIN = (
    "--sheet",
    "--header-row",
    "--encoding",
    "--sep",
    "--map",
    "--bot-name",
    "--where",
    "--rows",
    "--random-rows",
    "--show",
    "--model",
    "--temperature",
    "--prompts",
    "--processes",
    "--samples",
    "--redact",
    "--max-calls",
    "--max-cost",
    "--max-minutes",
    "--fresh",
    "--retry-errors",
    "--strict-cache",
    "--history",
    "--batch",
    "--batch-wait",
    "--batch-cancel",
)
"""Options about reading a sheet or calling a judge."""
