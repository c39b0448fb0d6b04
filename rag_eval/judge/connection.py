"""The HTTP client behind the transport: one pool of connections, one total deadline a request, no second tries.

The client's own timeouts start anew with every byte that arrives, so a server that trickles could hold a worker
for hours. Cancelling the request when its time is up needs an event loop; it runs in a thread of its own, and
workers wait for it as for any blocking call. Closing ends what is in flight.
"""

import asyncio
import ipaddress
import logging
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval.errors import RunStoppedError
from rag_eval.judge.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, RequestOptions


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str
    path: str
    """Path and query of the address that was asked."""


class Connection:
    """Sends requests from any thread. Opening it sends nothing; it refuses a key that no header can carry."""

    def __init__(self, endpoint: Endpoint) -> None:
        if endpoint.token_provider is None:
            _check_key(endpoint.api_key)
        _quieten_clients()
        self._endpoint = endpoint
        self._lines = [_Line(_client(endpoint))]
        self._options: RequestOptions = {"headers": _credentials(endpoint)}
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-connection", daemon=True)
        self._thread.start()

    def post(self, body: Mapping[str, Any]) -> Response:
        """The answer, whatever its status.

        Raises TimeoutError when it is not complete in time, openai.APIConnectionError when there is none, and
        concurrent.futures.CancelledError when the connection was closed meanwhile.
        """
        with self._lock:
            if self._is_closed:
                raise CancelledError
            answer = asyncio.run_coroutine_threadsafe(self._post(body), self._loop)
        return answer.result()

    def close(self) -> None:
        """Cancel what is in flight and let go of the connections."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _post(self, body: Mapping[str, Any]) -> Response:
        """By the client's general method: the one for chat completions looks through each body for what to convert."""
        import httpx2
        import openai

        with self._line().busy() as client:
            async with asyncio.timeout(self._endpoint.timeout_seconds):
                try:
                    answer = await client.post(
                        "/chat/completions", cast_to=httpx2.Response, body=body, options=self._options
                    )
                except openai.APIStatusError as error:
                    return _response(error.response)
                return _response(answer)

    def _line(self) -> "_Line":
        """One with room: every request makes a client look through all of its connections, which adds up."""
        for line in self._lines:
            if line.in_flight < _MOST_IN_FLIGHT:
                return line
        self._lines.append(_Line(_client(self._endpoint)))
        return self._lines[-1]

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for line in self._lines:
            await line.client.close()


_MOST_IN_FLIGHT = 8
"""Of one client."""


class _Line:
    """A client and how many of its requests are in flight. Only the loop's thread touches it."""

    def __init__(self, client: "AsyncOpenAI") -> None:
        self.client = client
        self.in_flight = 0

    @contextmanager
    def busy(self) -> "Iterator[AsyncOpenAI]":
        self.in_flight += 1
        try:
            yield self.client
        finally:
            self.in_flight -= 1


def proxy_of(url: str) -> str:
    """Host and port of the proxy that the environment names for an address, without credentials; or empty."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}").netloc.rpartition("@")[2]


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_key(key: str) -> None:
    """A key that no header can carry would fail at every call, with an error that quotes it."""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise RunStoppedError(
            "unusable_key",
            "the API key holds a space, a line break or a character outside ASCII (or is empty): copy it anew",
        )


def _quieten_clients() -> None:
    """At debug level these packages log prompts, which hold what was written by others, and headers."""
    import openai  # noqa: F401 - it sets its own level from the environment while it is imported

    for name in ("openai", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    """It follows no redirect, retries nothing by itself and always verifies certificates."""
    import openai

    http, timeout = _http_client(endpoint)
    if endpoint.provider == "azure":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint.url,
            api_key=None if endpoint.token_provider else endpoint.api_key,
            azure_ad_token_provider=endpoint.token_provider,
            api_version=endpoint.api_version,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        )
    return openai.AsyncOpenAI(
        base_url=endpoint.url, api_key=endpoint.api_key, timeout=timeout, max_retries=0, http_client=http
    )


def _http_client(endpoint: Endpoint) -> "tuple[httpx2.AsyncClient, httpx2.Timeout]":
    """Proxies and CA certificates come from the environment; loopback is never asked through a proxy."""
    import httpx2
    import openai

    timeout = httpx2.Timeout(None, connect=min(30.0, endpoint.timeout_seconds / 2))
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=endpoint.workers)
    direct = {f"all://{urlsplit(endpoint.url).netloc}": None} if is_loopback(endpoint.host) else None
    try:
        client = openai.DefaultAsyncHttpxClient(
            follow_redirects=False, timeout=timeout, limits=limits, mounts=direct
        )
    except (ImportError, ValueError, httpx2.InvalidURL) as error:
        reason = f"the proxy that the environment names cannot be used ({type(error).__name__})"
        raise RunStoppedError("unusable_proxy", f"{reason}: check HTTPS_PROXY and ALL_PROXY") from None
    return client, timeout


def _credentials(endpoint: Endpoint) -> dict[str, Any]:
    """For Azure, the key alone: the client would prefer a token that it finds in the environment.

    Organisation and project, which it finds there too, are for OpenAI's own host and for no other.
    """
    import openai

    foreign = {} if endpoint.host == "api.openai.com" else dict.fromkeys(_OPENAI_ACCOUNT, openai.omit)
    if endpoint.token_provider is not None:
        return {"api-key": openai.omit, **foreign}
    if endpoint.provider == "azure":
        return {"api-key": endpoint.api_key, "Authorization": openai.omit, **foreign}
    return foreign


_OPENAI_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")


def _response(answer: "httpx2.Response") -> Response:
    path = answer.request.url.raw_path.decode("ascii", "replace")
    return Response(answer.status_code, answer.headers, answer.text, path)
