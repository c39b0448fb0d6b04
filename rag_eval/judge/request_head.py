"""The head of every request to a deployment: its address and headers, as the openai package writes them.

The package knows the addresses of Azure OpenAI, OpenAI and compatible servers, and how a caller names itself. Once per
deployment and minute it writes one request, which is not sent: the real requests of that minute carry the same head.
It is used for no more than that because writing a request takes it several times as long as sending one takes aiohttp.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rag_eval.errors import RunStoppedError
from rag_eval.judge.addresses import safe_path
from rag_eval.judge.endpoint import Endpoint
from rag_eval.judge.providers import PROVIDERS

if TYPE_CHECKING:
    from openai import AsyncOpenAI, RequestOptions

COMPLETIONS = "/chat/completions"
_SECONDS_VALID = 60.0
"""Tokens of Microsoft Entra ID are renewed in time; their provider keeps each until shortly before its end."""


@dataclass(frozen=True, slots=True)
class _RequestHead:
    url: str
    path: str
    """Path and query of the address, for people."""
    headers: Mapping[str, str]
    written_at: float


class Writer:
    """Writes the heads of one endpoint's requests. Refuses a key that no header can carry."""

    def __init__(self, endpoint: Endpoint) -> None:
        if endpoint.token_provider is None:
            _check_key(endpoint.api_key)
        _quieten_clients()
        self._client = _client(endpoint)
        self._has_tokens = endpoint.token_provider is not None
        self.tokens: frozenset[str] = frozenset()
        """Of Microsoft Entra ID, as far as they were sent."""
        self._base = urlsplit(endpoint.url).path.rstrip("/")
        self._options: RequestOptions = {"headers": _credentials(endpoint)}
        self._heads: dict[tuple[object, ...], _RequestHead] = {}
        self._writing = asyncio.Lock()

    async def head(
        self, deployment: str, path: str = COMPLETIONS, query: Mapping[str, str] | None = None
    ) -> _RequestHead:
        """`path` is below the endpoint's own; of what is below a deployment, the client knows where it is."""
        key = (deployment, path, *sorted((query or {}).items()))
        async with self._writing:  # all requests in flight need a new one at the same moment
            known = self._heads.get(key)
            if known is None or time.monotonic() - known.written_at > _SECONDS_VALID:
                known = await self._write(deployment, path, query)
                if path == COMPLETIONS:  # no other is asked for over and over
                    self._heads[key] = known
            return known

    async def close(self) -> None:
        await self._client.close()

    async def _write(self, deployment: str, path: str, query: Mapping[str, str] | None) -> _RequestHead:
        import httpx2

        options: RequestOptions = {**self._options, "params": query} if query else self._options
        answer = await self._client.post(
            path, cast_to=httpx2.Response, body={"model": deployment}, options=options
        )
        url, headers = answer.request.url, answer.request.headers
        # The user's part of the path may contain a key; the rest is the client's own.
        whole = url.raw_path.decode("ascii", "replace")
        if self._has_tokens:
            self.tokens |= {headers["authorization"].removeprefix("Bearer ")}
        return _RequestHead(
            url=str(url),
            path=safe_path(self._base) + whole.removeprefix(self._base),
            headers={name: value for name, value in headers.items() if name not in _OF_ONE_REQUEST},
            written_at=time.monotonic(),
        )


_OF_ONE_REQUEST = frozenset({"host", "connection", "content-length", "accept-encoding"})
"""Headers that belong to the connection and the body that are really used."""
_OPENAI_ACCOUNT = ("OpenAI-Organization", "OpenAI-Project")


def _check_key(key: str) -> None:
    """A key that no header can carry would fail at every call, with an error that quotes it."""
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise RunStoppedError(
            "unusable_key",
            "the API key is empty or contains a space, a line break or a non-ASCII character; copy it again",
        )


def _quieten_clients() -> None:
    """At debug level these packages log prompts, which hold what was written by others, and headers."""
    import openai  # noqa: F401 - it sets its own level from the environment while it is imported

    for name in ("openai", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.INFO))


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    """One that reaches no network: its requests are answered, empty, where they are written."""
    import httpx2

    echo = httpx2.MockTransport(lambda request: httpx2.Response(200))
    http = httpx2.AsyncClient(transport=echo, trust_env=False)
    client = PROVIDERS[endpoint.provider].client
    assert client is not None  # noqa: S101 - the offline judge has no endpoint
    return client(endpoint, http)


def _credentials(endpoint: Endpoint) -> dict[str, Any]:
    """Organisation and project, which the client finds in the environment, are for OpenAI's own host and no other."""
    import openai

    foreign = {} if endpoint.host == "api.openai.com" else dict.fromkeys(_OPENAI_ACCOUNT, openai.omit)
    return {**PROVIDERS[endpoint.provider].credentials(endpoint), **foreign}
