"""How often the responses of each bot pass a rubric and each of its criteria, with what the rates stand on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_eval.records import Outcome, RubricOutcome
from rag_eval.results.stored import State

if TYPE_CHECKING:
    from rag_eval.results.intervals import Interval


@dataclass(frozen=True, slots=True)
class PassRate:
    """How often something passed."""

    passed: int = 0
    scored: int = 0
    not_applicable: int = 0
    failed: int = 0
    """Not judged: the judge gave no verdict."""
    clusters: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Passed and scored of each conversation, and of each other row; () if no conversation has several rows."""

    @property
    def rate(self) -> float | None:
        """Passed ÷ scored, 0..1; None when nothing was scored."""
        return self.passed / self.scored if self.scored else None

    @property
    def interval(self) -> "Interval | None":
        """Of 95%; None if nothing was scored, and for fewer than FEWEST_ROWS conversations."""
        from rag_eval.results.intervals import share_interval, wilson_interval

        return share_interval(self.clusters) if self.clusters else wilson_interval(self.passed, self.scored)


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

    def add(self, bot: str, outcome: RubricOutcome, conversation: int = 0) -> None:
        """`conversation` is the number of the case's conversation, 0 for none."""
        self._overall[bot].add(outcome.outcome, outcome.passed, conversation)
        for criterion, count in self._criteria[bot].items():
            count.add(*outcome.on(criterion), conversation)

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
        self._talks: dict[int, list[int]] = {}
        """Passed and scored by conversation."""

    def add(self, outcome: Outcome, passed: bool | None, conversation: int) -> None:
        self._passed += passed is True
        self._outcomes[outcome] += 1
        if conversation and outcome is Outcome.SCORED:
            self._add_talk(conversation, int(passed is True), 1)

    def _add_talk(self, conversation: int, passed: int, scored: int) -> None:
        talk = self._talks.setdefault(conversation, [0, 0])
        talk[0] += passed
        talk[1] += scored

    def state(self) -> State:
        talks = [[conversation, *talk] for conversation, talk in self._talks.items()]
        return {"passed": self._passed, "outcomes": self._outcomes, "talks": talks}

    def merge(self, state: State) -> None:
        self._passed += state["passed"]
        self._outcomes.update({Outcome(name): count for name, count in state["outcomes"].items()})
        for talk in state["talks"]:
            self._add_talk(*talk)

    def rate(self) -> PassRate:
        return PassRate(
            self._passed,
            self._outcomes[Outcome.SCORED],
            self._outcomes[Outcome.NOT_APPLICABLE],
            self._outcomes[Outcome.FAILED],
            self._clusters(),
        )

    def _clusters(self) -> tuple[tuple[int, int], ...]:
        if all(scored < 2 for _, scored in self._talks.values()):
            return ()
        talks = [(passed, scored) for passed, scored in self._talks.values()]
        passed, scored = (sum(numbers) for numbers in zip(*talks, strict=True))
        passed, scored = self._passed - passed, self._outcomes[Outcome.SCORED] - scored
        return (*talks, *[(1, 1)] * passed, *[(0, 1)] * (scored - passed))
