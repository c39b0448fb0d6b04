"""The values that travel through an evaluation. Frozen, without I/O, standard library only."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

METRIC_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "answer_correctness": "Answer Correctness",
        "faithfulness": "Faithfulness",
        "answer_relevancy": "Answer Relevancy",
        "context_precision": "Context Precision",
        "context_recall": "Context Recall",
    }
)
"""The metrics that enter RQS, by name, in the order of the report's columns.

Whatever else is known of a metric stands in the module rag_eval.metrics.<name>.
"""

EXTRA_METRIC_LABELS: Mapping[str, str] = MappingProxyType(
    {"answer_coverage": "Answer Coverage", "chunk_relevance": "Relevant Chunks"}
)
"""Measures that can be switched on beside the five, by name. They never enter RQS."""

CITATION_LABELS: Mapping[str, str] = MappingProxyType(
    {"citation_precision": "Citation Precision", "citation_recall": "Citation Recall"}
)
"""Further measures that never enter RQS: of a run with a bot that cites chunks by number."""

OFFLINE = "offline judge"
"""How reports call the judge that is arithmetic over text."""

PROMPT_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "ragas": "the prompts of ragas",
        "merged": "one call per family of metrics",
        "single": "one call per case",
    }
)
"""How much one call asks of an LLM judge, by the values of [judge] prompts. The first is the default."""

TOXICITY = "toxicity"
"""Name of the score of the query's own toxicity. It never enters RQS."""

SPENT_LABELS: Mapping[str, str] = MappingProxyType({"latency": "Latency", "cost": "Cost"})
"""What a bot spends on a response, by name. The input says it, no judge does; it never enters RQS."""

SCORE_LABELS: Mapping[str, str] = MappingProxyType(
    {**METRIC_LABELS, TOXICITY: "Input Toxicity", **EXTRA_METRIC_LABELS, **CITATION_LABELS}
)
"""How readers know every score that we have a name for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said in a conversation before the query."""

    role: str
    """USER, or ASSISTANT for the bot."""
    content: str


USER, ASSISTANT = "user", "assistant"


@dataclass(frozen=True, slots=True)
class Case:
    """One query and one bot's response to it: the unit of evaluation, one line of the report."""

    row: int
    """The spreadsheet's own row number (the header is usually row 1)."""
    bot: str
    query: str
    response: str
    """The bot's answer; blank when the cell is blank."""
    reference: str | None = None
    """The ground truth; None when the row has none."""
    chunks: tuple[str, ...] | None = None
    """Retrieved passages in rank order; () for an empty cell, None when the bot has no context column."""
    gold_ids: tuple[str, ...] | None = None
    """Documents that should have been retrieved; () for an empty cell, None when there is no such column."""
    retrieved_ids: tuple[str, ...] | None = None
    """Documents that the bot retrieved, in rank order; () for an empty cell, None without such a column."""
    human: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What people said, 0..1, by name of a metric or id of a rubric's criterion; only what was labelled."""
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Texts of the row's further columns that were asked for, by their names; '' for a blank cell."""
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict, hash=False)
    """What each rater of a review said, by rater; `human` is then their median."""
    spent: Mapping[str, float] = field(default_factory=dict, hash=False)
    """What the response took, by names of SPENT_LABELS and in the units of the run; only what the input says."""
    stratum: str = ""
    """Of the review's random sample, from which the case was drawn; empty if it was not."""
    source: str = ""
    """Name of the file that the row is in, in a run over several files; `row` then counts through all of them."""
    source_row: int | None = None
    """The row's own number there; None in a run over one file."""
    history: tuple[Turn, ...] = ()
    """Earlier turns of the conversation, the first one first; none if the query begins it."""
    conversation: str = ""
    """Id of the conversation; empty if the row has none."""
    is_missing: bool = False
    """The bot has no response, since conversations differ between the bots: not even a blank cell to judge."""

    @property
    def user_said(self) -> tuple[str, ...]:
        """What the user stated in earlier turns."""
        return tuple(turn.content for turn in self.history if turn.role == USER)

    @property
    def earlier_turns(self) -> str:
        """The history as one text, each turn after its speaker."""
        return "\n".join(f"{turn.role}: {turn.content}" for turn in self.history)

    @property
    def question(self) -> str:
        """Earlier turns and query in one text: two cases that differ in it ask different things."""
        return "\n".join((*(turn.content for turn in self.history), self.query))

    @property
    def has_response(self) -> bool:
        return bool(self.response.strip())

    @property
    def is_unanswered(self) -> bool:
        """The bot was asked and said nothing, which is a failure of it."""
        return not (self.has_response or self.is_missing)

    @property
    def has_empty_context(self) -> bool:
        """There is a context column for this bot, and it holds nothing in this row."""
        return self.chunks == ()


@dataclass(frozen=True, slots=True)
class Row:
    """One spreadsheet row: one query, and a case for each bot from left to right."""

    number: int
    query: str
    cases: tuple[Case, ...]


class Outcome(StrEnum):
    """What became of one metric on one case. Only `scored` has a value; only `failed` counts as missing."""

    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


NOT_ASKED = "the input has no response of this bot after the same messages of the user"
"""Why a case that is missing has no score."""
MAY_BE_INCOMPLETE = "ragas"
"""The prompt form whose replies cannot show that they are complete; the others number what they ask about."""
INCOMPLETE_FLAG = "possibly incomplete"
LEFT_OUT = "possibly not judged"
"""Verdict on what the judge's replies do not seem to speak of. It enters no score."""
NO_SUCH_CHUNK = "no such chunk"
WRONG_CHUNK = "cites the wrong chunk"
NO_CITATIONS = "no citations"
SCORE_FLAGS: Mapping[str, str] = MappingProxyType(
    {LEFT_OUT: INCOMPLETE_FLAG, **{name: name for name in (NO_SUCH_CHUNK, WRONG_CHUNK, NO_CITATIONS)}}
)
"""Verdicts of evidence that a reader should know of without looking at it, and how a flag calls them."""


# Not frozen: there are very many of them, and frozen ones take three times as long to make.
@dataclass(slots=True)
class Evidence:
    """One thing that a judge looked at, and its verdict on it. Never changed."""

    subject: str
    """What it is: 'statement', 'reference statement', 'chunk', 'question', 'word', …"""
    rank: int | None = field(default=None, kw_only=True)
    """Position, counted from 1, of a chunk, or of the chunk that supports a statement; None for anything else."""
    text: str
    verdict: str
    """The category in plain words: 'supported', 'not supported', 'useful', 'missing', …"""
    favourable: bool
    """Whether it speaks for a high score."""
    reason: str = ""


@dataclass(slots=True)  # like evidence
class Score:
    """One metric on one case. `value` is in 0..1, and None unless the outcome is `scored`. Never changed."""

    metric: str
    outcome: Outcome
    value: float | None = None
    reason: str = ""
    """Why there is no value, or what settled it without a judge, in plain words."""
    code: str = ""
    """Stable machine-readable reason of a failure, such as 'truncated'; otherwise empty."""
    evidence: tuple[Evidence, ...] = ()
    samples: tuple[float, ...] = ()
    """What the value is the mean of, when the judge was asked several times; otherwise empty."""

    @classmethod
    def scored(
        cls, metric: str, value: float, reason: str = "", evidence: tuple[Evidence, ...] = ()
    ) -> "Score":
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{metric}: score {value!r} is outside 0..1")
        return cls(metric, Outcome.SCORED, value, reason, "", evidence)

    @classmethod
    def not_applicable(cls, metric: str, reason: str) -> "Score":
        return cls(metric, Outcome.NOT_APPLICABLE, None, reason)

    @classmethod
    def failed(cls, metric: str, code: str, reason: str) -> "Score":
        return cls(metric, Outcome.FAILED, None, reason, code)


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """The judge's verdict on one criterion of a rubric, and why."""

    criterion: str
    mandatory: bool
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class RubricOutcome:
    """What became of a rubric on one case. `passed`, `score` and `of` are None unless the outcome is `scored`."""

    outcome: Outcome
    passed: bool | None = None
    score: int | None = None
    """Number of the cumulative criteria that passed."""
    of: int | None = None
    """Number of the cumulative criteria that apply."""
    verdicts: tuple[CriterionVerdict, ...] = ()
    """Of the criteria that apply, in the rubric's order."""
    criteria: tuple[str, ...] = ()
    """Ids of the criteria that apply; also there when the judge failed."""
    reason: str = ""
    """Why there are no verdicts, or what settled them without a judge."""
    code: str = ""
    """Stable machine-readable reason of a failure; otherwise empty."""

    @property
    def failed_criteria(self) -> tuple[CriterionVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    def on(self, criterion: str) -> tuple[Outcome, bool | None]:
        """What became of one criterion, and whether it passed; None unless it was judged."""
        if criterion not in self.criteria:
            return Outcome.NOT_APPLICABLE, None
        passed = (verdict.passed for verdict in self.verdicts if verdict.criterion == criterion)
        return self.outcome, next(passed, None)

    @classmethod
    def not_applicable(cls, reason: str) -> "RubricOutcome":
        return cls(Outcome.NOT_APPLICABLE, reason=reason)

    @classmethod
    def failed(cls, criteria: Sequence[str], code: str, reason: str) -> "RubricOutcome":
        return cls(Outcome.FAILED, criteria=tuple(criteria), reason=reason, code=code)


class FailureMode(StrEnum):
    """What went wrong with a case, derived from its scores by rule. In the order in which they are joined."""

    RETRIEVAL_FAILURE = "Retrieval Failure"
    HALLUCINATION = "Hallucination"
    LOW_QUALITY = "Low Quality"
    OK = "OK"
    NOT_JUDGED = "Not Judged"


FAILURES = frozenset((FailureMode.RETRIEVAL_FAILURE, FailureMode.HALLUCINATION, FailureMode.LOW_QUALITY))
"""The modes that count as failures of the bot."""


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a judge says of a case's response next to that of another bot. Of a control, the other bot is its own."""

    other: str
    """Name of the other bot."""
    outcome: Outcome
    value: float | None = None
    """From -1, the other response is better, to 1, this one is: the mean of both orders. None unless it is scored."""
    orders: tuple[str, ...] = ()
    """'this', 'other' or 'tie': with this response first, then with it second. A control has one order; none if no call
    was needed."""
    criteria: Mapping[str, float] = field(default_factory=dict)
    """By criterion, from -1 to 1 like the value."""
    reasons: tuple[str, ...] = ()
    """What the judge wrote, for each order."""
    lengths: tuple[int, ...] = ()
    """Characters of this response and of the other one, if they were judged."""
    rqs_gap: float | None = None
    """RQS of this case minus that of the other one; None if either is missing."""
    reason: str = ""
    """Why there is no value, or what settled it without a judge."""
    code: str = ""
    """Stable machine-readable reason of a failure; otherwise empty."""
    labels: Mapping[str, float] = field(default_factory=dict)
    """What each rater of a review prefers, by rater: -1 the other response, 0 neither, 1 this one."""
    is_drawn: bool = False
    """The labels are those of a random sample of the pairs."""

    @property
    def preference(self) -> float | None:
        """-1, 0 or 1: the value, if both orders say the same, otherwise 0. None unless it is scored."""
        return None if self.value is None else float(int(self.value))

    @property
    def is_flipped(self) -> bool:
        """The same position won in both orders."""
        return len(self.orders) == 2 and "tie" not in self.orders and self.orders[0] != self.orders[1]

    @property
    def differs_from_rqs(self) -> bool:
        """The pair says that one response is better, and RQS that the other one is."""
        return bool(self.value and self.rqs_gap) and (self.value or 0) * (self.rqs_gap or 0) < 0


OFF, ALL_PAIRS, MATCHING = "", "all", "matching"
"""How pairs of responses are chosen: there are none, all, or in each row every bot at most once."""
FEW_BOTS = 3
"""Up to here each pair of bots has enough queries of its own."""
DIFFERS = "pair differs from RQS"
"""Flag of a case that a judge prefers in a pair although its RQS is lower, or the reverse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """Everything that was found out about one case. A run's JSON has the same fields in the same order."""

    case: Case
    rqs: float | None
    """0..1; None when an applicable metric failed or none is applicable."""
    failure_modes: tuple[FailureMode, ...]
    scores: Mapping[str, Score]
    """By metric name; the five metrics that are switched on."""
    further: Mapping[str, Score] = field(default_factory=dict)
    """By name; additional metrics, which enter neither RQS nor the failure modes."""
    rubric: RubricOutcome | None = None
    """None when there is no rubric."""
    toxicity: Score
    """Of the query, so the same for every bot of a row. Higher is worse."""
    recommendation: str = ""
    """At most three sentences of advice; empty when there is none or asking for it failed."""
    pairs: tuple[PairVerdict, ...] = ()
    """Verdicts on its response next to those of bots to its right; none without a head-to-head comparison."""

    @property
    def all_scores(self) -> dict[str, Score]:
        """Those of the metrics, of the query's toxicity and of the additional metrics, by name."""
        return {**self.scores, TOXICITY: self.toxicity, **self.further}

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reader should know of the scores, score by score."""
        of_scores = []
        scores = self.all_scores
        if not SCORE_FLAGS.keys().isdisjoint(
            [one.verdict for each in scores.values() for one in each.evidence]
        ):
            of_scores = [
                f"{SCORE_LABELS.get(name, name)}: {flag}"
                for name, score in scores.items()
                for verdict, flag in SCORE_FLAGS.items()
                if any(each.verdict == verdict for each in score.evidence)
            ]
        return (*of_scores, *([DIFFERS] if any(pair.differs_from_rqs for pair in self.pairs) else []))

    @property
    def has_failed(self) -> bool:
        """Whether the judge failed on one of its metrics, so that it is not judged in full."""
        return any(score.outcome is Outcome.FAILED for score in self.scores.values())

    def value(self, metric: str) -> float | None:
        """The metric's value, or None when it is switched off, not applicable or failed."""
        score = self.scores.get(metric)
        return None if score is None else score.value

    def on_criterion(self, criterion: str) -> float | None:
        """1 if the response meets the criterion, 0 if not; None unless that was judged."""
        passed = self.rubric.on(criterion)[1] if self.rubric else None
        return None if passed is None else float(passed)


@dataclass(frozen=True, slots=True)
class TaskUsage:
    """What the calls of one kind took: a task, or all tasks of a metric. See Usage for the fields."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "TaskUsage") -> "TaskUsage":
        """Of both together; the cost is unknown only where both are."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return TaskUsage(
            self.calls + other.calls,
            self.cached + other.cached,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run asked of the judge, over all its commands. Tokens are the provider's own counts."""

    requests: int = 0
    """HTTP requests sent, retries included."""
    calls: int = 0
    """Judge calls answered over the network."""
    cached: int = 0
    """Judge calls answered from the store, each reply once, however many metrics and bots share it."""
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    """Failed calls by code."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Replies that came and were not taken, by code; those included that another reply made good."""
    possibly_billed: int = 0
    """Requests that ended without an answer after they were sent."""
    uncounted: int = 0
    """Replies that came without a count of their tokens."""
    uncounted_cost: float = 0.0
    """The most that these can have cost."""
    cost: float | None = None
    """In the currency of the configured prices, `uncounted_cost` included; None when they are unknown."""
    earlier_requests: int = 0
    """The part of `requests` that earlier commands of the run sent."""
    earlier_cost: float = 0.0
    """The part of `cost` that they took."""
    by_task: Mapping[str, TaskUsage] = field(default_factory=dict)
    """The same by `Call.task`, such as 'faithfulness.verdicts'; together they are the totals."""

    @property
    def cost_now(self) -> float | None:
        """What this command cost; None when prices are unknown."""
        return None if self.cost is None else max(0.0, self.cost - self.earlier_cost)

    def __add__(self, other: "Usage") -> "Usage":
        """That of two parts of one run."""
        tasks = {**self.by_task}
        for task, used in other.by_task.items():
            tasks[task] = tasks.get(task, TaskUsage()) + used
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        counts: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return Usage(
            **counts,
            failures=dict(Counter(self.failures) + Counter(other.failures)),
            refused=dict(Counter(self.refused) + Counter(other.refused)),
            uncounted_cost=self.uncounted_cost + other.uncounted_cost,
            earlier_cost=self.earlier_cost + other.earlier_cost,
            cost=sum(costs) if costs else None,
            by_task=tasks,
        )


_COUNTS = (
    "requests", "calls", "cached", "failed", "prompt_tokens", "completion_tokens", "possibly_billed", "uncounted",
    "earlier_requests",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunStats:
    """What a run, or a part of one, took and met beside its results."""

    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    adaptations: tuple[str, ...] = ()
    """Sentences on how the endpoint took the calls."""
    outdated: int = 0
    """Stored replies that were asked for again, since they are empty or do not fit any more."""
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    """Number of cases that merged prompts judged in place of the single one, by reason."""
    redacted: Mapping[str, int] = field(default_factory=dict)
    """Number of texts that were hidden from the judge, by kind."""

    def __add__(self, other: "RunStats") -> "RunStats":
        """Those of two parts of one run."""
        return RunStats(
            self.seconds + other.seconds,
            self.usage + other.usage,
            tuple(dict.fromkeys((*self.adaptations, *other.adaptations))),
            self.outdated + other.outdated,
            Counter(self.fallbacks) + Counter(other.fallbacks),
            Counter(self.redacted) + Counter(other.redacted),
        )


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """A planned look at a run before its end, or at its end."""

    rows: int
    """Rows that were judged by then."""
    spent: float
    """Chance of a wrong claim, of 0.05, that is spent by it and all looks before it."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a reader must know about a run to believe its numbers."""

    input_name: str
    """File name of the spreadsheet, without its folder."""
    sheet: str
    """Name of the sheet that was read; empty for formats without sheets."""
    judge: str
    """Who judged, in words: 'offline judge' or 'Azure OpenAI, deployment gpt-4o, at example.azure.com'."""
    is_proxy: bool
    """The judge is arithmetic over text, not a model that reads."""
    version: str
    started: datetime
    bots: tuple[str, ...]
    """In the order of the sheet's columns."""
    rows: int
    """Rows to be judged: not blank, and within `max_rows`."""
    blank_rows: int
    cut_rows: int
    """Rows beyond `max_rows`, left out."""
    metrics: tuple[str, ...]
    """Names of the metrics that are switched on, `toxicity` included."""
    weights: Mapping[str, float]
    """Of the metrics that enter RQS, summing to 1."""
    thresholds: Mapping[str, float]
    toxicity_threshold: float
    diagnostics: bool
    """Whether the diagnostic columns are wanted."""
    prompts: str = ""
    """The prompt form, a key of PROMPT_FORMS; empty for the offline judge, and where an earlier version did not say."""
    partial: str = ""
    """Why the run ended early; empty for a complete run."""
    thresholds_from: str = ""
    """Where they come from, in words that end a sentence; empty when unknown."""
    currency: str = ""
    """Of the cost."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Measures beside those that enter RQS: their headings by name."""
    rubric: str = ""
    """Id of the rubric; empty without one."""
    criteria: tuple[str, ...] = ()
    """Of the rubric, in its order."""
    requirements: Mapping[str, str] = field(default_factory=dict)
    """What the criteria demand, by their ids; not known of runs before they were recorded."""
    earlier_bots: tuple[str, ...] = ()
    """Those of --against. They are there to compare with, so no gate looks at them."""
    has_gold: bool = False
    """The sheet says which documents should have been retrieved, and which were."""
    has_history: bool = False
    """Some rows have earlier turns of a conversation."""
    has_labels: bool = False
    """The sheet, or a review, says what people thought."""
    strata: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Of a review's random sample: cases with a score by bot, stratum and measure. A bot without strata was reviewed,
    but not at random."""
    spent_units: Mapping[str, str] = field(default_factory=dict)
    """What the input says of latency and cost, by name: the unit, empty if it names none. Times are in ms."""
    gold_ids: bool = False
    """Whether gold documents decide about Retrieval Failure where they are known."""
    explanations: Mapping[str, str] = field(default_factory=dict)
    """By metric: how the judge comes to its score, in one sentence; for judges that are arithmetic."""
    flags: Mapping[tuple[int, str], tuple[str, ...]] = field(default_factory=dict)
    """By row and bot: marks of text that seems to address the judge. They change no score."""
    cut_contexts: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """By row and bot: what the judge did not see of a context, in words."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How the input was read, in values that JSON knows: shape, columns, context_cells, selection, warnings."""
    sources: tuple[str, ...] = ()
    """Names of the files of a run over several; none for one file."""
    notes: tuple[str, ...] = ()
    """What was adapted, cut or left out, one sentence each."""
    looks: tuple[PlannedLook, ...] = ()
    """The planned looks, the last at the end; none unless the run was to stop when clear."""
    looks_taken: int = 0
    """How many of them there were."""
    head_to_head: str = OFF
    """How pairs of responses were chosen: ALL_PAIRS or MATCHING; OFF without a head-to-head comparison."""
    has_pair_labels: bool = False
    """A review says which responses of pairs people prefer."""
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    """Number of cases that merged prompts judged in place of the single one, by reason: 'long' or a failure's code."""
    left_out: tuple[str, ...] = ()
    """What does not fit into the outputs that are finished, one sentence each."""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def all_thresholds(self) -> dict[str, float]:
        """Those of the metrics and of toxicity, which is high from its own on, by name."""
        return {**self.thresholds, TOXICITY: self.toxicity_threshold}

    @property
    def has_stopped_as_planned(self) -> bool:
        """A look before the end found everything clear."""
        return 0 < self.looks_taken < len(self.looks) and not self.partial

    def flags_of(self, result: CaseResult) -> tuple[str, ...]:
        """Marks of a case: text that seems to address the judge, and scores that may be incomplete."""
        return (*self.flags.get((result.case.row, result.case.bot), ()), *result.flags)
