"""Who can judge: what each provider needs to be called, and what differs in how it is called.

A new provider is one more entry of PROVIDERS, its name in ProviderName, and its section in the settings.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rag_eval.errors import InputError, RunStoppedError, how_to_install
from rag_eval.judge.masking import is_loopback, safe_url

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from rag_eval.judge.endpoint import Endpoint

ProviderName = Literal["azure", "openai", "offline"]


@dataclass(frozen=True, slots=True)
class _BatchRules:
    """What a provider says of batches of requests."""

    url: str
    """Of a chat completion, as the lines of a batch and the batch itself name it."""
    most_requests: int
    """In one batch."""
    most_bytes: int = 200_000_000
    """In its file."""
    has_own_deployments: bool = False
    """Batches are answered by deployments of their own, which refuse all other requests."""
    is_overdue_at_end: bool = False
    """A batch that takes longer than a day goes on. Elsewhere it expires, with what is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """The names of its settings, all in the section [`name`], and its ways. The offline judge has none of them."""

    name: ProviderName
    title: str
    url_key: str = ""
    model_key: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, and the key that each of them sets."""
    of_a_request: re.Pattern[str] = re.compile("$^")
    """The part of a URL's path that the client appends: an address with it is that of a single request."""
    is_keyless_on_loopback: bool = False
    """A server on this computer needs no API key."""
    description: str = ""
    """Of an endpoint, for people: with {model} and {host}."""
    client: "Callable[[Endpoint, Any], AsyncOpenAI] | None" = None
    """The client that writes request heads for an endpoint, over the given HTTP client."""
    credentials: "Callable[[Endpoint], dict[str, Any]]" = lambda endpoint: {}
    """Headers in place of those that the client would write by itself."""
    price_page: str = ""
    """Where the provider lists what its models cost."""
    price_host: str = ""
    """The end of the hosts that bill these prices."""
    batches: _BatchRules | None = None
    """None if it takes no batches."""

    @property
    def is_offline(self) -> bool:
        """It calls no model: it needs neither credentials nor a network."""
        return self.client is None

    def takes_tokens(self, section: Any) -> bool:
        """Whether calls carry tokens of Microsoft Entra ID in place of the API key, by the provider's settings."""
        return getattr(section, "auth", "key") == "entra"

    def url_problem(self, url: str) -> str | None:
        """What is wrong with an endpoint, in words that show its host at most; None when nothing is."""
        if not re.fullmatch(r"[!-\[\]-~]+", url):
            return "the URL contains white space, a backslash or a non-ASCII character"
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            return "this is not a URL"
        if not host or parts.scheme not in ("https", "http"):
            return "the URL must begin with https:// and name a host"
        if parts.scheme == "http" and not is_loopback(host):
            return "the URL must begin with https://; http is only for localhost, 127.0.0.0/8 and ::1"
        if "@" in parts.netloc:
            return "the URL must not contain a user name or password"
        if re.search(r"[<>]|\byour[-_]resource", parts.netloc, re.IGNORECASE):
            return "this is a placeholder, not the URL of a resource"
        if appended := self.of_a_request.search(parts.path):
            kept = parts._replace(path=parts.path[: appended.start()] or "/")
            return f"this is the URL of a request; keep only {safe_url(kept.geturl())}"
        if re.search("[?#]", url):
            return "the URL must not contain a query (?…) or fragment (#…)"
        return None

    @staticmethod
    def key_problem(key: str) -> str | None:
        """What is wrong with an API key, in words that do not show it; None when nothing is."""
        if any(character.isspace() for character in key):
            return "the key contains white space; copy it again"
        if not (key.isascii() and key.isprintable()):
            return "the key contains an invisible or non-ASCII character; copy it again"
        if _PLACEHOLDER.fullmatch(key):
            return "this is a placeholder, not a key; enter the API key of your provider"
        return None

    def lacking(self, section: Any, *, to_call: bool = True) -> list[str]:
        """Keys of its section that are empty, though it cannot be called, or else not be named, without them."""
        wanted = [self.url_key, "api_key"] if to_call and not self.takes_tokens(section) else [self.url_key]
        return [] if self.is_offline else [key for key in wanted if not getattr(section, key)]


_PLACEHOLDER = re.compile(
    r"""<.*> | \$\{.*\} | \$\w+ | \{\{.*\}\} | %\w+%   # a template that nobody filled in
    | (sk-)?(x{3,} | \*+ | \.{3,})
    | change[-_]?me | todo | (your|insert|enter|paste|replace)[-_].* | .*[-_]here""",
    re.IGNORECASE | re.VERBOSE,
)


def _azure_client(endpoint: "Endpoint", http: Any) -> "AsyncOpenAI":
    import openai

    return openai.AsyncAzureOpenAI(
        azure_endpoint=endpoint.url,
        api_key=None if endpoint.token_provider else endpoint.api_key,
        azure_ad_token_provider=endpoint.token_provider,
        api_version=endpoint.api_version,
        max_retries=0,
        http_client=http,
    )


def _azure_credentials(endpoint: "Endpoint") -> dict[str, Any]:
    """Either the key or the token: the client would also send what it finds in the environment."""
    import openai

    if endpoint.token_provider is not None:
        return {"api-key": openai.omit}
    return {"api-key": endpoint.api_key, "Authorization": openai.omit}


_SCOPE = "https://cognitiveservices.azure.com/.default"


def token_provider() -> Callable[[], Awaitable[str]]:
    """Gives a token of Microsoft Entra ID whenever it is asked, for Azure resources that take no keys.

    It is renewed in time, and comes from wherever azure-identity finds a credential.

    Raises InputError when the package is missing. What it gives raises RunStoppedError when there is no token.
    """
    try:
        from azure.core.exceptions import AzureError
        from azure.identity.aio import DefaultAzureCredential, get_bearer_token_provider
    except ImportError as error:
        raise InputError(
            f"[azure] auth = entra needs the package azure-identity, which cannot be imported ({error}); install it "
            f"with {how_to_install('entra')}, or set auth = key"
        ) from error
    provider = get_bearer_token_provider(DefaultAzureCredential(), _SCOPE)

    async def token() -> str:
        try:
            return str(await provider())
        except AzureError as error:
            reason = " ".join(str(error.message).split())[:300]
            raise RunStoppedError(
                "unauthorized",
                f"Microsoft Entra ID gives no token: {reason}; try az login, or set [azure] auth = key",
            ) from None

    return token


def _openai_client(endpoint: "Endpoint", http: Any) -> "AsyncOpenAI":
    import openai

    return openai.AsyncOpenAI(
        base_url=endpoint.url, api_key=endpoint.api_key, max_retries=0, http_client=http
    )


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            "azure",
            "Azure OpenAI",
            url_key="endpoint",
            model_key="deployment",
            variables={
                "AZURE_OPENAI_ENDPOINT": "endpoint",
                "AZURE_OPENAI_API_KEY": "api_key",
                "AZURE_OPENAI_API_VERSION": "api_version",
            },
            of_a_request=re.compile(r"/openai/.+|/chat/completions.*"),
            description="Azure OpenAI, deployment {model}, at {host}",
            client=_azure_client,
            credentials=_azure_credentials,
            price_page="https://azure.microsoft.com/pricing/details/cognitive-services/openai-service/",
            price_host=".azure.com",
            batches=_BatchRules(
                "/chat/completions", 100_000, has_own_deployments=True, is_overdue_at_end=True
            ),
        ),
        Provider(
            "openai",
            "OpenAI",
            url_key="base_url",
            model_key="model",
            variables={"OPENAI_BASE_URL": "base_url", "OPENAI_API_KEY": "api_key"},
            of_a_request=re.compile(r"/openai/deployments/.*|/chat/completions.*"),
            is_keyless_on_loopback=True,
            description="{model} at {host}",
            client=_openai_client,
            price_page="https://openai.com/api/pricing/",
            price_host="api.openai.com",
            batches=_BatchRules("/v1/chat/completions", 50_000),
        ),
        Provider("offline", "Offline judge"),
    )
}
