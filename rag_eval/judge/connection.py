"""The HTTP client behind the transport: one pool of connections, one total deadline a request, no second tries.

Cancelling a request when its time is up, though its answer may still trickle in, needs an event loop; it runs in a
thread of its own, and workers wait for it as for any blocking call. Closing ends what is in flight.
"""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.proxy import Proxy
from rag_eval.judge.request_head import Writer

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


LARGEST_BODY = 2_000_000
"""Bytes that are read of an answer, counted as they are decompressed; several times the longest reply asked for."""


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
        with self._lock:
            if self._is_closed:
                raise CancelledError
            answer = asyncio.run_coroutine_threadsafe(self._post(body["model"], content), self._loop)
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

    async def _post(self, deployment: str, content: bytes) -> Response:
        from yarl import URL

        head = await self._writer.head(deployment)
        async with (
            asyncio.timeout(self._timeout),
            self._session.post(
                URL(head.url, encoded=True),
                data=content,
                headers=head.headers,
                **self._way,
                allow_redirects=False,
            ) as answer,
        ):
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
        await self._writer.close()


async def _body(answer: "ClientResponse") -> tuple[bytes, bool]:
    """The body up to LARGEST_BODY, and whether that is all. It is decompressed piece by piece, no further than read."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece[: LARGEST_BODY + 1 - len(body)]
        if len(body) > LARGEST_BODY:
            answer.close()  # nobody reads the rest
            return bytes(body[:LARGEST_BODY]), False
    return bytes(body), True


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
