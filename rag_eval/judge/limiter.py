"""How fast one deployment is asked: requests in flight, pauses that all workers share, a pace if one is known, and
no more than the deployment says is left of its rate limits.

Providers judge their limits over a few seconds, so requests are spaced evenly rather than counted by the minute.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rag_eval.judge.outcomes import LONGEST_WAIT
from rag_eval.judge.quota import REQUESTS, TOKENS, Quota


@dataclass(frozen=True, slots=True)
class Admission:
    """The permission to send one request."""

    round: int
    sent: Mapping[str, int]
    """The requests and tokens that were let through so far, its own included."""
    is_held_back: bool
    """Whether the request had to wait because too little was left of a rate limit."""


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
        self._sent = {REQUESTS: 0, TOKENS: 0}
        self._reports: dict[str, _QuotaReport] = {}

    @contextmanager
    def turn(self, tokens: int) -> Iterator[Admission]:
        """Wait until a request of about `tokens` tokens may be sent; it is in flight inside the `with` block."""
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight < int(self._allowed))
            self._in_flight += 1
        try:
            yield self._wait_until_due({REQUESTS: 1, TOKENS: tokens})
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def grow(self) -> None:
        """Note that a request was answered: after a whole round of answers, one more may be in flight."""
        with self._changed:
            self._allowed = min(self._most, self._allowed + 1.0 / self._allowed)

    def shrink(self, turn: Admission) -> None:
        """Note that a request was refused for its rate: half as many may be in flight. A round is halved once."""
        with self._changed:
            if turn.round == self._round:
                self._round += 1
                self._allowed = max(1.0, self._allowed / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for so many seconds: a pause that one answer asks for holds for all workers."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def learn(self, turn: Admission, quotas: Mapping[str, Quota]) -> None:
        """Take in what the answer to a request says is left. It does not know of requests that were sent later."""
        with self._changed:
            for counted, quota in quotas.items():
                known = self._reports.get(counted)
                if known is None or known.sent <= turn.sent[counted]:
                    self._reports[counted] = _QuotaReport(quota, turn.sent[counted], self._clock())

    def _wait_until_due(self, wanted: Mapping[str, int]) -> Admission:
        is_held_back = False
        while True:
            with self._changed:
                now = self._clock()
                shortage = self._shortage(wanted, now)
                wait = max(self._not_before - now, shortage)
                if wait <= 0:
                    pace = max(self._seconds_per_request, self._seconds_per_token * wanted[TOKENS])
                    self._not_before = now + pace if pace else self._not_before
                    self._sent = {counted: sent + wanted[counted] for counted, sent in self._sent.items()}
                    return Admission(self._round, self._sent, is_held_back)
            is_held_back = is_held_back or shortage > 0
            self._sleep(wait)

    def _shortage(self, wanted: Mapping[str, int], now: float) -> float:
        """Seconds until enough is left for a request; longer waits than LONGEST_WAIT are left to the endpoint."""
        waits = (
            report.quota.wait(self._sent[counted] - report.sent + wanted[counted], now - report.at)
            for counted, report in self._reports.items()
        )
        return max((wait for wait in waits if wait <= LONGEST_WAIT), default=0.0)


@dataclass(frozen=True, slots=True)
class _QuotaReport:
    quota: Quota
    sent: int
    """The requests or tokens that were sent up to the request that it answers."""
    at: float
    """When it came, by the limiter's clock."""
