"""What an endpoint says of its rate limits: what is left of them, and how long to wait, in headers or messages.

OpenAI and compatible servers report, for requests and for tokens, the limit, what remains of it, and the time until it
is whole again. Azure OpenAI reports what remains, and the time only with a refusal. Some servers write 0 or -1 for
what they do not know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil

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
    whole_after = _duration(_header(headers, "reset", counted))
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
    return float(text) if _NUMBER.fullmatch(text) else None


def asked_wait(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds from `retry-after-ms`, `retry-after` (a number or a date) or the message, in this order."""
    milliseconds = _duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after", "")
    seconds = _duration(header)
    if seconds is None:
        seconds = _seconds_until(header, headers.get("date"))
    return _seconds_in_words(message) if seconds is None else seconds


def _duration(text: str) -> float | None:
    """Seconds from '1s', '6m0s', '1h2m3.5s', '120ms' or a number of seconds."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_PART = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ms|[dhms])", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def _seconds_until(text: str, now: str | None) -> float | None:
    """Seconds until an HTTP date, by the server's own clock where it tells the time."""
    at = _moment(text)
    if at is None:
        return None
    return max(0.0, (at - (_moment(now) or datetime.now(UTC))).total_seconds())


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


_WAIT_IN_WORDS = re.compile(
    r"(?:retry|try again) (?:after|in) (?:(\d{1,9})h)?(?:(\d{1,9})m(?!s|i))?(?:(\d{1,9}(?:\.\d+)?) ?(ms|milli|s))?",
    re.IGNORECASE,
)


_CLOCK = re.compile(r"replenished in (?:(\d{1,4})\.)?(\d{1,2}):(\d{2}):(\d{2})\b", re.ASCII | re.IGNORECASE)
"""As Azure API Management says it."""


def _seconds_in_words(message: str) -> float | None:
    """Seconds from words such as 'retry after 9 seconds' or 'try again in 1m2.5s'."""
    if clock := _CLOCK.search(message):
        parts = zip(clock.groups(), (86_400.0, 3_600.0, 60.0, 1.0), strict=True)
        return sum(float(part or 0) * unit for part, unit in parts)
    match = _WAIT_IN_WORDS.search(message)
    if match is None or not any(match.groups()):
        return None
    hours, minutes, number, unit = match.groups()
    seconds = float(number or 0) / (1000 if (unit or "").lower().startswith("m") else 1)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + seconds
