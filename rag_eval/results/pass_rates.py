"""How often the responses of each bot pass a rubric and each of its criteria, with what the rates stand on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_eval.records import Outcome, RubricOutcome
from rag_eval.results.stored import State


@dataclass(frozen=True, slots=True)
class PassRate:
    """How often something passed."""

    passed: int = 0
    scored: int = 0
    not_applicable: int = 0
    failed: int = 0
    """Not judged: the judge gave no verdict."""

    @property
    def rate(self) -> float | None:
        """Passed ÷ scored, 0..1; None when nothing was scored."""
        return self.passed / self.scored if self.scored else None


@dataclass(frozen=True, slots=True)
class BotPassRates:
    """One bot's pass rates."""

    bot: str
    overall: PassRate
    criteria: Mapping[str, PassRate]
    """By criterion, in the rubric's order."""


class PassRateTally:
    """Folds rubric outcomes into pass rates. Holds counts only."""

    def __init__(self, bots: Sequence[str], criteria: Sequence[str]) -> None:
        self._overall = {bot: _Count() for bot in bots}
        self._criteria = {bot: {criterion: _Count() for criterion in criteria} for bot in bots}

    def add(self, bot: str, outcome: RubricOutcome) -> None:
        self._overall[bot].add(outcome.outcome, outcome.passed)
        for criterion, count in self._criteria[bot].items():
            count.add(*outcome.on(criterion))

    def state(self) -> State:
        """What was added, for `merge`."""
        return {
            bot: [overall.state(), {name: count.state() for name, count in self._criteria[bot].items()}]
            for bot, overall in self._overall.items()
        }

    def merge(self, state: State) -> None:
        """Add what a part of the run has."""
        for bot, (overall, criteria) in state.items():
            self._overall[bot].merge(overall)
            for name, count in criteria.items():
                self._criteria[bot][name].merge(count)

    def pass_rates(self) -> tuple[BotPassRates, ...]:
        """In the order of the bots given."""
        return tuple(
            BotPassRates(
                bot, overall.rate(), {name: count.rate() for name, count in self._criteria[bot].items()}
            )
            for bot, overall in self._overall.items()
        )


class _Count:
    def __init__(self) -> None:
        self._passed = 0
        self._outcomes: Counter[Outcome] = Counter()

    def add(self, outcome: Outcome, passed: bool | None) -> None:
        self._passed += passed is True
        self._outcomes[outcome] += 1

    def state(self) -> State:
        return {"passed": self._passed, "outcomes": self._outcomes}

    def merge(self, state: State) -> None:
        self._passed += state["passed"]
        self._outcomes.update({Outcome(name): count for name, count in state["outcomes"].items()})

    def rate(self) -> PassRate:
        return PassRate(
            self._passed,
            self._outcomes[Outcome.SCORED],
            self._outcomes[Outcome.NOT_APPLICABLE],
            self._outcomes[Outcome.FAILED],
        )
