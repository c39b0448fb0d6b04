"""What a run may still send, spend and take, handed out with each shard."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_eval.configuration.settings import Settings
from rag_eval.errors import RunStoppedError
from rag_eval.judge.budget import minutes
from rag_eval.shards.judge_shard import GRANT_USED, ShardOutcome
from rag_eval.shards.spec import ShardSpec


@dataclass(slots=True)
class _Held:
    calls: int = 0
    cost: float = 0.0


class Purse:
    """The caps of a run. What a shard was given is held back until it says what it took."""

    def __init__(self, settings: Settings, slots: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`slots` are as many shards as are judged at the same time."""
        limits = settings.limits
        self._caps = limits.max_calls, limits.max_cost, limits.max_minutes
        self._slots = slots
        self._clock = clock
        self._began = clock()
        self._calls, self._cost = 0, 0.0
        self._lost = _Held()
        """What workers that died had been given: as much as that may be gone."""
        self._held: dict[int, _Held] = {}

    def fill(self, spec: ShardSpec) -> ShardSpec | None:
        """The shard with its part of what is left; None if nothing is."""
        max_calls, max_cost, max_minutes = self._caps
        parts = max(1, self._slots - len(self._held))
        held, given = _Held(), dict[str, float | int]()
        handed_out = (self._lost, *self._held.values())
        if max_calls is not None:
            free = max_calls - self._calls - sum(each.calls for each in handed_out)
            given["max_calls"] = held.calls = -(-free // parts)
        if max_cost is not None:
            free_cost = max_cost - self._cost - sum(each.cost for each in handed_out)
            given["max_cost"] = held.cost = free_cost / parts
        if max_minutes is not None:
            given["max_minutes"] = max_minutes - (self._clock() - self._began) / 60
        if any(value <= 0 for value in given.values()):
            return None
        self._held[spec.number] = held
        grant = secrets.token_hex(8) if max_calls is not None or max_cost is not None else ""
        return spec.model_copy(update={**given, "grant": grant})

    def settle(self, outcome: ShardOutcome) -> None:
        """Put what a shard took in place of what was held back for it."""
        held = self._held.pop(outcome.number, _Held())
        if outcome.code == GRANT_USED:
            self._lost.calls += held.calls
            self._lost.cost += held.cost
            return
        self._calls += outcome.requests
        self._cost += outcome.cost

    def narrow(self) -> bool:
        """From now on give what is left to half as many shards at a time; False if that is one already.

        A part that is too little for a shard may be enough if fewer shards have one.
        """
        before, self._slots = self._slots, max(1, self._slots // 2)
        return self._slots < before

    def reached(self) -> RunStoppedError:
        """Why nothing more is handed out."""
        max_calls, max_cost, max_minutes = self._caps
        taken = [
            *([self._sent(max_calls)] if max_calls is not None else []),
            *([self._spent(max_cost)] if max_cost is not None else []),
            *([f"the limit is {minutes(max_minutes)} (--max-minutes)"] if max_minutes is not None else []),
        ]
        return RunStoppedError(
            "limits",
            f"the limits of the run are reached: {', '.join(taken)}; run the same command again to continue",
        )

    def _sent(self, most: int) -> str:
        if not self._lost.calls:
            return f"{self._calls:,} of {most:,} requests are sent (--max-calls)"
        return (
            f"{self._calls:,} requests are known to be sent and {self._lost.calls:,} more were given to workers that "
            f"died; --max-calls is {most:,}"
        )

    def _spent(self, most: float) -> str:
        if not self._lost.cost:
            return f"{self._cost:.4f} of {most:g} is spent (--max-cost)"
        return (
            f"{self._cost:.4f} is known to be spent and {self._lost.cost:.4f} more was given to workers that died; "
            f"--max-cost is {most:g}"
        )
