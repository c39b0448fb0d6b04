"""How fast one deployment is asked: requests in flight, pauses that all workers share, and a pace if one is known.

Providers judge their limits over a few seconds, so requests are spaced evenly rather than counted by the minute.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Limiter:
    """Admits requests to one deployment. Safe to use from several threads.

    Requests in flight follow the rule by which TCP shares a line: one more for each round without a refusal,
    half as many after a refusal, never more than `most` and never less than one.
    """

    def __init__(
        self,
        most: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        sleep: Callable[[float], object],
        clock: Callable[[], float],
    ) -> None:
        self._most = most
        self._allowed = float(most)
        self._seconds_per_request = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_per_token = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._sleep = sleep
        self._clock = clock
        self._changed = threading.Condition()
        self._in_flight = 0
        self._round = 0
        self._not_before = 0.0

    @contextmanager
    def turn(self, tokens: int) -> Iterator[int]:
        """Wait until a request of about so many tokens may be sent; it is in flight inside the `with` block.

        Gives the number of the round, which `shrink` wants to know.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight < int(self._allowed))
            self._in_flight += 1
        try:
            self._wait_until_due(tokens)
            yield self._round
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def grow(self) -> None:
        """A request was answered: a whole round of them allows one more at a time."""
        with self._changed:
            self._allowed = min(self._most, self._allowed + 1.0 / self._allowed)

    def shrink(self, admitted_in: int) -> None:
        """A request was refused for its rate: half as many at a time. All refusals of one round count once."""
        with self._changed:
            if admitted_in == self._round:
                self._round += 1
                self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Nobody sends for so long: everyone waits when a deployment asks for it, not just the one it told."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def _wait_until_due(self, tokens: int) -> None:
        while (wait := self._book(tokens)) > 0:
            self._sleep(wait)

    def _book(self, tokens: int) -> float:
        """Take the place in line that is due now, or tell how many seconds it is away."""
        with self._changed:
            now = self._clock()
            if now < self._not_before:
                return self._not_before - now
            pace = max(self._seconds_per_request, self._seconds_per_token * tokens)
            self._not_before = now + pace if pace else self._not_before
            return 0.0
