"""The HTTP client behind the transport: one pool of connections, one total deadline a request, no second tries.

Cancelling a request when its time is up, though its answer may still trickle in, needs an event loop; it runs in a
thread of its own, and workers wait for it as for any blocking call. Closing ends what is in flight.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.outcomes.classes import LARGEST_BODY
from rag_eval.judge.proxy import Proxy
from rag_eval.judge.request_head import COMPLETIONS, Writer

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, FormData


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    text: str
    path: str
    """Path and query of the address that was asked."""
    is_whole: bool = True
    """False when the body goes on beyond LARGEST_BODY."""


class Connection:
    """Sends requests from any thread. Opening it sends nothing; it refuses a key that no header can carry."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._timeout = endpoint.timeout_seconds
        self._way = _way(endpoint)
        self._writer = Writer(endpoint)
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-connection", daemon=True)
        self._thread.start()
        self._session = asyncio.run_coroutine_threadsafe(_session(endpoint), self._loop).result()

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
        return self._wait_for(self._exchange("POST", COMPLETIONS, body["model"], data=content))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        form: "Callable[[], FormData] | None" = None,
        into: IO[bytes] | None = None,
        most: int = LARGEST_BODY,
        seconds: float = 0.0,
    ) -> Response:
        """Any other request below the endpoint's address: what it carries is JSON or a form.

        `into` takes the body of a successful answer, of at most `most` bytes, and the response has no text then.
        `seconds` are added to the time that a request may take. Raises what `post` raises.
        """
        payload: dict[str, Any] = {"query": query, "into": into, "most": most, "seconds": seconds}
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
        into: IO[bytes] | None = None,
        most: int = LARGEST_BODY,
        seconds: float = 0.0,
    ) -> Response:
        from yarl import URL

        head = await self._writer.head(deployment, path, query)
        headers = head.headers if data is not None else _without_type(head.headers)
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
            if into is not None and answer.status == 200:
                is_whole = await _stream(answer, into, most)
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


async def _stream(answer: "ClientResponse", into: IO[bytes], most: int) -> bool:
    """Write the body to a file as it comes; False if there is more of it than `most` bytes."""
    async for piece in answer.content.iter_any():
        most -= len(piece)
        if most < 0:
            answer.close()
            return False
        await asyncio.to_thread(into.write, piece)
    return True


def _without_type(headers: Mapping[str, str]) -> dict[str, str]:
    """For a request without JSON: a form has a type of its own."""
    return {name: value for name, value in headers.items() if name.lower() != "content-type"}


def _way(endpoint: Endpoint) -> dict[str, Any]:
    """Arguments that lead requests through the proxy that the environment names; its credentials go only to it."""
    from aiohttp import encode_basic_auth

    proxy = Proxy.of(endpoint.url)
    if proxy is None:
        return {}
    credentials = {"Proxy-Authorization": encode_basic_auth(proxy.user, proxy.password)} if proxy.user else {}
    return {"proxy": proxy.url, "proxy_headers": credentials}


async def _session(endpoint: Endpoint) -> "ClientSession":
    """A session that verifies certificates, with the authorities that the environment names, and keeps no cookies."""
    import aiohttp
    import httpx2

    is_secure = urlsplit(endpoint.url).scheme == "https"
    context = await asyncio.to_thread(httpx2.create_ssl_context) if is_secure else True
    connecting = min(30.0, endpoint.timeout_seconds / 2)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connecting),
        cookie_jar=aiohttp.DummyCookieJar(),
    )
