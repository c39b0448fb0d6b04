"""What a run may send, spend and take. Nothing is sent that could exceed it."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_eval.errors import RunStoppedError


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost."""

    prompt: float
    completion: float
    cached: float | None = None
    """Of prompt tokens that the provider has cached; at most that of all others. None for that of all others."""

    def of(self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0) -> float:
        """`cached_tokens` are those of `prompt_tokens` that were cached."""
        saved = 0.0 if self.cached is None else (self.prompt - self.cached) * cached_tokens
        return (self.prompt * prompt_tokens + self.completion * completion_tokens - saved) / 1_000_000


@dataclass(frozen=True, slots=True)
class _Reservation:
    """The most that one request may cost, held back until its true cost is known."""

    model: str
    cost: float


class Budget:
    """Counts what was sent and spent. Safe to use from several threads.

    A request is let through only when the caps hold even if it costs the most that it can: a token for each byte
    of the prompt, and a reply up to its limit.
    """

    def __init__(
        self,
        prices: dict[str, Price] | None = None,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        max_minutes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prices` by deployment. The caps are None for no limit; `max_cost` is in the currency of the prices."""
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._max_minutes = max_minutes
        self._prices = prices or {}
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._requests = 0
        self._spent = 0.0
        self._held = 0.0
        self._forfeited = 0.0
        self._kept = 0.0
        self._elsewhere_requests = 0
        self._elsewhere_spent = 0.0
        self._on_change: Callable[[int, float], None] = lambda requests, most: None

    def carry(self, requests: int, spent: float) -> None:
        """Count against the caps what was requested otherwise: by earlier commands, or in batches."""
        with self._lock:
            self._elsewhere_requests, self._elsewhere_spent = requests, spent

    def report_to(self, on_change: Callable[[int, float], None]) -> None:
        """Tell the number of requests, and what they cost at most, before each is sent and after its answer."""
        self._on_change = on_change

    def book(self, cost: float) -> None:
        """Let one request through that is sent otherwise, and costs at most this, or raise RunStoppedError."""
        with self._lock:
            self._check(cost)
            self._elsewhere_requests += 1
            self._elsewhere_spent += cost

    @property
    def left(self) -> float | None:
        """What may still be spent, with all requests that may still cost something at their most; None for no cap."""
        if self._max_cost is None:
            return None
        return self._max_cost - self._spent - self._held - self._elsewhere_spent

    @property
    def spent(self) -> float | None:
        """Cost so far in the currency of the prices; None when there are no prices."""
        return self._spent if self._prices else None

    @property
    def forfeited(self) -> float:
        """The part of `spent` that may not have been billed: what `forfeit` counted."""
        return self._forfeited

    @property
    def kept(self) -> float:
        """The part of `spent` that was billed for less, perhaps: what `keep` counted."""
        return self._kept

    def reserve(self, model: str, prompt_tokens: int, completion_tokens: int) -> _Reservation:
        """Let one request of at most so many tokens through, or raise RunStoppedError because a cap is reached."""
        price = self._prices.get(model)
        most = price.of(prompt_tokens, completion_tokens) if price else 0.0
        with self._lock:
            self._check(most)
            self._requests += 1
            self._held += most
        self._on_change(self._requests, self._spent + self._held)
        return _Reservation(model, most)

    def settle(
        self, reservation: _Reservation, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0
    ) -> float | None:
        """Put the true cost in place of what was held back; returns it, or None when the price is unknown."""
        price = self._prices.get(reservation.model)
        cost = price.of(prompt_tokens, completion_tokens, cached_tokens) if price else None
        return self._spend(reservation, cost)

    def forfeit(self, reservation: _Reservation) -> float | None:
        """Count all that was held back as spent: the request may have been billed, for how much is not known."""
        cost = self._spend(reservation, reservation.cost if reservation.model in self._prices else None)
        with self._lock:
            self._forfeited += cost or 0.0
        return cost

    def keep(self, reservation: _Reservation) -> float | None:
        """Count all that was held back as spent: the request was billed, for how much the endpoint does not say."""
        cost = self._spend(reservation, reservation.cost if reservation.model in self._prices else None)
        with self._lock:
            self._kept += cost or 0.0
        return cost

    def _spend(self, reservation: _Reservation, cost: float | None) -> float | None:
        with self._lock:
            self._held -= reservation.cost
            self._spent += cost or 0.0
        self._on_change(self._requests, self._spent + self._held)
        return cost

    def _check(self, most: float) -> None:
        again = _AGAIN if self._elsewhere_spent or self._elsewhere_requests else _NEXT
        spent, requests = self._spent + self._elsewhere_spent, self._requests + self._elsewhere_requests
        if self._max_calls is not None and requests >= self._max_calls:
            raise _reached("max_calls", f"{self._max_calls} requests were sent (--max-calls)", again)
        if self._max_cost is not None and spent + self._held + most > self._max_cost:
            held = f", open requests may cost {self._held:.4f}" if round(self._held, 4) else ""
            raise _reached("max_cost", f"{spent:.4f} of {self._max_cost:g} is spent{held}; one more request "
                                       f"could cost up to {most:.4f} (--max-cost)", again)  # fmt: skip
        if self._max_minutes is not None and self._clock() - self._started >= self._max_minutes * 60:
            raise _reached(
                "max_minutes",
                f"the time limit of {minutes(self._max_minutes)} is reached (--max-minutes)",
                _NEXT,
            )


def minutes(number: float) -> str:
    return f"{number:g} minute{'' if number == 1 else 's'}"


def _reached(code: str, what: str, how_to_continue: str) -> RunStoppedError:
    return RunStoppedError(code, f"{what}; {how_to_continue}")


_NEXT = "run the same command again to continue"
"""The limits are those of one command."""
_AGAIN = (
    "raise the limit, which is that of all commands of this run, and run the same command again to continue"
)
