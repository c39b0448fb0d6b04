"""Quality gates: does every bot reach the required means, and stay below the limits of latency and cost?

A gate never passes on unjudged cases, nor on cases without a latency or cost.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS
from rag_eval.results.baseline import NAMES
from rag_eval.results.paired import NO_COMMON, Change, CommonQueries, Direction, common_words
from rag_eval.results.summary import RQS, BotSummary, Summary, of_queries
from rag_eval.texts.display import amount, counted, decimals

if TYPE_CHECKING:
    from rag_eval.results.findings import Findings

_GATED = (RQS, *METRIC_LABELS)
"""Names that a gate may have."""
_GATED_ABOVE: Mapping[str, tuple[str, float]] = MappingProxyType(
    {"latency_median": ("latency", 0.5), "latency_p95": ("latency", 0.95), "cost": ("cost", 0.0)}
)
"""Names that an upper gate may have, with what is spent and which quantile of it is meant; 0 is the mean."""


class GateOn(StrEnum):
    """What is compared with a gate: a limit of the 95% CI, the lower one of a mean of scores, or the figure itself."""

    INTERVAL = "interval"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    limit: float
    is_upper: bool = False
    """The figure may be as high as the limit, or otherwise as low."""

    @property
    def title(self) -> str:
        """The requirement, such as "rqs >= 0.7"."""
        sign = "<=" if self.is_upper else ">="
        return self.name if self == _NO_REGRESSION else f"{self.name} {sign} {self.limit:.12g}"

    @property
    def is_quantile(self) -> bool:
        return self.is_upper and _GATED_ABOVE[self.name][1] > 0

    def is_met_by(self, value: float) -> bool:
        """But for the rounding error of a composite: 0.7 may come out as 0.6999999999999998."""
        if self.is_upper:
            return value <= self.limit * (1 + 1e-9)
        return value > self.limit - 1e-9


_NO_REGRESSION = Gate("no_regression", 0.0)
_ALPHA = 0.05
"""Level of the tests of changes, all together."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate and one bot."""

    bot: str
    gate: Gate
    passed: bool
    reason: str
    """The figures behind the result, in words."""


def parse_gates(under: Iterable[str], over: Iterable[str] = ()) -> tuple[Gate, ...]:
    """Gates from NAME=VALUE of --fail-under and --fail-over. Raises InputError with every text that is none."""
    problems: list[str] = []
    gates = [_parsed("--fail-under", text, _GATED, problems) for text in under]
    gates += [_parsed("--fail-over", text, _GATED_ABOVE, problems) for text in over]
    if problems:
        raise InputError(problems)
    return tuple(filter(None, gates))


def _parsed(option: str, text: str, names: Collection[str], problems: list[str]) -> Gate | None:
    """None for a text that is no gate, after adding what is wrong with it."""
    name, sign, value = (part.strip() for part in text.partition("="))
    key = name.casefold().replace(" ", "_").replace("-", "_")
    is_upper = names is _GATED_ABOVE
    limit = _number(value)
    example, what = ("latency_p95=3000", "figure") if is_upper else ("rqs=0.7", "metric")
    if not sign:
        problems.append(f"{option} {text}: expected NAME=VALUE, such as {example}")
    elif key not in names:
        problems.append(f"{option} {text}: unknown {what} {name!r}; expected one of {', '.join(names)}")
    elif is_upper and not 0.0 <= limit < math.inf:
        problems.append(f"{option} {text}: VALUE must be a number from 0 on such as 2.5, not {value!r}")
    elif not is_upper and not 0.0 <= limit <= 1.0:
        problems.append(f"{option} {text}: VALUE must be a number between 0 and 1 such as 0.7, not {value!r}")
    else:
        return Gate(key, limit, is_upper)
    return None


def require_spent(gates: Iterable[Gate], known: Collection[str]) -> None:
    """Raises InputError for upper gates on what the input does not have; `known` are names of SPENT_LABELS."""
    problems = [
        f"--fail-over {gate.name}={gate.limit:.12g}: the input has no {spent} of the bots; add a column "
        f"{spent.capitalize()}_<bot>, or name one with --map COLUMN={spent}"
        for gate in gates
        if gate.is_upper and (spent := _GATED_ABOVE[gate.name][0]) not in known
    ]
    if problems:
        raise InputError(problems)


def evaluate(
    gates: Sequence[Gate],
    summary: Summary,
    gate_on: GateOn,
    min_coverage: float,
    confidence: float = 0.95,
    *,
    unseen: int = 0,
    spared: Collection[str] = (),
) -> tuple[GateResult, ...]:
    """Every gate on every bot that is not `spared`. One bot that misses a gate fails it.

    `confidence` is that of the intervals. `unseen` are rows of an unfinished run that `summary` does not have.
    """
    return tuple(
        _result(
            gate,
            bot,
            gate_on,
            min_coverage,
            summary.compared,
            _figure(gate, bot, confidence, unseen),
            confidence,
        )
        for gate in gates
        for bot in summary.bots
        if bot.bot not in spared
    )


def is_decided(gate: Gate, bot: BotSummary, min_coverage: float, confidence: float) -> bool:
    """Whether no further query is needed to know if the bot passes: the interval is on one side of the gate.

    A gate on the lower limit is missed for good if even the upper limit is below it, and an upper gate the other way.
    """
    figure = _figure(gate, bot, confidence)
    if figure is None or figure.coverage < min_coverage:
        return False
    best = figure.low if gate.is_upper else figure.high
    is_passed = figure.decisive is not None and gate.is_met_by(figure.decisive)
    return is_passed or (best is not None and not gate.is_met_by(best))


def regression_gates(
    findings: "Findings",
    bots: Sequence[str],
    min_common: float,
    margin: float = 0.0,
    *,
    unscored: Collection[str] = (),
) -> tuple[GateResult, ...]:
    """One for each bot: no mean of it is worse than in the baseline. Nothing to compare is nothing passed, and neither
    is a bot that is `unscored`, or less than the share `min_common` of the baseline's queries. A mean that falls by up
    to `margin` (0..1) is not worse. One that falls further is named if it is over fewer than FEWEST_ROWS queries or
    conversations, which decide nothing; if all means of the bot are, it fails."""
    results = []
    for bot in bots:
        common = findings.common.get(bot, CommonQueries(before=0, now=0, both=0))
        changes = [change for change in findings.changes or () if change.bot == bot]
        reason = findings.not_comparable or _too_few(common, min_common) or _worse(changes, margin)
        reason = reason or ("no query has an RQS, since the judge failed" if bot in unscored else "")
        if reason or not changes:
            reason = reason or "no query has a score in both runs"
            results.append(GateResult(bot, _NO_REGRESSION, passed=False, reason=reason))
        else:
            reason = f"no mean is {_significantly_worse(margin)} ({_of_baseline(common)})"
            reason += _untested(changes, len(findings.changes or ()))
            results.append(GateResult(bot, _NO_REGRESSION, passed=True, reason=reason))
    return tuple(results)


def _too_few(common: CommonQueries, min_common: float) -> str:
    """Why the queries of both runs do not suffice, in words; empty if they do."""
    if not common.before:
        return "not comparable: the baseline does not have this bot"
    if not common.both:
        return f"not comparable: {NO_COMMON}"
    if common.both >= min_common * common.before - 1e-9:
        return ""
    return (
        f"not comparable: this run has {_of_baseline(common)}, less than the share of {min_common:g} that "
        "[evaluation] min_common requires"
    )


def _of_baseline(common: CommonQueries) -> str:
    return f"{common.both:,} of the baseline's {counted(common.before, 'query', 'queries')}"


def _worse(changes: Sequence[Change], margin: float) -> str:
    """Which means are worse or, as scores are missing, perhaps worse, in words; empty if none is."""
    fallen = [change for change in changes if change.difference < -margin - 1e-9 * bool(margin)]
    worse = [_shown(change) for change in fallen if change.direction is Direction.WORSE]
    if worse:
        return f"{_significantly_worse(margin)}: {', '.join(worse)}"
    open_ = [change for change in fallen if change.is_open]
    if open_ and all(change.too_few for change in changes):
        return f"could not be decided: {', '.join(map(_shown, open_))}: too few {open_[0].too_few} for a conclusion"
    perhaps = [_shown(change) for change in fallen if change.is_reversible]
    if not perhaps:
        return ""
    return (
        f"could not be decided: {', '.join(perhaps)} would be {_significantly_worse(margin)}, but scores that "
        "only one of the two runs has could change that"
    )


def _untested(changes: Sequence[Change], tests: int) -> str:
    """What was too little to find a mean worse, however far it fell, in words; empty if everything was enough.

    The smallest p-value of n queries or conversations is 2 ** (1 - n), and of several `tests` as many times that.
    """
    most = max(changes, key=lambda change: change.units)
    if most.units and 2.0 ** (1 - most.units) * tests >= _ALPHA:
        few = common_words(most.units) if most.units == most.queries else f"{most.units} conversations"
        return f"; {few} cannot show that one is"
    sparse = [change for change in changes if change.too_few]
    return f"; not tested: {', '.join(map(_shown, sparse))}: too few {sparse[0].too_few}" if sparse else ""


def _significantly_worse(margin: float) -> str:
    return "significantly worse than the baseline" + (
        f" by more than {margin:g} ([evaluation] regression_margin)" if margin else ""
    )


def _shown(change: Change) -> str:
    by = decimals(change.difference, 4, is_signed=True)
    return f"{NAMES[change.name]} {by} ({common_words(change.queries)})"


@dataclass(frozen=True, slots=True)
class _Figure:
    """What a gate looks at, of one bot."""

    value: float
    scored: int
    expected: int
    low: float | None
    high: float | None
    is_upper: bool

    @property
    def coverage(self) -> float:
        return self.scored / self.expected if self.expected else 0.0

    @property
    def decisive(self) -> float | None:
        """The limit of the interval that the gate is compared with; None without one."""
        return self.high if self.is_upper else self.low


def _figure(gate: Gate, bot: BotSummary, confidence: float, unseen: int = 0) -> _Figure | None:
    """None where the bot has no value. `unseen` queries could have one."""
    from rag_eval.results.intervals import quantile_interval, reported_interval

    if gate.is_upper:
        name, share = _GATED_ABOVE[gate.name]
        spent = bot.spent.get(name)
        if spent is None:
            return None
        value = {0.0: spent.mean, 0.5: spent.median, 0.95: spent.p95}[share]
        if share:
            # Order statistics need rows that are independent.
            ends = (None, None) if spent.clusters else quantile_interval(spent.values, share, confidence)
            return _Figure(value, spent.count, bot.total_queries + unseen, *ends, is_upper=True)
        values, scored, expected, clusters = spent.values, spent.count, bot.total_queries, spent.clusters
    else:
        mean = bot.rqs if gate.name == RQS else bot.metrics.get(gate.name)
        if mean is None or mean.value is None:
            return None
        value, scored, expected = mean.value, mean.scored, mean.expected
        values = bot.rqs_values if gate.name == RQS else bot.metric_values[gate.name]
        clusters = bot.clusters.get(gate.name)
    interval = reported_interval(values, confidence, clusters=clusters)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return _Figure(value, scored, expected + unseen, low, high, gate.is_upper)


def _result(
    gate: Gate,
    bot: BotSummary,
    gate_on: GateOn,
    min_coverage: float,
    compared: int,
    figure: _Figure | None,
    confidence: float,
) -> GateResult:
    """`compared` are the queries that the Leaderboard's means are over; those of a gate are over the bot's own."""
    if figure is None:
        lacking = "is not known" if gate.is_upper else "was not scored"
        return GateResult(bot.bot, gate, passed=False, reason=f"{gate.name} {lacking} for any query")
    value = f"{gate.name} {_beside(gate, figure.value)}"
    queries = of_queries(figure.scored, figure.expected)
    if compared != figure.scored and not gate.is_upper:
        queries += f" of this bot; the Leaderboard compares {compared:,}"
    most = "most" if gate.is_upper else "least"
    required = f"must be at {most} {gate.limit:.12g} (--gate-on {gate_on})"
    if figure.coverage < min_coverage:
        few = "the input has a value for too few queries" if gate.is_upper else "too few queries were judged"
        return GateResult(bot.bot, gate, passed=False, reason=f"{value} ({queries}): {few}")
    if gate_on is GateOn.MEAN:
        reason = f"{value} ({queries}); {'it' if gate.is_upper else 'the mean'} {required}"
        return GateResult(bot.bot, gate, gate.is_met_by(figure.value), reason)
    if figure.decisive is None and gate.is_quantile:
        reason = f"{value} ({queries}; {_why_no_limit(gate, bot, confidence)}); it {required}"
        return GateResult(bot.bot, gate, gate.is_met_by(figure.value), reason)
    if figure.decisive is None:
        few = f"too few{' conversations' * bool(bot.clusters)} for an interval"
        return GateResult(bot.bot, gate, passed=False, reason=f"{value} ({queries}): {few}")
    kind = "95% CI" if confidence == 0.95 else "repeated 95% CI"
    low, high = (
        _beside(gate, end) if end == figure.decisive else _end(gate, end) for end in (figure.low, figure.high)
    )
    limits = f"{kind} {low} to {high}"
    reason = f"{value} ({limits}, {queries}); the {'upper' if gate.is_upper else 'lower'} limit {required}"
    return GateResult(bot.bot, gate, gate.is_met_by(figure.decisive), reason)


def _why_no_limit(gate: Gate, bot: BotSummary, confidence: float) -> str:
    """Of a quantile, which is compared itself then: a file of few queries could meet no gate on it otherwise."""
    name, share = _GATED_ABOVE[gate.name]
    if bot.spent[name].clusters:
        return "no upper limit, since rows of one conversation are not independent"
    needed = math.ceil(math.log((1 - confidence) / 2) / math.log(share) - 1e-9)
    return f"an upper limit needs {needed} queries"


def _end(gate: Gate, value: float | None) -> str:
    if value is None:
        return "–"
    return amount(value) if gate.is_upper else decimals(value, 4)


def _beside(gate: Gate, value: float) -> str:
    """The value, a mean of scores with four decimals, or with as many more as show on which side of the gate it is."""
    if gate.is_upper:
        shown = amount(value)
        is_met = float(shown.replace(",", "")) <= gate.limit
        return shown if is_met is gate.is_met_by(value) else f"{value:.12g}"
    texts = (decimals(value, digits) for digits in range(4, 12))
    return next((text for text in texts if (float(text) >= gate.limit) is gate.is_met_by(value)), repr(value))


def _number(text: str) -> float:
    """NaN for a text that is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
