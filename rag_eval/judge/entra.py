"""Tokens of Microsoft Entra ID, for Azure resources that take no keys."""

from collections.abc import Awaitable, Callable

from rag_eval.errors import InputError, RunStoppedError, how_to_install

SCOPE = "https://cognitiveservices.azure.com/.default"


def token_provider() -> Callable[[], Awaitable[str]]:
    """Gives a token whenever it is asked, renewed in time, from wherever azure-identity finds a credential.

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
    provider = get_bearer_token_provider(DefaultAzureCredential(), SCOPE)

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
