"""The table of options, and the options of the main job as they were given on the command line.

A new option is one field of `Options`: parameters of commands, sections of --help, docs/cli.md and the names in error
messages come from it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rag_eval.cli.parameters import MINUTES, NAME, PAGE, PATH, Option
from rag_eval.errors import InputError
from rag_eval.judge.providers import PROVIDERS
from rag_eval.records import PROMPT_FORMS
from rag_eval.tables.input_files import SUFFIXES

if TYPE_CHECKING:
    from rag_eval.configuration.loading import LoadedSettings
    from rag_eval.configuration.sources import Given
    from rag_eval.results.gates import Gate

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _option(
    group: str,
    text: str,
    *,
    default: Any = None,
    short: str = "",
    key: str = "",
    commands: str = "run",
    idle: str = "",
    is_usual: bool = False,
    **attributes: Any,
) -> Any:
    """A field of `Options` with what there is to know of its option.

    Args:
        group: One of GROUPS.
        text: At most 60 characters for --help.
        default: The value of an option that was not given.
        short: The name with one dash.
        key: The 'section.key' that it overrides; `model` and `temperature` belong to the section of the provider.
        commands: The commands that have it; with ':each' at its end, one that has it with -a and with -b.
        idle: Where it has no effect: 'offline' (with the offline judge), 'offline-file' (with the offline judge, unless
            in shards), 'json' (when a report is rebuilt from a run's JSON), 'pairs' (when only the pairs of a run's
            JSON are judged), 'shards', 'batch-cancel' (beside it).
        is_usual: Most users need it: --help shows it, not only --help-all.
        attributes: The rest for click.
    """
    if default is not None and default is not False and default != ():
        attributes["default"] = default
    about = {"short": short, "key": key, "commands": commands.split(), "idle": idle.split()}
    click_option = {"help": text, "group": group, "is_usual": is_usual, **attributes}
    return field(default=default, metadata={**about, "click": click_option})


_flag = partial(_option, default=False, is_flag=True)
_many = partial(_option, default=(), multiple=True)

FORMATS = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)
"""Of standard input."""
_WEIGHT = click.FloatRange(min=0.0)
_LIMIT = click.FloatRange(min=0.0, min_open=True)
_COUNT = click.IntRange(min=1)
_BOTH = "run compare-judges"
_READING = "run compare-judges retrieval align"
_GATES = "run report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One field an option, in the order of --help. None, False or () stands for what was not given."""

    judge: str | None = _option(
        "Judge",
        "Judge to use; offline needs no API key.",
        type=click.Choice(list(PROVIDERS)),
        key="judge.provider",
        commands="run compare-judges:each doctor",
        is_usual=True,
    )
    model: str | None = _option(
        "Judge",
        "Deployment (Azure) or model (OpenAI) of the judge.",
        metavar="NAME",
        key="model",
        commands="run compare-judges:each doctor",
        idle="json",
        is_usual=True,
    )
    temperature: float | None = _option(
        "Judge",
        "Sampling temperature of the judge.",
        type=click.FloatRange(0.0, 2.0),
        metavar="NUMBER",
        key="temperature",
        commands="run compare-judges:each",
        idle="json",
        is_usual=True,
    )
    prompts: str | None = _option(
        "Judge",
        "Prompts of the judge: fewer calls with merged or single.",
        type=click.Choice(list(PROMPT_FORMS)),
        key="judge.prompts",
        commands="run compare-judges:each",
        idle="offline json pairs",
    )
    samples: int | None = _option(
        "Judge",
        "Score each answer K times and use the mean.",
        type=click.IntRange(1, 50),
        metavar="K",
        key="evaluation.samples",
        idle="offline json pairs",
    )
    processes: int | None = _option(
        "Judge",
        "Processes of the offline judge.  [default: one per core for large inputs]",
        type=click.IntRange(1, 64),
        metavar="N",
        key="evaluation.processes",
        idle="json pairs",
    )
    alpha: float | None = _option(
        "Judge",
        "Weight of answer correctness in RQS.",
        type=_WEIGHT,
        metavar="WEIGHT",
        key="weights.answer_correctness",
        is_usual=True,
    )
    beta: float | None = _option(
        "Judge",
        "Weight of faithfulness in RQS.",
        type=_WEIGHT,
        metavar="WEIGHT",
        key="weights.faithfulness",
        is_usual=True,
    )
    gamma: float | None = _option(
        "Judge",
        "Weight of answer relevancy in RQS.",
        type=_WEIGHT,
        metavar="WEIGHT",
        key="weights.answer_relevancy",
        is_usual=True,
    )
    redact: str | None = _option(
        "Judge",
        "Hide e-mail addresses and phone numbers from the judge.",
        flag_value="email, phone",
        key="privacy.redact",
        commands=_BOTH,
        idle="json",
    )
    dry_run: bool = _flag(
        "Cost",
        "Estimate calls, tokens and cost; send nothing.",
        commands=_BOTH,
        idle="batch-cancel",
        is_usual=True,
    )
    max_calls: int | None = _option(
        "Cost",
        "Stop before sending more than N requests.",
        type=_COUNT,
        metavar="N",
        key="limits.max_calls",
        commands=_BOTH,
        idle="offline json",
    )
    max_cost: float | None = _option(
        "Cost",
        "Stop before the cost can exceed AMOUNT; needs [prices].",
        type=_LIMIT,
        metavar="AMOUNT",
        key="limits.max_cost",
        commands=_BOTH,
        idle="offline json",
        is_usual=True,
    )
    max_minutes: float | None = _option(
        "Cost",
        "Stop after MINUTES minutes.",
        type=_LIMIT,
        metavar="MINUTES",
        key="limits.max_minutes",
        commands=_BOTH,
        idle="offline-file json",
    )
    head_to_head: str | None = _option(
        "Judge",
        "Also ask which of two answers is better; all: every pair.",
        type=click.Choice(["auto", "all"]),
        is_flag=False,
        flag_value="auto",
        key="head_to_head.pairs",
        commands=_BOTH,
        idle="json",
    )
    until_clear: bool = _flag(
        "Cost",
        "Stop at a planned look if the answer is clear by then.",
        idle="json shards pairs",
    )
    fresh: bool = _flag(
        "Cost", "Ignore stored replies and call the judge again.", commands=_BOTH, idle="json batch-cancel"
    )
    retry_errors: bool = _flag(
        "Cost",
        "Retry calls that were blocked, refused or truncated.",
        commands=_BOTH,
        idle="json batch-cancel",
    )
    strict_cache: bool = _flag("Cost", "Stop if the stored replies are damaged.", commands=_BOTH, idle="json")
    batch: bool = _flag(
        "Cost", "Send calls in provider batches; run again to continue.", idle="json shards pairs"
    )
    batch_wait: float | None = _option(
        "Cost",
        "With --batch: wait up to MINUTES for the batches.",
        type=MINUTES,
        metavar="MINUTES",
        idle="json shards batch-cancel pairs",
    )
    batch_cancel: bool = _flag(
        "Cost", "Cancel this report's batches; keep finished replies.", idle="json shards pairs"
    )
    output: Path | None = _option(
        "Output", "Report file.  [default: <input>_report.xlsx]", short="-o", type=PATH, is_usual=True
    )
    html: Path | None = _option(
        "Output",
        "Also write a page for any browser to this file.",
        type=PAGE,
        commands=f"{_BOTH} report",
        is_usual=True,
    )
    html_no_texts: bool = _flag(
        "Output", "Leave texts, evidence and advice out of the page.", commands=f"{_BOTH} report"
    )
    json: Path | None = _option(
        "Output", "Also write the whole run as JSON to this file.", type=PATH, commands=_GATES, is_usual=True
    )
    csv: Path | None = _option(
        "Output", "Also write the tables as CSV files to FOLDER.", type=PATH, metavar="FOLDER"
    )
    markdown: Path | None = _option(
        "Output",
        "Also write a summary for pull requests, as Markdown.",
        type=PATH,
        commands=_GATES,
    )
    manifest: Path | None = _option("Output", "Write settings, status and exit code as JSON.", type=PATH)
    report_only: bool = _flag(
        "Output", "Rebuild the report from stored replies or a run's JSON.", is_usual=True
    )
    wait: float = _option(
        "Output",
        "Wait up to MINUTES for a run that writes this report.",
        type=MINUTES,
        default=0.0,
        metavar="MINUTES",
        commands=_BOTH,
    )
    fail_under: tuple[str, ...] = _many(
        "Gates",
        "Exit with 1 if a bot's lower 95% limit is below VALUE.",
        metavar="NAME=VALUE",
        commands=_GATES,
        is_usual=True,
    )
    fail_over: tuple[str, ...] = _many(
        "Gates",
        "Exit with 1 if a bot's latency or cost is above VALUE.",
        metavar="NAME=VALUE",
        commands=_GATES,
    )
    gate_on: str = _option(
        "Gates",
        "Compare gates with the 95% limit or the figure itself.",
        type=click.Choice(["interval", "mean"]),
        default="interval",
        show_default=True,
        commands=_GATES,
    )
    baseline: Path | None = _option(
        "Gates",
        "Report, JSON or latest: the earlier run to compare with.",
        type=PATH,
        commands=_GATES,
        is_usual=True,
    )
    fail_on_regression: bool = _flag(
        "Gates", "Exit with 1 if any mean is significantly worse.", commands=_GATES
    )
    junit: Path | None = _option(
        "Gates", "Write gate results as JUnit XML to this file.", type=PATH, commands=_GATES
    )
    history: Path | None = _option(
        "Gates",
        "Add this run to the history in FOLDER.",
        type=PATH,
        metavar="FOLDER",
        key="report.history",
        commands=_GATES,
        idle="json",
    )
    labels: tuple[Path, ...] = _many(
        "Human labels",
        "Compare with the labels in this review sheet.",
        type=PATH,
        idle="shards",
    )
    calibrate: Path | None = _option(
        "Human labels", "Write the thresholds that labels imply to this config.ini.", type=PATH, idle="shards"
    )
    show: bool = _flag(
        "Input", "Print how the first rows are read; judge nothing.", idle="json pairs", is_usual=True
    )
    sheet: str | None = _option(
        "Input",
        "Sheet to read.  [default: the first visible sheet]",
        metavar="NAME",
        commands=_READING,
        idle="json pairs",
        is_usual=True,
    )
    header_row: int | None = _option(
        "Input",
        "Row with the headers; 0: none, columns are called A, B, …",
        type=click.IntRange(min=0),
        metavar="N",
        key="input.header_row",
        commands=_READING,
        idle="json pairs",
    )
    encoding: str | None = _option(
        "Input",
        "Encoding of a .csv or .tsv file.  [default: detected]",
        metavar="NAME",
        commands=_READING,
        idle="json pairs",
    )
    sep: str | None = _option(
        "Input",
        "Separator of a .csv file, or 'tab'.  [default: detected]",
        metavar="CHAR",
        commands=_READING,
        idle="json pairs",
    )
    format: str | None = _option(
        "Input",
        "Type of the file that '-' (standard input) is.",
        type=click.Choice(FORMATS),
        commands=_READING,
    )
    map: tuple[str, ...] = _many(
        "Input",
        "Give a column a role, as in answer=bot.",
        metavar="COLUMN=ROLE",
        commands=_READING,
        idle="json pairs",
        is_usual=True,
    )
    bot_name: str | None = _option(
        "Input",
        "Name of the bot, for one column of responses.",
        type=NAME,
        metavar="NAME",
        commands=_BOTH,
        idle="json pairs",
    )
    against: Path | None = _option(
        "Input",
        "Add the answers of an earlier FILE as bots 'NAME (old)'.",
        type=PATH,
        metavar="FILE",
        idle="json shards pairs",
    )
    where: tuple[str, ...] = _many(
        "Input",
        "Read only rows that meet this condition.",
        metavar="'NAME OP VALUE'",
        commands=_READING,
        idle="json pairs",
    )
    rows: str | None = _option(
        "Input",
        "Read only these rows of the file.",
        metavar="FIRST-LAST",
        commands=_READING,
        idle="json pairs",
    )
    random_rows: int | None = _option(
        "Input",
        "Read N random rows, always the same.",
        type=_COUNT,
        metavar="N",
        commands=_READING,
        idle="json pairs",
    )
    shard_rows: int | None = _option(
        "Shards", "Judge in shards of N rows.  [default: 5000 or fewer]", type=_COUNT, metavar="N"
    )
    engine: str | None = _option(
        "Shards",
        "Judge shards locally or with Ray, or only write them.",
        type=click.Choice(["local", "ray", "none"]),
    )
    address: str | None = _option(
        "Shards", "Ray cluster to use; auto finds the one of this machine.", metavar="ADDRESS"
    )
    config: Path | None = _option(
        "Other",
        "Configuration file.  [default: ./config.ini, if present]",
        type=PATH,
        commands="run doctor cache",
        is_usual=True,
    )
    quiet: bool = _flag(
        "Other",
        "Print only errors and warnings.",
        short="-q",
        commands="run compare-judges report",
        is_usual=True,
    )
    debug: bool = _flag(
        "Other",
        "Log each step, without texts and secrets.",
        commands="run compare-judges review shard",
        is_usual=True,
    )

    def given(self) -> Mapping[str, Any]:
        """By name, those that were given and that a manifest records."""
        every = asdict(self).items()
        return {
            name: value
            for name, value in every
            if value is not None and value is not False and value != () and name not in _UNRECORDED
        }

    @property
    def wants_latest(self) -> bool:
        """The baseline is the last comparable run of the history, unless there is a file of that name."""
        return self.baseline == Path("latest") and not self.baseline.exists()

    def overrides(self) -> "Mapping[str, Given]":
        """The values that replace those of the configuration, by 'section.key'."""
        from rag_eval.configuration.sources import Given, Level, Source
        from rag_eval.tables.columns import parse_map

        given = self.given()
        values = [(KEYS[name], given[_field(name)], name) for name in self._given_keys()]
        if self.map:
            values += [(f"columns.{key}", value, "--map") for key, value in parse_map(self.map).items()]
        return {key: Given(value, Source(Level.COMMAND_LINE, name)) for key, value, name in values}

    def weights(self) -> Mapping[str, str]:
        """By option, the metric whose weight in RQS was given with it."""
        prefix = "weights."
        return {
            name: KEYS[name].removeprefix(prefix)
            for name in self._given_keys()
            if KEYS[name].startswith(prefix)
        }

    def gates(self) -> "Sequence[Gate]":
        """The quality gates. Raises InputError with every text that is none."""
        if not (self.fail_under or self.fail_over):
            return ()
        from rag_eval.results.gates import parse_gates

        return parse_gates(self.fail_under, self.fail_over)

    @property
    def patience(self) -> float:
        """Seconds to wait for another run that uses the same report."""
        return 60 * self.wait

    @property
    def in_batches(self) -> bool:
        return self.batch or self.batch_cancel

    def refuse_idle_again(self) -> None:
        """Raise InputError for options that have no effect when a report is rebuilt from a run's JSON."""
        if self.wants_latest:
            raise InputError(
                "--baseline latest: no history is kept with a run's JSON; name a report (.xlsx) or a run's JSON"
            )
        if idle := self.idle("json"):
            raise InputError(
                f"{', '.join(idle)}: cannot be used with --report-only and a run's JSON, since no sheet is read and "
                f"no judge is called; remove {'it' if len(idle) == 1 else 'them'}"
            )

    def idle(self, *places: str) -> list[str]:
        """Those that were given and have no effect in one of these places, which are words of the table."""
        given = self.given()
        return [
            _name(each.name)
            for each in fields(self)
            if each.name in given and not set(places).isdisjoint(each.metadata["idle"])
        ]

    def _given_keys(self) -> list[str]:
        """The options that were given and have a key."""
        given = self.given()
        return [option for option in KEYS if _field(option) in given]


def _name(field: str) -> str:
    """The option of a field of Options."""
    return f"--{field.replace('_', '-')}"


def _field(option: str) -> str:
    """The field of Options that holds the value of an option."""
    return option.removeprefix("--").replace("-", "_")


KEYS: Mapping[str, str] = {_name(each.name): key for each in fields(Options) if (key := each.metadata["key"])}
"""The 'section.key' that each option overrides.

`model` and `temperature` have no section: they belong to the section of the provider that is chosen.
"""
_UNRECORDED = frozenset({"output", "quiet", "debug"})
"""Options that a manifest does not list."""


def options(command: str, **texts: str) -> Callable[[_Command], _Command]:
    """A decorator that gives a command its options. `texts` are help texts that it has for itself, by field."""
    decorators = [
        click.option(*names, cls=Option, **{**each.metadata["click"], "help": text})
        for each in fields(Options)
        for names, text in _spelled(each, command, texts)
    ]
    return lambda function: reduce(
        lambda decorated, option: option(decorated), reversed(decorators), function
    )


def _spelled(option: Field[Any], command: str, texts: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """The names and the help of an option in a command that has it, with -a and -b if each judge has its own."""
    name, about = _name(option.name), option.metadata
    text = texts.get(option.name, about["click"]["help"])
    if command in about["commands"]:
        yield [*filter(None, [about["short"]]), name], text
    elif f"{command}:each" in about["commands"]:
        yield from (([f"{name}-{letter}"], f"{letter.upper()}: {text}") for letter in "ab")


def load(
    config: Path | None, overrides: "Mapping[str, Given]", input_path: Path | None = None
) -> "LoadedSettings":
    """The settings for an input, or without one for the current folder. Raises SettingsError."""
    from rag_eval.configuration.loading import load_settings

    script = Path(sys.argv[0])
    homes = [Path(os.path.realpath(script)).parent] if script.name == "rag_eval_standalone.py" else []
    homes.append(input_path.parent if input_path else Path.cwd())
    return load_settings(config, overrides, os.environ, Path.cwd(), homes)
