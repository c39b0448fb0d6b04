"""How long an endpoint asks to wait, in the forms in which headers and messages say it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def asked_wait(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds from `retry-after-ms`, `retry-after` (a number or a date) or the message, in this order."""
    milliseconds = duration(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after", "")
    seconds = duration(header)
    if seconds is None:
        seconds = _seconds_until(header, headers.get("date"))
    return _seconds_in_words(message) if seconds is None else seconds


def duration(text: str) -> float | None:
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
        moment = parsedate_to_datetime(text) if text else None
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


_WAIT_IN_WORDS = re.compile(
    r"(?:retry|try again) (?:after|in) (?:(\d{1,9})h)?(?:(\d{1,9})m(?!s|i))?(?:(\d{1,9}(?:\.\d+)?) ?(ms|milli|s))?",
    re.IGNORECASE,
)


def _seconds_in_words(message: str) -> float | None:
    """Seconds from words such as 'retry after 9 seconds' or 'try again in 1m2.5s'."""
    match = _WAIT_IN_WORDS.search(message)
    if match is None or not any(match.groups()):
        return None
    hours, minutes, number, unit = match.groups()
    seconds = float(number or 0) / (1000 if (unit or "").lower().startswith("m") else 1)
    return 3600 * float(hours or 0) + 60 * float(minutes or 0) + seconds
