"""Where judge calls go, and what a request looks like there."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel

from rag_eval.judge.calls import Call
from rag_eval.judge.outcomes import Parameter

if TYPE_CHECKING:
    from openai import OpenAI

OutputForm = Literal["json_schema", "json_object", "prompt"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where calls go, and how. Holds the API key, so it shows itself without it."""

    provider: Literal["azure", "openai"]
    url: str
    """Azure resource, or base URL of a server that speaks like OpenAI's."""
    api_key: str
    model: str
    """Azure deployment or model name."""
    api_version: str = ""
    temperature: float = 0.0
    structured_output: Literal["auto", "json_schema", "json_object", "prompt"] = "auto"
    timeout_seconds: float = 120.0
    """Total time of one attempt, from connecting to the last byte."""
    max_attempts: int = 5
    workers: int = 2

    def __repr__(self) -> str:
        return f"Endpoint({self.description})"

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or self.url

    @property
    def description(self) -> str:
        if self.provider == "azure":
            return f"Azure OpenAI, deployment {self.model}, at {self.host}"
        return f"{self.model} at {self.host}"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a deployment takes, as far as is known. Found out once, and part of every key."""

    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - no password
    takes_temperature: bool = True
    output: OutputForm = "json_schema"

    def adapted(self, parameter: Parameter) -> "Dialect | None":
        """The dialect without what was refused, or None when nothing is left to adapt."""
        if parameter is Parameter.MAX_TOKENS:
            changed = replace(self, token_limit="max_completion_tokens")  # noqa: S106 - no password
        elif parameter is Parameter.TEMPERATURE:
            changed = replace(self, takes_temperature=False)
        elif parameter is Parameter.JSON_SCHEMA and self.output == "json_schema":
            changed = replace(self, output="json_object")
        else:
            changed = replace(self, output="prompt")
        return None if changed == self else changed

    def to_json(self) -> str:
        return canonical_json(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Dialect":
        return cls(**json.loads(text))


def request_body(endpoint: Endpoint, dialect: Dialect, call: Call[Any], max_tokens: int) -> dict[str, Any]:
    """The body of a chat completion request. What is the same for many calls stands first."""
    body: dict[str, Any] = {
        "model": call.deployment or endpoint.model,
        "messages": [{"role": message.role, "content": message.text} for message in call.messages],
        dialect.token_limit: max_tokens,
    }
    if dialect.takes_temperature:
        body["temperature"] = endpoint.temperature
    if dialect.output == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": strict_schema(call.reply_type)}
    elif dialect.output == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def request_key(endpoint: Endpoint, dialect: Dialect, call: Call[Any]) -> str:
    """SHA-256 of the whole request, address and body: what can change the reply changes the key."""
    request = {
        "provider": endpoint.provider,
        "url": endpoint.url.rstrip("/"),
        "api_version": endpoint.api_version,
        "reply": strict_schema(call.reply_type),
        "body": request_body(endpoint, dialect, call, call.max_tokens),
    }
    return hashlib.sha256(canonical_json(request).encode("utf-8", "surrogatepass")).hexdigest()


def strict_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    """The reply type as `response_format` wants it: named, strict, closed, with every property required."""
    return _strict_schema(reply_type)


@cache
def _strict_schema(reply_type: Any) -> dict[str, Any]:
    return {"name": reply_type.__name__, "strict": True, "schema": _closed(reply_type.model_json_schema())}


def canonical_json(document: Any) -> str:
    """One text for one value: sorted keys, no spaces, no NaN. A value that JSON cannot hold is a bug."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def connect(endpoint: Endpoint, clock: Callable[[], float]) -> "OpenAI":
    """A client with one connection pool for all workers. It follows no redirect and retries nothing by itself."""
    import httpx2
    import openai

    class Deadlined(httpx2.SyncByteStream):
        """A body that must end in time: the client's own timeout starts anew with every byte that trickles in."""

        def __init__(self, inner: Any, deadline: float) -> None:
            self._inner = inner
            self._deadline = deadline

        def __iter__(self) -> Iterator[bytes]:
            for part in self._inner:
                if clock() > self._deadline:
                    raise httpx2.ReadTimeout("the body did not end in time")
                yield part

        def close(self) -> None:
            self._inner.close()

    def start(request: httpx2.Request) -> None:
        request.extensions["deadline"] = clock() + endpoint.timeout_seconds

    def bound(response: httpx2.Response) -> None:
        response.stream = Deadlined(response.stream, response.request.extensions["deadline"])

    limit = endpoint.workers + 1
    http = openai.DefaultHttpxClient(
        follow_redirects=False,
        timeout=httpx2.Timeout(endpoint.timeout_seconds, connect=min(30.0, endpoint.timeout_seconds)),
        limits=httpx2.Limits(max_connections=limit, max_keepalive_connections=limit),
        event_hooks={"request": [start], "response": [bound]},
    )
    if endpoint.provider == "azure":
        return openai.AzureOpenAI(
            azure_endpoint=endpoint.url,
            api_key=endpoint.api_key,
            api_version=endpoint.api_version,
            max_retries=0,
            http_client=http,
        )
    return openai.OpenAI(base_url=endpoint.url, api_key=endpoint.api_key, max_retries=0, http_client=http)


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items() if name not in ("title", "default")}
    if schema.get("type") == "object" and "properties" in schema:
        closed["properties"] = {name: _closed(part) for name, part in schema["properties"].items()}
        closed |= {"additionalProperties": False, "required": list(schema["properties"])}
    return closed
