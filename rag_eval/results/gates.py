"""Quality gates: does every bot reach the required means? A gate never passes on unjudged cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS
from rag_eval.results.baseline import NAMES
from rag_eval.results.paired import Change, CommonQueries, Direction, common_words
from rag_eval.results.summary import RQS, BotSummary, Mean, Summary, of_queries
from rag_eval.texts.display import decimals

if TYPE_CHECKING:
    from rag_eval.results.findings import Findings
    from rag_eval.results.intervals import Interval

GATED = (RQS, *METRIC_LABELS)
"""Names that a gate may have."""


class GateOn(StrEnum):
    """What is compared with a gate: the lower limit of the mean's 95% CI, or the mean itself."""

    INTERVAL = "interval"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    least: float

    @property
    def title(self) -> str:
        """The requirement, such as "rqs >= 0.7"."""
        return self.name if self == _NO_REGRESSION else f"{self.name} >= {self.least:g}"


_NO_REGRESSION = Gate("no_regression", 0.0)


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate and one bot."""

    bot: str
    gate: Gate
    passed: bool
    reason: str
    """The figures behind the result, in words."""


def parse_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """Gates from NAME=VALUE. Raises InputError with every text that is none."""
    gates, problems = [], []
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        key = name.casefold().replace(" ", "_").replace("-", "_")
        least = _share(value)
        if "=" not in text:
            problems.append(f"--fail-under {text}: expected NAME=VALUE, such as rqs=0.7")
        elif key not in GATED:
            problems.append(
                f"--fail-under {text}: unknown metric {name!r}; expected one of {', '.join(GATED)}"
            )
        elif least is None:
            problems.append(f"--fail-under {text}: VALUE must be between 0 and 1, not {value!r}")
        else:
            gates.append(Gate(key, least))
    if problems:
        raise InputError(problems)
    return tuple(gates)


def evaluate(
    gates: Sequence[Gate], summary: Summary, gate_on: GateOn, min_coverage: float, confidence: float = 0.95
) -> tuple[GateResult, ...]:
    """Every gate on every bot. One bot that misses a gate fails it. `confidence` is that of the intervals."""
    return tuple(
        _result(gate, bot, gate_on, min_coverage, summary.compared, confidence)
        for gate in gates
        for bot in summary.bots
    )


def is_decided(gate: Gate, bot: BotSummary, min_coverage: float, confidence: float) -> bool:
    """Whether no further query is needed to know if the bot passes: the interval is on one side of the gate.

    A gate on the lower limit is missed for good if even the upper limit is below it.
    """
    mean = _gated(gate, bot)
    if mean is None or mean.value is None or (mean.coverage or 0.0) < min_coverage:
        return False
    interval = _interval(gate, bot, confidence)
    return interval is not None and (_reaches(interval.low, gate.least) or interval.high < gate.least - 1e-9)


def regression_gates(
    findings: "Findings", bots: Sequence[str], min_common: float, margin: float = 0.0
) -> tuple[GateResult, ...]:
    """One for each bot: no mean of it is worse than in the baseline. Nothing to compare is nothing passed, and neither
    is less than the share `min_common` of the baseline's queries. A mean that falls by up to `margin` (0..1) is not
    worse."""
    results = []
    for bot in bots:
        common = findings.common.get(bot, CommonQueries(before=0, now=0, both=0))
        changes = [change for change in findings.changes or () if change.bot == bot]
        reason = findings.not_comparable or _too_few(common, min_common) or _worse(changes, margin)
        if reason or not changes:
            reason = reason or "no query has a score in both runs"
            results.append(GateResult(bot, _NO_REGRESSION, passed=False, reason=reason))
        else:
            reason = f"no mean is {_significantly_worse(margin)} ({_of_baseline(common)})"
            results.append(GateResult(bot, _NO_REGRESSION, passed=True, reason=reason))
    return tuple(results)


def _too_few(common: CommonQueries, min_common: float) -> str:
    """Why the queries of both runs do not suffice, in words; empty if they do."""
    if not common.before:
        return "not comparable: the baseline does not have this bot"
    if not common.both:
        return "not comparable: no query is in both runs"
    if common.both >= min_common * common.before - 1e-9:
        return ""
    return (
        f"not comparable: this run has {_of_baseline(common)}, less than the share of {min_common:g} that "
        "[evaluation] min_common requires"
    )


def _of_baseline(common: CommonQueries) -> str:
    return (
        f"{common.both:,} of the baseline's {common.before:,} {'query' if common.before == 1 else 'queries'}"
    )


def _worse(changes: Sequence[Change], margin: float) -> str:
    """Which means are worse or, as scores are missing, perhaps worse, in words; empty if none is."""
    fallen = [change for change in changes if change.difference < -margin - 1e-9 * bool(margin)]
    worse = [_shown(change) for change in fallen if change.direction is Direction.WORSE]
    if worse:
        return f"{_significantly_worse(margin)}: {', '.join(worse)}"
    perhaps = [_shown(change) for change in fallen if change.is_reversible]
    if not perhaps:
        return ""
    return (
        f"could not be decided: {', '.join(perhaps)} would be {_significantly_worse(margin)}, but scores that "
        "only one of the two runs has could change that"
    )


def _significantly_worse(margin: float) -> str:
    return "significantly worse than the baseline" + (
        f" by more than {margin:g} ([evaluation] regression_margin)" if margin else ""
    )


def _shown(change: Change) -> str:
    by = decimals(change.difference, 4, is_signed=True)
    return f"{NAMES[change.name]} {by} ({common_words(change.queries)})"


def _gated(gate: Gate, bot: BotSummary) -> Mean | None:
    return bot.rqs if gate.name == RQS else bot.metrics.get(gate.name)


def _interval(gate: Gate, bot: BotSummary, confidence: float) -> "Interval | None":
    from rag_eval.results.intervals import reported_interval

    values = bot.rqs_values if gate.name == RQS else bot.metric_values[gate.name]
    return reported_interval(values, confidence)


def _result(
    gate: Gate, bot: BotSummary, gate_on: GateOn, min_coverage: float, compared: int, confidence: float
) -> GateResult:
    """`compared` are the queries that the Leaderboard's means are over; those of a gate are over the bot's own."""
    mean = _gated(gate, bot)
    if mean is None or mean.value is None:
        return GateResult(bot.bot, gate, passed=False, reason=f"{gate.name} was not scored for any query")
    value = f"{gate.name} {_beside(gate.least, mean.value)}"
    queries = of_queries(mean.scored, mean.expected)
    if compared != mean.scored:
        queries += f" of this bot; the Leaderboard compares {compared:,}"
    required = f"must be at least {gate.least:.12g} (--gate-on {gate_on})"
    if (mean.coverage or 0.0) < min_coverage:
        return GateResult(
            bot.bot, gate, passed=False, reason=f"{value} ({queries}): too few queries were judged"
        )
    if gate_on is GateOn.MEAN:
        reason = f"{value} ({queries}); the mean {required}"
        return GateResult(bot.bot, gate, _reaches(mean.value, gate.least), reason)
    interval = _interval(gate, bot, confidence)
    if interval is None:
        return GateResult(bot.bot, gate, passed=False, reason=f"{value} ({queries}): too few for an interval")
    kind = "95% CI" if confidence == 0.95 else "repeated 95% CI"
    limits = f"{kind} {_beside(gate.least, interval.low)} to {decimals(interval.high, 4)}"
    reason = f"{value} ({limits}, {queries}); the lower limit {required}"
    return GateResult(bot.bot, gate, _reaches(interval.low, gate.least), reason)


def _reaches(value: float, least: float) -> bool:
    """Whether it is as high, but for the rounding error of a composite: 0.7 may come out as 0.6999999999999998."""
    return value > least - 1e-9


def _beside(least: float, value: float) -> str:
    """The value with four decimals, or with as many more as show on which side of `least` it is."""
    texts = (decimals(value, digits) for digits in range(4, 12))
    return next((text for text in texts if (float(text) >= least) is _reaches(value, least)), repr(value))


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None
