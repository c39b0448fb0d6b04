"""What an answer of the judge's endpoint means: every one falls into exactly one class, with a stable code.

- retry: transient; the same request may succeed later
- reject: this call has no usable reply, and asking again would not help; other calls may well succeed
- adapt: the endpoint does not take one parameter; leave it out or rename it, once for the whole run
- stop: no further call can succeed
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from rag_eval.judge.waits import asked_wait

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
    RESPONSE_FORMAT = "response_format"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The provider's own counts for one answer."""

    prompt: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What the judge wrote, not yet read."""

    content: str
    tokens: Tokens = Tokens()
    is_unfiltered: bool = False
    """The provider's content filter was down, and says so. The reply is as good as any."""


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
    """The request may have been answered and charged, though no answer and no count of tokens arrived."""
    most_attempts: int = 100
    """So many attempts at this fault are worth it, however many are allowed."""
    tokens: Tokens = Tokens()


def read_status(status: int, headers: Mapping[str, str], body: str, path: str = "") -> Fault:
    """The fault behind an HTTP status other than 2xx. `path` is where the request went, for the message."""
    refusal = _Refusal(status, headers, path, _ErrorBody.parse(body))
    if 300 <= status < 400:
        return refusal.fault(
            Action.STOP,
            "redirect_refused",
            "the endpoint redirects elsewhere, and nothing is sent on; set the endpoint to its final address",
        )
    if refusal.error.kinds & _SPENT:
        return _quota_used_up(refusal)
    read = _BY_STATUS.get(status, _server_error if status >= 500 else _bad_request)
    return read(refusal)


def read_body(body: str) -> Completion | Fault:
    """A completion from the body of an HTTP 200, or the fault behind it. The finish reason is looked at first."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _not_json(body)
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        told = _ErrorBody.of(document).told()
        return Fault(
            Action.RETRY,
            "no_choices",
            f"HTTP 200 without a completion{told}: does the endpoint speak chat completions?",
            possibly_billed=True,
        )
    return _read_choice(choices[0], _tokens(document.get("usage")))


def unparseable(reason: str, tokens: Tokens = Tokens()) -> Fault:
    """A reply that is not exactly one JSON document of the schema: asked again twice, then given up."""
    return Fault(
        Action.RETRY,
        "unparseable",
        f"the judge's reply does not fit its schema: {reason}",
        most_attempts=3,
        tokens=tokens,
    )


def timed_out(seconds: float) -> Fault:
    """No complete answer within an attempt's total time."""
    return Fault(
        Action.RETRY,
        "timeout",
        f"no complete answer within {seconds:g} s; a slow model may need a larger timeout_seconds",
        possibly_billed=True,
        most_attempts=3,
    )


def unreachable(error: BaseException) -> Fault:
    """A connection that failed, named by its root cause rather than by the client's own words for it."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    root = causes[-1]
    told = f"{type(root).__name__}: {_one_line(str(root))}" if str(root) else type(root).__name__
    if names & _AFTER_SENDING:
        message = f"the connection broke off before the answer was complete ({told})"
        return Fault(Action.RETRY, "connection_lost", message, possibly_billed=True)
    advice = _connection_advice(causes)
    return Fault(Action.RETRY, "unreachable", f"the endpoint cannot be reached ({told}): {advice}")


# Statuses


def _unauthorized(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.STOP,
        "unauthorized",
        "the endpoint refuses the API key; check that key and endpoint belong together",
    )


def _forbidden(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.STOP,
        "forbidden",
        "the endpoint refuses this network or account; it may want a VPN, a private endpoint or a firewall rule",
    )


def _not_found(refusal: "_Refusal") -> Fault:
    if refusal.error.kinds & {"deploymentnotfound", "model_not_found", "modeldeprecated"}:
        return refusal.fault(Action.STOP, "deployment_not_found", "check the deployment or model name")
    return refusal.fault(
        Action.STOP, "not_found", "check the endpoint's address and, for Azure, the api_version"
    )


def _proxy_refuses(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.STOP, "proxy_refused", "the proxy wants a user name and password; they belong into HTTPS_PROXY"
    )


def _quota_used_up(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.STOP,
        "insufficient_quota",
        "the account's quota is used up; raise it and run the same command again to go on",
    )


def _bad_request(refusal: "_Refusal") -> Fault:
    error = refusal.error
    if error.is_filtered:
        categories = f" ({', '.join(error.filtered)})" if error.filtered else ""
        return refusal.fault(
            Action.REJECT,
            "blocked_by_filter",
            f"the provider's content filter blocked the prompt{categories}",
        )
    if "context_length_exceeded" in error.kinds or "maximum context length" in error.message:
        return _too_long(refusal)
    if "output limit was reached" in error.message:
        return _truncated(refusal.told())
    parameter = _refused_parameter(error)
    if parameter is None:
        return refusal.fault(Action.REJECT, "bad_request", "the endpoint does not accept this request")
    return refusal.fault(
        Action.ADAPT, f"unsupported_{parameter}", _ADVICE_ON_PARAMETER[parameter], parameter=parameter
    )


def _too_long(refusal: "_Refusal") -> Fault:
    return refusal.fault(
        Action.REJECT, "too_long", "the prompt is too long for the model; nothing is cut to make it fit"
    )


def _too_many(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    if "Request too large" in refusal.error.message:
        return _exceeds_rate_limit(refusal, "this request alone is larger")
    if wait is not None and wait > LONGEST_WAIT:
        return _exceeds_rate_limit(refusal, f"it asks to wait {wait:g} s; this request alone may be larger")
    return refusal.fault(
        Action.RETRY,
        "rate_limited",
        "the deployment's rate limit is reached; lower max_workers or raise its quota",
        wait=wait,
    )


def _exceeds_rate_limit(refusal: "_Refusal", reason: str) -> Fault:
    return refusal.fault(
        Action.REJECT,
        "exceeds_rate_limit",
        f"{reason} than the deployment's tokens per minute: raise its quota",
    )


def _server_error(refusal: "_Refusal") -> Fault:
    wait = refusal.wait()
    return refusal.fault(
        Action.RETRY,
        "server_error",
        "the endpoint fails; run the same command again later to go on",
        wait=wait if wait is not None and wait <= LONGEST_WAIT else None,
    )


_SPENT = {"insufficient_quota", "billing_not_active", "billing_hard_limit_reached"}
_BY_STATUS: Mapping[int, Callable[["_Refusal"], Fault]] = {
    401: _unauthorized,
    402: _quota_used_up,
    403: _forbidden,
    404: _not_found,
    405: _not_found,
    407: _proxy_refuses,
    408: _server_error,
    409: _server_error,
    410: _not_found,
    413: _too_long,
    425: _server_error,
    429: _too_many,
}
_ADVICE_ON_PARAMETER = {
    Parameter.MAX_TOKENS: "the model limits its reply by another parameter",
    Parameter.TEMPERATURE: "the model takes no temperature",
    Parameter.RESPONSE_FORMAT: "the endpoint does not take this form of structured output; Azure OpenAI takes "
    "JSON schemas from api_version 2024-08-01-preview on, or set structured_output = auto",
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An HTTP status other than 2xx, and what can be made out of its body."""

    status: int
    headers: Mapping[str, str]
    path: str
    error: "_ErrorBody"

    def fault(self, action: Action, code: str, advice: str, **more: Any) -> Fault:
        return Fault(action, code, f"{self.told()}: {advice}", **more)

    def told(self) -> str:
        """Status, path where it helps, the endpoint's own words and its name for the request, on one line."""
        place = f" at {self.path}" if self.path and self.status in _STATUSES_OF_A_PLACE else ""
        identifier = self.headers.get("apim-request-id") or self.headers.get("x-request-id")
        request = f" [request {_one_line(identifier)[:60]}]" if identifier else ""
        return f"HTTP {self.status}{place}{self.error.told()}{request}"

    def wait(self) -> float | None:
        return asked_wait(self.headers, self.error.message)


_STATUSES_OF_A_PLACE = frozenset({301, 302, 303, 307, 308, 400, 404, 405, 410})


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
            return cls.of(json.loads(body))
        except (ValueError, RecursionError):
            return cls(message=re.sub(r"<[^>]*>", " ", body[:5000]))

    @classmethod
    def of(cls, document: Any) -> "_ErrorBody":
        error = document.get("error") or document if isinstance(document, dict) else document
        if not isinstance(error, dict):
            return cls(message=str(error) if error else "")
        inner = _mapping(error.get("innererror") or error.get("inner_error"))
        results = _mapping(inner.get("content_filter_result") or inner.get("content_filter_results"))
        return cls(
            code=str(error.get("code") or ""),
            message=str(error.get("message") or error.get("detail") or ""),
            parameter=str(error.get("param") or ""),
            type=str(error.get("type") or ""),
            filtered=tuple(str(name) for name, hit in results.items() if _mapping(hit).get("filtered")),
            is_filtered="content_filter" in (error.get("code"), error.get("type"))
            or inner.get("code") == "ResponsibleAIPolicyViolation",
        )

    @property
    def kinds(self) -> set[str]:
        """Code and type: servers put the same words into one or the other."""
        return {self.code.lower(), self.type.lower()}

    def told(self) -> str:
        """The code and message for an error line; empty when there is neither."""
        words = " ".join(part for part in (self.code, self.message) if part.strip())
        return f" ({_one_line(words)[:300]})" if words else ""


def _refused_parameter(error: _ErrorBody) -> Parameter | None:
    """Which part of the request is not taken at all; a value that is merely too large is another matter."""
    text = error.message.lower()
    is_unsupported = (
        "unsupported" in error.code or re.search(r"(\bnot|n't) (\w+ )?support|unsupported", text) is not None
    )
    if re.search(r"use ['\"`]?max_completion_tokens", text):
        return Parameter.MAX_TOKENS
    if error.parameter == "max_tokens" and is_unsupported:
        return Parameter.MAX_TOKENS
    if "temperature" in (error.parameter or text) and is_unsupported:
        return Parameter.TEMPERATURE
    if any(word in f"{error.parameter} {text}" for word in ("response_format", "json_schema", "json_object")):
        return Parameter.RESPONSE_FORMAT
    return None


# Bodies of HTTP 200


def _not_json(body: str) -> Fault:
    kind = "a web page" if body.lstrip()[:1] == "<" else "no JSON" if body.strip() else "an empty body"
    return Fault(
        Action.RETRY,
        "not_json",
        f"the endpoint answered HTTP 200 with {kind} in place of a completion; "
        "is something between here and it (a proxy, a sign-in page)?",
        possibly_billed=True,
    )


def _read_choice(choice: Mapping[str, Any], tokens: Tokens) -> Completion | Fault:
    message = _mapping(choice.get("message"))
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        advice = "the provider's content filter cut the judge's reply"
        return Fault(Action.REJECT, "output_filtered", advice, tokens=tokens)
    if finish == "length":
        return _truncated("the judge's reply was cut at its token limit", tokens)
    if message.get("refusal"):
        told = _one_line(str(message["refusal"]))[:200]
        return Fault(Action.REJECT, "refused", f"the judge refused: {told}", tokens=tokens)
    content = message.get("content")
    if not isinstance(content, str) or not content.strip():
        return unparseable("it is empty", tokens)
    filtering = _mapping(_mapping(choice.get("content_filter_results")).get("error"))
    return Completion(content, tokens, is_unfiltered=filtering.get("code") == "content_filter_error")


def _truncated(message: str, tokens: Tokens = Tokens()) -> Fault:
    """Worth one more try, with more tokens."""
    return Fault(Action.RETRY, "truncated", message, most_attempts=2, tokens=tokens)


def _tokens(usage: Any) -> Tokens:
    counts = _mapping(usage)
    return Tokens(_count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


# Connections


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies behind it, the root last. Of several attempts at connecting, the first."""
    cause: BaseException | None = error
    for _ in range(20):
        if cause is None:
            return
        yield cause
        several = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = several or cause.__cause__ or cause.__context__  # the client hides causes with `from None`


def _connection_advice(causes: list[BaseException]) -> str:
    told = " ".join(f"{type(cause).__name__} {cause}" for cause in causes)
    return next((advice for sign, advice in _CONNECTION_ADVICE if sign in told), "check the network")


_CONNECTION_ADVICE = (
    (
        "CERTIFICATE_VERIFY",
        "the server's TLS certificate is not trusted here; behind a company proxy, name the company's CA "
        "certificate in SSL_CERT_FILE",
    ),
    ("SSLError", "the server does not speak TLS as expected; check the address and its port"),
    ("gaierror", "the host name cannot be resolved; check the endpoint's spelling and the network"),
    ("ConnectionRefused", "nothing listens at this address"),
    ("ConnectionTimeout", "nothing answers at this address; check the network, VPN and firewall"),
    ("Proxy", "the proxy does not let the request through; check HTTPS_PROXY"),
)
_AFTER_SENDING = {
    "ServerDisconnectedError",
    "ClientOSError",
    "ClientPayloadError",
    "ClientResponseError",
    "ClientConnectionResetError",
}
"""What the client raises only once a request is under way."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _one_line(text: str) -> str:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # JSON can spell half a pair
    return " ".join(whole.split())
