"""Requests that no answer came to, or none that ends."""

from collections.abc import Iterator

from rag_eval.judge.outcomes.classes import Action, Fault, one_line


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


def unreachable(error: BaseException) -> Fault:
    """A connection that failed, named by its root cause rather than by the client's own words for it."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    root = causes[-1]
    cause = f"{type(root).__name__}: {one_line(str(root))}" if str(root) else type(root).__name__
    if names & _AFTER_SENDING:
        message = f"the connection broke off before the answer was complete ({cause})"
        return Fault(Action.RETRY, "connection_lost", message, possibly_billed=True)
    words = " ".join(f"{type(cause).__name__} {cause}" for cause in causes)
    advice = next((advice for sign, advice in _CONNECTION_ADVICE if sign in words), "check the network")
    return Fault(Action.RETRY, "unreachable", f"the endpoint cannot be reached ({cause}): {advice}")


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
_AFTER_SENDING = {
    "ServerDisconnectedError",
    "ClientOSError",
    "ClientPayloadError",
    "ClientResponseError",
    "ClientConnectionResetError",
}
"""What the client raises only once a request is under way."""
