"""Where judge calls go, and what a request looks like there."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from rag_eval.judge.calls import Call
from rag_eval.judge.masking import secrets_in, without_keys
from rag_eval.judge.outcomes import Parameter
from rag_eval.judge.providers import PROVIDERS, ProviderName
from rag_eval.texts.display import without_half_pairs
from rag_eval.texts.tokens import most_tokens

NO_KEY = "not-needed"
"""What is sent in place of a key to a server that needs none."""

_OutputForm = Literal["json_schema", "json_object", "prompt"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where calls go, and how. Holds the API key, so it shows and pickles itself without it."""

    provider: ProviderName
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
    requests_per_minute: float | None = None
    """The deployment's limit, if it is known: requests are spaced by it."""
    tokens_per_minute: float | None = None
    """The same in tokens: those of the prompt, estimated, and the most that the reply may have."""
    token_provider: Callable[[], Awaitable[str]] | None = None
    """Gives a token of Microsoft Entra ID, in place of the API key; Azure only."""

    def __repr__(self) -> str:
        return f"Endpoint({self.description})"

    def __getstate__(self) -> list[Any]:
        """The key stays in this process: a pickle has none."""
        return ["" if field.name == "api_key" else getattr(self, field.name) for field in fields(self)]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def secrets(self) -> frozenset[str]:
        """What of it must not be shown."""
        return secrets_in(self.api_key, self.url)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or self.url

    @property
    def description(self) -> str:
        model = without_keys(self.model, self.secrets)
        return PROVIDERS[self.provider].description.format(model=model, host=self.host)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that a deployment takes, as far as is known. Found out once, and part of every key."""

    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # noqa: S105 - no password
    takes_temperature: bool = True
    output: _OutputForm = "json_schema"

    @classmethod
    def initial(cls, endpoint: Endpoint) -> "Dialect":
        """What is tried first."""
        wanted = endpoint.structured_output
        return cls() if wanted == "auto" else cls(output=wanted)

    @classmethod
    def remembered(cls, text: str | None, endpoint: Endpoint) -> "Dialect":
        """From what `to_json` gave in an earlier run; a form of output that was chosen wins over a found one."""
        initial = cls.initial(endpoint)
        try:
            remembered = TypeAdapter(cls).validate_json(text) if text else initial
        except ValidationError:
            return initial  # another version's note: what is refused is found out anew
        return (
            remembered if endpoint.structured_output == "auto" else replace(remembered, output=initial.output)
        )

    def to_json(self) -> str:
        return canonical_json(asdict(self))

    def adapted(self, parameter: Parameter) -> "Dialect | None":
        """The dialect without what was refused, or None when nothing is left to adapt."""
        if parameter is Parameter.MAX_TOKENS:
            changed = replace(self, token_limit="max_completion_tokens")  # noqa: S106 - no password
        elif parameter is Parameter.TEMPERATURE:
            changed = replace(self, takes_temperature=False)
        else:
            changed = replace(self, output="json_object" if self.output == "json_schema" else "prompt")
        return None if changed == self else changed

    def differences(self, initial: "Dialect", model: str) -> tuple[str, ...]:
        """What was adapted, one sentence each, for people."""
        sentences = {
            f"{model} expects max_completion_tokens instead of max_tokens.": self.token_limit
            != initial.token_limit,
            f"{model} does not accept a temperature: its default applies, so scores vary.": self.takes_temperature
            != initial.takes_temperature,
            f"{model} {_OUTPUT_SENTENCES.get(self.output, '')}": self.output != initial.output,
        }
        return tuple(sentence for sentence, differs in sentences.items() if differs)

    def reply_limit(self, max_tokens: int) -> int:
        """The tokens that a reply may have, so that `max_tokens` of it are left for what is wanted."""
        return max_tokens * _ROOM_TO_THINK if self.thinks else max_tokens

    @property
    def thinks(self) -> bool:
        """Whether replies count what the model thinks before it writes them."""
        return self.token_limit == "max_completion_tokens"  # noqa: S105 - no password

    def most_prompt_tokens(self, call: Call[Any]) -> int:
        """No prompt of the call has more tokens, as far as vocabularies are built on bytes.

        Providers count the schema of the reply as well, and what frames a conversation and its messages.
        """
        form = canonical_json(strict_schema(call.reply_type)) if self.output == "json_schema" else ""
        texts = [message.text for message in call.messages]
        return sum(map(most_tokens, [form, *texts])) + _TOKENS_AROUND + _TOKENS_AROUND_MESSAGE * len(texts)


_OUTPUT_SENTENCES = {
    "json_object": "does not accept a JSON schema: RAG Eval requests plain JSON and checks each reply.",
    "prompt": "has no JSON mode: the prompt asks for JSON, and RAG Eval checks each reply.",
}
_ROOM_TO_THINK = 4
"""Models that take max_completion_tokens count what they think before they reply as part of it."""


_TOKENS_AROUND = 100
"""A few with OpenAI's models; templates of open models put a date and a knowledge cut-off before a conversation."""
_TOKENS_AROUND_MESSAGE = 8
"""Three or four with OpenAI's models: the role, and where the message begins and ends."""


def request_body(endpoint: Endpoint, dialect: Dialect, call: Call[Any], max_tokens: int) -> dict[str, Any]:
    """The body of a chat completion request. What is the same for many calls stands first."""
    body: dict[str, Any] = {
        "model": call.deployment or endpoint.model,
        "messages": _messages(call),
        dialect.token_limit: dialect.reply_limit(max_tokens),
    }
    if dialect.takes_temperature:
        body["temperature"] = endpoint.temperature
    if dialect.output == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": strict_schema(call.reply_type)}
    elif dialect.output == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def request_key(endpoint: Endpoint, dialect: Dialect, call: Call[Any]) -> str:
    """SHA-256 of the whole request, address and body: what can change the reply changes the key.

    All but the messages is the same for many calls, so it is written and hashed once for them.
    """
    reply_type: type[BaseModel] = call.reply_type
    before, after = _frame(endpoint, dialect, reply_type, call.max_tokens, call.deployment)
    digest = before.copy()
    digest.update(canonical_json(_messages(call)).encode())
    digest.update(after)
    if call.sample:
        digest.update(f"sample {call.sample}".encode())
    key: str = digest.hexdigest()
    return key


@cache
def _frame(
    endpoint: Endpoint, dialect: Dialect, reply_type: Any, max_tokens: int, deployment: str
) -> tuple[Any, bytes]:
    """The canonical JSON of a request up to its messages, hashed, and from them on, in bytes."""
    call = Call("", (), reply_type, max_tokens=max_tokens, deployment=deployment)
    request = {
        "provider": endpoint.provider,
        "url": endpoint.url.rstrip("/"),
        "api_version": endpoint.api_version,
        "reply": strict_schema(reply_type),
        "body": request_body(endpoint, dialect, call, max_tokens) | {"messages": _MARK},
    }
    before, after = canonical_json(request).encode().split(canonical_json(_MARK).encode())
    return hashlib.sha256(before), after


_MARK = "\x00messages\x00"
"""Stands in for the messages; no setting can hold it."""


def strict_schema(reply_type: type[BaseModel]) -> dict[str, Any]:
    """The reply type as `response_format` wants it: named, strict, closed, with every property required."""
    return _strict_schema(reply_type)


@cache
def _strict_schema(reply_type: Any) -> dict[str, Any]:  # mypy does not know that classes can be hashed
    return {"name": reply_type.__name__, "strict": True, "schema": _closed(reply_type.model_json_schema())}


def canonical_json(document: Any) -> str:
    """One text for one value: sorted keys, no spaces, no NaN. A value that JSON cannot hold is a bug."""
    return _CANONICAL.encode(document)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


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


def _messages(call: Call[Any]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": without_half_pairs(message.text)} for message in call.messages]
