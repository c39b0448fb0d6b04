"""The head of every request to a deployment: its address and headers, as the openai package writes them.

The package knows the addresses of Azure OpenAI, OpenAI and compatible servers, and how a caller names itself. Once per
deployment and minute it writes one request, which is not sent: the real requests of that minute carry the same head.
It is used for no more than that because writing a request takes it several times as long as sending one takes aiohttp.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from rag_eval.errors import RunStoppedError
from rag_eval.judge.addresses import safe_path
from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.providers import PROVIDERS

if TYPE_CHECKING:
    from openai import AsyncOpenAI

COMPLETIONS = "/chat/completions"
_SECONDS_VALID = 60.0
"""Tokens of Microsoft Entra ID are renewed in time; their provider keeps each until shortly before its end."""
_OF_ONE_REQUEST = frozenset({"host", "connection", "content-length", "accept-encoding"})
"""Headers that belong to the connection and the body that are really used."""


class _RequestHead(NamedTuple):
    url: str
    path: str
    """Path and query of the address, for people."""
    headers: Mapping[str, str]


class Writer:
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
        self, deployment: str, path: str = COMPLETIONS, query: Mapping[str, str] | None = None
    ) -> _RequestHead:
        """`path` is below the endpoint's own; of what is below a deployment, the client knows where it is."""
        if path != COMPLETIONS:  # nothing else is asked for over and over
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
