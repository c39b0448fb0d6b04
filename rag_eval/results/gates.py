"""Quality gates: does every bot reach the required means? A gate never passes on unjudged cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag_eval.errors import InputError
from rag_eval.records import METRIC_LABELS
from rag_eval.results.baseline import NAMES
from rag_eval.results.paired import Change, Direction
from rag_eval.results.summary import RQS, BotSummary, Summary, of_queries
from rag_eval.texts.display import decimals

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
    gates: Sequence[Gate], summary: Summary, gate_on: GateOn, min_coverage: float
) -> tuple[GateResult, ...]:
    """Every gate on every bot. One bot that misses a gate fails it."""
    return tuple(_result(gate, bot, gate_on, min_coverage) for gate in gates for bot in summary.bots)


def regression_gates(
    changes: Sequence[Change], bots: Sequence[str], not_comparable: str = ""
) -> tuple[GateResult, ...]:
    """One for each bot: no mean of it is worse than in the baseline. Nothing to compare is nothing passed.

    `not_comparable` says why the changes do not count, if they do not: then no gate passes.
    """
    if not_comparable:
        return tuple(GateResult(bot, _NO_REGRESSION, passed=False, reason=not_comparable) for bot in bots)
    results = []
    for bot in bots:
        own = [change for change in changes if change.bot == bot]
        worse = [
            f"{NAMES[change.name]} {decimals(change.difference, 4, is_signed=True)}"
            for change in own
            if change.direction is Direction.WORSE
        ]
        reason = (
            f"significantly worse than the baseline: {', '.join(worse)}"
            if worse
            else "no mean is significantly worse than the baseline"
        )
        results.append(
            GateResult(
                bot, _NO_REGRESSION, bool(own) and not worse, reason if own else "no query is in both runs"
            )
        )
    return tuple(results)


def _result(gate: Gate, bot: BotSummary, gate_on: GateOn, min_coverage: float) -> GateResult:
    mean = bot.rqs if gate.name == RQS else bot.metrics.get(gate.name)
    if mean is None or mean.value is None:
        return GateResult(bot.bot, gate, passed=False, reason=f"{gate.name} was not scored for any query")
    value = f"{gate.name} {_beside(gate.least, mean.value)}"
    queries = of_queries(mean.scored, mean.expected)
    required = f"must be at least {gate.least:.12g} (--gate-on {gate_on})"
    if (mean.coverage or 0.0) < min_coverage:
        return GateResult(
            bot.bot, gate, passed=False, reason=f"{value} ({queries}): too few queries were judged"
        )
    if gate_on is GateOn.MEAN:
        reason = f"{value} ({queries}); the mean {required}"
        return GateResult(bot.bot, gate, _reaches(mean.value, gate.least), reason)
    from rag_eval.results.intervals import reported_interval

    interval = reported_interval(bot.rqs_values if gate.name == RQS else bot.metric_values[gate.name])
    if interval is None:
        return GateResult(bot.bot, gate, passed=False, reason=f"{value} ({queries}): too few for an interval")
    limits = f"95% CI {_beside(gate.least, interval.low)} to {decimals(interval.high, 4)}"
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
