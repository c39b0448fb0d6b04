"""The HTTP client behind the transport: one pool of connections, one total deadline a request, no second tries.

Cancelling a request when its time is up, though its answer may still trickle in, needs an event loop; it runs in a
thread of its own, and workers wait for it as for any blocking call. Closing ends what is in flight. The environment
says which proxy an address is called through.

The head of a request, its address and headers, is as the openai package writes it, which knows the addresses of Azure
OpenAI, OpenAI and compatible servers, and how a caller names itself. Once per deployment and minute it writes one
request, which is not sent: the real requests of that minute carry the same head. It is used for no more than that
because writing a request takes it several times as long as sending one takes aiohttp.
"""

import asyncio
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from rag_eval.errors import ExitCode, RunStoppedError
from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.masking import is_loopback, safe_path, safe_url
from rag_eval.judge.outcomes import LARGEST_BODY
from rag_eval.judge.providers import PROVIDERS

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse, ClientSession, FormData
    from openai import AsyncOpenAI


@dataclass(frozen=True, slots=True)
class Proxy:
    """Credentials stand apart from the address, which clients quote in their errors."""

    url: str
    user: str = ""
    password: str = ""
    variable: str = ""
    """What names it in the environment; empty if the system's settings do."""

    def __repr__(self) -> str:
        return f"Proxy({self.url})"

    @classmethod
    def of(cls, url: str) -> Self | None:
        """The proxy for an address; loopback is never called through one.

        Raises RunStoppedError when the environment names one of a kind that cannot be used.
        """
        parts = urlsplit(url)
        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if not proxy or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc.rpartition("@")[2]):
            return None
        proxy = proxy if "://" in proxy else f"http://{proxy}"
        named = _split(proxy)
        variable = _proxy_variable(parts.scheme)
        if named is None:
            raise _unusable(
                "unusable_proxy",
                f"{_told(variable, proxy)}: this proxy cannot be used; HTTPS_PROXY and ALL_PROXY must be "
                "http://host:port or https://host:port",
            )
        address = urlunsplit(named._replace(netloc=named.netloc.rpartition("@")[2]))
        return cls(address, unquote(named.username or ""), unquote(named.password or ""), variable)

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    @property
    def named(self) -> str:
        """What names it, and its address, for messages."""
        return _told(self.variable, self.url)


def _proxy_variable(scheme: str) -> str:
    """The variable that names the proxy for addresses of a scheme, as getproxies takes it; empty without one."""
    names = (spelled for name in (f"{scheme}_proxy", "all_proxy") for spelled in (name, name.upper()))
    return next((name for name in names if os.environ.get(name)), "")


def _told(variable: str, proxy: str) -> str:
    return f"{variable or 'the proxy of the system'} = {safe_url(proxy)}"


def _unusable(code: str, problem: str) -> RunStoppedError:
    """The error of a setting of this computer: it ends with the exit code of wrong settings."""
    error = RunStoppedError(code, problem)
    error.exit_code = ExitCode.USAGE
    return error


def tls_context(url: str) -> "SSLContext | bool":
    """What verifies certificates, with the authorities that the environment names; True for an address without TLS.

    Raises RunStoppedError when the environment names none that can be read.
    """
    import httpx2

    if urlsplit(url).scheme != "https":
        return True
    file, folder = (os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    if folder and not file and not _has_certificates(folder):
        raise _unusable(
            "unusable_certificates",
            f"SSL_CERT_DIR = {folder}: has no certificates that can be found; correct the path, run openssl rehash "
            "with it, or set SSL_CERT_FILE to a PEM file instead",
        )
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        if not file:
            raise
        raise _unusable(
            "unusable_certificates",
            f"SSL_CERT_FILE = {file}: cannot be read as certificates ({error.strerror or error}); correct the path to "
            "a PEM file with CA certificates, or unset the variable",
        ) from None


def _has_certificates(folders: str) -> bool:
    """Whether there is a file under a name by which TLS looks for certificates, such as 5ed36f99.0."""
    try:
        names = [
            name for each in folders.split(os.pathsep) if os.path.isdir(each) for name in os.listdir(each)
        ]
    except PermissionError:
        return True  # files can be opened in a folder that cannot be listed
    return any(re.fullmatch(r"[0-9a-fA-F]{8}\.\d+", name) for name in names)


def _split(proxy: str) -> SplitResult | None:
    """The parts of an address that can be used."""
    try:
        parts = urlsplit(proxy)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_usable else None


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str
    path: str
    """Path and query of the address that was asked."""
    is_whole: bool = True
    """False when the body goes on beyond LARGEST_BODY."""


_COMPLETIONS = "/chat/completions"
_SECONDS_VALID = 60.0
"""Tokens of Microsoft Entra ID are renewed in time; their provider keeps each until shortly before its end."""
_OF_ONE_REQUEST = frozenset({"host", "connection", "content-length", "accept-encoding"})
"""Headers that belong to the connection and the body that are really used."""


class _RequestHead(NamedTuple):
    url: str
    path: str
    """Path and query of the address, for people."""
    headers: Mapping[str, str]


class _Writer:
    """Writes the heads of one endpoint's requests. Refuses a key that no header can carry."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._has_tokens = endpoint.token_provider is not None
        key = endpoint.api_key
        if not self._has_tokens and (not key.isascii() or not key.isprintable() or not key or " " in key):
            raise RunStoppedError(  # it would fail at every call, with an error that quotes it
                "unusable_key",
                "the API key is empty or contains a space, a line break or a non-ASCII character; copy it again",
            )
        self._client = _client(endpoint)
        self._credentials = PROVIDERS[endpoint.provider].credentials(endpoint)
        self.tokens: frozenset[str] = frozenset()
        """Of Microsoft Entra ID, as far as they were sent."""
        self._base = urlsplit(endpoint.url).path.rstrip("/")
        self._heads: dict[str, tuple[float, _RequestHead]] = {}
        self._writing = asyncio.Lock()

    async def head(
        self, deployment: str, path: str = _COMPLETIONS, query: Mapping[str, str] | None = None
    ) -> _RequestHead:
        """`path` is below the endpoint's own; of what is below a deployment, the client knows where it is."""
        if path != _COMPLETIONS:  # nothing else is asked for over and over
            return await self._write(deployment, path, query)
        async with self._writing:  # all requests in flight need a new one at the same moment
            now = time.monotonic()
            written_at, known = self._heads.get(deployment, (0.0, None))
            if known is None or now - written_at > _SECONDS_VALID:
                known = await self._write(deployment, path, query)
                self._heads[deployment] = now, known
            return known

    async def _write(self, deployment: str, path: str, query: Mapping[str, str] | None) -> _RequestHead:
        import httpx2

        answer = await self._client.post(
            path,
            cast_to=httpx2.Response,
            body={"model": deployment},
            options={"headers": self._credentials, "params": query or {}},
        )
        url, headers = answer.request.url, answer.request.headers
        # The user's part of the path may contain a key; the rest is the client's own.
        whole = url.raw_path.decode("ascii", "replace")
        if self._has_tokens:
            self.tokens |= {headers["authorization"].removeprefix("Bearer ")}
        return _RequestHead(
            str(url),
            safe_path(self._base) + whole.removeprefix(self._base),
            {name: value for name, value in headers.items() if name not in _OF_ONE_REQUEST},
        )


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    """One that reaches no network: its requests are answered, empty, where they are written."""
    import httpx2
    import openai  # noqa: F401 - it sets its own log level from the environment while it is imported

    for name in ("openai", "httpx2", "httpcore2"):  # at debug level they log prompts and headers
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))
    echo = httpx2.MockTransport(lambda request: httpx2.Response(200))
    client = PROVIDERS[endpoint.provider].client
    assert client is not None  # noqa: S101 - the offline judge has no endpoint
    writer = client(endpoint, httpx2.AsyncClient(transport=echo, trust_env=False))
    if endpoint.host != "api.openai.com":  # the environment's account is for OpenAI's own host only
        writer.organization = writer.project = None
    return writer


class Connection:
    """Sends requests from any thread. Opening it sends nothing; it refuses a key that no header can carry."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._timeout = endpoint.timeout_seconds
        self._way = _way(endpoint)
        context = tls_context(endpoint.url)
        self._writer = _Writer(endpoint)
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-connection", daemon=True)
        self._thread.start()
        self._session = asyncio.run_coroutine_threadsafe(_session(endpoint, context), self._loop).result()

    @property
    def tokens(self) -> frozenset[str]:
        """The tokens of Microsoft Entra ID that were sent in place of a key."""
        return self._writer.tokens

    def post(self, body: Mapping[str, Any]) -> Response:
        """The answer, whatever its status.

        Raises TimeoutError when it is not complete in time, aiohttp.ClientError when there is none, and
        concurrent.futures.CancelledError when the connection was closed meanwhile.
        """
        content = json.dumps(body, ensure_ascii=False).encode()
        return self._wait_for(self._exchange("POST", _COMPLETIONS, body["model"], data=content))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        form: "Callable[[], FormData] | None" = None,
        take: Callable[[bytes], object] | None = None,
        most: int = LARGEST_BODY,
        seconds: float = 0.0,
    ) -> Response:
        """Any other request below the endpoint's address: what it carries is JSON or a form.

        `take` gets the body of a successful answer in pieces, up to `most` bytes, and the response has no text then.
        `seconds` are added to the time that a request may take. Raises what `post` raises.
        """
        payload: dict[str, Any] = {"query": query, "take": take, "most": most, "seconds": seconds}
        if body is not None:
            payload["data"] = json.dumps(body, ensure_ascii=False).encode()
        return self._wait_for(self._exchange(method, path, "", form=form, **payload))

    def _wait_for(self, exchange: Coroutine[Any, Any, Response]) -> Response:
        with self._lock:
            if self._is_closed:
                exchange.close()
                raise CancelledError
            answer = asyncio.run_coroutine_threadsafe(exchange, self._loop)
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

    async def _exchange(
        self,
        method: str,
        path: str,
        deployment: str,
        *,
        query: Mapping[str, str] | None = None,
        data: bytes | None = None,
        form: "Callable[[], FormData] | None" = None,
        take: Callable[[bytes], object] | None = None,
        most: int = LARGEST_BODY,
        seconds: float = 0.0,
    ) -> Response:
        from yarl import URL

        head = await self._writer.head(deployment, path, query)
        headers = dict(head.headers)
        if data is None:  # a form has a type of its own
            headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        async with (
            asyncio.timeout(self._timeout + seconds),
            self._session.request(
                method,
                URL(head.url, encoded=True),
                data=form() if form else data,
                headers=headers,
                **self._way,
                allow_redirects=False,
            ) as answer,
        ):
            if take is not None and answer.status == 200:
                is_whole = await _stream(answer, take, most)
                return Response(answer.status, answer.headers, "", head.path, is_whole)
            body, is_whole = await _body(answer)
        # JSON is UTF-8, whatever the headers say.
        text = body.decode("utf-8-sig", "replace")
        return Response(answer.status, answer.headers, text, head.path, is_whole)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._session.close()


async def _body(answer: "ClientResponse") -> tuple[bytes, bool]:
    """The body up to LARGEST_BODY, and whether that is all. It is decompressed piece by piece, no further than read."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece[: LARGEST_BODY + 1 - len(body)]
        if len(body) > LARGEST_BODY:
            answer.close()  # nobody reads the rest
            return bytes(body[:LARGEST_BODY]), False
    return bytes(body), True


async def _stream(answer: "ClientResponse", take: Callable[[bytes], object], most: int) -> bool:
    """Hand the body on as it comes; False if there is more of it than `most` bytes."""
    async for piece in answer.content.iter_any():
        await asyncio.to_thread(take, piece[:most])
        most -= len(piece)
        if most < 0:
            answer.close()
            return False
    return True


def _way(endpoint: Endpoint) -> dict[str, Any]:
    """Arguments that lead requests through the proxy that the environment names; its credentials go only to it."""
    from aiohttp import encode_basic_auth

    proxy = Proxy.of(endpoint.url)
    if proxy is None:
        return {}
    credentials = {"Proxy-Authorization": encode_basic_auth(proxy.user, proxy.password)} if proxy.user else {}
    return {"proxy": proxy.url, "proxy_headers": credentials}


async def _session(endpoint: Endpoint, context: "SSLContext | bool") -> "ClientSession":
    """A session that verifies certificates by `context`, and keeps no cookies."""
    import aiohttp

    connecting = min(30.0, endpoint.timeout_seconds / 2)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connecting),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
