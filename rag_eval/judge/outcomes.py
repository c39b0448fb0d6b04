"""What an answer of the judge's endpoint means: every one falls into exactly one class, with a stable code.

- retry: transient; the same request may succeed later
- reject: this call has no usable reply, and asking again would not help; other calls may well succeed
- adapt: the endpoint does not take one parameter; leave it out or rename it, once for the whole run
- stop: no further call can succeed
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, StrEnum
from typing import Any

LONGEST_WAIT = 120.0
"""Seconds. An endpoint that asks for a longer pause is not waited for."""


class Action(Enum):
    RETRY = "retry"
    REJECT = "reject"
    ADAPT = "adapt"
    STOP = "stop"


class Parameter(StrEnum):
    """Parts of a request that some endpoints do not take."""

    MAX_TOKENS = "max_tokens"
    TEMPERATURE = "temperature"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that is not a usable reply."""

    action: Action
    code: str
    message: str
    wait: float | None = None
    """Seconds that the endpoint asks to wait before the next try."""
    parameter: Parameter | None = None
    """What to adapt."""
    possibly_billed: bool = False
    most_attempts: int = 100
    """So many attempts at this fault are worth it, however many are allowed."""


class FaultError(Exception):
    """Carries a Fault through the retry layer."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def read_status(status: int, headers: Mapping[str, str], body: str) -> Fault:
    """The fault behind an HTTP status other than 200."""
    error = _ErrorBody.parse(body)
    told = f"HTTP {status}{error.told()}{_request_id(headers)}"
    if 300 <= status < 400:
        return Fault(
            Action.STOP,
            "redirect_refused",
            f"{told}: the endpoint redirects elsewhere; "
            "nothing is sent on. Set the endpoint to its final address",
        )
    by_status = _BY_STATUS.get(status)
    if by_status is not None:
        return by_status(error, headers, told)
    if status >= 500:
        return Fault(Action.RETRY, "server_error", told)
    return Fault(Action.REJECT, "bad_request", told)


def read_body(body: str) -> "Completion | Fault":
    """A completion from the body of an HTTP 200, or the fault behind it. The finish reason is looked at first."""
    try:
        document = json.loads(body)
    except ValueError:
        kind = "a web page" if body.lstrip()[:1] == "<" else "no JSON" if body.strip() else "an empty body"
        return Fault(
            Action.RETRY,
            "not_json",
            f"the endpoint answered with {kind} in place of a completion; "
            "is something between here and it (a proxy, a sign-in page)?",
            possibly_billed=True,
        )
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        told = _ErrorBody.parse(body).told()
        return Fault(Action.RETRY, "no_choices", f"HTTP 200 without a completion{told}", possibly_billed=True)
    return _read_choice(choices[0], document.get("usage"))


@dataclass(frozen=True, slots=True)
class Completion:
    content: str
    prompt_tokens: int
    completion_tokens: int


def unparseable(reason: str) -> Fault:
    """A reply that is not exactly one JSON document of the schema: asked again twice, then given up."""
    return Fault(
        Action.RETRY, "unparseable", f"the judge's reply does not fit its schema: {reason}", most_attempts=3
    )


def timed_out(seconds: float) -> Fault:
    return Fault(
        Action.RETRY,
        "timeout",
        f"no complete answer within {seconds:g} s",
        possibly_billed=True,
        most_attempts=3,
    )


def unreachable(error: BaseException) -> Fault:
    """A connection that failed, named by its root cause rather than by the client's 'Connection error.'"""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 10:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    root = causes[-1]
    advice = next(
        (
            text
            for kind, text in _CONNECTION_ADVICE
            if any(kind in type(c).__name__ or kind in str(c) for c in causes)
        ),
        "",
    )
    message = f"the endpoint cannot be reached ({type(root).__name__}: {root}){advice}"
    return Fault(Action.RETRY, "unreachable", message, possibly_billed="Protocol" in type(root).__name__)


def _unauthorized(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    return Fault(
        Action.STOP,
        "unauthorized",
        f"{told}: the endpoint refuses the API key; check that key and endpoint belong together",
    )


def _forbidden(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    return Fault(
        Action.STOP,
        "forbidden",
        f"{told}: the endpoint refuses this network or account; it may want a "
        "VPN, a private endpoint or a firewall rule",
    )


def _not_found(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    if error.code in ("DeploymentNotFound", "model_not_found"):
        return Fault(Action.STOP, "deployment_not_found", f"{told}: check the deployment or model name")
    return Fault(
        Action.STOP, "not_found", f"{told}: check the endpoint's address and, for Azure, the api_version"
    )


def _bad_request(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    if error.code == "content_filter" or error.is_filtered:
        categories = f" ({', '.join(error.filtered)})" if error.filtered else ""
        return Fault(
            Action.REJECT,
            "blocked_by_filter",
            f"the provider's content filter blocked the prompt{categories}",
        )
    if error.code == "context_length_exceeded" or "maximum context length" in error.message:
        return Fault(Action.REJECT, "too_long", f"the prompt is too long for the model{error.told()}")
    parameter = _refused_parameter(error)
    if parameter is not None:
        return Fault(Action.ADAPT, f"unsupported_{parameter}", told, parameter=parameter)
    return Fault(Action.REJECT, "bad_request", told)


def _too_large(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    return Fault(Action.REJECT, "too_long", f"{told}: the prompt is too large for the endpoint")


def _too_many(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    if "insufficient_quota" in (error.code, error.type):
        return Fault(
            Action.STOP,
            "insufficient_quota",
            f"{told}: the account's quota is used up; raise it and run the same command again to go on",
        )
    wait = _retry_after(headers, error.message)
    if wait is not None and wait > LONGEST_WAIT:
        return Fault(
            Action.REJECT,
            "exceeds_rate_limit",
            f"{told}: the endpoint asks to wait {wait:g} s; one request "
            "alone may exceed the deployment's tokens per minute: raise its quota",
        )
    return Fault(Action.RETRY, "rate_limited", told, wait=wait)


def _transient(error: "_ErrorBody", headers: Mapping[str, str], told: str) -> Fault:
    wait = _retry_after(headers, error.message)
    return Fault(
        Action.RETRY, "server_error", told, wait=wait if wait is not None and wait <= LONGEST_WAIT else None
    )


_BY_STATUS = {
    400: _bad_request,
    401: _unauthorized,
    403: _forbidden,
    404: _not_found,
    408: _transient,
    409: _transient,
    413: _too_large,
    422: _bad_request,
    429: _too_many,
    503: _transient,
}

_CONNECTION_ADVICE = (
    (
        "CERTIFICATE_VERIFY",
        ": the server's TLS certificate is not trusted here; a company proxy may need its CA "
        "certificate in SSL_CERT_FILE",
    ),
    ("gaierror", ": the host name cannot be resolved; check the endpoint's spelling and the network"),
    ("ConnectionRefused", ": nothing listens at this address"),
)


def _read_choice(choice: Mapping[str, Any], usage: Any) -> "Completion | Fault":
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        return Fault(Action.REJECT, "output_filtered", "the provider's content filter cut the judge's reply")
    if finish == "length":
        return Fault(
            Action.RETRY,
            "truncated",
            "the judge's reply was cut at its token limit",
            possibly_billed=True,
            most_attempts=2,
        )
    if message.get("refusal"):
        return Fault(Action.REJECT, "refused", f"the judge refused: {str(message['refusal'])[:200]}")
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        return unparseable("it is empty")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(content, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _refused_parameter(error: "_ErrorBody") -> Parameter | None:
    text = f"{error.parameter} {error.message}".lower()
    if "max_completion_tokens" in text or (error.parameter == "max_tokens" and "unsupported" in error.code):
        return Parameter.MAX_TOKENS
    if "temperature" in text and ("support" in text or "unsupported" in error.code):
        return Parameter.TEMPERATURE
    if "json_schema" in text:
        return Parameter.JSON_SCHEMA
    if "response_format" in text or "json_object" in text:
        return Parameter.JSON_OBJECT if "json_object" in text else Parameter.JSON_SCHEMA
    return None


def _retry_after(headers: Mapping[str, str], message: str) -> float | None:
    """Seconds to wait, from `retry-after-ms`, `retry-after` (a number or a date) or the message, in this order."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    header = headers.get("retry-after")
    seconds = _number(header)
    if seconds is not None:
        return seconds
    if header:
        try:
            now = parsedate_to_datetime(headers["date"]) if headers.get("date") else None
            at = parsedate_to_datetime(header)
        except ValueError:
            now = None
        if now is not None:
            return max(0.0, (at - now).total_seconds())
    told = re.search(r"retry after (\d+(?:\.\d+)?) ?(milli)?seconds?", message, re.IGNORECASE)
    return float(told[1]) / (1000 if told[2] else 1) if told else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e9 else None


def _request_id(headers: Mapping[str, str]) -> str:
    identifier = headers.get("apim-request-id") or headers.get("x-request-id")
    return f" [request {identifier[:60]}]" if identifier else ""


@dataclass(frozen=True, slots=True)
class _ErrorBody:
    """What can be made out of an error body; servers wrap it in `error`, or do not, or send no JSON at all."""

    code: str = ""
    message: str = ""
    parameter: str = ""
    type: str = ""
    filtered: tuple[str, ...] = ()
    """The content filter's categories that were hit."""
    is_filtered: bool = False

    @classmethod
    def parse(cls, body: str) -> "_ErrorBody":
        try:
            document = json.loads(body)
        except ValueError:
            return cls(message=" ".join(re.sub(r"<[^>]*>", " ", body).split())[:200])
        error = document.get("error", document) if isinstance(document, dict) else document
        if not isinstance(error, dict):
            return cls(message=str(error)[:200] if error else "")
        inner = error.get("innererror") or error.get("inner_error") or {}
        inner = inner if isinstance(inner, dict) else {}
        results = inner.get("content_filter_result") or inner.get("content_filter_results") or {}
        hits = [
            str(name)
            for name, result in results.items()
            if isinstance(result, dict) and result.get("filtered")
        ]
        return cls(
            code=str(error.get("code") or ""),
            message=str(error.get("message") or error.get("detail") or ""),
            parameter=str(error.get("param") or ""),
            type=str(error.get("type") or ""),
            filtered=tuple(hits),
            is_filtered=inner.get("code") == "ResponsibleAIPolicyViolation",
        )

    def told(self) -> str:
        """The code and message for an error line; empty when there is neither."""
        words = " ".join(part for part in (self.code, self.message[:300]) if part)
        return f" ({words})" if words else ""
