"""What becomes of a request: every answer, and that none came, falls into exactly one class, with a stable code.

- retry: transient; the same request may succeed later
- reject: this call has no usable reply, and asking again would not help; other calls may well succeed
- adapt: the endpoint does not take one parameter; leave it out or rename it, once for the whole run
- stop: no further call can succeed
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, ClassVar

from rag_eval.texts.display import without_half_pairs

TRUNCATED = "truncated"
LOOP = "loop"
LOADING = "loading"
LARGEST_BODY = 2_000_000
"""Bytes that are read of an answer, counted as they are decompressed; several times the longest reply asked for."""
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
    cached: int = 0
    """Those of the prompt that the provider had cached."""
    are_counted: bool = field(default=True, compare=False)
    """False for an answer that was billed, though it comes without a count."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the judge wrote, not yet read."""

    content: str
    tokens: Tokens
    is_unfiltered: bool = False
    """The provider's content filter was down, and says so. The reply is as good as any."""
    model: str = field(default="", compare=False)
    """The model that wrote it, by the name that the provider gives."""
    possibly_billed: ClassVar[bool] = False
    """It was billed without a doubt."""


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
    reply: str | None = None
    """The whole reply, if it is one that is not taken; `message` is then what is wrong with it."""
    cut: str = ""
    """What there is of a reply that was cut."""
    thinks: bool = False
    """The reply was cut while the model was still thinking."""
    left: tuple[int, int] | None = None
    """Tokens that a request wanted for its reply, and those that the model's context has left, if these are fewer."""

    @classmethod
    def truncated(
        cls, message: str, tokens: Tokens = Tokens(), *, cut: str = "", thinks: bool = False
    ) -> "Fault":
        """A reply that was cut: requested again with more tokens, as long as there are more."""
        return cls(Action.RETRY, TRUNCATED, message, tokens=tokens, cut=cut, thinks=thinks)


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def one_line(text: str) -> str:
    return " ".join(without_half_pairs(text).split())


def timed_out(seconds: float) -> Fault:
    """No complete answer within an attempt's total time."""
    return Fault(
        Action.RETRY,
        "timeout",
        f"no complete answer within {seconds:g} s; a slow model may need a larger timeout_seconds",
        possibly_billed=True,
        most_attempts=3,
    )


def oversized(most: int) -> Fault:
    """An answer that does not end where every reply has ended."""
    return Fault(
        Action.RETRY,
        "oversized",
        f"the endpoint's answer is larger than {most / 1e6:g} MB; check that a chat model answers at this address",
        possibly_billed=True,
        most_attempts=2,
    )


def unreachable(error: BaseException, proxy: str = "") -> Fault:
    """A connection that failed, named by its root cause rather than by the client's own words for it.

    `proxy` is what names the proxy that it was to go through, and its address; empty without one.
    """
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    root = causes[-1]
    cause = f"{type(root).__name__}: {one_line(str(root))}" if str(root) else type(root).__name__
    if names & _AFTER_SENDING:
        message = f"the connection broke off before the answer was complete ({cause})"
        return Fault(Action.RETRY, "connection_lost", message, possibly_billed=True)
    if proxy and names & _TO_THE_PROXY:
        advice = f"{proxy}: this proxy cannot be reached ({cause}); correct it, or unset it if none is needed"
        return Fault(Action.RETRY, "unreachable", advice)
    words = " ".join(f"{type(cause).__name__} {cause}" for cause in causes)
    advice = next((advice for sign, advice in _CONNECTION_ADVICE if sign in words), "check the network")
    through = f" through {proxy}" if proxy else ""
    return Fault(Action.RETRY, "unreachable", f"the endpoint cannot be reached{through} ({cause}): {advice}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies behind it, the root last. Of several attempts at connecting, the first."""
    cause: BaseException | None = error
    for _ in range(20):
        if cause is None:
            return
        yield cause
        several = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else None
        cause = several or cause.__cause__ or cause.__context__  # the client hides causes with `from None`


_CONNECTION_ADVICE = (
    (
        "CERTIFICATE_VERIFY",
        "the server's TLS certificate is not trusted here; behind a company proxy, set SSL_CERT_FILE to "
        "the company's CA certificate",
    ),
    ("SSLError", "the server does not speak TLS as expected; check the address and its port"),
    ("gaierror", "the host name cannot be resolved; check the endpoint's spelling and the network"),
    ("ConnectionRefused", "nothing listens at this address; start the server, or check host and port"),
    ("ConnectionTimeout", "nothing answers at this address; check the network, VPN and firewall"),
    ("Proxy", "the proxy does not let the request through; check HTTPS_PROXY"),
)
_TO_THE_PROXY = {
    "ClientProxyConnectionError",
    "ClientConnectorDNSError",
    "ConnectionTimeoutError",
}
"""What the client raises where it opens a connection, which is one to the proxy if there is one."""
_AFTER_SENDING = {
    "ServerDisconnectedError",
    "ClientOSError",
    "ClientPayloadError",
    "ClientResponseError",
    "ClientConnectionResetError",
}
"""What the client raises only once a request is under way."""
