"""What an endpoint says is left of its rate limits, read from the headers of its answers.

OpenAI and compatible servers report, for requests and for tokens, the limit, what remains of it, and the time until it
is whole again. Azure OpenAI reports what remains, and the time only with a refusal. Some servers write 0 or -1 for
what they do not know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from rag_eval.judge.outcomes.waits import duration

REQUESTS, TOKENS = "requests", "tokens"


@dataclass(frozen=True, slots=True)
class Quota:
    """The state of one rate limit when an answer was sent."""

    remaining: float
    """Requests or tokens."""
    whole_after: float
    """Seconds until nothing of the limit is used up any more."""
    limit: float | None = None

    def wait(self, wanted: float, age: float) -> float:
        """Seconds until `wanted` may be used, `age` seconds after the answer; 0 if it may be used now."""
        until_whole = self.whole_after - age
        # A limit refills evenly: all that was used comes back within `whole_after` seconds. If the limit is not
        # known, neither is what was used, nor the speed: then only the time when all is back is certain.
        used = (self.limit or 0.0) - self.remaining
        a_second = used / self.whole_after if used > 0 else 0.0
        missing = wanted - self.remaining - a_second * age
        if until_whole <= 0 or missing <= 0:
            return 0.0
        wait = min(until_whole, missing / a_second) if a_second else until_whole
        # Up to whole milliseconds: a wait too short by a rounding error would make the request wait twice.
        return ceil(1000 * wait) / 1000


def read_quotas(headers: Mapping[str, str], *, is_refused: bool = False) -> dict[str, Quota]:
    """The quotas of REQUESTS and TOKENS, as far as the headers say when they are whole again.

    An endpoint that refuses a request and says that time has nothing left, even if it does not say so.
    """
    quotas = {counted: _quota(headers, counted, is_refused) for counted in (REQUESTS, TOKENS)}
    return {counted: quota for counted, quota in quotas.items() if quota is not None}


def _quota(headers: Mapping[str, str], counted: str, is_refused: bool) -> Quota | None:
    remaining = _count(_header(headers, "remaining", counted))
    whole_after = duration(_header(headers, "reset", counted))
    if remaining is None and is_refused:
        remaining = 0.0
    if remaining is None or not whole_after:
        return None
    return Quota(remaining, whole_after, _count(_header(headers, "limit", counted)) or None)


def _header(headers: Mapping[str, str], what: str, counted: str) -> str:
    """The header's text, or empty. Azure OpenAI has spelled the beginning of its name in both ways."""
    names = (f"{spelled}-{what}-{counted}" for spelled in ("x-ratelimit", "x-rate-limit"))
    return next((headers[name] for name in names if name in headers), "")


def _count(text: str) -> float | None:
    return float(text) if _COUNT.fullmatch(text) else None


_COUNT = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
