"""The settings of a run as one frozen, validated value. How they are loaded is the business of `configuration`."""

import csv
import math
import re
import warnings
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    create_model,
    model_validator,
)

from rag_eval.judge.providers import PROVIDERS, Provider, ProviderName
from rag_eval.metrics.catalogue import METRICS

_FLAGS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


def _read_flag(value: object) -> object:
    """The spellings that the documentation lists, and no others: pydantic alone also takes 't' and 'n'."""
    if not isinstance(value, str):
        return value
    if value.lower() not in _FLAGS:
        raise ValueError("not a flag")
    return _FLAGS[value.lower()]


def _refuse_empty(value: object) -> object:
    if value == "":
        raise ValueError("empty")  # Path("") would be the current directory
    return value


def _read_absence(value: object) -> object:
    """An empty value of the file means that nothing is set."""
    return None if value == "" else value


def _read_shares(value: object) -> object:
    """Numbers with commas between them."""
    return value.split(",") if isinstance(value, str) else value


def _read_names(value: object) -> object:
    """Each name once, with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return value
    return tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))


def _refuse_disorder(shares: tuple[float, ...]) -> tuple[float, ...]:
    if any(later <= earlier for earlier, later in pairwise(shares)):
        raise ValueError("not increasing")
    return shares


def _read_kinds(value: str) -> str:
    """Each kind once, in the one spelling."""
    kinds = dict.fromkeys(kind.strip().lower() for kind in value.split(",")) if value else {}
    if not kinds.keys() <= {"email", "phone"}:
        raise ValueError("unknown kind")
    return ", ".join(kinds)


def _read_headers(value: object) -> object:
    """Names with commas between them; one that holds a comma stands between double quotes."""
    if not isinstance(value, str):
        return value
    rows = list(csv.reader([value], skipinitialspace=True))
    return tuple(name.strip() for row in rows for name in row if name.strip())


def _check_pattern(value: str) -> str:
    """A pattern that means something else to later versions of Python is none either."""
    try:
        with warnings.catch_warnings(action="error"):
            pattern = re.compile(value)
    except (re.error, Warning, OverflowError, RecursionError):
        raise ValueError("no regular expression") from None
    if value and pattern.fullmatch(""):
        raise ValueError("matches nothing, everywhere")
    return value


class _Secret(SecretStr):
    """It stays in this process: a pickle has an empty one in its place. A copy is the secret itself."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ("",)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _read_secret(value: object) -> object:
    """Any other class of secrets would be pickled."""
    if isinstance(value, SecretStr) and not isinstance(value, _Secret):
        return value.get_secret_value()
    return value


# The description of each type says in words what is allowed; messages and docs/configuration.md show it.
Flag = Annotated[bool, BeforeValidator(_read_flag), Field(description="true/false, yes/no, on/off or 1/0")]
Share = Annotated[float, Field(ge=0, le=1, description="a number from 0 to 1")]
Weight = Annotated[float, Field(ge=0, description="a number of at least 0, not all of them 0")]
Temperature = Annotated[float, Field(ge=0, le=2, description="a number from 0 to 2")]
Seconds = Annotated[float, Field(gt=0, le=86400, description="a number above 0, at most 86400")]
Count = Annotated[int, Field(ge=1, description="a whole number of at least 1")]
Megabytes = Annotated[float, Field(ge=1, le=1000, description="a number from 1 to 1000")]
Samples = Annotated[int, Field(ge=1, le=50, description="a whole number from 1 to 50")]
Attempts = Annotated[int, Field(ge=1, le=20, description="a whole number from 1 to 20")]
Price = Annotated[
    Annotated[float, Field(ge=0)] | None,
    BeforeValidator(_read_absence),
    Field(description="a number of at least 0, or empty"),
]
Limit = Annotated[
    Annotated[float, Field(gt=0)] | None,
    BeforeValidator(_read_absence),
    Field(description="a number above 0, or empty"),
]
CountLimit = Annotated[
    Annotated[int, Field(ge=1)] | None,
    BeforeValidator(_read_absence),
    Field(description="a whole number of at least 1, or empty"),
]
ProcessCount = Annotated[
    Annotated[int, Field(ge=1, le=64)] | None,
    BeforeValidator(_read_absence),
    Field(description="a whole number from 1 to 64, or empty"),
]
RowNumber = Annotated[
    Annotated[int, Field(ge=0)] | None,
    BeforeValidator(_read_absence),
    Field(description="a whole number of at least 0, or empty"),
]
NoneOrMore = Annotated[int, Field(ge=0, description="a whole number of at least 0")]
Shares = Annotated[
    tuple[Annotated[float, Field(gt=0, lt=1)], ...],
    BeforeValidator(_read_shares),
    AfterValidator(_refuse_disorder),
    Field(
        min_length=1, max_length=20, description="increasing numbers between 0 and 1, such as 0.4, 0.6, 0.8"
    ),
]
Factor = Annotated[float, Field(gt=0, le=1, description="a number above 0, at most 1")]
Name = Annotated[str, Field(pattern=r"^\S+$", description="a name without white space")]
OptionalName = Annotated[str, Field(pattern=r"^\S*$", description="a name without white space, or empty")]
Prefix = Annotated[str, Field(min_length=1, description="text, not empty")]
Delimiter = Annotated[
    str,
    Field(
        min_length=1,
        description=r"auto, or any text, not empty; \n, \t, \r and \\ are decoded; "
        "write one that begins with # or ; without white space before it, as in =#x",
    ),
]
Kinds = Annotated[
    str, AfterValidator(_read_kinds), Field(description="email, phone, 'email, phone', or empty")
]
Pattern = Annotated[
    str,
    AfterValidator(_check_pattern),
    Field(description="a regular expression that does not match empty text, or empty"),
]
Header = Annotated[str, Field(description="the header of a column, or empty")]
Headers = Annotated[
    tuple[str, ...],
    BeforeValidator(_read_headers),
    Field(description="headers of columns with commas between them, where * matches any text, or empty"),
]
Unit = Annotated[str, Field(max_length=20, description="a unit such as ms, s or USD, or empty")]
OptionalPath = Annotated[Path | None, BeforeValidator(_read_absence), Field(description="a path, or empty")]
Folder = Annotated[Path, BeforeValidator(_refuse_empty), Field(description="a path, not empty")]
BaseUrl = Annotated[
    str, Field(min_length=1, description="an https URL; http only for localhost, 127.0.0.0/8 and ::1")
]
OptionalUrl = Annotated[
    str, Field(description="an https URL, or empty; http only for localhost, 127.0.0.0/8 and ::1")
]
Key = Annotated[
    _Secret,
    BeforeValidator(_read_secret),
    Field(description="ASCII text without white space, or empty"),
]
ChosenProvider = Annotated[ProviderName, Field(description="azure, openai or offline")]
AzureAuth = Annotated[Literal["key", "entra"], Field(description="key or entra")]
LongPrompts = Annotated[Literal["error", "truncate"], Field(description="error or truncate")]
OfflineThresholds = Annotated[
    Literal["auto", "configured", "calibrated"], Field(description="auto, configured or calibrated")
]
Citations = Annotated[Literal["auto", "off"], Field(description="auto or off")]
PairChoice = Annotated[Literal["off", "auto", "all"], Field(description="off, auto or all")]
Criteria = Annotated[
    tuple[Literal["correct", "supported", "useful"], ...],
    BeforeValidator(_read_names),
    Field(description="some of correct, supported and useful, with commas between them"),
]
PromptForm = Annotated[Literal["ragas", "merged", "single"], Field(description="ragas, merged or single")]
StructuredOutput = Annotated[
    Literal["auto", "json_schema", "json_object", "prompt"],
    Field(description="auto, json_schema, json_object or prompt"),
]


class _Frozen(BaseModel):
    """Immutable, without unknown keys, every number finite."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, validate_default=True
    )


class _Judge(_Frozen):
    """Who judges, and how patiently."""

    provider: ChosenProvider = "azure"
    timeout_seconds: Seconds = 120.0
    """Total deadline of one attempt, from connecting to the last byte."""
    max_attempts: Attempts = 5
    """Attempts per call, the first included."""
    prompt_tokens_per_second: Limit = None
    """How fast the judge reads, as measured by `rag-eval doctor`; for the time in --dry-run."""
    reply_tokens_per_second: Limit = None
    """How fast it writes."""
    structured_output: StructuredOutput = "auto"
    prompts: PromptForm = "ragas"
    """How much one call asks: the prompts of ragas, one call per family of metrics, or one call per case."""


class _Azure(_Frozen):
    """The Azure OpenAI resource. `endpoint` and `api_key` are empty while they are not set."""

    endpoint: OptionalUrl = ""
    auth: AzureAuth = "key"
    """By API key, or by a token of Microsoft Entra ID."""
    api_key: Key = _Secret("")
    api_version: Name = "2024-12-01-preview"
    deployment: Name = "gpt-4o"
    temperature: Temperature = 0.0


class _OpenAI(_Frozen):
    """OpenAI, or a server that speaks its protocol. `api_key` is empty while it is not set."""

    base_url: BaseUrl = "https://api.openai.com/v1"
    api_key: Key = _Secret("")
    model: Name = "gpt-4o"
    temperature: Temperature = 0.0


_IN_SECTIONS = (*(name for name in METRICS if name != "answer_correctness"), "answer_correctness")
"""The metrics in the order that [metrics] and [thresholds] have had from the start."""


def _keys(name: str, keys: Mapping[str, Any]) -> Any:
    """A section that has a key for each metric: the type of the value and its default."""
    return create_model(f"_{name}", __base__=_Frozen, **keys)


class Weights(_keys("Weights", {name: (Weight, metric.weight) for name, metric in METRICS.items()})):  # type: ignore[misc]
    """Share of each metric in RQS, as given; see `normalised`."""

    @model_validator(mode="after")
    def _refuse_meaningless_sum(self) -> Self:
        if not 0 < self._sum() < math.inf:
            raise ValueError("the weights must add up to a finite number above 0")
        return self

    @property
    def normalised(self) -> dict[str, float]:
        """By metric name, in 0..1, adding up to 1."""
        total = self._sum()
        return {metric: weight / total for metric, weight in self}

    def _sum(self) -> float:
        """Without an error of rounding, so that weights that add up to 1 stay as they were written."""
        try:
            return math.fsum(weight for _, weight in self)
        except OverflowError:
            return math.inf


class Metrics(_keys("Metrics", dict.fromkeys(_IN_SECTIONS, (Flag, True)))):  # type: ignore[misc]
    """Which metrics are judged."""

    toxicity: Flag = True
    answer_coverage: Flag = False
    chunk_relevance: Flag = False
    citations: Citations = "auto"
    """Of bots that cite chunks by number."""

    @model_validator(mode="after")
    def _refuse_none(self) -> Self:
        if not any(enabled is True for _, enabled in self):
            raise ValueError("every metric is switched off, so there is nothing to judge")
        return self


class Thresholds(_keys("Thresholds", {name: (Share, METRICS[name].threshold) for name in _IN_SECTIONS})):  # type: ignore[misc]
    """A score strictly below its threshold is red and may make a failure mode."""


class _Offline(_Frozen):
    """The judge that needs no model."""

    thresholds: OfflineThresholds = "auto"
    """Whether [thresholds] counts for it, or the values measured against people; auto: what was set counts."""
    embedding: OptionalPath = None
    """Folder of a sentence model that compares meanings as well."""


class _Toxicity(_Frozen):
    """When a query counts as toxic, and who says so."""

    threshold: Share = 0.5
    """A query that scores this or more is toxic."""
    deployment: OptionalName = ""
    """Model that judges toxicity; empty for the one that judges everything else."""


class _Chunking(_Frozen):
    """How one context cell becomes chunks."""

    delimiter: Delimiter = "auto"
    """'auto', or the text itself: a `\\n` of config.ini is a newline here."""


class _Input(_Frozen):
    """Where the table of the input is."""

    header_row: RowNumber = None
    """The row with the headers, 0 for a table without; unset, the first that is not blank."""


class _Bots(_Frozen):
    """How bot columns are found and named."""

    strip_prefix: Prefix = "Bot_"


class ColumnNames(_Frozen):
    """The columns of the input by their headers, where their names do not tell what they are."""

    query: Header = ""
    reference: Header = ""
    context: Headers = ()
    """Retrieved chunks; a header that names a bot is that bot's."""
    passage: Header = ""
    """A context with one passage in each row."""
    history: Headers = ()
    """Earlier turns of the conversation."""
    bots: Headers = ()
    """Columns of responses, as well as those with the prefix."""
    bot_name: Header = ""
    """The column that names the bot of each row."""
    id: Header = ""
    """The column that tells queries apart."""
    conversation: Header = ""
    """The column with the id of the conversation."""
    gold_docs: Header = ""
    retrieved_docs: Headers = ()
    latency: Headers = ()
    """Latency of each bot; a header names the bot unless there is one column of responses."""
    latency_unit: Unit = ""
    cost: Headers = ()
    """Cost of each response, in money or tokens."""
    cost_unit: Unit = ""
    ignore: Headers = ()


class _Diagnostics(_Frozen):
    """The diagnostic columns of the report."""

    enabled: Flag = True
    gold_ids: Flag = False
    """Whether gold documents, where a row names them, decide about Retrieval Failure."""


class _Rubric(_Frozen):
    """Criteria that every response either passes or fails."""

    file: OptionalPath = None


with warnings.catch_warnings():
    # The key is called json; the method of pydantic that it hides is deprecated and not used.
    warnings.filterwarnings("ignore", message='Field name "json"')

    class _Report(_Frozen):
        """What is reported in addition to the three sheets."""

        evidence: Flag = False
        json: Flag = False  # type: ignore[assignment]
        html: Flag = False
        html_mb: Megabytes = 8.0
        history: OptionalPath = None
        slice_by: Header = ""
        side_by_side: Flag = False


class _Cache(_Frozen):
    """Paid replies that are kept across runs."""

    enabled: Flag = False
    directory: Folder = Path(".nexus_cache")


class _Evaluation(_Frozen):
    """How much is judged, and how."""

    max_rows: Count = 200
    parallel: Flag = True
    max_workers: Count = 2
    processes: ProcessCount = None
    """Processes in which the offline judge works; unset, as many as there are cores if the input is large."""
    samples: Samples = 1
    """How often the judge is asked for each score, which is then the mean."""
    min_coverage: Share = 0.95
    """Scored ÷ applicable; a run below it does not count as complete."""
    looks: Shares = (0.4, 0.6, 0.8)
    """Shares of the rows after which --until-clear looks whether the answer is clear; it always looks at the end."""
    min_common: Share = 0.5
    """Share of the baseline's queries that this run must have for a verdict on regressions."""
    regression_margin: Share = 0.0
    """--fail-on-regression fails only if a mean has fallen significantly, and by more than this."""

    @property
    def workers(self) -> int:
        """Concurrent calls."""
        return self.max_workers if self.parallel else 1


class _HeadToHead(_Frozen):
    """Responses of two bots next to each other."""

    pairs: PairChoice = "off"
    criteria: Criteria = ("correct", "supported", "useful")
    """What the judge compares in addition to the overall preference."""
    rows: CountLimit = None
    """The most queries that are compared; unset for all."""


class _Limits(_Frozen):
    """Where a run slows down or stops."""

    requests_per_minute: CountLimit = None
    tokens_per_minute: CountLimit = None
    """Prompt and reply together, as the endpoint counts them: estimated before a call is sent."""
    max_prompt_tokens: CountLimit = None
    """Of one prompt, estimated before it is sent."""
    long_prompts: LongPrompts = "error"
    max_history_tokens: Count = 2000
    """Of the earlier turns that a judge is shown, estimated; of more, the last ones."""
    max_calls: CountLimit = None
    max_cost: Limit = None
    """In the currency of the prices."""
    max_minutes: Limit = None


class _Prices(_Frozen):
    """What a million tokens cost; unknown unless set."""

    currency: Name = "USD"
    input: Price = None
    output: Price = None
    cached_input: Price = None
    """Of prompt tokens that the provider has cached, if it bills them for less."""
    toxicity_input: Price = None
    """Of [toxicity] deployment, when it is another one."""
    toxicity_output: Price = None
    batch_factor: Factor = 0.5
    """What a call costs in a provider batch, as a share of these prices."""

    @model_validator(mode="after")
    def _refuse_dear_cache(self) -> Self:
        """What is held back of a cap on the cost is at the price of tokens that are not cached."""
        if self.cached_input is not None and (self.input is None or self.cached_input > self.input):
            raise ValueError("cached_input needs input, and must not be above it")
        return self


class _Batch(_Frozen):
    """How calls are sent in provider batches."""

    deployment: OptionalName = ""
    """The one that answers batches of the judge's deployment; Azure only."""
    toxicity_deployment: OptionalName = ""
    """The same for [toxicity] deployment."""
    finish_online_below: NoneOrMore = 0
    """When so many calls or fewer are left, they are sent one by one."""
    enqueued_tokens: CountLimit = None
    """Quota of prompt tokens that may wait in the provider's queue."""


class _Privacy(_Frozen):
    """What is hidden from an LLM judge."""

    redact: Kinds = ""
    """Kinds of personal data, separated by ', '."""
    redact_pattern: Pattern = ""
    """Whatever else is to be hidden; empty for nothing."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.redact.split(", ")) if self.redact else ()


class Settings(_Frozen):
    """Everything that can be configured, one field a section of config.ini."""

    judge: _Judge = _Judge()
    azure: _Azure = _Azure()
    openai: _OpenAI = _OpenAI()
    weights: Weights = Weights()
    metrics: Metrics = Metrics()
    thresholds: Thresholds = Thresholds()
    offline: _Offline = _Offline()
    toxicity: _Toxicity = _Toxicity()
    input: _Input = _Input()
    context: _Chunking = _Chunking()
    bots: _Bots = _Bots()
    columns: ColumnNames = ColumnNames()
    diagnostics: _Diagnostics = _Diagnostics()
    rubric: _Rubric = _Rubric()
    report: _Report = _Report()
    cache: _Cache = _Cache()
    evaluation: _Evaluation = _Evaluation()
    head_to_head: _HeadToHead = _HeadToHead()
    limits: _Limits = _Limits()
    prices: _Prices = _Prices()
    batch: _Batch = _Batch()
    privacy: _Privacy = _Privacy()

    @property
    def provider(self) -> Provider:
        """The one that is chosen."""
        return PROVIDERS[self.judge.provider]

    @property
    def section(self) -> Any:
        """The settings of the provider that is chosen."""
        return getattr(self, self.judge.provider)

    def without_entra(self) -> Self:
        """The same for what sends nothing, and so needs neither a token nor the package that gets one."""
        return self.model_copy(update={"azure": self.azure.model_copy(update={"auth": "key"})})

    def without_secrets(self) -> Self:
        """The same without API keys, to be written down or sent to another process, which has keys of its own.

        Its JSON reads back as the same settings. Addresses are in it as they are.
        """
        return self.model_copy(update={name: _without_secrets(section) for name, section in self})


def _without_secrets(section: _Frozen) -> _Frozen:
    return section.model_copy(
        update={name: _Secret("") for name, value in section if isinstance(value, SecretStr)}
    )
